"""What a command tells of a cluster's store that it waits for, and when it waits no more.

Whoever asks a store waits for it, be it for ever, and says nothing. A store that has never answered
is at another address, or takes no such user: the command ends and says why. One that has is failed
over: it is waited for, and a line says so, as hours of work may be behind.
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
"""Trouble that lasts so long is told of: a failover, or a name that is looked up, takes less."""


class StoreWaits:
    """``with StoreWaits(base, "postgresql://..."):`` around all that is asked of a store."""

    def __init__(self, base: ClusterBase, name: str) -> None:
        """``name`` is what the store is called in messages, without any secret."""
        self._base = base
        self._name = name
        self._is_over = threading.Event()
        self._given_up = ""
        """What a store that was given up did not answer by."""
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
        """Watch no more; raises CommandError in place of what giving up has come to."""
        self._is_over.set()
        self._thread.join()
        # Whatever was asked meanwhile has ended by that it was closed.
        if self._given_up and isinstance(error, Exception):
            raise CommandError(f"{self._name} does not answer: {self._given_up}") from None

    def _watch(self) -> None:
        since_s: float | None = None
        is_said = False
        while not self._is_over.wait(LOOK_EVERY_S):
            last_error, now_s = self._base.last_error, time.monotonic()
            if not last_error:
                if is_said:
                    self._say("answers again")
                since_s, is_said = None, False
                continue
            since_s = now_s if since_s is None else since_s
            if is_said or now_s - since_s < PATIENCE_S:
                continue
            if not self._base.has_answered:
                self._given_up = last_error
                self._base.close()
                return
            self._say(f"does not answer, and is waited for: {last_error}")
            is_said = True

    def _say(self, what: str) -> None:
        print_text(f"barnabas: {self._name} {what}", file=sys.stderr, flush=True)
