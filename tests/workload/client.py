"""A client: performs the operations of its plan until it is stopped, and writes a journal."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from barnabas.storage.runtime.clock import sleep
from tests.workload.drivers import patience_s
from tests.workload.journal import Event, Journal, file_journal
from tests.workload.operations import Operation, Rest
from tests.workload.performers import PERFORMERS, Performer
from tests.workload.plans import plan_of
from tests.workload.settings import HUNG_EXIT_CODE, Settings

HANGS_AFTER_S = 10
"""Time after the end of its patience: by then a library has given up by itself."""
LOOK_S = 1.0
IDLE_S = 0.01


class Client:
    """A client of a plan."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.events: list[Event] = []
        """Events of a journal in memory."""
        self.journal = (
            file_journal(settings.journal, settings.name)
            if settings.journal
            else Journal(self.events.append, settings.name)
        )
        self.is_stopping = False
        self.is_held = False
        """Whether it must not begin another operation."""
        self.is_idle = False
        """Whether it waits, since it is held."""
        self.done = 0
        """Number of operations performed."""
        self._plan = plan_of(settings)
        self._performers: dict[type, Performer] = {}

    def run(self) -> None:
        """Perform operations until it is stopped."""
        while not self.is_stopping:
            self.is_idle = self.is_held
            if self.is_idle:
                sleep(IDLE_S)
            else:
                self.once()
        self.close()

    def once(self) -> None:
        """Perform the next operation of the plan, and the rest before it."""
        for operation in self._plan:
            self.perform(operation)
            if not isinstance(operation, Rest):
                self.done += 1
                return

    def perform(self, operation: Operation) -> None:
        """Perform one operation."""
        kind = PERFORMERS[type(operation)]
        if kind not in self._performers:
            self._performers[kind] = kind(self)
        self._performers[kind].perform(operation)

    def close(self) -> None:
        """Close everything that it has opened."""
        for performer in self._performers.values():
            performer.close()
        self._performers.clear()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Do something that has to end."""
        yield


class ProcessClient(Client):
    """A client that is a process of its own; SIGTERM stops it."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._busy_s: float | None = None
        signal.signal(signal.SIGTERM, self._stop)
        threading.Thread(target=self._watch, daemon=True).start()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Do something that has to end: a library that hangs ends the process."""
        self._busy_s = 0.0
        try:
            yield
        finally:
            self._busy_s = None

    def _stop(self, *_signal: object) -> None:
        self.is_stopping = True

    def _watch(self) -> None:
        hung_s = patience_s(self.settings.transaction_timeout_ms) + HANGS_AFTER_S
        # Counted in looks: time that passed while the process was paused does not count.
        while True:
            time.sleep(LOOK_S)
            busy_s = self._busy_s
            if busy_s is not None:
                self._busy_s = busy_s + LOOK_S
                if busy_s > hung_s:
                    os._exit(HUNG_EXIT_CODE)
