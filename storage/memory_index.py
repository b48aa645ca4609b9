"""A log index in memory: for brokers of one process, whose cluster ends with it.

``MemoryIndex`` is what all of them share; each call of it is one step that no other comes between.
``MemoryLogIndex`` is one broker's way there: slow, cut, or losing answers, as it is told.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import ParamSpec, TypeVar
from uuid import UUID

from barnabas.storage.log_index import (
    Extent,
    ExtentSize,
    Flush,
    FlushAnswer,
    IndexClosed,
    IndexMisused,
    Item,
    LogSnapshot,
    LogStart,
    Outcome,
    PartitionState,
)

_base_offset = attrgetter("base_offset")
_next_offset = attrgetter("next_offset")

Answer = TypeVar("Answer")
Asked = ParamSpec("Asked")


@dataclass(slots=True)
class PartitionRow:
    """A partition: who leads it, and all that is durable of it."""

    leader_epoch: int
    leader_session: int | None = None
    extents: list[Extent] = field(default_factory=list)
    log_start_offset: int = 0
    log_end_offset: int = 0
    """Where the next extent has to begin."""
    is_deleted: bool = False
    snapshot: LogSnapshot | None = None

    @property
    def needless_offset(self) -> int:
        """Extents that end at or before it are garbage."""
        if self.is_deleted:
            return self.log_end_offset
        return min(self.log_start_offset, self.snapshot.next_offset) if self.snapshot else 0


@dataclass(slots=True)
class _Session:
    """One life of a broker."""

    token: UUID
    node_id: int
    lease_until: float
    is_live: bool = True
    is_draining: bool = False
    next_flushes: dict[int, int] = field(default_factory=dict)
    """The number of each lane's next flush; a lane that is not here has had none."""


