"""Kafka's own tools have another broker lead partitions, and see that it does."""

from __future__ import annotations

import contextlib
import json

import pytest
from confluent_kafka import ElectionType, TopicPartition
from confluent_kafka.admin import AdminClient

from barnabas.protocol.messages.produce import PRODUCE
from tests.broker.data_plane import Named, Wire, batch, produce_request
from tests.broker.moves import STAYS, led_cluster, log_of
from tests.cluster.watched import WatchedCluster
from tests.counterparts import kafka_tools
from tests.counterparts.kafka_tools import run_tool
from tests.waiting import wait_until

pytestmark = [pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore")]

TOPIC = "t"
PARTITIONS = 6


@pytest.fixture
def cluster():
    """The first broker leads both partitions of a topic, and cannot give them away yet."""
    with led_cluster({TOPIC: [0, 0]}, brokers=2) as cluster, contextlib.ExitStack() as stack:
        cluster.hold_commits(0)
        for index in (0, 1):
            wire = stack.enter_context(Wire(cluster.brokers[0].address))
            wire.send(PRODUCE, produce_request(9, Named(TOPIC), (index, batch())), 9)
            log = log_of(cluster.brokers[0], TOPIC, index)
            wait_until(lambda log=log: log.next_offset > 0)
        yield cluster
        cluster.release_commits(0)


def servers(cluster) -> str:
    return ",".join(f"{host}:{port}" for host, port in (each.address for each in cluster.brokers))


def tool(cluster, main_class, *arguments):
    result = run_tool(main_class, "--bootstrap-server", servers(cluster), *arguments)
    assert result.exit_code == 0, result.output
    return result.output


def test_kafkas_tools_ask_for_moves_and_take_that_back(cluster, tmp_path):
    plan = tmp_path / "plan.json"
    partitions = [{"topic": TOPIC, "partition": each, "replicas": [1]} for each in (0, 1)]
    plan.write_text(json.dumps({"version": 1, "partitions": partitions}))
    file = ("--reassignment-json-file", str(plan))
    reassign = kafka_tools.REASSIGN_PARTITIONS

    executed = tool(cluster, reassign, *file, "--execute")
    assert "Successfully started partition reassignments for t-0,t-1" in executed
    listed = tool(cluster, reassign, "--list")
    assert "t-0: replicas: 1,0. adding: 1. removing: 0." in listed
    assert "Reassignment of partition t-1 is still in progress." in tool(
        cluster, reassign, *file, "--verify", "--preserve-throttles"
    )
    cancelled = tool(cluster, reassign, *file, "--cancel", "--preserve-throttles")
    assert "Successfully cancelled partition reassignments for: t-0,t-1" in cancelled
    assert "No partition reassignments found." in tool(cluster, reassign, "--list")


def moved_by_the_tool(cluster, to, indexes, tmp_path):
    """Request by the tool that broker `to` lead partitions; return the tool's arguments."""
    plan = [{"topic": TOPIC, "partition": i, "replicas": [to]} for i in indexes]
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"version": 1, "partitions": plan}))
    file = ("--reassignment-json-file", str(path))
    known = ("--bootstrap-server", cluster.bootstrap_servers)
    executed = run_tool(kafka_tools.REASSIGN_PARTITIONS, *known, *file, "--execute")
    assert "Successfully started partition reassignments" in executed.output, executed.output
    return known, file


@contextlib.contextmanager
def whole_cluster(brokers, **config):
    """Brokers that move partitions by themselves, over leases that outlast all pauses."""
    settings = {"barnabas.lease.ms": "60000", **config}
    with WatchedCluster(brokers, config=settings) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS)
        cluster.settle(TOPIC)
        cluster.send(TOPIC, range(60))
        yield cluster


def test_partitions_moved_by_kafkas_tool_stay_when_another_broker_joins(tmp_path):
    """The brokers level their load; what was moved counts, and rests."""
    with whole_cluster(2) as cluster:
        to, moved = 1, {0, 1, 2, 3}
        known, _ = moved_by_the_tool(cluster, to, sorted(moved), tmp_path)
        wait_until(lambda: cluster.leads(to, TOPIC) >= moved)
        third = cluster.add().result
        wait_until(lambda: cluster.leads(third, TOPIC), "it is given what the other may give")
        cluster.settle(TOPIC)
        assert cluster.leads(to, TOPIC) >= moved
        everything = ("--election-type", "preferred", "--all-topic-partitions")
        elected = run_tool(kafka_tools.LEADER_ELECTION, *known, *everything)
        assert elected.exit_code == 0, elected.output
        cluster.stop(to)
        cluster.settle(TOPIC)
        cluster.restart(to)
        wait_until(lambda: cluster.leads(to, TOPIC) >= moved)
        cluster.settle(TOPIC)
        assert sorted(cluster.values(TOPIC)) == list(range(60))


def test_kafkas_tool_moves_partitions_of_a_whole_cluster(tmp_path):
    """The brokers of a cluster take the partitions over by themselves; no balancing moves them."""
    with whole_cluster(3, **STAYS) as cluster:
        indexes = range(PARTITIONS)
        known, file = moved_by_the_tool(cluster, 2, indexes, tmp_path)
        wait_until(lambda: cluster.leads(2, TOPIC) == set(indexes))
        cluster.settle(TOPIC)
        verified = run_tool(kafka_tools.REASSIGN_PARTITIONS, *known, *file, "--verify")
        for each in indexes:
            done = f"Reassignment of partition {TOPIC}-{each} is completed."
            assert done in verified.output, verified.output
        assert sorted(cluster.values(TOPIC)) == list(range(60))


def test_kafkas_tool_elects_whom_there_is_no_need_to_elect(cluster):
    everything = ("--election-type", "preferred", "--all-topic-partitions")
    assert "rror" not in tool(cluster, kafka_tools.LEADER_ELECTION, *everything)
    some = ("--election-type", "preferred", "--topic", TOPIC, "--partition", "1")
    elected = tool(cluster, kafka_tools.LEADER_ELECTION, *some)
    assert "Valid replica already elected for partitions t-1" in elected


def test_librdkafka_elects_whom_there_is_no_need_to_elect(cluster):
    admin = AdminClient({"bootstrap.servers": servers(cluster)})
    asked = [TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 9)]
    found = admin.elect_leaders(ElectionType.PREFERRED, asked).result()
    codes = {each.partition: error and error.name() for each, error in found.items()}
    assert codes == {0: "ELECTION_NOT_NEEDED", 9: "UNKNOWN_TOPIC_OR_PART"}
