"""A partition's log read back from a log index, to be opened on a broker."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from barnabas.protocol.records import CorruptBatch, iterate_batches
from barnabas.storage.errors import Corrupt, LedSince
from barnabas.storage.loading import DurableLog
from barnabas.storage.log_index import Extent, LogHead, LogIndex

_EXTENTS_AT_ONCE: Final = 256
_FIRST_AT_ONCE: Final = 16
_BYTES_AT_ONCE: Final = 16 * 1024 * 1024
"""What an answer should hold at most; a larger extent comes alone."""


def read_log(index: LogIndex, partition_id: int) -> DurableLog:
    """Read all that is durable of a partition; raises IndexClosed, LedSince if it was deleted.

    Raises Corrupt for what no leader has written: damage in the store, or a copy that ends early.
    Blocks. Who leads the partition, and has an answer to all of its flushes, reads the truth:
    nobody else can have written since. What is needed of it is held in memory: not what lies below
    both its start and its snapshot, which may be there still, or not.
    """
    for head in index.heads([partition_id]):
        return whole_log(head, all_from(index, head, []))
    raise LedSince(f"partition {partition_id} was deleted")


def first_extents(index: LogIndex, heads: Sequence[LogHead]) -> dict[int, list[Extent]]:
    """Return the beginnings of logs, of short ones all there is; see ``all_from``."""
    return index.first_extents(heads, most=_FIRST_AT_ONCE, most_bytes=_BYTES_AT_ONCE)


def is_whole(head: LogHead, extents: Sequence[Extent]) -> bool:
    """Whether that is all there is of a log."""
    end_offset = extents[-1].next_offset if extents else head.needless_offset
    return end_offset >= head.state.log_end_offset


def all_from(index: LogIndex, head: LogHead, first: Sequence[Extent]) -> Iterator[Extent]:
    """All extents that are needed of a log, whose first ones these are; blocks."""
    yield from first
    if not is_whole(head, first):
        from_offset = first[-1].next_offset if first else head.needless_offset
        yield from extents_from(index, head.partition_id, from_offset)


def whole_log(head: LogHead, extents: Iterable[Extent]) -> DurableLog:
    """Return the log that these extents are; raises Corrupt as ``read_log``."""
    partition_id, state = head.partition_id, head.state
    batches: list[memoryview] = []
    base_offset = end_offset = state.log_end_offset
    for extent in extents:
        if not batches:
            base_offset = end_offset = extent.base_offset
        if extent.base_offset != end_offset:
            raise _damage(partition_id, extent, 0, f"it should begin at offset {end_offset}")
        end_offset = extent.next_offset
        batches += _batches_of(partition_id, extent)
    if end_offset < state.log_end_offset:
        raise Corrupt(f"partition {partition_id} in the store", end_offset, "it ends too early")
    return DurableLog(batches, state.log_start_offset, base_offset, head.snapshot)


def _batches_of(partition_id: int, extent: Extent) -> list[memoryview]:
    data = memoryview(extent.data)
    found = []
    position = 0
    reason = "a batch that is cut off"
    try:
        for at, header in iterate_batches(data):
            position = at + header.size
            found.append(data[at:position])
    except CorruptBatch as error:
        reason = str(error)
    if position != len(data):
        raise _damage(partition_id, extent, position, reason)
    return found


def _damage(partition_id: int, extent: Extent, position: int, reason: str) -> Corrupt:
    path = f"partition {partition_id} in the store, the extent of offset {extent.base_offset},"
    return Corrupt(path, position, reason)


def extents_from(index: LogIndex, partition_id: int, from_offset: int) -> Iterator[Extent]:
    """All that reach beyond an offset, so many at a time as their sizes let expect to be little."""
    most = _FIRST_AT_ONCE
    while extents := index.extents(partition_id, from_offset, most=most):
        yield from extents
        from_offset = extents[-1].next_offset
        most = _fitting(extents)


def _fitting(extents: Sequence[Extent]) -> int:
    largest = max(len(each.data) for each in extents)
    return min(max(1, _BYTES_AT_ONCE // largest), _EXTENTS_AT_ONCE)
