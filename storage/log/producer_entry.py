"""The state of one producer in one partition."""

from typing import Final, NamedTuple

from barnabas.protocol.records import (
    MAX_SEQUENCE,
    NO_SEQUENCE,
    BatchHeader,
    decrement_sequence,
)

CACHED_BATCHES: Final = 5
NO_OFFSET: Final = -1
NO_COORDINATOR_EPOCH: Final = -1


class CachedBatch(NamedTuple):
    """One of a producer's last batches; ``timestamp`` is its largest, in ms."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        """Sequence of the first record, wrapped (S7)."""
        return decrement_sequence(self.last_sequence, self.offset_delta)

    @property
    def base_offset(self) -> int:
        """Offset of the first record, which the response to a retry contains."""
        return self.last_offset - self.offset_delta


class CompletedTransaction:
    """A transaction with data here that a marker ended, at ``last_offset``.

    ``last_stable_offset`` is what holds right after the marker: the beginning of the oldest
    transaction still open, else the offset that follows the marker.
    """

    __slots__ = ("aborted", "first_offset", "last_offset", "last_stable_offset", "producer_id")

    def __init__(
        self,
        producer_id: int,
        first_offset: int,
        last_offset: int,
        last_stable_offset: int,
        *,
        aborted: bool,
    ) -> None:
        self.producer_id = producer_id
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.last_stable_offset = last_stable_offset
        self.aborted = aborted


class ProducerRow(NamedTuple):
    """One producer as DescribeProducers shows it; -1 stands for none."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    transaction_first_offset: int


class ProducerEntry:
    """One producer id on this partition; times in ms."""

    __slots__ = (
        "append_time_ms",
        "batches",
        "coordinator_epoch",
        "encoded",
        "epoch",
        "last_timestamp",
        "producer_id",
        "transaction_first_offset",
    )

    def __init__(self, producer_id: int, epoch: int, append_time_ms: int) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.append_time_ms = append_time_ms
        self.batches: list[CachedBatch] = []
        self.coordinator_epoch = NO_COORDINATOR_EPOCH
        self.transaction_first_offset = NO_OFFSET
        self.last_timestamp = -1
        # The entry's two parts of a snapshot, kept until it changes: a roll takes a snapshot on
        # the loop, and most producers of a busy partition have been idle since the last one.
        self.encoded: tuple[bytes, bytes] | None = None

    @property
    def last_sequence(self) -> int:
        """Last sequence of the present epoch; -1 if none was appended in it."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def row(self) -> ProducerRow:
        """Entry in the form for other modules."""
        return ProducerRow(
            self.producer_id,
            self.epoch,
            self.last_sequence,
            self.last_timestamp,
            self.coordinator_epoch,
            self.transaction_first_offset,
        )

    @property
    def is_in_transaction(self) -> bool:
        """Whether the producer has data here without a marker."""
        return self.transaction_first_offset != NO_OFFSET

    def duplicate_of(self, header: BatchHeader) -> CachedBatch | None:
        """Return the cached batch with the same first and last sequence, or None."""
        if not self.batches:
            return None
        last_sequence = header.last_sequence
        delta = header.last_offset_delta
        for batch in self.batches:
            if batch.last_sequence == last_sequence and batch.offset_delta == delta:
                return batch
        return None

    def continues(self, sequence: int) -> bool:
        """Return whether ``sequence`` is the next one of this epoch (S1, S7)."""
        last = self.batches[-1][0] if self.batches else NO_SEQUENCE
        return sequence == last + 1 or (last == MAX_SEQUENCE and sequence == 0)

    def enter_epoch(self, epoch: int) -> None:
        """Take over ``epoch``; a new one begins with an empty cache."""
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches.clear()
