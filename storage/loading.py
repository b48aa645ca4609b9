"""A log that is opened while the process runs, from what is durable of it elsewhere.

What a start does for all logs from the directory and the journal (``storage/recovery.py``) is done
here for one, at the epoch that its leader has now: when the partition has come to this broker, or
when the log was forgotten because of what was refused (``LogStore.load``).
"""

from collections.abc import Iterable
from typing import NamedTuple

from barnabas.protocol.records import read_header
from barnabas.storage.errors import LedSince
from barnabas.storage.journal import CommitGroup
from barnabas.storage.partition_log import PartitionLog
from barnabas.storage.producer_snapshot import decode_snapshot


class DurableLog(NamedTuple):
    """What is durable of a partition, wherever it is kept."""

    batches: Iterable[memoryview]
    """All from ``base_offset`` on, without gaps; their memory stays as it is."""
    log_start_offset: int = 0
    base_offset: int = 0
    """Where the first batch begins, or would begin."""
    snapshot: bytes | None = None
    """The producers at ``base_offset``, as ``encode_snapshot`` has them; None: there were none."""


def fill(log: PartitionLog, durable: DurableLog, group: CommitGroup) -> None:
    """Give an empty log all that is ``durable``; it can be read at once, from memory.

    The segments are written with the operations of ``group``. The journal has nothing of it.
    Raises LedSince.
    """
    offset = durable.base_offset
    if durable.snapshot is not None:
        log.producers = decode_snapshot(durable.snapshot, append_time_ms=log.now_ms())
    if offset:
        log.next_offset = log.snapshot_offset = offset
        log.active = log.open_segment(offset)
        log.segments = [log.active]
    for batch in durable.batches:
        log.replay(group, batch, read_header(batch))
    if log.leader_epochs and log.leader_epochs[-1][0] > log.leader_epoch:
        raise LedSince(f"{log} was written to in epoch {log.leader_epochs[-1][0]}")
    log.high_watermark = log.next_offset
    log.log_start_offset = durable.log_start_offset
    log.drop_segments_below_start()
    log.start_counting()
