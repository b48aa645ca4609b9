"""Committed offsets, from the records of the log.

The last commit in the log's order is the one that counts (O1), that of a transaction from its
COMMIT marker on; a tombstone removes all commits before it permanently (O7).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from barnabas.coordinator.groups.pending_offsets import OffsetKey, PendingOffsets
from barnabas.protocol.wire import ZERO_UUID

BY_RETENTION: Final = -1
"""Value in place of a time of expiry: the broker's retention time applies."""
MANY: Final = 2000
"""Number of offsets above which an operation runs in steps (``Decision.steps``)."""
OFFSETS_PER_STEP: Final = 200
"""Maximum number of offsets of a transaction that are applied in one turn, in about half a
millisecond. Every partition of ``__consumer_offsets`` may have so many at the same time."""


class CommittedOffset(NamedTuple):
    """The committed offset of one partition."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_ms: int
    """The broker's time, never the client's (T2)."""
    expire_ms: int
    """Expiry as requested by a client of an old version, or BY_RETENTION."""
    topic_id: bytes
    """Topic id, or ZERO_UUID if the record does not have it."""
    log_offset: int
    """Offset of the record in the log."""

    def is_of(self, topic_id: bytes) -> bool:
        """Return whether it was committed for this topic, not an older one of that name (A2)."""
        return ZERO_UUID in {self.topic_id, topic_id} or self.topic_id == topic_id


Partitions = Mapping[int, CommittedOffset]


class OffsetTable:
    """Every committed offset of a shard, by group, topic and partition."""

    def __init__(self) -> None:
        self._by_group: dict[str, dict[str, dict[int, CommittedOffset]]] = {}
        self._pending = PendingOffsets()
        self._ending: dict[int, Iterator[None]] = {}
        """The steps that are left of transactions that have ended, by producer."""

    def group_ids(self) -> Iterable[str]:
        """Return the groups that have offsets, pending ones included."""
        return dict.fromkeys([*self._by_group, *self._pending.group_ids()])

    def knows(self, group_id: str) -> bool:
        """Whether a group has offsets, pending ones included."""
        return group_id in self._by_group or bool(self._pending.of_group(group_id))

    def of_group(self, group_id: str) -> Mapping[str, Partitions]:
        """Return a group's offsets by topic; empty if it has none."""
        return self._by_group.get(group_id, {})

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """Return whether an open transaction has committed an offset here."""
        return OffsetKey(group_id, topic, partition) in self._pending.of_group(group_id)

    def holds_topic(self, group_id: str, topic: str) -> bool:
        """Whether a group has offsets of a topic, pending ones included."""
        return topic in self.of_group(group_id) or any(
            offset_key.topic == topic for offset_key in self._pending.of_group(group_id)
        )

    def count(self, group_id: str) -> int:
        """Return the number of a group's offsets, pending ones included."""
        committed = sum(map(len, self.of_group(group_id).values()))
        return committed + len(self._pending.of_group(group_id))

    def snapshot(self, group_id: str) -> dict[str, dict[int, CommittedOffset]]:
        """Return a copy of a group's offsets, by topic, for an iteration in steps."""
        return {topic: {**partitions} for topic, partitions in self.of_group(group_id).items()}

    def pending_places(self, group_id: str) -> dict[OffsetKey, object]:
        """Return a copy of the keys with offsets of open transactions."""
        return {**self._pending.of_group(group_id)}

    def offset_keys_of(self, group_id: str) -> Iterator[tuple[str, int]]:
        """Yield the partitions with an offset to remove, as of the first iteration."""
        committed = self.snapshot(group_id)
        pending = self.pending_places(group_id)
        for topic, partitions in committed.items():
            for partition in partitions:
                yield topic, partition
        for offset_key in pending:
            if offset_key.partition not in committed.get(offset_key.topic, ()):
                yield offset_key.topic, offset_key.partition

    def commits_at(self, group_id: str, topic: str, partition: int) -> list[CommittedOffset]:
        """Return the commits that a tombstone would delete, pending ones last."""
        committed = self.of_group(group_id).get(topic, {}).get(partition)
        pending = self._pending.of_group(group_id).get(OffsetKey(group_id, topic, partition), {})
        return [*(() if committed is None else (committed,)), *pending.values()]

    def commits_of(self, group_id: str) -> dict[tuple[str, int], list[CommittedOffset]]:
        """Return all commits that tombstones would delete, by key."""
        return {
            offset_key: self.commits_at(group_id, *offset_key)
            for offset_key in self.offset_keys_of(group_id)
        }

    def hold(self, offset_key: OffsetKey, producer_id: int, committed: CommittedOffset) -> None:
        """Store an offset of a transaction, which is valid when the transaction is committed."""
        if self._ending:
            self._finish_ending(producer_id)
        self._pending.put(offset_key, producer_id, committed)

    def end_transaction(self, producer_id: int, *, commit: bool) -> Iterator[None] | None:
        """Apply a committed transaction's offsets, except older ones, or drop an aborted one's.

        Returns the remaining steps if there are very many; a reader before the last step would see
        a part of the transaction.
        """
        self._finish_ending(producer_id)
        offset_keys = self._pending.end(producer_id)
        steps = self._end_in_steps(producer_id, offset_keys, commit=commit)
        if len(offset_keys) <= OFFSETS_PER_STEP:
            for _ in steps:
                pass
            return None
        self._ending[producer_id] = steps
        return steps

    def _end_in_steps(
        self, producer_id: int, offset_keys: Iterable[OffsetKey], *, commit: bool
    ) -> Iterator[None]:
        for number, offset_key in enumerate(offset_keys, start=1):
            committed = self._pending.take(offset_key, producer_id)
            if commit and committed is not None:
                earlier = (
                    self.of_group(offset_key.group_id)
                    .get(offset_key.topic, {})
                    .get(offset_key.partition)
                )
                if earlier is None or earlier.log_offset < committed.log_offset:
                    self.put(*offset_key, committed)
            if number % OFFSETS_PER_STEP == 0:
                yield
        self._ending.pop(producer_id, None)

    def _finish_ending(self, producer_id: int) -> None:
        """Apply the remaining steps of a producer's ended transaction, before its next one."""
        for _ in self._ending.get(producer_id, ()):
            pass

    def put(self, group_id: str, topic: str, partition: int, committed: CommittedOffset) -> None:
        """Store a commit; the log's order decides (O1)."""
        partitions = self._by_group.setdefault(group_id, {}).setdefault(topic, {})
        earlier = partitions.get(partition)
        assert earlier is None or earlier.log_offset < committed.log_offset
        partitions[partition] = committed

    def remove(self, group_id: str, topic: str, partition: int) -> None:
        """Remove a committed offset, and its topic and group if they have no other."""
        self._pending.remove(OffsetKey(group_id, topic, partition))
        topics = self._by_group.get(group_id, {})
        partitions = topics.get(topic, {})
        partitions.pop(partition, None)
        if not partitions:
            topics.pop(topic, None)
        if not topics:
            self._by_group.pop(group_id, None)
