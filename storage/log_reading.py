"""A partition's log read back from a log index, to be opened on a broker."""

from typing import Final

from barnabas.protocol.records import iterate_batches
from barnabas.storage.loading import DurableLog
from barnabas.storage.log_index import LogIndex

_EXTENTS_AT_ONCE: Final = 256


def read_log(index: LogIndex, partition_id: int) -> DurableLog:
    """Read all that is durable of a partition; raises IndexClosed, KeyError if there is none.

    Blocks. Who leads the partition, and has an answer to all of its flushes, reads the truth:
    nobody else can have written since. All of it is held in memory.
    """
    state = index.partition(partition_id)
    if state is None:
        raise KeyError(partition_id)
    batches: list[memoryview] = []
    base_offset: int | None = None
    end_offset = 0
    while extents := index.extents(partition_id, end_offset, most=_EXTENTS_AT_ONCE):
        for extent in extents:
            if base_offset is None:
                base_offset = end_offset = extent.base_offset
            assert extent.base_offset == end_offset, (partition_id, end_offset, extent.base_offset)
            end_offset = extent.next_offset
            data = memoryview(extent.data)
            batches += [data[at : at + header.size] for at, header in iterate_batches(data)]
    if base_offset is None:
        base_offset = state.log_end_offset
    return DurableLog(batches, state.log_start_offset, base_offset)
