"""Clocks of the machine. Code that decides by the time of a broker uses ``broker.runtime.Clock``.

``counter_ns`` measures elapsed time. ``processor_seconds`` measures the computing time of a thread.
In a simulation both return simulated time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from barnabas.storage.runtime.machine import here

# Compiled code reads a Final without a look-up by name; a request calls counter_ns ten times.
_SIMULATIONS: Final[list[None]] = []
"""One item for each running simulation. If empty, the clocks skip the look-up of the machine."""
_PERF_COUNTER_NS: Final = time.perf_counter_ns


@contextmanager
def simulation() -> Iterator[None]:
    """Read the time from the machine of each thread inside the ``with`` block."""
    _SIMULATIONS.append(None)
    try:
        yield
    finally:
        _SIMULATIONS.pop()


def monotonic() -> float:
    """Return the seconds of a monotonic clock."""
    machine = here() if _SIMULATIONS else None
    return time.monotonic() if machine is None else machine.monotonic()


def now_ns() -> int:
    """Return the nanoseconds since the epoch."""
    machine = here() if _SIMULATIONS else None
    return time.time_ns() if machine is None else machine.now_ns()


def now_seconds() -> float:
    """Return the seconds since the epoch."""
    return now_ns() / 1e9


def counter_ns() -> int:
    """Return the nanoseconds of the clock with the highest resolution."""
    machine = here() if _SIMULATIONS else None
    return _PERF_COUNTER_NS() if machine is None else machine.counter_ns()


def counter_seconds() -> float:
    """Return the seconds of the clock with the highest resolution."""
    machine = here() if _SIMULATIONS else None
    return time.perf_counter() if machine is None else machine.counter_ns() / 1e9


def boot_seconds() -> float:
    """Return the seconds since the boot of the machine, including the time of suspension.

    On a kernel without CLOCK_BOOTTIME, the time of suspension is not included.
    """
    machine = here() if _SIMULATIONS else None
    if machine is None:
        return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
    return machine.monotonic()


def processor_seconds() -> float:
    """Return the processor time of this thread in seconds."""
    machine = here() if _SIMULATIONS else None
    return time.thread_time() if machine is None else machine.counter_ns() / 1e9


def sleep(seconds: float) -> None:
    """Suspend this thread; 0 only yields to other threads."""
    machine = here() if _SIMULATIONS else None
    suspend = time.sleep if machine is None else machine.sleep
    suspend(seconds)
