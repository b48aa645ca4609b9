"""Locks, queues, threads and executors of a simulation. All of them wait in its scheduler."""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from random import Random
from typing import Any, Final, Generic, TypeVar

from barnabas.broker.testing.world.scheduler import Ended, Scheduler, SimulatedThread
from barnabas.storage.runtime.machine import Condition, Event, Lock, Queue, Semaphore, Thread

Item = TypeVar("Item")


_COMPUTED_NS_MOST: Final = 50_000
"""Upper limit of the simulated computing time between two reads of the counter, in nanoseconds."""


class _Waiters:
    """Threads that wait for the same event, in the order of their arrival."""

    def __init__(self, scheduler: Scheduler, name: str) -> None:
        self._scheduler = scheduler
        self._name = name
        self._threads: deque[SimulatedThread] = deque()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until woken; return False after a timeout of ``seconds``."""
        thread = self._scheduler.running
        self._threads.append(thread)
        try:
            return self._scheduler.wait(self._name, seconds)
        finally:
            if thread in self._threads:
                self._threads.remove(thread)

    def wake(self, count: int = 1) -> None:
        """Wake the first ``count`` waiting threads."""
        for _ in range(min(count, len(self._threads))):
            self._scheduler.wake(self._threads.popleft())

    def wake_all(self) -> None:
        """Wake all waiting threads."""
        self.wake(len(self._threads))


class _Semaphore:
    """Semaphore that at most ``count`` threads hold at the same time."""

    def __init__(self, scheduler: Scheduler, count: int, name: str = "a lock") -> None:
        self._scheduler = scheduler
        self._free = self._count = count
        self._waiters = _Waiters(scheduler, name)

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:  # noqa: FBT001, FBT002
        """Acquire the semaphore; return False on timeout."""
        if not self._free:
            if not blocking or self._scheduler.is_ending:
                return False
            seconds = None if timeout < 0 else timeout
            if not self._scheduler.wait_until(lambda: self._free, self._waiters.wait, seconds):
                return False
        self._free -= 1
        return True

    def release(self, n: int = 1) -> None:
        """Release the semaphore ``n`` times; raises ValueError if that is too often."""
        if self._free + n > self._count and not self._scheduler.is_ending:
            raise ValueError("semaphore released too many times")
        self._free += n
        self._waiters.wake(n)

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class _ReentrantLock(_Semaphore):
    """Lock that its holder can acquire again."""

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__(scheduler, 1)
        self._holder: SimulatedThread | None = None
        self._times = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:  # noqa: FBT001, FBT002
        """Acquire the lock; return False on timeout."""
        if self._holder is not self._scheduler.running:
            if not super().acquire(blocking, timeout):
                return False
            self._holder = self._scheduler.running
        self._times += 1
        return True

    def release(self, n: int = 1) -> None:
        """Release the lock ``n`` times."""
        self._times -= n
        if not self._times:
            self._holder = None
            super().release()

    def give_up(self) -> int:
        """Release the lock completely; return how many times it had been acquired."""
        times, self._times = self._times, 1
        self.release()
        return times

    def take_again(self, times: int) -> None:
        """Acquire the lock ``times`` times."""
        self.acquire()
        self._times = times


class _Condition(_ReentrantLock):
    """Condition variable: a lock, and the threads that wait for a notification."""

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__(scheduler)
        self._changed = _Waiters(scheduler, "a change")

    def wait(self, timeout: float | None = None) -> bool:
        """Release the lock until notified; return False after ``timeout`` seconds."""
        times = self.give_up()
        try:
            return self._changed.wait(timeout)
        finally:
            self.take_again(times)

    def wait_for(self, predicate: Callable[[], bool], timeout: float | None = None) -> bool:
        """Wait until ``predicate`` returns a true value; return False after ``timeout`` seconds."""
        return self._scheduler.wait_until(predicate, self.wait, timeout)

    def notify(self, n: int = 1) -> None:
        """Wake up to ``n`` waiting threads."""
        self._changed.wake(n)

    def notify_all(self) -> None:
        """Wake all waiting threads."""
        self._changed.wake_all()


class _Event:
    """Flag that threads set, clear and wait for."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._waiters = _Waiters(scheduler, "an event")
        self._is_set = False

    def is_set(self) -> bool:
        """Return whether the flag is set."""
        return self._is_set

    def set(self) -> None:
        """Set the flag and wake all waiting threads."""
        self._is_set = True
        self._waiters.wake_all()

    def clear(self) -> None:
        """Clear the flag."""
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the flag is set; return False after ``timeout`` seconds."""
        if not self._is_set:
            self._waiters.wait(timeout)
        return self._is_set


class _Queue(Generic[Item]):
    """First-in, first-out queue between threads."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._items: deque[Item] = deque()
        self._waiters = _Waiters(scheduler, "an item of a queue")

    def put(self, item: Item) -> None:
        """Append an item."""
        self._items.append(item)
        self._waiters.wake()

    def qsize(self) -> int:
        """Return the number of items."""
        return len(self._items)

    def get(self, block: bool = True, timeout: float | None = None) -> Item:  # noqa: FBT001, FBT002
        """Remove and return the oldest item; raises ``queue.Empty``."""
        seconds = timeout if block else 0
        if not self._scheduler.wait_until(lambda: self._items, self._waiters.wait, seconds):
            raise queue.Empty
        return self._items.popleft()

    def get_nowait(self) -> Item:
        """Remove and return the oldest item; raises ``queue.Empty``."""
        return self.get(block=False)


