"""The records of committed offsets: their creation, and their effect when they are applied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.coordinator.decision import NO_PRODUCER_ID, Record
from barnabas.coordinator.groups.offset_table import BY_RETENTION, CommittedOffset
from barnabas.coordinator.groups.pending_offsets import OffsetKey
from barnabas.protocol.messages.legacy_offset_commit_record import LEGACY_OFFSET_COMMIT_RECORD
from barnabas.protocol.messages.offset_commit_record import (
    OFFSET_COMMIT_RECORD,
    OffsetCommitKey,
    OffsetCommitValue,
)
from barnabas.protocol.wire import ZERO_UUID

if TYPE_CHECKING:
    from barnabas.coordinator.groups.group_table import GroupTable

_VALUE_VERSION: Final = 4
_VALUE_VERSION_WITH_EXPIRY: Final = 1
"""Versions that Apache Kafka 4.3.0 writes; only 1 has a time of expiry (OffsetCommit 2-4)."""


def commit_record(group_id: str, topic: str, partition: int, committed: CommittedOffset) -> Record:
    """Return the record of a commit."""
    return Record(
        OFFSET_COMMIT_RECORD,
        OffsetCommitKey(group_id, topic, partition),
        OffsetCommitValue(
            committed.offset,
            committed.leader_epoch,
            committed.metadata,
            committed.commit_ms,
            committed.expire_ms,
            committed.topic_id,
        ),
        _VALUE_VERSION if committed.expire_ms == BY_RETENTION else _VALUE_VERSION_WITH_EXPIRY,
    )


def tombstone(group_id: str, topic: str, partition: int) -> Record:
    """Return the record that deletes a commit."""
    return Record(OFFSET_COMMIT_RECORD, OffsetCommitKey(group_id, topic, partition), None)


def apply_offset_commit(shard: GroupTable, record: Record, offset: int) -> None:
    """Apply a commit or a tombstone."""
    key = record.key
    value = record.value
    if value is None:
        shard.offsets.remove(key.group, key.topic, key.partition)
        return
    committed = CommittedOffset(
        value.offset,
        value.leader_epoch,
        value.metadata,
        value.commit_timestamp,
        value.expire_timestamp,
        value.topic_id,
        offset,
    )
    if record.producer_id == NO_PRODUCER_ID:
        shard.offsets.put(key.group, key.topic, key.partition, committed)
    else:
        offset_key = OffsetKey(key.group, key.topic, key.partition)
        shard.offsets.hold(offset_key, record.producer_id, committed)


def apply_legacy_offset_commit(shard: GroupTable, record: Record, offset: int) -> None:
    """Apply a record with fewer fields, as Kafka before 0.9 wrote it."""
    key = record.key
    value = record.value
    if value is None:
        shard.offsets.remove(key.group, key.topic, key.partition)
        return
    committed = CommittedOffset(
        value.offset, -1, value.metadata, value.commit_timestamp, BY_RETENTION, ZERO_UUID, offset
    )
    shard.offsets.put(key.group, key.topic, key.partition, committed)


APPLIERS: Final = {
    OFFSET_COMMIT_RECORD.key_type: apply_offset_commit,
    LEGACY_OFFSET_COMMIT_RECORD.key_type: apply_legacy_offset_commit,
}
