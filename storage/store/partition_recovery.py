"""One partition as the newest checkpoint saw it, made of what its directory holds.

Rules of this file:

1. A directory is listed once, and of a partition that was never written to it is not even
   looked for: a start with thousands of partitions waits for nothing else so long.
2. What lies beyond the checkpoint is cut off and dropped; the journal gives it back.
3. What cannot be what it was is refused, unless this is a salvage (``storage/repair/salvage.py``).
"""

from collections.abc import Sequence
from typing import Final

from barnabas.storage.errors import Corrupt
from barnabas.storage.log.checkpoint import (
    CorruptFile,
    PartitionCheckpoint,
    SegmentSwap,
    decode_leader_epochs,
)
from barnabas.storage.log.log_directory import LEADER_EPOCH_CHECKPOINT, LogDirectory
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log.producer_snapshot import CorruptSnapshot, decode_snapshot
from barnabas.storage.log.producers import ProducerState
from barnabas.storage.log.replay import replay_producer
from barnabas.storage.log.segment import Segment
from barnabas.storage.log.segment_names import (
    GROWN,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    file_stem,
)
from barnabas.storage.log.segment_swap import recover_swaps
from barnabas.storage.repair.salvage import Salvage, explain, lost_segments
from barnabas.storage.store.log_position import aborted_checksum, sealed_bytes

_STEM_DIGITS: Final = 20


def open_log(
    log: PartitionLog,
    position: PartitionCheckpoint | None,
    swaps: Sequence[SegmentSwap],
    *,
    clean: bool,
    may_be_new: bool,
    salvage: Salvage | None = None,
) -> None:
    """Restore ``log`` to its state at the checkpoint; a later partition starts empty.

    ``swaps`` are the unfinished swaps of this partition. ``may_be_new``: the partition may be
    younger than the checkpoint. Raises Corrupt if the state cannot be restored and ``salvage``
    cannot save a part of it.
    """
    directory = log.directory
    names = directory.list_files()
    belongs = directory.belongs_to_topic(names)
    if position is None or not belongs:
        if position is not None and position.end_offset > 0:
            raise Corrupt(directory.path, 0, "the directory or its partition.metadata is missing")
        if belongs and not may_be_new:
            _refuse_data(log, names)
        directory.clear()
        return
    directory.is_there = True
    if recover_swaps(directory, swaps, names):
        names = directory.list_files()
    log.cleaning.clean_offset = position.clean_offset
    log.cleaning.compacted_offset = position.compacted_offset
    _open_segments(log, position, names, clean=clean, salvage=salvage)
    log.log_start_offset = position.log_start_offset
    log.next_offset = position.end_offset
    log.leader_epochs = _read_leader_epochs(log, salvage)
    _load_producers(log, position, names, clean=clean, salvage=salvage)


def _refuse_data(log: PartitionLog, names: Sequence[str]) -> None:
    """Raise Corrupt if a partition newer than the checkpoint has data.

    In that case the MetaStore gives the partition another ID than before, and emptying it would
    delete the data of the old one.
    """
    for name in names:
        if name.endswith(LOG_SUFFIX) and _holds_bytes(log.directory, name):
            reason = f"the checkpoint does not know it as partition {log.partition_id}"
            raise Corrupt(log.directory.path, 0, reason)


def _holds_bytes(directory: LogDirectory, name: str) -> bool:
    file = directory.open(name)
    try:
        return file.size() > 0
    finally:
        file.close()


def _open_segments(
    log: PartitionLog,
    position: PartitionCheckpoint,
    names: list[str],
    *,
    clean: bool,
    salvage: Salvage | None,
) -> None:
    bases = sorted(int(name[:_STEM_DIGITS]) for name in names if name.endswith(LOG_SUFFIX))
    kept = [base for base in bases if base <= position.segment_base_offset]
    while len(kept) > 1 and kept[1] <= position.log_start_offset:
        log.open_segment(kept.pop(0)).remove()  # Its removal did not survive, nor may its bytes.
    for name in names:
        stem = name[:_STEM_DIGITS]
        if stem.isdigit() and int(stem) > position.segment_base_offset:
            if clean and salvage is None:
                _refuse_written(log, name)
            _drop_if_later(log, name, position)
    if not kept or kept[-1] != position.segment_base_offset:
        kept.append(position.segment_base_offset)
    segments: list[Segment] = []
    for base, following in zip(kept, [*kept[1:], None], strict=True):
        segment = log.open_segment(base)
        if following is None:
            _open_active(log, segment, position, clean=clean, salvage=salvage)
        else:
            segment.open_existing(segment.file.size(), following, sealed=True, trusted=True)
        segments.append(segment)
    log.segments = [*segments]
    log.active = segments[-1]
    found_bytes = sealed_bytes(log, position.log_start_offset)
    if position.sealed_bytes not in (-1, found_bytes):
        reason = f"the sealed segments hold {found_bytes} bytes, not {position.sealed_bytes}"
        lost = lost_segments(log, names, position.log_start_offset)
        error = explain(log, lost, reason)
        if salvage is None:
            raise error
        salvage.open_sealed(log, lost, error)


