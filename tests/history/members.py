"""Anomalies of the members of groups: what they read, from where, and which partitions they own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from tests.history.anomalies import DISTURBED, OWNED_TWICE, PASSED_OVER, READ_AGAIN, Violation
from tests.history.committed import Committed
from tests.history.evidence import Evidence
from tests.history.groups import GroupPlace
from tests.history.model import (
    ASSIGNED,
    COMMIT,
    END,
    FAILED,
    HARMED,
    LOOK,
    MOVED,
    REVOKED,
    UNDISTURBED,
    Operation,
    Partition,
)
from tests.history.reads import named

NO_MEMBER = "UNKNOWN_MEMBER_ID"


def find(evidence: Evidence) -> Iterator[Violation]:
    """Yield everything that is wrong with what members of groups were given."""
    yield from _passed_over(evidence)
    yield from _read_again(evidence)
    yield from _owned_twice(evidence)
    yield from _disturbed(evidence)


def _passed_over(evidence: Evidence) -> Iterator[Violation]:
    """Each committed record before a group's last offset was read by one of its members."""
    read: dict[str, set[tuple[Partition, int]]] = defaultdict(set)
    final: dict[GroupPlace, tuple[int, int]] = {}
    for number, operation in enumerate(evidence.history):
        if operation.group:
            read[operation.group].update((each.place, each.offset) for each in operation.reads)
        if operation.kind == END:
            final |= {(c.group, c.place): (c.offset, number) for c in operation.commits}
    for (group, place), (committed, number) in final.items():
        if group not in read:
            continue
        for offset in evidence.existing_before(place, committed):
            if (place, offset) not in read[group]:
                text = f"{group} is at {committed} of {named(place)}, and no member read {offset}"
                yield Violation(PASSED_OVER, text, (number,))


def _read_again(evidence: Evidence) -> Iterator[Violation]:
    """Find members that begin before an offset that was committed when they were assigned it.

    At-least-once allows more only of records whose offsets were not committed yet.
    """
    committed = Committed(evidence, {COMMIT, LOOK})
    waiting: dict[tuple[str, Partition], int] = {}
    for number, operation in enumerate(evidence.history):
        process = operation.process
        for place in operation.moved:
            if operation.reason == ASSIGNED:
                waiting[process, place] = number
            else:
                waiting.pop((process, place), None)
        for read in operation.reads if operation.group else ():
            assigned = waiting.pop((process, read.place), None)
            if assigned is None:
                continue
            at_ns = evidence.operation(assigned).invoked_ns
            known = committed.before((operation.group, read.place), at_ns)
            if known is not None and read.offset < known[0]:
                text = (
                    f"{process} was assigned {named(read.place)} and began at {read.offset}, "
                    f"although {known[0]} had been committed"
                )
                yield Violation(READ_AGAIN, text, (known[1], assigned, number))


def _owned_twice(evidence: Evidence) -> Iterator[Violation]:
    """A partition is assigned only after the member before has given it up.

    Exempt are members that were paused or killed, those that report a partition as lost, and those
    whose commit is refused since they are no members (librdkafka 2.16 then continues to read).
    """
    harmed = {each.process for each in evidence.history if each.kind == HARMED}
    spans: dict[GroupPlace, list[tuple[int, int, int]]] = defaultdict(list)
    since: dict[tuple[str, Partition], int] = {}
    for at_ns, number, operation in sorted(_changes(evidence), key=lambda change: change[:2]):
        process = operation.process
        if operation.kind == COMMIT:
            since = {key: begun for key, begun in since.items() if key[0] != process}
        for place in operation.moved:
            if operation.reason == ASSIGNED:
                since[process, place] = number
                continue
            begun = since.pop((process, place), None)
            if begun is not None and operation.reason == REVOKED and process not in harmed:
                begun_ns = evidence.operation(begun).invoked_ns
                spans[operation.group, place].append((begun_ns, at_ns, begun))
    for (group, place), found in spans.items():
        for (_, end_ns, one), (begin_ns, _, other) in pairwise(sorted(found)):
            owner, next_owner = evidence.operation(one).process, evidence.operation(other).process
            if begin_ns < end_ns and owner != next_owner:
                text = (
                    f"{named(place)} of {group} was assigned to {next_owner} while {owner} had it"
                )
                yield Violation(OWNED_TWICE, text, (one, other))


def _changes(evidence: Evidence) -> Iterator[tuple[int, int, Operation]]:
    """Yield the changes of a member's partitions, with their times."""
    for number, operation in enumerate(evidence.history):
        if operation.kind == MOVED:
            yield operation.invoked_ns, number, operation
        is_refused = operation.kind == COMMIT and operation.outcome == FAILED
        if is_refused and NO_MEMBER in operation.reason:
            yield operation.completed_ns, number, operation


def _disturbed(evidence: Evidence) -> Iterator[Violation]:
    moved = [each for each in enumerate(evidence.history) if each[1].kind == MOVED]
    for number, operation in enumerate(evidence.history):
        if operation.kind != UNDISTURBED:
            continue
        for at, each in moved:
            is_then = operation.invoked_ns <= each.invoked_ns <= operation.completed_ns
            if is_then and each.process == operation.process and each.moved:
                text = f"{each.process}: {each.reason} {' '.join(map(named, each.moved))}"
                yield Violation(DISTURBED, text, (number, at))
