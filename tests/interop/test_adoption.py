"""A data directory that a cleanly stopped Apache Kafka left opens in Barnabas, records and all."""

import hashlib
import json
import shutil

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from barnabas.protocol.messages.describe_configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from tests.counterparts.apache_kafka import ApacheKafka
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.broker_process import BrokerDied
from tests.counterparts.embedded_barnabas import EmbeddedBarnabas
from tests.counterparts.wire_client import WireClient
from tests.interop.recorded_kafka import Barnabas
from tests.products import for_the_night
from tests.requests import alter_configs, create_topic
from tests.waiting import wait_until

TOPICS = {"orders": 3, "one-two": 1}
RECORDS = 600
BRIEF_SESSION = {"broker_session_timeout_ms": "4000", "broker_heartbeat_interval_ms": "500"}
"""A killed Apache Kafka starts again when its session, 9 s by default, has expired."""

SETTINGS = {
    "orders": {"retention.ms": "-1", "segment.bytes": "2000000"},
    "one-two": {},
    "1": {"log.retention.ms": "777777777"},
}
"""Settings of each topic and of the broker, as `change_settings` leaves them."""

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
    with WireClient(broker) as client:
        for name, partitions in TOPICS.items():
            create_topic(client, name, partitions)


def change_settings(broker):
    """Change settings of a topic and of the broker."""
    with WireClient(broker) as client:
        orders = ("retention.ms", 0, "-1"), ("segment.bytes", 0, "2000000")
        alter_configs(client, TOPIC, "orders", *orders)
        alter_configs(client, BROKER, "1", ("log.retention.ms", 0, "777777777"))


def settings_of(broker):
    """Return the settings of each topic and of the broker that clients set."""
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


def sent(first, count):
    """Return the values that `produce` writes, as `consume` returns them."""
    found = {(topic, index): [] for topic in TOPICS for index in range(TOPICS[topic])}
    for number in range(first, first + count):
        for topic, partitions in TOPICS.items():
            found[topic, number % partitions].append(json.dumps([topic, number]).encode())
    return found


def leave_records(kafka):
    """Write records and settings; return the settings."""
    create_topics(kafka)
    produce(kafka, 0, RECORDS)
    assert consume(kafka) == sent(0, RECORDS)
    change_settings(kafka)
    # Its controller answers a change a moment before the broker knows of it.
    wait_until(lambda: settings_of(kafka) == SETTINGS, lambda: settings_of(kafka))
    return settings_of(kafka)


@pytest.mark.timeout(600)
def test_barnabas_opens_what_kafka_closed(kafka, tmp_path):
    stopped = kafka.stopped("closed", leave_records, tmp_path)
    assert stopped.observed == SETTINGS
    before = sent(0, RECORDS)
    with stopped.open(Barnabas(tmp_path, node_id="1")) as barnabas:
        assert consume(barnabas) == before
        assert settings_of(barnabas) == stopped.observed
        produce(barnabas, RECORDS, RECORDS)
        barnabas.kill()
        barnabas.restart()
        after = consume(barnabas)
    for place, values in before.items():
        assert after[place][: len(values)] == values
    assert sum(map(len, after.values())) == 2 * RECORDS * len(TOPICS)


def leave_some_records(kafka):
    create_topics(kafka)
    produce(kafka, 0, 6)


def die_with_some_records(kafka):
    leave_some_records(kafka)
    kafka.kill()


@pytest.mark.timeout(600)
def test_barnabas_refuses_what_kafka_did_not_close(kafka, tmp_path):
    # Its preallocated indexes are as long as this.
    kafka.stopped("killed", die_with_some_records, tmp_path, log_index_size_max_bytes="4096")
    refuse(tmp_path, "Apache Kafka has not stopped cleanly in this", node_id="1")


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


def refuse_two_take_overs(directory):
    """Assert that refused starts change nothing, by a reason in the first file or in the last."""
    segment = directory / "data" / "one-two-0" / f"{0:020}.log"
    aside(directory / "data", "orders-1", "stray")
    refuse(directory, "is of node 1, the configuration says node.id=0", node_id="0")
    last = segment.stat().st_size - 1
    flip(segment, last)
    refuse(directory, f"not taken over .* {segment} is corrupt", node_id="1")
    flip(segment, last)


def opened_beside_other_directories(directory, barnabas):
    """Return the numbers of a first start, although directories that are no partitions exist."""
    data = directory / "data"
    aside(data, "orders-2", "future")
    (data / "lost+found").mkdir()
    with barnabas:
        found = numbers(barnabas)
        produce(barnabas, 100, 5)
        assert barnabas.terminate() == 0
    (data / "lost+found").rmdir()
    shutil.rmtree(data / f"orders-2.{'0' * 32}-future")
    return found


@pytest.mark.timeout(600)
def test_refused_take_over_changes_nothing(kafka, tmp_path, caplog):
    stopped = kafka.stopped("some-records", leave_some_records, tmp_path)
    refuse_two_take_overs(tmp_path)
    barnabas = stopped.open(Barnabas(tmp_path, node_id="1"))
    found = opened_beside_other_directories(tmp_path, barnabas)
    assert found == {topic: [*range(6)] for topic in TOPICS}
    said = caplog.text if isinstance(barnabas, EmbeddedBarnabas) else barnabas.output()
    assert f"orders-1.{'0' * 32}-stray" in said


@for_the_night(beside="tests/interop/test_adoption.py::test_refused_take_over_changes_nothing")
@pytest.mark.timeout(600)
def test_kafka_and_barnabas_in_turn_lose_no_acknowledged_record(tmp_path):
    data = tmp_path / "data"
    with ApacheKafka(tmp_path, **BRIEF_SESSION) as kafka:
        leave_some_records(kafka)
        assert kafka.terminate() in {0, 143}
        refuse_two_take_overs(tmp_path)
        # So Kafka continues where it was.
        kafka.restart()
        produce(kafka, 6, 5)
        assert kafka.terminate() in {0, 143}
        barnabas = BarnabasProcess(tmp_path, node_id="1")
        found = opened_beside_other_directories(tmp_path, barnabas)
        assert found == {topic: [*range(11)] for topic in TOPICS}
        # A take-over that succeeded, and Kafka in the directory again.
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
        written = [*range(11), *range(16, 21), *range(100, 105)]
        assert numbers(barnabas) == dict.fromkeys(TOPICS, written)
