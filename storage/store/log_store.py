"""All logs of one data directory: the journal behind them, their checkpoints, begin and end.

Rules of this file:

1. Only the loop calls it. The storage threads and the checkpoint's thread report through
   ``Engine.call``, which brings their callbacks back to the loop.
2. A checkpoint says: up to here the segment files alone are the truth, from this journal sequence
   on the journal is. It is written only after everything that it vouches for was synced; only then
   are older journal files recycled. Preparing it takes several turns (``checkpoint_work.py``).
3. In a cluster a flush may be refused, or the session lost. Every log of which something was
   placed and is not durable is forgotten as a whole, and its files with it; it comes back by
   ``load``, here or elsewhere. A checkpoint vouches for nothing then, and nothing is synced: it
   waits for what was placed, and has the files removed that no log needs any more.
4. Whatever goes wrong in a thread is final (D9): ``on_fatal`` is called once, nothing is answered.
"""

from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Final

from barnabas.storage.counts import Histogram
from barnabas.storage.files.file_system import Device, FileSystem, Lock
from barnabas.storage.files.open_files import OpenFiles
from barnabas.storage.journal.committer import (
    Committer,
    JournalCommitter,
)
from barnabas.storage.journal.journal import CommitGroup, Journal, Operation, StoredBatches
from barnabas.storage.journal.journal_files import JournalFiles
from barnabas.storage.journal.refusal import Refusal
from barnabas.storage.log.config import LogConfig
from barnabas.storage.log.log_directory import LogDirectory
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.replicated.loading import DurableLog, fill
from barnabas.storage.store.checkpoint_work import CheckpointWork
from barnabas.storage.store.store_parts import (
    Engine,
    PartitionSpec,
    Runner,
    StoreCallbacks,
    StoreSettings,
)

LOCK_NAME: Final = "barnabas-lock"


