"""The group-commit journal as the event loop sees it.

Rules of this file:

1. Only the loop calls it. What one turn of the loop appends is one ``CommitGroup``; the journal
   thread merges the groups that wait into one on-disk group and one ``fdatasync``. While that
   thread has nothing to do, a small group stays open as long as each turn brings more, and may
   then be made durable on the loop: nothing is left that could use the loop meanwhile.
2. Where the loop itself commits, a group's logs advance and the answers to it are made before it is
   durable, if it can be while the disk is at work. Nothing of that leaves the process before it is.
3. Groups become durable in the order in which they were submitted, so what waits for the newest
   one also waits for everything before it (S4: a duplicate waits for its original).
4. A group's ``operations`` change the partition directories and segment files. They run on the
   segment thread, in order, after the group is durable; no other thread changes those files
   meanwhile.
5. In a cluster groups may be refused. Then every group that is not durable is dropped,
   the open one too, for each may build on what was refused, and a new run of groups begins.
   Whoever waits for a group is told one of two, once: it is durable, or it never will be.
"""

from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Final, Protocol

from barnabas.storage.files.file_system import Buffer
from barnabas.storage.journal.journal_format import ENTRY
from barnabas.storage.journal.refusal import Refusal

STABLE_BATCH_BYTES: Final = 64 * 1024
"""From this size on a batch whose memory is its own is kept by reference instead of copied."""

_OWN_CHUNK_BYTES: Final = 4 * 1024
"""From this size on a copied batch gets a chunk of its own: growing a large one copies it again."""

_CHUNK_BYTES: Final = 64 * 1024
_GROUP_BYTES: Final = 4 * 1024 * 1024

_ALONE_BYTES_MAX: Final = 512 * 1024
"""From here on a group goes to the journal thread: the loop has better to do than to write it."""

_LINGER_TURNS_MAX: Final = 4
"""So often the sockets are looked at again before a group closes, as long as that brings more. Who
is answered together asks again together: one sync for all of them costs less than one for each
half, and no request waits for the other half's."""
_ENTRY_PACK: Final = ENTRY.pack

Operation = Callable[[], None]


class Answer(Protocol):
    """What leaves the process when a group is durable, or the error that leaves instead."""

    def prepare(self) -> None:
        """Make ready what leaves once the group is durable.

        It may run before that is so: it must do nothing that is seen outside of the process.
        """

    def refused(self, refusal: Refusal) -> None:
        """Answer that the group was refused; ``prepare`` was not called and will not be."""


class Waiter(Protocol):
    """Who has to know whether a group is durable; told on the loop, once, one of two."""

    def durable(self) -> None:
        """The group survives a power loss now."""

    def refused(self, refusal: Refusal) -> None:
        """The group was refused: nothing of it is durable, nor ever will be."""


class WhenDurable:
    """A waiter for a group with something of a log: if that is refused, the log is closed."""

    __slots__ = ("_then",)

    def __init__(self, then: Callable[[], None]) -> None:
        """Call ``then`` when the group is durable."""
        self._then = then

    def durable(self) -> None:
        """See ``Waiter``."""
        self._then()

    def refused(self, refusal: Refusal) -> None:
        """See ``Waiter``: nothing is left to do."""


class Submit(Protocol):
    """Where groups go to become durable."""

    def __call__(self, group: "CommitGroup", *, alone: bool) -> None:
        """``alone``: small, no other group waits, and nothing more comes in: it may be durable
        when this returns.
        """


class SegmentFile(Protocol):
    """What a batch is written to once it is durable."""

    def write(self, buffers: list[Buffer], position: int) -> None:
        """Write at ``position`` of the log file, into the page cache."""


class GroupMember(Protocol):
    """A partition's log, told on the loop how far its appends have come."""

    def durable_up_to(self, end: tuple[int, int]) -> None:
        """Everything before ``end`` (next offset, bytes ever appended) is visible.

        It survives a power loss before anybody outside can see it.
        """

    def written_up_to(self, end: tuple[int, int]) -> None:
        """Everything before ``end`` can be read from the segment files."""


class StoredBatches:
    """Batches appended together, back to back: where they are in memory and in their segment."""

    __slots__ = ("base_offset", "chunk", "end", "next_offset", "position", "segment", "start")

    def __init__(
        self,
        base_offset: int,
        next_offset: int,
        chunk: Buffer,
        start: int,
        end: int,
        segment: SegmentFile,
        position: int,
    ) -> None:
        """``chunk[start:end]`` holds the batches; ``position`` is their byte in ``segment``."""
        self.base_offset = base_offset
        self.next_offset = next_offset
        self.chunk = chunk
        self.start = start
        self.end = end
        self.segment = segment
        self.position = position


