"""Temporarily refused batches, so that no batch that was sent after one takes its place.

A producer has several batches in flight. The first of them can arrive while this broker leads the
partition and does not serve it: its lease has expired, or the log is being loaded, or a flush was
refused because of another partition. The producer gets NOT_LEADER_OR_FOLLOWER and retries the
batch. If the partition is served when the next batch arrives, a log that does not know the producer
would accept that one (S9), and the first never (S12). A log that knows it would find a gap, which
kafka-python (3.0.12) treats as fatal. So the next batch gets the same error, and the producer
retries both.

Rules of this file:

* For each producer the lowest refused sequence is recorded for KEPT_S: a client retries it soon, or
  continues with another epoch. After that the log alone decides.
* The log has priority: a batch that continues there, or is stored already, is not refused.
* The records are in memory, and limited: a producer whose record was dropped is treated as if it
  had none.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.protocol.records import MAX_SEQUENCE, BatchHeader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from barnabas.storage.log.partition_log import PartitionLog
    from barnabas.storage.log.producers import ProducerState

KEPT_S: Final = 30.0
"""Duration of a record, in seconds, as Kafka's ``request.timeout.ms``: clients retry within that
time, or give up."""
PRODUCERS_MAX: Final = 1000
"""Maximum number of recorded producers of one partition; the oldest record is dropped."""


class _Refused(NamedTuple):
    """First refused batch of a producer."""

    epoch: int
    sequence: int
    until_s: float


class RefusedBatches:
    """Refused batches of one partition."""

    def __init__(self) -> None:
        self._by_producer: OrderedDict[int, _Refused] = OrderedDict()
        """Records by producer ID, the newest last."""

    def __len__(self) -> int:
        """Return the number of recorded producers."""
        return len(self._by_producer)

    def note(self, producer_id: int, epoch: int, sequence: int, now_s: float) -> None:
        """Record a batch that is refused and will be sent again."""
        known = self._by_producer.pop(producer_id, None)
        if known is not None and known.until_s > now_s and known.epoch >= epoch:
            if known.epoch > epoch:
                epoch, sequence = known.epoch, known.sequence
            elif _is_behind(sequence, known.sequence):
                sequence = known.sequence
        self._by_producer[producer_id] = _Refused(epoch, sequence, now_s + KEPT_S)
        if len(self._by_producer) > PRODUCERS_MAX:
            self._by_producer.popitem(last=False)

    def forget_old(self, now_s: float) -> None:
        """Drop the expired records."""
        notes = self._by_producer
        while notes and next(iter(notes.values())).until_s <= now_s:
            notes.popitem(last=False)

    def holds_back(self, producers: ProducerState, header: BatchHeader) -> bool:
        """Whether a batch must wait for one that was sent before it."""
        refused = self._by_producer.get(header.producer_id)
        if refused is None or refused.epoch != header.producer_epoch:
            return False
        entry = producers.entry(header.producer_id)
        if entry is not None and entry.epoch > refused.epoch:
            return False
        if entry is not None and entry.epoch == refused.epoch:
            if entry.continues(header.base_sequence):
                if header.base_sequence != refused.sequence:  # Then the refused one is stored.
                    del self._by_producer[header.producer_id]
                return False
            if entry.duplicate_of(header) is not None:
                return False
        return _is_behind(header.base_sequence, refused.sequence)


def taken_back(log: PartitionLog) -> Iterator[tuple[int, int, int]]:
    """Return the first batch that a log has lost of each producer: ID, epoch and sequence.

    ``log`` was dropped: none of its records from its high watermark on is durable.
    """
    for number, entry in enumerate(log.producers.latest_entries()):
        if number == PRODUCERS_MAX:
            return
        for batch in entry.batches:
            if batch.base_offset >= log.high_watermark:
                yield entry.producer_id, entry.epoch, batch.first_sequence
                break


def _is_behind(sequence: int, other: int) -> bool:
    """Whether a sequence number follows another one, also after the wrap to 0 (S7)."""
    return 0 < (sequence - other) & MAX_SEQUENCE <= MAX_SEQUENCE // 2
