"""Putting a damaged segment in order: damaged bytes are moved to a file of their own.

Rules of this file:

1. Each damaged range is replaced by a batch without records that has its offsets, as compaction
   leaves them: offsets continue without a gap, and consumers skip it. If a marker has ended an
   aborted transaction there, it is written again: otherwise consumers would omit later committed
   records of its producer.
2. No byte is lost: the damaged bytes are in a file of their own before anything else is written.
3. The new segment takes the old one's place as one that was compacted does
   (``storage/log/segment_swap.py``): a crash leaves one or the other.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from barnabas.protocol.record_filter import emptied
from barnabas.protocol.records import (
    MAGIC,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    BatchHeader,
    placed,
    read_header,
)
from barnabas.storage.files.file_system import File
from barnabas.storage.files.io import PAGE_BYTES
from barnabas.storage.log.cleaned_segment import (
    CleanedGroup,
    CleaningPlan,
    SegmentWriter,
    SourceSegment,
)
from barnabas.storage.log.damage import DamagedRange
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log.segment import Segment
from barnabas.storage.log.segment_read import scan_batches
from barnabas.storage.log.segment_swap import take_over
from barnabas.storage.log.transaction_marker import TransactionMarker
from barnabas.storage.repair.scrub import Pace, check_segment, plan_check

DAMAGED_SUFFIX: Final = ".damaged"


def find_damage(log: PartitionLog, pace: Pace) -> Iterator[DamagedRange]:
    """Yield the damage in all written bytes of ``log``, and damage that is known already. Waits."""
    for segment in log.local_segments:
        verdict = check_segment(log.directory.file_system, plan_check(log, segment), pace)
        found = verdict.damaged
        known = [each for each in log.damaged if each.segment == segment.base_offset]
        yield from sorted([*found, *(each for each in known if not _is_among(each, found))])


def _is_among(damaged: DamagedRange, found: Iterable[DamagedRange]) -> bool:
    return any(
        damaged == each
        or (each.base_offset < damaged.end_offset and damaged.base_offset < each.end_offset)
        for each in found
    )


def cut_out(log: PartitionLog, damaged: Sequence[DamagedRange]) -> Iterator[str]:
    """Remove damaged ranges from an unused log; yield the file with the bytes of each range.

    The ranges are in sealed segments only: after a crash within this function a start would refuse
    a changed active segment. The change takes effect with the next checkpoint; after a crash before
    it the log is unchanged. Waits for the disk.
    """
    assert all(each.segment != log.active.base_offset for each in damaged), "not yet sealed"
    for segment in log.local_segments:
        mine = [each for each in damaged if each.segment == segment.base_offset]
        if mine:
            yield from _cut_segment(log, segment, mine)
    log.damaged = []


def _cut_segment(
    log: PartitionLog, segment: Segment, damaged: Sequence[DamagedRange]
) -> Iterator[str]:
    generation = log.cleaning.new_generation(log.leader_epoch)
    for each in damaged:
        yield _keep_aside(log, segment, each, generation)
    log.directory.file_system.sync_directory(log.directory.path)
    group = _without(log, segment, damaged, generation)
    compacted_offset = log.cleaning.compacted_offset
    taken = take_over(log, group)
    assert taken, "the log is in use"
    log.cleaning.compacted_offset = compacted_offset  # No offset is missing.


def _keep_aside(log: PartitionLog, segment: Segment, damaged: DamagedRange, generation: int) -> str:
    """Copy the bytes of a range to a file beside its segment; unreadable bytes become zeros."""
    name = f"{segment.log_name}.{damaged.position}.{generation}{DAMAGED_SUFFIX}"
    file = log.directory.open(name, create=True)
    try:
        file.truncate(0)
        for position in range(damaged.position, damaged.end_position, PAGE_BYTES):
            size = min(PAGE_BYTES, damaged.end_position - position)
            file.pwritev([_page(segment.file, size, position)], position - damaged.position)
        file.fdatasync()
    finally:
        file.close()
    return log.directory.file_path(name)


def _page(file: File, size: int, position: int) -> bytes:
    try:
        data = file.pread(size, position)
    except OSError:
        data = b""
    return data + bytes(size - len(data))


def _without(
    log: PartitionLog, segment: Segment, damaged: Sequence[DamagedRange], generation: int
) -> CleanedGroup:
    source = SourceSegment(segment.base_offset, segment.end_offset, segment.size_bytes)
    writer = SegmentWriter(
        log.directory.file_system,
        _plan(log, source, generation),
        segment.base_offset,
        lambda _size: None,
    )
    try:
        writer.transactions = segment.transactions
        for header, batch in _batches(log, segment, damaged):
            writer.meet(header)
            writer.change(batch)
        return writer.finish((source,), 0, last=False)
    except BaseException:
        writer.discard()
        raise


def _batches(
    log: PartitionLog, segment: Segment, damaged: Iterable[DamagedRange]
) -> Iterator[tuple[BatchHeader, bytes]]:
    """Yield the batches of the repaired segment."""
    position = 0
    epochs: dict[int, int] = {}
    for each in damaged:
        for header, batch in sound_batches(segment, position, each.position):
            epochs[header.producer_id] = header.producer_epoch
            yield header, batch
        for batch in _stopgaps(log, segment, each, epochs):
            yield read_header(memoryview(batch)), batch
        position = each.end_position
    yield from sound_batches(segment, position, segment.written_bytes)


def _stopgaps(
    log: PartitionLog, segment: Segment, damaged: DamagedRange, epochs: Mapping[int, int]
) -> Iterator[bytes]:
    """Yield batches for the offsets of a damaged range: its known markers, and holes between them.

    ``epochs`` are the known epochs of the producers before it.
    """
    start = damaged.base_offset
    leader_epoch = max(0, log.epoch_at(start))
    for aborted in segment.transactions:
        offset = aborted.last_offset
        if not start <= offset < damaged.end_offset:
            continue
        if start < offset:
            yield hole(damaged._replace(base_offset=start, end_offset=offset), leader_epoch)
        entry = log.producers.entry(aborted.producer_id)
        epoch, time_ms = (0, 0) if entry is None else (entry.epoch, entry.last_timestamp)
        epoch = epochs.get(aborted.producer_id, epoch)
        marker = TransactionMarker(aborted.producer_id, epoch, commit=False, coordinator_epoch=0)
        batch = bytes(marker.batch(time_ms))
        yield placed(batch, read_header(memoryview(batch)), offset, leader_epoch)
        start = offset + 1
    if start < damaged.end_offset:
        yield hole(damaged._replace(base_offset=start), leader_epoch)


def sound_batches(segment: Segment, start: int, end: int) -> Iterator[tuple[BatchHeader, bytes]]:
    """Yield the batches between two positions of a segment that has no damage there."""

    def read(size: int, position: int) -> bytes:
        return segment.file.pread(size, position)

    for _, header, batch in scan_batches(segment.log_path, read, start, end):
        yield header, bytes(batch)


def hole(damaged: DamagedRange, leader_epoch: int) -> bytes:
    """Return a batch without records that has the offsets of a damaged range."""
    delta = damaged.end_offset - 1 - damaged.base_offset
    return emptied(
        BatchHeader(
            damaged.base_offset,
            0,
            max(0, leader_epoch),
            MAGIC,
            0,
            0,
            delta,
            NO_TIMESTAMP,
            NO_TIMESTAMP,
            NO_PRODUCER_ID,
            NO_PRODUCER_EPOCH,
            NO_SEQUENCE,
            0,
        )
    )


def is_hole(header: BatchHeader) -> bool:
    """Return whether the content of the batch's offsets is unknown."""
    return (
        not header.record_count
        and header.producer_id == NO_PRODUCER_ID
        and header.max_timestamp == NO_TIMESTAMP
    )


def _plan(log: PartitionLog, source: SourceSegment, generation: int) -> CleaningPlan:
    return CleaningPlan(
        path=log.directory.path,
        make_directory=log.directory.make_if_missing,
        segments=(source,),
        first_dirty_offset=source.base_offset,
        aborted=(),
        producers=dict,
        now_ms=log.now_ms(),
        delete_retention_ms=0,
        segment_bytes=log.config.segment_bytes,
        index_bytes=log.config.index_size_max_bytes,
        index_interval_bytes=log.config.index_interval_bytes,
        map_bytes=0,
        generation=generation,
        salt=b"",
    )
