"""Messages of a command that waits for a cluster's store, and the end of its patience.

A request to a store waits without limit and prints nothing. A store that has never responded has a
wrong address, or refuses the user: the command ends with the reason. A store that has responded is
in a failover: the command waits and prints a line, as hours of work might be lost.
"""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from barnabas.broker.cli.errors import CommandError
from barnabas.broker.cli.printing import print_text

if TYPE_CHECKING:
    from barnabas.broker.cluster.membership.base import ClusterBase

LOOK_EVERY_S: Final = 0.2
PATIENCE_S: Final = 10.0
"""Time of trouble before a line is printed: a failover or a name lookup takes less."""


class StoreWaits:
    """``with StoreWaits(base, "postgresql://..."):`` around all calls of a store."""

    def __init__(self, base: ClusterBase, name: str) -> None:
        """``name`` is the name of the store in messages, without any secret."""
        self._base = base
        self._name = name
        self._is_over = threading.Event()
        self._given_up = ""
        """Last error of a store that was given up."""
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        """Watch from now on."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop watching; raises CommandError in place of the errors that giving up has caused."""
        self._is_over.set()
        self._thread.join()
        # All pending calls have ended, because the store was closed.
        if self._given_up and isinstance(error, Exception):
            raise CommandError(f"{self._name} does not answer: {self._given_up}") from None

    def _watch(self) -> None:
        since_s: float | None = None
        is_said = False
        while not self._is_over.wait(LOOK_EVERY_S):
            last_error, now_s = self._base.last_error, time.monotonic()
            if not last_error:
                if is_said:
                    self._report("answers again")
                since_s, is_said = None, False
                continue
            since_s = now_s if since_s is None else since_s
            if is_said or now_s - since_s < PATIENCE_S:
                continue
            if not self._base.has_answered:
                self._given_up = last_error
                self._base.close()
                return
            self._report(f"does not answer, and is waited for: {last_error}")
            is_said = True

    def _report(self, text: str) -> None:
        print_text(f"barnabas: {self._name} {text}", file=sys.stderr, flush=True)