class LogStore:
    """The logs of one data directory by partition id."""

    def __init__(
        self,
        file_system: FileSystem,
        root: str,
        *,
        engine: Engine,
        now_ms: Callable[[], int],
        settings: StoreSettings | None = None,
        callbacks: StoreCallbacks | None = None,
    ) -> None:
        """Nothing is touched before ``barnabas.storage.store.recovery.open_store``."""
        self.file_system = file_system
        self.root = root
        self.settings = settings or StoreSettings()
        self.callbacks = callbacks or StoreCallbacks()
        self.now_ms = now_ms
        self.engine = engine
        self.full = False
        self.exhausted = False
        self.open_files = OpenFiles(self.settings.open_files_max)
        self._waiting_for_room = 0
        self._reserve_is_touched = False
        self._free_bytes = self._needed_bytes = 0
        self.leader_epoch = 0
        self.logs: dict[int, PartitionLog] = {}
        self.generation = 0
        self.offsets_written: dict[str, dict[tuple[str, int], int]] = {}
        """What Kafka's checkpoint files say, by name, as far as this process has written them."""
        self.lock: Lock | None = None
        self.files: JournalFiles | None = None
        self.device: Device | None = None
        self.flush_times = Histogram()
        """How long one write to the journal took until it was durable, in nanoseconds."""
        self.flush_batches = Histogram(shift=0)
        """How many batches it made durable."""
        self.visible_offsets = self.visible_bytes = 0
        """What was appended to all logs and became visible; recovery's part is in it."""
        self.duplicates = 0
        """Batches of all logs that were there already, those of deleted logs too."""
        self._runner: Runner | None = None
        self._throttled = False
        self._backlogged = False
        self.is_closing = False
        """Whether the last checkpoint has begun."""
        self.synced = 0
        """How many of ``to_sync`` files and directories the checkpoint under way has synced."""
        self.to_sync = 0
        self._checkpointing = False
        self._has_checkpoint = False
        self._journal_seen_bytes = 0
        self._checkpoint_due_bytes = 0
        self._checkpoint_due_batches = 0
        self._after_checkpoint: list[Callable[[], None]] = []
        self._when_written: dict[PartitionLog, Callable[[], None]] = {}
        """Who waits for logs that were loaded to be in their segments."""
        self._failed = False
        self.journal = Journal(
            submit=self._submit,
            schedule=engine.schedule,
            backlog_max_bytes=self.settings.backlog_max_bytes,
            on_backlogged=self._on_backlogged,
        )

    def on_advanced(self, log: PartitionLog, count: int, size_bytes: int) -> None:
        """A log's visible end moved over ``count`` offsets and their bytes (0: its start moved)."""
        self.visible_offsets += count
        self.visible_bytes += size_bytes
        self.callbacks.on_advanced(log, size_bytes)

    def on_suspected(self, log: PartitionLog, base_offset: int, error: Exception) -> None:
        """Reading the segment at ``base_offset`` failed: the scrubber should look what is wrong."""
        self.callbacks.on_suspected(log, base_offset, error)

    def _on_backlogged(self, backlogged: bool) -> None:  # noqa: FBT001  The journal calls it.
        self._backlogged = backlogged
        self._throttle()

    def _throttle(self) -> None:
        """Hold appenders back while too much waits for the journal, or for a checkpoint."""
        files = self.files
        over_budget = (
            files is not None
            and files.recyclable
            and files.used_bytes > self.settings.journal_max_bytes
        )
        throttled = self._backlogged or over_budget
        if throttled != self._throttled:
            self._throttled = throttled
            self.callbacks.on_backlogged(throttled)

    def _submit(self, group: CommitGroup, *, alone: bool) -> None:
        if self._failed:
            return  # It would take the place of what failed (D9).
        assert self._runner is not None, "the store is not started"
        # A start after a crash here would find this group behind the gap of the former run.
        assert self._has_checkpoint or not group.entry_count, "append before the first checkpoint"
        try:
            durable = alone and self._runner.commit_inline(group, partial(self._prepare_answers, 1))
        except BaseException as error:  # noqa: BLE001  Any failure here ends the process (D9).
            self._fail(error)
            return
        if durable:
            self._tell_durable(1)
        else:
            self._runner.submit(group)

    def _prepare_answers(self, groups: int) -> None:
        """Show the oldest groups in flight and make all answers to them ready; readers' first.

        A record's way to its reader adds to that of every step of a pipeline; its producer learns
        of it a little later (45 us won, 65 us lost, measured in pairs on an idle broker).
        """
        self.journal.advance_high_watermarks(groups)
        self.callbacks.on_visible()
        self.journal.prepare_answers(groups)

    def start_on(self, committer: Committer) -> None:
        """Begin to commit by one that keeps nothing in this directory: logs are loaded."""
        self._has_checkpoint = True  # There is nothing that one would have to speak of.
        self._runner = self.engine.start_committer(committer, self)

    def start(self, files: JournalFiles) -> None:
        """Begin to commit. Recovery has run; ``files`` is at the start of a new run of groups."""
        self.files = files
        self.device = self.file_system.open_device(self.root)
        committer = JournalCommitter(files, self, self.flush_times, self.flush_batches)
        self._runner = self.engine.start_committer(committer, self)

    # Partitions

    def new_log(self, spec: PartitionSpec) -> PartitionLog:
        """An empty log for ``spec``, not yet known to the store."""
        directory = LogDirectory(
            self.file_system, self.root, spec.directory_name, spec.topic_id, self.open_files
        )
        return PartitionLog(
            self,
            directory,
            partition_id=spec.partition_id,
            topic=spec.topic,
            partition=spec.partition,
            config=spec.config,
            leader_epoch=self.epoch_of(spec),
        )

    def epoch_of(self, spec: PartitionSpec) -> int:
        """The epoch in which a partition is led here."""
        return self.leader_epoch if spec.leader_epoch is None else spec.leader_epoch

    def create(
        self,
        partition_id: int,
        topic: str,
        partition: int,
        topic_id: bytes,
        config: LogConfig,
        leader_epoch: int | None = None,
    ) -> PartitionLog:
        """Add an empty partition; its directory comes with its first record.

        ``leader_epoch`` None: that of this boot.
        """
        assert partition_id not in self.logs
        spec = PartitionSpec(partition_id, topic, partition, topic_id, config, leader_epoch)
        log = self.new_log(spec)
        self.logs[partition_id] = log
        return log

    def load(self, spec: PartitionSpec, durable: DurableLog) -> PartitionLog:
        """Open a partition that the store does not have, from what is durable of it elsewhere.

        Its files are written behind the removal of those that a forgotten log had. Where a group is
        refused before that is done, this log is forgotten too.
        """
        log, writes = self.filled(spec, durable)
        self.take_in(log, writes)
        return log

    def filled(self, spec: PartitionSpec, durable: DurableLog) -> tuple[PartitionLog, CommitGroup]:
        """``load`` up to where the store learns of it, for ``take_in``: on any thread.

        It takes long where the log is long. Raises LedSince.
        """
        log = self.new_log(spec)
        writes = CommitGroup()
        fill(log, durable, writes)
        return log, writes

    def take_in(self, log: PartitionLog, writes: CommitGroup) -> None:
        """Have a log that was ``filled``, and have it written to its segments."""
        assert log.partition_id not in self.logs
        group = self.journal.group_for(0)
        group.operations += writes.operations
        group.ends.update(writes.ends)
        self.logs[log.partition_id] = log

    def when_written(self, log: PartitionLog, then: Callable[[], None]) -> None:
        """Call ``then`` once all of a log is in its segments, or never if it is gone before."""
        if log.unflushed:
            self._when_written[log] = then
        else:
            then()

    def delete(self, partition_id: int) -> None:
        """Forget a partition; its directory goes on the segment thread, after what it still has."""
        self._let_go(partition_id).close()

    def release(self, partition_id: int) -> None:
        """Close a partition that is led here no more; its files go as with ``delete``.

        What of it is on its way to be durable may still become so, and who waits is told.
        """
        self._let_go(partition_id).forget()

    def _let_go(self, partition_id: int) -> PartitionLog:
        log = self.logs.pop(partition_id)
        self._when_written.pop(log, None)
        self._remove_files(log)
        return log

    def _remove_files(self, log: PartitionLog) -> None:
        self.journal.add_operation(log.directory.remove)
        for segment in (*log.segments, *log.dropped_segments):
            # The disk gets room when no reader holds the file.
            self.journal.add_operation(segment.remove)

    def get(self, partition_id: int) -> PartitionLog:
        """The log of a partition; KeyError if it was deleted or never was."""
        return self.logs[partition_id]

    # What the threads report (``committer.Listener``)

    def durable(self, groups: int) -> None:
        """See ``Listener``: forwarded to the loop."""
        self.engine.call(lambda: self._groups_became_durable(groups))

    def written(self, groups: int) -> None:
        """See ``Listener``: forwarded to the loop."""
        self.engine.call(lambda: self._groups_were_written(groups))

    def refused(self, groups: int, partition_ids: Collection[int]) -> None:
        """See ``Listener``: forwarded to the loop."""
        moved = frozenset(partition_ids)
        self.engine.call(lambda: self._drop(groups, moved))

    def lost(self) -> None:
        """See ``Listener``: forwarded to the loop."""
        self.engine.call(lambda: self._drop(None, frozenset()))

    def disk_full(self, *, full: bool) -> None:
        """See ``Listener``: appends are refused while the disk is full, reads go on (D10)."""
        self.engine.call(lambda: self._set_full(full=full))

    def failed(self, error: BaseException) -> None:
        """See ``Listener``: told once."""
        self.engine.call(lambda: self._fail(error))

    def _groups_became_durable(self, groups: int) -> None:
        try:
            self._prepare_answers(groups)
        except BaseException as error:  # noqa: BLE001  A mistake with what is durable ends it too.
            self._fail(error)
        else:
            self._tell_durable(groups)

    def _tell_durable(self, groups: int) -> None:
        self.journal.groups_became_durable(groups)
        self._look_at_journal()

    def _groups_were_written(self, groups: int) -> None:
        self.journal.groups_were_written(groups)
        if self._when_written:
            for log in [log for log in self._when_written if not log.unflushed]:
                self._when_written.pop(log)()

    def _drop(self, groups: int | None, moved: frozenset[int]) -> None:
        """Forget all groups that are not durable, of which the oldest ``groups`` were refused.

        None: the session was lost, and with it every log.
        """
        try:
            assert self.files is None, "a journal in files refuses nothing"
            dropped = self.journal.drop()
            logs = self._logs_in(dropped)
            if groups is None:
                self.callbacks.on_session_lost()
                moved = frozenset(self.logs)
                logs.update(dict.fromkeys(self.logs.values()))
            else:
                assert 0 < groups < len(dropped), "refused what was not submitted"
            forgotten = self._forget(logs, dropped)
            refusal = Refusal(logs)
            for group in dropped:
                group.refuse(refusal)
            self.callbacks.on_forgotten(forgotten, moved)
        except BaseException as error:  # noqa: BLE001  What is in memory is right no more (D9).
            self._fail(error)

    def _logs_in(self, dropped: Iterable[CommitGroup]) -> dict[PartitionLog, None]:
        """The logs with something in ``dropped``, deleted ones too."""
        logs = {log: None for log in self.logs.values() if log.awaits_log_start}
        for group in dropped:
            for member in group.ends:
                assert isinstance(member, PartitionLog)
                logs[member] = None
        return logs

    def _forget(
        self, logs: Iterable[PartitionLog], dropped: Iterable[CommitGroup]
    ) -> list[PartitionLog]:
        """Forget ``logs``; returns those that were not deleted already.

        What ``dropped`` has to do to the files of others is done all the same. Their own
        directories are removed before that: it finds them gone. So are those of deleted logs, whose
        place another one of ``logs`` may have taken.
        """
        forgotten = []
        for log in logs:
            log.forget()
            if self.logs.get(log.partition_id) is log:
                self._let_go(log.partition_id)
                forgotten.append(log)
            else:
                self.journal.add_operation(log.directory.remove)
        for group in dropped:
            for operation in group.operations:
                if not isinstance(operation, StoredBatches):
                    self.journal.add_operation(operation)
        return forgotten

    def _look_at_journal(self) -> None:
        if self.files is not None and (
            self.files.appended_bytes > self._checkpoint_due_bytes
            or self.journal.batches > self._checkpoint_due_batches
        ):
            self._journal_has_grown()

    def _journal_has_grown(self) -> None:
        """Checkpoint once the journal is long enough for what there is to sync."""
        self._throttle()
        if self._checkpointing:
            return
        if self.wants_checkpoint:
            self.checkpoint()
        else:
            self._checkpoint_due_bytes += self.settings.checkpoint_segment_bytes

    def _set_full(self, *, full: bool) -> None:
        self._waiting_for_room += 1 if full else -1
        self.exhausted = self._waiting_for_room > 0
        self.full = self.exhausted or self._reserve_is_touched

    def _fail(self, error: BaseException) -> None:
        if not self._failed:
            self._failed = True
            self.callbacks.on_fatal(error)

    def check_space(self) -> None:
        """Stop accepting appends while the disk has no more than the reserve free (D10)."""
        self._free_bytes = self.file_system.free_bytes(self.root)
        self._needed_bytes = self.settings.reserved_bytes + self.journal.backlog_bytes
        self._reserve_is_touched = self._free_bytes < self._needed_bytes
        self.full = self.exhausted or self._reserve_is_touched
        self._look_for_room()

    @property
    def free_bytes(self) -> int:
        """Room on the disk when it was last looked at."""
        return self._free_bytes

    def describe_space(self) -> str:
        """What the last :meth:`check_space` found: for operators of a full disk."""
        found = f"{self._free_bytes} bytes free, {self._needed_bytes} reserved"
        return f"{found}; a write found no room" if self.exhausted else found

    def _look_for_room(self) -> None:
        """Let the journal try for a spare file: it does with each group, and none comes now."""
        if self.exhausted:
            self.journal.add_operation(lambda: None)

    # Checkpoints

    @property
    def wants_checkpoint(self) -> bool:
        """Whether the journal is long enough for a checkpoint to be worth its syncs.

        Without a journal: whether there is anything to remove.
        """
        files, settings = self.files, self.settings
        if files is None:
            return any(log.dropped_segments for log in self.logs.values())
        if self.journal.batches > self._checkpoint_due_batches:
            return True
        latest_bytes = self._latest_bytes()
        grown_bytes = files.appended_bytes - self._journal_seen_bytes
        if grown_bytes <= min(settings.checkpoint_early_bytes, latest_bytes):
            return False  # However little there is to sync: thousands of logs are not asked.
        dirty = sum(len(log.dirty_segments) for log in self.logs.values())
        due = settings.checkpoint_early_bytes + dirty * settings.checkpoint_segment_bytes
        return grown_bytes > min(due, latest_bytes)

    def checkpoint(self, on_done: Callable[[], None] | None = None, *, clean: bool = False) -> None:
        """Begin a checkpoint of everything appended so far; ``on_done`` runs when it is durable.

        In a cluster: when all that was appended so far is durable, or was refused.
        ``clean``: nothing is appended from now on, so the next start reads no journal. While
        another one is under way this only waits for that one.
        """
        if on_done is not None:
            self._after_checkpoint.append(on_done)
        if self._checkpointing:
            return
        self._checkpointing = True
        self.synced = self.to_sync = 0
        self._expect_next_checkpoint()
        if clean:
            self.is_closing = True
            for log in self.logs.values():
                log.close()
        CheckpointWork(self, clean=clean).start()

    @property
    def is_writing(self) -> bool:
        """Whether groups still reach the storage threads: neither closed nor failed."""
        return self._runner is not None and not self._failed

    @property
    def journal_bytes(self) -> int:
        """How much journal a start would have to read now."""
        return 0 if self.files is None else self.files.used_bytes

    @property
    def is_checkpointing(self) -> bool:
        """Whether a checkpoint is under way."""
        return self._checkpointing

    def checkpoint_is_durable(self, sequence: int, obsolete: list[Operation]) -> None:
        """Recycle the journal before ``sequence``, remove what is ``obsolete``, tell who waits."""
        files = self.files
        self.journal.group_for(0).operations += obsolete
        if files is not None:
            self.journal.add_operation(lambda: self._release(files, sequence))
        self._checkpointing = False
        self._has_checkpoint = True
        waiting, self._after_checkpoint = self._after_checkpoint, []
        for on_done in waiting:
            on_done()

    def _release(self, files: JournalFiles, sequence: int) -> None:
        """On the segment thread: give the files back whose groups the checkpoint covers."""
        files.release(sequence)
        self.engine.call(self._journal_has_shrunk)

    def _journal_has_shrunk(self) -> None:
        self._throttle()
        self._look_for_room()

    def _expect_next_checkpoint(self) -> None:
        """Work out when it is worth looking whether another checkpoint is due.

        Counted from the one that begins now: it may not be able to give any file back.
        """
        settings = self.settings
        files = self.files
        self._journal_seen_bytes = files.appended_bytes if files is not None else 0
        early_bytes = min(settings.checkpoint_early_bytes, self._latest_bytes())
        self._checkpoint_due_bytes = self._journal_seen_bytes + early_bytes
        self._checkpoint_due_batches = self.journal.batches + settings.checkpoint_batches

    def _latest_bytes(self) -> int:
        """How much journal never waits for a checkpoint: in time before appenders are held back."""
        return min(self.settings.checkpoint_journal_bytes, self.settings.journal_max_bytes // 2)

    # The end

    def close(self) -> None:
        """End the threads and let go of the directory. Checkpoint first (``clean``)."""
        self.journal.flush()
        self.abandon()

    def abandon(self) -> None:
        """End without writing what the storage threads do not have yet: what a kill leaves."""
        if self._runner is not None:
            self._runner.stop()
            self._runner = None
        for log in self.logs.values():
            log.close()
            for segment in log.segments:
                segment.close()
        if self.files is not None:
            self.files.close()
        if self.device is not None:
            self.device.close()
            self.device = None
        if self.lock is not None:
            self.lock.release()
            self.lock = None
