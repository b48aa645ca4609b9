"""ListTransactions 0-2, DescribeTransactions 0: what operators see of transactions (KIP-664).

Version notes. ListTransactions: v1 brought the filter by duration, v2 the one by pattern
(KIP-1152). DescribeTransactions: the client that last used an id goes out in tags of Barnabas,
which other clients skip.

Kafka's duration filter also matches transactional ids without an open transaction, by the time of a
past one; here only an open or a decided transaction has a duration.

The state shown is in the journal already, but perhaps not durable: the response waits until it is
(C14). A broker of a cluster that was paused may show an older state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import compress
from typing import TYPE_CHECKING, Final

from barnabas.broker.api.checks import (
    DESCRIBE,
    TOPIC,
    TRANSACTIONAL_ID,
    TRANSACTIONAL_ID_DENIED,
)
from barnabas.broker.api.dispatch import RequestContext, serves
from barnabas.broker.api.waits import Turn
from barnabas.broker.runtime.host import Host
from barnabas.broker.runtime.pattern_thread import PatternThread
from barnabas.coordinator.groups.consumer.patterns import problem_of
from barnabas.coordinator.transactions.state import STORABLE, State, TopicPartition, Transaction
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.describe_transactions import (
    DESCRIBE_TRANSACTIONS,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
)
from barnabas.protocol.messages.describe_transactions import (
    TransactionState as DescribedTransaction,
)
from barnabas.protocol.messages.list_transactions import (
    LIST_TRANSACTIONS,
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from barnabas.protocol.messages.list_transactions import (
    TransactionState as ListedTransaction,
)

if TYPE_CHECKING:
    from barnabas.broker.coordination.transactions import Transactions
    from barnabas.broker.security.acls.access import Access

IDS_PER_TURN: Final = 2_000
"""Number of transactional ids examined before the loop gets a turn."""
IDS_JUDGED_PER_TURN: Final = 500
"""Transactional ids whose permissions are checked before the loop gets a turn."""
LISTED_MAX: Final = 100_000
"""Maximum number of transactional ids in one response; filters reduce them."""
IDS_PER_REQUEST_MAX: Final = 10_000
"""Transactional ids that one request may ask to have described."""
PARTITIONS_PER_ANSWER_MAX: Final = 100_000
"""Size at which a response ends: a short request can name a large transaction very often."""

STATES: Final = {state.kafka_name: state for state in State}
_TIMED: Final = frozenset({State.ONGOING, State.PREPARE_COMMIT, State.PREPARE_ABORT})

Include = Callable[[Transaction], bool]


# ------------------------------------------------------------------------------- ListTransactions


def refuse_list(
    _request: ListTransactionsRequest, code: ErrorCode, _message: str | None
) -> ListTransactionsResponse:
    """Return an error."""
    return ListTransactionsResponse(error_code=code)


@serves(LIST_TRANSACTIONS, versions=(0, 2), refuse=refuse_list, in_slices=True)
async def list_transactions(
    transactions: Transactions,
    host: Host,
    pattern_thread: PatternThread,
    context: RequestContext,
    request: ListTransactionsRequest,
) -> ListTransactionsResponse:
    """List the transactional IDs that pass every filter, with their states."""
    pattern = request.transactional_id_pattern
    if pattern and problem_of(pattern) is not None:
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION)
    unknown = [name for name in request.state_filters if name not in STATES]
    response = ListTransactionsResponse(unknown_state_filters=unknown)
    if not transactions.is_coordinator():
        return response
    if transactions.is_loading:
        raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    include = _filter(request, host.clock.now_ms())
    found: list[ListedTransaction] = []
    access = context.access
    refusals = transactions.refusals
    ids_per_turn = IDS_PER_TURN if access.is_open else IDS_JUDGED_PER_TURN
    for number, each in enumerate(transactions.all):
        if number % ids_per_turn == ids_per_turn - 1:
            await Turn()
        if include(each) and access.may_see(TRANSACTIONAL_ID, each.transactional_id):
            found.append(
                ListedTransaction(each.transactional_id, each.producer_id, each.state.kafka_name)
            )
    if pattern:
        verdicts = await pattern_thread.matching(pattern, [each.transactional_id for each in found])
        found = list(compress(found, verdicts))
    if len(found) > LISTED_MAX:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"more than {LISTED_MAX} transactional ids")
    await transactions.durable(refusals)
    response.transaction_states = found
    return response


def _filter(request: ListTransactionsRequest, now_ms: int) -> Include:
    """Combine all filters of a request, except its pattern, in one function."""
    filters: list[Include] = []
    if request.state_filters:
        states = STORABLE & {STATES.get(name) for name in request.state_filters}
        filters.append(lambda each: each.state in states)
    if request.producer_id_filters:
        producer_ids = frozenset(request.producer_id_filters)
        filters.append(lambda each: each.producer_id in producer_ids)
    duration_ms = request.duration_filter
    if duration_ms >= 0:
        filters.append(lambda each: each.state in _TIMED and now_ms - each.start_ms > duration_ms)
    return lambda each: all(passes(each) for passes in filters)


# --------------------------------------------------------------------------- DescribeTransactions


def refuse_describe(
    request: DescribeTransactionsRequest, code: ErrorCode, _message: str | None
) -> DescribeTransactionsResponse:
    """Return one error for every id."""
    return DescribeTransactionsResponse(
        transaction_states=[_refused(key, code) for key in request.transactional_ids]
    )


@serves(DESCRIBE_TRANSACTIONS, versions=(0, 0), refuse=refuse_describe)
async def describe_transactions(
    transactions: Transactions, context: RequestContext, request: DescribeTransactionsRequest
) -> DescribeTransactionsResponse:
    """Describe transactional ids."""
    if len(request.transactional_ids) > IDS_PER_REQUEST_MAX:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    response = DescribeTransactionsResponse()
    listed = 0
    refusals = transactions.refusals
    for number, key in enumerate(request.transactional_ids):
        if number % IDS_JUDGED_PER_TURN == IDS_JUDGED_PER_TURN - 1:
            await Turn()
        described = (
            _described(transactions, context.access, key)
            if listed < PARTITIONS_PER_ANSWER_MAX
            else _refused(key, ErrorCode.INVALID_REQUEST)
        )
        listed += sum(len(topic.partitions) for topic in described.topics)
        response.transaction_states.append(described)
    await transactions.durable(refusals)
    return response


def _described(transactions: Transactions, access: Access, key: str) -> DescribedTransaction:
    if not access.may(DESCRIBE, TRANSACTIONAL_ID, key):
        return _refused(key, TRANSACTIONAL_ID_DENIED)
    code = transactions.refusal(key) if key else ErrorCode.INVALID_REQUEST
    if code:
        return _refused(key, code)
    transaction = transactions.transaction(key)
    if transaction is None:
        return _refused(key, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    if transaction.state.is_decided:
        topic_partitions: Iterable[TopicPartition] = transactions.awaiting_markers(key)
    else:
        topic_partitions = sorted(transaction.partitions)
    client = transactions.clients.of(key)
    return DescribedTransaction(
        ErrorCode.NONE,
        key,
        transaction.state.kafka_name,
        transaction.timeout_ms,
        transaction.start_ms,
        *transaction.owner,
        [topic for topic in _by_topic(topic_partitions) if access.may_see(TOPIC, topic.topic)],
        None if client is None else client.client_id,
        None if client is None else client.host,
    )


def _refused(key: str, code: ErrorCode) -> DescribedTransaction:
    return DescribedTransaction(code, key)


def _by_topic(topic_partitions: Iterable[TopicPartition]) -> list[TopicData]:
    """Partitions, which come in order, gathered by topic."""
    topics: list[TopicData] = []
    for name, partition in topic_partitions:
        if not topics or topics[-1].topic != name:
            topics.append(TopicData(name))
        topics[-1].partitions.append(partition)
    return topics
