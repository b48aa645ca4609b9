"""Batches that a log held before: placed again as they were, for recovery, loading and repair.

Offsets, leader epochs and timestamps stay. No rule of a client's batch applies, and the producer
state follows each batch.
"""

from barnabas.protocol.record_decoding import read_marker
from barnabas.protocol.records import BatchHeader
from barnabas.storage.journal.journal import CommitGroup
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log.readable_segment import ReadableSegment
from barnabas.storage.log.segment import Segment
from barnabas.storage.log.transaction_marker import TransactionMarker


def replay_batch(
    log: PartitionLog, group: CommitGroup, batch: memoryview, header: BatchHeader
) -> None:
    """Append a batch that the log held at its end, or after a compacted part."""
    end, base = log.next_offset, header.base_offset
    assert base == end or end < base <= log.cleaning.compacted_offset, (log, base, end)
    epoch = header.partition_leader_epoch
    size = len(batch)
    log.store_batch(group, batch, 0, size, header.next_offset, header.newest_timestamp, epoch)
    if header.producer_id >= 0:
        replay_producer(log, log.active, header, batch)


def replay_producer(
    log: PartitionLog, segment: ReadableSegment, header: BatchHeader, batch: memoryview
) -> None:
    """Update the producer state with a stored batch of ``segment``."""
    if not header.is_control:
        log.producers.update(header, log.now_ms())
        return
    found = read_marker(batch)
    if found is not None:
        marker = TransactionMarker(
            header.producer_id,
            header.producer_epoch,
            commit=found.commit,
            coordinator_epoch=found.coordinator_epoch,
        )
        log.end_transaction(segment, marker, header.base_offset, header.max_timestamp, log.now_ms())
        log.producers.forget_decided(header.next_offset)  # Replayed batches are durable.


def abandon_transaction(log: PartitionLog, segment: Segment, producer_id: int, offset: int) -> None:
    """End a producer's open transaction as if ``segment`` had an abort marker at ``offset``.

    For a transaction whose own marker cannot be read.
    """
    entry = log.producers.entry(producer_id)
    assert entry is not None, "the producer is unknown"
    marker = TransactionMarker(
        producer_id, entry.epoch, commit=False, coordinator_epoch=entry.coordinator_epoch
    )
    log.end_transaction(segment, marker, offset, entry.last_timestamp, log.now_ms())
