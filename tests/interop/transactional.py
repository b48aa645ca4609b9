"""Transactional producers of three libraries behind one small interface, and readers to judge them.

A transaction here is values on partitions of one topic, and offsets of a group that is only named.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import aiokafka
import confluent_kafka
from aiokafka.errors import KafkaError as AiokafkaError
from kafka.errors import KafkaError as KafkaPythonError
from kafka.structs import OffsetAndMetadata

from tests.interop.clients import kafka

TIMEOUT_S = 60
COMMITTED, UNCOMMITTED = "read_committed", "read_uncommitted"
NOT_YET = {
    confluent_kafka.KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    confluent_kafka.KafkaError.COORDINATOR_NOT_AVAILABLE,
    confluent_kafka.KafkaError.NOT_COORDINATOR,
}
Offsets = Mapping[tuple[str, int], int]
"""Offsets by topic and partition."""
Values = dict[int, list[bytes]]
"""Values in the order of their offsets, by partition; partitions without any are left out."""
_SILENT = logging.getLogger("tests.interop.transactional")
_SILENT.setLevel(logging.CRITICAL + 1)


class Rejected(Exception):
    """A library's error, by the name that its users see."""


class Transactional(Protocol):
    """A producer with a transactional id, past its initTransactions."""

    name: str

    def __init__(
        self, servers: str, transactional_id: str, timeout_ms: int = 600_000, **login: Any
    ) -> None:
        """``login``: settings of the library's own."""

    def begin(self) -> None: ...

    def send(self, topic: str, partition: int, *values: bytes) -> None:
        """Send and wait for the acknowledgements."""

    def send_offsets(self, offsets: Offsets, group: str) -> None: ...

    def commit(self) -> None: ...

    def abort(self) -> None: ...

    def close(self) -> None: ...


class Confluent:
    """confluent-kafka, which is librdkafka."""

    name = "confluent-kafka"

    def __init__(
        self, servers: str, transactional_id: str, timeout_ms: int = 600_000, **login: Any
    ) -> None:
        self._reached = {"bootstrap.servers": servers, **login}
        self._producer = confluent_kafka.Producer(
            {
                **self._reached,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout_ms,
                # It may not be longer than the transaction's, nor is there a need.
                "message.timeout.ms": timeout_ms,
                "linger.ms": 0,
                # Fatal errors are raised where they matter; the library need not print them.
                "error_cb": lambda _error: None,
                "logger": _SILENT,
            }
        )
        self._errors: list[confluent_kafka.KafkaError] = []
        self._try(self._producer.init_transactions, TIMEOUT_S)

    def begin(self) -> None:
        self._try(self._producer.begin_transaction)

    def send(self, topic: str, partition: int, *values: bytes) -> None:
        for value in values:
            self._try(
                self._producer.produce,
                *(topic, value),
                partition=partition,
                on_delivery=self._delivered,
            )
        try:
            assert self._producer.flush(TIMEOUT_S) == 0
        except confluent_kafka.KafkaException as error:
            raise Rejected(error.args[0].name()) from error
        except SystemError as error:
            # A fatal error is raised by the flush; where the report of a delivery is called
            # behind it, Python wraps it, or finds it gone and knows only that there was one.
            if isinstance(error.__cause__, confluent_kafka.KafkaException):
                raise Rejected(error.__cause__.args[0].name()) from error
            if not self._errors:
                raise
        if self._errors:
            raise Rejected(self._errors.pop().name())

    def send_offsets(self, offsets: Offsets, group: str) -> None:
        places = [confluent_kafka.TopicPartition(*place, at) for place, at in offsets.items()]
        consumer = confluent_kafka.Consumer({**self._reached, "group.id": group, "log_level": 0})
        try:
            metadata = consumer.consumer_group_metadata()
            self._try(self._producer.send_offsets_to_transaction, places, metadata, TIMEOUT_S)
        finally:
            consumer.close()

    def commit(self) -> None:
        self._try(self._producer.commit_transaction, TIMEOUT_S)

    def abort(self) -> None:
        self._try(self._producer.abort_transaction, TIMEOUT_S)

    def close(self) -> None:
        """Nothing: it ends when it is forgotten."""

    def _delivered(self, error: confluent_kafka.KafkaError | None, _message: object) -> None:
        if error is not None:
            self._errors.append(error)

    @staticmethod
    def _try(operation: Any, *arguments: Any, **options: Any) -> None:
        try:
            operation(*arguments, **options)
        except confluent_kafka.KafkaException as error:
            raise Rejected(error.args[0].name()) from error


