"""Differences between logins with known and unknown names: in their calls, or in their time.

The calls are the same on every machine. The time is a median of many attempts; attempts of both
kinds alternate, so that other work of the machine slows down both. One of several rounds must show
no difference: a real one shows in every round, as the planted ones do.
"""

from __future__ import annotations

import gc
import statistics
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import TypeAlias

from tests.products import case

Work: TypeAlias = Callable[[], object]

ATTEMPTS = 2000
ROUNDS = 6
COMPARED = 20
"""Names of each kind whose calls are compared."""
ALIKE = 1.08
"""Medians of the same work, measured like this, were seen to differ by 1 to 3 %."""

NAMES = [f"user-{number:04}" for number in range(200)]
NOBODY = [f"none-{number:04}" for number in range(200)]


def calls_of(work: Work) -> tuple[str, ...]:
    """Return the names of all functions that some work calls, in order; those in C as well."""
    calls: list[str] = []

    def note(frame: FrameType, event: str, function: object) -> None:
        if event == "call":
            calls.append(frame.f_code.co_qualname)
        elif event == "c_call":
            calls.append(str(getattr(function, "__qualname__", function)))

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return tuple(calls)


def differs_in_calls(attempt: Callable[[str], Work], _attempts: int = ATTEMPTS) -> bool:
    """Return whether only attempts with unknown names call certain functions.

    Attempts of one kind differ by the digits of a salt.
    """
    of_users, of_nobody = (
        {calls_of(attempt(name)) for name in names[:COMPARED]} for names in (NAMES, NOBODY)
    )
    return of_users.isdisjoint(of_nobody)


def spent_ns(work: Work) -> int:
    """Return the processor time of some work: other processes do not count."""
    begun = time.process_time_ns()
    work()
    return time.process_time_ns() - begun


def differs_in_time(attempt: Callable[[str], Work], attempts: int = ATTEMPTS) -> bool:
    """Return whether attempts with known names take another time than those with unknown ones."""
    for _ in range(ROUNDS):
        gc.collect()
        gc.disable()
        try:
            times: dict[bool, list[int]] = {True: [], False: []}
            for number in range(attempts):
                pair = ((NAMES, True), (NOBODY, False))
                for names, is_user in pair if number % 2 else pair[::-1]:
                    work = attempt(names[number % len(names)])
                    times[is_user].append(spent_ns(work))
        finally:
            gc.enable()
        one, other = (statistics.median(times[is_user]) for is_user in (True, False))
        if max(one, other) / min(one, other) <= ALIKE:
            return False
    return True


DIFFERENCES = (case(differs_in_calls, in_test=True), case(differs_in_time, in_test=False))
"""Parameters of a fixture that returns whether attempts differ: measured at night only."""
