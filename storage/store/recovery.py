"""Recovery of the logs from the files that a crash or a clean stop left on disk.

Rules of this file:

1. A kill and a power loss take the same path (D2). The newest valid checkpoint has the durable
   length of each active segment. Recovery truncates the segment there, drops newer segments, and
   replays all of that from the journal.
2. The journal ends at its first unreadable group; a readable group behind that one means damage,
   and the broker refuses to start (D7).
3. Recovering twice changes nothing (D3): nothing is removed before the checkpoint at the end that
   the same journal could not give back.
4. Before recovery changes anything, it reads the needed part of the journal once and checks every
   directory. If it refuses the start, the data directory stays as it was.
5. The MetaStore decides which partitions exist, not the disk: directories of deleted topics are
   removed, partitions without a directory get one. A directory that belongs to no topic, not even
   a deleted one, shows that the MetaStore is from another data directory: nothing is changed then.
   Directories without a partition's name (``lost+found``, Kafka's ``-stray``) are ignored.
"""

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Final

from barnabas.protocol.records import iterate_batches
from barnabas.storage.errors import Corrupt, StrayDirectory
from barnabas.storage.files.directory_names import DELETED_SUFFIX
from barnabas.storage.files.file_system import FileSystem
from barnabas.storage.journal.committer import apply_operations
from barnabas.storage.journal.journal import CommitGroup
from barnabas.storage.journal.journal_files import JournalFiles
from barnabas.storage.journal.journal_format import KIND_BATCHES, KIND_LOG_START, Entry
from barnabas.storage.log.checkpoint import Checkpoint, SegmentSwap, newest_checkpoint
from barnabas.storage.log.log_directory import is_partition_directory, is_removable, remove_tree
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log.replay import replay_batch
from barnabas.storage.repair.salvage import Salvage
from barnabas.storage.store.checkpoint_work import CHECKPOINT_NAMES
from barnabas.storage.store.log_store import LOCK_NAME, LogStore
from barnabas.storage.store.partition_recovery import open_log
from barnabas.storage.store.store_parts import PartitionSpec

_FORCED_EPOCH: Final = 1 << 30
"""An epoch that no coordinator reaches. A marker that an operator writes manually may have it; the
epochs of batches end at 2^31."""


@dataclass(frozen=True, slots=True)
class RecoveryReport:
    """The findings and changes of a start."""

    clean: bool
    partitions: int
    journal_groups: int
    batches_replayed: int
    directories_removed: int
    is_first: bool
    """Whether the directory was empty, so that no process can have ended in it."""
    passed_over: tuple[str, ...] = ()
    """Names of the directories that hold no partition of this broker; nothing was changed there."""

    @property
    def found(self) -> str:
        """Description of the previous process's end, for operators."""
        if self.is_first:
            return "in an empty directory"
        return "after an orderly end" if self.clean else "after a crash"


@dataclass(slots=True)
class RecoveryProgress:
    """The progress of a start."""

    partitions: int
    opened: int = 0
    """The number of open partitions."""
    batches: int = 0
    """The number of batches replayed from the journal so far."""
    is_verifying: bool = False
    """Whether the journal is being read before anything is changed."""
    verified_bytes: int = 0
    journal_bytes: int = 0
    """Size of the journal's files, the most that has to be verified."""

    def describe(self) -> str:
        """Return the current step with its progress and its total."""
        if self.is_verifying:
            return f"{self.verified_bytes} of at most {self.journal_bytes} bytes of journal checked"
        opened = f"{self.opened} of {self.partitions} partitions open"
        return f"{opened}, {self.batches} batches of the journal replayed"


def lock_directory(store: LogStore) -> None:
    """Lock the data directory for this process. Raises AlreadyLocked."""
    _make_root(store.file_system, store.root)
    store.lock = store.file_system.lock(store.file_system.join(store.root, LOCK_NAME))


def _make_root(file_system: FileSystem, root: str) -> None:
    """Create a missing data directory, and sync its parents so that it survives a power loss."""
    path, made = root.rstrip("/"), []
    while path not in {"", "."} and not file_system.exists(path):
        made.append(path)
        path = path.rpartition("/")[0]
    if made:
        file_system.make_directory(root, exist_ok=True)
    for path in made:
        file_system.sync_directory(path.rpartition("/")[0] or ("/" if path[0] == "/" else "."))


