"""Commit groups on their way to a log index: the committer of a broker in a cluster.

Rules of this file:

1. Commit groups are flushed in their order. One flush is committed at a time; commit groups
   submitted meanwhile go into the next one, as long as that stays small enough.
2. The body of a large flush is uploaded before its commit, which names the key of the object (F6).
   Several uploads run at once, and end in any order. Commits follow in the order of placement
   (F8): when an effect is durable, so is its cause (F13). A small flush with nothing
   before it leaves at once, with its body; so does each flush until uploads may begin
   (``storage/objects/object_use.py``). While much arrives for an object store, commit groups are
   collected first (``flush_window.py``).
3. The index's outcome goes to the listener: committed, refused, or the session is lost. Commit
   groups of a run that was refused, or lost, are dropped everywhere (``CommitGroup.run``): they may
   build on a refused one.
4. The loop never commits (``commit_inline``), so that no log shows records that are not durable.
5. A commit group without entries waits for those before it, and sends nothing to the index.
6. Segments are written afterwards, into files that are never synced: the durable records are in the
   index.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from barnabas.storage.counts import FlushCounts, Histogram
from barnabas.storage.errors import IndexClosed
from barnabas.storage.files.file_system import Buffer
from barnabas.storage.journal.committer import Committer, Listener
from barnabas.storage.journal.journal import CommitGroup
from barnabas.storage.journal.journal_format import ENTRY, KIND_BATCHES, KIND_LOG_START
from barnabas.storage.replicated.flush_uploads import Upload, Uploads
from barnabas.storage.replicated.flush_window import FlushWindow
from barnabas.storage.replicated.log_index import (
    Flush,
    FlushAnswer,
    Item,
    Lane,
    LogIndex,
    LogStart,
    Outcome,
)
from barnabas.storage.replicated.wal_object import wal_object
from barnabas.storage.runtime.clock import counter_ns

_FLUSH_BYTES_MAX: Final = 4 * 1024 * 1024
"""Maximum size of a merged flush; a larger commit group is flushed alone."""

PATIENCE_SECONDS: Final = 10.0
_NO_SESSION: Final = -1
_COMMITTED: Final = FlushAnswer(Outcome.COMMITTED)
_FENCED: Final = FlushAnswer(Outcome.FENCED)


class PendingFlush(NamedTuple):
    """Commit groups that are committed together: by ``flush`` of ``session``.

    ``flush`` is None if no request is needed, since ``answer`` is known. With an ``upload``, it
    has no key until the upload has one.
    """

    groups: Sequence[CommitGroup]
    body_bytes: int
    session: int
    flush: Flush | None
    answer: FlushAnswer
    upload: Upload | None = None


class FlushCommitter(Committer):
    """Commits groups to a log index, all in one lane, for one session after the other."""

    def __init__(
        self,
        index: LogIndex,
        listener: Listener,
        flush_times: Histogram | None = None,
        flush_batches: Histogram | None = None,
        *,
        patience_seconds: float = PATIENCE_SECONDS,
        flush_bytes_max: int = _FLUSH_BYTES_MAX,
        uploads: Uploads | None = None,
    ) -> None:
        """``patience_seconds``: how long the end waits for an index that does not answer.

        ``uploads`` takes the bodies of large flushes, or is None if all bodies go with their
        commit; it ends with this object. Nothing can be flushed before ``begin_session``.
        """
        super().__init__(listener, flush_times, flush_batches)
        self.patience_seconds = patience_seconds
        self.counts = FlushCounts()
        self._index = index
        self._flush_bytes_max = flush_bytes_max
        self._session = _NO_SESSION
        self._ended_session = _NO_SESSION
        self._number = 0
        self._run = 0
        """Number of the current run: increased when commit groups were refused or lost."""
        self._is_closed = False
        self._waiting: deque[CommitGroup] = deque()
        """Commit groups that are in no flush yet, and the size of their bodies."""
        self._waiting_bytes = 0
        self._placed: deque[PendingFlush] = deque()
        """Flushes in order, from one that is uploaded on."""
        self._uploads = uploads
        self._window: FlushWindow | None = None
        if uploads is not None:
            uploads.on_confirmed = self._report_progress
            limits = uploads.settings
            self._window = FlushWindow(limits.window_s, limits.bytes_min, limits.bytes_max)

    def begin_session(self, session: int) -> None:
        """Flush for ``session`` from now on.

        Called on the loop before a log is loaded that this session leads: at the start, and when
        the store has forgotten everything that the former session led.
        """
        assert self._session == _NO_SESSION, f"session {self._session} is not lost"
        self._session, self._number = session, 0
        self.counts.sessions += 1

    @property
    def session(self) -> int | None:
        """Session of these flushes, or None after its known end."""
        return None if self._session == _NO_SESSION else self._session

    @property
    def uploads(self) -> Uploads | None:
        """Uploads of the bodies of large flushes, or None if each goes with its commit."""
        return self._uploads

    def end_session(self, session: int) -> None:
        """Treat ``session`` as ended, as another module has detected.

        Called on the loop. The listener is notified with the next commit group, which the caller
        submits, even an empty one.
        """
        self._ended_session = session

    def commit_by_step(self, groups: Sequence[CommitGroup]) -> Iterator[None]:
        """See ``Committer``."""
        self._add(groups)
        while not self._is_closed:
            try:
                if not self._commit_next():
                    return
            except IndexClosed:
                self._is_closed = True
                return
            yield

    def finish_by_step(self) -> Iterator[None]:
        """See ``Committer``."""
        self._window = None
        yield from self.commit_by_step(())
        uploads = self._uploads
        while uploads is not None and self._placed and not self._is_closed:
            upload = self._placed[0].upload
            assert upload is not None, "a flush without an upload waits"
            try:
                uploads.wait_for(upload)
            except IndexClosed:
                self._is_closed = True
            yield from self.commit_by_step(())
        if uploads is not None:
            uploads.close()

    def give_up(self) -> None:
        """See ``Committer``: the index is closed."""
        self._index.close()
        if self._uploads is not None:
            self._uploads.close()

    def _report_progress(self) -> None:
        self.on_progress()

    @property
    def due_in_s(self) -> float | None:
        """See ``Committer``: while commit groups are collected."""
        return self._collects_for_s or None

    @property
    def _collects_for_s(self) -> float:
        """Time for which the waiting groups are collected; 0 if they may be flushed now."""
        window, uploads = self._window, self._uploads
        if window is None or uploads is None or self._has_ended:
            return 0.0
        if not uploads.may_begin(self._session):
            return 0.0
        return window.left_s(self._waiting_bytes, uploads.now_s())

    def of_this_run(self, groups: Sequence[CommitGroup]) -> list[CommitGroup]:
        """Return the commit groups of the current run; the others are dropped."""
        current = [group for group in groups if group.run >= self._run]
        assert all(group.run == self._run for group in current), "a run ended unnoticed"
        return current

    def _add(self, groups: Sequence[CommitGroup]) -> None:
        current = self.of_this_run(groups)
        size = sum([group.body_bytes for group in current])
        self._waiting.extend(current)
        self._waiting_bytes += size
        if self._window is not None and self._uploads is not None:
            self._window.arrive(size, self._uploads.now_s())

    def _commit_next(self) -> bool:
        """Commit one flush if one can be committed now; return False if not."""
        if self._uploads is not None and self._uploads.may_begin(self._session):
            self._place(self._uploads)
        if self._placed:
            pending = self._placed[0]
            if self._has_ended:
                pending = pending._replace(flush=None, answer=_FENCED)
            elif pending.upload is not None and pending.upload.key is None:
                return False
            self._placed.popleft()
        elif not self._waiting or self._collects_for_s:
            return False
        else:
            pending = self._take_waiting()
        self.finish(pending, self._ask(pending))
        return True

    def _place(self, uploads: Uploads) -> None:
        """Begin uploads of large flushes, as many as fit."""
        while (
            len(self._placed) < uploads.at_once
            and self._waiting_bytes >= uploads.settings.bytes_min
            and not self._collects_for_s
        ):
            self._placed.append(self._take_waiting(uploads))

    def _take_waiting(self, uploads: Uploads | None = None) -> PendingFlush:
        """Return the next flush of the waiting groups; see ``take``."""
        pending = self.take(self._waiting, uploads)
        self._waiting_bytes -= pending.body_bytes
        if self._window is not None and self._uploads is not None:
            now_s = self._uploads.now_s()
            self._window.flushed(pending.body_bytes, self._waiting_bytes, now_s)
        return pending

    @property
    def _has_ended(self) -> bool:
        """Whether the session is known to have ended before a flush has found out."""
        return self._session == self._ended_session != _NO_SESSION

    def _ask(self, pending: PendingFlush) -> FlushAnswer:
        flush = pending.flush
        if flush is None:
            return pending.answer
        if pending.upload is not None:
            flush = replace(flush, key=pending.upload.key)
        begun_ns = counter_ns()
        answer = self._index.commit_flush(pending.session, flush)
        self._flush_times.observe(counter_ns() - begun_ns)
        return answer

    def take(self, waiting: deque[CommitGroup], uploads: Uploads | None = None) -> PendingFlush:
        """Return the next flush of the ``waiting`` groups of this run, of which there are some.

        Its body is uploaded, if ``uploads`` is given.
        """
        groups: list[CommitGroup] = []
        size, most = 0, self._flush_bytes_max
        if uploads is not None:
            most = uploads.settings.bytes_max
        while waiting:
            group = waiting[0]
            if groups and size + group.body_bytes > most:
                break
            groups.append(waiting.popleft())
            size += group.body_bytes
        if self._has_ended:
            return PendingFlush(groups, size, self._session, None, _FENCED)
        if not any(group.entry_count for group in groups):
            return PendingFlush(groups, size, self._session, None, _COMMITTED)
        assert self._session != _NO_SESSION, "something was placed, and nobody leads it"
        gathered = _Gathered(groups)
        assert gathered.body_bytes == size, "table and bodies do not fit"
        if gathered.outdated:
            refused = FlushAnswer(Outcome.REFUSED, frozenset(gathered.outdated))
            return PendingFlush(groups, size, self._session, None, refused)
        number = self._number + sum([each.flush is not None for each in self._placed])
        items, starts, body = gathered.parts()
        if uploads is None:
            payload = b"".join(body) if items else None
            flush = Flush(Lane.INLINE, number, items, starts, payload)
            return PendingFlush(groups, size, self._session, flush, _COMMITTED)
        object_size = None
        if uploads.settings.in_object_store:
            items, body, object_size = wal_object(items, body)
        upload = uploads.begin(self._session, number, body)
        flush = Flush(Lane.INLINE, number, items, starts, size=object_size)
        return PendingFlush(groups, size, self._session, flush, _COMMITTED, upload)

    def finish(self, pending: PendingFlush, answer: FlushAnswer) -> None:
        """Report the outcome of ``pending`` to the listener."""
        count = len(pending.groups)
        if answer.outcome is Outcome.COMMITTED:
            if pending.flush is not None:
                self._number += 1
                self._flush_batches.observe(sum([group.batches for group in pending.groups]))
            self._leave_to_segments(pending.groups, pending.body_bytes, self._number)
            self._listener.durable(count)
            return
        self._run += 1
        self._waiting.clear()
        self._waiting_bytes = 0
        self._placed.appendleft(pending)
        self._drop_placed()
        if answer.outcome is Outcome.FENCED:
            self._session = _NO_SESSION
            self._listener.lost()
        else:
            self.counts.refused += 1
            self._listener.refused(count, answer.refused)

    def _drop_placed(self) -> None:
        """Forget a refused flush and those that may build on it; their uploads leave garbage."""
        if self._uploads is not None:
            self._uploads.abandon([each.upload for each in self._placed if each.upload is not None])
        self._placed.clear()


class _Bodies:
    """The bytes that a flush adds to one partition: slices of chunks, adjacent ones merged."""

    __slots__ = ("base_offset", "leader_epoch", "length", "next_offset", "slices")

    def __init__(self, leader_epoch: int, base_offset: int) -> None:
        self.leader_epoch = leader_epoch
        self.base_offset = self.next_offset = base_offset
        self.length = 0
        self.slices: list[tuple[Buffer, int, int]] = []

    def add(self, next_offset: int, chunk: Buffer, start: int, end: int) -> None:
        """Add ``chunk[start:end]``, which ends before ``next_offset``."""
        slices, size = self.slices, end - start
        if slices and slices[-1][0] is chunk and slices[-1][2] == start:
            start = slices.pop()[1]
        slices.append((chunk, start, end))
        self.next_offset = next_offset
        self.length += size


class _Gathered:
    """The entries of groups by partition, none of their bodies copied."""

    def __init__(self, groups: Sequence[CommitGroup]) -> None:
        self._bodies: dict[int, _Bodies] = {}
        self._starts: dict[int, LogStart] = {}
        self.body_bytes = 0
        self.outdated: set[int] = set()
        """Partitions with entries of two epochs; the index refuses the older epoch."""
        for group in groups:
            self._add(group)

    def _add(self, group: CommitGroup) -> None:
        """Add a group: its bodies lie in its chunks in the order of its table, none in two."""
        chunks = iter(group.chunks)
        chunk: Buffer = b""
        at = left = 0
        for kind, epoch, partition_id, base, following, size, _ in ENTRY.iter_unpack(group.table):
            if kind == KIND_LOG_START:
                self._add_start(LogStart(partition_id, epoch, base))
                continue
            assert kind == KIND_BATCHES, f"an entry of kind {kind}"
            while not left:
                chunk = next(chunks)
                at, left = 0, len(chunk)
            assert size <= left, "a body in two chunks"
            bodies = self._bodies.get(partition_id)
            if bodies is None:
                bodies = self._bodies[partition_id] = _Bodies(epoch, base)
            if bodies.leader_epoch == epoch:
                assert bodies.next_offset == base, "a log with a gap"
                bodies.add(following, chunk, at, at + size)
            else:
                self.outdated.add(partition_id)
            at += size
            left -= size
            self.body_bytes += size

    def _add_start(self, start: LogStart) -> None:
        known = self._starts.get(start.partition_id)
        if known is None or known.offset < start.offset:
            self._starts[start.partition_id] = start

    def parts(self) -> tuple[list[Item], list[LogStart], list[Buffer]]:
        """Return the items and starts of a flush, and its body without a copy."""
        body: list[Buffer] = []
        items = []
        position = 0
        for partition_id, bodies in self._bodies.items():
            for chunk, start, end in bodies.slices:
                whole = start == 0 and end == len(chunk)
                body.append(chunk if whole else memoryview(chunk)[start:end])
            items.append(
                Item(
                    partition_id,
                    bodies.leader_epoch,
                    bodies.base_offset,
                    bodies.next_offset,
                    position,
                    bodies.length,
                )
            )
            position += bodies.length
        return items, list(self._starts.values()), body
