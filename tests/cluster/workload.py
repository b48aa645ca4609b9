"""Everything that clients do at a cluster while something happens to it; then what it has come to.

Judged are the history of all clients (``tests/history``) and what the brokers say in the end: no
transaction is open, and everything is stable up to its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from random import Random
from typing import Any, Self

from barnabas.protocol.messages.list_transactions import LIST_TRANSACTIONS, ListTransactionsRequest
from barnabas.storage.runtime.clock import counter_ns
from tests.cluster.clients import Client, Committer, Reader, Writer, committed_offset, end_of
from tests.cluster.routing import Led, Lost, Routing
from tests.cluster.transactors import Transactor, Transformer
from tests.history import checker
from tests.history.anomalies import Report
from tests.history.model import (
    COMMITTED,
    END,
    UNCOMMITTED,
    History,
    OffsetCommit,
    Operation,
    PartitionEnd,
)
from tests.waiting import wait_until

TOPICS = {"data": 2, "input": 1, "output": 2, "txn": 3}
PLACES = [Led(topic, index) for topic, count in TOPICS.items() for index in range(count)]
CLASSIC, IMPLICIT = 11, 12
"""Versions of Produce that decide of which generation transactions are."""
OPEN = ["Ongoing", "PrepareCommit", "PrepareAbort"]
ADDRESSES = Sequence[tuple[str, int]]


class Workload:
    """``with Workload(addresses, seed) as workload:`` all of the clients, at work."""

    def __init__(self, addresses: ADDRESSES, seed: int, rest_s: float = 0) -> None:
        """``rest_s``: the longest time from one operation of a client to its next."""
        self.addresses = addresses
        self.seed = seed
        source, outputs = Led("input", 0), [Led("output", index) for index in (0, 1)]
        txn = [Led("txn", index) for index in range(TOPICS["txn"])]
        at = addresses, seed
        self.clients: list[Client] = [
            Writer("writer-0", *at, Led("data", 0)),
            Writer("writer-1", *at, Led("data", 1)),
            Writer("source", *at, source),
            Committer("committer", *at, "data"),
            Transactor("classic", *at, CLASSIC, txn),
            Transactor("implicit", *at, IMPLICIT, txn),
            Transformer("classic-transformer", *at, CLASSIC, source, outputs[0]),
            Transformer("transformer", *at, IMPLICIT, source, outputs[1]),
            Reader("committed", *at, PLACES, COMMITTED),
            Reader("uncommitted", *at, PLACES, UNCOMMITTED),
        ]
        for client in self.clients:
            client.rest_s = rest_s

    def __enter__(self) -> Self:
        for client in self.clients:
            client.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        """Let nobody go on, whatever has happened."""
        for client in self.clients:
            client.is_over.set()

    def raise_errors(self) -> None:
        """Raise what a client says that nobody may ever hear."""
        for client in self.clients:
            if client.error is not None:
                raise AssertionError(f"{client.name}: {client.error!r}") from client.error

    def goes_on(self, times: int = 1) -> None:
        """Wait until every client has done its thing again."""
        before = [client.done for client in self.clients]

        def all_have() -> bool:
            self.raise_errors()
            pairs = zip(self.clients, before, strict=True)
            return all(client.done >= done + times for client, done in pairs)

        wait_until(all_have, lambda: {each.name: each.done for each in self.clients})

    def end(self) -> None:
        """Let everybody come to the end of what they are doing."""
        for client in self.clients:
            client.is_over.set()
        for client in self.clients:
            assert client.join(60), client.name
        self.raise_errors()

    def judge(self) -> History:
        """Read everything, and look for whatever is wrong; return the history."""
        wait_for_ends(self.addresses)
        history, report = judged(self.addresses, self.seed, self.clients, PLACES)
        assert not report.violations, "\n".join(checker.lines(report, history))
        return history


def wait_for_ends(addresses: ADDRESSES) -> None:
    """Wait until no transaction is open any more."""
    routing = Routing(addresses, Random(0), "judge")

    def none_is() -> bool:
        request = ListTransactionsRequest(OPEN)
        try:
            answers = [routing.ask_at(each, LIST_TRANSACTIONS, request, 0) for each in addresses]
        except Lost:
            return False
        found[:] = [each for answer in answers for each in answer.transaction_states]
        return not found and not any(answer.error_code for answer in answers)

    found: list[Any] = []
    wait_until(none_is, lambda: f"transactions stay open: {found}")
    routing.close()


def judged(
    addresses: ADDRESSES, seed: int, clients: Sequence[Client], places: Sequence[Led]
) -> tuple[History, Report]:
    """Read everything that clients have written, and return what is wrong with their history."""
    history = [each for client in clients for each in client.history]
    transformers = [each for each in clients if isinstance(each, Transformer)]
    history += _everything_read(addresses, seed, places, transformers)
    return history, checker.check(history)


def _everything_read(
    addresses: ADDRESSES, seed: int, places: Sequence[Led], transformers: Sequence[Transformer]
) -> Iterable[Operation]:
    """Read partitions from their beginning to their end, by both isolation levels."""
    committed, uncommitted = readers = [
        Reader(f"final-{isolation}", addresses, seed, places, isolation)
        for isolation in (COMMITTED, UNCOMMITTED)
    ]
    ends = []
    for place in places:
        stable, end = (end_of(reader, place, reader.isolation) for reader in readers)
        ends.append(PartitionEnd(*place, stable, end))
        committed.read_to(place, stable)
        uncommitted.read_to(place, end)
    offsets = {
        OffsetCommit(each.group, *each.source, committed_offset(committed, each.group, each.source))
        for each in transformers
    }
    for reader in readers:
        reader.routing.close()
        yield from reader.history
    now_ns = counter_ns()
    told = Operation(END, "final", invoked_ns=now_ns, completed_ns=now_ns, ends=tuple(ends))
    yield replace(told, commits=tuple(offsets), readers=tuple(each.name for each in readers))
