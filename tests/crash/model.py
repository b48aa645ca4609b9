"""A small model of the states that a crash may leave, written independently of the storage.

All appends of all partitions form one sequence of events. A crash may leave any prefix of it that
holds every acknowledged event; everything else (ends, high watermarks, stable offsets, producers,
aborted transactions) follows from the events that are left.
"""

import struct
from dataclasses import dataclass, field
from typing import NamedTuple

from crc32c import crc32c

SEQUENCES = 2**31


@dataclass
class Event:
    """One batch, marker or move of a log's start, in the order of the appends."""

    partition_id: int
    base_offset: int
    next_offset: int
    kind: str = "data"
    """``data``, ``commit``, ``abort`` or ``start`` (then ``base_offset`` is the new log start)."""
    sent: bytes = b""
    append_time_ms: int = -1
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    transactional: bool = False

    @property
    def last_sequence(self) -> int:
        count = self.next_offset - self.base_offset
        return (self.base_sequence + count - 1) % SEQUENCES

    def stored_as(self, stored: bytes) -> bool:
        """Whether ``stored`` equals ``sent``, except for the fields that the log has to patch."""
        if len(stored) != len(self.sent) or stored[:8] != struct.pack(">q", self.base_offset):
            return False
        if stored[17:21] != struct.pack(">I", crc32c(stored[21:])):
            return False
        expected = bytearray(self.sent)
        expected[:8] = stored[:8]
        expected[12:16] = stored[12:16]
        if self.append_time_ms >= 0:
            expected[22] |= 0x08
            expected[35:43] = struct.pack(">q", self.append_time_ms)
            expected[17:21] = stored[17:21]
        return bytes(expected) == stored


@dataclass
class Producer:
    """One producer on one partition, told from its events."""

    epoch: int
    batches: list[Event] = field(default_factory=list)
    transaction_start: int | None = None

    @property
    def next_sequence(self) -> int:
        return (self.batches[-1].last_sequence + 1) % SEQUENCES if self.batches else 0


class Aborted(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int


@dataclass
class Partition:
    """The contents of one partition after some events."""

    start: int = 0
    end: int = 0
    batches: list[Event] = field(default_factory=list)
    producers: dict[int, Producer] = field(default_factory=dict)
    aborted: list[Aborted] = field(default_factory=list)

    @property
    def stable(self) -> int:
        open_ones = [
            producer.transaction_start
            for producer in self.producers.values()
            if producer.transaction_start is not None
        ]
        return max(min(open_ones, default=self.end), self.start)

    def apply(self, event: Event) -> None:
        if event.kind == "start":
            self.start = max(self.start, event.base_offset)
            return
        assert event.base_offset == self.end, "the workload itself is wrong"
        self.batches.append(event)
        self.end = event.next_offset
        if event.producer_id >= 0:
            self._apply_producer(event)

    def _apply_producer(self, event: Event) -> None:
        producer = self.producers.setdefault(event.producer_id, Producer(event.producer_epoch))
        if producer.epoch != event.producer_epoch:
            producer.epoch = event.producer_epoch
            producer.batches = []
        if event.kind == "data":
            producer.batches = [*producer.batches[-4:], event]
            if event.transactional and producer.transaction_start is None:
                producer.transaction_start = event.base_offset
            return
        if event.kind == "abort" and producer.transaction_start is not None:
            self.aborted.append(
                Aborted(event.producer_id, producer.transaction_start, event.base_offset)
            )
        producer.transaction_start = None


class Model:
    """Every event so far, which of them are promised, and where a crash may cut."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.partitions: dict[int, Partition] = {}
        self.group_ends: list[int] = []
        """Numbers of events after which a commit group ended: nothing else is a place to cut."""
        self.promised = 0
        """The number of events that a client knows to be durable."""

    def create(self, partition_id: int) -> None:
        self.partitions[partition_id] = Partition()

    def delete(self, partition_id: int) -> None:
        del self.partitions[partition_id]

    def add(self, event: Event) -> int:
        """Take in an event; answers its number, to be given to :meth:`promise`."""
        self.events.append(event)
        self.partitions[event.partition_id].apply(event)
        return len(self.events)

    def promise(self, number: int) -> None:
        self.promised = max(self.promised, number)

    def end_group(self) -> None:
        self.group_ends.append(len(self.events))

    def cuts(self) -> list[int]:
        """All numbers of events that a crash now may leave."""
        return sorted({self.promised, *(end for end in self.group_ends if end >= self.promised)})

    def after(self, number: int) -> dict[int, Partition]:
        """The living partitions as the first ``number`` events leave them."""
        partitions = {partition_id: Partition() for partition_id in self.partitions}
        for event in self.events[:number]:
            if event.partition_id in partitions:
                partitions[event.partition_id].apply(event)
        return partitions

    def cut(self, number: int) -> None:
        """The crash left ``number`` events: they are all there is, and they are promised."""
        del self.events[number:]
        self.partitions = self.after(number)
        self.group_ends = [number]
        self.promised = number
