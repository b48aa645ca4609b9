"""The work of one checkpoint: syncs of segments and directories, then the checkpoint file."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from barnabas.storage.journal.committer import until_there_is_room
from barnabas.storage.journal.journal import CommitGroup, Operation
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

if TYPE_CHECKING:
    from barnabas.storage.store.log_store import LogStore

CHECKPOINT_NAMES: Final = ("barnabas-checkpoint-0", "barnabas-checkpoint-1")
LOG_START_CHECKPOINT: Final = "log-start-offset-checkpoint"
CLEANER_CHECKPOINT: Final = "cleaner-offset-checkpoint"


def checkpoint_of(log: PartitionLog) -> PartitionCheckpoint:
    """Return the state of ``log`` after everything appended so far became durable."""
    log_start_offset = max(log.log_start_offset, log.journaled_start_offset)
    return PartitionCheckpoint(
        log.partition_id,
        log.active.base_offset,
        log.next_offset,
        log.active.size_bytes,
        log_start_offset,
        log.snapshot_offset,
        log.aborted_checksum(log_start_offset),
        log.sealed_bytes(log_start_offset),
        log.cleaning.clean_offset,
        log.cleaning.compacted_offset,
    )


class CheckpointWork:
    """One checkpoint: prepared on the loop, started on the segment thread, synced on its own."""

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
        self.last_group: CommitGroup | None = None
        """Replay starts with it. The group knows this work, too: they part when it begins."""
        self._sequence = 0
        self._written: list[tuple[LogDirectory, set[str]]] = []

    def begin(self) -> None:
        """Start the syncs, on the segment thread, after all writes of the checkpoint."""
        group, self.last_group = self.last_group, None
        assert group is not None
        self._sequence = group.sequence
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
