"""Anomalies of what readers were given."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from tests.history.anomalies import (
    ABORTED_READ,
    CONSUMED_TWICE,
    DUPLICATE,
    EARLY_READ,
    INCOMPATIBLE_ORDER,
    INCONSISTENT_OFFSETS,
    INTERNAL_NONMONOTONIC_POLL,
    INTERNAL_POLL_SKIP,
    NONMONOTONIC_POLL,
    POLL_SKIP,
    PRECOMMITTED_READ,
    UNWRITTEN_READ,
    Violation,
)
from tests.history.evidence import Evidence
from tests.history.graph import Graph
from tests.history.model import (
    FAILED,
    MOVED,
    NOT_KNOWN,
    OK,
    SEEK,
    TRANSACTION,
    Operation,
    Partition,
    Read,
)


def find(evidence: Evidence) -> Iterator[Violation]:
    """Yield everything that is wrong with what was read."""
    yield from _inconsistent_offsets(evidence)
    yield from _incompatible_orders(evidence)
    yield from _duplicates(evidence)
    yield from _unwritten(evidence)
    for number, operation, read in evidence.reads():
        yield from _uncommitted_read(evidence, number, operation, read)
    yield from _polls(evidence)
    yield from _consumed_twice(evidence)


def _inconsistent_offsets(evidence: Evidence) -> Iterator[Violation]:
    for (place, offset), values in evidence.values_at.items():
        if len(values) > 1:
            said = " and ".join(sorted(values))
            text = f"{named(place)} has {said} at offset {offset}"
            yield Violation(INCONSISTENT_OFFSETS, text, tuple(values.values()))


def _incompatible_orders(evidence: Evidence) -> Iterator[Violation]:
    """Two orders that no log can have both are a cycle of "next" over all readers."""
    graphs: dict[Partition, Graph[str, int]] = defaultdict(Graph)
    for run in evidence.runs:
        first: dict[str, int] = {}
        for number, read in run.reads:
            first.setdefault(read.value, number)
        for (before, _), (after, number) in pairwise(first.items()):
            graphs[run.place].add(before, after, number)
    for place, graph in graphs.items():
        for circle in graph.cycles():
            values = " before ".join([edge.source for edge in circle] + [circle[0].source])
            operations = tuple(edge.label for edge in circle)
            yield Violation(INCOMPATIBLE_ORDER, f"{named(place)}: {values}", operations)


def _duplicates(evidence: Evidence) -> Iterator[Violation]:
    for (place, value), offsets in evidence.offsets_of.items():
        if len(offsets) > 1:
            text = f"{value} stands at {sorted(offsets)} of {named(place)}"
            yield Violation(DUPLICATE, text, tuple(offsets.values()))


def _unwritten(evidence: Evidence) -> Iterator[Violation]:
    """Check that each record of a log was sent by a client to that partition."""
    for (place, value), offsets in evidence.offsets_of.items():
        if (place, value) not in evidence.writers:
            text = f"nobody sent {value!r} to {named(place)}, where it stands at {sorted(offsets)}"
            yield Violation(UNWRITTEN_READ, text, tuple(offsets.values()))


def _uncommitted_read(
    evidence: Evidence, number: int, operation: Operation, read: Read
) -> Iterator[Violation]:
    found = evidence.writers.get((read.place, read.value))
    if found is None:
        return
    writer = evidence.operation(found[0])
    what = f"{read.value} of {named(read.place)}@{read.offset} was given to {operation.process}"
    operations = (number, found[0])
    if found[0] == number:
        yield Violation(PRECOMMITTED_READ, f"{what}, which was writing it", (number,))
    elif writer.outcome == FAILED:
        yield Violation(ABORTED_READ, f"{what}, but it was aborted", operations)
    elif writer.kind == TRANSACTION:
        read_ns = operation.asked_ns if operation.asked_ns != NOT_KNOWN else operation.completed_ns
        if writer.asked_ns > read_ns != NOT_KNOWN:
            early_ms = (writer.asked_ns - read_ns) / 1e6
            text = f"{what}, {early_ms:.1f} ms before anybody asked to commit it"
            yield Violation(EARLY_READ, text, operations)


def _polls(evidence: Evidence) -> Iterator[Violation]:
    """Check that a reader's offsets in a partition never go back or leave a record out."""
    for run in evidence.runs:
        for (earlier, before), (later, after) in pairwise(run.reads):
            inside = earlier == later
            operations = (earlier,) if inside else (earlier, later)
            what = (
                f"{run.process} was given {named(run.place)}@{after.offset} after {before.offset}"
            )
            if after.offset <= before.offset:
                kind = INTERNAL_NONMONOTONIC_POLL if inside else NONMONOTONIC_POLL
                yield Violation(kind, what, operations)
                continue
            skipped = evidence.existing_between(run, before.offset, after.offset)
            if skipped:
                kind = INTERNAL_POLL_SKIP if inside else POLL_SKIP
                text = f"{what}, without {len(skipped)} from {skipped[0]} to {skipped[-1]}"
                yield Violation(kind, text, operations)


def _consumed_twice(evidence: Evidence) -> Iterator[Violation]:
    consumed: dict[tuple[str, Partition], dict[str, int]] = defaultdict(dict)
    for number, operation in enumerate(evidence.history):
        if operation.kind == MOVED and operation.reason != SEEK:
            for place in operation.moved:
                consumed.pop((operation.process, place), None)
        if operation.outcome != OK:
            continue
        for read in operation.reads:
            before = consumed[operation.process, read.place]
            first = before.setdefault(read.value, number)
            if first != number:
                text = f"{operation.process} consumed {read.value} of {named(read.place)} again"
                yield Violation(CONSUMED_TWICE, text, (first, number))


def named(place: Partition) -> str:
    """Return a partition's name as people write it."""
    return f"{place[0]}-{place[1]}"
