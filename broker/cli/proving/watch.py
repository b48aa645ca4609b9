"""Watch of a run: looks for findings that nothing later can mend, while the program is disturbed.

An input with two outputs stays one. Faults after that show nothing new, so the run can end sooner.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Final, Self

from barnabas.broker.admin.exchange import Rejected
from barnabas.broker.admin.offsets import UNCOMMITTED, Offsets
from barnabas.broker.cli.errors import CommandError
from barnabas.broker.cli.proving.judge import ABORTED, TWICE, is_allowed
from barnabas.broker.cli.proving.observer import COMMITTED, Observer
from barnabas.broker.client.errors import Unreachable
from barnabas.broker.client.topic_reader import ReceivedRecord
from barnabas.protocol.errors import KafkaError
from barnabas.storage.runtime.threads import Thread, new_event, start_thread

_INTERVAL_S: Final = 1.0


class Watch:
    """``with Watch(...) as watch:`` a thread reads what the program writes."""

    def __init__(
        self,
        observer: Observer,
        close: Callable[[], object],
        ids_of: Callable[[ReceivedRecord], Sequence[str]],
        starts: tuple[Offsets, Offsets],
        expectation: str,
    ) -> None:
        """``close`` ends the connections of the observer; ``starts``: of the input, the output."""
        self.found = ""
        """Kind of the first finding, or empty."""
        self._observer = observer
        self._close = close
        self._ids_of = ids_of
        self._inputs, self._outputs = starts
        self._expectation = expectation
        self._written: set[str] = set()
        self._aborted: set[str] = set()
        self._stopping = new_event()
        self._thread: Thread | None = None

    def __enter__(self) -> Self:
        self._thread = start_thread("barnabas-watch", self._run)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop the thread, and wait for its end unless the run fails."""
        self._stopping.set()
        if self._thread is not None and error is None:
            self._thread.join()

    def _run(self) -> None:
        try:
            while not self.found and not self._stopping.is_set():
                try:
                    self.step()
                except (Unreachable, Rejected, CommandError, KafkaError):
                    self._close()  # The broker is down: the next step reads the same again.
                self._stopping.wait(_INTERVAL_S)
        finally:
            self._close()

    def step(self) -> None:
        """Read the inputs and outputs since the last step."""
        self._read_inputs()
        ends = self._observer.ends(self._observer.target, COMMITTED)
        new = list(self._observer.read(self._observer.target, self._outputs, COMMITTED, ends))
        self._outputs = ends
        for each in new:
            for identity in self._ids_of(each):
                if identity in self._written:
                    self._find(TWICE)
                self._written.add(identity)
        if self._written & self._aborted:
            self._find(ABORTED)

    def _read_inputs(self) -> None:
        """Note the inputs of aborted transactions up to the last stable offset."""
        ends = self._observer.ends(self._observer.source, COMMITTED)
        known, committed = (
            {
                identity
                for each in self._observer.read(
                    self._observer.source, self._inputs, isolation, ends
                )
                for identity in self._ids_of(each)[:1]
            }
            for isolation in (UNCOMMITTED, COMMITTED)
        )
        # A record of a file is written again after its transaction was aborted.
        self._aborted = (self._aborted | known) - committed
        self._inputs = ends

    def _find(self, kind: str) -> None:
        if not self.found and not is_allowed(kind, self._expectation):
            self.found = kind
