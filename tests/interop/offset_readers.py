"""Client libraries that read a group's committed offsets while its coordinator moves.

Each library has two programs. A member joins the group, calls `moves` before it requests the
committed offset, and returns the first record that it reads. A monitor requests the offset without
a membership, calls `moves`, requests it again on the same connections, and returns it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeAlias, TypeVar

import aiokafka
import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from kafka import ConsumerRebalanceListener, KafkaAdminClient, KafkaConsumer
from kafka import TopicPartition as PythonPartition
from kafka.errors import NotCoordinatorError
from py4j.java_gateway import CallbackServerParameters, JavaGateway

from tests.waiting import wait_until
from tests.workload.drivers.java import gateway

TOPIC = "orders"
LIMIT_S = 60
Moves: TypeAlias = Callable[[], None]
"""Moves the coordinator of the group at its first call."""
Client = TypeVar("Client")
STRINGS = "org.apache.kafka.common.serialization.StringDeserializer"


# ---------------------------------------------------------------------------------------- members


def confluent_member(servers: str, group: str, moves: Moves, **settings: str) -> str:
    """Read with confluent-kafka, which uses librdkafka."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **settings,
        }
    )
    consumer.subscribe([TOPIC], on_assign=lambda *_: moves())
    return _first_by_confluent(consumer)


def confluent_member_of_consumer_protocol(servers: str, group: str, moves: Moves) -> str:
    """Read with confluent-kafka and the consumer group protocol (KIP-848)."""
    return confluent_member(servers, group, moves, **{"group.protocol": "consumer"})


def confluent_assigned(servers: str, group: str, moves: Moves) -> str:
    """Read with a consumer of librdkafka that assigns its partition by itself."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.committed([TopicPartition(TOPIC, 0)], LIMIT_S)
    moves()
    consumer.assign([TopicPartition(TOPIC, 0)])
    return _first_by_confluent(consumer)


def _first_by_confluent(consumer: Consumer) -> str:
    found: list[bytes] = []

    def is_read() -> bool:
        message = consumer.poll(0.2)
        if message is not None and not message.error():
            found.append(message.value())
        return bool(found)

    try:
        wait_until(is_read, seconds=LIMIT_S)
    finally:
        consumer.close()
    return found[0].decode()


def kafka_python_member(servers: str, group: str, moves: Moves) -> str:
    """Read with kafka-python."""

    class Listener(ConsumerRebalanceListener):
        def on_partitions_assigned(self, assigned: object) -> None:
            moves()

        def on_partitions_revoked(self, revoked: object) -> None:
            """Keep them."""

    consumer = KafkaConsumer(
        bootstrap_servers=servers,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        consumer_timeout_ms=LIMIT_S * 1000,
    )
    consumer.subscribe([TOPIC], listener=Listener())
    try:
        return str(next(consumer).value.decode())
    finally:
        consumer.close()


def aiokafka_member(servers: str, group: str, moves: Moves) -> str:
    """Read with aiokafka, which does not wait for a listener before it requests the offsets."""

    async def read() -> str:
        consumer = aiokafka.AIOKafkaConsumer(
            TOPIC,
            bootstrap_servers=servers,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        async with asyncio.timeout(LIMIT_S), consumer:
            found = await consumer.getone()
            await asyncio.to_thread(moves)
            assert await consumer.committed(aiokafka.TopicPartition(TOPIC, 0)) == 1
            return str(found.value.decode())

    return asyncio.run(read())


def java_member(servers: str, group: str, moves: Moves, protocol: str = "classic") -> str:
    """Read with Kafka's own Java consumer."""
    java = _gateway_with_callbacks()
    consumer = java.jvm.org.apache.kafka.clients.consumer.KafkaConsumer(
        _java_settings(servers) | {"group.id": group, "group.protocol": protocol}
    )
    consumer.subscribe([TOPIC], _JavaListener(moves))
    found: list[str] = []

    def is_read() -> bool:
        records = consumer.poll(java.jvm.java.time.Duration.ofMillis(200)).iterator()
        while records.hasNext():
            found.append(str(records.next().value()))
        return bool(found)

    try:
        wait_until(is_read, seconds=LIMIT_S)
    finally:
        consumer.close()
    return found[0]


def java_member_of_consumer_protocol(servers: str, group: str, moves: Moves) -> str:
    """Read with Kafka's own Java consumer and the consumer group protocol (KIP-848)."""
    return java_member(servers, group, moves, "consumer")


# --------------------------------------------------------------------------------------- monitors


def confluent_monitor(servers: str, group: str, moves: Moves) -> int:
    """Read with librdkafka's admin client, which keeps the coordinator that it has found."""

    def committed(client: AdminClient) -> int:
        request = [ConsumerGroupTopicPartitions(group)]
        (answer,) = client.list_consumer_group_offsets(request).values()
        return int(answer.result(LIMIT_S).topic_partitions[0].offset)

    def new_client() -> AdminClient:
        return AdminClient({"bootstrap.servers": servers})

    return _by_a_new_client(new_client, committed, moves, KafkaException)


