"""Leftovers: open transactions of tasks that no ledger entry lists, found and aborted.

They block `read_committed` consumers. No driver can commit these:

1. Transactions of this query's decided batches that the ledger does not list: a driver that runs
   such a batch again finds it decided.
2. All other transactions that were open before this driver last proved its ownership, since all
   previous drivers are fenced. A later driver may pin and decide one before it is aborted here.
   Then its epoch is later, and the broker rejects the abort. So this needs a broker that pins
   (KIP-939). On other brokers the transactions end by their timeout.
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
    """Facts about the query that sweeps."""

    query_id: str
    batch_id: int
    listed: frozenset[str]
    """Transactional IDs of decided batches, which are never aborted."""


def sweep(cluster: Cluster, sink_id: str, decided: Decided, owns: Callable[[], bool] | None) -> int:
    """Abort the leftovers of a sink's tasks and return the number of transactions.

    ``owns`` checks with the broker that this driver still owns the sink. If it is `None`, only
    leftovers of decided batches are aborted.
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
    """Abort transactions whose identity is unchanged; others have ended or have a later epoch."""
    if transactions:
        end_all(cluster, transactions, commit=False)


def can_list(cluster: Cluster) -> bool:
    """Return whether the brokers list their transactions (Apache Kafka since 3.0)."""
    connection = cluster.until("Connecting", cluster.deadline(), cluster.any_node)
    return connection.speaks(LIST_TRANSACTIONS, 0) and connection.speaks(DESCRIBE_TRANSACTIONS, 0)


class Described(NamedTuple):
    """State of a transactional ID on its coordinator."""

    state: str
    identity: Identity
    """Current producer."""

    @property
    def is_open(self) -> bool:
        """Whether its transaction is ongoing."""
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
    """Return the current producer of each ID that has an open transaction."""
    found = describe_all(cluster, transactional_ids)
    return {key: each.identity for key, each in found.items() if each.is_open}


def describe_all(cluster: Cluster, transactional_ids: Iterable[str]) -> dict[str, Described]:
    """Return the state of each ID; omit those that no coordinator knows."""
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
    """Return the IDs of this sink's tasks with an open transaction that no entry lists."""
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
    """Return a request for a sink's transactions; before version 2 it returns others, too."""
    filtered = connection.speaks(LIST_TRANSACTIONS, _PATTERN_SINCE)
    # A sink id is letters, digits, '_' and '-': nothing that a pattern would read otherwise.
    pattern = rf"^spark\.{sink_id}(\..*)?" if filtered else None
    return ListTransactionsRequest(states, [], -1, pattern)
