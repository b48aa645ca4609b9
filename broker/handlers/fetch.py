"""Fetch 4-18.

Version notes: v7 sessions (KIP-227); v12 flexible, diverging epochs; v13 topics by id; v15 has the
replica id in a tag; v16 node endpoints (only with other brokers); v17 and v18 concern replicas.
Knowingly absent: fetching by replicas (there is one copy), preferred read replicas, rack ids.

Whether the client may read a partition is asked in every pass over it, so also when a fetch that
was parked is answered, and for what its session remembers.

Of a partition that another broker leads the answer names that one, from version 16 on.

A fetch reads what is there; when that is less than ``min_bytes`` it is parked until more becomes
visible, its time is up, or another kind of request queues behind it. Data that is not in the page
cache is read on a thread, as much as an answer may copy in one go, then the fetch starts over with
that at hand. Very many partitions, of a request or of its session, are read and answered in slices.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from functools import partial
from typing import ClassVar, Final, TypeAlias

from barnabas.broker.api.brokers import Brokers
from barnabas.broker.api.dispatch import Parked, RequestContext, serves
from barnabas.broker.api.division import by, parts
from barnabas.broker.api.fetch_sessions import (
    Asked,
    FetchSessions,
    Key,
    asked_of,
)
from barnabas.broker.api.waiting import FetchWaits, ParkedFetch
from barnabas.broker.handlers.fetch_reader import Readable, Reader, Result, failed
from barnabas.broker.runtime.disk_readers import DiskReaders
from barnabas.broker.runtime.host import Host
from barnabas.broker.runtime.turns import next_turn
from barnabas.broker.topics.catalogue import Catalogue
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.fetch import (
    FETCH,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
)
from barnabas.storage.partition_log import READ_COMMITTED, READ_UNCOMMITTED, PartitionLog

TOPIC_IDS_SINCE: Final = 13
COLD_ROUNDS_MAX: Final = 4
"""Reads aside for one request. One is enough unless segments change meanwhile; after the last the
fetch waits on the loop for what is still missing."""
PARTITIONS_AT_ONCE: Final = 2000
"""More are read in slices."""
BY_PARTITION: Final = by("topics.partitions")
_NEVER_WRITTEN_BYTES: Final = 1 << 62

FetchAnswer: TypeAlias = FetchResponse | Parked[FetchResponse]


def refuse_fetch(request: FetchRequest, code: ErrorCode, message: str | None) -> FetchResponse:
    """Answer one error for the whole request, and for its partitions: before v7 only they have one.

    Not in a session: what an incremental request leaves out is meant too.
    """
    del message
    topics = request.topics if request.session_epoch <= 0 else []
    return FetchResponse(
        error_code=code,
        responses=[
            FetchableTopicResponse(
                topic.topic,
                topic.topic_id,
                [failed(asked, code) for asked in topic.partitions],
            )
            for topic in topics
        ],
    )


def fetch_long(
    catalogue: Catalogue,
    brokers: Brokers,
    fetch_sessions: FetchSessions,
    fetch_waits: FetchWaits,
    readers: DiskReaders,
    host: Host,
    context: RequestContext,
    request: FetchRequest,
) -> Awaitable[FetchAnswer]:
    """Handle a request that names very many partitions."""
    # No coroutine itself: compiled it would not say which services it names.
    return _fetch_long(
        catalogue, brokers, fetch_sessions, fetch_waits, readers, host, context, request
    )


async def _fetch_long(
    catalogue: Catalogue,
    brokers: Brokers,
    fetch_sessions: FetchSessions,
    fetch_waits: FetchWaits,
    readers: DiskReaders,
    host: Host,
    context: RequestContext,
    request: FetchRequest,
) -> FetchAnswer:
    named: dict[Key, Asked] = {}
    for part, _ in parts(request, BY_PARTITION):
        for each in asked_of(part):
            named[each.key] = each
        await next_turn()
    asked = list(named.values())
    return _fetch(
        catalogue, brokers, fetch_sessions, fetch_waits, readers, host, context, request, asked
    )


@serves(FETCH, versions=(4, 18), refuse=refuse_fetch, long_handler=fetch_long, short=True)
def fetch(
    catalogue: Catalogue,
    brokers: Brokers,
    fetch_sessions: FetchSessions,
    fetch_waits: FetchWaits,
    readers: DiskReaders,
    host: Host,
    context: RequestContext,
    request: FetchRequest,
) -> FetchAnswer:
    """Answer the batches asked for, or park until there are enough of them."""
    return _fetch(
        catalogue, brokers, fetch_sessions, fetch_waits, readers, host, context, request, None
    )


def _fetch(
    catalogue: Catalogue,
    brokers: Brokers,
    fetch_sessions: FetchSessions,
    fetch_waits: FetchWaits,
    readers: DiskReaders,
    host: Host,
    context: RequestContext,
    request: FetchRequest,
    asked: list[Asked] | None,
) -> FetchAnswer:
    if not READ_UNCOMMITTED <= request.isolation_level <= READ_COMMITTED:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    by_id = context.api_version >= TOPIC_IDS_SINCE
    readable = Readable(context.access, is_replica=_is_of_replica(request))

    def exists(each: Asked) -> bool:
        topic = catalogue.topic_by_id(each.topic_id) if by_id else catalogue.topic(each.topic)
        return (
            topic is not None
            and 0 <= each.request.partition < len(topic.partitions)
            and readable.has(each, topic.name)
        )

    plan = fetch_sessions.plan(
        request,
        principal=context.access.principal,
        by_id=by_id,
        now_ms=host.clock.now_ms(),
        exists=exists,
        asked=asked,
    )
    context.connection.seen.fetches(request.isolation_level, plan)
    reader = Reader(
        catalogue, brokers, context, request, plan, readable, fetch_sessions, by_id=by_id
    )
    if len(plan.asked) > PARTITIONS_AT_ONCE:
        return _LongFetch(fetch_waits, readers, host, reader)
    result = reader.read()
    if reader.cold:
        return _ColdFetch(readers, reader)
    missing_bytes = reader.missing_bytes(result)
    if missing_bytes <= 0 or request.max_wait_ms <= 0 or not plan.asked:
        return reader.respond(result)
    # More bytes in the log need not be more for a reader of committed ones: it looks again.
    committed = request.isolation_level == READ_COMMITTED
    return ParkedFetch(
        fetch_waits,
        result.logs,
        min_bytes=missing_bytes,
        wait_ms=request.max_wait_ms,
        read=reader.read_and_respond,
        read_if_enough=reader.read_if_enough if committed else None,
    )


def _is_of_replica(request: FetchRequest) -> bool:
    """Whether a fetch says that it comes from another broker; the id has moved in version 15."""
    state = request.replica_state
    return request.replica_id >= 0 or (state is not None and state.replica_id >= 0)


class _ColdFetch(Parked[FetchResponse]):
    """A fetch that waits for a thread to read what is not in the page cache, then starts over."""

    __slots__ = ("_gone", "_reader", "_readers", "_rounds")

    def __init__(self, readers: DiskReaders, reader: Reader) -> None:
        super().__init__()
        self._readers = readers
        self._reader = reader
        self._rounds = COLD_ROUNDS_MAX
        self._gone = False
        self._warm()

    def _warm(self) -> None:
        self._rounds -= 1
        self._readers.run(self._reader.warm, self._warmed)

    def _warmed(self) -> None:
        if self._gone:
            return
        try:
            response = self._read()
        except Exception as error:  # noqa: BLE001  a bug in one fetch ends its connection, no more
            self._gone = True
            self.fail(error)
            return
        if response is not None:
            self._gone = True
            self.complete(response)

    def _read(self) -> FetchResponse | None:
        """Start over; None when that met cold data again."""
        reader = self._reader
        if not self._rounds:
            return reader.read_and_respond()
        result = reader.read()
        if reader.cold:
            self._warm()
            return None
        return reader.respond(result)

    def abandoned(self) -> None:
        """The client has gone."""
        self._gone = True


class _LongFetch(Parked[FetchResponse]):
    """A fetch of very many partitions: read and answered in slices, with waits as for any other.

    It waits on each log from the turn on in which it has read it, so that nothing is missed.
    """

    __slots__ = (
        "_deadline",
        "_fetch_waits",
        "_gone",
        "_host",
        "_over",
        "_reader",
        "_readers",
        "_waiting",
        "_watch",
        "_woken",
    )

    large: ClassVar[bool] = True

    def __init__(
        self, fetch_waits: FetchWaits, readers: DiskReaders, host: Host, reader: Reader
    ) -> None:
        super().__init__()
        self._fetch_waits = fetch_waits
        self._readers = readers
        self._host = host
        self._reader = reader
        self._deadline = host.clock.monotonic() + reader.request.max_wait_ms / 1000
        self._gone = False
        self._over = reader.request.max_wait_ms <= 0
        self._watch: ParkedFetch[bool] | None = None
        self._woken = False
        self._waiting: asyncio.Future[None] | None = None
        host.spawn(self._run(), "fetch")

    def complete_early(self) -> None:
        """Wait no longer: another request waits behind this one."""
        self._wake(over=True)

    def abandoned(self) -> None:
        """The client has gone."""
        self._gone = True
        self._wake(over=True)

    async def _run(self) -> None:
        try:
            response = await self._answer()
        except Exception as error:  # noqa: BLE001  a bug in one fetch ends its connection, no more
            self.fail(error)
            return
        finally:
            self._stop_watching()
        if not self._gone:
            self.complete(response)

    async def _answer(self) -> FetchResponse:
        reader = self._reader
        while True:
            self._start_watching()
            result = await self._read()
            missing_bytes = reader.missing_bytes(result)
            if missing_bytes <= 0 or self._over:
                return await reader.respond_in_slices(result)
            await self._until_woken(missing_bytes)
            self._stop_watching()

    async def _read(self) -> Result:
        """Read, and read again what a thread had to be asked for."""
        reader = self._reader
        for _ in range(COLD_ROUNDS_MAX):
            result = await reader.read_in_slices(self._looked_at)
            if self._gone or not reader.cold:
                return result
            warmed: asyncio.Future[None] = self._host.loop.create_future()
            self._readers.run(reader.warm, partial(_set, warmed))
            await warmed
        reader.wait_for_the_disk()
        return await reader.read_in_slices(self._looked_at)

    def _looked_at(self, logs: list[PartitionLog]) -> bool:
        if self._watch is not None:
            self._watch.wait_on(logs)
        return not self._gone

    def _start_watching(self) -> None:
        self._woken = False
        if self._over:
            return
        left_ms = max(0.0, (self._deadline - self._host.clock.monotonic()) * 1000)
        self._watch = ParkedFetch(
            self._fetch_waits,
            (),
            min_bytes=_NEVER_WRITTEN_BYTES,
            wait_ms=left_ms,
            read=lambda: self._wake(over=True),
            read_if_enough=lambda: self._wake(over=False),
        )

    def _stop_watching(self) -> None:
        if self._watch is not None:
            self._watch.abandoned()
            self._watch = None

    async def _until_woken(self, missing_bytes: int) -> None:
        """Wait until so much more can be read than there was, or the waiting is over."""
        watch = self._watch
        assert watch is not None
        watch.missing_bytes -= _NEVER_WRITTEN_BYTES - missing_bytes
        if watch.missing_bytes > 0 and not self._woken:
            self._waiting = self._host.loop.create_future()
            await self._waiting
            self._waiting = None

    def _wake(self, *, over: bool) -> bool:
        """Look again; ``over``: for the last time."""
        self._woken = True
        self._over = self._over or over
        if self._waiting is not None:
            _set(self._waiting)
        return True


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
