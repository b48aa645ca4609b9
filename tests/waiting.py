"""Wait for what others do: threads, brokers, clients."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable

from barnabas.storage.runtime.clock import monotonic, sleep

WAIT_S = 60.0
"""Far more than anything takes; whoever waits this long waits for what will not happen."""
PAUSE_S = 0.005

What = str | Callable[[], object]
"""What is waited for, in words; or how things stand, asked when the wait was in vain."""


def wait_until(
    condition: Callable[[], object],
    what: What = "",
    *,
    seconds: float = WAIT_S,
    pause_s: float = PAUSE_S,
) -> float:
    """Wait until something is so; return the seconds it took. AssertionError when it is not."""
    started_s = monotonic()
    while not condition():
        passed_s = monotonic() - started_s
        assert passed_s < seconds, in_vain(condition, what, seconds)
        sleep(max(pause_s, passed_s / 50))
    return monotonic() - started_s


async def until(
    condition: Callable[[], object], what: What = "", *, seconds: float = WAIT_S
) -> None:
    """Let the loop go on until something is so. AssertionError when it is not."""
    started_s = monotonic()
    while not condition():
        assert monotonic() - started_s < seconds, in_vain(condition, what, seconds)
        await asyncio.sleep(PAUSE_S)


def in_vain(condition: Callable[[], object], what: What, seconds: float) -> str:
    """Return what a wait that ended says: without words of its own, the line of the condition."""
    said = what if isinstance(what, str) else what()
    return f"not within {seconds:g} s: {said or _source(condition)}"


def _source(condition: Callable[[], object]) -> str:
    try:
        return inspect.getsource(condition).strip()
    except TypeError:
        # Not written in Python.
        return repr(condition)
