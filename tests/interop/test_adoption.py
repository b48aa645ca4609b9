"""A data directory that a cleanly stopped Apache Kafka left opens in Barnabas, records and all."""

import hashlib
import json
import shutil

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from barnabas.protocol.messages.create_topics import (
    CREATE_TOPICS,
    CreatableTopic,
    CreateTopicsRequest,
)
from barnabas.protocol.messages.describe_configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas.protocol.messages.incremental_alter_configs import (
    INCREMENTAL_ALTER_CONFIGS,
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.counterparts.apache_kafka import ApacheKafka
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.broker_process import BrokerDied
from tests.counterparts.wire_client import WireClient

TOPICS = {"orders": 3, "one-two": 1}
RECORDS = 600
BRIEF_SESSION = {"broker_session_timeout_ms": "4000", "broker_heartbeat_interval_ms": "500"}
"""A killed Apache Kafka starts again when its session, 9 s by default, has expired."""

TOPIC, BROKER = 2, 4
TOPIC_SETTING, BROKER_SETTING = 1, 2
"""Kafka's numbers for kinds of resources and for where a setting comes from."""


def produce(broker, first, count):
    """Write numbered records to every topic, with an idempotent producer; each is acknowledged."""
    producer = KafkaProducer(
        bootstrap_servers=broker.bootstrap_servers, enable_idempotence=True, acks="all"
    )
    sent = []
    for number in range(first, first + count):
        for topic, partitions in TOPICS.items():
            value = json.dumps([topic, number]).encode()
            sent.append(producer.send(topic, value, partition=number % partitions))
    producer.flush()
    producer.close()
    for each in sent:
        assert each.succeeded(), each.exception


def consume(broker):
    """Return every value by (topic, partition), in order of their offsets."""
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap_servers)
    found = {}
    for topic, partitions in TOPICS.items():
        for index in range(partitions):
            place = TopicPartition(topic, index)
            consumer.assign([place])
            consumer.seek_to_beginning(place)
            end = consumer.end_offsets([place])[place]
            values = []
            while len(values) < end:
                for records in consumer.poll(timeout_ms=1000).values():
                    assert [r.offset for r in records] == list(
                        range(len(values), len(values) + len(records))
                    )
                    values += [record.value for record in records]
            found[topic, index] = values
    consumer.close()
    return found


def create_topics(broker):
    topics = [CreatableTopic(name, partitions, 1) for name, partitions in TOPICS.items()]
    with WireClient(broker) as client:
        response = client.ask(CREATE_TOPICS, CreateTopicsRequest(topics, 30_000), 5)
    assert {topic.error_code for topic in response.topics} == {0}


def change_settings(broker):
    """Change settings of a topic and of the broker."""
    resources = [
        AlterConfigsResource(
            TOPIC,
            "orders",
            [
                AlterableConfig("retention.ms", 0, "-1"),
                AlterableConfig("segment.bytes", 0, "2000000"),
            ],
        ),
        AlterConfigsResource(BROKER, "1", [AlterableConfig("log.retention.ms", 0, "777777777")]),
    ]
    with WireClient(broker) as client:
        request = IncrementalAlterConfigsRequest(resources)
        response = client.ask(INCREMENTAL_ALTER_CONFIGS, request, 1)
    assert {each.error_code for each in response.responses} == {0}


def settings_of(broker):
    """Return what clients set for each topic and for the broker."""
    resources = [
        *(DescribeConfigsResource(TOPIC, name, None) for name in TOPICS),
        DescribeConfigsResource(BROKER, "1", None),
    ]
    with WireClient(broker) as client:
        results = client.ask(DESCRIBE_CONFIGS, DescribeConfigsRequest(resources), 4).results
    return {
        result.resource_name: {
            config.name: config.value
            for config in result.configs
            if (result.resource_type, config.config_source)
            in {(TOPIC, TOPIC_SETTING), (BROKER, BROKER_SETTING)}
        }
        for result in results
    }


