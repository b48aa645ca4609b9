"""TxnOffsetCommit 0-5: the offsets that a transaction has read up to (KIP-98, KIP-447, KIP-890).

Version notes: v3 brought generation, member and instance of the group's member, by which a zombie
is recognised (KIP-447); v4 may answer TRANSACTION_ABORTABLE; from v5 on the commit itself makes
``__consumer_offsets`` part of the transaction (KIP-890).
"""

from __future__ import annotations

from functools import partial

from broker.dispatch import RequestContext, serves
from broker.groups import caller_of
from broker.handlers.transactions import offsets_partition
from coordinator.decision import TransactionalProducer
from coordinator.groups.commands import TransactionalOffsetCommit
from coordinator.groups.offsets import refuse_commit
from coordinator.transactions.commands import AddPartitions, VerifyPartitions
from coordinator.transactions.state import TRANSACTIONS_V2
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from protocol.messages.txn_offset_commit import (
    TXN_OFFSET_COMMIT,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

ABORTABLE_SINCE = 4
ADDS_SINCE = 5


@serves(TXN_OFFSET_COMMIT, versions=(0, 5))
async def txn_offset_commit(
    context: RequestContext, request: TxnOffsetCommitRequest
) -> TxnOffsetCommitResponse:
    """Commit what exists; what does not is answered partition by partition."""
    code = await _unavailable(context, request)
    if code:
        return _all(request, code)
    known = _known(context, request)
    if not known.topics:
        return _answer(request, OffsetCommitResponse())
    groups = context.broker.groups
    producer = TransactionalProducer(request.producer_id, request.producer_epoch)
    command = TransactionalOffsetCommit(
        caller_of(context), known, producer, partial(_admit, context, request)
    )
    found = context.broker.loop.create_future()

    def respond(response: OffsetCommitResponse) -> None:
        if not found.done():
            found.set_result(response)

    groups.submit(request.group_id, command, respond, partial(refuse_commit, known))
    return _answer(request, await found)


async def _unavailable(context: RequestContext, request: TxnOffsetCommitRequest) -> ErrorCode:
    """Why nothing can be committed at all; NONE if it can."""
    if not request.transactional_id:
        return ErrorCode.INVALID_REQUEST
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    groups = context.broker.groups
    try:
        await groups.ensure()
    except KafkaError:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return groups.refusal(request.group_id)


def _admit(context: RequestContext, request: TxnOffsetCommitRequest) -> ErrorCode:
    """Ask the transaction coordinator: is the transaction open, with this group's offsets in it."""
    transactions = context.broker.transactions
    place = offsets_partition(context, request.group_id)
    asked = (request.transactional_id, request.producer_id, request.producer_epoch)
    if context.api_version >= ADDS_SINCE:
        code = transactions.add(AddPartitions(*asked, frozenset({place}), TRANSACTIONS_V2))
    else:
        code = transactions.verify(VerifyPartitions(*asked, frozenset({place})))[place]
    if not code:
        transactions.used(request.transactional_id, context)
    if code == ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code == ErrorCode.TRANSACTION_ABORTABLE and context.api_version < ABORTABLE_SINCE:
        return ErrorCode.INVALID_TXN_STATE
    return code


def _known(context: RequestContext, request: TxnOffsetCommitRequest) -> OffsetCommitRequest:
    """The partitions that exist, in the words of OffsetCommit."""
    topics = []
    for asked in request.topics:
        topic = context.broker.catalogue.topic(asked.name)
        if topic is None:
            continue
        partitions = [
            OffsetCommitRequestPartition(
                each.partition_index,
                each.committed_offset,
                each.committed_leader_epoch,
                each.committed_metadata,
            )
            for each in asked.partitions
            if 0 <= each.partition_index < len(topic.partitions)
        ]
        if partitions:
            topics.append(OffsetCommitRequestTopic(topic.name, topic.topic_id, partitions))
    return OffsetCommitRequest(
        request.group_id,
        request.generation_id,
        request.member_id,
        request.group_instance_id,
        topics=topics,
    )


def _answer(
    request: TxnOffsetCommitRequest, response: OffsetCommitResponse
) -> TxnOffsetCommitResponse:
    """The answer for each partition in the order it was asked for."""
    codes = {
        (topic.name, partition.partition_index): partition.error_code
        for topic in response.topics
        for partition in topic.partitions
    }
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                topic.name,
                [
                    TxnOffsetCommitResponsePartition(
                        each.partition_index, codes.get((topic.name, each.partition_index), unknown)
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _all(request: TxnOffsetCommitRequest, code: ErrorCode) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                topic.name,
                [
                    TxnOffsetCommitResponsePartition(each.partition_index, code)
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
