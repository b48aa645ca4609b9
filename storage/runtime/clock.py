"""The machine's time. Behaviour of the broker goes through ``Clock`` of ``broker.runtime``.

``counter_ns`` measures how long something takes, ``processor_seconds`` how long it computes: what
a thread rests by. In a simulation both are its time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from barnabas.storage.runtime.machine import here

_counter_ns: Callable[[], int] = time.perf_counter_ns
"""Several times for each request: no thread is looked at unless there is a simulation."""
_simulations = 0


@contextmanager
def simulation() -> Iterator[None]:
    """Let each thread count in its own machine's time inside the ``with`` block."""
    global _counter_ns, _simulations  # noqa: PLW0603  See _counter_ns.
    _simulations += 1
    _counter_ns = _counter_ns_here
    try:
        yield
    finally:
        _simulations -= 1
        if not _simulations:
            _counter_ns = time.perf_counter_ns


def _counter_ns_here() -> int:
    machine = here()
    return time.perf_counter_ns() if machine is None else int(machine.monotonic() * 1e9)


def monotonic() -> float:
    """Return seconds on a clock that never goes back."""
    machine = here()
    return time.monotonic() if machine is None else machine.monotonic()


def now_ns() -> int:
    """Return nanoseconds since the epoch."""
    machine = here()
    return time.time_ns() if machine is None else machine.now_ns()


def counter_ns() -> int:
    """Return nanoseconds since some moment, as finely as the machine can."""
    return _counter_ns()


def counter_seconds() -> float:
    """Return seconds since some moment, as finely as the machine can."""
    machine = here()
    return time.perf_counter() if machine is None else machine.monotonic()


def boot_seconds() -> float:
    """Return seconds since the machine was started, those included in which it slept."""
    machine = here()
    if machine is None:
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return machine.monotonic()


def processor_seconds() -> float:
    """Return for how long this thread has computed."""
    machine = here()
    return time.thread_time() if machine is None else machine.monotonic()


def sleep(seconds: float) -> None:
    """Let this thread stand still; 0 lets others run."""
    machine = here()
    if machine is None:
        time.sleep(seconds)
    else:
        machine.sleep(seconds)
