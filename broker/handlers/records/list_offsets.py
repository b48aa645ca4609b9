"""ListOffsets 1-11.

Version notes: v2 isolation level; v4 leader epochs; v7 the offset of the largest timestamp (-3). v8
has earliest local (-4), v9 latest tiered (-5), v11 earliest pending upload (-6). As there are no
tiers, -4 is the earliest offset and the other two are unknown.

-1 and -2 are looked up at once from two integers. Searches by timestamp run step by step, their
disk reads and decompression on a thread, and the connection waits. The response has an error for a
partition that may not be described any more by then. Very many partitions are looked up in parts.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from barnabas.broker.api.checks import DESCRIBE, TOPIC
from barnabas.broker.api.dispatch import RequestContext, serves
from barnabas.broker.api.division import by, in_parts
from barnabas.broker.api.driver import Run
from barnabas.broker.api.storage_errors import error_code_of
from barnabas.broker.api.waits import Aside
from barnabas.broker.metadata.catalogue import Catalogue
from barnabas.broker.metadata.topic import NO_EPOCH, Partition
from barnabas.broker.security.acls.access import Access
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from barnabas.protocol.records import CorruptBatch, InvalidBatch
from barnabas.storage.errors import Corrupt, Rejected
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log.readable_log import READ_COMMITTED, READ_UNCOMMITTED
from barnabas.storage.log.time_lookup import (
    Search,
    TimestampOffset,
    offset_for_timestamp,
    offset_of_max_timestamp,
)

if TYPE_CHECKING:
    from barnabas.broker.runtime.disk_readers import DiskReaders

logger = logging.getLogger(__name__)

BY_PARTITION: Final = by("topics.partitions")
NOT_FOUND: Final = -1

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6

_FIRST_VERSION: Final = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9}
_FIRST_VERSION_OF_REST: Final = 11

ListOffsetsAnswer: TypeAlias = ListOffsetsResponse | Run[ListOffsetsResponse]


def refuse_list_offsets(
    request: ListOffsetsRequest, code: ErrorCode, message: str | None
) -> ListOffsetsResponse:
    """Return one error for every partition of the request, without an offset."""
    del message
    return ListOffsetsResponse(topics=[_refused(topic, code) for topic in request.topics])


def _refused(topic: ListOffsetsTopic, code: ErrorCode) -> ListOffsetsTopicResponse:
    results = [
        ListOffsetsPartitionResponse(wanted.partition_index, code) for wanted in topic.partitions
    ]
    return ListOffsetsTopicResponse(topic.name, results)


@serves(
    LIST_OFFSETS,
    versions=(1, 11),
    refuse=refuse_list_offsets,
    in_slices=True,
    short=True,
)
def list_offsets(
    catalogue: Catalogue,
    readers: DiskReaders,
    context: RequestContext,
    request: ListOffsetsRequest,
) -> ListOffsetsAnswer:
    """Return the start or end offsets of logs, or their offsets for a timestamp."""
    if BY_PARTITION.is_long(request):
        handle = partial(_list_offsets, catalogue, readers, context)
        return Run(in_parts(request, BY_PARTITION, handle))
    return _list_offsets(catalogue, readers, context, request)


def _list_offsets(
    catalogue: Catalogue,
    readers: DiskReaders,
    context: RequestContext,
    request: ListOffsetsRequest,
) -> ListOffsetsAnswer:
    isolation = request.isolation_level
    if not READ_UNCOMMITTED <= isolation <= READ_COMMITTED:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    response = ListOffsetsResponse()
    twice = _asked_twice(request)
    searches: list[_Sought] = []
    access = context.access
    for topic in request.topics:
        if not access.may(DESCRIBE, TOPIC, topic.name):
            response.topics.append(_refused(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            continue
        results = []
        for wanted in topic.partitions:
            result = ListOffsetsPartitionResponse(wanted.partition_index)
            results.append(result)
            key = topic.name, wanted.partition_index
            partition = catalogue.partition(*key)
            result.error_code = _error(context.api_version, wanted, partition, twice=key in twice)
            log = None if partition is None or result.error_code else partition.log
            if log is not None:
                search = _look_up(log, wanted.timestamp, isolation, result)
                if search is not None and partition is not None:
                    searches.append(_Sought(partition, log, search, result))
        response.topics.append(ListOffsetsTopicResponse(topic.name, results))
    return Run(_search(readers, access, response, searches)) if searches else response


def _asked_twice(request: ListOffsetsRequest) -> set[tuple[str, int]]:
    """Return the partitions that a request names more than once."""
    seen: set[tuple[str, int]] = set()
    twice: set[tuple[str, int]] = set()
    for topic in request.topics:
        for wanted in topic.partitions:
            key = topic.name, wanted.partition_index
            (twice if key in seen else seen).add(key)
    return twice


def _error(
    version: int, wanted: ListOffsetsPartition, partition: Partition | None, *, twice: bool
) -> ErrorCode:
    if twice:
        return ErrorCode.INVALID_REQUEST
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    timestamp = wanted.timestamp
    if timestamp < EARLIEST_PENDING_UPLOAD or (
        timestamp <= MAX_TIMESTAMP
        and version < _FIRST_VERSION.get(timestamp, _FIRST_VERSION_OF_REST)
    ):
        return ErrorCode.UNSUPPORTED_VERSION
    return partition.leader_epoch_error(wanted.current_leader_epoch)


def _look_up(
    log: PartitionLog, timestamp: int, isolation: int, result: ListOffsetsPartitionResponse
) -> Search | None:
    """Fill in ``result``, or return the search for it."""
    if timestamp == LATEST:
        committed = isolation == READ_COMMITTED
        result.offset = log.last_stable_offset if committed else log.high_watermark
        result.leader_epoch = log.leader_epoch
    elif timestamp in {EARLIEST, EARLIEST_LOCAL}:
        result.offset = log.log_start_offset
        epoch = log.epoch_at(result.offset)
        result.leader_epoch = epoch if epoch >= 0 else log.leader_epoch
    elif timestamp == MAX_TIMESTAMP:
        return offset_of_max_timestamp(log, isolation)
    elif timestamp >= 0:
        return offset_for_timestamp(log, timestamp, isolation)
    return None


class _Sought(NamedTuple):
    """A partition to be searched, and the object that receives its result."""

    partition: Partition
    log: PartitionLog
    search: Search
    result: ListOffsetsPartitionResponse

    @property
    def has_moved(self) -> bool:
        """Return whether this broker no longer leads the log, so that results are invalid."""
        return self.partition.log is not self.log

    def fails(self, code: ErrorCode) -> None:
        """Set an error, without an offset."""
        self.result.error_code = code
        self.result.timestamp = self.result.offset = self.result.leader_epoch = NOT_FOUND


async def _search(
    readers: DiskReaders,
    access: Access,
    response: ListOffsetsResponse,
    searches: list[_Sought],
) -> ListOffsetsResponse:
    """Run searches one after the other, and return the response that they complete."""
    for sought in searches:
        await _fill_in(readers, sought)
    for sought in searches:
        if not access.may(DESCRIBE, TOPIC, sought.partition.topic.name):
            sought.fails(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        elif sought.has_moved or sought.partition.leader_epoch_error(NO_EPOCH):
            sought.fails(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return response


async def _fill_in(readers: DiskReaders, sought: _Sought) -> None:
    log, result = sought.log, sought.result
    try:
        found = await _found_by(readers, sought.search)
    except Rejected as refused:
        result.error_code = error_code_of(refused)
    except (Corrupt, CorruptBatch, InvalidBatch, OSError) as damage:
        result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
        if sought.has_moved:
            return  # Its files were removed, and are no sign of damage.
        if isinstance(damage, Corrupt):
            log.suspect(log.log_start_offset, damage)
        else:
            logger.error("search by timestamp failed: %s", damage)  # noqa: TRY400  one line
    else:
        if found is not None:
            result.timestamp, result.offset, result.leader_epoch = found


async def _found_by(readers: DiskReaders, search: Search) -> TimestampOffset | None:
    """Run a search by timestamp: its steps on the loop, its reads on a thread."""
    try:
        work = next(search)
        while True:
            work = search.send(await Aside(partial(readers.run, work)))
    except StopIteration as stop:
        found: TimestampOffset | None = stop.value
        return found
