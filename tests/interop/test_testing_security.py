"""Real clients connect with the settings of the embedded broker's ``client_config``, and no
more."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import aiokafka
import confluent_kafka
import pytest

from barnabas.testing import Broker, Security, allow
from tests.counterparts.kafka_tools import CONSOLE_CONSUMER, CONSOLE_PRODUCER, run_tool
from tests.interop.clients import kafka

# Client libraries leave sockets open.
pytestmark = pytest.mark.filterwarnings("ignore")
TIMEOUT_S = 60
TOPIC, GROUP = "orders", "readers"
RULES = [
    allow("alice", "READ", "WRITE", "DESCRIBE", topic=TOPIC),
    allow("alice", "READ", group=GROUP, prefixed=True),
]
BROKERS = {
    "certificates": Security(protocol="SSL", users=["alice"], acls=RULES),
    "SCRAM and a certificate": Security(
        users=["alice"], acls=RULES, client_certificates="required"
    ),
    "every mechanism": Security(
        users={"alice": "it's, a\\=secret", "bob": "other"},
        mechanisms=["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN", "OAUTHBEARER"],
        acls=RULES,
    ),
    "in the clear": Security(protocol="SASL_PLAINTEXT", users=["alice"], acls=RULES),
}
CASES = [
    *(("every mechanism", each) for each in BROKERS["every mechanism"].mechanisms),
    *((name, None) for name in BROKERS if name != "every mechanism"),
]


@pytest.fixture(scope="module")
def brokers() -> Iterator[dict[str, Broker]]:
    running = {name: Broker(security=security) for name, security in BROKERS.items()}
    for broker in running.values():
        broker.__enter__()
        broker.create_topic(TOPIC)
    yield running
    for broker in running.values():
        broker.__exit__(None, None, None)


def with_kafka_python(broker: Broker, mechanism: str | None, group: str, _: Path) -> bytes:
    config = broker.client_config("alice", "kafka-python", mechanism=mechanism)
    producer = kafka.KafkaProducer(**config)
    producer.send(TOPIC, group.encode()).get(TIMEOUT_S)
    producer.close()
    consumer = kafka.KafkaConsumer(TOPIC, group_id=group, auto_offset_reset="earliest", **config)
    try:
        return bytes(next(each.value for each in consumer if each.value == group.encode()))
    finally:
        consumer.close()


def with_confluent(broker: Broker, mechanism: str | None, group: str, _: Path) -> bytes:
    config = broker.client_config("alice", "confluent", mechanism=mechanism)
    producer = confluent_kafka.Producer(config)
    producer.produce(TOPIC, group.encode())
    assert producer.flush(TIMEOUT_S) == 0
    consumer = confluent_kafka.Consumer(
        config | {"group.id": group, "auto.offset.reset": "earliest"}
    )
    try:
        consumer.subscribe([TOPIC])
        while (message := consumer.poll(TIMEOUT_S)) is not None:
            assert message.error() is None
            if message.value() == group.encode():
                return bytes(message.value())
        raise AssertionError("nothing came")
    finally:
        consumer.close()


def with_aiokafka(broker: Broker, mechanism: str | None, group: str, _: Path) -> bytes:
    async def run() -> bytes:
        config = broker.client_config("alice", "aiokafka", mechanism=mechanism)
        async with aiokafka.AIOKafkaProducer(**config) as producer:
            await producer.send_and_wait(TOPIC, group.encode())
        consumer = aiokafka.AIOKafkaConsumer(
            TOPIC, group_id=group, auto_offset_reset="earliest", **config
        )
        async with consumer:
            async for message in consumer:
                if message.value == group.encode():
                    return bytes(message.value)
        raise AssertionError("nothing came")

    return asyncio.run(asyncio.wait_for(run(), TIMEOUT_S))


def with_java(broker: Broker, mechanism: str | None, group: str, directory: Path) -> bytes:
    file = directory / "client.properties"
    file.write_text(broker.client_properties("alice", mechanism=mechanism))
    common = ("--bootstrap-server", broker.bootstrap_servers, "--topic", TOPIC)
    common += ("--command-config", str(file))
    sent = run_tool(CONSOLE_PRODUCER, *common, stdin=f"{group}\n")
    assert sent.exit_code == 0, sent.output
    before = len(broker.records(TOPIC).result)
    received = run_tool(
        CONSOLE_CONSUMER,
        *common,
        *("--group", group, "--from-beginning", "--max-messages", str(before)),
    )
    assert group in received.output.split(), received.output
    return group.encode()


CLIENTS = {
    "kafka-python": with_kafka_python,
    "confluent": with_confluent,
    "aiokafka": with_aiokafka,
    "java": with_java,
}


@pytest.mark.parametrize(("name", "mechanism"), CASES)
@pytest.mark.parametrize("style", CLIENTS)
def test_a_user_writes_and_reads(brokers, style, name, mechanism, tmp_path):
    if (style, mechanism) == ("java", "OAUTHBEARER"):
        with pytest.raises(ValueError, match=r"Broker\.token"):
            brokers[name].client_config("alice", "java", mechanism=mechanism)
        return
    group = f"{GROUP}-{style}-{mechanism}"
    assert CLIENTS[style](brokers[name], mechanism, group, tmp_path) == group.encode()


def test_user_without_acl_gets_authorization_error(brokers):
    config = brokers["every mechanism"].client_config("bob", "confluent")
    metadata = confluent_kafka.Consumer(config | {"group.id": "g"}).list_topics(TOPIC, TIMEOUT_S)
    code = metadata.topics[TOPIC].error.code()
    assert code == confluent_kafka.KafkaError.TOPIC_AUTHORIZATION_FAILED
