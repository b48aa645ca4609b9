"""Brokers of a cluster over PostgreSQL and an object store, and what clients write and read."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic

from tests.counterparts.s3 import REGION
from tests.postgresql.brokers import Member

BUCKET = "bucket"
OBJECT_BYTES_MIN = 1024
RECORD_BYTES = 2048
"""Each record is sent alone, and large enough to be an object."""


def settings_of(server) -> dict[str, str]:
    """Return the settings of a broker whose large flushes go to an S3 server."""
    return {
        "barnabas.storage": f"s3://{BUCKET}/prefix",
        "barnabas.storage.endpoint": server.url,
        "barnabas.storage.region": REGION,
        "barnabas.storage.access.key": server.access_key,
        "barnabas.storage.secret.key": server.secret_key,
        "barnabas.storage.allow.http": "true",
        "barnabas.flush.object.min.bytes": str(OBJECT_BYTES_MIN),
        "barnabas.flush.ms": "0",
    }


def value_of(topic: str, number: int) -> bytes:
    """Return the value of a record, which names it."""
    return f"{topic}-{number} ".encode().ljust(RECORD_BYTES, b"x")


def create_topics(member: Member, *topics: str) -> None:
    """Create topics of one partition."""
    with contextlib.closing(KafkaAdminClient(bootstrap_servers=member.bootstrap_servers)) as admin:
        admin.create_topics([NewTopic(each, 1, 1) for each in topics])


def producer_of(member: Member) -> KafkaProducer:
    """Return an idempotent producer that repeats its requests."""
    return KafkaProducer(
        bootstrap_servers=member.bootstrap_servers,
        enable_idempotence=True,
        request_timeout_ms=15_000,
        delivery_timeout_ms=120_000,
        linger_ms=0,
    )


def write(member: Member, topic: str, count: int) -> list[bytes]:
    """Write records one after the other; return their values, all acknowledged."""
    values = [value_of(topic, number) for number in range(count)]
    with contextlib.closing(producer_of(member)) as producer:
        for each in values:
            producer.send(topic, each).get(120)
    return values


def read(member: Member, topic: str, *, timeout_ms: int = 60_000) -> list[bytes]:
    """Return all values of a topic, or those before the first one that does not come."""
    place = TopicPartition(topic, 0)
    with contextlib.closing(
        KafkaConsumer(
            bootstrap_servers=member.bootstrap_servers,
            auto_offset_reset="earliest",
            consumer_timeout_ms=timeout_ms,
        )
    ) as consumer:
        consumer.assign([place])
        end = consumer.end_offsets([place])[place]
        found: list[bytes] = []
        while consumer.position(place) < end:
            try:
                found.append(next(consumer).value)
            except StopIteration:
                break
        return found


def succeed(member: Member) -> None:
    """Replace a broker by one that has none of its files."""
    member.kill()
    directory: Path = member.data_directory
    shutil.rmtree(directory)
    member.start()
