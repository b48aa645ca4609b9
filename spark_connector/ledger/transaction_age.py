"""Age of the oldest open transaction of a sink, for which `read_committed` consumers wait."""

from __future__ import annotations

from typing import Final

from barnabas.broker.client.connection import Connection
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.describe_transactions import (
    DESCRIBE_TRANSACTIONS,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from barnabas.protocol.messages.list_transactions import LIST_TRANSACTIONS
from barnabas.spark_connector.cluster.cluster import Cluster
from barnabas.spark_connector.ledger.sweep import listing
from barnabas.storage.runtime.clock import now_ns

_OPEN: Final = ("Ongoing", "PrepareCommit", "PrepareAbort")
_LOOKED_AT_MAX: Final = 100


def oldest_transaction_ms(cluster: Cluster, sink_id: str) -> int | None:
    """Return its age in milliseconds, 0 if no transaction is open, or None if that is not known.

    It is not known from brokers without ListTransactions, nor when a coordinator reports an error.
    """
    cluster.refresh([], cluster.deadline())
    nodes = [cluster.node(node_id) for node_id in cluster.node_ids]
    if not nodes or not all(each.speaks(LIST_TRANSACTIONS, 0) for each in nodes):
        return None
    ids = sorted(each for node in nodes for each in _open_ids(node, sink_id))
    requests = {each: DescribeTransactionsRequest([each]) for each in ids[:_LOOKED_AT_MAX]}
    answers = cluster.ask_coordinators(
        "Asking for open transactions", DESCRIBE_TRANSACTIONS, requests, error_of=_first_error
    )
    states = [state for answer in answers.values() for state in answer.transaction_states]
    starts = [
        state.transaction_start_time_ms
        for state in states
        if not state.error_code and state.transaction_start_time_ms > 0
    ]
    if starts:
        return max(1, now_ns() // 1_000_000 - min(starts))
    return None if any(state.error_code for state in states) else 0


def _first_error(response: DescribeTransactionsResponse) -> int:
    return response.transaction_states[0].error_code if response.transaction_states else 0


def _open_ids(connection: Connection, sink_id: str) -> list[str]:
    """Return the open transactional ids of a sink: its driver's, and those of its tasks."""
    own = f"spark.{sink_id}"
    answer = connection.ask(LIST_TRANSACTIONS, listing(connection, sink_id, list(_OPEN)))
    if answer.error_code:
        raise KafkaError(ErrorCode(answer.error_code))
    return [
        each.transactional_id
        for each in answer.transaction_states
        if each.transactional_id == own or each.transactional_id.startswith(f"{own}.")
    ]
