"""From what a crash (or a clean stop) left on disk to running logs.

Rules of this file:

1. Kill and power loss take the same path (D2): the newest valid checkpoint says how much of each
   active segment is certain; what lies beyond is cut off, segments born later are dropped, and the
   journal gives all of it back.
2. The journal ends at its first unreadable group; a readable group behind that one means damage,
   and the broker refuses to start (design §3).
3. Recovering twice changes nothing (D3): nothing is removed before the checkpoint at the end that
   the same journal could not give back.
4. All of the journal that is needed is read once before anything is changed: where that refuses to
   start, the directory is left as it was found.
5. Which partitions exist is the MetaStore's word, not the disk's: directories of deleted topics are
   removed, partitions without a directory get one. A directory that no topic owns, not even a
   deleted one, means that the MetaStore is not the one that belongs here: nothing is touched.
"""

from collections.abc import Container, Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Final

from protocol.records import iterate_batches
from storage.checkpoint import (
    Checkpoint,
    CorruptFile,
    PartitionCheckpoint,
    decode_leader_epochs,
    newest_checkpoint,
)
from storage.committer import apply_operations
from storage.errors import Corrupt, StrayDirectory
from storage.io import FileSystem
from storage.journal import CommitGroup
from storage.journal_files import JournalFiles
from storage.journal_format import KIND_BATCHES, KIND_LOG_START, Entry
from storage.log_directory import (
    DELETED_SUFFIX,
    LEADER_EPOCH_CHECKPOINT,
    PARTITION_METADATA,
    LogDirectory,
    remove_tree,
)
from storage.log_store import CHECKPOINT_NAMES, LOCK_NAME, LogStore, PartitionSpec
from storage.partition_log import PartitionLog
from storage.producers import CorruptSnapshot, ProducerState, decode_snapshot
from storage.segment import (
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    file_stem,
)
from storage.segment_swap import SegmentSwap, recover_swaps

_STEM_DIGITS: Final = 20
_FORCED_EPOCH: Final = 1 << 30
"""No coordinator comes as far as this; an operator who writes a marker by hand may, and the epochs
of batches end at 2^31."""


@dataclass(frozen=True, slots=True)
class RecoveryReport:
    """What a start found and did."""

    clean: bool
    partitions: int
    journal_groups: int
    batches_replayed: int
    directories_removed: int


def lock_directory(store: LogStore) -> None:
    """Take the data directory for this process. Raises AlreadyLocked."""
    _make_root(store.file_system, store.root)
    store.lock = store.file_system.lock(store.file_system.join(store.root, LOCK_NAME))


def _make_root(file_system: FileSystem, root: str) -> None:
    """Make the data directory where it is missing, so that a power loss cannot take its name."""
    path, made = root.rstrip("/"), []
    while path not in {"", "."} and not file_system.exists(path):
        made.append(path)
        path = path.rpartition("/")[0]
    if made:
        file_system.make_directory(root, exist_ok=True)
    for path in made:
        file_system.sync_directory(path.rpartition("/")[0] or ("/" if path[0] == "/" else "."))


def open_store(
    store: LogStore,
    specs: Iterable[PartitionSpec],
    *,
    leader_epoch: int,
    removable: Container[str] | None = None,
    deleted_ids: Container[int] | None = None,
) -> RecoveryReport:
    """Recover every partition of ``specs`` and start the journal.

    The caller makes a checkpoint and appends nothing before that is durable.

    ``leader_epoch`` is this boot's; it is raised above every epoch found on disk (D6).
    ``removable`` names the directories that deleted topics may have left; None allows any.
    ``deleted_ids`` are the partition ids of those topics; None: not known. Raises Corrupt where
    something durable does not read back, or (StrayDirectory) belongs to nobody.
    """
    file_system, root = store.file_system, store.root
    checkpoint = _read_checkpoint(file_system, root)
    store.generation = checkpoint.generation
    files = JournalFiles(file_system, root, store.settings.journal_file_bytes)
    # A clean stop's checkpoint may be all that is left of two: then a later run has appended.
    clean = checkpoint.clean and not files.reaches(checkpoint.journal_sequence)
    if not clean:
        _verify_journal(file_system.join(root, CHECKPOINT_NAMES[0]), checkpoint, files)
    wanted = {spec.directory_name: spec for spec in specs}
    removed = _sweep(file_system, root, wanted, removable)
    positions = {entry.partition_id: entry for entry in checkpoint.partitions}
    # Before the first checkpoint nothing is appended.
    may_be_new = checkpoint.generation > 0 and not (
        clean or _names_a_stranger(checkpoint, wanted.values(), deleted_ids)
    )
    for spec in wanted.values():
        log = store.new_log(spec)
        position = positions.get(spec.partition_id)
        if position is None and not may_be_new:
            _refuse_data(log)
        _finish_swaps(log, position, checkpoint.swaps)
        _open_log(log, position, clean=clean)
        store.logs[spec.partition_id] = log
    replayer = _Replayer(store)
    if clean:
        files.next_sequence = checkpoint.journal_sequence
    else:
        for _, entries in files.replay(checkpoint.journal_sequence):
            replayer.replay(entries)
    for log in store.logs.values():
        _finish(log)
    store.leader_epoch = max(leader_epoch, 1 + _highest_epoch(store))
    for log in store.logs.values():
        log.leader_epoch = store.leader_epoch
    files.start(files.next_sequence)
    store.start(files)
    return RecoveryReport(clean, len(store.logs), replayer.groups, replayer.batches, removed)


