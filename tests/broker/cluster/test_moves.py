"""What operators ask of a running cluster: other leaders, and brokers that lead nothing."""

from __future__ import annotations

import pytest

from tests.broker.cli.inline import Shell
from tests.broker.cluster.members import all_served, members, send, values_in
from tests.waiting import wait_until

TOPIC = "orders"
PARTITIONS = 6
STAYS = {"auto.leader.rebalance.enable": "false"}


@pytest.fixture
def shell_of(monkeypatch):
    return lambda broker: Shell(monkeypatch, broker.bootstrap_servers)


def test_partitions_are_moved_and_stay(shell_of):
    with members(**STAYS) as (_, brokers):
        brokers[0].create_topic(TOPIC, PARTITIONS)
        all_served(brokers, TOPIC, PARTITIONS)
        send(brokers[0], TOPIC, range(60), PARTITIONS)
        to = brokers[2].node_id
        # Whoever is asked: the store is the same for all.
        shell_of(brokers[1])("cluster", "move", TOPIC, "--to", to)
        wait_until(lambda: brokers[2].leads(TOPIC) == set(range(PARTITIONS)))
        described = shell_of(brokers[0])("cluster", "describe", "--format", "json").json
        assert {each["coming"] for each in described["brokers"]} == {0}
        all_served(brokers, TOPIC, PARTITIONS)
        assert sorted(values_in(brokers[0], TOPIC, PARTITIONS)) == list(range(60))


def test_a_broker_is_drained_until_that_is_undone(shell_of):
    with members() as (_, brokers):
        brokers[0].create_topic(TOPIC, PARTITIONS)
        all_served(brokers, TOPIC, PARTITIONS)
        drained = brokers[1]
        node_id = drained.node_id
        assert drained.leads(TOPIC)
        assert shell_of(brokers[0])("cluster", "drain", node_id).lines
        all_served([brokers[0], brokers[2]], TOPIC, PARTITIONS)
        brokers[2].stop()  # Nothing comes back to the one that is drained.
        all_served([brokers[0]], TOPIC, PARTITIONS)
        assert shell_of(brokers[0])("cluster", "drain", node_id, "--undo").lines
        wait_until(lambda: drained.leads(TOPIC), "the load is levelled")
        all_served(brokers[:2], TOPIC, PARTITIONS)


def test_where_all_others_have_gone_a_drained_broker_leads_after_all(shell_of):
    with members(2) as (_, brokers):
        brokers[0].create_topic(TOPIC, PARTITIONS)
        all_served(brokers, TOPIC, PARTITIONS)
        shell_of(brokers[0])("cluster", "drain", brokers[1].node_id)
        all_served([brokers[0]], TOPIC, PARTITIONS)
        brokers[0].stop()
        all_served([brokers[1]], TOPIC, PARTITIONS)
