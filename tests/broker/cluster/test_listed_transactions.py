"""Transactions are listed as a whole, or it is said what is missing."""

from __future__ import annotations

import json

import pytest

from barnabas.broker.cli import transaction_view
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from tests.broker.cli.inline import Shell
from tests.broker.moves import STAYS
from tests.cluster.watched import WatchedCluster
from tests.seeds import SEED
from tests.workload.wire_transactions import IMPLICIT, Transactional

STATE = "__transaction_state"
IDS = [f"id-{number}" for number in range(8)]


@pytest.fixture
def cluster():
    """Two brokers, of which each coordinates some of the ids."""
    with WatchedCluster(2, config=STAYS) as running:
        addresses = [each.address for each in running.brokers]
        for key in IDS:
            client = Transactional(key, addresses, SEED, IMPLICIT)
            client._ask_coordinator(INIT_PRODUCER_ID, InitProducerIdRequest(key, 60_000), 4)
            client.routing.close()
        running.settle(STATE)
        assert all(coordinated_by(running, each) for each in running.running)
        yield running


@pytest.fixture
def shell(cluster, monkeypatch):
    return Shell(monkeypatch, cluster.brokers[0].bootstrap_servers)


def coordinated_by(cluster, number):
    """Return the ids that a broker coordinates, with the number of their partition."""
    led = cluster.leads(number, STATE)
    log = cluster.brokers[number].server.transactions.log
    parts = cluster.on(number, lambda _: {key: log.partition_of(key) for key in IDS})
    return {key: part for key, part in parts.items() if part in led}


def ids_in(text):
    return [each["transactional_id"] for each in json.loads(text)]


def test_transaction_that_changes_coordinator_is_listed(cluster, shell, monkeypatch):
    moved = next(iter(coordinated_by(cluster, 1).values()))
    answered = []
    listed_by = transaction_view._list

    def moving(broker, filters):
        ids = listed_by(broker, filters)
        answered.append(ids)
        if len(answered) == 1:
            cluster.move(STATE, moved, to=0)
            cluster.settle(STATE)
        return ids

    monkeypatch.setattr(transaction_view, "_list", moving)
    ended = shell("transactions", "list", "--format", "json")
    assert ended.stderr == ""
    assert ids_in(ended.stdout) == IDS
    assert len(answered) >= 4, "both were asked again"


def test_reachable_transactions_are_listed_without_one_coordinator(cluster, shell):
    reached = sorted(coordinated_by(cluster, 0))
    cluster.kill(1, expire=False)
    for options in (("--format", "json"), ()):
        ended = shell("transactions", "list", "--timeout", "3", *options)
        assert ended.exit_code == 1
        (line,) = ended.stderr.splitlines()
        assert line.startswith("barnabas: not all is listed: broker 1: ")
        found = ids_in(ended.stdout) if options else [each.split()[0] for each in table(ended)]
        assert found == reached
    # With enough time, all are listed.
    cluster.restart(1)
    cluster.settle(STATE)
    assert ids_in(shell("transactions", "list", "--format", "json").stdout) == IDS


def table(ended):
    return ended.stdout.splitlines()[1:]


def test_unreachable_transactions_alone_fail_listing(cluster, shell):
    cluster.kill(1, expire=False)
    pattern = f"(?:{'|'.join(sorted(set(IDS) - set(coordinated_by(cluster, 0))))})"
    ended = shell("transactions", "list", "--timeout", "3", "--pattern", pattern)
    assert (ended.exit_code, ended.stdout) == (1, "")
