"""The storage threads' work: make commit groups durable, then write them to the segments.

Rules of this file:

1. ``Committer`` is plain calls without a thread, so that tests drive it step by step on a simulated
   disk. ``CommitterThreads`` runs it beside the loop: ``commit`` on the journal thread,
   ``write_segments`` on the segment thread. So the disk syncs one commit group while the page cache
   takes another. ``JournalCommitter`` serves a journal in files; a cluster has the one of
   ``barnabas.storage.replicated.flush_committer``.
2. A commit group's bytes become durable first, and only then go to the segment files (D1): a
   segment's records are durable elsewhere already, so segments are never synced before a
   checkpoint.
3. The segment thread does everything to partition directories, in the order of the commit groups.
4. Any I/O error except a full disk is final (D9): no response is sent after it, the process stops.
   Only segments and checkpoints meet a full disk; the journal has its spare file. The write is
   repeated until there is room; appends are refused meanwhile (D10).
5. The loop itself commits a small commit group after which no request arrives (``commit_inline``),
   for two hand-overs between threads cost more than a quick disk. The journal thread commits if the
   disk was slow a moment ago or is full, and when the journal changes to the next file.
6. While the disk writes such a commit group the loop prepares its responses (``meanwhile``). They
   leave after the sync, or never: any error of the sync is final, a full disk's too.
"""

import enum
import errno
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, Protocol, TypeVar

from barnabas.storage.counts import Histogram
from barnabas.storage.files.file_system import Buffer
from barnabas.storage.journal.journal import CommitGroup, Operation, SegmentFile, StoredBatches
from barnabas.storage.journal.journal_files import JournalFiles
from barnabas.storage.journal.journal_format import GROUP_HEADER_BYTES
from barnabas.storage.runtime.clock import counter_ns, sleep
from barnabas.storage.runtime.threads import (
    Empty,
    Queue,
    Thread,
    new_lock,
    new_queue,
    start_thread,
)

_HAND_OVER_BYTES: Final = 1024 * 1024
_HAND_OVER_SECONDS = 0.2
"""The segment thread writes after this number of bytes, or after this time: each write takes the
interpreter from the loop, and later commit groups go to a segment in the same write. Readers do not
wait for it: records that are not in the segments yet are in memory. A checkpoint does wait, and
makes the segment thread write at once.

mypyc would copy a constant into the code, and tests of the compiled build could not change it."""

_REPORTED_BYTES_MIN: Final = 4 * 1024 * 1024
"""Bytes that are written before the loop learns that memory can release them. An appender that
waits for a smaller backlog waits for this many bytes, not for the whole backlog."""

_HERE_FLUSH_NS_MAX: Final = 2_000_000
"""Expected time of a flush above which the loop does not commit, as it serves no client during a
commit."""
_EXPECTED_FLUSH_NS_AT_START: Final = 50_000_000

_COPIED_BYTES_MAX: Final = 512
_MERGED_BYTES_MAX: Final = 16 * 1024 * 1024
FULL_DISK: Final = (errno.ENOSPC, errno.EDQUOT)
FULL_DISK_PAUSE_SECONDS = 0.2
"""A variable for the same reason as ``_HAND_OVER_SECONDS``."""

Result = TypeVar("Result")


class Listener(Protocol):
    """Receives the threads' progress. Called on them."""

    def durable(self, groups: int) -> None:
        """Report that the oldest ``groups`` submitted commit groups are durable."""

    def written(self, groups: int) -> None:
        """Report that the oldest ``groups`` commit groups are in the segment files."""

    def disk_full(self, *, full: bool) -> None:
        """Report that a write failed on a full disk, or that the disk has room again.

        A call with ``full`` False follows each call with True.
        """

    def refused(self, groups: int, partition_ids: Collection[int]) -> None:
        """Report that the oldest ``groups`` submitted commit groups will never be durable.

        Another broker leads these partitions, of which they contain entries. Later commit groups of
        the same run may build on refused ones, so none of them is committed, whenever it is
        submitted, and the listener is not called for them. A journal in files refuses nothing.
        """

    def lost(self) -> None:
        """Report that other brokers lead all partitions: as ``refused``, for all commit groups."""

    def failed(self, error: BaseException) -> None:
        """Storage failed permanently; the process must stop."""