class CommitGroup:
    """What one turn of the loop appended: made durable together, answered together."""

    __slots__ = (
        "answers",
        "awaited",
        "batches",
        "body_bytes",
        "chunks",
        "durable",
        "ends",
        "entry_count",
        "growing",
        "operations",
        "run",
        "sequence",
        "table",
        "waiters",
    )

    def __init__(self, run: int = 0) -> None:
        """Start empty; ``run`` counts the refusals before it."""
        self.run = run
        self.table = bytearray()
        self.entry_count = 0
        self.batches = 0
        self.chunks: list[Buffer] = []
        self.growing: bytearray | None = None
        self.body_bytes = 0
        self.operations: list[StoredBatches | Operation] = []
        self.ends: dict[GroupMember, tuple[int, int]] = {}
        self.answers: list[Answer] = []
        self.waiters: list[Waiter] = []
        self.awaited = False
        """Whether a caller waits for its operations, not only for the disk."""
        self.durable = False
        self.sequence = -1

    @property
    def stored_bytes(self) -> int:
        """What it takes in the journal, but for the header it may share: table and bodies."""
        return len(self.table) + self.body_bytes

    def add_waiter(self, waiter: Waiter) -> None:
        """Tell ``waiter`` on the loop once this group is durable (at once if it already is).

        Call it in the turn that placed what is waited for: a group may be refused in the next one.
        """
        if self.durable:
            waiter.durable()
        else:
            self.waiters.append(waiter)

    def add_answer(self, answer: Answer) -> None:
        """Have ``answer`` made ready on the loop, to leave once this is durable; as add_waiter."""
        if self.durable:
            answer.prepare()
        else:
            self.answers.append(answer)

    def refuse(self, refusal: Refusal) -> None:
        """Tell everyone who waits that nothing of this group is durable, nor ever will be."""
        answers, self.answers = self.answers, []
        for answer in answers:
            answer.refused(refusal)
        waiters, self.waiters = self.waiters, []
        for waiter in waiters:
            waiter.refused(refusal)

    def add_entry(
        self,
        kind: int,
        leader_epoch: int,
        partition_id: int,
        base_offset: int,
        next_offset: int,
        size: int,
        batches: int = 0,
    ) -> None:
        """Add a row to the group's table, for a body of ``batches`` batches."""
        self.table += _ENTRY_PACK(
            kind, leader_epoch, partition_id, base_offset, next_offset, size, 0
        )
        self.entry_count += 1
        self.batches += batches
        self.body_bytes += size

    def add_body(self, batch: memoryview, *, stable: bool) -> tuple[bytearray | memoryview, int]:
        """Take over a batch's bytes; returns the chunk that holds them and where they start.

        ``stable``: this memory is not reused, so a large batch is not copied, unless it is
        read-only: the caller writes offsets into the chunk.
        """
        size = len(batch)
        if stable and size >= STABLE_BATCH_BYTES and not batch.readonly:
            self.chunks.append(batch)
            self.growing = None
            return batch, 0
        if size >= _OWN_CHUNK_BYTES:
            own = bytearray(batch)
            self.chunks.append(own)
            self.growing = None
            return own, 0
        chunk = self.growing_chunk(size)
        start = len(chunk)
        chunk += batch
        return chunk, start

    def growing_chunk(self, size: int) -> bytearray:
        """The chunk that small batches are added to, with room for ``size`` more bytes."""
        chunk = self.growing
        if chunk is None or len(chunk) + size > _CHUNK_BYTES:
            chunk = self.growing = bytearray()
            self.chunks.append(chunk)
        return chunk


