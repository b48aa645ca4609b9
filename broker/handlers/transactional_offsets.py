"""TxnOffsetCommit 0-5: the offsets that a transaction has read up to (KIP-98, KIP-447, KIP-890).

Version notes: v3 brought generation, member and instance of the group's member, by which a zombie
is recognised (KIP-447); v4 may answer TRANSACTION_ABORTABLE; from v5 on the commit itself makes
``__consumer_offsets`` part of the transaction (KIP-890).

The transaction is asked for twice: first of all, because its errors come before the group's as in
Apache Kafka (a commit of version 5 that the group refuses has opened the transaction); and again at
the moment of the append, because a commit may have to wait behind others of its group.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from barnabas.broker.api.dispatch import Deferred, Parked, RequestContext, serves
from barnabas.broker.api.division import by
from barnabas.broker.coordination.groups import caller_of
from barnabas.broker.handlers.transactions import offsets_partition
from barnabas.broker.topics.topic_names import GROUP_OFFSETS
from barnabas.coordinator.decision import TransactionalProducer
from barnabas.coordinator.groups.commands import TransactionalOffsetCommit
from barnabas.coordinator.groups.offsets import refuse_commit
from barnabas.coordinator.transactions.commands import AddPartitions, VerifyPartitions
from barnabas.coordinator.transactions.state import TRANSACTIONS_V2
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from barnabas.protocol.messages.txn_offset_commit import (
    TXN_OFFSET_COMMIT,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

LOADING_SINCE: Final = 2
ABORTABLE_SINCE: Final = 4
ADDS_SINCE: Final = 5


# Parts are as good as one: no offset counts before its transaction is committed (O2), which the
# producer asks for behind the answer.
@serves(
    TXN_OFFSET_COMMIT, versions=(0, 5), divide=by("topics.partitions", elements=2000), short=True
)
def txn_offset_commit(
    context: RequestContext, request: TxnOffsetCommitRequest
) -> TxnOffsetCommitResponse | Deferred[TxnOffsetCommitResponse]:
    """Commit what exists; what does not is answered partition by partition."""
    known = _known(context, request)
    if not known.topics:
        return _answer(context, request, OffsetCommitResponse())
    code = _refusal(context, request) or _admit(context, request)
    waits = context.api_version >= ADDS_SINCE and context.broker.config.transaction_wait_ms
    if code == ErrorCode.CONCURRENT_TRANSACTIONS and waits:
        return _HeldCommit(context, request, known)
    if code:
        return _answer(context, request, refuse_commit(known, code))
    command = _command(context, request, known)
    # What follows on the connection, the end of the transaction maybe, does not overtake a commit
    # that is not placed in the log yet.
    must_wait = context.broker.groups.must_wait(request.group_id, command)
    pending: Deferred[TxnOffsetCommitResponse] = Parked() if must_wait else Deferred()
    _submit(context, request, command, pending)
    return pending


class _HeldCommit(Parked[TxnOffsetCommitResponse]):
    """A commit that waits until the producer's transaction before it has ended (KIP-890)."""

    __slots__ = ("_context", "_known", "_request")

    def __init__(
        self, context: RequestContext, request: TxnOffsetCommitRequest, known: OffsetCommitRequest
    ) -> None:
        super().__init__()
        self._context = context
        self._request = request
        self._known = known
        context.broker.transactions.when_decided(request.transactional_id, self._go_on)

    def _go_on(self) -> None:
        """Try once more; whatever is refused now is the answer."""
        context, request = self._context, self._request
        code = _refusal(context, request) or _admit(context, request)
        if code:
            self.complete(_answer(context, request, refuse_commit(self._known, code)))
        else:
            _submit(context, request, _command(context, request, self._known), self)


def _command(
    context: RequestContext, request: TxnOffsetCommitRequest, known: OffsetCommitRequest
) -> TransactionalOffsetCommit:
    producer = TransactionalProducer(request.producer_id, request.producer_epoch)
    admit = partial(_admit, context, request)
    return TransactionalOffsetCommit(caller_of(context), known, producer, admit)


def _submit(
    context: RequestContext,
    request: TxnOffsetCommitRequest,
    command: TransactionalOffsetCommit,
    pending: Deferred[TxnOffsetCommitResponse],
) -> None:
    def respond(response: OffsetCommitResponse) -> None:
        pending.complete(_answer(context, request, response))

    refuse = partial(refuse_commit, command.request)
    context.broker.groups.submit(request.group_id, command, respond, refuse)


def _refusal(context: RequestContext, request: TxnOffsetCommitRequest) -> ErrorCode:
    """Why nothing can be committed at all; NONE if it can."""
    if not request.transactional_id:
        # Apache Kafka takes it, with no transaction to commit or abort it: it would hang for ever.
        return ErrorCode.INVALID_REQUEST
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    return context.broker.groups.refusal(request.group_id)


def _admit(context: RequestContext, request: TxnOffsetCommitRequest) -> ErrorCode:
    """Ask the transaction coordinator: is the transaction open, with this group's offsets in it."""
    if context.broker.catalogue.topic(GROUP_OFFSETS) is None:
        return ErrorCode.NOT_COORDINATOR  # Deleted while the commit waited for its turn.
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
    context: RequestContext, request: TxnOffsetCommitRequest, response: OffsetCommitResponse
) -> TxnOffsetCommitResponse:
    """The answer for each partition in the order it was asked for."""
    codes = {
        (topic.name, partition.partition_index): partition.error_code
        for topic in response.topics
        for partition in topic.partitions
    }
    if context.api_version < LOADING_SINCE:
        loading, unavailable = (
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
        )
        codes = {at: unavailable if code == loading else code for at, code in codes.items()}
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
