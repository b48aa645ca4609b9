"""All logs of one data directory: their journal, their checkpoints, start and end.

Rules of this file:

1. Only the loop calls it. The storage threads and the checkpoint's thread report through
   ``Engine.call``, which brings their callbacks back to the loop.
2. A checkpoint records the journal sequence up to which the segment files are complete; a start
   replays the journal from there. It is written only after all that it covers was synced; only
   then are older journal files recycled. Preparing it takes several turns (``checkpoint_work.py``).
3. In a cluster a flush may be refused, or the session lost. Each log with an append that is not
   durable is then forgotten as a whole, with its files; ``load`` opens it again, here or on another
   broker. A checkpoint covers nothing there, and nothing is synced: it waits for the appends, and
   removes the files that no log needs any more.
4. Any error in a thread is final (D9): ``on_fatal`` is called once, and no response is sent.
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
        """Create a store; ``barnabas.storage.store.recovery.open_store`` opens its files."""
        self.file_system = file_system
        self.root = root
        self.settings = settings or StoreSettings()
        self.callbacks = callbacks or StoreCallbacks()
        self.now_ms = now_ms
        self.engine = engine
        self.full = False
        self.exhausted = False
        self.is_cache = False
        self.open_files = OpenFiles(self.settings.open_files_max)
        self._waiting_for_room = 0
        self._reserve_is_touched = False
        self._free_bytes = self._needed_bytes = 0
        self.leader_epoch = 0
        self.logs: dict[int, PartitionLog] = {}
        self.generation = 0
        self.offsets_written: dict[str, dict[tuple[str, int], int]] = {}
        """The content of Kafka's checkpoint files that this process has written, by name."""
        self.lock: Lock | None = None
        self.files: JournalFiles | None = None
        self.device: Device | None = None
        self.flush_times = Histogram()
        """The time from one write to the journal until it is durable, in nanoseconds."""
        self.flush_batches = Histogram(shift=0)
        """The number of batches that one write makes durable."""
        self.visible_offsets = self.visible_bytes = 0
        """The offsets and bytes that became visible in all logs, with those of recovery."""
        self.duplicates = 0
        """The number of duplicate batches of all logs, deleted logs included."""
        self._runner: Runner | None = None
        self._throttled = False
        self._backlogged = False
        self.is_closing = False
        """Whether the last checkpoint has started."""
        self.synced = 0
        """The files and directories, of ``to_sync``, that the current checkpoint has synced."""
        self.to_sync = 0
        self._checkpointing = False
        self._has_checkpoint = False
        self._journal_seen_bytes = 0
        self._checkpoint_due_bytes = 0
        self._checkpoint_due_batches = 0
        self._after_checkpoint: list[Callable[[], None]] = []
        self._when_written: dict[PartitionLog, Callable[[], None]] = {}
        """Callbacks that run once a loaded log is in its segments."""
        self._failed = False
        self.journal = Journal(
            submit=self._submit,
            schedule=engine.schedule,
            backlog_max_bytes=self.settings.backlog_max_bytes,
            on_backlogged=self._on_backlogged,
        )

    def on_advanced(self, log: PartitionLog, count: int, size_bytes: int) -> None:
        """Count ``count`` offsets that became visible, or 0 if only the log start moved."""
        self.visible_offsets += count
        self.visible_bytes += size_bytes
        self.callbacks.on_advanced(log, size_bytes)

    def on_suspected(self, log: PartitionLog, base_offset: int, error: Exception) -> None:
        """Report a failed read of the segment at ``base_offset``, for the scrubber to check."""
        self.callbacks.on_suspected(log, base_offset, error)

    def _on_backlogged(self, backlogged: bool) -> None:  # noqa: FBT001  The journal calls it.
        self._backlogged = backlogged
        self._throttle()

    def _throttle(self) -> None:
        """Delay appends while too much waits for the journal or a checkpoint."""
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
            self._complete_durable(1)
        else:
            self._runner.submit(group)

    def _prepare_answers(self, groups: int) -> None:
        """Make the oldest groups in flight visible and prepare their responses, Fetches first.

        So consumers get records 45 us earlier, and producers their responses 65 us later (measured
        in pairs on an idle broker). In a pipeline of several steps the delay of consumers counts
        at each step.
        """
        self.journal.advance_high_watermarks(groups)
        self.callbacks.on_visible()
        self.journal.prepare_answers(groups)

    def start_on(self, committer: Committer) -> None:
        """Start to commit with a committer that has no files in this directory."""
        self.is_cache = True
        self._has_checkpoint = True  # A checkpoint would have nothing to cover.
        self._runner = self.engine.start_committer(committer, self)

    def start(self, files: JournalFiles) -> None:
        """Start to commit after recovery; ``files`` is at the start of a new run."""
        self.files = files
        self.device = self.file_system.open_device(self.root)
        committer = JournalCommitter(files, self, self.flush_times, self.flush_batches)
        self._runner = self.engine.start_committer(committer, self)

    # Partitions

    def new_log(self, spec: PartitionSpec) -> PartitionLog:
        """Return an empty log for ``spec``, not yet known to the store."""
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
        """Return the epoch in which a partition is led here."""
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
        """Add an empty partition; its first record creates its directory.

        ``leader_epoch`` is that of this boot if it is ``None``.
        """
        assert partition_id not in self.logs
        spec = PartitionSpec(partition_id, topic, partition, topic_id, config, leader_epoch)
        log = self.new_log(spec)
        self.logs[partition_id] = log
        return log

    def load(self, spec: PartitionSpec, durable: DurableLog) -> PartitionLog:
        """Open a partition that the store does not have, from its durable records elsewhere.

        Its files are written after those of a forgotten log are removed. If a commit group is
        refused before that is done, this log is forgotten too.
        """
        log, writes = self.filled(spec, durable)
        self.take_in(log, writes)
        return log

    def filled(self, spec: PartitionSpec, durable: DurableLog) -> tuple[PartitionLog, CommitGroup]:
        """Return a loaded log, and its writes, for ``take_in``; on any thread.

        The time depends on the log's length. Raises LedSince.
        """
        log = self.new_log(spec)
        writes = CommitGroup()
        fill(log, durable, writes)
        return log, writes

    def take_in(self, log: PartitionLog, writes: CommitGroup) -> None:
        """Add a log that was ``filled``, and queue its writes to segments."""
        assert log.partition_id not in self.logs
        group = self.journal.group_for(0)
        group.operations += writes.operations
        group.ends.update(writes.ends)
        self.logs[log.partition_id] = log

    def when_written(self, log: PartitionLog, then: Callable[[], None]) -> None:
        """Call ``then`` once all of a log is in its segments, or never if it is removed before."""
        if log.unflushed:
            self._when_written[log] = then
        else:
            then()

    def delete(self, partition_id: int) -> None:
        """Forget a partition; the segment thread removes its directory after its earlier work."""
        self._detach(partition_id).close()

    def release(self, partition_id: int) -> None:
        """Close a partition that this broker no longer leads; remove its files as ``delete`` does.

        Its last appends may still become durable, and their waiters are notified.
        """
        self._detach(partition_id).forget()

    def _detach(self, partition_id: int) -> PartitionLog:
        log = self.logs.pop(partition_id)
        self._when_written.pop(log, None)
        self._remove_files(log)
        return log

    def _remove_files(self, log: PartitionLog) -> None:
        self.journal.add_operation(log.directory.remove)
        for segment in (*log.segments, *log.dropped_segments):
            # The disk space is free once no reader holds the file.
            self.journal.add_operation(segment.remove)

    def get(self, partition_id: int) -> PartitionLog:
        """Return the log of a partition; KeyError if it was deleted or never existed."""
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
        """See ``Listener``: appends are refused while the disk is full, reads continue (D10)."""
        self.engine.call(lambda: self._set_full(full=full))

    def failed(self, error: BaseException) -> None:
        """See ``Listener``: called once."""
        self.engine.call(lambda: self._fail(error))

    def _groups_became_durable(self, groups: int) -> None:
        try:
            self._prepare_answers(groups)
        except BaseException as error:  # noqa: BLE001  A mistake with what is durable ends it too.
            self._fail(error)
        else:
            self._complete_durable(groups)

    def _complete_durable(self, groups: int) -> None:
        self.journal.groups_became_durable(groups)
        self._check_journal_size()

    def _groups_were_written(self, groups: int) -> None:
        self.journal.groups_were_written(groups)
        if self._when_written:
            for log in [log for log in self._when_written if not log.unflushed]:
                self._when_written.pop(log)()

    def _drop(self, groups: int | None, moved: frozenset[int]) -> None:
        """Forget all commit groups that are not durable.

        The oldest ``groups`` of them were refused. ``groups`` is ``None`` if the session was lost,
        and with it every log.
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
        except BaseException as error:  # noqa: BLE001  The state in memory is wrong now (D9).
            self._fail(error)

    def _logs_in(self, dropped: Iterable[CommitGroup]) -> dict[PartitionLog, None]:
        """Return the logs with an append in ``dropped``, deleted logs included."""
        logs = {log: None for log in self.logs.values() if log.awaits_log_start}
        for group in dropped:
            for member in group.ends:
                assert isinstance(member, PartitionLog)
                logs[member] = None
        return logs

    def _forget(
        self, logs: Iterable[PartitionLog], dropped: Iterable[CommitGroup]
    ) -> list[PartitionLog]:
        """Forget ``logs``; return those that were not deleted already.

        The operations of ``dropped`` on files of other logs still run. The directories of ``logs``
        are removed before that, so operations on them find no file. The directories of deleted logs
        are removed too: another one of ``logs`` may have the same directory.
        """
        forgotten = []
        for log in logs:
            log.forget()
            if self.logs.get(log.partition_id) is log:
                self._detach(log.partition_id)
                forgotten.append(log)
            else:
                self.journal.add_operation(log.directory.remove)
        for group in dropped:
            for operation in group.operations:
                if not isinstance(operation, StoredBatches):
                    self.journal.add_operation(operation)
        return forgotten

    def _check_journal_size(self) -> None:
        if self.files is not None and (
            self.files.appended_bytes > self._checkpoint_due_bytes
            or self.journal.batches > self._checkpoint_due_batches
        ):
            self._journal_has_grown()

    def _journal_has_grown(self) -> None:
        """Start a checkpoint if the journal is long enough for the syncs that it needs."""
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
        self._retry_for_space()

    @property
    def free_bytes(self) -> int:
        """Free bytes on the disk at the last :meth:`check_space`."""
        return self._free_bytes

    def describe_space(self) -> str:
        """Return the result of the last :meth:`check_space`, for operators of a full disk."""
        found = f"{self._free_bytes} bytes free, {self._needed_bytes} reserved"
        return f"{found}; a write found no room" if self.exhausted else found

    def _retry_for_space(self) -> None:
        """Queue an empty operation: the journal tries to create a spare file with each group."""
        if self.exhausted:
            self.journal.add_operation(lambda: None)

    # Checkpoints

    @property
    def wants_checkpoint(self) -> bool:
        """Whether the journal is long enough for a checkpoint to be worth its syncs.

        Without a journal, whether there are files to remove.
        """
        files, settings = self.files, self.settings
        if files is None:
            return any(log.dropped_segments for log in self.logs.values())
        if self.journal.batches > self._checkpoint_due_batches:
            return True
        latest_bytes = self._latest_bytes()
        grown_bytes = files.appended_bytes - self._journal_seen_bytes
        if grown_bytes <= min(settings.checkpoint_early_bytes, latest_bytes):
            return False  # Regardless of the files to sync: counting them visits thousands of logs.
        dirty = sum(len(log.dirty_segments) for log in self.logs.values())
        due = settings.checkpoint_early_bytes + dirty * settings.checkpoint_segment_bytes
        return grown_bytes > min(due, latest_bytes)

    def checkpoint(self, on_done: Callable[[], None] | None = None, *, clean: bool = False) -> None:
        """Start a checkpoint of everything appended so far; ``on_done`` runs when it is durable.

        In a cluster ``on_done`` runs when all appends so far are durable or refused. ``clean``
        refuses appends from now on, so that the next start reads no journal. If a checkpoint is
        under way, this call starts none: ``on_done`` runs at the end of that one.
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
        """Whether the store still writes: it is neither closed nor failed."""
        return self._runner is not None and not self._failed

    @property
    def journal_bytes(self) -> int:
        """Bytes of the journal that a start would read now."""
        return 0 if self.files is None else self.files.used_bytes

    @property
    def is_checkpointing(self) -> bool:
        """Whether a checkpoint is running."""
        return self._checkpointing

    def checkpoint_is_durable(self, sequence: int, obsolete: list[Operation]) -> None:
        """Recycle the journal before ``sequence``, run the ``obsolete`` removals, call waiters."""
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
        """Recycle the files whose groups the checkpoint covers, on the segment thread."""
        files.release(sequence)
        self.engine.call(self._journal_has_shrunk)

    def _journal_has_shrunk(self) -> None:
        self._throttle()
        self._retry_for_space()

    def _expect_next_checkpoint(self) -> None:
        """Compute the journal size at which to check whether another checkpoint is due.

        It counts from the checkpoint that starts now, which may be unable to recycle any file.
        """
        settings = self.settings
        files = self.files
        self._journal_seen_bytes = files.appended_bytes if files is not None else 0
        early_bytes = min(settings.checkpoint_early_bytes, self._latest_bytes())
        self._checkpoint_due_bytes = self._journal_seen_bytes + early_bytes
        self._checkpoint_due_batches = self.journal.batches + settings.checkpoint_batches

    def _latest_bytes(self) -> int:
        """Return the journal size at which a checkpoint is due, well before appends are delayed."""
        return min(self.settings.checkpoint_journal_bytes, self.settings.journal_max_bytes // 2)

    # The end

    def close(self) -> None:
        """End the threads and unlock the directory. Make a ``clean`` checkpoint first."""
        self.journal.flush()
        self.abandon()

    def abandon(self) -> None:
        """Stop like a kill, without writing pending batches."""
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