def confluent_consumer_monitor(servers: str, group: str, moves: Moves) -> int:
    """Read with a consumer of librdkafka that is no member."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group})

    def committed() -> int:
        (found,) = consumer.committed([TopicPartition(TOPIC, 0)], LIMIT_S)
        return int(found.offset)

    try:
        return _twice(committed, moves)
    finally:
        consumer.close()


def kafka_python_monitor(servers: str, group: str, moves: Moves) -> int:
    """Read with kafka-python's admin client, which keeps the coordinator that it has found."""

    def committed(client: KafkaAdminClient) -> int:
        found = client.list_group_offsets({group: None})
        return int(found[group][PythonPartition(TOPIC, 0)].offset)

    def new_client() -> KafkaAdminClient:
        return KafkaAdminClient(bootstrap_servers=servers)

    return _by_a_new_client(new_client, committed, moves, NotCoordinatorError)


def aiokafka_monitor(servers: str, group: str, moves: Moves) -> int:
    """Read with aiokafka's admin client, which looks for the coordinator at every call."""

    async def read() -> int:
        client = AIOKafkaAdminClient(bootstrap_servers=servers)
        async with asyncio.timeout(LIMIT_S):
            await client.start()
            try:
                coordinator = await client.find_coordinator(group)
                await asyncio.to_thread(moves)
                # As between its search and its request: the library has no other cache.
                try:
                    found = await client.list_consumer_group_offsets(group, coordinator)
                except KafkaError:
                    found = await client.list_consumer_group_offsets(group)
                return int(found[aiokafka.TopicPartition(TOPIC, 0)].offset)
            finally:
                await client.close()

    return asyncio.run(read())


def java_monitor(servers: str, group: str, moves: Moves) -> int:
    """Read with Kafka's own admin client."""
    jvm = gateway().jvm
    client = jvm.org.apache.kafka.clients.admin.Admin.create({"bootstrap.servers": servers})
    place = jvm.org.apache.kafka.common.TopicPartition(TOPIC, 0)

    def committed() -> int:
        answer = client.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata()
        return int(answer.get().get(place).offset())

    try:
        return _twice(committed, moves)
    finally:
        client.close()


def java_consumer_monitor(servers: str, group: str, moves: Moves) -> int:
    """Read with a Java consumer that is no member."""
    jvm = gateway().jvm
    consumer = jvm.org.apache.kafka.clients.consumer.KafkaConsumer(
        _java_settings(servers) | {"group.id": group}
    )
    place = jvm.org.apache.kafka.common.TopicPartition(TOPIC, 0)

    def committed() -> int:
        return int(consumer.committed(jvm.java.util.Set.of(place)).get(place).offset())

    try:
        return _twice(committed, moves)
    finally:
        consumer.close()


def _twice(committed: Callable[[], int], moves: Moves) -> int:
    """Request an offset before and after the move, on the same client."""
    first = committed()
    moves()
    assert committed() == first
    return first


def _by_a_new_client(
    new_client: Callable[[], Client],
    committed: Callable[[Client], int],
    moves: Moves,
    error: type[Exception],
) -> int:
    """Request an offset again with a new client after the library has reported an error."""
    client = new_client()
    committed(client)
    moves()
    for _ in range(2):
        with pytest.raises(error):
            committed(client)
    return committed(new_client())


# ------------------------------------------------------------------------------------------- Java


def _java_settings(servers: str) -> dict[str, str]:
    return {
        "bootstrap.servers": servers,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": "false",
        "key.deserializer": STRINGS,
        "value.deserializer": STRINGS,
    }


def _gateway_with_callbacks() -> JavaGateway:
    """Return the one JVM, which may call listeners that are written in Python."""
    java = gateway()
    parameters = CallbackServerParameters(port=0, daemonize=True, daemonize_connections=True)
    if java.start_callback_server(parameters):
        port = java.get_callback_server().get_listening_port()
        client = java.java_gateway_server
        client.resetCallbackClient(client.getCallbackClient().getAddress(), port)
    return java


class _JavaListener:
    """A ConsumerRebalanceListener in Python."""

    def __init__(self, moves: Moves) -> None:
        self._moves = moves

    def onPartitionsAssigned(self, _partitions: object) -> None:  # noqa: N802  Java's name
        self._moves()

    def onPartitionsRevoked(self, _partitions: object) -> None:  # noqa: N802  Java's name
        """Keep them."""

    def onPartitionsLost(self, _partitions: object) -> None:  # noqa: N802  Java's name
        """Keep them."""

    class Java:
        implements = ["org.apache.kafka.clients.consumer.ConsumerRebalanceListener"]  # noqa: RUF012
