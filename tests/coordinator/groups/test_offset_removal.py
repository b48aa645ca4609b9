"""Sweeps over groups with very many offsets."""

from __future__ import annotations

import pytest

from barnabas.coordinator.decision import Now
from barnabas.coordinator.groups.commands import DeleteGroup, ExpireOffsets, TopicsDeleted
from barnabas.coordinator.groups.config import GroupConfig
from barnabas.coordinator.groups.group import CLASSIC
from barnabas.coordinator.groups.offset_records import commit_record
from barnabas.coordinator.groups.offset_removal import SWEPT_MAX
from barnabas.coordinator.groups.offset_table import BY_RETENTION, MANY, CommittedOffset
from barnabas.coordinator.groups.shard import GroupShard
from tests.coordinator.groups.offset_commands import GROUP, Image, OtherGroup, whole

COUNT = 2 * SWEPT_MAX + 5
RETENTION_MS = 1000


@pytest.fixture
def shard() -> GroupShard:
    filled = GroupShard(GroupConfig(offsets_retention_ms=RETENTION_MS))
    filled.groups[GROUP] = OtherGroup(CLASSIC, "Empty", empty_since=0)
    for at in range(COUNT):
        committed = CommittedOffset(at, -1, "", 0, BY_RETENTION, b"t" * 16, -1)
        filled.apply(commit_record(GROUP, "topic", at, committed), at)
    return filled


def sweep(shard: GroupShard, command: object) -> tuple[int, bool]:
    """Apply one decision; return how many offsets went, and whether the group did."""
    decision = shard.decide(command, Now(RETENTION_MS, 0))
    assert (decision.steps is not None) == (shard.offsets.count(GROUP) > MANY)
    records = whole(decision).records
    offsets = [record for record in records if hasattr(record.key, "partition")]
    for at, record in enumerate(offsets):
        shard.apply(record, COUNT + at)
    return len(offsets), len(records) > len(offsets)


def test_expiry_leaves_the_rest_and_the_group_to_the_next_sweep(shard):
    command = ExpireOffsets(GROUP, Image(topic=b"t" * 16))
    swept = [sweep(shard, command) for _ in range(3)]
    assert swept == [(SWEPT_MAX, False), (SWEPT_MAX, False), (5, True)]


def test_offsets_of_a_deleted_topic_go_in_parts(shard):
    command = TopicsDeleted(GROUP, Image())
    swept = [sweep(shard, command) for _ in range(4)]
    assert swept == [(SWEPT_MAX, False), (SWEPT_MAX, False), (5, False), (0, False)]


def test_a_group_is_deleted_as_a_whole(shard):
    assert sweep(shard, DeleteGroup(GROUP)) == (COUNT, True)
