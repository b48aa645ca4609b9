"""Committed offsets as the records of the log say them.

The last commit in the log's order is the one that counts (O1); a tombstone forgets all commits
before it, for good (O7).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from coordinator.decision import Record
from protocol.messages.legacy_offset_commit_record import LEGACY_OFFSET_COMMIT_RECORD
from protocol.messages.offset_commit_record import (
    OFFSET_COMMIT_RECORD,
    OffsetCommitKey,
    OffsetCommitValue,
)
from protocol.wire import ZERO_UUID

if TYPE_CHECKING:
    from coordinator.groups.shard import GroupShard

BY_RETENTION: Final = -1
"""Instead of a time of expiry: the broker's retention time decides."""
_VALUE_VERSION: Final = 4
_VALUE_VERSION_WITH_EXPIRY: Final = 1
"""What Apache Kafka 4.3.0 writes; only version 1 has a time of expiry (OffsetCommit 2-4)."""


class CommittedOffset(NamedTuple):
    """What was committed for one partition."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_ms: int
    """The broker's time, never the client's (T2)."""
    expire_ms: int
    """BY_RETENTION, or the time that an old client asked for."""
    topic_id: bytes
    """ZERO_UUID where the record does not say it."""
    log_offset: int
    """Where the record stands in the log."""

    def is_of(self, topic_id: bytes) -> bool:
        """Whether it was committed for this topic, and not for one of the same name before (A2)."""
        return ZERO_UUID in {self.topic_id, topic_id} or self.topic_id == topic_id


Partitions = Mapping[int, CommittedOffset]


class OffsetTable:
    """Every committed offset of a shard, by group, topic and partition."""

    def __init__(self) -> None:
        self._by_group: dict[str, dict[str, dict[int, CommittedOffset]]] = {}

    def group_ids(self) -> Iterable[str]:
        """The groups that have offsets."""
        return self._by_group.keys()

    def of_group(self, group_id: str) -> Mapping[str, Partitions]:
        """A group's offsets, by topic; none if it has none."""
        return self._by_group.get(group_id, {})

    def put(self, group_id: str, topic: str, partition: int, committed: CommittedOffset) -> None:
        """Take in a commit; the log's order decides (O1)."""
        partitions = self._by_group.setdefault(group_id, {}).setdefault(topic, {})
        earlier = partitions.get(partition)
        assert earlier is None or earlier.log_offset < committed.log_offset
        partitions[partition] = committed

    def remove(self, group_id: str, topic: str, partition: int) -> None:
        """Forget what was committed; nothing stays of a topic or group that held nothing else."""
        topics = self._by_group.get(group_id, {})
        partitions = topics.get(topic, {})
        partitions.pop(partition, None)
        if not partitions:
            topics.pop(topic, None)
        if not topics:
            self._by_group.pop(group_id, None)


def commit_record(group_id: str, topic: str, partition: int, committed: CommittedOffset) -> Record:
    """The record of a commit; ``log_offset`` is what the log will say."""
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
    """The record that forgets a commit."""
    return Record(OFFSET_COMMIT_RECORD, OffsetCommitKey(group_id, topic, partition), None)


def apply_offset_commit(shard: GroupShard, record: Record, offset: int) -> None:
    """Take in a commit or a tombstone."""
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
    shard.offsets.put(key.group, key.topic, key.partition, committed)


def apply_legacy_offset_commit(shard: GroupShard, record: Record, offset: int) -> None:
    """Take in a record of a log that was begun before Kafka 0.9: it says less."""
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
