"""Fetch 4-18.

Version notes: v7 sessions (KIP-227); v12 flexible, diverging epochs; v13 topics by id; v15 has the
replica id in a tag; v16 node endpoints (only with other brokers); v17 and v18 concern replicas.
Knowingly absent: fetching by replicas (there is one copy), preferred read replicas, rack ids.

A fetch reads what is there; when that is less than ``min_bytes`` it is parked until more becomes
visible, its time is up, or another kind of request queues behind it. Data that is not in the page
cache is read on a thread first, then the fetch starts over.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from broker.catalogue import Catalogue, Partition, Topic
from broker.dispatch import Parked, RequestContext, serves
from broker.fetch_sessions import Asked, FetchPlan, served_first
from broker.handlers.offsets import leader_epoch_error
from broker.storage_errors import error_code_of
from broker.waiting import ParkedFetch
from protocol.errors import ErrorCode
from protocol.messages.fetch import (
    FETCH,
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from storage.errors import Corrupt, Refused
from storage.partition_log import READ_COMMITTED, MemorySlice, PartitionLog
from storage.segment_read import FileSpan, read_cached, read_waiting

if TYPE_CHECKING:
    from broker.server import BrokerServer

logger = logging.getLogger(__name__)

TOPIC_IDS_SINCE: Final = 13
UNKNOWN_OFFSET: Final = -1
COLD_ROUNDS_MAX: Final = 100
"""Reads aside for one request, one span each; after that it waits on the loop for the rest."""
_NOTHING: Final = memoryview(b"")

FetchAnswer: TypeAlias = FetchResponse | Parked[FetchResponse]


def refuse_fetch(request: FetchRequest, code: ErrorCode, message: str | None) -> FetchResponse:
    """Answer one error for the whole request."""
    del request, message
    return FetchResponse(error_code=code)


@serves(FETCH, versions=(4, 18), refuse=refuse_fetch)
def fetch(context: RequestContext, request: FetchRequest) -> FetchAnswer:
    """Answer the batches asked for, or park until there are enough of them."""
    broker = context.broker
    plan = broker.fetch_sessions.plan(
        request, by_id=context.api_version >= TOPIC_IDS_SINCE, now_ms=broker.clock.now_ms()
    )
    reader = _Reader(broker.catalogue, request, plan, by_id=context.api_version >= TOPIC_IDS_SINCE)
    result = reader.read()
    if reader.cold is not None:
        return _ColdFetch(broker, reader, reader.cold)
    return _answer_or_park(broker, reader, result)


def _answer_or_park(broker: BrokerServer, reader: _Reader, result: _Result) -> FetchAnswer:
    request = reader.request
    missing_bytes = request.min_bytes - result.size_bytes
    if missing_bytes <= 0 or request.max_wait_ms <= 0 or result.failed or not reader.plan.asked:
        return reader.respond(result)
    return ParkedFetch(
        broker.fetch_waits,
        result.logs,
        min_bytes=missing_bytes,
        wait_ms=request.max_wait_ms,
        read=reader.read_and_respond,
    )


@dataclass(slots=True)
class _Result:
    """What one pass over the partitions found."""

    data: list[tuple[Asked, PartitionData]] = field(default_factory=list)
    logs: list[PartitionLog] = field(default_factory=list)
    size_bytes: int = 0
    failed: bool = False


class _Reader:
    """Reads the partitions of one request, as often as it takes."""

    def __init__(
        self, catalogue: Catalogue, request: FetchRequest, plan: FetchPlan, *, by_id: bool
    ) -> None:
        self._find: Callable[[Asked], Topic | None] = (
            (lambda asked: catalogue.topic_by_id(asked.topic_id))
            if by_id
            else (lambda asked: catalogue.topic(asked.topic))
        )
        self._unknown_topic = (
            ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )
        self.request = request
        self.plan = plan
        self._max_bytes = min(request.max_bytes, catalogue.broker_config.fetch_max_bytes)
        self.cold: FileSpan | None = None
        self._may_wait = False

    def read(self) -> _Result:
        """Read every partition within the request's bounds; stops at what is ``cold``."""
        result = _Result()
        self.cold = None
        for asked in self.plan.asked:
            data = self._read_partition(asked, result)
            if self.is_cold:
                break
            result.failed = result.failed or data.error_code != 0
            result.data.append((asked, data))
        return result

    @property
    def is_cold(self) -> bool:
        """Whether the last pass met data that the disk has to be waited for."""
        return self.cold is not None

    def read_and_respond(self) -> FetchResponse:
        """Answer with what there is now, waiting for the disk if it must be."""
        self._may_wait = True
        return self.respond(self.read())

    def _read_partition(self, asked: Asked, result: _Result) -> PartitionData:
        partition, error = self._partition(asked)
        if partition is None:
            return _failed(asked, error)
        log = partition.log
        if _diverges(log, asked):
            return _diverging(log, asked)
        try:
            return self._read_log(log, asked, result)
        except Refused as refused:
            return _failed(asked, error_code_of(refused))
        except (Corrupt, OSError) as damage:
            _report(log, damage)
            return _failed(asked, ErrorCode.KAFKA_STORAGE_ERROR)

    def _partition(self, asked: Asked) -> tuple[Partition | None, ErrorCode]:
        topic = self._find(asked)
        if topic is None:
            return None, self._unknown_topic
        index = asked.request.partition
        if not 0 <= index < len(topic.partitions):
            return None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        partition = topic.partitions[index]
        error = leader_epoch_error(partition, asked.request.current_leader_epoch)
        return (None, error) if error else (partition, ErrorCode.NONE)

    def _read_log(self, log: PartitionLog, asked: Asked, result: _Result) -> PartitionData:
        wanted = asked.request
        isolation = self.request.isolation_level
        room = self._max_bytes - result.size_bytes
        result.logs.append(log)
        records, upper_offset = _NOTHING, wanted.fetch_offset
        # The first partition with data gets at least one batch, however small the bounds are.
        at_least_one = result.size_bytes == 0
        limit = min(room, wanted.partition_max_bytes)
        plan = log.plan_read(wanted.fetch_offset, max(limit, 0), isolation)
        if plan is not None and (limit > 0 or at_least_one):
            found = self._load(plan)
            if found is None:
                return _failed(asked, ErrorCode.NONE)
            records, upper_offset = found
            if len(records) > limit and not at_least_one:
                records = _NOTHING
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

    def _load(self, plan: FileSpan | MemorySlice) -> tuple[memoryview, int] | None:
        if isinstance(plan, MemorySlice):
            chunks = plan.chunks
            data = chunks[0] if len(chunks) == 1 else memoryview(b"".join(chunks))
            return data, plan.upper_offset
        loaded = plan.load(read_waiting if self._may_wait else read_cached)
        if loaded is None:
            self.cold = plan
            return None
        return loaded.data, loaded.upper_offset

    # The response

    def respond(self, result: _Result) -> FetchResponse:
        """Build the response; in an incremental session only of what is new."""
        session = self.plan.session
        response = FetchResponse(session_id=self.plan.session_id)
        served: list[Asked] = []
        last: FetchableTopicResponse | None = None
        for asked, data in result.data:
            if session is not None:
                if self.plan.incremental and not _is_news(asked, data):
                    continue
                asked.told_high_watermark = data.high_watermark
                asked.told_log_start = data.log_start_offset
                if data.records:
                    served.append(asked)
            if last is None or last.topic != asked.topic or last.topic_id != asked.topic_id:
                last = FetchableTopicResponse(asked.topic, asked.topic_id, [])
                response.responses.append(last)
            last.partitions.append(data)
        if session is not None:
            served_first(session, served)
        return response


