"""How long the oldest open transaction of a sink is open: what readers behind it wait for."""

from __future__ import annotations

import time
from typing import Final

from barnabas.broker.client.connection import Connection
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.describe_transactions import (
    DESCRIBE_TRANSACTIONS,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from barnabas.protocol.messages.list_transactions import LIST_TRANSACTIONS
from barnabas.spark_connector.cluster import Cluster
from barnabas.spark_connector.sweep import listing

_OPEN: Final = ("Ongoing", "PrepareCommit", "PrepareAbort")
_LOOKED_AT_MAX: Final = 100


def oldest_transaction_ms(cluster: Cluster, sink_id: str) -> int | None:
    """Return the age of the oldest one in milliseconds; None where there is none."""
    cluster.refresh([], cluster.deadline())
    ids = sorted(
        each for node_id in cluster.node_ids for each in _open_ids(cluster.node(node_id), sink_id)
    )
    requests = {each: DescribeTransactionsRequest([each]) for each in ids[:_LOOKED_AT_MAX]}
    answers = cluster.ask_coordinators(
        "Asking for open transactions", DESCRIBE_TRANSACTIONS, requests, error_of=_first_error
    )
    starts = [
        state.transaction_start_time_ms
        for answer in answers.values()
        for state in answer.transaction_states
        if not state.error_code and state.transaction_start_time_ms > 0
    ]
    return max(0, int(time.time() * 1000) - min(starts)) if starts else None


def _first_error(response: DescribeTransactionsResponse) -> int:
    return response.transaction_states[0].error_code if response.transaction_states else 0


def _open_ids(connection: Connection, sink_id: str) -> list[str]:
    """Return the open transactional ids of a sink: its driver's, and those of its tasks."""
    if not connection.speaks(LIST_TRANSACTIONS, 0):
        return []
    own = f"spark.{sink_id}"
    answer = connection.ask(LIST_TRANSACTIONS, listing(connection, sink_id, list(_OPEN)))
    if answer.error_code:
        raise KafkaError(ErrorCode(answer.error_code))
    return [
        each.transactional_id
        for each in answer.transaction_states
        if each.transactional_id == own or each.transactional_id.startswith(f"{own}.")
    ]
