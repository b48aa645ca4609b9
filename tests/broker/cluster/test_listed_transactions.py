"""Transactions are listed as a whole, or it is said what is missing."""

from __future__ import annotations

import contextlib
import json

import pytest
from kafka import KafkaProducer

from barnabas.broker.cli import transaction_view
from tests.broker.cli.inline import Shell
from tests.broker.cluster.members import all_served, members
from tests.waiting import wait_until

STATE, PARTS = "__transaction_state", 4
STAYS = {"auto.leader.rebalance.enable": "false"}
IDS = [f"id-{number}" for number in range(8)]


@pytest.fixture
def cluster():
    """Two brokers, the one that is asked first in front; each coordinates some of the ids."""
    with members(2, **STAYS) as (store, brokers):
        servers = brokers[0].bootstrap_servers
        for key in IDS:
            settings = {"bootstrap_servers": servers, "transactional_id": key}
            with contextlib.closing(KafkaProducer(**settings)) as producer:
                producer.init_transactions()
        all_served(brokers, STATE, PARTS)
        assert all(coordinated_by(each) for each in brokers)
        yield store, sorted(brokers, key=lambda each: each.node_id)


@pytest.fixture
def shell(cluster, monkeypatch):
    return Shell(monkeypatch, cluster[1][0].bootstrap_servers)


def coordinated_by(broker):
    """Return the ids that a broker coordinates, with the number of their partition."""
    log, led = broker.server.transactions.log, broker.leads(STATE)
    parts = {key: broker.call(lambda key=key: log.partition_of(key)) for key in IDS}
    return {key: part for key, part in parts.items() if part in led}


def ids_in(text):
    return [each["transactional_id"] for each in json.loads(text)]


def test_what_changes_its_coordinator_while_it_is_listed_is_listed(cluster, shell, monkeypatch):
    store, (first, second) = cluster
    moved = next(iter(coordinated_by(second).values()))
    answered = []
    listed_by = transaction_view._list

    def moving(broker, filters):
        ids = listed_by(broker, filters)
        answered.append(ids)
        if len(answered) == 1:
            topic = first.server.catalogue.topic(STATE)
            store.index.want({topic.partitions[moved].partition_id: first.node_id})
            wait_until(lambda: moved in first.leads(STATE))
            all_served([first, second], STATE, PARTS)
        return ids

    monkeypatch.setattr(transaction_view, "_list", moving)
    ended = shell("transactions", "list", "--format", "json")
    assert ended.stderr == ""
    assert ids_in(ended.stdout) == IDS
    assert len(answered) >= 4, "both were asked again"


def test_the_others_are_listed_while_a_coordinator_is_away(cluster, shell):
    _, (first, second) = cluster
    reached, away = sorted(coordinated_by(first)), second.node_id
    second.crash()
    for options in (("--format", "json"), ()):
        ended = shell("transactions", "list", "--timeout", "3", *options)
        assert ended.exit_code == 1
        (line,) = ended.stderr.splitlines()
        assert line.startswith(f"barnabas: not all is listed: broker {away}: ")
        found = ids_in(ended.stdout) if options else [each.split()[0] for each in table(ended)]
        assert found == reached
    # Whoever asks for long enough is told of all.
    second.restart()
    all_served([first, second], STATE, PARTS)
    assert ids_in(shell("transactions", "list", "--format", "json").stdout) == IDS


def table(ended):
    return ended.stdout.splitlines()[1:]


def test_what_nobody_can_list_is_an_error_alone(cluster, shell):
    _, (first, second) = cluster
    second.crash()
    pattern = f"(?:{'|'.join(sorted(set(IDS) - set(coordinated_by(first))))})"
    ended = shell("transactions", "list", "--timeout", "3", "--pattern", pattern)
    assert (ended.exit_code, ended.stdout) == (1, "")
