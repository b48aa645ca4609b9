"""Judgement of a run: everything is read once more, and the history of all clients is checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from barnabas.protocol.messages.list_transactions import LIST_TRANSACTIONS, ListTransactionsRequest
from barnabas.storage.runtime.clock import counter_ns
from tests.history.model import (
    COMMITTED,
    END,
    OK,
    POLL,
    UNCOMMITTED,
    History,
    Operation,
    Partition,
    PartitionEnd,
)
from tests.waiting import wait_until
from tests.workload.drivers import Look
from tests.workload.routing import Lost
from tests.workload.transactions import ON_PURPOSE
from tests.workload.wire_client import WireClient

OPEN = ["Ongoing", "PrepareCommit", "PrepareAbort"]
Groups = Mapping[str, Sequence[Partition]]
"""Partitions that each group reads."""


def read_at_the_end(
    look: Look,
    name: str,
    places: Sequence[Partition],
    groups: Groups,
    isolations: Sequence[str] = (COMMITTED, UNCOMMITTED),
) -> History:
    """Read partitions from their beginning to their end, by both isolation levels.

    ``isolations`` has to be (COMMITTED,) if a client sends a value of an aborted transaction again:
    the value then has two offsets.
    """
    ends = {each: look.ends(places, each) for each in (COMMITTED, UNCOMMITTED)}
    offsets = [each for group, read in groups.items() for each in look.committed(group, read)]
    history = []
    for isolation in isolations:
        process = f"{name}-{'committed' if isolation == COMMITTED else 'all'}"
        begun_ns = counter_ns()
        reads = tuple(look.read(dict.fromkeys(places, 0), ends[isolation], isolation))
        done_ns = counter_ns()
        history.append(
            Operation(
                POLL, process, OK, begun_ns, completed_ns=done_ns, isolation=isolation, reads=reads
            )
        )
    now_ns = counter_ns()
    return [
        *history,
        Operation(
            END,
            name,
            invoked_ns=now_ns,
            completed_ns=now_ns,
            commits=tuple(offsets),
            ends=tuple(
                PartitionEnd(*place, ends[COMMITTED][place], ends[UNCOMMITTED][place])
                for place in places
            ),
            readers=tuple(each.process for each in history),
        ),
    ]


def wait_for_ends(addresses: Sequence[tuple[str, int]]) -> None:
    """Wait until no coordinator has an open transaction."""
    client = WireClient("judge", addresses, 0)
    found: list[Any] = []

    def are_ended() -> bool:
        request = ListTransactionsRequest(OPEN)
        try:
            answers = [
                client.routing.ask_at(each, LIST_TRANSACTIONS, request, 0) for each in addresses
            ]
        except Lost:
            return False
        found[:] = [each for answer in answers for each in answer.transaction_states]
        return not found and not any(answer.error_code for answer in answers)

    wait_until(are_ended, lambda: f"transactions stay open: {found}")
    client.close()


def not_retried(history: History) -> Counter[str]:
    """Return the operations that failed although the plan did not abort them, by client."""
    return Counter(
        f"{each.process.partition('.')[0]} {each.kind} {each.outcome}: {each.reason}"
        for each in history
        if each.outcome != OK and each.reason != ON_PURPOSE
    )
