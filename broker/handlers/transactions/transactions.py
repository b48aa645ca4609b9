"""AddPartitionsToTxn 0-5, EndTxn 0-5: a transaction grows and ends.

Version notes. AddPartitionsToTxn: up to v3 a client adds partitions of one transaction; from v4 on
a broker sends several, perhaps only to verify (KIP-890). EndTxn: v5 is the protocol of KIP-890, its
response has the epoch of the next transaction. Before v2 a fenced producer receives
INVALID_PRODUCER_EPOCH instead of PRODUCER_FENCED.

A request that had to wait for the previous transaction has its permissions checked again. A
broker's request never waits, for other responses on its connection would wait, too: it gets an
error, and the broker repeats it. So it is decided while it is handled, and never for a connection
that has ended since (R10). Its response is durable (R9).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from barnabas.broker.api.checks import (
    TOPIC,
    TOPIC_DENIED,
    TRANSACTIONAL_ID,
    TRANSACTIONAL_ID_DENIED,
    WRITE,
)
from barnabas.broker.api.dispatch import Deferred, RequestContext, serves
from barnabas.broker.coordination.shard import java_hash
from barnabas.broker.coordination.transactions import Transactions
from barnabas.broker.metadata.catalogue import Catalogue
from barnabas.broker.metadata.topic_names import GROUP_OFFSETS, INTERNAL
from barnabas.coordinator.transactions.commands import (
    AddPartitions,
    Command,
    EndTransaction,
    Outcome,
    VerifyPartitions,
)
from barnabas.coordinator.transactions.state import CLASSIC, TRANSACTIONS_V2, TopicPartition
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_partitions_to_txn import (
    ADD_PARTITIONS_TO_TXN,
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from barnabas.protocol.messages.end_txn import END_TXN, EndTxnRequest, EndTxnResponse

FENCED_SINCE: Final = 2
BATCHED_SINCE: Final = 4
EPOCH_EACH_SINCE: Final = 5
"""First version of EndTxn with an epoch for each transaction (KIP-890)."""

Errors = dict[TopicPartition, ErrorCode]


def error_of_version(error: ErrorCode, version: int) -> ErrorCode:
    """Return the error by which clients of a version recognise a fenced producer."""
    if error == ErrorCode.PRODUCER_FENCED and version < FENCED_SINCE:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error


# ----------------------------------------------------------------------------- AddPartitionsToTxn


def refuse_add_partitions(
    request: AddPartitionsToTxnRequest, code: ErrorCode, _message: str | None
) -> AddPartitionsToTxnResponse:
    """Return one error: at the top (since v4), and for every partition (before)."""
    topics = request.v3_and_below_topics
    errors = {
        TopicPartition(topic.name, index): code for topic in topics for index in topic.partitions
    }
    return AddPartitionsToTxnResponse(
        error_code=code,
        results_by_topic_v3_and_below=_topic_results(topics, errors, BATCHED_SINCE),
    )


@serves(ADD_PARTITIONS_TO_TXN, versions=(0, 5), refuse=refuse_add_partitions, short=True)
def add_partitions_to_txn(
    catalogue: Catalogue,
    transactions: Transactions,
    context: RequestContext,
    request: AddPartitionsToTxnRequest,
) -> Deferred[AddPartitionsToTxnResponse]:
    """Add partitions to transactions, or verify that they are part of them."""
    pending: Deferred[AddPartitionsToTxnResponse] = Deferred()
    if context.api_version >= BATCHED_SINCE:
        _add_several(catalogue, transactions, context, request.transactions, pending)
        return pending
    wanted = AddPartitionsToTxnTransaction(
        request.v3_and_below_transactional_id,
        request.v3_and_below_producer_id,
        request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )
    respond = partial(_respond_to_client, pending, wanted.topics, context.api_version)
    _add(catalogue, transactions, context, wanted, respond)
    return pending


def _respond_to_client(
    pending: Deferred[AddPartitionsToTxnResponse],
    topics: list[AddPartitionsToTxnTopic],
    version: int,
    errors: Errors,
) -> None:
    results = _topic_results(topics, errors, version)
    pending.complete(AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results))


class _Several:
    """Results of the transactions of one request, whose response leaves with the last of them."""

    __slots__ = ("_missing", "_pending", "_results", "_version", "_wanted")

    def __init__(
        self,
        pending: Deferred[AddPartitionsToTxnResponse],
        wanted: list[AddPartitionsToTxnTransaction],
        version: int,
    ) -> None:
        self._pending = pending
        self._wanted = wanted
        self._version = version
        self._results: list[AddPartitionsToTxnResult] = [AddPartitionsToTxnResult()] * len(wanted)
        self._missing = len(wanted)

    def respond(self, number: int, errors: Errors) -> None:
        """Take the result of one transaction."""
        wanted = self._wanted[number]
        topics = _topic_results(wanted.topics, errors, self._version)
        self._results[number] = AddPartitionsToTxnResult(wanted.transactional_id, topics)
        self._missing -= 1
        if not self._missing:
            self._pending.complete(AddPartitionsToTxnResponse(results_by_transaction=self._results))


def _add_several(
    catalogue: Catalogue,
    transactions: Transactions,
    context: RequestContext,
    wanted: list[AddPartitionsToTxnTransaction],
    pending: Deferred[AddPartitionsToTxnResponse],
) -> None:
    if not wanted:
        pending.complete(AddPartitionsToTxnResponse())
    several = _Several(pending, wanted, context.api_version)
    for number, transaction in enumerate(wanted):
        _add(
            catalogue,
            transactions,
            context,
            transaction,
            partial(several.respond, number),
        )


def _add(
    catalogue: Catalogue,
    transactions: Transactions,
    context: RequestContext,
    wanted: AddPartitionsToTxnTransaction,
    respond: Callable[[Errors], None],
) -> None:
    """Add all partitions of a transaction, or none if one of them does not exist."""
    key = wanted.transactional_id
    topic_partitions = frozenset(
        TopicPartition(topic.name, index) for topic in wanted.topics for index in topic.partitions
    )
    if not key:
        respond(dict.fromkeys(topic_partitions, ErrorCode.INVALID_REQUEST))
        return
    link = context.connection.link
    finish = partial(_finish, respond, topic_partitions)
    if wanted.verify_only:
        command = partial(_verification, wanted, topic_partitions)
        transactions.submit(command, finish, key=key, waits=link is None)
        return
    refused = _refused(catalogue, context, key, topic_partitions)
    if refused:
        respond(refused)
        return
    transactions.submit(
        partial(_addition, catalogue, context, wanted, topic_partitions),
        finish,
        key=key,
        context=context if context.api_version < BATCHED_SINCE else None,
        waits=link is None,
    )


# Functions with their arguments, not nested functions: compiled, those form cycles.


def _finish(
    respond: Callable[[Errors], None],
    topic_partitions: frozenset[TopicPartition],
    outcome: Outcome,
) -> None:
    respond(_errors(topic_partitions, outcome))


def _verification(
    wanted: AddPartitionsToTxnTransaction, topic_partitions: frozenset[TopicPartition]
) -> VerifyPartitions:
    return VerifyPartitions(
        wanted.transactional_id, wanted.producer_id, wanted.producer_epoch, topic_partitions
    )


def _addition(
    catalogue: Catalogue,
    context: RequestContext,
    wanted: AddPartitionsToTxnTransaction,
    topic_partitions: frozenset[TopicPartition],
) -> AddPartitions | Outcome:
    key = wanted.transactional_id
    errors = _refused(catalogue, context, key, topic_partitions)
    if errors:
        return Outcome(partition_errors=errors)
    # A leader adds what is written to it, which only clients of KIP-890 leave to it.
    version = CLASSIC if context.connection.link is None else TRANSACTIONS_V2
    producer = (wanted.producer_id, wanted.producer_epoch)
    return AddPartitions(key, *producer, topic_partitions, version)


def _refused(
    catalogue: Catalogue,
    context: RequestContext,
    key: str,
    topic_partitions: frozenset[TopicPartition],
) -> Errors:
    """Return the errors of partitions if none of them can be added: one error, or one for each; or
    {}.

    Up to v3 the request is a client's, which needs permissions; no client adds an internal topic. A
    broker's request is about partitions that it leads: unknown ones are not known here yet.
    """
    refused: Errors = {}
    may_write: dict[str, bool] = {}
    if context.api_version < BATCHED_SINCE:
        access = context.access
        if not access.may(WRITE, TRANSACTIONAL_ID, key):
            return dict.fromkeys(topic_partitions, TRANSACTIONAL_ID_DENIED)
        for name in {topic_partition.topic for topic_partition in topic_partitions}:
            may_write[name] = name not in INTERNAL and access.may(WRITE, TOPIC, name)
    for topic_partition in topic_partitions:
        if not may_write.get(topic_partition.topic, True):
            refused[topic_partition] = TOPIC_DENIED
        elif catalogue.partition(*topic_partition) is None:
            refused[topic_partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if not refused:
        return {}
    if context.connection.link is not None:
        return dict.fromkeys(topic_partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return dict.fromkeys(topic_partitions, ErrorCode.OPERATION_NOT_ATTEMPTED) | refused


def _errors(topic_partitions: Iterable[TopicPartition], outcome: Outcome) -> Errors:
    return dict(outcome.partition_errors) or dict.fromkeys(topic_partitions, outcome.error)


def _topic_results(
    topics: Iterable[AddPartitionsToTxnTopic], errors: Errors, version: int
) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            topic.name,
            [
                AddPartitionsToTxnPartitionResult(
                    index, error_of_version(errors[TopicPartition(topic.name, index)], version)
                )
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]


def offsets_partition(catalogue: Catalogue, group_id: str) -> TopicPartition:
    """Return the partition for the offsets of a group; ``__consumer_offsets`` must exist."""
    topic = catalogue.topics[GROUP_OFFSETS]
    return TopicPartition(GROUP_OFFSETS, java_hash(group_id) % len(topic.partitions))


# ------------------------------------------------------------------------------------------ EndTxn


def refuse_end_txn(
    _request: EndTxnRequest, code: ErrorCode, _message: str | None
) -> EndTxnResponse:
    """Return a response with an error and without an epoch."""
    return EndTxnResponse(error_code=code)


@serves(END_TXN, versions=(0, 5), refuse=refuse_end_txn, short=True)
def end_txn(
    transactions: Transactions, context: RequestContext, request: EndTxnRequest
) -> Deferred[EndTxnResponse]:
    """Commit or abort; answered when the decision is durable."""
    pending: Deferred[EndTxnResponse] = Deferred()
    key = request.transactional_id
    version = context.api_version

    def respond(outcome: Outcome) -> None:
        pending.complete(
            EndTxnResponse(
                error_code=error_of_version(outcome.error, version),
                producer_id=outcome.producer_id,
                producer_epoch=outcome.producer_epoch,
            )
        )

    def command() -> Command | Outcome:
        if not context.access.may(WRITE, TRANSACTIONAL_ID, key):
            return Outcome(TRANSACTIONAL_ID_DENIED)
        return EndTransaction(
            key,
            request.producer_id,
            request.producer_epoch,
            request.committed,
            TRANSACTIONS_V2 if version >= EPOCH_EACH_SINCE else CLASSIC,
            transactions.fresh_producer_id,
        )

    if not key:
        respond(Outcome(ErrorCode.INVALID_REQUEST))
    else:
        transactions.submit(command, respond, key=key, context=context)
    return pending
