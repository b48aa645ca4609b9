"""Apache Kafka's own command-line tools, by main class."""

import json
import re

import pytest

from tests.counterparts import kafka_tools
from tests.counterparts.kafka_tools import run_tool
from tests.interop.clients import KafkaPython, Sent

pytestmark = [pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore")]


def tool(broker, main_class, *arguments, stdin=""):
    """Run a tool against the broker; it has to succeed."""
    result = run_tool(
        main_class, "--bootstrap-server", broker.bootstrap_servers, *arguments, stdin=stdin
    )
    assert result.exit_code == 0, result.output
    return result.output


def test_topic_command_through_a_topics_life(broker, topic):
    created = tool(
        broker,
        kafka_tools.TOPICS,
        *("--create", "--topic", topic, "--partitions", "2", "--config", "retention.ms=60000"),
    )
    assert f"Created topic {topic}." in created
    assert topic in tool(broker, kafka_tools.TOPICS, "--list").splitlines()
    described = tool(broker, kafka_tools.TOPICS, "--describe", "--topic", topic)
    assert re.search(
        r"PartitionCount: 2\s+ReplicationFactor: 1\s+Configs: .*retention.ms=60000", described
    )
    assert (
        len(re.findall(r"Partition: \d+\s+Leader: \d+\s+Replicas: \d+\s+Isr: \d+", described)) == 2
    )
    tool(broker, kafka_tools.TOPICS, "--alter", "--topic", topic, "--partitions", "5")
    described = tool(broker, kafka_tools.TOPICS, "--describe", "--topic", topic)
    assert "PartitionCount: 5" in described
    tool(broker, kafka_tools.TOPICS, "--delete", "--topic", topic)
    assert topic not in tool(broker, kafka_tools.TOPICS, "--list").splitlines()


def test_console_producer_and_consumer(broker, create_topic):
    topic = create_topic()
    lines = [f"key-{i}:value {i}" for i in range(50)]
    tool(
        broker,
        kafka_tools.CONSOLE_PRODUCER,
        *("--topic", topic, "--property", "parse.key=true", "--property", "key.separator=:"),
        stdin="\n".join(lines) + "\n",
    )
    consumed = tool(
        broker,
        kafka_tools.CONSOLE_CONSUMER,
        *("--topic", topic, "--partition", "0", "--offset", "earliest"),
        *("--max-messages", "50", "--timeout-ms", "60000"),
        *("--property", "print.key=true", "--property", "key.separator=:"),
    )
    assert [line for line in consumed.splitlines() if line.startswith("key-")] == lines


def test_get_offset_shell(broker, create_topic):
    topic = create_topic(partitions=3, retention_ms="-1")  # For records of long ago.
    produce = KafkaPython().produce

    records = [Sent(None, b"x", (), 1_790_000_000_000 + i) for i in range(25)]
    produce(broker.bootstrap_servers, topic, records, "none", 1)
    latest = tool(broker, kafka_tools.GET_OFFSETS, "--topic", topic)
    assert latest.split() == [f"{topic}:0:0", f"{topic}:1:25", f"{topic}:2:0"]
    place = ("--topic-partitions", f"{topic}:1")
    earliest = tool(broker, kafka_tools.GET_OFFSETS, *place, "--time", "earliest")
    assert earliest.split() == [f"{topic}:1:0"]
    by_time = tool(broker, kafka_tools.GET_OFFSETS, *place, "--time", "1790000000007")
    assert by_time.split() == [f"{topic}:1:7"]
    largest = tool(broker, kafka_tools.GET_OFFSETS, *place, "--time", "max-timestamp")
    assert largest.split() == [f"{topic}:1:24"]


def test_delete_records(broker, create_topic, tmp_path):

    topic = create_topic()
    KafkaPython().produce(
        broker.bootstrap_servers, topic, [Sent(None, b"x") for _ in range(30)], "none", 0
    )
    request = tmp_path / "delete.json"
    place = {"topic": topic, "partition": 0, "offset": 12}
    request.write_text(json.dumps({"partitions": [place], "version": 1}))
    output = tool(broker, kafka_tools.DELETE_RECORDS, "--offset-json-file", str(request))
    assert "low_watermark: 12" in output
    earliest = tool(broker, kafka_tools.GET_OFFSETS, "--topic", topic, "--time", "earliest")
    assert earliest.split() == [f"{topic}:0:12"]


@pytest.mark.parametrize("compression", ["none", "lz4"])
def test_producer_performance(broker, create_topic, compression):
    topic = create_topic(partitions=3)
    result = run_tool(
        kafka_tools.PRODUCER_PERFORMANCE,
        *("--topic", topic, "--num-records", "30000", "--record-size", "100"),
        *("--throughput", "-1", "--producer-props", "acks=all"),
        *(f"bootstrap.servers={broker.bootstrap_servers}", f"compression.type={compression}"),
    )
    assert "30000 records sent" in result.output, result.output
    offsets = tool(broker, kafka_tools.GET_OFFSETS, "--topic", topic).split()
    assert sum(int(line.rsplit(":", 1)[1]) for line in offsets) == 30_000


def test_broker_api_versions(broker):
    output = tool(broker, kafka_tools.BROKER_API_VERSIONS)
    assert output.startswith(broker.bootstrap_servers)
    for key, name in ((0, "Produce"), (1, "Fetch"), (2, "ListOffsets"), (18, "ApiVersions")):
        assert re.search(rf"{name}\({key}\): \d+ to \d+ \[usable: \d+\]", output), name


def test_features(broker):
    """Clients take the protocol of KIP-890 where transaction.version is 2."""
    lines = tool(broker, kafka_tools.FEATURES, "describe").splitlines()
    found = {
        match[1]: match[2]
        for line in lines
        if (match := re.match(r"Feature: (\S+)\s.*FinalizedVersionLevel: (\S+)", line))
    }
    assert found["transaction.version"] == "2"
    assert found["group.version"] == "1"


def test_config_command_describes_and_alters_a_topic(broker, create_topic):
    topic = create_topic()
    entity = ("--entity-type", "topics", "--entity-name", topic)
    tool(broker, kafka_tools.CONFIGS, "--alter", *entity, "--add-config", "retention.ms=777000")
    described = tool(broker, kafka_tools.CONFIGS, "--describe", *entity)
    assert "retention.ms=777000" in described
