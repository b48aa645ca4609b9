"""The machine that a thread runs on: the real one, unless the thread belongs to a simulation.

``clock``, ``threads`` and ``chance`` look here. A simulation claims the threads that it starts
(``claim``); all other threads of the process keep the real machine.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Executor

Item = TypeVar("Item")


class Lock(Protocol):
    """``threading.Lock``, or ``threading.RLock``."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:  # noqa: FBT001, FBT002
        """Take the lock; False if it was not free in time."""

    def release(self) -> None:
        """Give the lock back."""

    def __enter__(self) -> bool: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...


class Condition(Lock, Protocol):
    """``threading.Condition``."""

    def wait(self, timeout: float | None = None) -> bool:
        """Give the lock back until notified; False if that took ``timeout`` seconds."""

    def wait_for(self, predicate: Callable[[], bool], timeout: float | None = None) -> bool:
        """Wait until ``predicate`` holds; return its last value."""

    def notify(self, n: int = 1) -> None:
        """Wake up to ``n`` threads that wait."""

    def notify_all(self) -> None:
        """Wake all threads that wait."""


class Event(Protocol):
    """``threading.Event``."""

    def is_set(self) -> bool:
        """Return whether the event has happened."""

    def set(self) -> None:
        """Wake all threads that wait."""

    def clear(self) -> None:
        """Have threads wait again."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the event; False if it did not come within ``timeout`` seconds."""


class Queue(Protocol[Item]):
    """``queue.SimpleQueue``; ``get`` raises ``queue.Empty``."""

    def put(self, item: Item) -> None:
        """Add an item; never blocks."""

    def get(self, block: bool = True, timeout: float | None = None) -> Item:  # noqa: FBT001, FBT002
        """Take the oldest item."""

    def get_nowait(self) -> Item:
        """Take the oldest item, if there is one."""


class Thread(Protocol):
    """``threading.Thread``, started."""

    def join(self, timeout: float | None = None) -> None:
        """Wait until the thread ends."""

    def is_alive(self) -> bool:
        """Return whether the thread still runs."""


class SimulatedMachine(Protocol):
    """What a simulation puts in the place of the machine."""

    def monotonic(self) -> float:
        """Return seconds on a clock that never goes back."""

    def now_ns(self) -> int:
        """Return nanoseconds since the epoch."""

    def sleep(self, seconds: float) -> None:
        """Let so much time pass."""

    def random_bytes(self, count: int) -> bytes:
        """Return bytes drawn from the simulation's seed."""

    def lock(self) -> Lock:
        """Return a lock."""

    def rlock(self) -> Lock:
        """Return a lock that its holder may take again."""

    def condition(self) -> Condition:
        """Return a condition with a lock of its own."""

    def event(self) -> Event:
        """Return an event that has not happened."""

    def semaphore(self, count: int) -> Lock:
        """Return a lock that ``count`` may hold at once."""

    def queue(self) -> Queue[Item]:
        """Return an empty queue."""

    def start(self, name: str, work: Callable[[], object]) -> Thread:
        """Start a thread that does ``work``."""

    def executor(
        self, name: str, threads: int, initializer: Callable[[], object] | None
    ) -> Executor:
        """Return an executor with at most so many threads."""


class _Claimed(threading.local):
    """The simulated machine of a thread."""

    machine: SimulatedMachine | None = None


_claimed = _Claimed()


def here() -> SimulatedMachine | None:
    """Return the simulated machine that this thread runs on; None: the real one."""
    return _claimed.machine


@contextmanager
def claim(machine: SimulatedMachine) -> Iterator[None]:
    """Let this thread run on ``machine`` inside the ``with`` block."""
    before = _claimed.machine
    _claimed.machine = machine
    try:
        yield
    finally:
        _claimed.machine = before