def _verify_journal(path: str, checkpoint: Checkpoint, files: JournalFiles) -> None:
    """Raise Corrupt unless the journal has all that was promised since ``checkpoint``."""
    if checkpoint.generation == 0 and files.reaches(1):
        raise Corrupt(path, 0, "both checkpoint files are missing, yet there is a journal")
    files.verify(checkpoint.journal_sequence, marked=checkpoint.marked)


def _names_a_stranger(
    checkpoint: Checkpoint, specs: Iterable[PartitionSpec], deleted_ids: Container[int] | None
) -> bool:
    """Whether the checkpoint knows a partition that no topic has, not even a deleted one."""
    if deleted_ids is None:
        return False
    living = {spec.partition_id for spec in specs}
    return any(
        entry.partition_id not in living and entry.partition_id not in deleted_ids
        for entry in checkpoint.partitions
    )


def _refuse_data(log: PartitionLog) -> None:
    """Raise Corrupt if there is data of a partition that should be too new to have any.

    Then the MetaStore gives it another id than it had; emptying it would be the end of its data.
    """
    directory = log.directory
    if not directory.belongs_to_topic():
        return
    for name in directory.list_files():
        if name.endswith(LOG_SUFFIX) and _holds_bytes(directory, name):
            reason = f"the checkpoint does not know it as partition {log.partition_id}"
            raise Corrupt(directory.path, 0, reason)


def _holds_bytes(directory: LogDirectory, name: str) -> bool:
    file = directory.open(name)
    try:
        return file.size() > 0
    finally:
        file.close()


def _read_checkpoint(file_system: FileSystem, root: str) -> Checkpoint:
    contents = []
    for name in CHECKPOINT_NAMES:
        path = file_system.join(root, name)
        contents.append(file_system.read_file(path) if file_system.exists(path) else None)
    checkpoint = newest_checkpoint(*contents)
    if checkpoint is None:
        if any(contents):
            path = file_system.join(root, CHECKPOINT_NAMES[0])
            raise Corrupt(path, 0, "neither checkpoint file can be read")
        return Checkpoint(0, 1, [], clean=False, marked=False)
    return checkpoint


def _sweep(
    file_system: FileSystem,
    root: str,
    wanted: dict[str, PartitionSpec],
    removable: Container[str] | None,
) -> int:
    """Remove the directories of deleted topics; refuse to touch anybody else's."""
    removed = 0
    for name in file_system.list_directory(root):
        path = file_system.join(root, name)
        if name in wanted or not file_system.is_directory(path):
            continue
        if not name.endswith(DELETED_SUFFIX):
            if not _is_partition_directory(file_system, path):
                continue
            if removable is not None and name not in removable:
                raise StrayDirectory(path)
        remove_tree(file_system, path)
        removed += 1
    return removed


def _is_partition_directory(file_system: FileSystem, path: str) -> bool:
    """Whether Barnabas made this directory: all its files have names that a partition has."""
    return all(
        name in (PARTITION_METADATA, LEADER_EPOCH_CHECKPOINT)
        or (name[:_STEM_DIGITS].isdigit() and name[_STEM_DIGITS:].startswith("."))
        for name in file_system.list_directory(path)
    )


# One partition