class KafkaPython:
    """kafka-python."""

    name = "kafka-python"

    def __init__(
        self, servers: str, transactional_id: str, timeout_ms: int = 600_000, **login: Any
    ) -> None:
        self._producer = kafka.KafkaProducer(
            **login,
            bootstrap_servers=servers,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            max_block_ms=TIMEOUT_S * 1000,
        )
        self._try(self._producer.init_transactions)

    def begin(self) -> None:
        self._try(self._producer.begin_transaction)

    def send(self, topic: str, partition: int, *values: bytes) -> None:
        def send_all() -> None:
            sent = [self._producer.send(topic, value, partition=partition) for value in values]
            for future in sent:
                future.get(timeout=TIMEOUT_S)

        self._try(send_all)

    def send_offsets(self, offsets: Offsets, group: str) -> None:
        places = {
            kafka.TopicPartition(*place): OffsetAndMetadata(at, "", -1)
            for place, at in offsets.items()
        }
        self._try(self._producer.send_offsets_to_transaction, places, group)

    def commit(self) -> None:
        self._try(self._producer.commit_transaction)

    def abort(self) -> None:
        self._try(self._producer.abort_transaction)

    def close(self) -> None:
        self._producer.close(timeout=0)

    @staticmethod
    def _try(operation: Any, *arguments: Any) -> None:
        try:
            operation(*arguments)
        except KafkaPythonError as error:
            raise Rejected(type(error).__name__) from error


class Aiokafka:
    """aiokafka, on an event loop that runs during each call."""

    name = "aiokafka"

    def __init__(
        self, servers: str, transactional_id: str, timeout_ms: int = 600_000, **login: Any
    ) -> None:
        self._runner = asyncio.Runner()

        async def start() -> aiokafka.AIOKafkaProducer:
            producer = aiokafka.AIOKafkaProducer(
                **login,
                bootstrap_servers=servers,
                transactional_id=transactional_id,
                transaction_timeout_ms=timeout_ms,
            )
            await producer.start()
            return producer

        self._producer = self._run(start())

    def begin(self) -> None:
        self._run(self._producer.begin_transaction())

    def send(self, topic: str, partition: int, *values: bytes) -> None:
        async def send_all() -> None:
            sent = [await self._producer.send(topic, v, partition=partition) for v in values]
            await asyncio.gather(*sent)

        self._run(send_all())

    def send_offsets(self, offsets: Offsets, group: str) -> None:
        places = {aiokafka.TopicPartition(*place): at for place, at in offsets.items()}
        self._run(self._producer.send_offsets_to_transaction(places, group))

    def commit(self) -> None:
        self._run(self._producer.commit_transaction())

    def abort(self) -> None:
        self._run(self._producer.abort_transaction())

    def close(self) -> None:
        async def stop() -> None:
            # Its sender has ended with the error that was raised before, and raises it again.
            await asyncio.gather(self._producer.stop(), return_exceptions=True)

        self._run(stop())
        self._runner.close()

    def _run(self, operation: Any) -> Any:
        try:
            return self._runner.run(asyncio.wait_for(operation, TIMEOUT_S))
        except AiokafkaError as error:
            raise Rejected(type(error).__name__) from error


PRODUCERS: dict[str, type[Transactional]] = {
    kind.name: kind for kind in (Confluent, KafkaPython, Aiokafka)
}


# ---------------------------------------------------------------------------------------- readers


