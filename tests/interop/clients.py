"""Four client libraries behind one small interface: produce records, assign and consume.

No consumer here joins a group: each is given its partition and its offset.
"""

import asyncio
import json
import logging
import time
import warnings
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

import aiokafka
import confluent_kafka

from tests.counterparts.kcat import run_kcat

with warnings.catch_warnings():
    # kafka-python reads its schemas in a way that the standard library has deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka

# Their log records hold on to connections, and pytest to the records: sockets that a library left
# open would be found at the end of the run, outside of any test, and fail it.
for library in ("kafka", "aiokafka"):
    logging.getLogger(library).setLevel(logging.CRITICAL)

Headers = tuple[tuple[str, bytes | None], ...]
TIMEOUT_S = 60
LARGE_BYTES = 8 << 20


class Sent(NamedTuple):
    """A record to produce."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp_ms: int | None = None


class Received(NamedTuple):
    """A record as consumed."""

    offset: int
    timestamp_ms: int
    timestamp_type: int
    """0 CreateTime, 1 LogAppendTime."""
    key: bytes | None
    value: bytes | None
    headers: Headers


class Client(Protocol):
    """The interface of a client library in these tests."""

    name: str

    def produce(
        self, servers: str, topic: str, records: Sequence[Sent], compression: str, partition: int
    ) -> None:
        """Produce in order, wait for all acknowledgements, raise when one fails."""

    def consume(self, servers: str, topic: str, partition: int, count: int) -> list[Received]:
        """Return the first `count` records of a partition; raise TimeoutError when fewer come."""

    def offset_for_time(self, servers: str, topic: str, partition: int, timestamp_ms: int) -> int:
        """Return the offset of the first record at or after a time, -1 when there is none."""


class KafkaPython:
    """kafka-python."""

    name = "kafka-python"

    def produce(
        self, servers: str, topic: str, records: Sequence[Sent], compression: str, partition: int
    ) -> None:
        producer = kafka.KafkaProducer(
            bootstrap_servers=servers,
            compression_type=None if compression == "none" else compression,
            max_request_size=LARGE_BYTES,
            linger_ms=20,
        )
        try:
            futures = [
                producer.send(
                    topic,
                    key=record.key,
                    value=record.value,
                    headers=list(record.headers),
                    partition=partition,
                    timestamp_ms=record.timestamp_ms,
                )
                for record in records
            ]
            producer.flush(timeout=TIMEOUT_S)
            for future in futures:
                future.get(timeout=TIMEOUT_S)
        finally:
            producer.close(timeout=TIMEOUT_S)

    def consume(self, servers: str, topic: str, partition: int, count: int) -> list[Received]:
        consumer = kafka.KafkaConsumer(
            bootstrap_servers=servers,
            group_id=None,
            consumer_timeout_ms=TIMEOUT_S * 1000,
            max_partition_fetch_bytes=LARGE_BYTES,
        )
        place = kafka.TopicPartition(topic, partition)
        consumer.assign([place])
        consumer.seek(place, 0)
        received = []
        try:
            for record in consumer:
                headers = tuple((name, value) for name, value in record.headers)
                received.append(
                    Received(
                        record.offset,
                        record.timestamp,
                        record.timestamp_type,
                        record.key,
                        record.value,
                        headers,
                    )
                )
                if len(received) == count:
                    return received
        finally:
            consumer.close()
        raise TimeoutError(f"kafka-python got {len(received)} of {count} records")

    def offset_for_time(self, servers: str, topic: str, partition: int, timestamp_ms: int) -> int:
        consumer = kafka.KafkaConsumer(bootstrap_servers=servers, group_id=None)
        place = kafka.TopicPartition(topic, partition)
        try:
            found = consumer.offsets_for_times({place: timestamp_ms})[place]
        finally:
            consumer.close()
        return -1 if found is None else found.offset


class Confluent:
    """confluent-kafka, which is librdkafka."""

    name = "confluent-kafka"

    def produce(
        self, servers: str, topic: str, records: Sequence[Sent], compression: str, partition: int
    ) -> None:
        settings = {
            "bootstrap.servers": servers,
            "compression.type": compression,
            "message.max.bytes": LARGE_BYTES,
            "linger.ms": 20,
        }
        producer = confluent_kafka.Producer(settings)
        errors: list[confluent_kafka.KafkaError] = []

        def delivered(error: confluent_kafka.KafkaError | None, _message: object) -> None:
            if error is not None:
                errors.append(error)

        for record in records:
            options = {} if record.timestamp_ms is None else {"timestamp": record.timestamp_ms}
            producer.produce(
                topic,
                key=record.key,
                value=record.value,
                headers=list(record.headers),
                partition=partition,
                on_delivery=delivered,
                **options,
            )
            producer.poll(0)
        if producer.flush(TIMEOUT_S):
            raise TimeoutError("confluent-kafka could not deliver everything")
        if errors:
            raise confluent_kafka.KafkaException(errors[0])

    def consume(self, servers: str, topic: str, partition: int, count: int) -> list[Received]:
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": "assigned-by-hand",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": 100,
            }
        )
        consumer.assign([confluent_kafka.TopicPartition(topic, partition, 0)])
        received: list[Received] = []
        deadline = time.monotonic() + TIMEOUT_S
        try:
            while len(received) < count:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"confluent-kafka got {len(received)} of {count} records")
                messages = consumer.consume(count - len(received), timeout=0.5)
                received.extend(map(self._received, messages))
        finally:
            consumer.close()
        return received

    def offset_for_time(self, servers: str, topic: str, partition: int, timestamp_ms: int) -> int:
        consumer = confluent_kafka.Consumer({"bootstrap.servers": servers, "group.id": "times"})
        asked = confluent_kafka.TopicPartition(topic, partition, timestamp_ms)
        try:
            offset: int = consumer.offsets_for_times([asked], timeout=TIMEOUT_S)[0].offset
        finally:
            consumer.close()
        return -1 if offset == confluent_kafka.OFFSET_END else offset

    @staticmethod
    def _received(message: confluent_kafka.Message) -> Received:
        if message.error() is not None:
            raise confluent_kafka.KafkaException(message.error())
        kind, timestamp = message.timestamp()
        return Received(
            message.offset(),
            timestamp,
            kind - confluent_kafka.TIMESTAMP_CREATE_TIME,
            message.key(),
            message.value(),
            tuple(message.headers() or ()),
        )


class Aiokafka:
    """aiokafka."""

    name = "aiokafka"

    def produce(
        self, servers: str, topic: str, records: Sequence[Sent], compression: str, partition: int
    ) -> None:
        asyncio.run(self._produce(servers, topic, records, compression, partition))

    async def _produce(
        self, servers: str, topic: str, records: Sequence[Sent], compression: str, partition: int
    ) -> None:
        async with aiokafka.AIOKafkaProducer(
            bootstrap_servers=servers,
            compression_type=None if compression == "none" else compression,
            max_request_size=LARGE_BYTES,
            linger_ms=20,
        ) as producer:
            futures = [
                await producer.send(
                    topic,
                    key=record.key,
                    value=record.value,
                    headers=list(record.headers),
                    partition=partition,
                    timestamp_ms=record.timestamp_ms,
                )
                for record in records
            ]
            await asyncio.wait_for(asyncio.gather(*futures), TIMEOUT_S)

    def consume(self, servers: str, topic: str, partition: int, count: int) -> list[Received]:
        return asyncio.run(
            asyncio.wait_for(self._consume(servers, topic, partition, count), TIMEOUT_S)
        )

    async def _consume(
        self, servers: str, topic: str, partition: int, count: int
    ) -> list[Received]:
        received: list[Received] = []
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=servers,
            group_id=None,
            auto_offset_reset="none",
            max_partition_fetch_bytes=LARGE_BYTES,
        )
        async with consumer:
            place = aiokafka.TopicPartition(topic, partition)
            consumer.assign([place])
            consumer.seek(place, 0)
            while len(received) < count:
                record = await consumer.getone()
                received.append(
                    Received(
                        record.offset,
                        record.timestamp,
                        record.timestamp_type,
                        record.key,
                        record.value,
                        tuple(record.headers),
                    )
                )
        return received

    def offset_for_time(self, servers: str, topic: str, partition: int, timestamp_ms: int) -> int:
        return asyncio.run(self._offset_for_time(servers, topic, partition, timestamp_ms))

    async def _offset_for_time(
        self, servers: str, topic: str, partition: int, timestamp_ms: int
    ) -> int:
        async with aiokafka.AIOKafkaConsumer(bootstrap_servers=servers, group_id=None) as consumer:
            place = aiokafka.TopicPartition(topic, partition)
            found = (await consumer.offsets_for_times({place: timestamp_ms}))[place]
            return -1 if found is None else found.offset


class Kcat:
    """kcat: no timestamps of its own on the way in, text keys and values here."""

    name = "kcat"

    def produce(
        self, servers: str, topic: str, records: Sequence[Sent], compression: str, partition: int
    ) -> None:
        # Headers are given once for all records of a run; -Z makes what is empty null.
        for headers, group in _runs_of_equal_headers(records):
            arguments = ["-P", "-b", servers, "-t", topic, "-p", str(partition)]
            arguments += ["-z", compression, "-K", "\t", "-Z", "-X", "linger.ms=20"]
            arguments += ["-X", f"message.max.bytes={LARGE_BYTES}"]
            for name, value in headers:
                arguments += ["-H", name if value is None else f"{name}={value.decode()}"]
            lines = [b"%s\t%s\n" % (record.key or b"", record.value or b"") for record in group]
            run_kcat(arguments, stdin=b"".join(lines), timeout_s=TIMEOUT_S)

    def consume(self, servers: str, topic: str, partition: int, count: int) -> list[Received]:
        arguments = ["-C", "-b", servers, "-t", topic, "-p", str(partition), "-o", "0", "-q"]
        output = run_kcat([*arguments, "-c", str(count), "-J", "-X", "fetch.wait.max.ms=100"])
        received = [self._received(line) for line in output.splitlines()]
        if len(received) != count:
            raise TimeoutError(f"kcat got {len(received)} of {count} records")
        return received

    def offset_for_time(self, servers: str, topic: str, partition: int, timestamp_ms: int) -> int:
        output = run_kcat(["-Q", "-b", servers, "-t", f"{topic}:{partition}:{timestamp_ms}"])
        return int(output.decode().rsplit(" ", 1)[1])

    @staticmethod
    def _received(line: bytes) -> Received:
        record = json.loads(line)
        names_and_values = record.get("headers", [])
        headers = zip(names_and_values[::2], names_and_values[1::2], strict=True)
        return Received(
            record["offset"],
            record["ts"],
            0 if record["tstype"] == "create" else 1,
            _encoded(record["key"]),
            _encoded(record["payload"]),
            tuple((name, _encoded(value)) for name, value in headers),
        )


CLIENTS: tuple[Client, ...] = (KafkaPython(), Confluent(), Aiokafka(), Kcat())


def _encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _runs_of_equal_headers(records: Iterable[Sent]) -> list[tuple[Headers, list[Sent]]]:
    runs: list[tuple[Headers, list[Sent]]] = []
    for record in records:
        if not runs or runs[-1][0] != record.headers:
            runs.append((record.headers, []))
        runs[-1][1].append(record)
    return runs