def _ignore() -> None:
    """Ignore the progress of a committer without a thread."""


class Committer:
    """Commits groups and applies their operations; one caller at a time for each of the two."""

    def __init__(
        self,
        listener: Listener,
        flush_times: Histogram | None = None,
        flush_batches: Histogram | None = None,
        *,
        reported_bytes_min: int = _REPORTED_BYTES_MIN,
    ) -> None:
        """Times and sizes of flushes go to the histograms, if there are any.

        ``reported_bytes_min`` is the number of bytes written to segments before the listener is
        called.
        """
        self._listener = listener
        self._unwritten: deque[CommitGroup] = deque()
        self._reported_bytes_min = reported_bytes_min
        self._flush_times = flush_times or Histogram()
        self._flush_batches = flush_batches or Histogram(shift=0)
        # One thread at a time changes each of the two: the committing one, the writing one.
        self._committed_bytes = 0
        self._written_bytes = 0
        self._awaited = False
        self.patience_seconds: float | None = None
        """Maximum time in seconds for which a stop waits for submitted groups, or None for no
        limit."""
        self.on_progress: Callable[[], None] = _ignore
        """Called on any thread when ``commit`` can continue without a new commit group."""

    @property
    def flushes_are_quick(self) -> bool:
        """Whether flushes are so quick that the loop commits instead of the journal thread."""
        return False

    @property
    def due_in_s(self) -> float | None:
        """Seconds after which ``commit`` can continue by itself; None if it waits for no time."""
        return None

    def commit_inline(self, group: CommitGroup, meanwhile: Callable[[], None]) -> bool:
        """Make one commit group durable without waiting for space; return False if impossible.

        ``meanwhile`` is called while the disk is at work. The listener is not called: the caller
        has the result.
        """
        del group, meanwhile
        return False

    def commit(self, groups: Sequence[CommitGroup]) -> None:
        """Make ``groups`` durable in this order, with as few flushes as possible."""
        for _ in self.commit_by_step(groups):
            pass

    def commit_by_step(self, groups: Sequence[CommitGroup]) -> Iterator[None]:
        """Commit like ``commit``, with a stop after each flush: the next one may have to wait.

        Some of ``groups`` may be left for a later call, also one without groups; ``on_progress``
        reports when.
        """
        raise NotImplementedError

    def finish_by_step(self) -> Iterator[None]:
        """Commit all groups that ``commit_by_step`` has left, and wait for that."""
        return iter(())

    def give_up(self) -> None:
        """Make ``commit`` return soon; commit groups that are not durable are abandoned.

        Called on another thread, after ``patience_seconds``.
        """
        raise NotImplementedError

    def _leave_to_segments(self, groups: Sequence[CommitGroup], size: int, sequence: int) -> None:
        """Queue the commit groups that became durable as flush ``sequence`` for the segment
        thread.
        """
        for group in groups:
            group.sequence = sequence
        self._unwritten.extend(groups)
        self._committed_bytes += size
        if any(group.awaited for group in groups):
            self._awaited = True

    @property
    def has_unwritten(self) -> bool:
        """Return whether durable batches are missing in the segments."""
        return bool(self._unwritten)

    @property
    def unwritten_bytes(self) -> int:
        """Number of bytes that are durable but not in the segments yet."""
        return self._committed_bytes - self._written_bytes

    @property
    def segments_are_urgent(self) -> bool:
        """Return whether durable batches should be written to the segments now."""
        return self._awaited or self.unwritten_bytes >= _HAND_OVER_BYTES

    def write_segments(self) -> None:
        """Apply the operations of every durable group that is not in the segments yet."""
        self._awaited = False
        waiting = len(self._unwritten)
        while waiting:
            waiting -= self._write_some(waiting)

    def _write_some(self, waiting: int) -> int:
        """Write the oldest of ``waiting`` groups and report them; returns the number of groups
        written.
        """
        groups: list[CommitGroup] = []
        runs = _SegmentRuns()
        size = 0
        while len(groups) < waiting and size < self._reported_bytes_min:
            group = self._unwritten.popleft()
            groups.append(group)
            size += group.body_bytes
            for operation in group.operations:
                if isinstance(operation, StoredBatches):
                    runs.add(operation)
                else:
                    until_there_is_room(runs.write, self._listener)
                    until_there_is_room(operation, self._listener)
        until_there_is_room(runs.write, self._listener)
        self._written_bytes += size
        self._listener.written(len(groups))
        return len(groups)


