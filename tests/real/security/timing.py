"""Whether two kinds of attempts to log in can be told apart by their time: medians of many.

Attempts of both kinds alternate, so that whatever else the machine does meets both. Of several
rounds one has to show no difference: a real one shows in every round, as the planted ones do.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from typing import TypeAlias

Work: TypeAlias = Callable[[], object]

ATTEMPTS = 2000
ROUNDS = 6
ALIKE = 1.08
"""Medians of the same work, measured like this, were seen to differ by 1 to 3 %."""

NAMES = [f"user-{number:04}" for number in range(200)]
NOBODY = [f"none-{number:04}" for number in range(200)]


def spent_ns(work: Work) -> int:
    """What something takes of the processor: whoever else has it meanwhile is no difference."""
    begun = time.process_time_ns()
    work()
    return time.process_time_ns() - begun


def differs(attempt: Callable[[str], Work], attempts: int = ATTEMPTS) -> bool:
    """Whether attempts with names of users and of nobody can be told apart by their time."""
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
