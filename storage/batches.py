"""Walking over the visible batches of a log, for work that needs to look into them.

Waits for the disk: call it where that is allowed (look-ups by time, checks, compaction).
"""

from collections.abc import Iterator

from protocol.records import BatchHeader, iterate_batches
from storage.partition_log import READ_UNCOMMITTED, PartitionLog
from storage.segment_read import FileSpan, read_waiting

_PIECE_BYTES = 256 * 1024


def visible_batches(
    log: PartitionLog, offset: int, isolation: int = READ_UNCOMMITTED
) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Every batch from the one that holds ``offset`` up to what ``isolation`` may see."""
    position = offset
    while True:
        chunks = _read(log, position, isolation)
        if not chunks:
            return
        for chunk in chunks:
            for at, header in iterate_batches(chunk):
                yield header, chunk[at : at + header.size]
                position = header.next_offset


def _read(log: PartitionLog, offset: int, isolation: int) -> list[memoryview]:
    plan = log.plan_read(offset, _PIECE_BYTES, isolation)
    if plan is None:
        return []
    if isinstance(plan, FileSpan):
        span = plan.load(read_waiting)
        return [span.data] if span is not None and len(span.data) else []
    return plan.chunks
