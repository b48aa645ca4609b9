"""Offsets that are part of a transaction still open: they are hidden until its marker (O1).

A marker says only whose transaction has ended, so they are found by producer id too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from barnabas.coordinator.groups.offset_table import CommittedOffset


class OffsetKey(NamedTuple):
    """The group and partition of a committed offset."""

    group_id: str
    topic: str
    partition: int


class PendingOffsets:
    """Pending offsets by group and partition, then by the producer of their transaction."""

    def __init__(self) -> None:
        self._by_group: dict[str, dict[OffsetKey, dict[int, CommittedOffset]]] = {}
        self._by_producer: dict[int, dict[OffsetKey, None]] = {}

    def group_ids(self) -> Iterable[str]:
        """Return the groups that have pending offsets."""
        return self._by_group.keys()

    def of_group(self, group_id: str) -> Mapping[OffsetKey, Mapping[int, CommittedOffset]]:
        """Return a group's pending offsets, by place and producer."""
        return self._by_group.get(group_id, {})

    def put(self, offset_key: OffsetKey, producer_id: int, committed: CommittedOffset) -> None:
        """Store a commit; it replaces an earlier one of the same transaction."""
        self._by_group.setdefault(offset_key.group_id, {}).setdefault(offset_key, {})[
            producer_id
        ] = committed
        self._by_producer.setdefault(producer_id, {})[offset_key] = None

    def remove(self, offset_key: OffsetKey) -> None:
        """Remove all transactions' commits for a key: a tombstone was written (O7)."""
        for producer_id in [*self.of_group(offset_key.group_id).get(offset_key, ())]:
            self.take(offset_key, producer_id)
            offset_keys = self._by_producer.get(producer_id)
            if offset_keys is None:
                continue  # Its transaction has ended.
            offset_keys.pop(offset_key, None)
            if not offset_keys:
                del self._by_producer[producer_id]

    def end(self, producer_id: int) -> Collection[OffsetKey]:
        """Return the keys of an ended transaction's commits; ``take`` returns the commits."""
        return self._by_producer.pop(producer_id, {})

    def take(self, offset_key: OffsetKey, producer_id: int) -> CommittedOffset | None:
        """Remove and return an ended transaction's commit for a key, or None after a tombstone."""
        offset_keys = self._by_group.get(offset_key.group_id, {})
        by_producer = offset_keys.get(offset_key, {})
        committed = by_producer.pop(producer_id, None)
        if offset_key in offset_keys and not by_producer:
            del offset_keys[offset_key]
            if not offset_keys:
                del self._by_group[offset_key.group_id]
        return committed
