"""Shortest schedule that still fails: halves of a failed schedule, then single faults left out.

The runs of one schedule differ in their times, so a schedule counts only if a run of it has failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from barnabas.broker.cli.errors import CommandError
from barnabas.broker.cli.proving.faults import Fault, Planned
from barnabas.broker.cli.proving.run import NothingTried, Options, PrintLine, Proof, Run

RUNS_MAX: Final = 12
"""Runs of shorter schedules."""
_FIRST_S: Final = 0.3
_AFTER_S: Final = 3.0
"""Time of a run after its last fault."""

Attempt: TypeAlias = Callable[[Sequence[Planned]], Proof]


def minimised(options: Options, failed: Proof, print_line: PrintLine) -> Proof:
    """Return a failed run with as few faults as possible."""

    def attempt(planned: Sequence[Planned]) -> Proof:
        seconds = planned[-1].at_s + _AFTER_S if planned else _AFTER_S
        with Run(replace(options, seconds=seconds), lambda _text: None, planned) as run:
            return run.perform()

    return shortest(failed, attempt, print_line)


def shortest(failed: Proof, attempt: Attempt, print_line: PrintLine) -> Proof:
    """Return the failed run with the fewest faults that ``attempt`` finds."""
    tried: set[tuple[Fault, ...]] = set()
    is_shorter = True
    while is_shorter:
        is_shorter = False
        for planned in _parts(failed.schedule):
            faults = tuple(each.fault for each in planned)
            if faults in tried:
                continue
            if len(tried) == RUNS_MAX:
                return failed
            tried.add(faults)
            print_line(f"trying {len(planned)} of {len(failed.schedule)} faults")
            try:
                proof = attempt(planned)
            except (CommandError, NothingTried) as problem:  # The verdict of the failed run stays.
                print_line(f"no verdict: {problem}")
                continue
            if proof.verdict.inputs and not proof.verdict.is_proved:
                failed, is_shorter = proof, True
                break
    return failed


def _parts(schedule: Sequence[Planned]) -> Iterator[Sequence[Planned]]:
    """Yield shorter schedules: none, both halves, and those without one fault."""
    count = len(schedule)
    if not count:
        return
    yield []
    if count > 1:
        yield _moved(schedule[: count // 2])
        yield _moved(schedule[count // 2 :])
    if count > 2:
        for index in range(count):
            yield _moved([*schedule[:index], *schedule[index + 1 :]])


def _moved(schedule: Sequence[Planned]) -> list[Planned]:
    """Return a schedule that begins soon, with the same times between its faults."""
    earlier_s = schedule[0].at_s - _FIRST_S
    return [each._replace(at_s=round(each.at_s - earlier_s, 3)) for each in schedule]
