"""Clocks of the machine. Code that decides by the time of a broker uses ``broker.runtime.Clock``.

``counter_ns`` measures elapsed time. ``processor_seconds`` measures the computing time of a thread.
In a simulation both return simulated time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from barnabas.storage.runtime.machine import here

_simulations = 0
"""Number of running simulations. With 0, the clocks skip the look-up of the thread's machine."""


@contextmanager
def simulation() -> Iterator[None]:
    """Read the time from the machine of each thread inside the ``with`` block."""
    global _simulations  # noqa: PLW0603  Process-wide.
    _simulations += 1
    try:
        yield
    finally:
        _simulations -= 1


def monotonic() -> float:
    """Return the seconds of a monotonic clock."""
    machine = here() if _simulations else None
    return time.monotonic() if machine is None else machine.monotonic()


def now_ns() -> int:
    """Return the nanoseconds since the epoch."""
    machine = here() if _simulations else None
    return time.time_ns() if machine is None else machine.now_ns()


def now_seconds() -> float:
    """Return the seconds since the epoch."""
    return now_ns() / 1e9


def counter_ns() -> int:
    """Return the nanoseconds of the clock with the highest resolution."""
    machine = here() if _simulations else None
    return time.perf_counter_ns() if machine is None else machine.counter_ns()


def counter_seconds() -> float:
    """Return the seconds of the clock with the highest resolution."""
    machine = here() if _simulations else None
    return time.perf_counter() if machine is None else machine.counter_ns() / 1e9


def boot_seconds() -> float:
    """Return the seconds since the boot of the machine, including the time of suspension.

    On a kernel without CLOCK_BOOTTIME, the time of suspension is not included.
    """
    machine = here() if _simulations else None
    if machine is None:
        return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
    return machine.monotonic()


def processor_seconds() -> float:
    """Return the processor time of this thread in seconds."""
    machine = here() if _simulations else None
    return time.thread_time() if machine is None else machine.counter_ns() / 1e9


def sleep(seconds: float) -> None:
    """Suspend this thread; 0 only yields to other threads."""
    machine = here() if _simulations else None
    if machine is None:
        time.sleep(seconds)
    else:
        machine.sleep(seconds)
