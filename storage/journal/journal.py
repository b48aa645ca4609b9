"""The journal as the event loop sees it: appends of one turn are committed together.

Rules of this file:

1. Only the loop calls it. The batches that one turn of the loop appends are one ``CommitGroup``.
   The journal thread merges the commit groups that wait into one journal group and one
   ``fdatasync``. While that thread is idle, a small commit group stays open as long as each turn
   adds to it. It may then be made durable on the loop, which has no other work meanwhile.
2. Where the loop itself commits, a commit group's logs advance and its responses are prepared
   before it is durable, if possible while the disk is at work. None of that leaves the process
   before.
3. Commit groups become durable in the order in which they were submitted, so a waiter of the newest
   one also waits for everything before it (S4: a duplicate waits for its original).
4. The ``operations`` of a commit group change the partition directories and segment files. They run
   on the segment thread, in order, after the commit group is durable; no other thread changes those
   files meanwhile.
5. In a cluster commit groups may be refused. Then each one that is not durable is dropped,
   including the open one, for it may build on a refused one, and a new run of commit groups starts.
   Each waiter is notified once: its commit group is durable, or never will be.
"""

from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Final, Protocol

from barnabas.storage.files.file_system import Buffer
from barnabas.storage.journal.journal_format import ENTRY
from barnabas.storage.journal.refusal import Refusal

STABLE_BATCH_BYTES: Final = 64 * 1024
"""Size from which a batch whose memory is its own is referenced instead of copied."""

_OWN_CHUNK_BYTES: Final = 4 * 1024
"""Size from which a copied batch gets a chunk of its own: growing a large one copies it again."""

_CHUNK_BYTES: Final = 64 * 1024
_GROUP_BYTES: Final = 4 * 1024 * 1024

_ALONE_BYTES_MAX: Final = 512 * 1024
"""Size above which a commit group goes to the journal thread: the loop has other work than to write
it."""

_LINGER_TURNS_MAX: Final = 4
"""Maximum number of turns that the sockets are read again before a commit group is closed, as long
as each turn adds to it. Clients that get their responses together send their next requests
together: one sync for all costs less than one for each half, and no request waits for the other
half's."""
_ENTRY_PACK: Final = ENTRY.pack

Operation = Callable[[], None]


class Answer(Protocol):
    """A response that leaves the process when a commit group is durable, or else an error."""

    def prepare(self) -> None:
        """Prepare the response that leaves once the commit group is durable.

        It may run before that: it must have no effect outside of the process.
        """

    def refused(self, refusal: Refusal) -> None:
        """Respond that the commit group was refused; ``prepare`` is never called."""


class Waiter(Protocol):
    """A waiter of a commit group: exactly one of its methods is called, once, on the loop."""

    def durable(self) -> None:
        """Called when the commit group survives a power loss."""

    def refused(self, refusal: Refusal) -> None:
        """Called when the commit group was refused: none of its batches ever becomes durable."""


class WhenDurable:
    """A waiter for a commit group with an append to a log; a refusal of it closes the log."""

    __slots__ = ("_then",)

    def __init__(self, then: Callable[[], None]) -> None:
        """Call ``then`` when the commit group is durable."""
        self._then = then

    def durable(self) -> None:
        """See ``Waiter``."""
        self._then()

    def refused(self, refusal: Refusal) -> None:
        """See ``Waiter``: nothing is left to do."""


class Submit(Protocol):
    """The function that submits commit groups to become durable."""

    def __call__(self, group: "CommitGroup", *, alone: bool) -> None:
        """Submit ``group``.

        ``alone``: the commit group is small, no other one waits, and no request arrives. It may
        then be durable on return.
        """


class SegmentFile(Protocol):
    """The file that durable batches are written to."""

    def write(self, buffers: list[Buffer], position: int) -> None:
        """Write at ``position`` of the log file, into the page cache."""


