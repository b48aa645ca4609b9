"""``verify(log)``: everything that must hold of one partition's log, after any operation.

For tests and for operators. Reads the whole log and waits for the disk.
"""

from crc32c import crc32c

from protocol.records import BatchHeader
from storage.index import SegmentIndex
from storage.partition_log import PartitionLog
from storage.producers import ProducerState
from storage.segment import Segment


def verify(log: PartitionLog) -> list[str]:
    """Check bounds, batches, indexes and producers; answers what is wrong (nothing: empty)."""
    problems = _check_bounds(log)
    for segment in log.segments:
        problems += _check_segment(segment)
    return problems + _check_producers(log)


def _check_bounds(log: PartitionLog) -> list[str]:
    bounds = [
        log.log_start_offset,
        log.last_stable_offset,
        log.high_watermark,
        log.next_offset,
    ]
    problems = []
    if bounds != sorted(bounds):
        problems.append(f"{log}: start, LSO, HW, end are out of order: {bounds} (L3)")
    bases = [segment.base_offset for segment in log.segments]
    if bases != sorted(set(bases)):
        problems.append(f"{log}: segments out of order: {bases}")
    if log.active is not log.segments[-1]:
        problems.append(f"{log}: the active segment is not the last one")
    return problems


def _check_segment(segment: Segment) -> list[str]:
    problems: list[str] = []
    expected = segment.base_offset
    rebuilt = SegmentIndex(segment.base_offset, segment.index_interval_bytes)
    for position, header, batch in segment.scan(0):
        where = f"{segment.log_path} at byte {position}"
        problems += [f"{where}: {problem}" for problem in _check_batch(header, batch, expected)]
        rebuilt.append(header.last_offset, header.max_timestamp, position)
        expected = header.next_offset
    if segment.written_bytes != segment.size_bytes:
        return problems  # Still being written: its index is ahead of what can be read.
    if segment.sealed:
        rebuilt.seal()
    if rebuilt.offsets.encode() != segment.index.offsets.encode():
        problems.append(f"{segment.log_path}: the offset index is not what a rebuild gives (D4)")
    if rebuilt.times.encode() != segment.index.times.encode():
        problems.append(f"{segment.log_path}: the time index is not what a rebuild gives (D4)")
    if expected != segment.end_offset:
        problems.append(f"{segment.log_path}: ends at {expected}, not {segment.end_offset}")
    return problems


def _check_batch(header: BatchHeader, batch: memoryview, expected: int) -> list[str]:
    problems = []
    if header.base_offset != expected:
        problems.append(f"base offset {header.base_offset}, expected {expected} (D2)")
    if crc32c(batch[21:]) != header.crc:
        problems.append("checksum mismatch (D2)")
    return problems


def _check_producers(log: PartitionLog) -> list[str]:
    """Replay the whole log: equal to the live state unless older segments are gone (D4)."""
    if log.segments[0].base_offset > 0 or log.unflushed:
        return []
    live, log.producers = log.producers, ProducerState()
    try:
        for segment in log.segments:
            for _, header, batch in segment.scan(0):
                if header.producer_id >= 0:
                    log.replay_producer(segment, header, batch)
        rebuilt = log.producers
    finally:
        log.producers = live
    if _without_append_times(rebuilt) != _without_append_times(live):
        return [f"{log}: the producer state is not what a rebuild gives (D4)"]
    return []


def _without_append_times(state: ProducerState) -> dict[int, tuple[object, ...]]:
    return {
        entry.producer_id: (
            entry.epoch,
            tuple(entry.batches),
            entry.coordinator_epoch,
            entry.transaction_first_offset,
        )
        for entry in state.entries()
    }
