"""Reads the partitions of one Fetch, as often as it takes, and builds the response."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, cast

from barnabas.broker.api.checks import CLUSTER, CLUSTER_ACTION, READ, TOPIC
from barnabas.broker.api.dispatch import RequestContext
from barnabas.broker.api.fetch_sessions import (
    NO_SESSION,
    Asked,
    FetchPlan,
    FetchSessions,
    Key,
    served_first,
)
from barnabas.broker.api.storage_errors import error_code_of
from barnabas.broker.api.waits import Turn
from barnabas.broker.cluster.serving.brokers import Brokers
from barnabas.broker.metadata.catalogue import Catalogue
from barnabas.broker.metadata.topic import Topic
from barnabas.broker.security.acls.access import Access
from barnabas.broker.security.acls.operations import CLUSTER_NAME
from barnabas.broker.security.quotas.quotas import throttle_time_ms
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from barnabas.storage.errors import Corrupt, Rejected
from barnabas.storage.log.memory_read import MemorySlice
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log.readable_log import READ_COMMITTED
from barnabas.storage.log.segment_read import LoadedSpan, ReadPlan, read_cached, read_waiting

NAMES_LEADERS_SINCE: Final = 16
UNKNOWN_OFFSET: Final = -1
COPIED_BYTES_MAX: Final = 4 * 1024 * 1024
"""Maximum size of the data of one response that cannot be sent from the page cache, and is in
memory until the client has read it. So clients that fetch much and read nothing hold no more than
this and one batch each."""
PARTITIONS_PER_SLICE: Final = 250
_NOTHING: Final = memoryview(b"")
_LEADER_IS_ANOTHER: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
"""Errors after which a client must use another leader, or a newer epoch of this one."""


class Readable:
    """Permissions of the client of one fetch; checked again when any of them has changed."""

    def __init__(self, access: Access, *, is_replica: bool) -> None:
        self._access = access
        self._is_replica = is_replica
        self.mark = access.mark
        """Marks allowed partitions; compared before every pass."""

    def refresh(self) -> None:
        """Register that permissions have changed."""
        self.mark = self._access.mark

    def has(self, named: Asked, name: str) -> bool:
        """Return whether the client may read the topic ``name`` of the partition ``named``."""
        if named.allowed_mark == self.mark and not self._is_replica:
            return True
        if self._is_replica:  # No consumer gets past its own rights by calling itself one.
            return self._access.may(CLUSTER_ACTION, CLUSTER, CLUSTER_NAME)
        if not self._access.may(READ, TOPIC, name):
            return False
        named.allowed_mark = self.mark
        return True


class Result:
    """Data that one pass over the partitions found; no dataclass: mypyc makes those slowly."""

    __slots__ = ("copied_bytes", "data", "logs", "sent", "size_bytes", "urgent")

    def __init__(self) -> None:
        self.data: list[tuple[Asked, PartitionData]] = []
        self.logs: list[PartitionLog] = []
        self.sent: list[tuple[PartitionLog, int]] = []
        """The logs with data to send, and the bytes of each; they are counted after sending."""
        self.size_bytes = 0
        self.copied_bytes = 0
        """Bytes of ``data`` in memory of their own, those included that the disk still has."""
        self.urgent = False
        """Whether the response leaves at once, however small: an error, or more data elsewhere."""


class Reader:
    """Reads the partitions of one request, as often as it takes."""

    def __init__(
        self,
        catalogue: Catalogue,
        brokers: Brokers,
        context: RequestContext,
        request: FetchRequest,
        plan: FetchPlan,
        readable: Readable,
        sessions: FetchSessions,
        *,
        by_id: bool,
    ) -> None:
        self._find: Callable[[Asked], Topic | None] = (
            (lambda named: catalogue.topic_by_id(named.topic_id))
            if by_id
            else (lambda named: catalogue.topic(named.topic))
        )
        self._by_id = by_id
        self._readable = readable
        self.request = request
        self.plan = plan
        self._sessions = sessions
        self._brokers = brokers
        self._context = context
        self._quota = quota = context.quota
        self._max_bytes = min(request.max_bytes, catalogue.configs.broker_config.fetch_max_bytes)
        if quota is not None:
            self._max_bytes = quota.fetch_bytes_max(self._max_bytes)
        self._min_bytes = min(request.min_bytes, self._max_bytes)
        self.cold: list[tuple[Key, ReadPlan]] = []
        """Cold spans of the last pass, which would have to wait for the disk."""
        self._warm: dict[Key, tuple[ReadPlan, LoadedSpan | Exception]] = {}
        self._may_wait = False

    def read(self) -> Result:
        """Read every partition within the request's limits; record those not in the cache."""
        result = Result()
        self.cold = []
        self._read_some(self.plan.asked, result)
        return result

    async def read_in_slices(self, looked_at: Callable[[list[PartitionLog]], object]) -> Result:
        """Read like ``read``; ``looked_at`` gets the logs in the turn in which they are read.

        In an incremental session only partitions with news are kept.
        """
        result = Result()
        self.cold = []
        named, incremental = self.plan.asked, self.plan.incremental
        for start in range(0, len(named), PARTITIONS_PER_SLICE):
            before, read = len(result.data), len(result.logs)
            self._read_some(named[start : start + PARTITIONS_PER_SLICE], result)
            if incremental:
                result.data[before:] = [each for each in result.data[before:] if _is_news(*each)]
            looked_at(result.logs[read:])
            await Turn()
        return result

    def _read_some(self, some: list[Asked], result: Result) -> None:
        self._readable.refresh()
        for named in some:
            data = self._read_partition(named, result)
            if data.error_code or data.diverging_epoch is not None:
                result.urgent = True
            result.data.append((named, data))

    def missing_bytes(self, result: Result) -> int:
        """Return the number of bytes for which the reader still waits."""
        return 0 if result.urgent else self._min_bytes - result.size_bytes

    def read_and_respond(self) -> FetchResponse:
        """Respond with the data available now, waiting for the disk if necessary."""
        self._may_wait = True
        return self.respond(self.read())

    def read_if_enough(self) -> FetchResponse | None:
        """Respond if there is as much data as the request wants."""
        self._may_wait = True
        result = self.read()
        return self.respond(result) if self.missing_bytes(result) <= 0 else None

    @property
    def waits_for_store(self) -> bool:
        """Whether the last pass met data that only the store of a cluster has."""
        return any(span.waits_for_store for _, span in self.cold)

    def wait_for_the_disk(self) -> None:
        """Wait on the loop for cold data from now on."""
        self._may_wait = True

    def warm(self, until_s: float | None = None) -> None:
        """Load uncached data on a thread; its errors are raised where the data is used.

        ``until_s``: time, as of ``monotonic``, at which it waits no longer for the store.
        """
        for key, span in self.cold:
            try:
                loaded = span.load(read_waiting, until_s)
            except (Corrupt, OSError) as damage:
                self._warm[key] = span, damage
            else:
                if loaded is not None:
                    self._warm[key] = span, loaded

    def _read_partition(self, named: Asked, result: Result) -> PartitionData:
        log, error = self._log(named)
        if log is None:
            return self._refused(named, error)
        try:
            if named.request.last_fetched_epoch >= 0:
                divergence = _divergence(log, named.request)
                if divergence is not None:
                    return divergence
            return self._read_log(log, named, result)
        except Rejected as refused:
            log.counts.failed_reads += 1
            return failed(named.request, error_code_of(refused))
        except (Corrupt, OSError) as damage:
            log.counts.failed_reads += 1
            log.suspect(named.request.fetch_offset, damage)
            return failed(named.request, ErrorCode.KAFKA_STORAGE_ERROR)

    def _log(self, named: Asked) -> tuple[PartitionLog | None, ErrorCode]:
        topic = self._find(named)
        if topic is None and self._by_id:
            return None, ErrorCode.UNKNOWN_TOPIC_ID
        if not self._readable.has(named, named.topic if topic is None else topic.name):
            return None, ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if topic is None:
            return None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        index = named.request.partition
        if not 0 <= index < len(topic.partitions):
            return None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        partition = topic.partitions[index]
        error = partition.leader_epoch_error(named.request.current_leader_epoch)
        return (None, error) if error else (partition.log, ErrorCode.NONE)

    def _refused(self, named: Asked, error: ErrorCode) -> PartitionData:
        data = failed(named.request, error)
        if error in _LEADER_IS_ANOTHER and self._context.api_version >= NAMES_LEADERS_SINCE:
            topic = self._find(named)
            assert topic is not None
            partition = topic.partitions[named.request.partition]
            leader = self._brokers.view.leader_of(partition.partition_id)
            data.current_leader = LeaderIdAndEpoch(leader.node_id, leader.epoch)
        return data

    def _read_log(self, log: PartitionLog, named: Asked, result: Result) -> PartitionData:
        wanted = named.request
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
            found = self._load(log, named, plan, result)
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
        self, log: PartitionLog, named: Asked, plan: ReadPlan | MemorySlice, result: Result
    ) -> tuple[memoryview, int] | None:
        """Return batches and the next offset, or None if they are uncached or too large.

        Large results stay in the page cache: a ``FileSlice`` refers to them, and the broker reads
        only its length until the connection sends it.
        """
        if isinstance(plan, MemorySlice):
            chunks = plan.chunks
            data = chunks[0] if len(chunks) == 1 else memoryview(b"".join(chunks))
            return data, plan.upper_offset
        loaded = self._warmed(named, plan) if self._warm else None
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
                plan = cast("ReadPlan", log.plan_read(named.request.fetch_offset, room, isolation))
            result.copied_bytes += plan.size_bytes
            may_wait = self._may_wait and not plan.waits_for_store
            loaded = plan.load(read_waiting if may_wait else read_cached)
        if loaded is None:
            # After a round on the thread the response has data; no more is awaited.
            if not (self._warm and result.size_bytes):
                self.cold.append((named.key, plan))
                result.size_bytes += plan.size_bytes
            return None
        return loaded.data, loaded.upper_offset

    def _warmed(self, named: Asked, plan: ReadPlan) -> LoadedSpan | None:
        """Return the data loaded on a thread for this partition, if it matches the plan."""
        span, loaded = self._warm.get(named.key, (None, None))
        if span is None or span.file is not plan.file or span.start_offset != plan.start_offset:
            return None
        if isinstance(loaded, Exception):
            raise loaded
        return loaded

    # The response

    def respond(self, result: Result) -> FetchResponse:
        """Build the response; in an incremental session only with changes."""
        response = FetchResponse(session_id=self.plan.session_id)
        if self._is_within_quota(response, result):
            self._respond_some(response, result.data)
            self._count(result)
        if result.urgent:
            self._add_endpoints(response)
        return response

    async def respond_in_slices(self, result: Result) -> FetchResponse:
        """Build the response like ``respond``, in slices."""
        response = FetchResponse(session_id=self.plan.session_id)
        if not self._is_within_quota(response, result):
            return response
        for start in range(0, len(result.data), PARTITIONS_PER_SLICE):
            self._respond_some(response, result.data[start : start + PARTITIONS_PER_SLICE])
            await Turn()
        self._count(result)
        self._add_endpoints(response)
        return response

    def _add_endpoints(self, response: FetchResponse) -> None:
        """Add the endpoints of the leaders that the response names."""
        leaders = [
            data.current_leader.leader_id
            for topic in response.responses
            for data in topic.partitions
            if data.current_leader is not None
        ]
        if leaders:
            reachable = self._brokers.reachable_of(self._context, leaders)
            response.node_endpoints = [NodeEndpoint(*each) for each in reachable]

    def _is_within_quota(self, response: FetchResponse, result: Result) -> bool:
        """Count the bytes read; if they exceed the quota the client gets nothing yet, and waits
        (KIP-219).

        It then requests all of that again, so a session continues as if nothing had been requested.
        A new session does not start: the client interprets such a response that way.
        """
        if self._quota is None:
            return True
        may_leave, throttle_ms = self._quota.consumed(result.size_bytes)
        response.throttle_time_ms = throttle_time_ms(throttle_ms)
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
        for named, data in some:
            if session is not None:
                if self.plan.incremental and not _is_news(named, data):
                    continue
                named.sent_high_watermark = data.high_watermark
                named.sent_log_start = data.log_start_offset
                if data.records:
                    served.append(named)
            if last is None or last.topic != named.topic or last.topic_id != named.topic_id:
                last = FetchableTopicResponse(named.topic, named.topic_id, [])
                topics.append(last)
            last.partitions.append(data)
        if session is not None:
            served_first(session, served)

    def _count(self, result: Result) -> None:
        for log, size_bytes in result.sent:
            log.counts.read_bytes += size_bytes


def _is_news(named: Asked, data: PartitionData) -> bool:
    """Whether an incremental response must contain a partition (KIP-227)."""
    return bool(
        data.records
        or data.error_code
        or data.diverging_epoch is not None
        or data.high_watermark != named.sent_high_watermark
        or data.log_start_offset != named.sent_log_start
    )


def failed(wanted: FetchPartition, error: ErrorCode) -> PartitionData:
    """Return the result of a partition that cannot be read."""
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
    """Return the divergence of a reader whose last epoch ended before its offset (KIP-595), or
    None.

    It has another log. An epoch that has not started here, and a deleted offset, are out of range.
    """
    epoch, end_offset = log.end_offset_for_epoch(wanted.last_fetched_epoch)
    if epoch < 0 or wanted.fetch_offset < log.log_start_offset:
        return failed(wanted, ErrorCode.OFFSET_OUT_OF_RANGE)
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
