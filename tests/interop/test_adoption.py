"""A data directory that a cleanly stopped Apache Kafka left opens in Barnabas, records and all."""

import json

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

TOPIC, BROKER = 2, 4
TOPIC_SETTING, BROKER_SETTING = 1, 2
"""Kafka's numbers for kinds of resources and for where a setting comes from."""


def produce(broker, first, count):
    """Write numbered records to every topic, with an idempotent producer."""
    producer = KafkaProducer(
        bootstrap_servers=broker.bootstrap_servers, enable_idempotence=True, acks="all"
    )
    for number in range(first, first + count):
        for topic, partitions in TOPICS.items():
            value = json.dumps([topic, number]).encode()
            producer.send(topic, value, partition=number % partitions)
    producer.flush()
    producer.close()


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
        pytest.raises(BrokerDied, match="no topic owns it"),
        BarnabasProcess(tmp_path, node_id="1"),
    ):
        pass
