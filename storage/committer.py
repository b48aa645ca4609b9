"""The journal thread's work: make groups durable, then write them to the segments.

Rules of this file:

1. ``Committer`` is plain calls without a thread, so that tests drive it step by step on a simulated
   disk; ``CommitterThread`` runs it beside the loop.
2. A group's bytes go to the journal, are synced, and only then to the segment files (D1): what a
   segment holds is durable elsewhere already, so segments are never synced before a checkpoint.
3. Segment writes are lazy: while groups wait to be committed they come first, up to a bound.
4. Any I/O error but a full disk is final (D9): nothing is answered after it, the process stops.
   A full disk is met by segments and checkpoints only; the journal has its spare file. The write is
   tried again until there is room; appends are refused meanwhile (D10).
"""

import errno
import queue
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Final, Protocol

from storage.io import Buffer
from storage.journal import CommitGroup, Operation, SegmentFile, StoredBatch
from storage.journal_files import JournalFiles
from storage.journal_format import ENTRY_BYTES, GROUP_HEADER_BYTES

LAZY_BYTES_MAX: Final = 8 * 1024 * 1024
"""How much may be durable but not yet in the segments before they are written."""

_MERGED_BYTES_MAX: Final = 16 * 1024 * 1024
_FULL_DISK_PAUSE_SECONDS: Final = 0.2


class Listener(Protocol):
    """Who is told of the thread's progress. Called on the journal thread."""

    def durable(self, groups: int) -> None:
        """The oldest ``groups`` groups submitted are durable."""

    def written(self, groups: int) -> None:
        """The oldest ``groups`` groups are in the segment files."""

    def disk_full(self, *, full: bool) -> None:
        """The disk refused a write for want of room, or has room again."""

    def failed(self, error: BaseException) -> None:
        """Storage cannot go on; the process must stop."""


class Committer:
    """Commits groups to the journal and applies their operations; one caller at a time."""

    def __init__(self, files: JournalFiles, listener: Listener) -> None:
        """``files`` must have been started."""
        self._files = files
        self._listener = listener
        self._unwritten: deque[CommitGroup] = deque()
        self.unwritten_bytes = 0

    def commit(self, groups: Sequence[CommitGroup]) -> None:
        """Make ``groups`` durable in this order, merged into as few on-disk groups as fit."""
        start = 0
        while start < len(groups):
            end, size = self._mergeable(groups, start)
            self._commit_merged(groups[start:end], size)
            start = end

    def _mergeable(self, groups: Sequence[CommitGroup], start: int) -> tuple[int, int]:
        """How far from ``start`` groups go into one on-disk group, and their body bytes."""
        room = min(_MERGED_BYTES_MAX, self._files.capacity_bytes) - GROUP_HEADER_BYTES
        end, size, used = start, 0, 0
        while end < len(groups):
            group = groups[end]
            used += group.body_bytes + group.entry_count * ENTRY_BYTES
            if end > start and used > room:
                break
            size += group.body_bytes
            end += 1
        return end, size

    def _commit_merged(self, groups: Sequence[CommitGroup], size: int) -> None:
        entry_count = sum(group.entry_count for group in groups)
        sequence = self._files.next_sequence
        if entry_count:
            table = b"".join([group.table for group in groups])
            bodies: list[Buffer] = [chunk for group in groups for chunk in group.chunks]
            sequence = self._files.append(entry_count, table, bodies, size)
        for group in groups:
            group.sequence = sequence
        self._unwritten.extend(groups)
        self.unwritten_bytes += size
        self._listener.durable(len(groups))
        if not self._files.has_spare:
            self._until_there_is_room(self._files.prepare_spare)

    @property
    def has_unwritten(self) -> bool:
        """Whether segments still lack something that is durable."""
        return bool(self._unwritten)

    def write_segments(self) -> None:
        """Apply the operations of every durable group that is not in the segments yet."""
        groups = list(self._unwritten)
        self._unwritten.clear()
        self.unwritten_bytes = 0
        runs = _SegmentRuns()
        for group in groups:
            for operation in group.operations:
                if isinstance(operation, StoredBatch):
                    runs.add(operation)
                else:
                    self._until_there_is_room(runs.write)
                    self._until_there_is_room(operation)
        self._until_there_is_room(runs.write)
        self._listener.written(len(groups))

    def _until_there_is_room(self, operation: Operation) -> None:
        told = False
        while True:
            try:
                operation()
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                    raise
                if not told:
                    told = True
                    self._listener.disk_full(full=True)
                time.sleep(_FULL_DISK_PAUSE_SECONDS)
            else:
                if told:
                    self._listener.disk_full(full=False)
                return


def apply_operations(operations: Sequence[StoredBatch | Operation]) -> None:
    """Apply the operations of a replayed group: recovery's way, where a full disk is an error."""
    runs = _SegmentRuns()
    for operation in operations:
        if isinstance(operation, StoredBatch):
            runs.add(operation)
        else:
            runs.write()
            operation()
    runs.write()


class _SegmentRuns:
    """Gathers batches into one write per segment. Positions in a segment are contiguous."""

    def __init__(self) -> None:
        self._runs: dict[SegmentFile, list[StoredBatch]] = {}

    def add(self, batch: StoredBatch) -> None:
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


def _buffers(run: list[StoredBatch]) -> list[Buffer]:
    """The run's bytes in order; neighbours in one chunk become one slice."""
    buffers: list[Buffer] = []
    chunk, start, end = run[0].chunk, run[0].start, run[0].start
    for batch in run:
        if batch.chunk is chunk and batch.start == end:
            end = batch.end
            continue
        buffers.append(memoryview(chunk)[start:end])
        chunk, start, end = batch.chunk, batch.start, batch.end
    buffers.append(memoryview(chunk)[start:end])
    return buffers


class CommitterThread:
    """Runs a ``Committer`` on a thread of its own; ``submit`` may be called from the loop."""

    def __init__(self, committer: Committer, listener: Listener) -> None:
        """The thread starts at once; it is a daemon, so a crash of the test process ends it."""
        self._committer = committer
        self._listener = listener
        self._queue: queue.SimpleQueue[CommitGroup | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="barnabas-journal", daemon=True)
        self._thread.start()

    def submit(self, group: CommitGroup) -> None:
        """Queue ``group``; the listener hears of it in the order of submission."""
        self._queue.put(group)

    def stop(self) -> None:
        """Finish what was submitted, segments included, and end the thread. Blocks."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        try:
            while self._step():
                pass
        except BaseException as error:  # noqa: BLE001  Every failure of this thread ends the process (D9).
            self._listener.failed(error)

    def _step(self) -> bool:
        """Wait for work and do it; False once told to stop."""
        groups, stopping = self._take(block=True)
        while groups:
            self._committer.commit(groups)
            if self._committer.unwritten_bytes > LAZY_BYTES_MAX:
                self._committer.write_segments()
            if stopping:
                break
            groups, stopping = self._take(block=False)
        if self._committer.has_unwritten:
            self._committer.write_segments()
        return not stopping

    def _take(self, *, block: bool) -> tuple[list[CommitGroup], bool]:
        """Everything that waits; with ``block`` at least one thing. True: told to stop."""
        groups: list[CommitGroup] = []
        try:
            item = self._queue.get(block=block)
            while item is not None:
                groups.append(item)
                item = self._queue.get_nowait()
        except queue.Empty:
            return groups, False
        return groups, True
