"""Offsets that are part of a transaction still open: nobody is shown them before its marker (O1).

A marker says only whose transaction has ended, so they are found by producer id too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from barnabas.coordinator.groups.offset_table import CommittedOffset


class Place(NamedTuple):
    """What an offset is committed for."""

    group_id: str
    topic: str
    partition: int


class PendingOffsets:
    """By group and partition, and by the producer whose transaction they are part of."""

    def __init__(self) -> None:
        self._by_group: dict[str, dict[Place, dict[int, CommittedOffset]]] = {}
        self._by_producer: dict[int, dict[Place, None]] = {}

    def group_ids(self) -> Iterable[str]:
        """The groups that have any."""
        return self._by_group.keys()

    def of_group(self, group_id: str) -> Mapping[Place, Mapping[int, CommittedOffset]]:
        """A group's pending offsets, by place and producer."""
        return self._by_group.get(group_id, {})

    def put(self, place: Place, producer_id: int, committed: CommittedOffset) -> None:
        """Take in a commit, in the place of an earlier one of the same transaction."""
        self._by_group.setdefault(place.group_id, {}).setdefault(place, {})[producer_id] = committed
        self._by_producer.setdefault(producer_id, {})[place] = None

    def remove(self, place: Place) -> None:
        """Forget what any transaction has committed for a place: a tombstone has come (O7)."""
        for producer_id in [*self.of_group(place.group_id).get(place, ())]:
            self.take(place, producer_id)
            places = self._by_producer.get(producer_id)
            if places is None:
                continue  # Its transaction has ended.
            places.pop(place, None)
            if not places:
                del self._by_producer[producer_id]

    def end(self, producer_id: int) -> Collection[Place]:
        """Where a transaction that has ended had committed; what it had, ``take`` says."""
        return self._by_producer.pop(producer_id, {})

    def take(self, place: Place, producer_id: int) -> CommittedOffset | None:
        """Take out what an ended transaction had committed for a place; None: a tombstone came."""
        places = self._by_group.get(place.group_id, {})
        by_producer = places.get(place, {})
        committed = by_producer.pop(producer_id, None)
        if place in places and not by_producer:
            del places[place]
            if not places:
                del self._by_group[place.group_id]
        return committed
