"""Fetch 4-18.

Version notes: v7 sessions (KIP-227); v12 flexible, diverging epochs; v13 topics by id; v15 has the
replica id in a tag; v16 node endpoints (only with other brokers); v17 and v18 concern replicas.
Knowingly absent: fetching by replicas (there is one copy), preferred read replicas, rack ids.

Whether the client may read a partition is asked in every pass over it, so also when a fetch that
was parked is answered, and for what its session remembers.

A fetch reads what is there; when that is less than ``min_bytes`` it is parked until more becomes
visible, its time is up, or another kind of request queues behind it. Data that is not in the page
cache is read on a thread, as much as an answer may copy in one go, then the fetch starts over with
that at hand. Very many partitions, of a request or of its session, are read and answered in slices.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Final, TypeAlias, cast

from barnabas.broker.api.checks import CLUSTER, CLUSTER_ACTION, READ, TOPIC
from barnabas.broker.api.dispatch import Parked, RequestContext, serves
from barnabas.broker.api.division import by, parts
from barnabas.broker.api.fetch_sessions import (
    NO_SESSION,
    Asked,
    FetchPlan,
    FetchSessions,
    Key,
    asked_of,
    served_first,
)
from barnabas.broker.api.storage_errors import error_code_of
from barnabas.broker.api.waiting import FetchWaits, ParkedFetch
from barnabas.broker.runtime.disk_readers import DiskReaders
from barnabas.broker.runtime.host import Host
from barnabas.broker.runtime.turns import next_turn
from barnabas.broker.security.access import Access
from barnabas.broker.security.operations import CLUSTER_NAME
from barnabas.broker.security.quotas import ClientQuota, told_ms
from barnabas.broker.topics.catalogue import Catalogue
from barnabas.broker.topics.topic import Partition, Topic
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.fetch import (
    FETCH,
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from barnabas.storage.errors import Corrupt, Rejected
from barnabas.storage.memory_read import MemorySlice
from barnabas.storage.partition_log import READ_COMMITTED, READ_UNCOMMITTED, PartitionLog
from barnabas.storage.segment_read import FileSpan, LoadedSpan, read_cached, read_waiting

TOPIC_IDS_SINCE: Final = 13
UNKNOWN_OFFSET: Final = -1
COLD_ROUNDS_MAX: Final = 4
"""Reads aside for one request. One is enough unless segments change meanwhile; after the last the
fetch waits on the loop for what is still missing."""
COPIED_BYTES_MAX: Final = 4 * 1024 * 1024
"""Of one answer, what cannot be sent from the page cache and so is in memory until the client has
read it: where many ask for much and read nothing, each keeps no more than this and one batch."""
PARTITIONS_AT_ONCE: Final = 2000
"""More are read in slices."""
PARTITIONS_PER_SLICE: Final = 250
BY_PARTITION: Final = by("topics.partitions")
_NOTHING: Final = memoryview(b"")
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
                [_failed(asked, code) for asked in topic.partitions],
            )
            for topic in topics
        ],
    )


def fetch_long(
    catalogue: Catalogue,
    fetch_sessions: FetchSessions,
    fetch_waits: FetchWaits,
    readers: DiskReaders,
    host: Host,
    context: RequestContext,
    request: FetchRequest,
) -> Awaitable[FetchAnswer]:
    """Handle a request that names very many partitions."""
    # No coroutine itself: compiled it would not say which services it names.
    return _fetch_long(catalogue, fetch_sessions, fetch_waits, readers, host, context, request)


async def _fetch_long(
    catalogue: Catalogue,
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
    return _fetch(catalogue, fetch_sessions, fetch_waits, readers, host, context, request, asked)


@serves(FETCH, versions=(4, 18), refuse=refuse_fetch, long_handler=fetch_long, short=True)
def fetch(
    catalogue: Catalogue,
    fetch_sessions: FetchSessions,
    fetch_waits: FetchWaits,
    readers: DiskReaders,
    host: Host,
    context: RequestContext,
    request: FetchRequest,
) -> FetchAnswer:
    """Answer the batches asked for, or park until there are enough of them."""
    return _fetch(catalogue, fetch_sessions, fetch_waits, readers, host, context, request, None)


def _fetch(
    catalogue: Catalogue,
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
    readable = _Readable(context.access, is_replica=_is_of_replica(request))

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
    reader = _Reader(catalogue, request, plan, readable, fetch_sessions, context.quota, by_id=by_id)
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


class _Readable:
    """What the client of one fetch may read; asked again when anything has changed of that."""

    def __init__(self, access: Access, *, is_replica: bool) -> None:
        self._access = access
        self._is_replica = is_replica
        self.mark = access.mark
        """What is allowed is marked with this; asked before every pass."""

    def look_again(self) -> None:
        """Take note of what has changed."""
        self.mark = self._access.mark

    def has(self, asked: Asked, name: str) -> bool:
        """Whether the client may read a topic, of which ``asked`` is a partition."""
        if asked.allowed_mark == self.mark and not self._is_replica:
            return True
        if self._is_replica:  # No consumer gets past its own rights by calling itself one.
            return self._access.may(CLUSTER_ACTION, CLUSTER, CLUSTER_NAME)
        if not self._access.may(READ, TOPIC, name):
            return False
        asked.allowed_mark = self.mark
        return True


@dataclass(slots=True)
class _Result:
    """What one pass over the partitions found."""

    data: list[tuple[Asked, PartitionData]] = field(default_factory=list)
    logs: list[PartitionLog] = field(default_factory=list)
    sent: list[tuple[PartitionLog, int]] = field(default_factory=list)
    """The logs with data to answer, and how much of it; counted once it is answered."""
    size_bytes: int = 0
    copied_bytes: int = 0
    """How much of it is in memory of its own, or will be once the disk has been waited for."""
    urgent: bool = False
    """There is something to tell at once, however little: an error, or that more can be had."""


class _Reader:
    """Reads the partitions of one request, as often as it takes."""

    def __init__(
        self,
        catalogue: Catalogue,
        request: FetchRequest,
        plan: FetchPlan,
        readable: _Readable,
        sessions: FetchSessions,
        quota: ClientQuota | None,
        *,
        by_id: bool,
    ) -> None:
        self._find: Callable[[Asked], Topic | None] = (
            (lambda asked: catalogue.topic_by_id(asked.topic_id))
            if by_id
            else (lambda asked: catalogue.topic(asked.topic))
        )
        self._by_id = by_id
        self._readable = readable
        self.request = request
        self.plan = plan
        self._sessions = sessions
        self._quota = quota
        self._max_bytes = min(request.max_bytes, catalogue.configs.broker_config.fetch_max_bytes)
        if quota is not None:
            self._max_bytes = quota.fetch_bytes_max(self._max_bytes)
        self._min_bytes = min(request.min_bytes, self._max_bytes)
        self.cold: list[tuple[Key, FileSpan]] = []
        """What the last pass met that the disk has to be waited for."""
        self._warm: dict[Key, tuple[FileSpan, LoadedSpan | Exception]] = {}
        self._may_wait = False

    def read(self) -> _Result:
        """Read every partition within the request's bounds; what is cold is only noted."""
        result = _Result()
        self.cold = []
        self._read_some(self.plan.asked, result)
        return result

    async def read_in_slices(self, looked_at: Callable[[list[PartitionLog]], bool]) -> _Result:
        """As ``read``; ``looked_at`` is called with the logs in the turn in which they are read.

        It returns whether to go on. In an incremental session only what is news is kept.
        """
        result = _Result()
        self.cold = []
        asked, incremental = self.plan.asked, self.plan.incremental
        for start in range(0, len(asked), PARTITIONS_PER_SLICE):
            before, read = len(result.data), len(result.logs)
            self._read_some(asked[start : start + PARTITIONS_PER_SLICE], result)
            if incremental:
                result.data[before:] = [each for each in result.data[before:] if _is_news(*each)]
            if not looked_at(result.logs[read:]):
                break
            await next_turn()
        return result

    def _read_some(self, some: list[Asked], result: _Result) -> None:
        self._readable.look_again()
        for asked in some:
            data = self._read_partition(asked, result)
            if data.error_code or data.diverging_epoch is not None:
                result.urgent = True
            result.data.append((asked, data))

    def missing_bytes(self, result: _Result) -> int:
        """How many bytes more the reader wants to wait for."""
        return 0 if result.urgent else self._min_bytes - result.size_bytes

    def read_and_respond(self) -> FetchResponse:
        """Answer with what there is now, waiting for the disk if it must be."""
        self._may_wait = True
        return self.respond(self.read())

    def read_if_enough(self) -> FetchResponse | None:
        """Answer if there is as much as was asked for."""
        self._may_wait = True
        result = self.read()
        return self.respond(result) if self.missing_bytes(result) <= 0 else None

    def wait_for_the_disk(self) -> None:
        """From now on wait on the loop for what is cold."""
        self._may_wait = True

    def warm(self) -> None:
        """Load what was cold, on a thread; errors come out where the data would have been used."""
        for key, span in self.cold:
            try:
                loaded = span.load(read_waiting)
            except (Corrupt, OSError) as damage:
                self._warm[key] = span, damage
            else:
                assert loaded is not None
                self._warm[key] = span, loaded

    def _read_partition(self, asked: Asked, result: _Result) -> PartitionData:
        partition, error = self._partition(asked)
        if partition is None:
            return _failed(asked.request, error)
        log = partition.log
        try:
            if asked.request.last_fetched_epoch >= 0:
                divergence = _divergence(log, asked.request)
                if divergence is not None:
                    return divergence
            return self._read_log(log, asked, result)
        except Rejected as refused:
            log.counts.failed_reads += 1
            return _failed(asked.request, error_code_of(refused))
        except (Corrupt, OSError) as damage:
            log.counts.failed_reads += 1
            log.suspect(asked.request.fetch_offset, damage)
            return _failed(asked.request, ErrorCode.KAFKA_STORAGE_ERROR)

    def _partition(self, asked: Asked) -> tuple[Partition | None, ErrorCode]:
        topic = self._find(asked)
        if topic is None and self._by_id:
            return None, ErrorCode.UNKNOWN_TOPIC_ID
        if not self._readable.has(asked, asked.topic if topic is None else topic.name):
            return None, ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if topic is None:
            return None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        index = asked.request.partition
        if not 0 <= index < len(topic.partitions):
            return None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        partition = topic.partitions[index]
        error = partition.leader_epoch_error(asked.request.current_leader_epoch)
        return (None, error) if error else (partition, ErrorCode.NONE)

    def _read_log(self, log: PartitionLog, asked: Asked, result: _Result) -> PartitionData:
        wanted = asked.request
        isolation = self.request.isolation_level
        room = self._max_bytes - result.size_bytes
        result.logs.append(log)
        log.counts.reads += 1
        records, upper_offset = _NOTHING, wanted.fetch_offset
        # The first partition with data gets at least one batch, however small the bounds are.
        at_least_one = result.size_bytes == 0
        limit = min(room, wanted.partition_max_bytes)
        plan = log.plan_read(wanted.fetch_offset, max(limit, 0), isolation)
        if plan is not None and (limit > 0 or at_least_one):
            found = self._load(log, asked, plan, result)
            if found is not None:
                records, upper_offset = found
            if len(records) > limit and not at_least_one:
                records = _NOTHING
            elif len(records) < self._min_bytes and upper_offset < log.visible_end(isolation):
                result.urgent = True  # The rest is elsewhere: in memory, in the next segment.
        if len(records):
            result.sent.append((log, len(records)))
            result.size_bytes += len(records)
        aborted = None
        if isolation == READ_COMMITTED:
            aborted = _aborted(log, wanted.fetch_offset, upper_offset) if len(records) else []
        return PartitionData(
            wanted.partition,
            0,
            log.high_watermark,
            log.last_stable_offset,
            log.log_start_offset,
            aborted_transactions=aborted,
            records=records,
        )

    def _load(
        self, log: PartitionLog, asked: Asked, plan: FileSpan | MemorySlice, result: _Result
    ) -> tuple[memoryview, int] | None:
        """Batches and the offset behind them; None when they are cold, or too much with the rest.

        Many are left in the page cache: a ``FileSlice`` stands in for them, of which only the
        length is asked until the connection sends it.
        """
        if isinstance(plan, MemorySlice):
            chunks = plan.chunks
            data = chunks[0] if len(chunks) == 1 else memoryview(b"".join(chunks))
            return data, plan.upper_offset
        loaded = self._warmed(asked, plan) if self._warm else None
        if loaded is not None:
            result.copied_bytes += len(loaded.data)
        else:
            sliced = plan.slice()
            if sliced is not None:
                return cast("memoryview", sliced[0]), sliced[1]
            room = COPIED_BYTES_MAX - result.copied_bytes
            if room <= 0:
                result.urgent = True  # The rest is for the next Fetch.
                return None
            if plan.max_bytes > room:
                isolation = self.request.isolation_level
                plan = cast("FileSpan", log.plan_read(asked.request.fetch_offset, room, isolation))
            result.copied_bytes += plan.size_bytes
            loaded = plan.load(read_waiting if self._may_wait else read_cached)
        if loaded is None:
            # After a round on the thread there is something to answer with; more is not waited for.
            if not (self._warm and result.size_bytes):
                self.cold.append((asked.key, plan))
                result.size_bytes += plan.size_bytes
            return None
        return loaded.data, loaded.upper_offset

    def _warmed(self, asked: Asked, plan: FileSpan) -> LoadedSpan | None:
        """What was loaded on a thread for this partition, if it is what is wanted now."""
        span, loaded = self._warm.get(asked.key, (None, None))
        if span is None or span.file is not plan.file or span.start_offset != plan.start_offset:
            return None
        if isinstance(loaded, Exception):
            raise loaded
        return loaded

    # The response

    def respond(self, result: _Result) -> FetchResponse:
        """Build the response; in an incremental session only of what is new."""
        response = FetchResponse(session_id=self.plan.session_id)
        if self._is_within_quota(response, result):
            self._respond_some(response, result.data)
            self._count(result)
        return response

    async def respond_in_slices(self, result: _Result) -> FetchResponse:
        """As ``respond``."""
        response = FetchResponse(session_id=self.plan.session_id)
        if not self._is_within_quota(response, result):
            return response
        for start in range(0, len(result.data), PARTITIONS_PER_SLICE):
            self._respond_some(response, result.data[start : start + PARTITIONS_PER_SLICE])
            await next_turn()
        self._count(result)
        return response

    def _is_within_quota(self, response: FetchResponse, result: _Result) -> bool:
        """Count what is read; when it is too much the client gets nothing yet, and waits (KIP-219).

        It asks for all of that again, so a session goes on as if nothing had been asked, and one
        that would begin does not: the client takes such an answer for that.
        """
        if self._quota is None:
            return True
        may_leave, throttle_ms = self._quota.consumed(result.size_bytes)
        response.throttle_time_ms = told_ms(throttle_ms)
        if not may_leave and not self.plan.incremental:
            self._sessions.forget(self.plan)
            response.session_id = NO_SESSION
        return may_leave

    def _respond_some(
        self, response: FetchResponse, some: list[tuple[Asked, PartitionData]]
    ) -> None:
        session = self.plan.session
        served: list[Asked] = []
        topics = response.responses
        last = topics[-1] if topics else None
        for asked, data in some:
            if session is not None:
                if self.plan.incremental and not _is_news(asked, data):
                    continue
                asked.sent_high_watermark = data.high_watermark
                asked.sent_log_start = data.log_start_offset
                if data.records:
                    served.append(asked)
            if last is None or last.topic != asked.topic or last.topic_id != asked.topic_id:
                last = FetchableTopicResponse(asked.topic, asked.topic_id, [])
                topics.append(last)
            last.partitions.append(data)
        if session is not None:
            served_first(session, served)

    def _count(self, result: _Result) -> None:
        for log, size_bytes in result.sent:
            log.counts.read_bytes += size_bytes


