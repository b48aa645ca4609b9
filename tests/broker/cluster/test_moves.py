"""What operators ask of a running cluster: other leaders, and brokers that lead nothing."""

from __future__ import annotations

import contextlib

import pytest
from kafka import KafkaAdminClient
from kafka.errors import PreferredLeaderNotAvailableError

from tests.broker.cli.inline import Shell
from tests.broker.cluster.members import MemberBroker, all_served, members, send, values_in
from tests.waiting import wait_until

TOPIC = "orders"
PARTITIONS = 6
STAYS = {"auto.leader.rebalance.enable": "false"}
PREFERRED = 0
"""The kind of election, in Kafka's numbers."""


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


def test_what_was_moved_stays_when_another_broker_joins_and_returns_with_its_own(shell_of):
    with members(2) as (store, brokers):
        brokers[0].create_topic(TOPIC, PARTITIONS)
        all_served(brokers, TOPIC, PARTITIONS)
        pinned = brokers[1]
        node_id = pinned.node_id
        shell_of(brokers[0])("cluster", "move", f"{TOPIC}:0,1,2,3", "--to", node_id)
        # The command waits until that is its leader, which may have to read them yet.
        wait_until(lambda: pinned.leads(TOPIC) >= {0, 1, 2, 3})
        with MemberBroker(store) as third:
            everybody = [*brokers, third]
            wait_until(lambda: third.leads(TOPIC), "it is given a share of the others")
            all_served(everybody, TOPIC, PARTITIONS)
            assert pinned.leads(TOPIC) >= {0, 1, 2, 3}
            # Whoever ends is followed, and comes back to what was moved to it.
            pinned.stop()
            others = [brokers[0], third]
            all_served(others, TOPIC, PARTITIONS)
            pinned.restart()
            assert pinned.node_id == node_id
            wait_until(lambda: pinned.leads(TOPIC) == {0, 1, 2, 3})
            all_served(everybody, TOPIC, PARTITIONS)
            assert shell_of(third)("cluster", "release", TOPIC).exit_code == 0
            wait_until(lambda: pinned.leads(TOPIC) != {0, 1, 2, 3}, "the load is levelled")
            all_served(everybody, TOPIC, PARTITIONS)


def wishes_of(store):
    return {
        each.partition_id: each.wanted_node
        for each in store.index.picture(0).led
        if each.wanted_node is not None
    }


def epochs_of(store):
    return {each.partition_id: each.epoch for each in store.index.picture(0).led}


def test_what_is_pinned_to_a_drained_broker_comes_back_when_that_is_undone(shell_of):
    with members() as (store, brokers):
        brokers[0].create_topic(TOPIC, PARTITIONS)
        all_served(brokers, TOPIC, PARTITIONS)
        drained = brokers[1]
        shell_of(brokers[0])("cluster", "move", f"{TOPIC}:0,1,2", "--to", drained.node_id)
        assert shell_of(brokers[0])("cluster", "drain", drained.node_id).exit_code == 0
        others = [brokers[0], brokers[2]]
        all_served(others, TOPIC, PARTITIONS)
        wait_until(lambda: not wishes_of(store))
        epochs = epochs_of(store)
        servers = brokers[0].bootstrap_servers
        with (
            contextlib.closing(KafkaAdminClient(bootstrap_servers=servers)) as admin,
            pytest.raises(PreferredLeaderNotAvailableError),
        ):
            admin.elect_leaders(PREFERRED)
        assert wishes_of(store) == {}, "who is cordoned is not elected"
        assert epochs_of(store) == epochs
        described = shell_of(brokers[0])("cluster", "describe", "--format", "json").json
        assert {each["id"]: each["cordoned"] for each in described["brokers"]} == {
            each.node_id: each is drained for each in brokers
        }
        assert [each["broker"] for each in described["pins"]] == [drained.node_id] * 3
        shell_of(brokers[0])("cluster", "drain", drained.node_id, "--undo")
        wait_until(lambda: drained.leads(TOPIC) >= {0, 1, 2})
        all_served(brokers, TOPIC, PARTITIONS)


def test_an_election_returns_what_is_pinned_where_nothing_is_levelled(shell_of):
    with members(2, **STAYS) as (_, brokers):
        brokers[0].create_topic(TOPIC, PARTITIONS)
        all_served(brokers, TOPIC, PARTITIONS)
        pinned, other = brokers
        shell_of(other)("cluster", "move", f"{TOPIC}:0,1", "--to", pinned.node_id)
        pinned.stop()
        all_served([other], TOPIC, PARTITIONS)
        pinned.restart()
        wait_until(lambda: len(other.call(lambda: other.server.view.nodes)) == len(brokers))
        servers = other.bootstrap_servers
        with contextlib.closing(KafkaAdminClient(bootstrap_servers=servers)) as admin:
            admin.elect_leaders(PREFERRED)
        wait_until(lambda: pinned.leads(TOPIC) == {0, 1})
        all_served(brokers, TOPIC, PARTITIONS)