def _finish_swaps(
    log: PartitionLog, position: PartitionCheckpoint | None, swaps: Iterable[SegmentSwap]
) -> None:
    """Let the directory hold the segments that the checkpoint speaks of, and no half-made ones."""
    if position is None or not log.directory.belongs_to_topic():
        return  # Then everything in it goes.
    mine = [swap for swap in swaps if swap.partition_id == log.partition_id]
    recover_swaps(log.directory, mine, log.directory.list_files())
    log.cleaning.clean_offset = position.clean_offset
    log.cleaning.compacted_offset = position.compacted_offset


def _open_log(log: PartitionLog, position: PartitionCheckpoint | None, *, clean: bool) -> None:
    """Bring ``log`` to where the checkpoint saw it; a partition born later starts empty."""
    directory = log.directory
    if position is None or not directory.belongs_to_topic():
        if position is not None and position.end_offset > 0:
            raise Corrupt(directory.path, 0, "the directory or its partition.metadata is missing")
        for name in directory.list_files():
            directory.unlink(name)
        directory.create()
        return
    names = directory.list_files()
    _open_segments(log, position, names, clean=clean)
    log.log_start_offset = position.log_start_offset
    log.next_offset = position.end_offset
    log.leader_epochs = _read_leader_epochs(log)
    _load_producers(log, position, names, clean=clean)


def _open_segments(
    log: PartitionLog, position: PartitionCheckpoint, names: list[str], *, clean: bool
) -> None:
    bases = sorted(int(name[:_STEM_DIGITS]) for name in names if name.endswith(LOG_SUFFIX))
    kept = [base for base in bases if base <= position.segment_base_offset]
    while len(kept) > 1 and kept[1] <= position.log_start_offset:
        log.open_segment(kept.pop(0)).remove()  # Its removal did not survive, nor may its bytes.
    for name in names:
        stem = name[:_STEM_DIGITS]
        if stem.isdigit() and int(stem) > position.segment_base_offset:
            _drop_if_later(log, name, position)
    if not kept or kept[-1] != position.segment_base_offset:
        if position.position > 0:
            path = log.directory.file_path(file_stem(position.segment_base_offset) + LOG_SUFFIX)
            raise Corrupt(path, 0, "the active segment of the checkpoint is missing")
        kept.append(position.segment_base_offset)
    log.segments = []
    for base, following in zip(kept, [*kept[1:], None], strict=True):
        segment = log.open_segment(base)
        if following is None:
            segment.open_existing(
                position.position, position.end_offset, sealed=False, trusted=clean
            )
        else:
            segment.open_existing(segment.file.size(), following, sealed=True, trusted=True)
        log.segments.append(segment)
    log.active = log.segments[-1]
    sealed_bytes = log.sealed_bytes(position.log_start_offset)
    if position.sealed_bytes not in (-1, sealed_bytes):
        reason = f"its sealed segments hold {sealed_bytes} bytes, not {position.sealed_bytes}"
        raise Corrupt(log.directory.path, 0, reason)


def _drop_if_later(log: PartitionLog, name: str, position: PartitionCheckpoint) -> None:
    """Segments born after the checkpoint go; so do snapshots of a state after it."""
    is_snapshot = name.endswith(SNAPSHOT_SUFFIX)
    if not is_snapshot or int(name[:_STEM_DIGITS]) > position.end_offset:
        log.directory.unlink(name)


def _read_leader_epochs(log: PartitionLog) -> list[tuple[int, int]]:
    try:
        data = log.directory.file_system.read_file(log.directory.file_path(LEADER_EPOCH_CHECKPOINT))
        epochs = decode_leader_epochs(data)
    except (FileNotFoundError, CorruptFile):
        epochs = []
    if not epochs or epochs[0][1] > log.segments[0].base_offset:
        epochs = _epochs_in_batches(log)
    return [(epoch, start) for epoch, start in epochs if start < log.next_offset]


def _epochs_in_batches(log: PartitionLog) -> list[tuple[int, int]]:
    """The epochs as the batches themselves tell them (the file is derived, D7)."""
    epochs: list[tuple[int, int]] = []
    for segment in log.segments:
        for _, header, _ in segment.scan_checked(0):
            if not epochs or epochs[-1][0] != header.partition_leader_epoch:
                epochs.append((header.partition_leader_epoch, header.base_offset))
    return epochs


