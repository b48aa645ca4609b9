"""Pauses of a thread that examines records, so that the loop gets the interpreter."""

from __future__ import annotations

from typing import Final

from barnabas.storage.runtime.clock import processor_seconds
from barnabas.storage.runtime.threads import new_event, thread_id

WORK_SECONDS: Final = 0.001
REST_SECONDS: Final = 0.002
STEPS: Final = 16
"""Steps of a few microseconds between two looks at the clock."""


class Ended(Exception):
    """The result of the work is not needed any more."""


class ThreadPace:
    """Limiter of one reader's work, on any thread."""

    def __init__(self) -> None:
        self._ended = new_event()
        self._rested = 0.0
        self._thread = 0
        self._steps = 0

    def end(self) -> None:
        """Raise Ended at the next step of the work."""
        self._ended.set()

    def step(self) -> None:
        """Count a few microseconds' work; raises Ended."""
        self._steps += 1
        if self._steps >= STEPS:
            self.rest()

    def rest(self) -> None:
        """Rest if it is due, after work of unknown length; raises Ended."""
        self._steps = 0
        if self._ended.is_set():
            raise Ended
        now, thread = processor_seconds(), thread_id()
        if thread != self._thread:
            self._thread, self._rested = thread, now
        elif now - self._rested >= WORK_SECONDS:
            if self._ended.wait(REST_SECONDS):
                raise Ended
            self._rested = processor_seconds()
