"""OffsetForLeaderEpoch 2-4 and DeleteRecords 0-2 (ListOffsets is in list_offsets.py).

Version notes. OffsetForLeaderEpoch: v3 adds the replica that asks; it makes no difference, there is
one replica. DeleteRecords: nothing changed but the encoding.
Knowingly absent: ``timeout_ms`` of DeleteRecords; the response comes when the new start is durable.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

from barnabas.broker.api.checks import (
    CLUSTER,
    CLUSTER_ACTION,
    DELETE,
    DESCRIBE,
    TOPIC,
    TOPIC_DENIED,
)
from barnabas.broker.api.dispatch import RequestContext, serves
from barnabas.broker.api.division import by, in_parts
from barnabas.broker.api.driver import Run
from barnabas.broker.api.storage_errors import error_code_of
from barnabas.broker.api.waiting import Durability
from barnabas.broker.metadata.catalogue import Catalogue
from barnabas.broker.security.acls.operations import CLUSTER_NAME
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.delete_records import (
    DELETE_RECORDS,
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from barnabas.protocol.messages.offset_for_leader_epoch import (
    OFFSET_FOR_LEADER_EPOCH,
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from barnabas.storage.errors import Rejected
from barnabas.storage.log.partition_log import PartitionLog

BY: Final = by("topics.partitions")
NO_OFFSET = -1

# --------------------------------------------------------------------------- OffsetForLeaderEpoch


@serves(OFFSET_FOR_LEADER_EPOCH, versions=(2, 4), in_slices=True)
def offset_for_leader_epoch(
    catalogue: Catalogue, context: RequestContext, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse | Run[OffsetForLeaderEpochResponse]:
    """Return the end offset of a leader epoch, so that a client notices a log that was cut
    (KIP-320).
    """
    handle = partial(_epoch_ends, catalogue, context)
    return Run(in_parts(request, BY, handle)) if BY.is_long(request) else handle(request)


def _epoch_ends(
    catalogue: Catalogue, context: RequestContext, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    access = context.access
    is_replica = access.may_see(CLUSTER, CLUSTER_NAME, CLUSTER_ACTION)
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic.topic,
                [_epoch_end(catalogue, topic.topic, named) for named in topic.partitions]
                if is_replica or access.may(DESCRIBE, TOPIC, topic.topic)
                else [EpochEndOffset(TOPIC_DENIED, named.partition) for named in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _epoch_end(catalogue: Catalogue, topic: str, named: OffsetForLeaderPartition) -> EpochEndOffset:
    partition = catalogue.partition(topic, named.partition)
    if partition is None:
        return EpochEndOffset(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, named.partition)
    error = partition.leader_epoch_error(named.current_leader_epoch)
    if error or partition.log is None:
        return EpochEndOffset(error, named.partition)
    try:
        epoch, end_offset = partition.log.end_offset_for_epoch(named.leader_epoch)
    except Rejected as refused:
        return EpochEndOffset(error_code_of(refused), named.partition)
    return EpochEndOffset(ErrorCode.NONE, named.partition, epoch, end_offset)


# ---------------------------------------------------------------------------------- DeleteRecords


@serves(DELETE_RECORDS, versions=(0, 2), in_slices=True)
async def delete_records(
    catalogue: Catalogue, context: RequestContext, request: DeleteRecordsRequest
) -> DeleteRecordsResponse:
    """Move log starts forward; answered when the new starts are durable (D1)."""
    response: DeleteRecordsResponse
    response = await in_parts(request, BY, partial(_delete_records, catalogue, context))
    return response


async def _delete_records(
    catalogue: Catalogue, context: RequestContext, request: DeleteRecordsRequest
) -> DeleteRecordsResponse:
    response = DeleteRecordsResponse()
    # Everything is started before anything is awaited: one commit group serves all.
    begun: list[tuple[DeleteRecordsPartitionResult, PartitionLog, asyncio.Future[None]]] = []
    for topic in request.topics:
        results = []
        is_allowed = context.access.may(DELETE, TOPIC, topic.name)
        for named in topic.partitions:
            result = DeleteRecordsPartitionResult(named.partition_index, NO_OFFSET)
            log, result.error_code = (
                _deletable(catalogue, topic.name, named) if is_allowed else (None, TOPIC_DENIED)
            )
            if log is not None:
                try:
                    begun.append((result, log, _begin_deletion(log, named.offset)))
                except Rejected as error:
                    result.error_code = error_code_of(error)
            results.append(result)
        response.topics.append(DeleteRecordsTopicResult(topic.name, results))
    await asyncio.gather(*[durable for _, _, durable in begun], return_exceptions=True)
    for result, begun_log, durable in begun:
        refused = durable.exception()
        if isinstance(refused, KafkaError):
            result.error_code = refused.code
        else:
            result.low_watermark = begun_log.log_start_offset
    return response


def _deletable(
    catalogue: Catalogue, topic: str, named: DeleteRecordsPartition
) -> tuple[PartitionLog | None, ErrorCode]:
    """Return the partition's log if its records may be deleted, or an error."""
    found = catalogue.topic(topic)
    partition = catalogue.partition(topic, named.partition_index)
    if found is None or partition is None:
        return None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if found.is_internal:
        return None, ErrorCode.INVALID_TOPIC_EXCEPTION
    if found.log_config.is_compacted and not found.log_config.deletes:
        return None, ErrorCode.POLICY_VIOLATION
    if partition.log is None:
        return None, partition.error_without_log
    return partition.log, ErrorCode.NONE


def _begin_deletion(log: PartitionLog, offset: int) -> asyncio.Future[None]:
    """Set a new log start; returns a future for its durability. Raises Rejected."""
    group = log.delete_records(offset)
    durable: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    waiter = Durability(durable, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if group is None:
        waiter.durable()
    else:
        group.add_waiter(waiter)
    return durable
