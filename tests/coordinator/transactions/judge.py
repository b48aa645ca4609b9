"""The judge of a journal: reads it from the start, without code of the implementation.

It shares no code with what is judged; docs/invariants.md has the rules by their codes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from barnabas.protocol.messages.transaction_log_record import TRANSACTION_LOG_RECORD
from tests.coordinator.transactions.world import GROUP, OFFSETS, Data, Entry, Mark, Offset, Stated

EMPTY, ONGOING, COMMITTING, ABORTING, COMMITTED, ABORTED = range(6)
FOLLOWS = {
    EMPTY: {EMPTY, COMMITTED, ABORTED},
    ONGOING: {EMPTY, ONGOING, COMMITTED, ABORTED},
    COMMITTING: {ONGOING},
    ABORTING: {ONGOING, EMPTY, COMMITTED, ABORTED},
    COMMITTED: {COMMITTING},
    ABORTED: {ABORTING},
}


@dataclass
class Id:
    """The content of the latest record of a transactional id."""

    state: int
    producer: tuple[int, int]
    places: set[tuple[str, int]]
    marked: set[tuple[str, int]] = field(default_factory=set)
    """The partitions with a marker of its decision."""


@dataclass
class Place:
    """One partition."""

    end: int = 0
    epochs: dict[int, int] = field(default_factory=dict)
    sequences: dict[tuple[int, int], int] = field(default_factory=dict)
    open: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    """By producer id: offset and value of what no marker has decided."""

    @property
    def stable_end(self) -> int:
        return min((batches[0][0] for batches in self.open.values()), default=self.end)


class Judge:
    """A reader of one journal."""

    def __init__(self, journal: list[Entry]) -> None:
        self.ids: dict[str, Id] = {}
        self.owners: dict[int, str] = {}
        self.places: dict[tuple[str, int], Place] = {}
        self.decisions: dict[tuple[int, int], list[bool]] = {}
        """In their order, by the producer id and epoch of the markers, which transactions of
        protocol v1 share."""
        self.fates: dict[int, bool | None] = {}
        """By value: committed, aborted, or None while nothing is decided."""
        self.committed: tuple[int, int] | None = None
        """The group's offset, and the position of its commit in the log."""
        self.pending: dict[int, tuple[int, int]] = {}
        for entry in journal:
            if isinstance(entry, Stated):
                self._state(entry)
                continue
            place = self.places.setdefault(tuple(entry.place), Place())
            if isinstance(entry, Data):
                self._data(entry, place)
            elif isinstance(entry, Mark):
                self._mark(entry, place)
            else:
                self._offset(entry, place)
            place.end += 1

    def owner(self, producer_id: int) -> Id:
        return self.ids[self.owners[producer_id]]

    def _state(self, entry: Stated) -> None:
        key = TRANSACTION_LOG_RECORD.decode_key(entry.key).transactional_id
        before = self.ids.get(key)
        if entry.value is None:
            assert before is not None
            assert before.state in {EMPTY, COMMITTED, ABORTED}, "C13"
            del self.ids[key]
            return
        value: Any = TRANSACTION_LOG_RECORD.decode_value(entry.value)
        producer = (value.producer_id, value.producer_epoch)
        places = {
            (topic.topic, index)
            for topic in value.transaction_partitions or ()
            for index in topic.partition_ids
        }
        state = value.transaction_status
        now = self.ids[key] = Id(state, producer, places)
        assert self.owners.setdefault(producer[0], key) == key, "S10"
        if before is None:
            assert (state, producer[1]) == (EMPTY, 0)
            return
        assert before.state in FOLLOWS[state], "C1"
        assert producer >= before.producer, "C2"
        if state == ONGOING and before.state == ONGOING:
            assert places > before.places
            assert producer == before.producer, "C2"
        if state in {COMMITTING, ABORTING}:
            assert places == (before.places if before.state == ONGOING else set())
            decided = self.decisions.setdefault(producer, [])
            if value.client_transaction_version == 2:
                assert not decided, "C3"
            decided.append(state == COMMITTING)
        if state in {COMMITTED, ABORTED}:
            assert before.places <= before.marked, "D5"
        if state == EMPTY:
            assert not self.open_of(key), "C5"
            is_first = list(self.owners.values()).count(key) == 1 and producer[1] == 0
            assert now.producer != before.producer or not is_first, "only a repetition"

    def open_of(self, key: str) -> list[int]:
        """Values of an id that nothing has decided, under any of its producer ids."""
        return [
            value
            for place in self.places.values()
            for producer_id, batches in place.open.items()
            if self.owners[producer_id] == key
            for _, value in batches
        ]

    def _data(self, entry: Data, place: Place) -> None:
        header = entry.header
        producer = (header.producer_id, header.producer_epoch)
        self._write(producer, entry, place)
        following = place.sequences.get(producer)
        if following is not None:
            assert header.base_sequence == following, "S1"
        elif header.producer_id in place.epochs:
            assert header.base_sequence == 0, "S8"
        place.sequences[producer] = header.base_sequence + 1
        place.epochs[header.producer_id] = header.producer_epoch

    def _write(self, producer: tuple[int, int], entry: Data | Offset, place: Place) -> None:
        owner = self.owner(producer[0])
        if owner.state == ONGOING:
            assert owner.producer == producer, "P1"
        else:
            # Decided, but the marker has not arrived: data before it shares its outcome.
            assert isinstance(entry, Data), "P1"
            assert owner.state in {COMMITTING, ABORTING}, "P1"
            assert producer[0] in place.open, "P1"
            assert producer[1] == place.epochs[producer[0]], "P1"
        assert tuple(entry.place) in owner.places, "P1"
        assert producer[1] >= place.epochs.get(producer[0], 0), "S8"
        assert entry.value not in self.fates, "S2"
        self.fates[entry.value] = None
        place.open.setdefault(producer[0], []).append((place.end, entry.value))

    def _mark(self, entry: Mark, place: Place) -> None:
        producer_id, epoch = entry.producer
        owner = self.owner(producer_id)
        assert owner.state == (COMMITTING if entry.commit else ABORTING), "M1"
        assert owner.producer == entry.producer, "M4"
        assert tuple(entry.place) in owner.places, "M1"
        owner.marked.add(tuple(entry.place))
        assert epoch >= place.epochs.get(producer_id, 0), "S8"
        place.epochs[producer_id] = epoch
        for _, value in place.open.pop(producer_id, ()):
            self.fates[value] = entry.commit
        pending = self.pending.pop(producer_id, None) if tuple(entry.place) == OFFSETS else None
        if pending is not None and entry.commit:
            self.committed = max(self.committed or pending, pending, key=lambda each: each[1])

    def _offset(self, entry: Offset, place: Place) -> None:
        if entry.producer is None:
            self.committed = (entry.value, place.end)
            return
        self._write(entry.producer, entry, place)
        place.epochs[entry.producer[0]] = entry.producer[1]
        self.pending[entry.producer[0]] = (entry.value, place.end)

    # --------------------------------------------------------------------------- beside the broker

    def compare(self, world: Any) -> None:
        """Compare the broker's state in memory with the journal (D4, L3, O1, O3)."""
        for name, place in self.places.items():
            producers = world.producers[name]
            assert producers.last_stable_offset(place.end) == place.stable_end, "L1"
            for producer_id in self.owners:
                is_open = producer_id in place.open
                assert producers.has_open_transaction(producer_id) == is_open, "P3"
        found = world.group.offsets.of_group(GROUP)
        offsets = [each.offset for topic in found.values() for each in topic.values()]
        assert offsets == ([self.committed[0]] if self.committed else []), "O1"
        assert world.group.offsets.is_pending(GROUP, "t", 0) == bool(self.pending), "O3"
        assert {
            key: (each.state, each.producer) for key, each in world.shard.transactions.items()
        } == {key: (each.state, each.producer) for key, each in self.ids.items()}, "C14"