@pytest.mark.timeout(600)
def test_barnabas_opens_what_kafka_closed(tmp_path):
    with ApacheKafka(tmp_path) as kafka:
        create_topics(kafka)
        produce(kafka, 0, RECORDS)
        before = consume(kafka)
        change_settings(kafka)
        assert kafka.terminate() in {0, 143}
    assert sum(map(len, before.values())) == RECORDS * len(TOPICS)
    with BarnabasProcess(tmp_path, node_id="1") as barnabas:
        assert consume(barnabas) == before
        assert settings_of(barnabas) == {
            "orders": {"retention.ms": "-1", "segment.bytes": "2000000"},
            "one-two": {},
            "1": {"log.retention.ms": "777777777"},
        }
        produce(barnabas, RECORDS, RECORDS)
        barnabas.kill()
        barnabas.restart()
        after = consume(barnabas)
    for place, values in before.items():
        assert after[place][: len(values)] == values
    assert sum(map(len, after.values())) == 2 * RECORDS * len(TOPICS)


@pytest.mark.timeout(600)
def test_barnabas_refuses_what_kafka_did_not_close(tmp_path):
    with ApacheKafka(tmp_path) as kafka:
        create_topics(kafka)
        produce(kafka, 0, 3)
        kafka.kill()
    with (
        pytest.raises(BrokerDied, match="Apache Kafka has not stopped cleanly in this"),
        BarnabasProcess(tmp_path, node_id="1"),
    ):
        pass


def numbers(broker):
    """Return the numbers that each topic has, in order."""
    found = {}
    for (topic, _), values in consume(broker).items():
        found.setdefault(topic, []).extend(json.loads(value)[1] for value in values)
    return {topic: sorted(each) for topic, each in found.items()}


def tree(directory):
    """Return the digest of each file and the name of each directory."""
    return {
        str(path.relative_to(directory)): path.is_file()
        and hashlib.sha256(path.read_bytes()).hexdigest()
        for path in directory.rglob("*")
    }


def flip(path, position):
    """Damage a byte of a file, or mend it again."""
    data = bytearray(path.read_bytes())
    data[position] ^= 0x55
    path.write_bytes(data)


def refuse(directory, match, **overrides):
    """Assert that a start refuses a directory for one reason and leaves every byte of it."""
    before = tree(directory / "data")
    with pytest.raises(BrokerDied, match=match), BarnabasProcess(directory, **overrides):
        pass
    assert tree(directory / "data") == before


def aside(directory, name, suffix):
    """Put a copy of a partition's directory aside, as Kafka does."""
    shutil.copytree(directory / name, directory / f"{name}.{'0' * 32}-{suffix}")


@pytest.mark.timeout(600)
def test_kafka_and_barnabas_in_turn_lose_no_acknowledged_record(tmp_path):
    data = tmp_path / "data"
    with ApacheKafka(tmp_path, **BRIEF_SESSION) as kafka:
        create_topics(kafka)
        produce(kafka, 0, 6)
        assert kafka.terminate() in {0, 143}
        segment = data / "one-two-0" / f"{0:020}.log"
        aside(data, "orders-1", "stray")
        # Refused take-overs change nothing, whether the first file shows the reason or the last.
        refuse(tmp_path, "is of node 1, the configuration says node.id=0", node_id="0")
        size_bytes = segment.stat().st_size
        flip(segment, size_bytes - 1)
        refuse(tmp_path, f"not taken over .* {segment} is corrupt", node_id="1")
        # So Kafka continues where it was.
        kafka.restart()
        produce(kafka, 6, 5)
        assert kafka.terminate() in {0, 143}
        flip(segment, size_bytes - 1)
        aside(data, "orders-2", "future")
        (data / "lost+found").mkdir()
        with BarnabasProcess(tmp_path, node_id="1") as barnabas:
            assert numbers(barnabas) == {topic: [*range(11)] for topic in TOPICS}
            assert "orders-1.00000000000000000000000000000000-stray" in barnabas.output()
            produce(barnabas, 11, 5)
            barnabas.terminate()
        (data / "lost+found").rmdir()
        # A take-over that succeeded, and Kafka in the directory again.
        shutil.rmtree(data / f"orders-2.{'0' * 32}-future")
        kafka.restart()
        produce(kafka, 16, 2)
        kafka.kill()
        refuse(tmp_path, "__cluster_metadata-0 is not as it was taken over", node_id="1")
        kafka.restart()
        produce(kafka, 18, 3)
        assert kafka.terminate() in {0, 143}
    refuse(tmp_path, "Apache Kafka has run in this data directory after", node_id="1")
    (tmp_path / "removed").mkdir()
    for path in data.glob("barnabas-*"):
        path.rename(tmp_path / "removed" / path.name)
    with BarnabasProcess(tmp_path, node_id="1") as barnabas:
        assert numbers(barnabas) == {topic: [*range(21)] for topic in TOPICS}
