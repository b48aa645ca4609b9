"""Threads, locks, queues and executors.

The objects are those of ``threading``, ``queue`` and ``concurrent.futures``. In a simulation the
simulated machine provides them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import Final, TypeVar

from barnabas.storage.runtime.machine import (
    Condition,
    Event,
    Lock,
    Queue,
    Semaphore,
    Thread,
    here,
)

__all__ = [
    "LONGEST_WAIT_SECONDS",
    "Condition",
    "Empty",
    "Event",
    "Lock",
    "Queue",
    "Semaphore",
    "Thread",
]

Item = TypeVar("Item")

LONGEST_WAIT_SECONDS: Final = threading.TIMEOUT_MAX
"""Maximum timeout of a wait."""


def new_lock() -> Lock:
    """Return a new lock."""
    machine = here()
    return threading.Lock() if machine is None else machine.lock()


def new_rlock() -> Lock:
    """Return a new reentrant lock."""
    machine = here()
    return threading.RLock() if machine is None else machine.rlock()


def new_condition() -> Condition:
    """Return a new condition variable with its own lock."""
    machine = here()
    return threading.Condition() if machine is None else machine.condition()


def new_event() -> Event:
    """Return a new event that is not set."""
    machine = here()
    return threading.Event() if machine is None else machine.event()


def new_semaphore(count: int) -> Semaphore:
    """Return a new semaphore for ``count`` threads."""
    machine = here()
    return threading.BoundedSemaphore(count) if machine is None else machine.semaphore(count)


def new_queue() -> Queue[Item]:
    """Return a new empty queue without a size limit."""
    machine = here()
    if machine is not None:
        return machine.queue()
    created: SimpleQueue[Item] = SimpleQueue()
    return created


def start_thread(name: str, work: Callable[[], object]) -> Thread:
    """Start a daemon thread that runs ``work``."""
    machine = here()
    if machine is not None:
        return machine.start(name, work)
    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    return thread


def thread_id() -> int:
    """Return the identifier of this thread, unique among the running threads."""
    return threading.get_ident()


def start_timer(name: str, seconds: float, work: Callable[[], object]) -> Event:
    """Run ``work`` on a new thread after ``seconds``; return an event that cancels the timer."""
    is_cancelled = new_event()

    def run() -> None:
        if not is_cancelled.wait(seconds):
            work()

    start_thread(name, run)
    return is_cancelled


def new_executor(
    name: str, threads: int, initializer: Callable[[], object] | None = None
) -> Executor:
    """Return a new executor; each of at most ``threads`` threads calls ``initializer`` first."""
    machine = here()
    if machine is not None:
        return machine.executor(name, threads, initializer)
    return ThreadPoolExecutor(threads, name, initializer)
