"""Fetch 4-18.

Version notes: v7 sessions (KIP-227); v12 flexible, diverging epochs; v13 topics by id; v15 has the
replica id in a tag; v16 node endpoints (only with other brokers); v17 and v18 concern replicas.
Knowingly absent: fetching by replicas (there is one copy), preferred read replicas, rack ids.

The permission to read a partition is checked in every pass over it, so also at the end of a wait,
and for the partitions of a session.

For a partition that another broker leads the response names that broker, from version 16 on.

A fetch reads the available batches; if they are less than ``min_bytes`` it waits until more becomes
visible, its time is up, or another kind of request queues behind it. Data that is not in the page
cache is read on a thread, as much as a response may copy at once, then the fetch starts again with
that data. So is data that only the store of a cluster has; the loop never waits for that, and the
fetch waits no longer than its time. The read continues, and a later fetch has the data. Very many
partitions, of a request or of its session, are read in slices.
"""

from __future__ import annotations

from asyncio import Future
from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias

from barnabas.broker.api.dispatch import RequestContext, serves
from barnabas.broker.api.division import by, parts
from barnabas.broker.api.driver import Run
from barnabas.broker.api.fetch_sessions import (
    Asked,
    FetchSessions,
    Key,
    asked_of,
)
from barnabas.broker.api.waiting import FetchWaits, Watch
from barnabas.broker.api.waits import Aside, Turn
from barnabas.broker.cluster.serving.brokers import Brokers
from barnabas.broker.handlers.records.fetch_reader import Readable, Reader, Result, failed
from barnabas.broker.metadata.catalogue import Catalogue
from barnabas.broker.runtime.disk_readers import DiskReaders
from barnabas.broker.runtime.host import Host
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.fetch import (
    FETCH,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
)
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log.readable_log import READ_COMMITTED, READ_UNCOMMITTED

TOPIC_IDS_SINCE: Final = 13
COLD_ROUNDS_MAX: Final = 4
"""Maximum number of reads on a thread for one request. One is enough unless segments change during
it; after the last the fetch waits on the loop for the missing data."""
PARTITIONS_AT_ONCE: Final = 2000
"""Maximum number of partitions read at once; more are read in slices."""
BY_PARTITION: Final = by("topics.partitions")
_NEVER_WRITTEN_BYTES: Final = 1 << 62
_MS_PER_S: Final = 1000

FetchAnswer: TypeAlias = FetchResponse | Run[FetchResponse]


def refuse_fetch(request: FetchRequest, code: ErrorCode, message: str | None) -> FetchResponse:
    """Return one error for the whole request, and for its partitions: before v7 only they have one.

    Not in a session: an incremental request means omitted partitions, too.
    """
    del message
    topics = request.topics if request.session_epoch <= 0 else []
    return FetchResponse(
        error_code=code,
        responses=[
            FetchableTopicResponse(
                topic.topic,
                topic.topic_id,
                [failed(wanted, code) for wanted in topic.partitions],
            )
            for topic in topics
        ],
    )


@serves(FETCH, versions=(4, 18), refuse=refuse_fetch, in_slices=True, short=True)
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
    """Return the batches that the client fetches, or wait until there are enough of them."""
    if not READ_UNCOMMITTED <= request.isolation_level <= READ_COMMITTED:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if _names_many(request):
        start = partial(_plan, catalogue, brokers, fetch_sessions, host, context, request)
        return Run(_fetch_named(fetch_waits, readers, host, request, start), is_large=True)
    reader = _plan(catalogue, brokers, fetch_sessions, host, context, request, None)
    if len(reader.plan.asked) > PARTITIONS_AT_ONCE:
        return Run(_fetch_in_slices(fetch_waits, readers, host, reader), is_large=True)
    result = reader.read()
    if reader.cold:
        return Run(_fetch_cold(readers, host, reader))
    missing_bytes = reader.missing_bytes(result)
    if missing_bytes <= 0 or request.max_wait_ms <= 0 or not reader.plan.asked:
        return reader.respond(result)
    waiting = _fetch_when_enough(fetch_waits, reader, result.logs, missing_bytes)
    return Run(waiting, is_task=False)


def _names_many(request: FetchRequest) -> bool:
    count = 0
    for topic in request.topics:
        count += len(topic.partitions)
    return count > PARTITIONS_AT_ONCE


