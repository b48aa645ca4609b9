"""Commit groups on their way to a log index: the committer of a broker in a cluster.

Rules of this file:

1. Commit groups are flushed in their order. One flush is on its way at a time; commit groups
   submitted meanwhile go into the next one, as long as that stays small enough.
2. The index's outcome goes to the listener: committed, refused, or the session is lost. Commit
   groups of a run that was refused, or lost, are dropped everywhere (``CommitGroup.run``): they may
   build on a refused one.
3. The loop never commits (``commit_inline``), so that no log shows records that are not durable.
4. A commit group without entries waits for those before it, and sends nothing to the index.
5. Segments are written afterwards, into files that are never synced: the durable records are in the
   index.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from barnabas.storage.counts import FlushCounts, Histogram
from barnabas.storage.files.file_system import Buffer
from barnabas.storage.journal.committer import Committer, Listener
from barnabas.storage.journal.journal import CommitGroup
from barnabas.storage.journal.journal_format import ENTRY, KIND_BATCHES, KIND_LOG_START
from barnabas.storage.replicated.log_index import (
    Flush,
    FlushAnswer,
    IndexClosed,
    Item,
    Lane,
    LogIndex,
    LogStart,
    Outcome,
)
from barnabas.storage.runtime.clock import counter_ns

_FLUSH_BYTES_MAX: Final = 4 * 1024 * 1024
"""Maximum size of a merged flush; a larger commit group is flushed alone."""

PATIENCE_SECONDS: Final = 10.0
_NO_SESSION: Final = -1
_COMMITTED: Final = FlushAnswer(Outcome.COMMITTED)
_FENCED: Final = FlushAnswer(Outcome.FENCED)


class PendingFlush(NamedTuple):
    """Commit groups that are committed together: by ``flush`` of ``session``.

    ``flush`` is None if no request is needed: ``answer`` is known then.
    """

    groups: Sequence[CommitGroup]
    body_bytes: int
    session: int
    flush: Flush | None
    answer: FlushAnswer


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
    ) -> None:
        """``patience_seconds``: how long the end waits for an index that does not answer.

        Nothing can be flushed before ``begin_session``.
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
        """Groups of an earlier run were refused, or lost."""
        self._is_closed = False

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

    def end_session(self, session: int) -> None:
        """Treat ``session`` as ended, as another module has detected.

        Called on the loop. The listener is notified with the next commit group, which the caller
        submits, even an empty one.
        """
        self._ended_session = session

    def commit_by_step(self, groups: Sequence[CommitGroup]) -> Iterator[None]:
        """See ``Committer``."""
        waiting = deque(groups)
        while not self._is_closed and (pending := self.take(waiting)) is not None:
            try:
                answer = self._ask(pending)
            except IndexClosed:
                self._is_closed = True
                return
            self.finish(pending, answer)
            yield

    def give_up(self) -> None:
        """See ``Committer``: the index is closed."""
        self._index.close()

    def _ask(self, pending: PendingFlush) -> FlushAnswer:
        if pending.flush is None:
            return pending.answer
        begun_ns = counter_ns()
        answer = self._index.commit_flush(pending.session, pending.flush)
        self._flush_times.observe(counter_ns() - begun_ns)
        return answer

    def take(self, waiting: deque[CommitGroup]) -> PendingFlush | None:
        """Return the next flush of the ``waiting`` groups, or None if all of them were dropped."""
        groups: list[CommitGroup] = []
        size = 0
        while waiting:
            group = waiting[0]
            if group.run >= self._run:
                assert group.run == self._run, "nobody was told of the end of a run"
                if groups and size + group.body_bytes > self._flush_bytes_max:
                    break
                groups.append(group)
                size += group.body_bytes
            waiting.popleft()
        if not groups:
            return None
        if self._session == self._ended_session != _NO_SESSION:
            return PendingFlush(groups, size, self._session, None, _FENCED)
        if not any(group.entry_count for group in groups):
            return PendingFlush(groups, size, self._session, None, _COMMITTED)
        assert self._session != _NO_SESSION, "something was placed, and nobody leads it"
        gathered = _Gathered(groups)
        assert gathered.body_bytes == size, "table and bodies do not fit"
        if gathered.outdated:
            refused = FlushAnswer(Outcome.REFUSED, frozenset(gathered.outdated))
            return PendingFlush(groups, size, self._session, None, refused)
        return PendingFlush(groups, size, self._session, gathered.flush(self._number), _COMMITTED)

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
        if answer.outcome is Outcome.FENCED:
            self._session = _NO_SESSION
            self._listener.lost()
        else:
            self.counts.refused += 1
            self._listener.refused(count, answer.refused)


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
        """Partitions of which something was placed in two epochs: the index refuses the older."""
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

    def flush(self, number: int) -> Flush:
        """Return all collected entries as one flush; bodies are copied once, into the payload."""
        payload: list[Buffer] = []
        items = []
        position = 0
        for partition_id, bodies in self._bodies.items():
            for chunk, start, end in bodies.slices:
                whole = start == 0 and end == len(chunk)
                payload.append(chunk if whole else memoryview(chunk)[start:end])
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
        starts = list(self._starts.values())
        return Flush(Lane.INLINE, number, items, starts, b"".join(payload) if items else None)
