"""What must hold of a group, by what its members wrote down and what was seen from outside.

Every function returns the violations it found, as sentences. The ids are those of the invariants:
O1 the committed offset is the last one in the log, O5 a refused commit has no effect, O8 a restart
changes nothing, D1 what was acknowledged survives, L8 everybody reads the same at an offset.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from tests.groups.events import (
    ASSIGNED,
    COMMITTED,
    COMMITTING,
    LOST,
    READ,
    REFUSED,
    REVOKED,
    Event,
    Partition,
)
from tests.groups.observer import Commit, Place, Seen, last_by_partition

NO_MEMBER = "UNKNOWN_MEMBER_ID"

Journals = Mapping[str, Sequence[Event]]
"""The events of each member of one group."""
Acked = Mapping[tuple[str, int, int], str]


class Outage(NamedTuple):
    """A time without a broker."""

    from_ns: int
    to_ns: int

    def overlaps(self, from_ns: int, to_ns: int) -> bool:
        return from_ns <= self.to_ns and to_ns >= self.from_ns


def lost_records(journals: Journals, acked: Acked) -> list[str]:
    """No acknowledged record was passed over by the group, and its value is what was sent (L8)."""
    read: dict[tuple[str, int, int], str] = {}
    wrong = []
    for name, events in journals.items():
        for topic, partition, offset, value in _records(events):
            place = (topic, partition, offset)
            if read.setdefault(place, value) != value or acked.get(place, value) != value:
                wrong.append(f"{name} read {value} at {place}, which is {acked.get(place)}")
    missing = sorted(acked.keys() - read.keys())
    return wrong + [f"nobody read {acked[place]} at {place}" for place in missing]


def duplicates(journals: Journals) -> int:
    """Return how many times a record was read again."""
    reads = Counter(record[:3] for events in journals.values() for record in _records(events))
    return sum(count - 1 for count in reads.values())


def read_again(journals: Journals) -> list[str]:
    """Nobody starts before an offset whose commit was acknowledged before the assignment.

    That is all that at-least-once allows: what was read by a member that died, and committed, is
    not read by the next one.
    """
    commits = sorted(
        (event.at_ns, (topic, partition), offset, name)
        for name, events in journals.items()
        for event in events
        if event.kind == COMMITTED
        for topic, partition, offset in event.offsets
    )
    wrong = []
    for name, events in journals.items():
        for assigned_ns, place, first in _starts(events):
            before = [c for c in commits if c[1] == place and c[0] < assigned_ns]
            highest = max(before, key=lambda commit: commit[2], default=None)
            if highest is not None and first < highest[2]:
                wrong.append(
                    f"{name} was assigned {place} and began at {first}, although {highest[3]} "
                    f"had committed {highest[2]} {(assigned_ns - highest[0]) / 1e6:.0f} ms before"
                )
    return wrong


class Mark(NamedTuple):
    """What was committed at a time, and how many records each member had read by then."""

    offsets: Mapping[Partition, int]
    read: Mapping[str, int]


def read_again_since(journals: Journals, marks: Sequence[Mark]) -> list[str]:
    """The same for tools that do not tell when they were assigned anything.

    A mark is made before the group is disturbed, when it is whole. Whoever begins to read a
    partition after a mark got it after the mark before that one.
    """
    wrong = []
    for name, events in journals.items():
        for index, place, first in _runs(events):
            passed = [mark for mark in marks if mark.read.get(name, 0) <= index]
            known = passed[-2].offsets.get(place, 0) if len(passed) > 1 else 0
            if first < known:
                wrong.append(f"{name} began {place} at {first}, {known} had been committed")
    return wrong


def gaps(journals: Journals) -> list[str]:
    """Between two assignments a member reads every offset once, in order (poll skip, repetition).

    The logs have no transactions: offsets are dense.
    """
    wrong = []
    for name, events in journals.items():
        expected: dict[Partition, int] = {}
        for event in events:
            for place in event.partitions:
                expected.pop(place, None)
            for topic, partition, offset, _value in event.records:
                place = (topic, partition)
                if expected.get(place, offset) != offset:
                    wrong.append(f"{name} read {place} {offset} instead of {expected[place]}")
                expected[place] = offset + 1
    return wrong


def owned_twice(journals: Journals, disturbed: Iterable[str]) -> list[str]:
    """A partition is given to a member only after the one before has given it up.

    Members that were paused or killed could not know; neither could one that says that it lost its
    partitions, or that is told by a refused commit that it is no member (librdkafka 2.16 then goes
    on reading). `disturbed` names the first two.
    """
    exempt = set(disturbed)
    spans: dict[Partition, list[tuple[int, int, str]]] = {}
    for name, events in journals.items():
        since: dict[Partition, int] = {}
        for event in events:
            if event.kind == REFUSED and NO_MEMBER in event.error:
                since.clear()
            for place in event.partitions:
                if event.kind == ASSIGNED:
                    since[place] = event.at_ns
                elif place in since:
                    begun_ns = since.pop(place)
                    if event.kind == REVOKED and name not in exempt:
                        spans.setdefault(place, []).append((begun_ns, event.at_ns, name))
    wrong = []
    for place, found in spans.items():
        found.sort()
        for (_, end_ns, name), (begin_ns, _, other) in pairwise(found):
            if begin_ns < end_ns and name != other:
                wrong.append(f"{place} was given to {other} while {name} had it")
    return wrong


def moves_back(seen: Sequence[Seen], group: str) -> list[str]:
    """What is committed, seen from outside, never goes back and never disappears."""
    wrong = []
    highest: dict[Place, int] = {}
    for look in seen:
        for place, before in highest.items():
            now = look.offsets.get(place, -1)
            if now < before:
                wrong.append(f"{place} went from {before} to {now}")
        highest.update({p: o for p, o in look.offsets.items() if p[0] == group})
    return wrong


def unseen_commits(journals: Journals, group: str, seen: Sequence[Seen]) -> list[str]:
    """Who asks after a commit was acknowledged is told that offset or a later one (D1)."""
    commits = sorted(
        (event.at_ns, (group, topic, partition), offset)
        for events in journals.values()
        for event in events
        if event.kind == COMMITTED
        for topic, partition, offset in event.offsets
    )
    wrong = []
    promised: dict[Place, int] = {}
    at = 0
    for look in seen:
        while at < len(commits) and commits[at][0] < look.asked_ns:
            _, place, offset = commits[at]
            promised[place] = max(offset, promised.get(place, 0))
            at += 1
        for place, offset in promised.items():
            told = look.offsets.get(place, -1)
            if told < offset:
                wrong.append(f"{place}: {told} was told, {offset} had been acknowledged")
    return wrong


def log_disagrees(log: Sequence[Commit], now: Mapping[Place, int], group: str) -> list[str]:
    """The committed offset is the last one in the log, and the log never goes back (O1)."""
    wrong = []
    highest: dict[Place, int] = {}
    for commit in log:
        if commit.place[0] != group or commit.offset is None:
            continue
        if commit.offset < highest.get(commit.place, 0):
            wrong.append(f"{commit} stands behind {highest[commit.place]}")
        highest[commit.place] = commit.offset
    last = {p: o for p, o in last_by_partition(log).items() if p[0] == group}
    told = {place: offset for place, offset in now.items() if place[0] == group}
    if last != told:
        wrong.append(f"the log says {last}, the broker {told}")
    return wrong


def commits_without_effect(journals: Journals, log: Sequence[Commit]) -> list[str]:
    """Every acknowledged commit stands in the log (D1); tools do not name theirs."""
    written = {(c.metadata, c.place[1], c.place[2], c.offset) for c in log}
    return [
        f"{event.commit} of {place} was acknowledged and is not in the log"
        for events in journals.values()
        for event in events
        if event.kind == COMMITTED and event.commit
        for place in event.offsets
        if (event.commit, *place) not in written
    ]


def refused_with_effect(
    journals: Journals, log: Sequence[Commit], outages: Sequence[Outage]
) -> list[str]:
    """No refused commit stands in the log (O5).

    A library sends a commit again when the connection broke: over an outage the refusal may be
    that of the second time. The same name then stands for both.
    """
    written = {(c.metadata, c.place[1], c.place[2]) for c in log}
    wrong = []
    for events in journals.values():
        begun: dict[str, int] = {}
        for event in events:
            if event.kind == COMMITTING:
                begun[event.commit] = event.at_ns
            if event.kind != REFUSED:
                continue
            if any(outage.overlaps(begun[event.commit], event.at_ns) for outage in outages):
                continue
            wrong += [
                f"{event.commit} was refused ({event.error}) and stands in the log"
                for topic, partition, _offset in event.offsets
                if (event.commit, topic, partition) in written
            ]
    return wrong


def changed(before: Mapping[Place, int], after: Mapping[Place, int]) -> list[str]:
    """A restart changes nothing (O8)."""
    return [
        f"{place} was {before.get(place)}, after the restart it is {after.get(place)}"
        for place in sorted(before.keys() | after.keys())
        if before.get(place) != after.get(place)
    ]


def rebalanced(events: Sequence[Event], from_ns: int, to_ns: int) -> list[str]:
    """Return what came or went between two times: nothing, while a static member restarts."""
    return [
        f"{event.kind} {event.partitions}"
        for event in events
        if event.kind in {ASSIGNED, REVOKED, LOST}
        and event.partitions
        and from_ns <= event.at_ns <= to_ns
    ]


def _records(events: Sequence[Event]) -> Iterable[tuple[str, int, int, str]]:
    return (record for event in events if event.kind == READ for record in event.records)


def _starts(events: Sequence[Event]) -> Iterable[tuple[int, Partition, int]]:
    """Yield when a partition was assigned, and the first offset that was read from it then."""
    waiting: dict[Partition, int] = {}
    for event in events:
        if event.kind == ASSIGNED:
            waiting.update(dict.fromkeys(event.partitions, event.at_ns))
        for place in event.partitions if event.kind in {REVOKED, LOST} else ():
            waiting.pop(place, None)
        for topic, partition, offset, _value in event.records:
            assigned_ns = waiting.pop((topic, partition), None)
            if assigned_ns is not None:
                yield assigned_ns, (topic, partition), offset


def _runs(events: Sequence[Event]) -> Iterable[tuple[int, Partition, int]]:
    """Yield where unbroken runs of offsets begin, and how many records had been read before."""
    expected: dict[Partition, int] = {}
    for index, (topic, partition, offset, _value) in enumerate(_records(events)):
        place = (topic, partition)
        if expected.get(place) != offset:
            yield index, place, offset
        expected[place] = offset + 1
