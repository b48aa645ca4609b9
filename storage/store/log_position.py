"""State of one log as a checkpoint records it, and as recovery compares it with the files."""

from crc32c import crc32c

from barnabas.storage.log.checkpoint import PartitionCheckpoint
from barnabas.storage.log.partition_log import PartitionLog


def checkpoint_of(log: PartitionLog) -> PartitionCheckpoint:
    """Return the state of ``log`` after everything appended so far became durable."""
    log_start_offset = max(log.log_start_offset, log.journaled_start_offset)
    return PartitionCheckpoint(
        log.partition_id,
        log.active.base_offset,
        log.next_offset,
        log.active.size_bytes,
        log_start_offset,
        log.snapshots.newest_offset,
        aborted_checksum(log, log_start_offset),
        sealed_bytes(log, log_start_offset),
        log.cleaning.clean_offset,
        log.cleaning.compacted_offset,
    )


def sealed_bytes(log: PartitionLog, start_offset: int) -> int:
    """Return the size of the sealed segments that reach past an offset, in bytes."""
    if len(log.segments) == 1:
        return 0
    return sum(
        segment.size_bytes for segment in log.segments[:-1] if segment.end_offset > start_offset
    )


def aborted_checksum(log: PartitionLog, start_offset: int) -> int:
    """Return the CRC32C of the transaction indexes of the sealed segments past an offset."""
    checksum = 0
    for segment in log.segments[:-1]:
        if segment.end_offset > start_offset and len(segment.transactions):
            checksum = crc32c(segment.transactions.encode(), checksum)
    return checksum