def refuse_partitions(file_system: FileSystem, root: str) -> None:
    """Raise StrayDirectory if partitions exist in a directory without topics.

    ``open_store`` raises the same, but by then an empty store has replaced the missing metadata.
    """
    for name in file_system.list_directory(root):
        path = file_system.join(root, name)
        if file_system.is_directory(path) and is_partition_directory(file_system, root, name):
            raise StrayDirectory(path)


def open_store(
    store: LogStore,
    specs: Iterable[PartitionSpec],
    *,
    leader_epoch: int,
    removable: Container[str] | None = None,
    deleted_ids: Container[int] | None = None,
    on_progress: Callable[[RecoveryProgress], None] = lambda _progress: None,
    salvage: Salvage | None = None,
) -> RecoveryReport:
    """Recover every partition of ``specs`` and start the journal.

    The caller makes a checkpoint and appends nothing before that is durable.

    ``leader_epoch`` is this boot's; it is raised above every epoch found on disk (D6).
    ``removable`` names the directories that deleted topics may have left; ``None`` allows any.
    ``deleted_ids`` are the partition ids of those topics, or ``None`` if they are unknown.
    ``on_progress`` is called repeatedly with the same object; its exceptions end the recovery, and
    the next recovery starts from the beginning. Raises Corrupt if durable data is unreadable, and
    StrayDirectory if a directory belongs to no partition. With ``salvage`` the readable part of a
    damaged log is opened, and ``salvage`` records the rest.
    """
    file_system, root = store.file_system, store.root
    checkpoint = _read_checkpoint(file_system, root)
    store.generation = checkpoint.generation
    files = JournalFiles(file_system, root, store.settings.journal_file_bytes)
    # A clean stop's checkpoint may be all that is left of two: then a later run has appended.
    clean = checkpoint.clean and not files.reaches(checkpoint.journal_sequence)
    # The broker writes the first checkpoint before the first append, after the first journal file.
    is_first = checkpoint.generation == 0 and files.size_bytes == 0
    wanted = {spec.directory_name: spec for spec in specs}
    progress = RecoveryProgress(len(wanted), journal_bytes=files.size_bytes)
    if not clean:
        path = file_system.join(root, CHECKPOINT_NAMES[0])
        progress.is_verifying = True
        _verify_journal(path, checkpoint, files, salvage, partial(_verified, progress, on_progress))
        progress.is_verifying = False
    store.leader_epoch = leader_epoch  # What is damaged is judged by it.
    present = file_system.list_directory(root)
    doomed, passed_over = _to_remove(store, present, wanted, removable)
    for name in doomed:
        remove_tree(file_system, file_system.join(root, name))
    # Before the first checkpoint nothing is appended.
    may_be_new = checkpoint.generation > 0 and not (
        clean or _names_a_stranger(checkpoint, wanted.values(), deleted_ids)
    )
    _open_logs(
        store,
        checkpoint,
        wanted,
        set(present),
        clean=clean,
        may_be_new=may_be_new,
        on_opened=partial(_opened, progress, on_progress),
        salvage=salvage,
    )
    replayer = _Replayer(store, progress)
    if clean:
        files.next_sequence = checkpoint.journal_sequence
    else:
        for _, entries in files.replay(checkpoint.journal_sequence):
            replayer.replay(entries)
            on_progress(progress)
    for log in store.logs.values():
        _finish(log)
    store.leader_epoch = max(leader_epoch, 1 + _highest_epoch(store))
    for spec in wanted.values():
        store.logs[spec.partition_id].leader_epoch = store.epoch_of(spec)
    files.start(files.next_sequence)
    store.start(files)
    return RecoveryReport(
        clean,
        len(store.logs),
        replayer.groups,
        progress.batches,
        len(doomed),
        is_first,
        tuple(passed_over),
    )


def _open_logs(
    store: LogStore,
    checkpoint: Checkpoint,
    wanted: Mapping[str, PartitionSpec],
    present: Container[str],
    *,
    clean: bool,
    may_be_new: bool,
    on_opened: Callable[[], None],
    salvage: Salvage | None,
) -> None:
    """Open the logs ``wanted``; ``present`` are the names in the data directory."""
    positions = {entry.partition_id: entry for entry in checkpoint.partitions}
    swaps: defaultdict[int, list[SegmentSwap]] = defaultdict(list)
    for swap in checkpoint.swaps:
        swaps[swap.partition_id].append(swap)
    for name, spec in wanted.items():
        log = store.new_log(spec)
        position = positions.get(spec.partition_id)
        if salvage is not None and salvage.journal_loss is not None:
            salvage.note_reach(log, position)
        if name in present or (position is not None and position.end_offset > 0):
            mine = swaps.get(spec.partition_id, ())
            open_log(log, position, mine, clean=clean, may_be_new=may_be_new, salvage=salvage)
        store.logs[spec.partition_id] = log
        on_opened()