def _open_active(
    log: PartitionLog,
    segment: Segment,
    position: PartitionCheckpoint,
    *,
    clean: bool,
    salvage: Salvage | None,
) -> None:
    try:
        segment.open_existing(position.position, position.end_offset, sealed=False, trusted=clean)
    except (Corrupt, OSError) as error:
        if salvage is None:
            raise
        salvage.open_active(log, segment, position, error)


def _refuse_written(log: PartitionLog, name: str) -> None:
    """Raise Corrupt if a segment has bytes that a clean stop did not leave."""
    if name.endswith(LOG_SUFFIX) and _holds_bytes(log.directory, name):
        raise Corrupt(log.directory.file_path(name), 0, GROWN)


def _drop_if_later(log: PartitionLog, name: str, position: PartitionCheckpoint) -> None:
    """Remove segments and snapshots that are newer than the checkpoint."""
    is_snapshot = name.endswith(SNAPSHOT_SUFFIX)
    if not is_snapshot or int(name[:_STEM_DIGITS]) > position.end_offset:
        log.directory.unlink(name)


def _read_leader_epochs(log: PartitionLog, salvage: Salvage | None) -> list[tuple[int, int]]:
    try:
        data = log.directory.file_system.read_file(log.directory.file_path(LEADER_EPOCH_CHECKPOINT))
        epochs = decode_leader_epochs(data)
    except (FileNotFoundError, CorruptFile):
        epochs = []
    if not epochs or epochs[0][1] > log.segments[0].base_offset:
        epochs = _epochs_in_batches(log, salvage)
    return [(epoch, start) for epoch, start in epochs if start < log.next_offset]


def _epochs_in_batches(log: PartitionLog, salvage: Salvage | None) -> list[tuple[int, int]]:
    """Return the epochs of the batches; the file is derived (D7)."""
    epochs: list[tuple[int, int]] = []
    for segment in log.local_segments:
        headers = (
            (header for _, header, _ in segment.scan_checked(0))
            if salvage is None
            else (header for header, _ in salvage.batches(log, segment))
        )
        for header in headers:
            if not epochs or epochs[-1][0] != header.partition_leader_epoch:
                epochs.append((header.partition_leader_epoch, header.base_offset))
    return epochs


def _load_producers(
    log: PartitionLog,
    position: PartitionCheckpoint,
    names: list[str],
    *,
    clean: bool,
    salvage: Salvage | None,
) -> None:
    """Load the producer state from the newest reliable snapshot and the batches after it.

    The replay also finds the aborted transactions again of every segment whose list is damaged or,
    after a crash, may be torn (D7): those of the active segment.
    """
    limit = position.snapshot_offset if clean else log.active.base_offset
    if not _load_transactions(log, position, names, clean=clean):
        limit = log.segments[0].base_offset
        for segment in log.local_segments:
            segment.reset_transactions()
    offset = _load_snapshot(log, position, names, limit)
    log.snapshots.newest_offset = offset
    if offset >= log.next_offset:
        return  # Nothing follows it.
    # So that the next one that is written spares a start this walk.
    log.snapshots.batches_since = 1
    for segment in log.local_segments[log.segment_at(offset) :]:
        if not segment.sealed and not segment.has_producers:
            continue
        if salvage is not None:
            salvage.replay_producers(log, segment, offset)
            continue
        start = segment.index.offsets.lookup(offset)
        # After a crash the active segment's checksums have just been verified.
        scan = segment.scan_checked if segment.sealed else segment.scan
        for _, header, batch in scan(start):
            if header.base_offset >= offset:
                log.snapshots.batches_since += 1
                if header.producer_id >= 0:
                    replay_producer(log, segment, header, batch)


def _load_transactions(
    log: PartitionLog, position: PartitionCheckpoint, names: list[str], *, clean: bool
) -> bool:
    """Read the lists of aborted transactions; return False if a file changed."""
    listed = {name[:_STEM_DIGITS] for name in names if name.endswith(TRANSACTION_INDEX_SUFFIX)}
    for segment in log.local_segments:
        if segment is log.active and not clean:
            break
        if segment.stem in listed and not segment.load_transactions():
            return False
    actual = aborted_checksum(log, position.log_start_offset)
    return position.aborted_checksum in (-1, actual)


def _load_snapshot(
    log: PartitionLog, position: PartitionCheckpoint, names: list[str], limit: int
) -> int:
    """Load the newest valid snapshot at or before ``limit``; return its offset.

    Without one the state is empty, as it was at the start of the first segment.
    """
    start_offset = log.segments[0].base_offset
    offsets = sorted(
        (int(name[:_STEM_DIGITS]) for name in names if name.endswith(SNAPSHOT_SUFFIX)),
        reverse=True,
    )
    # Those that are not loaded are removed by the next checkpoint, like any superseded one.
    log.snapshots.offsets.update(offset for offset in offsets if offset <= position.end_offset)
    for offset in offsets:
        if not start_offset <= offset <= limit:
            continue
        path = log.directory.file_path(file_stem(offset) + SNAPSHOT_SUFFIX)
        try:
            data = log.directory.file_system.read_file(path)
            log.producers = decode_snapshot(data, append_time_ms=log.now_ms())
        except (CorruptSnapshot, FileNotFoundError):
            log.directory.unlink(file_stem(offset) + SNAPSHOT_SUFFIX)
            continue
        return offset
    log.producers = ProducerState()
    return start_offset
