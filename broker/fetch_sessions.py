"""Incremental fetch sessions (KIP-227): what a client fetches, remembered between its requests.

Rules of this file:

1. A session belongs to whoever knows its id; ids are random, so that two clients do not meet.
2. Epochs count a session's requests: a request with another epoch than the expected one is refused
   and changes nothing, so a lost answer can never be taken for a seen one.
3. The cache has a fixed number of slots. When it is full the session that was idle longest gives
   way, but none that was used within the last two minutes: then the client gets no session, which
   costs it bytes, never correctness.
"""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from protocol.errors import ErrorCode, KafkaError
from protocol.messages.fetch import FetchPartition, FetchRequest

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_EPOCH_MAX: Final = 2**31 - 1
_EVICTION_MS: Final = 120_000

Key = tuple[str, bytes, int]
"""Topic name (empty when the client names ids), topic id (zero otherwise), partition."""


@dataclass(slots=True)
class Asked:
    """One partition of a fetch, and what its reader was last told of it."""

    topic: str
    topic_id: bytes
    request: FetchPartition
    told_high_watermark: int = -1
    told_log_start: int = -1

    @property
    def key(self) -> Key:
        """What names this partition within its session."""
        return self.topic, self.topic_id, self.request.partition


@dataclass(slots=True)
class FetchSession:
    """A session's partitions, in the order in which they are served next."""

    session_id: int
    by_id: bool
    epoch: int
    last_used_ms: int
    partitions: OrderedDict[Key, Asked] = field(default_factory=OrderedDict)


@dataclass(slots=True)
class FetchPlan:
    """What one request asks for; ``session`` is None for a fetch outside any session."""

    asked: list[Asked]
    session: FetchSession | None
    incremental: bool

    @property
    def session_id(self) -> int:
        """The id to answer with."""
        return self.session.session_id if self.session is not None else NO_SESSION


class FetchSessions:
    """The sessions of all clients; ``slots`` of them at most."""

    def __init__(self, slots: int) -> None:
        """No session exists yet."""
        self._slots = slots
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()
        self._random = random.SystemRandom()

    def __len__(self) -> int:
        """How many sessions there are."""
        return len(self._sessions)

    def plan(self, request: FetchRequest, *, by_id: bool, now_ms: int) -> FetchPlan:
        """Say what ``request`` asks for; raises KafkaError where session or epoch are wrong."""
        if request.session_epoch in {INITIAL_EPOCH, FINAL_EPOCH}:
            self._sessions.pop(request.session_id, None)
            asked = _asked(request)
            if request.session_epoch == FINAL_EPOCH:
                return FetchPlan(asked, None, incremental=False)
            return FetchPlan(asked, self._new(asked, by_id=by_id, now_ms=now_ms), incremental=False)
        session = self._sessions.get(request.session_id)
        if session is None:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != request.session_epoch:
            raise KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.by_id != by_id:
            raise KafkaError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        self._update(session, request, now_ms)
        if not session.partitions:  # As with Apache Kafka, nothing left to fetch ends a session.
            del self._sessions[session.session_id]
            return FetchPlan([], None, incremental=False)
        return FetchPlan(list(session.partitions.values()), session, incremental=True)

    def _new(self, asked: list[Asked], *, by_id: bool, now_ms: int) -> FetchSession | None:
        """A session for a client that asked for one; None when there is no room."""
        if not self._make_room(now_ms):
            return None
        session_id = NO_SESSION
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = self._random.randrange(1, 2**31)
        session = FetchSession(session_id, by_id, _next_epoch(INITIAL_EPOCH), now_ms)
        session.partitions.update((partition.key, partition) for partition in asked)
        self._sessions[session_id] = session
        return session

    def _make_room(self, now_ms: int) -> bool:
        if len(self._sessions) < self._slots:
            return True
        idle_longest = next(iter(self._sessions.values()), None)
        if idle_longest is None or now_ms - idle_longest.last_used_ms < _EVICTION_MS:
            return False
        del self._sessions[idle_longest.session_id]
        return True

    def _update(self, session: FetchSession, request: FetchRequest, now_ms: int) -> None:
        session.epoch = _next_epoch(session.epoch)
        session.last_used_ms = now_ms
        self._sessions.move_to_end(session.session_id)
        for asked in _asked(request):
            known = session.partitions.get(asked.key)
            if known is None:
                session.partitions[asked.key] = asked
            else:
                known.request = asked.request
        for topic in request.forgotten_topics_data:
            for partition in topic.partitions:
                session.partitions.pop((topic.topic, topic.topic_id, partition), None)


def served_first(session: FetchSession, served: Iterable[Asked]) -> None:
    """Put partitions that got records at the end, so that all get their turn (KIP-227)."""
    for asked in served:
        if asked.key in session.partitions:
            session.partitions.move_to_end(asked.key)


def _asked(request: FetchRequest) -> list[Asked]:
    return [
        Asked(topic.topic, topic.topic_id, partition)
        for topic in request.topics
        for partition in topic.partitions
    ]


def _next_epoch(epoch: int) -> int:
    """Epochs go round without the two values that mean something."""
    return epoch + 1 if epoch < _EPOCH_MAX else 1
