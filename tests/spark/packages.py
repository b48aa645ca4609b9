"""Packages that Spark fetches, and values in Avro."""

from __future__ import annotations

from kafka import KafkaConsumer, TopicPartition

from tests.counterparts.jars import spark_jars

PATIENCE_S = 300


def package(name: str) -> str:
    """Return the coordinates of a package of Spark that fits the Spark of the tests."""
    (core,) = spark_jars().glob("spark-core_*.jar")
    # As in spark-core_2.13-4.2.0.jar.
    scala, _, version = core.stem.removeprefix("spark-core_").partition("-")
    return f"org.apache.spark:{name}_{scala}:{version}"


def avro_numbers(servers: str, topic: str, partitions: int, count: int) -> list[int]:
    """Return the first ``count`` committed values of a topic, which are ints in Avro, in order."""
    consumer = KafkaConsumer(bootstrap_servers=servers, isolation_level="read_committed")
    consumer.assign([TopicPartition(topic, partition) for partition in range(partitions)])
    consumer.seek_to_beginning()
    found: list[int] = []
    while len(found) < count:
        records = consumer.poll(timeout_ms=1000 * PATIENCE_S, max_records=count)
        assert records, found
        found += [_zigzag(each.value) for batch in records.values() for each in batch]
    consumer.close()
    return sorted(found)


def _zigzag(data: bytes) -> int:
    """Return an int as Avro writes it."""
    value = sum((byte & 0x7F) << 7 * place for place, byte in enumerate(data))
    return value >> 1 ^ -(value & 1)
