"""Markers over very many offsets, taken in a part at a time, with records between the parts.

What was in flight when the marker became durable is applied while the marker is taken in. At the
end there must be what a restart would find, which takes one record of the log after the other.
"""

from __future__ import annotations

from itertools import islice, product

import pytest

from barnabas.coordinator.decision import NO_PRODUCER_ID, Record
from barnabas.coordinator.groups import offset_table
from barnabas.coordinator.groups.config import GroupConfig
from barnabas.coordinator.groups.offset_records import commit_record, tombstone
from barnabas.coordinator.groups.offset_table import BY_RETENTION, CommittedOffset
from barnabas.coordinator.groups.shard import GroupShard
from tests.coordinator.groups.offset_commands import Marker

PRODUCER, ANOTHER = 7, 8
PLACES = [(group, topic, index) for group in ("g", "h") for topic in "ab" for index in (0, 1)]
MIDDLE = PLACES[3]

Entry = Record | Marker


def committed(
    place: tuple[str, str, int], offset: int, producer_id: int = NO_PRODUCER_ID
) -> Record:
    value = CommittedOffset(offset, -1, "", 0, BY_RETENTION, b"\1" * 16, -1)
    return commit_record(*place, value)._replace(producer_id=producer_id)


TRANSACTION: list[Entry] = [committed(place, 5, PRODUCER) for place in PLACES]
MEANWHILE: dict[str, list[Entry]] = {
    "nothing": [],
    "commit": [committed(MIDDLE, 6)],
    "tombstone": [tombstone(*MIDDLE)],
    "tombstone, commit": [tombstone(*MIDDLE), committed(MIDDLE, 6)],
    "another producer's": [committed(MIDDLE, 6, ANOTHER)],
    "another producer's, committed": [committed(MIDDLE, 6, ANOTHER), Marker(ANOTHER, commit=True)],
    "another producer's, aborted": [committed(MIDDLE, 6, ANOTHER), Marker(ANOTHER, commit=False)],
    "the next of the same producer": [committed(MIDDLE, 6, PRODUCER)],
    "the next, committed": [committed(MIDDLE, 6, PRODUCER), Marker(PRODUCER, commit=True)],
    "the next, aborted": [committed(MIDDLE, 6, PRODUCER), Marker(PRODUCER, commit=False)],
    "an empty one, aborted": [Marker(PRODUCER, commit=False)],
    "tombstone of the next": [committed(MIDDLE, 6, PRODUCER), tombstone(*MIDDLE)],
}
BEFORE: dict[str, list[Entry]] = {
    "nothing": [],
    "commits": [committed(place, 4) for place in PLACES],
    "another producer's": [committed(place, 4, ANOTHER) for place in PLACES],
}


class Life:
    """A machine and its log."""

    def __init__(self) -> None:
        self.shard = GroupShard(GroupConfig())
        self.written: list[Entry] = []
        self.left = []

    def take(self, *entries: Entry) -> None:
        for entry in entries:
            if isinstance(entry, Marker):
                self.left.append(
                    self.shard.end_transaction(entry.producer_id, commit=entry.commit) or ()
                )
            else:
                self.shard.apply(entry, len(self.written))
            self.written.append(entry)

    def finish(self) -> None:
        for steps in self.left:
            for _ in steps:
                pass
        assert self.shard.offsets._ending == {}

    def found(self) -> dict[str, object]:
        offsets = self.shard.offsets
        return {group: offsets.commits_of(group) for group in offsets.group_ids()}


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
@pytest.mark.parametrize(("before", "meanwhile"), [*product(BEFORE, MEANWHILE)])
def test_records_between_the_parts_leave_what_a_restart_finds(
    before, meanwhile, commit, monkeypatch
):
    replayed = Life()
    replayed.take(*BEFORE[before], *TRANSACTION, Marker(PRODUCER, commit), *MEANWHILE[meanwhile])
    assert all(steps == () for steps in replayed.left), "few offsets take one step"
    monkeypatch.setattr(offset_table, "OFFSETS_PER_STEP", 1)
    for taken in range(len(PLACES) + 1):
        live = Life()
        live.take(*BEFORE[before], *TRANSACTION, Marker(PRODUCER, commit))
        assert len([*islice(live.left[-1], taken)]) == taken
        live.take(*MEANWHILE[meanwhile])
        live.finish()
        assert live.written == replayed.written
        assert live.found() == replayed.found()


def test_as_many_as_one_step_holds_are_taken_in_at_once(monkeypatch):
    monkeypatch.setattr(offset_table, "OFFSETS_PER_STEP", len(PLACES))
    life = Life()
    life.take(*TRANSACTION)
    assert life.shard.end_transaction(PRODUCER, commit=True) is None
    assert {each for group in life.found().values() for each in group} == {
        place[1:] for place in PLACES
    }
