"""Operations on a running cluster: other leaders, and brokers that lead nothing."""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.elect_leaders import ELECT_LEADERS, ElectLeadersRequest
from tests.broker.cli.inline import Shell
from tests.broker.data_plane import Wire
from tests.broker.moves import STAYS
from tests.cluster.watched import WatchedCluster
from tests.waiting import wait_until

TOPIC = "orders"
PARTITIONS = 6


@pytest.fixture
def shell(monkeypatch):
    """Run a command at the broker with this number."""

    def run(cluster, number, *words):
        return Shell(monkeypatch, cluster.brokers[number].bootstrap_servers)("cluster", *words)

    return run


def cluster_of(count=3, **config):
    return WatchedCluster(count, config=config)


def create(cluster):
    cluster.create_topic(TOPIC, PARTITIONS)
    cluster.settle(TOPIC)


def elect(cluster, number):
    """Request the election of all partitions' preferred leaders; return the errors."""
    with Wire(cluster.brokers[number].address) as wire:
        answer = wire.ask(ELECT_LEADERS, ElectLeadersRequest(0, None, 60_000), 2)
    results = [each for topic in answer.replica_election_results for each in topic.partition_result]
    return {each.error_code for each in results} - {ErrorCode.ELECTION_NOT_NEEDED}


def test_partitions_are_moved_and_stay(shell):
    with cluster_of(**STAYS) as cluster:
        create(cluster)
        cluster.send(TOPIC, range(60))
        # The command can be sent to any broker: the store is the same for all.
        shell(cluster, 1, "move", TOPIC, "--to", 2)
        wait_until(lambda: cluster.leads(2, TOPIC) == set(range(PARTITIONS)))
        described = shell(cluster, 0, "describe", "--format", "json").json
        assert {each["coming"] for each in described["brokers"]} == {0}
        cluster.settle(TOPIC)
        assert sorted(cluster.values(TOPIC)) == list(range(60))


def test_a_broker_is_drained_until_that_is_undone(shell):
    with cluster_of() as cluster:
        create(cluster)
        assert cluster.leads(1, TOPIC)
        assert shell(cluster, 0, "drain", 1).lines
        cluster.settle(TOPIC, 0, 2)
        cluster.stop(2)  # Nothing comes back to the one that is drained.
        cluster.settle(TOPIC, 0)
        assert shell(cluster, 0, "drain", 1, "--undo").lines
        wait_until(lambda: cluster.leads(1, TOPIC), "the load is levelled")
        cluster.settle(TOPIC)


def test_drained_broker_leads_when_all_others_have_stopped(shell):
    with cluster_of(2) as cluster:
        create(cluster)
        shell(cluster, 0, "drain", 1)
        cluster.settle(TOPIC, 0)
        cluster.stop(0)
        cluster.settle(TOPIC, 1)


def test_pinned_partitions_stay_at_join_and_return_with_broker(shell):
    with cluster_of(2) as cluster:
        create(cluster)
        shell(cluster, 0, "move", f"{TOPIC}:0,1,2,3", "--to", 1)
        # The command waits until that is its leader, which may have to read them yet.
        wait_until(lambda: cluster.leads(1, TOPIC) >= {0, 1, 2, 3})
        third = cluster.add().result
        wait_until(lambda: cluster.leads(third, TOPIC), "it is given a share of the others")
        cluster.settle(TOPIC)
        assert cluster.leads(1, TOPIC) >= {0, 1, 2, 3}
        # A broker that stops comes back to what was moved to it.
        cluster.stop(1)
        cluster.settle(TOPIC)
        cluster.restart(1)
        wait_until(lambda: cluster.leads(1, TOPIC) == {0, 1, 2, 3})
        cluster.settle(TOPIC)
        assert shell(cluster, third, "release", TOPIC).exit_code == 0
        wait_until(lambda: cluster.leads(1, TOPIC) != {0, 1, 2, 3}, "the load is levelled")
        cluster.settle(TOPIC)


def led(cluster, field):
    """Return a field of each partition that has one, as the store has it."""
    found = {each.partition_id: getattr(each, field) for each in cluster.index.snapshot(0).led}
    return {key: value for key, value in found.items() if value is not None}


def test_pinned_partitions_return_after_drain_is_undone(shell):
    with cluster_of() as cluster:
        create(cluster)
        shell(cluster, 0, "move", f"{TOPIC}:0,1,2", "--to", 1)
        assert shell(cluster, 0, "drain", 1).exit_code == 0
        cluster.settle(TOPIC, 0, 2)
        wait_until(lambda: not led(cluster, "wanted_node"))
        epochs = led(cluster, "epoch")
        assert elect(cluster, 0) == {ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}
        assert not led(cluster, "wanted_node"), "a cordoned broker is not elected"
        assert led(cluster, "epoch") == epochs
        described = shell(cluster, 0, "describe", "--format", "json").json
        cordoned = {each["id"]: each["cordoned"] for each in described["brokers"]}
        assert cordoned == {0: False, 1: True, 2: False}
        assert [each["broker"] for each in described["pins"]] == [1] * 3
        shell(cluster, 0, "drain", 1, "--undo")
        wait_until(lambda: cluster.leads(1, TOPIC) >= {0, 1, 2})
        cluster.settle(TOPIC)


def test_an_election_returns_what_is_pinned_where_nothing_is_levelled(shell):
    with cluster_of(2, **STAYS) as cluster:
        create(cluster)
        shell(cluster, 1, "move", f"{TOPIC}:0,1", "--to", 0)
        cluster.stop(0)
        cluster.settle(TOPIC, 1)
        cluster.restart(0)
        wait_until(lambda: cluster.on(1, lambda server: len(server.view.nodes)) == 2)
        assert elect(cluster, 1) == {ErrorCode.NONE}
        wait_until(lambda: cluster.leads(0, TOPIC) == {0, 1})
        cluster.settle(TOPIC)