class _Thread:
    """Started thread."""

    def __init__(self, scheduler: Scheduler, name: str, work: Callable[[], object]) -> None:
        self._ends = _Event(scheduler)

        def run() -> None:
            try:
                work()
            finally:
                self._ends.set()

        scheduler.start(name, run)

    def join(self, timeout: float | None = None) -> None:
        """Wait until the thread ends."""
        self._ends.wait(timeout)

    def is_alive(self) -> bool:
        """Return whether the thread is still running."""
        return not self._ends.is_set()


class _Future(Future[Any]):
    """Future of an executor, on which a simulated thread can wait."""

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__()
        self._ends = ends = _Event(scheduler)
        self.add_done_callback(lambda _: ends.set())

    def result(self, timeout: float | None = None) -> Any:  # noqa: ANN401
        """Wait for the result and return it."""
        self._ends.wait(timeout)
        return super().result(0)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the end and return the exception, or None if there is none."""
        self._ends.wait(timeout)
        return super().exception(0)


class _Executor(Executor):
    """Executor with at most ``threads`` threads; functions run in the order of submission."""

    def __init__(
        self,
        scheduler: Scheduler,
        name: str,
        threads: int,
        initializer: Callable[[], object] | None,
    ) -> None:
        self._scheduler = scheduler
        self._name = name
        self._most = threads
        self._initializer = initializer
        self._work: deque[tuple[_Future, Callable[[], Any]]] = deque()
        self._comes = _Waiters(scheduler, f"work for {name}")
        self._threads: list[_Thread] = []
        self._idle = 0
        self._is_closed = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:  # noqa: ANN401
        """Schedule ``fn``; raises RuntimeError after ``shutdown``."""
        if self._is_closed:
            raise RuntimeError("cannot schedule new futures after shutdown")
        future = _Future(self._scheduler)
        self._work.append((future, lambda: fn(*args, **kwargs)))
        if self._idle:
            self._comes.wake()
        elif len(self._threads) < self._most:
            name = f"{self._name}_{len(self._threads)}"
            self._threads.append(_Thread(self._scheduler, name, self._live))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002
        """Stop accepting functions, and end the threads once the submitted functions have run."""
        self._is_closed = True
        while cancel_futures and self._work:
            self._work.popleft()[0].cancel()
        self._comes.wake_all()
        if wait:
            for thread in self._threads:
                thread.join()

    def _live(self) -> None:
        if self._initializer is not None:
            self._initializer()
        while True:
            while self._work:
                self._do(*self._work.popleft())
            if self._is_closed:
                return
            self._idle += 1
            try:
                self._comes.wait()
            finally:
                self._idle -= 1

    @staticmethod
    def _do(future: _Future, work: Callable[[], Any]) -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            result = work()
        except Ended:
            raise
        except BaseException as error:  # noqa: BLE001  The future raises the error.
            future.set_exception(error)
            del future, work  # The exception refers to this frame.
        else:
            future.set_result(result)


class SimulatedThreads:
    """Time, threads and random values of one simulation (``SimulatedMachine``)."""

    def __init__(self, seed: int, begins_ns: int) -> None:
        self.scheduler = Scheduler(seed, self)
        self._begins_ns = begins_ns
        self._work = Random(f"{seed} work")  # noqa: S311  Repeatable.
        self._chance = Random(f"{seed} identifiers")  # noqa: S311  Repeatable.

    def monotonic(self) -> float:
        """Return the seconds since the simulation started."""
        return self.scheduler.read_ns() / 1e9

    def counter_ns(self) -> int:
        """Return the nanoseconds since the simulation started, after a random computing time.

        Work in time slices ends because of that computing time. Other work takes no simulated
        time, unless it waits.
        """
        return self.scheduler.compute(self._work.randrange(_COMPUTED_NS_MOST))

    def now_ns(self) -> int:
        """Return the nanoseconds since the epoch."""
        return self._begins_ns + self.scheduler.read_ns()

    def sleep(self, seconds: float) -> None:
        """Wait for ``seconds`` of simulated time."""
        self.scheduler.wait(f"{seconds:g} s to pass", seconds)

    def random_bytes(self, count: int) -> bytes:
        """Return ``count`` bytes that the seed decides."""
        return self._chance.randbytes(count)

    def lock(self) -> Lock:
        """Return a new lock."""
        return _Semaphore(self.scheduler, 1)

    def rlock(self) -> Lock:
        """Return a new reentrant lock."""
        return _ReentrantLock(self.scheduler)

    def condition(self) -> Condition:
        """Return a new condition variable with its own lock."""
        return _Condition(self.scheduler)

    def event(self) -> Event:
        """Return a new event that is not set."""
        return _Event(self.scheduler)

    def semaphore(self, count: int) -> Semaphore:
        """Return a new semaphore for ``count`` threads."""
        return _Semaphore(self.scheduler, count)

    def queue(self) -> Queue[Item]:
        """Return a new empty queue."""
        return _Queue(self.scheduler)

    def start(self, name: str, work: Callable[[], object]) -> Thread:
        """Start a thread that runs ``work``."""
        return _Thread(self.scheduler, name, work)

    def executor(
        self, name: str, threads: int, initializer: Callable[[], object] | None
    ) -> Executor:
        """Return a new executor with at most ``threads`` threads."""
        return _Executor(self.scheduler, name, threads, initializer)