def _opened(progress: RecoveryProgress, on_progress: Callable[[RecoveryProgress], None]) -> None:
    progress.opened += 1
    on_progress(progress)


def _verified(
    progress: RecoveryProgress, on_progress: Callable[[RecoveryProgress], None], group_bytes: int
) -> None:
    progress.verified_bytes += group_bytes
    on_progress(progress)


def _verify_journal(
    path: str,
    checkpoint: Checkpoint,
    files: JournalFiles,
    salvage: Salvage | None,
    on_verified: Callable[[int], None],
) -> None:
    """Raise Corrupt if the journal lacks acknowledged commit groups since ``checkpoint``.

    With ``salvage`` the journal ends at the first group that cannot be read. All logs are then in
    the state of one moment, as after a crash, unless that group was placed while the checkpoint was
    prepared: logs of its later turns keep what follows it. ``on_verified`` is called with the bytes
    of each group.
    """
    if checkpoint.generation == 0 and files.reaches(1):
        raise Corrupt(path, 0, "both checkpoint files are missing, yet there is a journal")
    try:
        for group_bytes in files.verify(checkpoint.journal_sequence, marked=checkpoint.marked):
            on_verified(group_bytes)
    except Corrupt as error:
        if salvage is None:
            raise
        salvage.journal_loss = files.give_up_end(checkpoint.journal_sequence, str(error))


def _names_a_stranger(
    checkpoint: Checkpoint, specs: Iterable[PartitionSpec], deleted_ids: Container[int] | None
) -> bool:
    """Return whether the checkpoint has a partition of no topic, not even a deleted one."""
    if deleted_ids is None:
        return False
    living = {spec.partition_id for spec in specs}
    return any(
        entry.partition_id not in living and entry.partition_id not in deleted_ids
        for entry in checkpoint.partitions
    )


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


def _to_remove(
    store: LogStore,
    present: Iterable[str],
    wanted: Container[str],
    removable: Container[str] | None,
) -> tuple[list[str], list[str]]:
    """Return the directories of deleted topics, and those to ignore.

    Raises StrayDirectory for a partition of no topic. Nothing is changed.
    """
    file_system, root = store.file_system, store.root
    doomed, passed_over = [], []
    for name in present:
        if name in wanted or not file_system.is_directory(file_system.join(root, name)):
            continue
        if is_removable(file_system, root, name, DELETED_SUFFIX):
            doomed.append(name)
        elif not is_partition_directory(file_system, root, name):
            passed_over.append(name)
        elif removable is None or name in removable:
            doomed.append(name)
        else:
            raise StrayDirectory(file_system.join(root, name))
    return doomed, passed_over


def _finish(log: PartitionLog) -> None:
    """Make all recovered batches visible: they are durable."""
    log.high_watermark = log.next_offset
    log.drop_segments_below_start()
    log.start_counting()


def _highest_epoch(store: LogStore) -> int:
    """Return the highest epoch of a leader, or of a coordinator that still fences (D6)."""
    logs = store.logs.values()
    leaders = (log.leader_epochs[-1][0] for log in logs if log.leader_epochs)
    coordinators = (entry.coordinator_epoch for log in logs for entry in log.producers.entries())
    believable = (epoch for epoch in coordinators if epoch < _FORCED_EPOCH)
    return max(chain(leaders, believable), default=-1)


class _Replayer:
    """Applies journal groups to the logs and writes the segments as it goes."""

    def __init__(self, store: LogStore, progress: RecoveryProgress) -> None:
        self._store = store
        self._progress = progress
        self.groups = 0

    def replay(self, entries: list[Entry]) -> None:
        """Apply one commit group, except the part that the checkpoint covers."""
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
                f"the journal continues at offset {entry.base_offset}, "
                f"the log ends at {log.next_offset}",
            )
        for position, header in iterate_batches(entry.body):
            replay_batch(log, group, entry.body[position : position + header.size], header)
            self._progress.batches += 1
