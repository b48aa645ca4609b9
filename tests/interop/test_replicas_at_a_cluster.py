"""Apache Kafka's tools at a cluster: each broker that is shown among the replicas acts as one."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from kafka import KafkaAdminClient

from barnabas.testing import Cluster
from tests.broker.data_plane import batch
from tests.counterparts import kafka_tools
from tests.counterparts.kafka_tools import run_tool
from tests.interop.administration import admin
from tests.seeds import SEED
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300), pytest.mark.filterwarnings("ignore")]

BROKERS = 3
TOPIC = "t"
PRODUCER_ID, EPOCH = 4711, 3
SETTINGS = {"default.replication.factor": "3"}
READ_S = 60


@pytest.fixture(scope="module")
def cluster():
    with Cluster(BROKERS, config=SETTINGS, seed=SEED) as found:
        found.create_topic(TOPIC, partitions=BROKERS)
        yield found


def run(cluster, tool, *arguments):
    """Run a tool at the brokers that are running; return what it printed."""
    servers = ",".join(cluster.brokers[each].bootstrap_servers for each in cluster.running)
    result = run_tool(tool, "--bootstrap-server", servers, *arguments)
    assert result.exit_code == 0, result.output
    return result.output


def rows(output):
    """The lines of a table, each by the names of its columns."""
    head, *lines = [
        [cell.strip() for cell in line.split("\t")] for line in output.splitlines() if "\t" in line
    ]
    return [dict(zip(head, line, strict=True)) for line in lines]


def leave_hanging(cluster, index):
    """Write an open transaction that no coordinator knows."""
    broker = cluster.brokers[cluster.leader(TOPIC, index)]
    log = broker.call(lambda: broker.server.catalogue.partition(TOPIC, index).log)
    settings = {"producer_id": PRODUCER_ID, "producer_epoch": EPOCH, "base_sequence": 0}
    broker.call(lambda: log.append(batch(b"hangs", transactional=True, **settings)))
    wait_until(lambda: broker.call(lambda: log.high_watermark == log.next_offset))


def test_find_hanging_at_each_replica(cluster):
    """Two of the three brokers lead other partitions, and one of them none that hangs."""
    leave_hanging(cluster, 0)
    finding = [("find-hanging", "--broker-id", str(node_id)) for node_id in range(BROKERS)]
    follower = str((cluster.leader(TOPIC, 0) + 1) % BROKERS)
    describing = ("describe-producers", "--broker-id", follower)
    commands = [*finding, (*describing, "--topic", TOPIC, "--partition", "0")]
    with ThreadPoolExecutor(2) as tools:
        *hangs, producers = tools.map(
            lambda each: rows(run(cluster, kafka_tools.TRANSACTIONS, *each)), commands
        )
    for found in hangs:
        (hanging,) = found
        place = hanging["Topic"], hanging["Partition"], hanging["StartOffset"]
        assert (*place, hanging["ProducerId"]) == (TOPIC, "0", "0", str(PRODUCER_ID))
    (producer,) = producers
    assert producer["ProducerId"] == str(PRODUCER_ID)
    assert producer["CurrentTransactionStartOffset"] == "0"


def described(cluster):
    """Replication factor, and replicas and in-sync replicas of each partition."""
    output = run(cluster, kafka_tools.TOPICS, "--describe", "--topic", TOPIC)
    (factor,) = re.findall(r"ReplicationFactor: (\d+)", output)
    lists = re.findall(r"Leader: (\S+)\s+Replicas: (\S+)\s+Isr: (\S*)", output)
    assert len(lists) == BROKERS, output
    return int(factor), [
        (int(leader), set(replicas.split(",")), set(isr.split(",")))
        for leader, replicas, isr in lists
    ]


def test_replication_factor_stays_while_a_broker_is_stopped(cluster):
    everything, rest = {"0", "1", "2"}, {"0", "1"}
    factor, partitions = described(cluster)
    assert factor == BROKERS
    assert all(each[1:] == (everything, everything) for each in partitions)
    cluster.stop(2)
    cluster.wait_until_served()
    factor, partitions = described(cluster)
    assert factor == BROKERS
    assert all(each[1:] == (everything, rest) and each[0] in {0, 1} for each in partitions)
    under = run(cluster, kafka_tools.TOPICS, "--describe", "--under-replicated-partitions")
    assert under.count(f"Topic: {TOPIC}\t") == BROKERS
    assert not run(cluster, kafka_tools.TOPICS, "--describe", "--unavailable-partitions").strip()
    servers = cluster.brokers[0].bootstrap_servers
    found = admin(servers).list_topics(TOPIC, timeout=READ_S).topics[TOPIC].partitions
    assert {(*sorted(each.replicas), *sorted(each.isrs)) for each in found.values()} == {
        (0, 1, 2, 0, 1)
    }
    client = KafkaAdminClient(bootstrap_servers=servers)
    try:
        (topic,) = client.describe_topics([TOPIC])
    finally:
        client.close()
    offline = [each["offline_replicas"] for each in topic["partitions"]]
    assert offline == [[2]] * BROKERS
    # A stopped broker can be the preferred leader, as at Apache Kafka.
    placed = ("--create", "--topic", "placed", "--replica-assignment", "2:0:1")
    run(cluster, kafka_tools.TOPICS, *placed)
    wait_until(lambda: cluster.leader("placed") in {0, 1})
    cluster.restart(2)
    wait_until(lambda: all(each[2] == everything for each in described(cluster)[1]))
    wait_until(lambda: cluster.leader("placed") == 2)
