"""Anomalies of the places where writes stand."""

from __future__ import annotations

from collections.abc import Iterator

from tests.history.anomalies import (
    DIRTY_WRITE_REALTIME,
    INTERNAL_NONMONOTONIC_SEND,
    NONMONOTONIC_SEND,
    Violation,
)
from tests.history.evidence import Evidence
from tests.history.model import NOT_KNOWN, OK, Partition, Write
from tests.history.reads import named


def find(evidence: Evidence) -> Iterator[Violation]:
    """Yield everything that is wrong with the order of writes."""
    yield from _nonmonotonic(evidence)
    yield from _against_real_time(evidence)


def skips(evidence: Evidence) -> int:
    """Count records of other writers between two of one transaction: writers interleave."""
    return sum(
        1
        for log in evidence.logs().values()
        for i, (_, number) in enumerate(log[1:-1], 1)
        if log[i - 1][1] != number and log[i - 1][1] == log[i + 1][1]
    )


def _nonmonotonic(evidence: Evidence) -> Iterator[Violation]:
    last: dict[tuple[str, Partition], tuple[int, int, Write]] = {}
    for number, operation, write in evidence.writes():
        offset = evidence.offset_of(write)
        if offset == NOT_KNOWN:
            continue
        before = last.get((operation.process, write.place))
        if before is not None and offset <= before[0]:
            inside = before[1] == number
            kind = INTERNAL_NONMONOTONIC_SEND if inside else NONMONOTONIC_SEND
            text = (
                f"{operation.process} sent {write.value} after {before[2].value}; in "
                f"{named(write.place)} they stand at {offset} and {before[0]}"
            )
            yield Violation(kind, text, (number,) if inside else (before[1], number))
        last[operation.process, write.place] = (offset, number, write)


def _against_real_time(evidence: Evidence) -> Iterator[Violation]:
    """Check each log from its end: no send started after a later one in the log had finished.

    Of the same process this is a nonmonotonic send.
    """
    for place, log in evidence.logs().items():
        first_done: tuple[int, int, int] | None = None
        for offset, number in reversed(log):
            operation = evidence.operation(number)
            if first_done is not None and operation.invoked_ns > first_done[0]:
                done = evidence.operation(first_done[2])
                if done.process != operation.process:
                    text = (
                        f"{operation.process} began when {done.process} was done, and stands at "
                        f"{offset} of {named(place)}, before {first_done[1]}"
                    )
                    yield Violation(DIRTY_WRITE_REALTIME, text, (first_done[2], number))
            is_done = operation.outcome == OK and operation.completed_ns != NOT_KNOWN
            if is_done and (first_done is None or operation.completed_ns < first_done[0]):
                first_done = operation.completed_ns, offset, number
