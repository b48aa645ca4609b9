"""Records of other times and kinds, and metadata that no record can hold."""

from __future__ import annotations

import pytest

from barnabas.coordinator.decision import Now, Record, decode_record
from barnabas.coordinator.groups.commands import Caller, OffsetCommit
from barnabas.coordinator.groups.config import GroupConfig
from barnabas.coordinator.groups.offset_table import BY_RETENTION, CommittedOffset
from barnabas.coordinator.groups.shard import GroupShard
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.legacy_offset_commit_record import (
    LEGACY_OFFSET_COMMIT_RECORD,
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
)
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.offset_commit_record import OFFSET_COMMIT_RECORD, OffsetCommitKey
from barnabas.protocol.messages.share_group_metadata_record import (
    SHARE_GROUP_METADATA_RECORD,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
)
from barnabas.protocol.wire import ZERO_UUID

TOPIC = "__consumer_offsets"


def read(record: Record, producer_id: int = -1) -> Record:
    """A record as it comes back from the log."""
    decoded = decode_record(TOPIC, *record.encode(), producer_id)
    assert decoded is not None
    return decoded


def test_a_record_from_before_kafka_0_9_counts_and_a_new_tombstone_ends_it():
    shard = GroupShard(GroupConfig())
    key = LegacyOffsetCommitKey("group", "topic", 1)
    value = LegacyOffsetCommitValue(5, "metadata", 1234)
    shard.apply(read(Record(LEGACY_OFFSET_COMMIT_RECORD, key, value)), 7)
    committed = CommittedOffset(5, -1, "metadata", 1234, BY_RETENTION, ZERO_UUID, 7)
    assert shard.offsets.of_group("group") == {"topic": {1: committed}}
    tombstone = Record(OFFSET_COMMIT_RECORD, OffsetCommitKey("group", "topic", 1), None)
    shard.apply(read(tombstone), 8)
    assert not shard.offsets.knows("group")
    shard.apply(read(Record(LEGACY_OFFSET_COMMIT_RECORD, key, value)), 9)
    shard.apply(read(Record(LEGACY_OFFSET_COMMIT_RECORD, key, None)), 10)
    assert not shard.offsets.knows("group")


def test_a_record_of_a_group_that_is_not_served_is_passed_over():
    shard = GroupShard(GroupConfig())
    key = ShareGroupMetadataKey("group")
    shard.apply(read(Record(SHARE_GROUP_METADATA_RECORD, key, ShareGroupMetadataValue(3))), 0)
    assert shard.keys() == []


@pytest.mark.parametrize(
    ("metadata", "code"),
    [
        ("é" * 16_383, ErrorCode.NONE),
        ("é" * 16_384, ErrorCode.OFFSET_METADATA_TOO_LARGE),  # 32,768 bytes
        ("😀" * 10_000, ErrorCode.OFFSET_METADATA_TOO_LARGE),
    ],
    ids=["fits", "a byte too many", "beyond the basic plane"],
)
@pytest.mark.parametrize("keep_ms", [-1, 1000])
def test_metadata_too_long_for_a_record_is_refused(metadata, code, keep_ms):
    shard = GroupShard(GroupConfig(offset_metadata_max_bytes=100_000))
    partition = OffsetCommitRequestPartition(0, 1, -1, metadata)
    topic = OffsetCommitRequestTopic("topic", b"t" * 16, [partition])
    request = OffsetCommitRequest("group", retention_time_ms=keep_ms, topics=[topic])
    decision = shard.decide(OffsetCommit(Caller("", "", 4), request), Now(0, 0))
    assert decision.response.topics[0].partitions[0].error_code == code
    for record in decision.records:
        assert read(record).value.metadata == metadata
    assert len(decision.records) == (code == ErrorCode.NONE)


@pytest.mark.parametrize("keep_ms", [2**63 - 1, -(2**63)])
def test_a_retention_beyond_what_a_record_can_name_is_committed(keep_ms):
    topic = OffsetCommitRequestTopic("topic", b"t" * 16, [OffsetCommitRequestPartition(0, 1)])
    request = OffsetCommitRequest("group", retention_time_ms=keep_ms, topics=[topic])
    decision = GroupShard(GroupConfig()).decide(OffsetCommit(Caller("", "", 4), request), Now(5, 5))
    assert decision.response.topics[0].partitions[0].error_code == ErrorCode.NONE
    (record,) = decision.records
    assert read(record).value.expire_timestamp == min(5 + keep_ms, 2**63 - 1)