def _load_producers(
    log: PartitionLog, position: PartitionCheckpoint, names: list[str], *, clean: bool
) -> None:
    """Producer state from the newest snapshot that can be relied on, and the batches after it.

    The replay also finds the aborted transactions again of every segment whose list is damaged or,
    after a crash, may be torn (D7): those of the active segment.
    """
    limit = position.snapshot_offset if clean else log.active.base_offset
    if not _load_transactions(log, position, names, clean=clean):
        limit = log.segments[0].base_offset
        for segment in log.segments:
            segment.reset_transactions()
    offset = _load_snapshot(log, position, names, limit)
    log.snapshot_offset = offset
    for segment in log.segments[log.segment_at(offset) :]:
        if not segment.sealed and not segment.has_producers:
            continue
        start = segment.index.offsets.lookup(offset)
        # After a crash the active segment's checksums have just been looked at.
        scan = segment.scan_checked if segment.sealed else segment.scan
        for _, header, batch in scan(start):
            if header.base_offset >= offset and header.producer_id >= 0:
                log.replay_producer(segment, header, batch)


def _load_transactions(
    log: PartitionLog, position: PartitionCheckpoint, names: list[str], *, clean: bool
) -> bool:
    """Read the lists of aborted transactions; False where they are not what they were."""
    listed = {name[:_STEM_DIGITS] for name in names if name.endswith(TRANSACTION_INDEX_SUFFIX)}
    for segment in log.segments:
        if segment is log.active and not clean:
            break
        if segment.stem in listed and not segment.load_transactions():
            return False
    actual = log.aborted_checksum(position.log_start_offset)
    return position.aborted_checksum in (-1, actual)


def _load_snapshot(
    log: PartitionLog, position: PartitionCheckpoint, names: list[str], limit: int
) -> int:
    """Load the newest good snapshot at or before ``limit``; answers its offset.

    Without one the state is empty, as it was at the start of the first segment.
    """
    start_offset = log.segments[0].base_offset
    offsets = sorted(
        (int(name[:_STEM_DIGITS]) for name in names if name.endswith(SNAPSHOT_SUFFIX)),
        reverse=True,
    )
    # Those that are not loaded are removed by the next checkpoint, like any superseded one.
    log.snapshot_offsets.update(offset for offset in offsets if offset <= position.end_offset)
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


def _finish(log: PartitionLog) -> None:
    """Everything recovered is durable in the journal or before it: show it."""
    log.high_watermark = log.next_offset
    log.drop_segments_below_start()
    log.start_counting()


def _highest_epoch(store: LogStore) -> int:
    """The highest epoch of a leader, or of a coordinator in a marker that still fences (D6)."""
    logs = store.logs.values()
    leaders = (log.leader_epochs[-1][0] for log in logs if log.leader_epochs)
    coordinators = (entry.coordinator_epoch for log in logs for entry in log.producers.entries())
    believable = (epoch for epoch in coordinators if epoch < _FORCED_EPOCH)
    return max(chain(leaders, believable), default=-1)


class _Replayer:
    """Applies journal groups to the logs and writes the segments as it goes."""

    def __init__(self, store: LogStore) -> None:
        self._store = store
        self.groups = 0
        self.batches = 0

    def replay(self, entries: list[Entry]) -> None:
        """Apply one on-disk group. What the checkpoint already covers is passed over."""
        group = CommitGroup()
        for entry in entries:
            log = self._store.logs.get(entry.partition_id)
            if log is None:
                continue  # The topic was deleted later on; ids are never used again.
            if entry.kind == KIND_BATCHES:
                self._replay_batches(group, log, entry)
            elif entry.kind == KIND_LOG_START:
                log.log_start_offset = max(log.log_start_offset, entry.base_offset)
        apply_operations(group.operations)
        for member, end in group.ends.items():
            member.written_up_to(end)
        self.groups += 1

    def _replay_batches(self, group: CommitGroup, log: PartitionLog, entry: Entry) -> None:
        if entry.next_offset <= log.next_offset:
            return
        if entry.base_offset != log.next_offset:
            raise Corrupt(
                log.directory.path,
                log.active.size_bytes,
                f"the journal goes on at offset {entry.base_offset}, "
                f"the log ends at {log.next_offset}",
            )
        for position, header in iterate_batches(entry.body):
            log.replay(group, entry.body[position : position + header.size], header)
            self.batches += 1
