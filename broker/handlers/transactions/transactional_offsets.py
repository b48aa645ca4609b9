"""TxnOffsetCommit 0-5: the offsets that a transaction has read up to (KIP-98, KIP-447, KIP-890).

Version notes: v3 brought generation, member and instance of the group's member, by which a zombie
is recognised (KIP-447); v4 may return TRANSACTION_ABORTABLE; from v5 on the commit itself makes
``__consumer_offsets`` part of the transaction (KIP-890).

The transaction is checked twice. First of all, because its errors come before the group's as in
Apache Kafka: a commit of version 5 that the group refuses has opened the transaction. And again at
the moment of the append, because a commit may have to wait for others of its group. So are the
client's permissions.

A coordinator on another broker is queried once (R1), with a guard in the place of the second check:
a marker that arrives while the commit waits drops it (R7). Without a response, or after its guard
was dropped, the client gets COORDINATOR_LOAD_IN_PROGRESS, with which it tries again: Apache Kafka's
error for an unreachable coordinator. (Kafka returns INVALID_TXN_STATE for a dropped guard, which
ends the producer permanently.)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias

from barnabas.broker.api.checks import READ, TOPIC, TOPIC_DENIED, transaction_denial
from barnabas.broker.api.dispatch import Deferred, RequestContext, serves
from barnabas.broker.api.division import by, in_parts
from barnabas.broker.api.driver import Run
from barnabas.broker.api.refusals import mirror
from barnabas.broker.api.waits import Asked, TransactionEnded
from barnabas.broker.cluster.coordinating.remote_coordinators import (
    NO_WORD,
    Answer,
    Question,
    RemoteCoordinators,
)
from barnabas.broker.cluster.coordinating.verification_guards import Guard
from barnabas.broker.coordination.groups import Groups, caller_of
from barnabas.broker.coordination.transactions import Transactions
from barnabas.broker.handlers.transactions.transactions import offsets_partition
from barnabas.broker.metadata.catalogue import Catalogue
from barnabas.broker.metadata.topic import Partition
from barnabas.broker.metadata.topic_names import GROUP_OFFSETS
from barnabas.broker.runtime.host import Host
from barnabas.broker.security.acls.access import Access
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
ASKED_MS: Final = 5_000
"""Maximum wait for another coordinator: Kafka's ``offsets.commit.timeout.ms``."""


# Parts are as good as one: no offset counts before its transaction is committed (O2), which the
# producer asks for behind the response.
BY_PARTITION: Final = by("topics.partitions", elements=2000)

CommitAnswer: TypeAlias = (
    TxnOffsetCommitResponse | Deferred[TxnOffsetCommitResponse] | Run[TxnOffsetCommitResponse]
)


@serves(TXN_OFFSET_COMMIT, versions=(0, 5), in_slices=True, short=True)
def txn_offset_commit(
    catalogue: Catalogue,
    groups: Groups,
    transactions: Transactions,
    host: Host,
    remote_coordinators: RemoteCoordinators | None,
    context: RequestContext,
    request: TxnOffsetCommitRequest,
) -> CommitAnswer:
    """Commit offsets of existing partitions; every other partition gets an error."""
    if BY_PARTITION.is_long(request):
        handle = partial(
            _commit, catalogue, groups, transactions, host, remote_coordinators, context
        )
        return Run(in_parts(request, BY_PARTITION, handle))
    return _commit(catalogue, groups, transactions, host, remote_coordinators, context, request)


def _commit(
    catalogue: Catalogue,
    groups: Groups,
    transactions: Transactions,
    host: Host,
    remote_coordinators: RemoteCoordinators | None,
    context: RequestContext,
    request: TxnOffsetCommitRequest,
) -> CommitAnswer:
    commit = _Commit(catalogue, groups, transactions, context, request)
    if commit.is_empty:
        return commit.answered(OffsetCommitResponse())
    code = commit.refusal()
    waits = context.api_version >= ADDS_SINCE and host.config.transaction_wait_ms
    again = partial(_Commit, catalogue, groups, transactions, context, request)
    if code == ErrorCode.CONCURRENT_TRANSACTIONS and waits:
        return Run(_commit_after(transactions, context.access, request, again))
    if code == ErrorCode.NOT_COORDINATOR and remote_coordinators is not None:
        question = commit.question()
        if question is not None:
            access = context.access
            return Run(_commit_after_answer(remote_coordinators, question, access, request, again))
    if code:
        return commit.refused(code)
    # What follows on the connection, the end of the transaction maybe, does not overtake a commit
    # that is not placed in the log yet.
    must_wait = commit.must_wait()
    pending = commit.submit()
    return Run(_result(pending)) if must_wait else pending


