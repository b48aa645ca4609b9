"""The machine's time. Behaviour of the broker goes through ``Clock`` of ``broker.runtime``.

``counter_ns`` measures how long something takes, ``processor_seconds`` how long it computes: what
a thread rests by. In a simulation both are its time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from barnabas.storage.runtime.machine import here

_simulations = 0
"""How many run. A thread is looked up only if there are any: requests read the time often."""


@contextmanager
def simulation() -> Iterator[None]:
    """Take the time from the machine of each thread inside the ``with`` block."""
    global _simulations  # noqa: PLW0603  See there.
    _simulations += 1
    try:
        yield
    finally:
        _simulations -= 1


def monotonic() -> float:
    """Return seconds on a clock that never goes back."""
    machine = here() if _simulations else None
    return time.monotonic() if machine is None else machine.monotonic()


def now_ns() -> int:
    """Return nanoseconds since the epoch."""
    machine = here() if _simulations else None
    return time.time_ns() if machine is None else machine.now_ns()


def now_seconds() -> float:
    """Return seconds since the epoch."""
    return now_ns() / 1e9


def counter_ns() -> int:
    """Return nanoseconds since some moment, as finely as the machine can."""
    machine = here() if _simulations else None
    return time.perf_counter_ns() if machine is None else int(machine.monotonic() * 1e9)


def counter_seconds() -> float:
    """Return seconds since some moment, as finely as the machine can."""
    machine = here() if _simulations else None
    return time.perf_counter() if machine is None else machine.monotonic()


def boot_seconds() -> float:
    """Return seconds since the machine was started, those included in which it slept.

    Where the kernel does not count those, they are missing.
    """
    machine = here() if _simulations else None
    if machine is None:
        return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
    return machine.monotonic()


def processor_seconds() -> float:
    """Return for how long this thread has computed."""
    machine = here() if _simulations else None
    return time.thread_time() if machine is None else machine.monotonic()


def sleep(seconds: float) -> None:
    """Let this thread stand still; 0 lets others run."""
    machine = here() if _simulations else None
    if machine is None:
        time.sleep(seconds)
    else:
        machine.sleep(seconds)