class JournalCommitter(Committer):
    """Commits groups to the journal's files."""

    def __init__(
        self,
        files: JournalFiles,
        listener: Listener,
        flush_times: Histogram | None = None,
        flush_batches: Histogram | None = None,
        *,
        reported_bytes_min: int = _REPORTED_BYTES_MIN,
    ) -> None:
        """``files`` must have been started."""
        super().__init__(
            listener, flush_times, flush_batches, reported_bytes_min=reported_bytes_min
        )
        self._files = files
        self._lacks_spare = False
        self._expected_flush_ns = _EXPECTED_FLUSH_NS_AT_START

    @property
    def flushes_are_quick(self) -> bool:
        """See ``Committer``: whether the disk has lately been fast enough."""
        return self._expected_flush_ns <= _HERE_FLUSH_NS_MAX

    def commit_inline(self, group: CommitGroup, meanwhile: Callable[[], None]) -> bool:
        """See ``Committer``."""
        size = GROUP_HEADER_BYTES + group.stored_bytes
        if self._lacks_spare or not self._files.has_room_for(size):
            return False  # Without a spare file each commit group is an occasion to try for one.
        if group.entry_count:
            return self._flush_here(group, meanwhile)
        meanwhile()
        self._leave_to_segments([group], group.body_bytes, self._files.next_sequence)
        return True

    def _flush_here(self, group: CommitGroup, meanwhile: Callable[[], None]) -> bool:
        begun_ns = counter_ns()
        try:
            placed = self._files.begin(
                group.entry_count, bytes(group.table), group.chunks, group.body_bytes
            )
        except OSError as error:
            if error.errno not in FULL_DISK:
                raise
            return False  # The thread that commits it may wait for room.
        written_ns = counter_ns()
        meanwhile()
        resumed_ns = counter_ns()
        sequence = self._files.finish(placed)
        ended_ns = counter_ns()
        self._flush_took(ended_ns - begun_ns, aside_ns=resumed_ns - written_ns)
        self._flush_batches.observe(group.batches)
        self._leave_to_segments([group], group.body_bytes, sequence)
        return True

    def commit_by_step(self, groups: Sequence[CommitGroup]) -> Iterator[None]:
        """See ``Committer``: merged into as few on-disk groups as fit."""
        start = 0
        while start < len(groups):
            end, size = self._mergeable(groups, start)
            self._commit_merged(groups[start:end], size)
            start = end
            yield

    def _mergeable(self, groups: Sequence[CommitGroup], start: int) -> tuple[int, int]:
        """Return the end of the run from ``start`` that shares one journal group, and its body
        bytes.
        """
        room = min(_MERGED_BYTES_MAX, self._files.capacity_bytes) - GROUP_HEADER_BYTES
        end, size, used = start, 0, 0
        while end < len(groups):
            group = groups[end]
            used += group.stored_bytes
            if end > start and used > room:
                break
            size += group.body_bytes
            end += 1
        return end, size

    def _commit_merged(self, groups: Sequence[CommitGroup], size: int) -> None:
        until_there_is_room(partial(self._flush, groups, size), self._listener)
        self._listener.durable(len(groups))
        self._keep_a_spare()

    def _flush(self, groups: Sequence[CommitGroup], size: int) -> None:
        """Write ``groups`` in one write and sync; ``size``: bytes of the bodies."""
        entry_count = sum([group.entry_count for group in groups])
        sequence = self._files.next_sequence
        if entry_count:
            table = b"".join([group.table for group in groups])
            bodies: list[Buffer] = [chunk for group in groups for chunk in group.chunks]
            begun_ns = counter_ns()
            sequence = self._files.append(entry_count, table, bodies, size)
            self._flush_took(counter_ns() - begun_ns)
            self._flush_batches.observe(sum([group.batches for group in groups]))
        self._leave_to_segments(groups, size, sequence)

    def _flush_took(self, elapsed_ns: int, *, aside_ns: int = 0) -> None:
        """Update the expected duration of a flush.

        The loop's own work of ``aside_ns`` does not count: the disk did not cause it.
        """
        self._flush_times.observe(elapsed_ns)
        self._expected_flush_ns = max(elapsed_ns - aside_ns, self._expected_flush_ns * 3 // 4)

    def _keep_a_spare(self) -> None:
        """Prepare the next journal file; without one, refuse appends and try with each commit
        group.

        Waiting here would stop the checkpoint that may give a file back.
        """
        try:
            self._files.prepare_spare()
        except OSError as error:
            if error.errno not in FULL_DISK:
                raise
            if not self._lacks_spare:
                self._lacks_spare = True
                self._listener.disk_full(full=True)
        else:
            if self._lacks_spare:
                self._lacks_spare = False
                self._listener.disk_full(full=False)

    def write_segments(self) -> None:
        """See ``Committer``."""
        super().write_segments()
        self._files.start_marking_back()


def until_there_is_room(operation: Callable[[], Result], listener: Listener) -> Result:
    """Repeat ``operation`` while the disk is full; report the begin and the end of that time.

    The end is reported even if ``operation`` fails. ``operation`` must be repeatable. Waits, so
    never call it on the loop.
    """
    told = False
    try:
        while True:
            try:
                return operation()
            except OSError as error:
                if error.errno not in FULL_DISK:
                    raise
            if not told:
                told = True
                listener.disk_full(full=True)
            sleep(FULL_DISK_PAUSE_SECONDS)
    finally:
        if told:
            listener.disk_full(full=False)


def apply_operations(operations: Sequence[StoredBatches | Operation]) -> None:
    """Apply the operations of a replayed commit group; in recovery a full disk is an error."""
    runs = _SegmentRuns()
    for operation in operations:
        if isinstance(operation, StoredBatches):
            runs.add(operation)
        else:
            runs.write()
            operation()
    runs.write()


def apply_group(group: CommitGroup) -> None:
    """Apply the operations of a commit group at once and release its records.

    It may be called again after an error. Only for logs that have no other user yet.
    """
    apply_operations(group.operations)
    for member, end in group.ends.items():
        member.written_up_to(end)


class _SegmentRuns:
    """Gathers batches into one write per segment. Positions in a segment are contiguous."""

    def __init__(self) -> None:
        self._runs: dict[SegmentFile, list[StoredBatches]] = {}

    def add(self, batch: StoredBatches) -> None:
        run = self._runs.get(batch.segment)
        if run is None:
            self._runs[batch.segment] = [batch]
        else:
            run.append(batch)

    def write(self) -> None:
        """Write every run. Safe to call again after an error: positions do not change."""
        for segment, run in self._runs.items():
            segment.write(_buffers(run), run[0].position)
        self._runs.clear()


def _buffers(run: list[StoredBatches]) -> list[Buffer]:
    """Return the run's bytes in order; neighbours in one chunk become one slice."""
    buffers: list[Buffer] = []
    chunk, start, end = run[0].chunk, run[0].start, run[0].start
    for batch in run:
        if batch.chunk is chunk and batch.start == end:
            end = batch.end
            continue
        buffers.append(_part(chunk, start, end))
        chunk, start, end = batch.chunk, batch.start, batch.end
    buffers.append(_part(chunk, start, end))
    return buffers


def _part(chunk: Buffer, start: int, end: int) -> Buffer:
    """Return a part of a chunk; a copy if it is small, because that costs less than a view."""
    return chunk[start:end] if end - start <= _COPIED_BYTES_MAX else memoryview(chunk)[start:end]


class _Signal(enum.Enum):
    """Other entries of the journal thread's queue than commit groups."""

    PROGRESS = enum.auto()
    """The committer can continue."""
    STOP = enum.auto()


class CommitterThreads:
    """Runs a ``Committer`` on two threads of its own; the loop calls ``submit``, ``commit_inline``.

    ``_committing`` is held by the thread that commits. What the segment thread receives is True:
    there is something to write, a second True: do not wait for more, and False: this is the end.
    """

    def __init__(
        self, committer: Committer, listener: Listener, *, commits_here: bool = True
    ) -> None:
        """The threads start at once; they are daemons, so that they never keep a process alive.

        ``commits_here``: whether the loop may commit too.
        """
        self._committer = committer
        self._listener = listener
        self._commits_here = commits_here
        self._committing = new_lock()
        self._groups: Queue[CommitGroup | _Signal] = new_queue()
        self._unwritten: Queue[bool] = new_queue()
        self._notified = 0
        committer.on_progress = partial(self._groups.put, _Signal.PROGRESS)
        self._journal_thread = self._start("barnabas-journal", self._commit_next)
        self._segment_thread = self._start("barnabas-segments", self._write_next)

    def submit(self, group: CommitGroup) -> None:
        """Queue ``group``; the listener is called in the order of submission."""
        self._groups.put(group)

    def commit_inline(self, group: CommitGroup, meanwhile: Callable[[], None]) -> bool:
        """Commit on the caller's thread; False if the journal thread has to do it.

        ``meanwhile`` is called while the disk is at work. Commits only while no submitted group
        waits to be durable. Raises an error after which no response may be sent (D9).
        """
        if not (self._commits_here and self._committer.flushes_are_quick):
            return False
        if not self._committing.acquire(blocking=False):
            return False
        try:
            done = self._committer.commit_inline(group, meanwhile)
            if done:
                self._notify_segment_thread()
        finally:
            self._committing.release()
        return done

    def stop(self) -> None:
        """Finish all submitted commit groups and segments, and end the threads. Blocks.

        Groups that are not durable when ``patience_seconds`` end are abandoned without a report.
        """
        self._groups.put(_Signal.STOP)
        self._journal_thread.join(self._committer.patience_seconds)
        if self._journal_thread.is_alive():
            self._committer.give_up()
            self._journal_thread.join()
        self._segment_thread.join()

    def _start(self, name: str, step: Callable[[], bool]) -> Thread:
        return start_thread(name, partial(self._run, step))

    def _run(self, step: Callable[[], bool]) -> None:
        try:
            while step():
                pass
        except BaseException as error:  # noqa: BLE001  Any failure here ends the process (D9).
            self._listener.failed(error)
            self._unwritten.put(False)  # So that no thread waits for the other forever.

    def _commit_next(self) -> bool:
        """Wait for groups or progress, and commit; return False at the end."""
        groups, stopping = self._take()
        with self._committing:
            # Told of each: what makes room on a full disk is done by that thread.
            for _ in self._committer.commit_by_step(groups):
                self._notify_segment_thread()
            if stopping:
                for _ in self._committer.finish_by_step():
                    self._notify_segment_thread()
        if stopping:
            self._unwritten.put(False)
        return not stopping

    def _take(self) -> tuple[list[CommitGroup], bool]:
        """Wait for progress or groups; return these, and whether ``stop`` was called."""
        groups: list[CommitGroup] = []
        try:
            item = self._groups.get(timeout=self._committer.due_in_s)
            while item is not _Signal.STOP:
                if isinstance(item, CommitGroup):
                    groups.append(item)
                item = self._groups.get_nowait()
        except Empty:
            return groups, False
        return groups, True

    def _notify_segment_thread(self) -> None:
        wanted = 2 if self._committer.segments_are_urgent else 1
        while self._notified < wanted:
            self._notified += 1
            self._unwritten.put(True)

    def _write_next(self) -> bool:
        """Wait for durable commit groups and write them; return False at the end."""
        goes_on = self._unwritten.get()
        if goes_on:
            with suppress(Empty):
                goes_on = self._unwritten.get(timeout=_HAND_OVER_SECONDS)
        # Before the segments are written: a commit after it notifies again. A notification at this
        # very moment may be counted wrongly; then a large pile waits for its time, once.
        self._notified = 0
        self._committer.write_segments()
        return goes_on
