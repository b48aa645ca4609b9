"""Threads, and what they wait for each other with.

Like those of ``threading``, ``queue`` and ``concurrent.futures``, which they are unless the caller
runs in a simulation.
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
    Thread,
    here,
)

__all__ = ["LONGEST_WAIT_SECONDS", "Condition", "Empty", "Event", "Lock", "Queue", "Thread"]

Item = TypeVar("Item")

LONGEST_WAIT_SECONDS: Final = threading.TIMEOUT_MAX
"""The longest time for which a thread can wait."""


def new_lock() -> Lock:
    """Return a lock."""
    machine = here()
    return threading.Lock() if machine is None else machine.lock()


def new_rlock() -> Lock:
    """Return a lock that its holder may take again."""
    machine = here()
    return threading.RLock() if machine is None else machine.rlock()


def new_condition() -> Condition:
    """Return a condition with a lock of its own."""
    machine = here()
    return threading.Condition() if machine is None else machine.condition()


def new_event() -> Event:
    """Return an event that has not happened."""
    machine = here()
    return threading.Event() if machine is None else machine.event()


def new_semaphore(count: int) -> Lock:
    """Return a lock that ``count`` threads may hold at once."""
    machine = here()
    return threading.BoundedSemaphore(count) if machine is None else machine.semaphore(count)


def new_queue() -> Queue[Item]:
    """Return an empty queue without a limit."""
    machine = here()
    if machine is not None:
        return machine.queue()
    made: SimpleQueue[Item] = SimpleQueue()
    return made


def start_thread(name: str, work: Callable[[], object]) -> Thread:
    """Do ``work`` on a thread of its own, which does not keep the process alive."""
    machine = here()
    if machine is not None:
        return machine.start(name, work)
    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    return thread


def thread_id() -> int:
    """Return the number of this thread, which no other living thread has."""
    return threading.get_ident()


def start_timer(name: str, seconds: float, work: Callable[[], object]) -> Event:
    """Do ``work`` on a thread in ``seconds``, unless the event that is returned is set first."""
    is_cancelled = new_event()

    def run() -> None:
        if not is_cancelled.wait(seconds):
            work()

    start_thread(name, run)
    return is_cancelled


def new_executor(
    name: str, threads: int, initializer: Callable[[], object] | None = None
) -> Executor:
    """Return an executor of at most ``threads`` threads, which begin with ``initializer``."""
    machine = here()
    if machine is not None:
        return machine.executor(name, threads, initializer)
    return ThreadPoolExecutor(threads, name, initializer)