def _plan(
    catalogue: Catalogue,
    brokers: Brokers,
    fetch_sessions: FetchSessions,
    host: Host,
    context: RequestContext,
    request: FetchRequest,
    wanted: list[Asked] | None,
) -> Reader:
    """Return the reader of the partitions; ``wanted``: those that the request names, or None."""
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
        requested=wanted,
    )
    context.connection.seen.fetches(request.isolation_level, plan)
    return Reader(catalogue, brokers, context, request, plan, readable, fetch_sessions, by_id=by_id)


async def _fetch_when_enough(
    fetch_waits: FetchWaits, reader: Reader, logs: list[PartitionLog], missing_bytes: int
) -> FetchResponse:
    """Wait for ``missing_bytes`` more, the end of the time, or another request of the client."""
    request = reader.request
    watch = Watch(fetch_waits, logs, missing_bytes=missing_bytes, wait_ms=request.max_wait_ms)
    try:
        while await watch:
            # More bytes in the log may be uncommitted, invisible to a ``read_committed`` consumer:
            # it reads again.
            if request.isolation_level != READ_COMMITTED:
                break
            response = reader.read_if_enough()
            if response is not None:
                return response
            watch.wait_for(1)
        return reader.read_and_respond()
    finally:
        watch.close()


async def _fetch_cold(readers: DiskReaders, host: Host, reader: Reader) -> FetchResponse:
    """Repeat the read once a thread has loaded the pages missing in the cache."""
    ends_s = host.clock.monotonic() + reader.request.max_wait_ms / _MS_PER_S
    for _ in range(COLD_ROUNDS_MAX - 1):
        left_s = ends_s - host.clock.monotonic()
        await Aside(partial(_warmed, readers, reader, left_s))
        result = reader.read()
        if not reader.cold or (reader.waits_for_store and ends_s <= host.clock.monotonic()):
            return reader.respond(result)
    await Aside(partial(_warmed, readers, reader, ends_s - host.clock.monotonic()))
    return reader.read_and_respond()


def _warmed(readers: DiskReaders, reader: Reader, wait_s: float) -> Future[None]:
    """Load cold data on a thread; from the store, as much as arrives within ``wait_s``."""
    if reader.waits_for_store:
        return readers.run_at_store(reader.warm, max(0.0, wait_s))
    return readers.run(reader.warm)


async def _fetch_named(
    fetch_waits: FetchWaits,
    readers: DiskReaders,
    host: Host,
    request: FetchRequest,
    start: Callable[[list[Asked]], Reader],
) -> FetchResponse:
    """Fetch the partitions of a request that names very many."""
    named: dict[Key, Asked] = {}
    for part, _ in parts(request, BY_PARTITION):
        for each in asked_of(part):
            named[each.key] = each
        await Turn()
    reader = start(list(named.values()))
    return await _fetch_in_slices(fetch_waits, readers, host, reader)


async def _fetch_in_slices(
    fetch_waits: FetchWaits, readers: DiskReaders, host: Host, reader: Reader
) -> FetchResponse:
    """Read very many partitions in slices, and respond, with waits as for any other fetch.

    It waits on each log from the turn on in which it has read the log, so that it misses no append.
    """
    deadline = host.clock.monotonic() + reader.request.max_wait_ms / 1000
    is_over = reader.request.max_wait_ms <= 0
    while True:
        left_ms = max(0.0, (deadline - host.clock.monotonic()) * 1000)
        watch = Watch(fetch_waits, (), missing_bytes=_NEVER_WRITTEN_BYTES, wait_ms=left_ms)
        try:
            result = await _read_in_slices(readers, host, reader, watch, deadline)
            missing_bytes = reader.missing_bytes(result)
            if missing_bytes <= 0 or is_over or reader.waits_for_store:
                return await reader.respond_in_slices(result)
            watch.missing_bytes -= _NEVER_WRITTEN_BYTES - missing_bytes
            is_over = not await watch
        finally:
            watch.close()


async def _read_in_slices(
    readers: DiskReaders, host: Host, reader: Reader, watch: Watch, deadline: float
) -> Result:
    """Read, and read again after a thread has loaded missing pages.

    ``deadline``: time at which it waits no longer for the store.
    """
    for _ in range(COLD_ROUNDS_MAX):
        result = await reader.read_in_slices(watch.wait_on)
        if not reader.cold:
            return result
        await Aside(partial(_warmed, readers, reader, deadline - host.clock.monotonic()))
    reader.wait_for_the_disk()
    return await reader.read_in_slices(watch.wait_on)


def _is_of_replica(request: FetchRequest) -> bool:
    """Return whether a fetch has a replica ID, whose field version 15 has moved."""
    state = request.replica_state
    return request.replica_id >= 0 or (state is not None and state.replica_id >= 0)
