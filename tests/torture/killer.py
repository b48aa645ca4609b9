"""Brokers die, or stop, in turn on a thread while the caller continues."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Self

from tests.torture.turns import EVERY_S, Brokers


class Meanwhile:
    """Does something in a thread, beside what is in its block, which ends when that has ended."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._is_enough = threading.Event()
        self._threads = ThreadPoolExecutor(1)
        self._run = self._threads.submit(work)

    @property
    def is_over(self) -> bool:
        """Whether the killer has stopped. Raises the error that has ended it."""
        if not self._run.done():
            return False
        self._run.result()
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._is_enough.set()
        self._threads.shutdown()
        self._run.result()


class Killer(Meanwhile):
    """Kills -9 one broker after the other and starts it again, until its block is left."""

    def __init__(self, brokers: Brokers, every_s: float = EVERY_S) -> None:
        self._kills = 0
        self._brokers = brokers
        self._every_s = every_s
        super().__init__(self._kill)

    @property
    def kills(self) -> int:
        """The number of kills. Raises the error that has ended the killer."""
        assert not self.is_over or self._is_enough.is_set(), "it has ended by itself"
        return self._kills

    def _kill(self) -> None:
        for number in itertools.cycle(range(self._brokers.count)):
            if self._is_enough.wait(self._every_s):
                return
            self._brokers.kill_one(number)
            self._brokers.start_one(number)
            self._kills += 1

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._brokers.wait_until_ready()


class RollingRestart(Meanwhile):
    """Stops each broker in good order and starts it again; the next one when all serve."""

    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers
        super().__init__(self._restart)

    def _restart(self) -> None:
        for number in range(self._brokers.count):
            self._brokers.stop_one(number)
            self._brokers.start_one(number)
            self._brokers.wait_until_ready()