def _is_news(asked: Asked, data: PartitionData) -> bool:
    """Whether an incremental answer must mention a partition (KIP-227)."""
    return bool(
        data.records
        or data.error_code
        or data.diverging_epoch is not None
        or data.high_watermark != asked.sent_high_watermark
        or data.log_start_offset != asked.sent_log_start
    )


def _failed(wanted: FetchPartition, error: ErrorCode) -> PartitionData:
    return PartitionData(
        wanted.partition,
        error,
        UNKNOWN_OFFSET,
        UNKNOWN_OFFSET,
        UNKNOWN_OFFSET,
        aborted_transactions=None,
        records=_NOTHING,
    )


def _divergence(log: PartitionLog, wanted: FetchPartition) -> PartitionData | None:
    """What to tell a reader whose last epoch ended before its offset: it has another log (KIP-595).

    An epoch that has not begun here, and an offset that is deleted, are out of range.
    """
    epoch, end_offset = log.end_offset_for_epoch(wanted.last_fetched_epoch)
    if epoch < 0 or wanted.fetch_offset < log.log_start_offset:
        return _failed(wanted, ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch >= wanted.last_fetched_epoch and end_offset >= wanted.fetch_offset:
        return None
    return PartitionData(
        wanted.partition,
        0,
        log.high_watermark,
        log.last_stable_offset,
        log.log_start_offset,
        diverging_epoch=EpochEndOffset(epoch, end_offset),
        aborted_transactions=None,
        records=_NOTHING,
    )


def _aborted(log: PartitionLog, offset: int, upper_offset: int) -> list[AbortedTransaction]:
    return [
        AbortedTransaction(transaction.producer_id, transaction.first_offset)
        for transaction in log.aborted_transactions(offset, upper_offset)
    ]


class _ColdFetch(Parked[FetchResponse]):
    """A fetch that waits for a thread to read what is not in the page cache, then starts over."""

    __slots__ = ("_gone", "_reader", "_readers", "_rounds")

    def __init__(self, readers: DiskReaders, reader: _Reader) -> None:
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
        self, fetch_waits: FetchWaits, readers: DiskReaders, host: Host, reader: _Reader
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

    async def _read(self) -> _Result:
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
