"""Incremental fetch sessions (KIP-227): the partitions of a client, kept between its requests.

Rules of this file:

1. A session belongs to the client that knows its id; ids are random, so two clients do not collide.
   A client authenticated as another user gets the error of an unknown session. Permissions are
   checked for the user of each fetch, not for the creator of the session.
2. Epochs count the requests of a session: a request with an unexpected epoch is refused and changes
   nothing, so a lost response is never treated as received.
3. The number of sessions and of their partitions is limited. If there is no space, sessions unused
   for two minutes are evicted; then, as in Apache Kafka, sessions older than two minutes that have
   fewer partitions than the new one, the smallest first. Otherwise the client gets no session,
   which costs bytes, but never correctness.
4. A partition that does not exist can be created later, and the client does not name it again. So
   it is kept in the session, up to a limit; beyond the limit the client gets no session.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from barnabas.broker.security.acls.access import OPEN_MARK
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest
from barnabas.storage.runtime.chance import random_below

if TYPE_CHECKING:
    from barnabas.broker.config.broker_config import BrokerConfig

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_EPOCH_MAX: Final = 2**31 - 1
_EVICTION_MS: Final = 120_000
UNKNOWN_MOST: Final = 100
"""Partitions in a session that do not exist."""
NAME_MOST: Final = 249
"""Topics with longer names never exist."""

Key = tuple[str, bytes, int]
"""Topic name (empty when the client names ids), topic id (zero otherwise), partition."""


class Asked:
    """One partition of a fetch, with the state that was last sent to its consumer.

    Each request creates some of these objects, so this is no dataclass: mypyc creates those slowly.
    """

    __slots__ = (
        "allowed_mark",
        "request",
        "sent_high_watermark",
        "sent_log_start",
        "topic",
        "topic_id",
    )

    def __init__(self, topic: str, topic_id: bytes, request: FetchPartition) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.request = request
        self.sent_high_watermark = -1
        self.sent_log_start = -1
        self.allowed_mark = OPEN_MARK
        """Version of the permissions that last allowed to read this partition
        (``security/acls/access.py``)."""

    @property
    def key(self) -> Key:
        """Key of this partition within its session."""
        return self.topic, self.topic_id, self.request.partition


@dataclass(slots=True)
class FetchSession:
    """A session's partitions, in the order in which they are served next."""

    session_id: int
    principal: str
    by_id: bool
    epoch: int
    created_ms: int
    last_used_ms: int
    partitions: OrderedDict[Key, Asked] = field(default_factory=OrderedDict)


class FetchPlan:
    """Partitions of one request; ``session`` is None for a fetch outside of any session."""

    __slots__ = ("asked", "incremental", "session")

    def __init__(
        self, requested: list[Asked], session: FetchSession | None, *, incremental: bool
    ) -> None:
        self.asked = requested
        self.session = session
        self.incremental = incremental

    @property
    def session_id(self) -> int:
        """Session ID for the response."""
        return self.session.session_id if self.session is not None else NO_SESSION


Exists = Callable[[Asked], bool]


