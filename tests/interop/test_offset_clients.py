"""Consumers that assign themselves share one group's offsets in every library."""

from __future__ import annotations

import asyncio

from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioTopicPartition
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer
from kafka import TopicPartition as PythonTopicPartition
from kafka.structs import OffsetAndMetadata

from tests.counterparts.broker_process import BrokerProcess

TIMEOUT_SECONDS = 60
END_OF_TEXT = "\0"
"""The last character of a text: confluent-kafka commits the offset with its text, and reads up to
this one, from any library."""


class WithConfluent:
    """librdkafka."""

    def __init__(self, broker: BrokerProcess, group: str) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "group.id": group,
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            }
        )

    def commit(self, topic: str, offset: int, metadata: str) -> None:
        place = TopicPartition(topic, 0, offset, metadata)
        self._consumer.commit(offsets=[place], asynchronous=False)

    def committed(self, topic: str) -> tuple[int, str]:
        (found,) = self._consumer.committed([TopicPartition(topic, 0)], TIMEOUT_SECONDS)
        return found.offset, found.metadata or ""

    def close(self) -> None:
        self._consumer.close()


class WithKafkaPython:
    """kafka-python."""

    def __init__(self, broker: BrokerProcess, group: str) -> None:
        self._consumer = KafkaConsumer(
            bootstrap_servers=broker.bootstrap_servers, group_id=group, enable_auto_commit=False
        )

    def commit(self, topic: str, offset: int, metadata: str) -> None:
        place = PythonTopicPartition(topic, 0)
        self._consumer.assign([place])
        self._consumer.commit({place: OffsetAndMetadata(offset, metadata + END_OF_TEXT, -1)})

    def committed(self, topic: str) -> tuple[int, str]:
        found = self._consumer.committed(PythonTopicPartition(topic, 0), metadata=True)
        return found.offset, found.metadata.removesuffix(END_OF_TEXT)

    def close(self) -> None:
        self._consumer.close()


class WithAiokafka:
    """aiokafka, which knows the metadata only where it commits."""

    def __init__(self, broker: BrokerProcess, group: str) -> None:
        self._settings = {
            "bootstrap_servers": broker.bootstrap_servers,
            "group_id": group,
            "enable_auto_commit": False,
        }

    async def _commit(self, topic: str, offset: int, metadata: str) -> None:
        place = AioTopicPartition(topic, 0)
        async with AIOKafkaConsumer(**self._settings) as consumer:
            consumer.assign([place])
            await consumer.commit({place: (offset, metadata + END_OF_TEXT)})

    def commit(self, topic: str, offset: int, metadata: str) -> None:
        asyncio.run(self._commit(topic, offset, metadata))

    async def _committed(self, topic: str) -> int:
        place = AioTopicPartition(topic, 0)
        async with AIOKafkaConsumer(**self._settings) as consumer:
            consumer.assign([place])
            return await consumer.committed(place)

    def committed(self, topic: str) -> tuple[int, None]:
        return asyncio.run(self._committed(topic)), None

    def close(self) -> None:
        """Close the client, which keeps nothing open."""


def test_every_client_reads_what_the_others_committed(broker, create_topic):
    topic = create_topic()
    group = f"group-of-{topic}"
    clients = [kind(broker, group) for kind in (WithConfluent, WithKafkaPython, WithAiokafka)]
    offset = 0
    for writer in clients:
        for reader in clients:
            offset += 1
            metadata = f"written by {type(writer).__name__}"
            writer.commit(topic, offset, metadata)
            found = reader.committed(topic)
            assert found in ((offset, metadata), (offset, None)), (writer, reader, found)
    for client in clients:
        client.close()


def test_an_admin_client_reads_changes_and_deletes_a_groups_offsets(broker, create_topic):
    topic = create_topic()
    group = f"group-of-{topic}"
    writer = WithConfluent(broker, group)
    writer.commit(topic, 5, "before")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})

    def offsets() -> list[tuple[str, int, int]]:
        asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
        found = asked[group].result(TIMEOUT_SECONDS).topic_partitions
        return [(each.topic, each.partition, each.offset) for each in found]

    assert offsets() == [(topic, 0, 5)]
    changed = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 2)])
    admin.alter_consumer_group_offsets([changed])[group].result(TIMEOUT_SECONDS)
    assert offsets() == [(topic, 0, 2)]
    assert writer.committed(topic) == (2, "")
    writer.close()
    admin.delete_consumer_groups([group])[group].result(TIMEOUT_SECONDS)
    assert offsets() == []
    listed = admin.list_consumer_groups().result(TIMEOUT_SECONDS).valid
    assert group not in {each.group_id for each in listed}