async def _result(pending: Deferred[TxnOffsetCommitResponse]) -> TxnOffsetCommitResponse:
    return await pending


async def _commit_after(
    transactions: Transactions,
    access: Access,
    request: TxnOffsetCommitRequest,
    again: Callable[[], _Commit],
) -> TxnOffsetCommitResponse:
    """Commit after the end of the producer's previous transaction (KIP-890).

    ``again`` repeats the commit with the partitions that may be committed then.
    """
    await TransactionEnded(transactions, request.transactional_id)
    return await _committed(access, request, again, _Commit.refusal)


async def _commit_after_answer(
    remote_coordinators: RemoteCoordinators,
    question: Question,
    access: Access,
    request: TxnOffsetCommitRequest,
    again: Callable[[], _Commit],
) -> TxnOffsetCommitResponse:
    """Commit by the decision of a coordinator on another broker."""
    answer = await Asked(remote_coordinators, question, ASKED_MS)
    return await _committed(
        access, request, again, lambda commit: commit.use(remote_coordinators, answer)
    )


async def _committed(
    access: Access,
    request: TxnOffsetCommitRequest,
    again: Callable[[], _Commit],
    refusal: Callable[[_Commit], ErrorCode],
) -> TxnOffsetCommitResponse:
    """Submit a delayed commit to its group, or return its refusal."""
    code = transaction_denial(access, request.transactional_id, request.group_id)
    if code:
        refused: TxnOffsetCommitResponse = mirror(TxnOffsetCommitResponse, request, code, None)
        return refused
    commit = again()
    if commit.is_empty:
        return commit.answered(OffsetCommitResponse())
    code = refusal(commit)
    return commit.refused(code) if code else await commit.submit()


