"""A log index in memory: for brokers of one process, whose cluster ends with it.

``MemoryIndex`` is what all of them share; each call of it is one step that no other comes between.
``MemoryLogIndex`` is one broker's way there: slow, cut, or losing answers, as it is told.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import ParamSpec, TypeVar
from uuid import UUID

from barnabas.storage.log_index import (
    Extent,
    Flush,
    FlushAnswer,
    IndexClosed,
    IndexMisused,
    Item,
    LogStart,
    Outcome,
    PartitionState,
)

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

    @property
    def log_end_offset(self) -> int:
        """Where the next extent has to begin."""
        return self.extents[-1].next_offset if self.extents else 0


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

    def assign(self, partition_id: int, session: int, expected_epoch: int) -> bool:
        """See ``LogIndex``."""
        with self._lock:
            found, row = self._sessions[session], self.rows[partition_id]
            if found.is_draining or not found.is_live:
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
            found = self.rows[partition_id].extents
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
        for start in flush.starts:
            row = self.rows[start.partition_id]
            if start.offset > row.log_end_offset:
                raise IndexMisused(f"{start} is behind the end, {row.log_end_offset}")
            row.log_start_offset = max(row.log_start_offset, start.offset)


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
