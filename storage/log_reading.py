"""A partition's log read back from a log index, to be opened on a broker."""

from collections.abc import Iterator, Sequence
from typing import Final

from barnabas.protocol.records import CorruptBatch, iterate_batches
from barnabas.storage.errors import Corrupt, LedSince
from barnabas.storage.loading import DurableLog
from barnabas.storage.log_index import Extent, LogIndex

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
    state = index.partition(partition_id)
    if state is None:
        raise LedSince(f"partition {partition_id} was deleted")
    snapshot = index.snapshot(partition_id)
    needless_offset = min(state.log_start_offset, snapshot.next_offset) if snapshot else 0
    batches: list[memoryview] = []
    base_offset = end_offset = state.log_end_offset
    for extent in extents_from(index, partition_id, needless_offset):
        if not batches:
            base_offset = end_offset = extent.base_offset
        if extent.base_offset != end_offset:
            raise _damage(partition_id, extent, 0, f"it should begin at offset {end_offset}")
        end_offset = extent.next_offset
        batches += _batches_of(partition_id, extent)
    if end_offset < state.log_end_offset:
        raise Corrupt(f"partition {partition_id} in the store", end_offset, "it ends too early")
    return DurableLog(batches, state.log_start_offset, base_offset, snapshot)


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