class _Commit:
    """One request, and the coordinators' decisions about it."""

    __slots__ = (
        "_catalogue",
        "_command",
        "_context",
        "_denied",
        "_groups",
        "_guard",
        "_mark",
        "_remote_coordinators",
        "_request",
        "_transactions",
    )

    def __init__(
        self,
        catalogue: Catalogue,
        groups: Groups,
        transactions: Transactions,
        context: RequestContext,
        request: TxnOffsetCommitRequest,
    ) -> None:
        """Keep the partitions of the request that exist and may be read."""
        access = context.access
        self._mark = access.mark
        self._denied = frozenset(
            topic.name for topic in request.topics if not access.may(READ, TOPIC, topic.name)
        )
        self._catalogue = catalogue
        self._groups = groups
        self._transactions = transactions
        self._context = context
        self._request = request
        known = _known(catalogue, request, self._denied)
        self._remote_coordinators: RemoteCoordinators | None = None
        self._guard: Guard | None = None
        producer = TransactionalProducer(request.producer_id, request.producer_epoch)
        self._command = TransactionalOffsetCommit(caller_of(context), known, producer)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to commit."""
        return not self._command.request.topics

    def refusal(self) -> ErrorCode:
        """Return the error of the commit as a whole, or NONE."""
        request = self._request
        if not request.transactional_id:
            # Apache Kafka takes it, with no transaction to commit or abort it: it hangs forever.
            return ErrorCode.INVALID_REQUEST
        if not request.group_id:
            return ErrorCode.INVALID_GROUP_ID
        return self._groups.refusal(request.group_id) or self.verification_error()

    def question(self) -> Question | None:
        """Return the request to a coordinator on another broker, or None if the group refuses."""
        context, request = self._context, self._request
        if not request.transactional_id or self._groups.refusal(request.group_id):
            return None
        partition = self._offsets_partition()
        log = None if partition is None else partition.log
        if partition is None or log is None:
            return None
        adds = context.api_version >= ADDS_SINCE
        asked = (request.transactional_id, request.producer_id, request.producer_epoch)
        return Question(*asked, {partition.topic_partition: log}, adds)

    def use(self, remote_coordinators: RemoteCoordinators, answer: Answer) -> ErrorCode:
        """Apply another coordinator's response; return the error of the whole commit, or NONE."""
        code = self._groups.refusal(self._request.group_id)
        if code:
            return code
        (partition,) = answer.question.logs
        code = answer.code(partition)
        if code:
            return self._sent(code)
        guard = answer.keep(partition)
        if guard is None or guard.is_dropped:
            return self._sent(NO_WORD)
        self._remote_coordinators, self._guard = remote_coordinators, guard
        return ErrorCode.NONE

    def _offsets_partition(self) -> Partition | None:
        """Return the partition of the group's offsets, or None if the topic was deleted."""
        catalogue = self._catalogue
        if catalogue.topic(GROUP_OFFSETS) is None:
            return None
        return catalogue.partition(*offsets_partition(catalogue, self._request.group_id))

    def verification_error(self) -> ErrorCode:
        """Verify that the transaction is open, with this group's offsets in it (KIP-890)."""
        context, request, transactions = self._context, self._request, self._transactions
        denial = self._denial()
        if denial:
            return denial
        found = self._offsets_partition()
        if found is None:
            return ErrorCode.NOT_COORDINATOR  # Deleted while the commit waited for its turn.
        if self._remote_coordinators is not None and self._guard is not None:
            is_good = found.log is not None and self._remote_coordinators.guards.take(
                self._guard, found.log
            )
            return ErrorCode.NONE if is_good else self._sent(NO_WORD)
        partition = found.topic_partition
        asked = (request.transactional_id, request.producer_id, request.producer_epoch)
        if context.api_version >= ADDS_SINCE:
            code = transactions.add(AddPartitions(*asked, frozenset({partition}), TRANSACTIONS_V2))
        else:
            verdicts = transactions.verify(VerifyPartitions(*asked, frozenset({partition})))
            code = verdicts[partition]
        if not code:
            transactions.used(request.transactional_id, context)
            transactions.pipelines.reads(request.group_id, request.transactional_id)
        if code == ErrorCode.PRODUCER_FENCED:
            transactions.was_fenced(request.transactional_id, context)
        return self._sent(code)

    def _sent(self, code: ErrorCode) -> ErrorCode:
        """Return the error that a producer receives for one of the coordinator, by version."""
        if code == ErrorCode.PRODUCER_FENCED:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if code == ErrorCode.TRANSACTION_ABORTABLE and self._context.api_version < ABORTABLE_SINCE:
            return ErrorCode.INVALID_TXN_STATE
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if code == NO_WORD else code

    def _denial(self) -> ErrorCode:
        """Return the error of a permission that was lost, or NONE; checked only after changes."""
        access, request = self._context.access, self._request
        if access.mark == self._mark:
            return ErrorCode.NONE
        if not all(access.may(READ, TOPIC, each.name) for each in self._command.request.topics):
            return TOPIC_DENIED
        return transaction_denial(access, request.transactional_id, request.group_id)

    def must_wait(self) -> bool:
        """Whether other commits of the group precede this one."""
        return self._groups.must_wait(self._request.group_id)

    def submit(self) -> Deferred[TxnOffsetCommitResponse]:
        """Submit the commit to its group, which completes the response."""
        pending: Deferred[TxnOffsetCommitResponse] = Deferred()
        refuse = partial(refuse_commit, self._command.request)

        def respond(response: OffsetCommitResponse) -> None:
            if self._remote_coordinators is not None and self._guard is not None:
                self._remote_coordinators.guards.release(self._guard)
            pending.complete(self.answered(response))

        self._groups.submit(
            self._request.group_id,
            self._command,
            respond,
            refuse,
            admit=self.verification_error,
        )
        return pending

    def refused(self, code: ErrorCode) -> TxnOffsetCommitResponse:
        """Return the response to a commit that is refused as a whole."""
        return self.answered(refuse_commit(self._command.request, code))

    def answered(self, response: OffsetCommitResponse) -> TxnOffsetCommitResponse:
        """Return the response to the whole request; ``response`` has its permitted partitions."""
        return _answer(self._context, self._request, self._denied, response)


def _known(
    catalogue: Catalogue, request: TxnOffsetCommitRequest, denied: frozenset[str]
) -> OffsetCommitRequest:
    """Return an OffsetCommit request for the partitions that exist and are permitted."""
    topics = []
    for asked in request.topics:
        topic = None if asked.name in denied else catalogue.topic(asked.name)
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
    context: RequestContext,
    request: TxnOffsetCommitRequest,
    denied: frozenset[str],
    response: OffsetCommitResponse,
) -> TxnOffsetCommitResponse:
    """Return the result of each partition in the order of the request."""
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

    def code_of(topic: str, index: int) -> int:
        if topic in denied:
            return TOPIC_DENIED
        return codes.get((topic, index), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                topic.name,
                [
                    TxnOffsetCommitResponsePartition(
                        each.partition_index, code_of(topic.name, each.partition_index)
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