def _is_news(asked: Asked, data: PartitionData) -> bool:
    """Whether an incremental answer must mention a partition (KIP-227)."""
    return bool(
        data.records
        or data.error_code
        or data.diverging_epoch is not None
        or data.high_watermark != asked.told_high_watermark
        or data.log_start_offset != asked.told_log_start
    )


def _report(log: PartitionLog, damage: Exception) -> None:
    """Tell the operator once per log; clients are told each time."""
    if log.damage is None:
        log.damage = str(damage)
        logger.error("log damaged topic=%s partition=%s %s", log.topic, log.partition, damage)


def _failed(asked: Asked, error: ErrorCode) -> PartitionData:
    return PartitionData(
        asked.request.partition,
        error,
        UNKNOWN_OFFSET,
        UNKNOWN_OFFSET,
        UNKNOWN_OFFSET,
        records=_NOTHING,
    )


def _diverges(log: PartitionLog, asked: Asked) -> bool:
    """Whether the reader's last epoch ended before its offset: its log was another (KIP-595)."""
    if asked.request.last_fetched_epoch < 0:
        return False
    epoch, end_offset = log.end_offset_for_epoch(asked.request.last_fetched_epoch)
    return epoch < asked.request.last_fetched_epoch or end_offset < asked.request.fetch_offset


def _diverging(log: PartitionLog, asked: Asked) -> PartitionData:
    epoch, end_offset = log.end_offset_for_epoch(asked.request.last_fetched_epoch)
    return PartitionData(
        asked.request.partition,
        0,
        log.high_watermark,
        log.last_stable_offset,
        log.log_start_offset,
        diverging_epoch=EpochEndOffset(epoch, end_offset),
        records=_NOTHING,
    )


def _aborted(log: PartitionLog, offset: int, upper_offset: int) -> list[AbortedTransaction]:
    return [
        AbortedTransaction(transaction.producer_id, transaction.first_offset)
        for transaction in log.aborted_transactions(offset, upper_offset)
    ]


class _ColdFetch(Parked[FetchResponse]):
    """A fetch that waits for a thread to bring data into the page cache, then starts over."""

    __slots__ = ("_broker", "_gone", "_reader", "_rounds")

    def __init__(self, broker: BrokerServer, reader: _Reader, span: FileSpan) -> None:
        super().__init__()
        self._broker = broker
        self._reader = reader
        self._rounds = COLD_ROUNDS_MAX
        self._gone = False
        self._warm(span)

    def _warm(self, span: FileSpan) -> None:
        self._rounds -= 1
        # What is read is not kept: the point is that it stands in the page cache afterwards. An
        # error comes again when the fetch reads for itself, and is answered there.
        self._broker.readers.run(partial(span.load, read_waiting), self._warmed)

    def _warmed(self) -> None:
        if self._gone:
            return
        reader = self._reader
        if self._rounds > 0:
            result = reader.read()
            if reader.cold is not None:
                self._warm(reader.cold)
                return
            response = reader.respond(result)
        else:
            response = reader.read_and_respond()
        self._gone = True
        self.complete(response)

    def abandoned(self) -> None:
        """Nobody waits any more."""
        self._gone = True
