"""Machine of a thread: the real machine, unless the thread belongs to a simulation.

``clock``, ``threads`` and ``chance`` get the machine from ``here``. A simulation claims each thread
that it starts (``claim``). All other threads of the process use the real machine.
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
        """Acquire the lock; return False on timeout."""

    def release(self) -> None:
        """Release the lock."""

    def __enter__(self) -> bool: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...


class Semaphore(Lock, Protocol):
    """``threading.BoundedSemaphore``."""

    def release(self, n: int = 1) -> None:
        """Release the semaphore ``n`` times; raises ValueError if that is too often."""


class Condition(Lock, Protocol):
    """``threading.Condition``."""

    def wait(self, timeout: float | None = None) -> bool:
        """Release the lock until notified; return False after ``timeout`` seconds."""

    def wait_for(self, predicate: Callable[[], bool], timeout: float | None = None) -> bool:
        """Wait until ``predicate`` returns a true value; return its last value."""

    def notify(self, n: int = 1) -> None:
        """Wake up to ``n`` waiting threads."""

    def notify_all(self) -> None:
        """Wake all waiting threads."""


class Event(Protocol):
    """``threading.Event``."""

    def is_set(self) -> bool:
        """Return whether the event is set."""

    def set(self) -> None:
        """Set the event and wake all waiting threads."""

    def clear(self) -> None:
        """Clear the event."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the event is set; return False after ``timeout`` seconds."""


class Queue(Protocol[Item]):
    """``queue.SimpleQueue``; ``get`` raises ``queue.Empty``."""

    def put(self, item: Item) -> None:
        """Append an item without blocking."""

    def qsize(self) -> int:
        """Return the number of items, which other threads may change at any time."""

    def get(self, block: bool = True, timeout: float | None = None) -> Item:  # noqa: FBT001, FBT002
        """Remove and return the oldest item."""

    def get_nowait(self) -> Item:
        """Remove and return the oldest item without blocking."""


class Thread(Protocol):
    """Started ``threading.Thread``."""

    def join(self, timeout: float | None = None) -> None:
        """Wait until the thread ends."""

    def is_alive(self) -> bool:
        """Return whether the thread is still running."""


class SimulatedMachine(Protocol):
    """Machine of a simulation, which replaces the real machine."""

    def monotonic(self) -> float:
        """Return the seconds of a monotonic clock."""

    def counter_ns(self) -> int:
        """Return the nanoseconds of a counter that also counts simulated computing time."""

    def now_ns(self) -> int:
        """Return the nanoseconds since the epoch."""

    def sleep(self, seconds: float) -> None:
        """Wait for ``seconds`` of simulated time."""

    def random_bytes(self, count: int) -> bytes:
        """Return ``count`` bytes that the seed of the simulation decides."""

    def lock(self) -> Lock:
        """Return a new lock."""

    def rlock(self) -> Lock:
        """Return a new reentrant lock."""

    def condition(self) -> Condition:
        """Return a new condition variable with its own lock."""

    def event(self) -> Event:
        """Return a new event that is not set."""

    def semaphore(self, count: int) -> Semaphore:
        """Return a new semaphore for ``count`` threads."""

    def queue(self) -> Queue[Item]:
        """Return a new empty queue."""

    def start(self, name: str, work: Callable[[], object]) -> Thread:
        """Start a thread that runs ``work``."""

    def executor(
        self, name: str, threads: int, initializer: Callable[[], object] | None
    ) -> Executor:
        """Return a new executor with at most ``threads`` threads."""


class _Claimed(threading.local):
    """Simulated machine of each thread, or None for the real machine."""

    machine: SimulatedMachine | None = None


_claimed = _Claimed()


def here() -> SimulatedMachine | None:
    """Return the simulated machine of this thread, or None if it runs on the real machine."""
    return _claimed.machine


@contextmanager
def claim(machine: SimulatedMachine) -> Iterator[None]:
    """Run this thread on ``machine`` inside the ``with`` block."""
    before = _claimed.machine
    _claimed.machine = machine
    try:
        yield
    finally:
        _claimed.machine = before
