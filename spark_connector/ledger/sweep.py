"""Leftovers: open transactions of tasks that no decision names, found and aborted.

They hold up readers of committed records. Which of them no driver can commit any more:

1. Those of this query's decided batches that the ledger does not list: a driver that runs such a
   batch again learns that it is decided.
2. All others, too, that were open before this driver was seen to be the owner still, for every
   driver before it is fenced. A driver that has come since could have pinned and decided one
   by the time it is aborted here; then its epoch is a later one, and the abort is refused. So this
   needs a broker that pins (KIP-939). On others they end by their timeout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from barnabas.broker.client.connection import Connection
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.messages.describe_transactions import (
    DESCRIBE_TRANSACTIONS,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from barnabas.protocol.messages.list_transactions import (
    LIST_TRANSACTIONS,
    ListTransactionsRequest,
)
from barnabas.spark_connector.cluster.cluster import Cluster
from barnabas.spark_connector.cluster.requests import Identity, end_all, refused
from barnabas.spark_connector.ledger.prepared import query_tag, read_task_transactional_id

_ONGOING = "Ongoing"
_COMMITTED = ("PrepareCommit", "CompleteCommit")
_ABORTED = ("PrepareAbort", "CompleteAbort", "PrepareEpochFence")
_PATTERN_SINCE = 2


class Decided(NamedTuple):
    """What a sweep has to know of the query that does it."""

    query_id: str
    batch_id: int
    listed: frozenset[str]
    """Transactional ids of decided batches: never touched."""


def sweep(cluster: Cluster, sink_id: str, decided: Decided, owns: Callable[[], bool] | None) -> int:
    """Abort what is left over of a sink's tasks and return how many transactions that were.

    ``owns`` asks the broker whether this driver is the sink's only one still; without it only what
    decided batches have left is swept.
    """
    if not can_list(cluster):
        return 0  # Apache Kafka before 3.0: leftovers end by their timeout.
    found = _open_transactions(cluster, sink_id, decided)
    identities = describe(cluster, found)
    doomed = {key for key in identities if _is_of_decided(key, sink_id, decided)}
    if owns is not None and doomed != identities.keys() and owns():
        doomed = set(identities)
    abort_all(cluster, {key: identities[key] for key in doomed})
    return len(doomed)


def abort_all(cluster: Cluster, transactions: dict[str, Identity]) -> None:
    """Abort transactions that are still as described; others have gone on, or have ended."""
    if transactions:
        end_all(cluster, transactions, commit=False)


def can_list(cluster: Cluster) -> bool:
    """Whether the brokers tell of their transactions (Apache Kafka since 3.0)."""
    connection = cluster.until("Connecting", cluster.deadline(), cluster.any_node)
    return connection.speaks(LIST_TRANSACTIONS, 0) and connection.speaks(DESCRIBE_TRANSACTIONS, 0)


class Described(NamedTuple):
    """What the broker says of a transactional id."""

    state: str
    identity: Identity
    """The present producer."""

    @property
    def is_open(self) -> bool:
        """Whether its end is not decided yet."""
        return self.state == _ONGOING

    @property
    def is_committed(self) -> bool:
        """Whether its latest transaction is committed, or will be."""
        return self.state in _COMMITTED

    @property
    def is_aborted(self) -> bool:
        """Whether its latest transaction is aborted, or will be."""
        return self.state in _ABORTED


def describe(cluster: Cluster, transactional_ids: Iterable[str]) -> dict[str, Identity]:
    """The present producer of each id that has an open transaction."""
    found = describe_all(cluster, transactional_ids)
    return {key: each.identity for key, each in found.items() if each.is_open}


def describe_all(cluster: Cluster, transactional_ids: Iterable[str]) -> dict[str, Described]:
    """What is known of each id; one that the broker does not know is not there."""
    answers = cluster.ask_coordinators(
        "Describing the transactions of a sink",
        DESCRIBE_TRANSACTIONS,
        {key: DescribeTransactionsRequest([key]) for key in transactional_ids},
        error_of=_description_error,
    )
    return {
        each.transactional_id: Described(
            each.transaction_state, Identity(each.producer_id, each.producer_epoch)
        )
        for answer in answers.values()
        for each in answer.transaction_states
        if not each.error_code
    }


def _description_error(response: DescribeTransactionsResponse) -> int:
    return response.transaction_states[0].error_code


def _is_of_decided(transactional_id: str, sink_id: str, decided: Decided) -> bool:
    task = read_task_transactional_id(sink_id, transactional_id)
    if task is None:
        return False
    return task.query_tag == query_tag(decided.query_id) and task.batch_id <= decided.batch_id


def _open_transactions(cluster: Cluster, sink_id: str, decided: Decided) -> list[str]:
    """The ids of this sink's tasks that have an open transaction which is not listed."""
    what = "Listing the open transactions of a sink"
    try:
        answers = cluster.ask_every_broker(
            what,
            LIST_TRANSACTIONS,
            lambda connection: listing(connection, sink_id, [_ONGOING]),
            error_of=lambda response: response.error_code,
        )
    except KafkaError as error:
        raise refused(what, error.code) from None
    for answer in answers:
        if answer.error_code:
            raise refused(what, answer.error_code)
    return [
        each.transactional_id
        for answer in answers
        for each in answer.transaction_states
        if each.transactional_id not in decided.listed
        and read_task_transactional_id(sink_id, each.transactional_id) is not None
    ]


def listing(connection: Connection, sink_id: str, states: list[str]) -> ListTransactionsRequest:
    """Ask for transactions of a sink; a broker before version 2 answers those of others, too."""
    filtered = connection.speaks(LIST_TRANSACTIONS, _PATTERN_SINCE)
    # A sink id is letters, digits, '_' and '-': nothing that a pattern would read otherwise.
    pattern = rf"^spark\.{sink_id}(\..*)?" if filtered else None
    return ListTransactionsRequest(states, [], -1, pattern)
