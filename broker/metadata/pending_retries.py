"""Batches that were refused for a moment, so that none that was sent behind one takes its place.

A producer has several batches on their way. The first of them may come while this broker leads the
partition and does not serve it: its lease is over, or the log is being read, or a flush came to
nothing for the sake of another partition. It is told NOT_LEADER_OR_FOLLOWER and sends it again. If
the partition is served when the next batch comes, a log that does not know the producer would take
that one (S9), and the first never (S12); one that knows it would find a gap, which kafka-python
(3.0.12) takes for the end. So that one is told the same as the one before it, and both come again.

Rules of this file:

* What is noted of a producer is the lowest sequence that was refused, for KEPT_S: a client sends it
  again soon, or goes on with another epoch. After that the log alone decides.
* What the log knows comes first: what continues there, or is there already, is not held back.
* It is in memory, and has a bound: whose note is gone is treated as if there had been none.
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
"""Kafka's ``request.timeout.ms``: clients have sent again by then, or have given up."""
PRODUCERS_MAX: Final = 1000
"""Of one partition of which it is kept; those that were noted last."""


class _Refused(NamedTuple):
    """The first batch of a producer that was refused."""

    epoch: int
    sequence: int
    until_s: float


class RefusedBatches:
    """Those of one partition."""

    def __init__(self) -> None:
        self._by_producer: OrderedDict[int, _Refused] = OrderedDict()
        """The one that was noted last at the end."""

    def __len__(self) -> int:
        """Return of how many producers something is kept."""
        return len(self._by_producer)

    def note(self, producer_id: int, epoch: int, sequence: int, now_s: float) -> None:
        """Take note of a batch that is refused and will be sent again."""
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
        """Forget what has been kept for long enough."""
        notes = self._by_producer
        while notes and next(iter(notes.values())).until_s <= now_s:
            notes.popitem(last=False)

    def holds_back(self, producers: ProducerState, header: BatchHeader) -> bool:
        """Return whether a batch has to wait for one that was sent before it."""
        refused = self._by_producer.get(header.producer_id)
        if refused is None or refused.epoch != header.producer_epoch:
            return False
        entry = producers.entry(header.producer_id)
        if entry is not None and entry.epoch > refused.epoch:
            return False
        if entry is not None and entry.epoch == refused.epoch:
            if entry.continues(header.base_sequence):
                if header.base_sequence != refused.sequence:  # That one is there.
                    del self._by_producer[header.producer_id]
                return False
            if entry.duplicate_of(header) is not None:
                return False
        return _is_behind(header.base_sequence, refused.sequence)


def taken_back(log: PartitionLog) -> Iterator[tuple[int, int, int]]:
    """Return the first batch that a log has lost of each producer: id, epoch and sequence.

    Of a log that was forgotten: nothing of it from its high watermark on is durable.
    """
    for number, entry in enumerate(log.producers.latest_entries()):
        if number == PRODUCERS_MAX:
            return
        for batch in entry.batches:
            if batch.base_offset >= log.high_watermark:
                yield entry.producer_id, entry.epoch, batch.first_sequence
                break


def _is_behind(sequence: int, other: int) -> bool:
    """Return whether a sequence comes after another one; they wrap (S7)."""
    return 0 < (sequence - other) & MAX_SEQUENCE <= MAX_SEQUENCE // 2