def read_with_confluent(servers: str, topic: str, partitions: int, isolation: str) -> Values:
    """Read a topic from its start to what is its end for this isolation level."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation,
            "fetch.wait.max.ms": 20,
            "log_level": 0,
        }
    )
    places = [confluent_kafka.TopicPartition(topic, each, 0) for each in range(partitions)]
    consumer.assign(places)
    values: Values = defaultdict(list)
    unfinished = set(range(partitions))
    deadline = time.monotonic() + TIMEOUT_S
    try:
        while unfinished:
            assert time.monotonic() < deadline, (topic, unfinished)
            for message in consumer.consume(1000, 0.1):
                error = message.error()
                if error is None:
                    values[message.partition()].append(message.value())
                elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
                    unfinished.discard(message.partition())
                else:
                    raise confluent_kafka.KafkaException(error)
    finally:
        consumer.close()
    return dict(values)


def read_with_kafka_python(servers: str, topic: str, partitions: int, isolation: str) -> Values:
    """Read a topic from its start to what is its end for this isolation level."""
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=servers,
        group_id=None,
        isolation_level=isolation,
        fetch_max_wait_ms=20,
    )
    places = [kafka.TopicPartition(topic, each) for each in range(partitions)]
    values: Values = defaultdict(list)
    deadline = time.monotonic() + TIMEOUT_S
    try:
        consumer.assign(places)
        consumer.seek_to_beginning(*places)
        ends = consumer.end_offsets(places)
        while any(consumer.position(place) < end for place, end in ends.items()):
            assert time.monotonic() < deadline, (topic, ends)
            for place, records in consumer.poll(timeout_ms=100).items():
                values[place.partition].extend(record.value for record in records)
    finally:
        consumer.close()
    return dict(values)


def read_with_aiokafka(servers: str, topic: str, partitions: int, isolation: str) -> Values:
    """Read a topic from its start to what is its end for this isolation level."""

    async def read() -> Values:
        values: Values = defaultdict(list)
        async with aiokafka.AIOKafkaConsumer(
            bootstrap_servers=servers,
            group_id=None,
            isolation_level=isolation,
            fetch_max_wait_ms=20,
        ) as consumer:
            places = [aiokafka.TopicPartition(topic, each) for each in range(partitions)]
            consumer.assign(places)
            await consumer.seek_to_beginning(*places)
            ends = await consumer.end_offsets(places)
            while any([await consumer.position(place) < end for place, end in ends.items()]):
                for place, records in (await consumer.getmany(timeout_ms=100)).items():
                    values[place.partition].extend(record.value for record in records)
        return dict(values)

    return asyncio.run(asyncio.wait_for(read(), TIMEOUT_S))


READERS = {
    "confluent-kafka": read_with_confluent,
    "kafka-python": read_with_kafka_python,
    "aiokafka": read_with_aiokafka,
}


def committed(servers: str, topic: str, partitions: int, expected: Values) -> Values:
    """Read the committed records until they are as expected, or until the timeout.

    A commit is acknowledged when it is decided; its markers, which end the transaction, follow.
    """
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        values = read_with_confluent(servers, topic, partitions, COMMITTED)
        if values == expected or time.monotonic() > deadline:
            return values
        time.sleep(0.02)


def committed_offset(servers: str, group: str, topic: str, partition: int) -> int:
    """Return a group's stable offset of one partition."""
    (offset,) = committed_offsets(servers, group, topic, [partition])
    return offset


def committed_offsets(servers: str, group: str, topic: str, partitions: Iterable[int]) -> list[int]:
    """Return a group's stable offsets: the client waits while a transaction is pending."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "isolation.level": COMMITTED,
            "log_level": 0,
        }
    )
    places = [confluent_kafka.TopicPartition(topic, each) for each in partitions]
    deadline = time.monotonic() + TIMEOUT_S
    try:
        while True:
            try:
                found = consumer.committed(places, TIMEOUT_S)
            except confluent_kafka.KafkaException as error:
                # The library does not retry when a restarted broker loads its groups.
                if error.args[0].code() not in NOT_YET or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
            else:
                assert not any(each.error for each in found), found
                return [each.offset for each in found]
    finally:
        consumer.close()