class GroupMember(Protocol):
    """Partition log that is notified of the progress of its appends, on the loop."""

    def durable_up_to(self, end: tuple[int, int]) -> None:
        """Called when all batches before ``end`` (next offset, bytes ever appended) are visible.

        They are durable before any client can read them.
        """

    def written_up_to(self, end: tuple[int, int]) -> None:
        """Called when all batches before ``end`` can be read from the segment files."""


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
    """The batches that one turn of the loop appended, made durable and acknowledged together."""

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
        """Bytes in the journal, without the header that it may share: table and bodies."""
        return len(self.table) + self.body_bytes

    def add_waiter(self, waiter: Waiter) -> None:
        """Notify ``waiter`` on the loop once this commit group is durable (at once if it already
        is).

        Call it in the turn that appended the batches: a later turn may find the commit group
        refused.
        """
        if self.durable:
            waiter.durable()
        else:
            self.waiters.append(waiter)

    def add_answer(self, answer: Answer) -> None:
        """Prepare ``answer`` on the loop, and send it when this is durable; see add_waiter."""
        if self.durable:
            answer.prepare()
        else:
            self.answers.append(answer)

    def refuse(self, refusal: Refusal) -> None:
        """Notify every waiter that no batch of this commit group ever becomes durable."""
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
        """Add a row to the commit group's table, for a body of ``batches`` batches."""
        self.table += _ENTRY_PACK(
            kind, leader_epoch, partition_id, base_offset, next_offset, size, 0
        )
        self.entry_count += 1
        self.batches += batches
        self.body_bytes += size

    def add_body(self, batch: memoryview, *, stable: bool) -> tuple[bytearray | memoryview, int]:
        """Add a batch's bytes; return the chunk that holds them and their start.

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
        """Return the chunk to which small batches are added, with room for ``size`` more bytes."""
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

        ``on_backlogged`` is called with True when more than ``backlog_max_bytes`` are in memory and
        not yet written, and with False when there are fewer again. Appenders read no requests
        between the two calls.
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
        """Return the open commit group, with room for ``size`` more bytes; submitted soon after
        this turn.
        """
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
        """Number of refusals; batches appended before the last one may have been dropped."""
        return self._open.run

    def newest_group(self) -> CommitGroup | None:
        """Return the commit group whose durability covers all appends, or None if all are
        durable.
        """
        if self._scheduled:
            return self._open
        return self._in_flight[-1] if self._in_flight else None

    def newest_group_of(self, member: GroupMember) -> CommitGroup | None:
        """Return the last commit group with an append to ``member`` that is not durable, or None.

        Later commit groups may be refused while everything in ``member`` is durable.
        """
        for group in (self._open, *reversed(self._in_flight)):
            if member in group.ends:
                return group
        return None

    def _end_turn(self) -> None:
        """Submit the open commit group, unless another turn of the sockets may add to it."""
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
        """Submit the open commit group unless it is empty."""
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
        """Move the high watermarks past the oldest ``count`` commit groups in flight.

        Called before any response is prepared: a producer with a response can read its record.
        """
        for member, end in _newest_ends(list(islice(self._in_flight, count))).items():
            member.durable_up_to(end)

    def prepare_answers(self, count: int) -> None:
        """Prepare the responses that wait for the oldest ``count`` commit groups in flight."""
        for group in islice(self._in_flight, count):
            answers, group.answers = group.answers, []
            for answer in answers:
                answer.prepare()

    def groups_became_durable(self, count: int) -> None:
        """Notify the waiters of the oldest ``count`` commit groups, which survive a power loss now.

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
        """Start a new run of commit groups; return those that are not durable, the open one last.

        No client has seen them. The caller must drop their operations on files, and notify their
        waiters.
        """
        dropped = [*self._in_flight, self._open]
        for group in self._in_flight:
            self._unwritten.pop()
            self.backlog_bytes -= group.body_bytes
        self._in_flight.clear()
        self._open = CommitGroup(self._open.run + 1)
        self._linger_turns = self._entries_seen = 0
        self._resume_if_backlog_drained()
        return dropped

    def groups_were_written(self, count: int) -> None:
        """Release the memory of the oldest ``count`` commit groups: the segment files have them."""
        done = [self._unwritten.popleft() for _ in range(count)]
        for group in done:
            self.backlog_bytes -= group.body_bytes
        for member, end in _newest_ends(done).items():
            member.written_up_to(end)
        self._resume_if_backlog_drained()

    def _resume_if_backlog_drained(self) -> None:
        """Admit appends again if the backlog is small enough."""
        if self._backlogged and self.backlog_bytes <= self._backlog_max_bytes:
            self._backlogged = False
            self._on_backlogged(False)


def _newest_ends(groups: list[CommitGroup]) -> dict[GroupMember, tuple[int, int]]:
    """Return the end of each log in ``groups``, by the last commit group with the log."""
    if len(groups) == 1:
        return groups[0].ends
    newest: dict[GroupMember, tuple[int, int]] = {}
    for group in groups:
        newest.update(group.ends)
    return newest