class MemoryIndex:
    """All sessions and partitions. Any thread may call it; see ``LogIndex`` for what it does."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """``clock`` says when leases end, in seconds."""
        self.rows: dict[int, PartitionRow] = {}
        self._sessions: dict[int, _Session] = {}
        self._clock = clock
        self._lock = threading.Lock()

    def register(self, token: UUID, node_id: int, endpoints: str, lease_ms: int) -> int:
        """See ``LogIndex``; nobody asks for endpoints here."""
        del endpoints
        with self._lock:
            for number, session in self._sessions.items():
                if session.token == token:
                    return number
                if session.node_id == node_id:
                    session.is_live = False
            number = 1 + len(self._sessions)
            self._sessions[number] = _Session(token, node_id, self._lease_until(lease_ms))
            return number

    def heartbeat(self, session: int, lease_ms: int) -> bool:
        """See ``LogIndex``."""
        with self._lock:
            found = self._sessions[session]
            found.lease_until = self._lease_until(lease_ms)
            return found.is_live

    def fence_expired(self) -> frozenset[int]:
        """See ``LogIndex``."""
        with self._lock:
            now = self._clock()
            expired = {
                number: session
                for number, session in self._sessions.items()
                if session.is_live and session.lease_until < now
            }
            for session in expired.values():
                session.is_live = False
            return frozenset(expired)

    def fence(self, session: int) -> None:
        """See ``LogIndex``."""
        with self._lock:
            self._sessions[session].is_live = False

    def drain(self, session: int) -> None:
        """See ``LogIndex``."""
        with self._lock:
            self._sessions[session].is_draining = True

    def add_partition(self, partition_id: int, first_epoch: int = 0) -> None:
        """See ``LogIndex``."""
        with self._lock:
            self.rows.setdefault(partition_id, PartitionRow(first_epoch - 1))

    def remove_partitions(self, partition_ids: Iterable[int]) -> None:
        """Have nobody lead partitions of a topic that was deleted, for good."""
        with self._lock:
            for partition_id in partition_ids:
                row = self.rows[partition_id]
                row.leader_session, row.is_deleted = None, True

    def assign(self, partition_id: int, session: int, expected_epoch: int) -> bool:
        """See ``LogIndex``."""
        with self._lock:
            found, row = self._sessions[session], self.rows[partition_id]
            if found.is_draining or not found.is_live or row.is_deleted:
                return False
            if row.leader_epoch == expected_epoch:
                row.leader_session, row.leader_epoch = session, expected_epoch + 1
            return (row.leader_session, row.leader_epoch) == (session, expected_epoch + 1)

    def release(self, partition_id: int, session: int, epoch: int) -> bool:
        """See ``LogIndex``."""
        with self._lock:
            row = self.rows[partition_id]
            if row.leader_epoch == epoch and row.leader_session == session:
                row.leader_session = None
            return row.leader_epoch == epoch and row.leader_session is None

    def commit_flush(self, session: int, flush: Flush) -> FlushAnswer:
        """See ``LogIndex``."""
        with self._lock:
            found = self._sessions[session]
            number = found.next_flushes.get(flush.lane, 0)
            if number > flush.number:
                return FlushAnswer(Outcome.COMMITTED)
            if not found.is_live:
                return FlushAnswer(Outcome.FENCED)
            if number != flush.number:
                raise IndexMisused(f"flush {flush.number} comes instead of {number}")
            refused = self._led_elsewhere(session, flush)
            if refused:
                return FlushAnswer(Outcome.REFUSED, refused)
            self._write(flush)
            found.next_flushes[flush.lane] = number + 1
            return FlushAnswer(Outcome.COMMITTED)

    def partition(self, partition_id: int) -> PartitionState | None:
        """See ``LogIndex``."""
        with self._lock:
            row = self.rows.get(partition_id)
            if row is None:
                return None
            return PartitionState(
                row.leader_session, row.leader_epoch, row.log_start_offset, row.log_end_offset
            )

    def extents(self, partition_id: int, from_offset: int, *, most: int) -> list[Extent]:
        """See ``LogIndex``."""
        with self._lock:
            return self._extents(partition_id, from_offset, most)

    def extent_sizes(self, partition_id: int, from_offset: int, *, most: int) -> list[ExtentSize]:
        """See ``LogIndex``."""
        with self._lock:
            found = self._extents(partition_id, from_offset, most)
        return [ExtentSize(each.base_offset, each.next_offset, len(each.data)) for each in found]

    def put_snapshot(
        self, session: int, partition_id: int, epoch: int, snapshot: LogSnapshot
    ) -> bool:
        """See ``LogIndex``."""
        with self._lock:
            if not self._leads_still(session, partition_id, epoch):
                return False
            row = self.rows[partition_id]
            if snapshot.next_offset > row.log_end_offset:
                raise IndexMisused(f"a snapshot behind the end, {row.log_end_offset}")
            if row.snapshot is None or row.snapshot.next_offset < snapshot.next_offset:
                row.snapshot = snapshot
            return True

    def snapshot(self, partition_id: int) -> LogSnapshot | None:
        """See ``LogIndex``."""
        with self._lock:
            row = self.rows.get(partition_id)
            return None if row is None else row.snapshot

    def collect_garbage(self, most: int) -> int:
        """See ``LogIndex``."""
        deleted = 0
        with self._lock:
            for partition_id, row in [*self.rows.items()]:
                found = bisect_right(row.extents, row.needless_offset, key=_next_offset)
                found = min(found, most - deleted)
                del row.extents[:found]
                deleted += found
                if row.is_deleted and not row.extents:
                    del self.rows[partition_id]
        return deleted

    def replace_extents(
        self, session: int, partition_id: int, epoch: int, extents: Sequence[Extent]
    ) -> bool:
        """See ``LogIndex``."""
        with self._lock:
            if not self._leads_still(session, partition_id, epoch):
                return False
            row = self.rows[partition_id]
            begin, end = extents[0].base_offset, extents[-1].next_offset
            first = bisect_left(row.extents, begin, key=_base_offset)
            after = bisect_right(row.extents, end, key=_next_offset)
            replaced = row.extents[first:after]
            if not (
                replaced
                and (replaced[0].base_offset, replaced[-1].next_offset) == (begin, end)
                and all(map(_touch, extents, extents[1:]))
                and all(each.data for each in extents)
                and row.snapshot is not None
                and row.snapshot.next_offset >= end
            ):
                raise IndexMisused(f"{begin} to {end} of {partition_id} is not to be replaced")
            row.extents[first:after] = extents
            return True

    def _extents(self, partition_id: int, from_offset: int, most: int) -> list[Extent]:
        row = self.rows.get(partition_id)
        found = [] if row is None else row.extents
        first = bisect_right(found, from_offset, key=_next_offset)
        return found[first : first + most]

    def _lease_until(self, lease_ms: int) -> float:
        return self._clock() + lease_ms / 1000

    def _led_elsewhere(self, session: int, flush: Flush) -> frozenset[int]:
        """The partitions of ``flush`` that its session does not lead in the epoch it says."""
        named: list[Item | LogStart] = [*flush.items, *flush.starts]
        return frozenset(
            each.partition_id
            for each in named
            if not self._leads(session, each.partition_id, each.leader_epoch)
        )

    def _leads(self, session: int, partition_id: int, epoch: int) -> bool:
        row = self.rows.get(partition_id)
        return row is not None and (row.leader_session, row.leader_epoch) == (session, epoch)

    def _leads_still(self, session: int, partition_id: int, epoch: int) -> bool:
        return self._sessions[session].is_live and self._leads(session, partition_id, epoch)

    def _write(self, flush: Flush) -> None:
        payload = memoryview(flush.payload or b"")
        partition_ids = {item.partition_id for item in flush.items}
        if len(partition_ids) < len(flush.items):
            raise IndexMisused("two items of one partition")
        for item in flush.items:
            row = self.rows[item.partition_id]
            data = bytes(payload[item.position : item.position + item.length])
            fits = (
                item.base_offset == row.log_end_offset < item.next_offset
                and len(data) == item.length > 0
            )
            if not fits:
                raise IndexMisused(f"{item} does not go on at {row.log_end_offset} with its bytes")
            row.extents.append(Extent(item.base_offset, item.next_offset, item.leader_epoch, data))
            row.log_end_offset = item.next_offset
        for start in flush.starts:
            row = self.rows[start.partition_id]
            if start.offset > row.log_end_offset:
                raise IndexMisused(f"{start} is behind the end, {row.log_end_offset}")
            row.log_start_offset = max(row.log_start_offset, start.offset)


def _touch(before: Extent, after: Extent) -> bool:
    return before.next_offset == after.base_offset


class MemoryLogIndex:
    """A ``LogIndex``: one broker's calls, each made again until its answer is heard.

    Any thread may tell it what becomes of them.
    """

    def __init__(
        self, index: MemoryIndex, on_flush: Callable[[Flush], None] = lambda _flush: None
    ) -> None:
        """``on_flush`` is called before each attempt of a flush: what it takes, the way takes."""
        self._index = index
        self._on_flush = on_flush
        self._changed = threading.Condition()
        self._is_cut = False
        self._is_closed = False
        self._answers_to_lose = 0

    def cut(self) -> None:
        """Let nothing through until ``mend``: calls wait, and are not answered."""
        with self._changed:
            self._is_cut = True

    def mend(self) -> None:
        """Let everything through again."""
        with self._changed:
            self._is_cut = False
            self._changed.notify_all()

    def lose_answers(self, count: int) -> None:
        """Lose the next ``count`` answers: what was done is done, and nobody hears of it."""
        with self._changed:
            self._answers_to_lose = count

    def register(self, token: UUID, node_id: int, endpoints: str, lease_ms: int) -> int:
        """See ``LogIndex``."""
        return self._ask(self._index.register, token, node_id, endpoints, lease_ms)

    def heartbeat(self, session: int, lease_ms: int) -> bool:
        """See ``LogIndex``."""
        return self._ask(self._index.heartbeat, session, lease_ms)

    def fence_expired(self) -> frozenset[int]:
        """See ``LogIndex``."""
        return self._ask(self._index.fence_expired)

    def fence(self, session: int) -> None:
        """See ``LogIndex``."""
        self._ask(self._index.fence, session)

    def drain(self, session: int) -> None:
        """See ``LogIndex``."""
        self._ask(self._index.drain, session)

    def add_partition(self, partition_id: int, first_epoch: int = 0) -> None:
        """See ``LogIndex``."""
        self._ask(self._index.add_partition, partition_id, first_epoch)

    def assign(self, partition_id: int, session: int, expected_epoch: int) -> bool:
        """See ``LogIndex``."""
        return self._ask(self._index.assign, partition_id, session, expected_epoch)

    def release(self, partition_id: int, session: int, epoch: int) -> bool:
        """See ``LogIndex``."""
        return self._ask(self._index.release, partition_id, session, epoch)

    def commit_flush(self, session: int, flush: Flush) -> FlushAnswer:
        """See ``LogIndex``."""
        return self._ask(self._attempt_flush, session, flush)

    def partition(self, partition_id: int) -> PartitionState | None:
        """See ``LogIndex``."""
        return self._ask(self._index.partition, partition_id)

    def extents(self, partition_id: int, from_offset: int, *, most: int) -> list[Extent]:
        """See ``LogIndex``."""
        return self._ask(self._index.extents, partition_id, from_offset, most=most)

    def put_snapshot(
        self, session: int, partition_id: int, epoch: int, snapshot: LogSnapshot
    ) -> bool:
        """See ``LogIndex``."""
        return self._ask(self._index.put_snapshot, session, partition_id, epoch, snapshot)

    def snapshot(self, partition_id: int) -> LogSnapshot | None:
        """See ``LogIndex``."""
        return self._ask(self._index.snapshot, partition_id)

    def collect_garbage(self, most: int) -> int:
        """See ``LogIndex``."""
        return self._ask(self._index.collect_garbage, most)

    def extent_sizes(self, partition_id: int, from_offset: int, *, most: int) -> list[ExtentSize]:
        """See ``LogIndex``."""
        return self._ask(self._index.extent_sizes, partition_id, from_offset, most=most)

    def replace_extents(
        self, session: int, partition_id: int, epoch: int, extents: Sequence[Extent]
    ) -> bool:
        """See ``LogIndex``."""
        return self._ask(self._index.replace_extents, session, partition_id, epoch, extents)

    def close(self) -> None:
        """See ``LogIndex``."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _attempt_flush(self, session: int, flush: Flush) -> FlushAnswer:
        self._on_flush(flush)
        return self._index.commit_flush(session, flush)

    def _ask(
        self,
        question: Callable[Asked, Answer],
        *arguments: Asked.args,
        **named: Asked.kwargs,
    ) -> Answer:
        while True:
            self._go_there()
            answer = question(*arguments, **named)
            if self._answer_arrives():
                return answer

    def _go_there(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or not self._is_cut)
            if self._is_closed:
                raise IndexClosed

    def _answer_arrives(self) -> bool:
        """Whether the way is open back, too."""
        with self._changed:
            if self._answers_to_lose:
                self._answers_to_lose -= 1
                return False
            return not self._is_cut
