"""How much a thread that looks at records computes before it lets the loop have the interpreter."""

from __future__ import annotations

from typing import Final

from barnabas.storage.runtime.clock import processor_seconds
from barnabas.storage.runtime.threads import new_event, thread_id

WORK_SECONDS: Final = 0.001
REST_SECONDS: Final = 0.002
STEPS: Final = 16
"""Steps of a few microseconds between two looks at the clock."""


class Ended(Exception):
    """Nobody waits for this work any more."""


class ThreadPace:
    """Holds one reader's work back, on whichever thread it runs."""

    def __init__(self) -> None:
        self._ended = new_event()
        self._rested = 0.0
        self._thread = 0
        self._steps = 0

    def end(self) -> None:
        """Have the work raise Ended at its next step."""
        self._ended.set()

    def step(self) -> None:
        """Take note of a few microseconds' work; raises Ended."""
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
