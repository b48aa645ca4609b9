"""The work of one checkpoint: the state of each log, syncs of what it wrote, then the file.

Rules of this file:

1. The loop prepares the logs one after the other and returns to its other work between them: a turn
   has an effort of ``StoreSettings.checkpoint_turn_effort`` at most, however many logs exist.
2. Replay starts with the group that was open when the first log was prepared, so no journal file
   with that group or a later one is recycled (D11). Logs that are prepared later stand farther:
   replay passes over the entries that they have already. A log that is created meanwhile is not in
   the checkpoint; all of it is in these groups. One that is deleted meanwhile is left out.
3. The last group follows the preparation of all logs. The syncs start once it is in the segments,
   so the journal is durable at least as far as any log in the checkpoint stands (D2).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from barnabas.storage.journal.committer import until_there_is_room
from barnabas.storage.journal.journal import CommitGroup, Operation
from barnabas.storage.log import segment_swap
from barnabas.storage.log.checkpoint import (
    Checkpoint,
    PartitionCheckpoint,
    SegmentSwap,
    encode_checkpoint,
    encode_offset_checkpoint,
)
from barnabas.storage.log.log_directory import LogDirectory
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log.segment import Segment
from barnabas.storage.log.segment_swap import PendingSwap
from barnabas.storage.store.log_position import checkpoint_of

if TYPE_CHECKING:
    from barnabas.storage.store.log_store import LogStore

CHECKPOINT_NAMES: Final = ("barnabas-checkpoint-0", "barnabas-checkpoint-1")
LOG_START_CHECKPOINT: Final = "log-start-offset-checkpoint"
CLEANER_CHECKPOINT: Final = "cleaner-offset-checkpoint"

_SNAPSHOT_EVERY_BATCHES: Final = 1000


class CheckpointWork:
    """One checkpoint: prepared on the loop, in turns; synced and written on a thread of its own."""

    def __init__(self, store: LogStore, *, clean: bool) -> None:
        self._store = store
        self._clean = clean
        store.generation += 1
        self._generation = store.generation
        self.segments: list[Segment] = []
        self.logs: list[PartitionLog] = []
        """Logs belong to the loop. Other threads read only their names and directories."""
        self.obsolete: list[Operation] = []
        self.partitions: list[PartitionCheckpoint] = []
        self.swaps: list[SegmentSwap] = []
        self._unprepared = iter(list(store.logs.values()))
        self._first_group: CommitGroup | None = None
        """The group that replay starts with, until its sequence is known. The group refers to this
        work, too."""
        self._sequence = 0
        self._written: list[tuple[LogDirectory, set[str]]] = []

    def start(self) -> None:
        """Start on the loop: prepare the first logs, and schedule the others."""
        journal = self._store.journal
        journal.flush()
        group = self._first_group = journal.group_for(0)
        group.operations.append(self._take_sequence)
        self._prepare_some()

    def _prepare_some(self) -> None:
        """Prepare logs for one turn of the loop; after the last log, submit the last group."""
        store = self._store
        if not store.is_writing:
            return
        effort = 0
        for log in self._unprepared:
            if store.logs.get(log.partition_id) is not log:
                continue  # Deleted, or led by another broker, since the first turn.
            effort += self._prepare(log)
            if effort >= store.settings.checkpoint_turn_effort:
                store.engine.schedule(self._prepare_some)
                return
        group = store.journal.group_for(0)
        group.operations.append(self._begin_syncs)
        group.awaited = True
        store.journal.flush()

    def _prepare(self, log: PartitionLog) -> int:
        """Queue the remaining writes of ``log`` and record its state; return the effort."""
        effort = len(log.segments)
        if self._store.files is not None:
            effort += self._write_derived(log)
        self.segments += log.take_dirty_segments()
        self.logs.append(log)
        for pending in log.cleaning.take_pending():
            self.swaps.append(pending.swap)
            self.obsolete.append(partial(self._finish_swap, log, pending))
        self.obsolete += [segment.remove for segment in log.take_dropped_segments()]
        local = (segment for segment in log.segments if isinstance(segment, Segment))
        for name in log.snapshots.take_superseded(local):
            self.obsolete.append(partial(log.directory.unlink, name))
        self.partitions.append(checkpoint_of(log))
        return effort

    def _write_derived(self, log: PartitionLog) -> int:
        """Queue writes of derived files, which save work at the next start; return the effort."""
        effort, journal = 0, self._store.journal
        wanted = 1 if self._clean else _SNAPSHOT_EVERY_BATCHES
        if log.snapshots.batches_since >= wanted:
            journal.add_operation(log.snapshot_operation())
            effort = len(log.producers)
        if self._clean and log.active.awaits_last_indexes:
            # After a crash the next start would not read them.
            journal.add_operation(log.active.index_operation())
        return effort

    def _finish_swap(self, log: PartitionLog, pending: PendingSwap) -> None:
        """Give a cleaned segment's files their final names. Runs on the segment thread."""
        segment_swap.finish(pending.swap, log.directory)
        self._store.engine.call(partial(log.cleaning.finished, pending))

    def _take_sequence(self) -> None:
        """Record the first commit group of a replay, on the segment thread."""
        group, self._first_group = self._first_group, None
        assert group is not None
        self._sequence = group.sequence

    def _begin_syncs(self) -> None:
        """Start the syncs, on the segment thread, after all writes of the checkpoint."""
        self._written = [(log.directory, log.directory.take_written()) for log in self.logs]
        if self._store.files is None:
            self._report()  # No start will read these files.
        else:
            self._store.engine.run_aside(self._run)

    def _report(self) -> None:
        done = partial(self._store.checkpoint_is_durable, self._sequence, self.obsolete)
        self._store.engine.call(done)

    def _run(self) -> None:
        try:
            self._sync()
            until_there_is_room(self._write, self._store)
        except BaseException as error:  # noqa: BLE001  A checkpoint that fails ends the process (D9).
            self._store.failed(error)
        else:
            self._report()

    def _sync(self) -> None:
        written = [(directory, names) for directory, names in self._written if names]
        count = len(self.segments) + sum(1 + len(names) for _, names in written)
        store = self._store
        store.synced, store.to_sync = 0, count
        device = store.device
        if device is not None and count > store.settings.synced_alone_max:
            device.sync()
        else:
            for segment in self.segments:
                segment.sync()
                store.synced += 1
            for directory, names in written:
                directory.sync(names)
                store.synced += 1 + len(names)
            store.file_system.sync_directory(store.root)
        if store.files is not None:
            store.files.sync_mark()

    def _write(self) -> None:
        file_system, root = self._store.file_system, self._store.root
        checkpoint = Checkpoint(
            self._generation, self._sequence, self.partitions, self._clean, self.swaps
        )
        path = file_system.join(root, CHECKPOINT_NAMES[self._generation % 2])
        file_system.write_file_atomically(path, encode_checkpoint(checkpoint))
        # For Apache Kafka's eyes: what it looks for when it opens this directory.
        for name, offsets in (
            (LOG_START_CHECKPOINT, self._log_starts()),
            (CLEANER_CHECKPOINT, self._clean_offsets()),
        ):
            if self._store.offsets_written.get(name) != offsets:
                path = file_system.join(root, name)
                file_system.write_file_atomically(path, encode_offset_checkpoint(offsets))
                self._store.offsets_written[name] = offsets

    def _log_starts(self) -> dict[tuple[str, int], int]:
        return {
            (log.topic, log.partition): at.log_start_offset
            for log, at in zip(self.logs, self.partitions, strict=True)
        }

    def _clean_offsets(self) -> dict[tuple[str, int], int]:
        return {
            (log.topic, log.partition): at.clean_offset
            for log, at in zip(self.logs, self.partitions, strict=True)
            if at.clean_offset
        }