class FetchSessions:
    """The sessions of all clients; ``slots`` of them at most.

    All together remember ``partitions_max`` partitions, one alone ``session_max``.
    """

    def __init__(
        self, slots: int, *, partitions_max: int = 1 << 30, session_max: int = 1 << 30
    ) -> None:
        """Create an empty cache of sessions."""
        self._slots = slots
        self._partitions_max = partitions_max
        self._session_max = min(session_max, partitions_max)
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()
        self.partitions = 0
        """Total number of partitions in all sessions."""

    def __len__(self) -> int:
        """Number of sessions."""
        return len(self._sessions)

    def plan(
        self,
        request: FetchRequest,
        *,
        principal: str,
        by_id: bool,
        now_ms: int,
        exists: Exists,
        requested: list[Asked] | None = None,
    ) -> FetchPlan:
        """Return the plan of ``request``; raises KafkaError for a wrong session or epoch.

        ``principal``: user of the request. ``requested``: result of ``asked_of``, if that took more
        than one turn.
        """
        if requested is None:
            requested = asked_of(request)
        session = self._sessions.get(request.session_id)
        if session is not None and session.principal != principal:
            session = None
        if request.session_epoch in {INITIAL_EPOCH, FINAL_EPOCH}:
            if session is not None:
                self._drop(session.session_id)
            if request.session_epoch == FINAL_EPOCH:
                return FetchPlan(requested, None, incremental=False)
            session = None
            if len(requested) <= self._session_max and _is_worth_it(requested, exists):
                session = self._new(requested, principal, by_id=by_id, now_ms=now_ms)
            return FetchPlan(requested, session, incremental=False)
        if session is None:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != request.session_epoch:
            raise KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.by_id != by_id:
            raise KafkaError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        is_larger = self._update(session, request, requested, now_ms)
        if is_larger and not self._fits(session, now_ms, exists):
            # The client requests everything again, with a new session if possible.
            self._drop(session.session_id)
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if not session.partitions:  # As with Apache Kafka, nothing left to fetch ends a session.
            self._drop(session.session_id)
            return FetchPlan([], None, incremental=False)
        return FetchPlan(list(session.partitions.values()), session, incremental=True)

    def forget(self, plan: FetchPlan) -> None:
        """End a session whose ID was not sent to its client."""
        self._drop(plan.session_id)

    def _new(
        self, requested: list[Asked], principal: str, *, by_id: bool, now_ms: int
    ) -> FetchSession | None:
        """Return a new session, or None if no room is left."""
        count = len(requested)
        if count > self._session_max or not self._make_room(count, count, now_ms):
            return None
        if len(self._sessions) >= self._slots:
            return None
        session_id = NO_SESSION
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = 1 + random_below(2**31 - 1)
        epoch = _next_epoch(INITIAL_EPOCH)
        session = FetchSession(session_id, principal, by_id, epoch, now_ms, now_ms)
        for each in requested:
            session.partitions[each.key] = each
        self._sessions[session_id] = session
        self.partitions += count
        return session

    def _drop(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self.partitions -= len(session.partitions)

    def _make_room(
        self, more: int, size: int, now_ms: int, *, grows: FetchSession | None = None
    ) -> bool:
        """Return whether ``more`` partitions fit; the session then has ``size``.

        Evicts other sessions for it, or none if that would not make enough room. ``grows``: the
        session exists already.
        """
        over = self.partitions + more - self._partitions_max
        slots = 0 if grows is not None else len(self._sessions) + 1 - self._slots
        if over <= 0 and slots <= 0:
            return True
        stale = [
            each
            for each in self._sessions.values()
            if each is not grows and now_ms - each.last_used_ms >= _EVICTION_MS
        ]
        smaller = [
            each
            for each in self._sessions.values()
            if each is not grows
            and now_ms - each.last_used_ms < _EVICTION_MS <= now_ms - each.created_ms
            and len(each.partitions) < size
        ]
        doomed: list[FetchSession] = []
        for each in (*stale, *sorted(smaller, key=lambda session: len(session.partitions))):
            if over <= 0 and slots <= 0:
                break
            doomed.append(each)
            over -= len(each.partitions)
            slots -= 1
        if over > 0 or slots > 0:
            return False
        for each in doomed:
            self._drop(each.session_id)
        return True

    def _update(
        self, session: FetchSession, request: FetchRequest, requested: list[Asked], now_ms: int
    ) -> bool:
        """Apply the changes of a request; return whether it has added partitions."""
        before = len(session.partitions)
        session.epoch = _next_epoch(session.epoch)
        session.last_used_ms = now_ms
        self._sessions.move_to_end(session.session_id)
        partitions = session.partitions
        for each in requested:
            key = each.key
            known = partitions.get(key)
            if known is None:
                partitions[key] = each
            else:
                known.request = each.request
        is_larger = len(partitions) > before
        for topic in request.forgotten_topics_data:
            for partition in topic.partitions:
                session.partitions.pop((topic.topic, topic.topic_id, partition), None)
        self.partitions += len(session.partitions) - before
        return is_larger

    def _fits(self, session: FetchSession, now_ms: int, exists: Exists) -> bool:
        """Return whether a session may keep its added partitions."""
        size = len(session.partitions)
        return (
            size <= self._session_max
            and self._make_room(0, size, now_ms, grows=session)
            and _is_worth_it(session.partitions.values(), exists)
        )


def _is_worth_it(requested: Collection[Asked], exists: Exists) -> bool:
    """Return whether at most UNKNOWN_MOST of the partitions to remember do not exist."""
    if any(len(each.topic) > NAME_MOST for each in requested):
        return False
    if len(requested) <= UNKNOWN_MOST:
        return True
    unknown = 0
    for each in requested:
        if not exists(each):
            unknown += 1
            if unknown > UNKNOWN_MOST:
                return False
    return True


def served_first(session: FetchSession, served: Iterable[Asked]) -> None:
    """Move partitions that got records to the end, so that all are served (KIP-227)."""
    for requested in served:
        if requested.key in session.partitions:
            session.partitions.move_to_end(requested.key)


def asked_of(request: FetchRequest) -> list[Asked]:
    """Return each partition of a request once; of repeated ones the last, as in Kafka."""
    requested = [
        Asked(topic.topic, topic.topic_id, partition)
        for topic in request.topics
        for partition in topic.partitions
    ]
    if len(requested) > 1:
        return list({each.key: each for each in requested}.values())
    return requested


def _next_epoch(epoch: int) -> int:
    """Return the next epoch; epochs wrap without the two special values."""
    return epoch + 1 if epoch < _EPOCH_MAX else 1


def fetch_sessions_of(config: BrokerConfig) -> FetchSessions:
    """Return an empty cache of fetch sessions with the limits of a configuration."""
    return FetchSessions(
        config.max_incremental_fetch_session_cache_slots,
        partitions_max=config.fetch_session_partitions_max,
        session_max=config.request_undivided_elements_max,
    )
