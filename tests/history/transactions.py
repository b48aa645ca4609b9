"""Anomalies of atomicity and durability: an effect exists as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from statistics import median

from tests.history.anomalies import GONE, HANGING, LOST_WRITE, TORN_TRANSACTION, UNSEEN, Violation
from tests.history.evidence import Evidence
from tests.history.model import (
    COMMITTED,
    NOT_KNOWN,
    OK,
    SEND,
    Operation,
    Partition,
    Read,
    Write,
)
from tests.history.reads import named

SILENCE_S = 1
"""For longer than this no write at all is acknowledged where a whole cluster is out of service."""


def find(evidence: Evidence) -> Iterator[Violation]:
    """Yield transactions that are torn, lost or late, and what is stuck at the end."""
    for number, operation in enumerate(evidence.history):
        if operation.writes and number in evidence.committed:
            yield from _missing(evidence, number, operation)
    for number, operation in enumerate(evidence.history):
        for process in operation.readers:
            yield from _gone(evidence, number, process)
    for end in evidence.ends.values():
        if end.stable != end.high_watermark:
            text = f"{named(end.place)} ends at {end.high_watermark}, stable to {end.stable}"
            yield Violation(HANGING, text, ())


def lag_s(evidence: Evidence) -> tuple[float, float]:
    """Return the median and the longest time for which acknowledged commits stayed unread."""
    lags = [(end_ns - begin_ns) / 1e9 for begin_ns, end_ns in _unread(evidence)]
    return (median(lags), max(lags)) if lags else (0.0, 0.0)


def stuck_s(evidence: Evidence) -> float:
    """Return the longest time for which a commit stayed unread while writes were acknowledged.

    Of the longest lag this is what no failure of the whole cluster explains: times without any
    acknowledgement for more than SILENCE_S are left out.
    """
    acknowledged = sorted(
        operation.completed_ns
        for operation in evidence.history
        if operation.writes and operation.outcome == OK and operation.completed_ns != NOT_KNOWN
    )
    silences = [
        (begin_ns, end_ns)
        for begin_ns, end_ns in pairwise(acknowledged)
        if end_ns - begin_ns > SILENCE_S * 1e9
    ]
    return max(
        (
            (end_ns - begin_ns - _common_ns((begin_ns, end_ns), silences)) / 1e9
            for begin_ns, end_ns in _unread(evidence)
        ),
        default=0.0,
    )


def _unread(evidence: Evidence) -> Iterator[tuple[int, int]]:
    """Yield the span in which each acknowledged write of a commit had no reader."""
    for number, operation, write in evidence.writes():
        reader = evidence.committed_values.get((write.place, write.value))
        if reader is not None and number in evidence.committed and operation.outcome == OK:
            read_ns = evidence.operation(reader).completed_ns
            if NOT_KNOWN not in {read_ns, operation.completed_ns}:
                yield operation.completed_ns, max(operation.completed_ns, read_ns)


def _common_ns(time: tuple[int, int], times: list[tuple[int, int]]) -> int:
    return sum(max(0, min(time[1], end) - max(time[0], begin)) for begin, end in times)


def _missing(evidence: Evidence, number: int, operation: Operation) -> Iterator[Violation]:
    missing = [write for write in operation.writes if not evidence.is_visible(write)]
    if operation.kind == SEND and operation.outcome != OK:
        # Each record has its own fate, and that of those without an offset is not known.
        missing = [write for write in missing if write.offset != NOT_KNOWN]
    passed = [write for write in missing if evidence.passed(write)]
    late = [write for write in missing if write not in passed and write.place in evidence.ends]
    if passed:
        is_whole = operation.kind == SEND or len(missing) == len(operation.writes)
        kind = LOST_WRITE if is_whole else TORN_TRANSACTION
        seen = len(operation.writes) - len(missing)
        text = (
            f"{seen} of {len(operation.writes)} writes were seen, not {_listed(evidence, passed)}"
        )
        yield Violation(kind, text, (number,))
    if late:
        text = f"at the end nobody had been given {_listed(evidence, late)}"
        yield Violation(UNSEEN, text, (number,))


def _gone(evidence: Evidence, end: int, process: str) -> Iterator[Violation]:
    """Check that a full read returns all values that were read or acknowledged before (D1)."""
    read: set[tuple[Partition, str]] = set()
    isolation = ""
    for operation in evidence.history:
        if operation.process == process:
            read.update((each.place, each.value) for each in operation.reads)
            isolation = operation.isolation
    for number, operation in enumerate(evidence.history[:end]):
        promised: list[Read | Write] = [
            each for each in operation.writes if each.offset != NOT_KNOWN
        ]
        if isolation == COMMITTED:
            promised = list(operation.reads) if operation.isolation == COMMITTED else []
        for each in promised:
            if (each.place, each.value) not in read:
                text = f"{each.value} of {named(each.place)}@{each.offset} was there; {process}, "
                yield Violation(GONE, f"{text}who read everything later, got nothing", (number,))


def _listed(evidence: Evidence, writes: list[Write]) -> str:
    return ", ".join(f"{w.value} ({named(w.place)}@{evidence.offset_of(w)})" for w in writes[:8])