class Journal:
    """Opens, closes and submits groups; counts the bytes that are not in the segments yet."""

    def __init__(
        self,
        *,
        submit: Submit,
        schedule: Callable[[Callable[[], None]], object],
        backlog_max_bytes: int,
        on_backlogged: Callable[[bool], None],
    ) -> None:
        """``schedule`` runs a callback at the end of this turn of the loop (``call_soon``).

        ``on_backlogged`` is called with True when more than ``backlog_max_bytes`` wait in memory to
        be durable and written, and False when they no longer do: appenders stop reading requests
        meanwhile.
        """
        self._submit = submit
        self._schedule = schedule
        self._backlog_max_bytes = backlog_max_bytes
        self._open = CommitGroup()
        self._on_backlogged = on_backlogged
        self._backlogged = False
        self._scheduled = False
        self._linger_turns = 0
        self._entries_seen = 0
        self._in_flight: deque[CommitGroup] = deque()
        self._unwritten: deque[CommitGroup] = deque()
        self.backlog_bytes = 0
        self.batches = 0

    def group_for(self, size: int) -> CommitGroup:
        """The open group, with room for ``size`` more bytes; submitted soon after this turn."""
        group = self._open
        if group.body_bytes + size > _GROUP_BYTES and group.entry_count:
            self.flush()
            group = self._open
        if not self._scheduled:
            self._scheduled = True
            self._schedule(self._end_turn)
        return group

    def add_operation(self, operation: Operation) -> None:
        """Run ``operation`` on the segment thread after everything appended so far."""
        self.group_for(0).operations.append(operation)

    @property
    def refusals(self) -> int:
        """How often groups were refused: what was placed before the last time may be gone."""
        return self._open.run

    def newest_group(self) -> CommitGroup | None:
        """The group to wait for so that everything appended so far is durable; None: it is."""
        if self._scheduled:
            return self._open
        return self._in_flight[-1] if self._in_flight else None

    def newest_group_of(self, member: GroupMember) -> CommitGroup | None:
        """Return the last group with an append to a log that is not durable; None: there is none.

        Groups after it may be refused while all that the log holds is durable.
        """
        for group in (self._open, *reversed(self._in_flight)):
            if member in group.ends:
                return group
        return None

    def _end_turn(self) -> None:
        """Submit the open group, unless another look at the sockets may bring more for it."""
        group = self._open
        if self._in_flight or group.body_bytes > _ALONE_BYTES_MAX:
            self._close_group(alone=False)
        elif group.entry_count > self._entries_seen and self._linger_turns < _LINGER_TURNS_MAX:
            self._linger_turns += 1
            self._entries_seen = group.entry_count
            self._schedule(self._end_turn)
        else:
            self._close_group(alone=True)

    def flush(self) -> None:
        """Submit the open group, if anything is in it."""
        self._close_group(alone=False)

    def _close_group(self, *, alone: bool) -> None:
        group = self._open
        self._scheduled = False
        self._linger_turns = self._entries_seen = 0
        if not (group.entry_count or group.operations or group.waiters or group.answers):
            return
        self._open = CommitGroup(group.run)
        self.backlog_bytes += group.body_bytes
        self.batches += group.batches
        if not self._backlogged and self.backlog_bytes > self._backlog_max_bytes:
            self._backlogged = True
            self._on_backlogged(True)
        self._in_flight.append(group)
        self._unwritten.append(group)
        self._submit(group, alone=alone)

    def advance_high_watermarks(self, count: int) -> None:
        """Move the high watermarks over the oldest ``count`` groups in flight.

        Before any answer is made: who is answered can read its record.
        """
        for member, end in _newest_ends(list(islice(self._in_flight, count))).items():
            member.durable_up_to(end)

    def prepare_answers(self, count: int) -> None:
        """Make the answers ready that wait for the oldest ``count`` groups in flight."""
        for group in islice(self._in_flight, count):
            answers, group.answers = group.answers, []
            for answer in answers:
                answer.prepare()

    def groups_became_durable(self, count: int) -> None:
        """The oldest ``count`` groups in flight survive a power loss now; tell who waited.

        ``advance_high_watermarks`` and ``prepare_answers`` have been called for them.
        """
        done = [self._in_flight.popleft() for _ in range(count)]
        for group in done:
            group.durable = True
        for group in done:
            waiters, group.waiters = group.waiters, []
            for waiter in waiters:
                waiter.durable()

    def drop(self) -> list[CommitGroup]:
        """Begin a new run of groups; returns those that are not durable, the open one last.

        Nothing of them was shown. What they were to do to files is the caller's to sort out, and
        who waits for them its to tell.
        """
        dropped = [*self._in_flight, self._open]
        for group in self._in_flight:
            self._unwritten.pop()
            self.backlog_bytes -= group.body_bytes
        self._in_flight.clear()
        self._open = CommitGroup(self._open.run + 1)
        self._linger_turns = self._entries_seen = 0
        self._look_at_backlog()
        return dropped

    def groups_were_written(self, count: int) -> None:
        """The oldest ``count`` groups can be read from the segment files now; memory lets go."""
        done = [self._unwritten.popleft() for _ in range(count)]
        for group in done:
            self.backlog_bytes -= group.body_bytes
        for member, end in _newest_ends(done).items():
            member.written_up_to(end)
        self._look_at_backlog()

    def _look_at_backlog(self) -> None:
        """Let appenders go on once little enough waits."""
        if self._backlogged and self.backlog_bytes <= self._backlog_max_bytes:
            self._backlogged = False
            self._on_backlogged(False)


def _newest_ends(groups: list[CommitGroup]) -> dict[GroupMember, tuple[int, int]]:
    """How far each log has come with ``groups``: the last one that it is in says so."""
    if len(groups) == 1:
        return groups[0].ends
    newest: dict[GroupMember, tuple[int, int]] = {}
    for group in groups:
        newest.update(group.ends)
    return newest
