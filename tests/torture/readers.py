"""Readers of all partitions from their beginning, which never seek and are in no group."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from tests.counterparts.logins import (
    NOBODY,
    Login,
    kafka_python_settings,
    librdkafka_settings,
)
from tests.history.model import Partition, Read
from tests.torture.client import Client
from tests.torture.settings import LIBRDKAFKA, PLACES

POLL_S = 0.2
MOST_RECORDS = 500


def read(client: Client) -> None:
    """Read until told to stop."""
    client.journal.new_session()
    for reads in _KINDS[client.settings.library](client):
        client.journal.poll(reads, client.settings.isolation)
        if client.stopping:
            return


_BEGINNINGS = dict.fromkeys(PLACES, 0)


def consumer(
    servers: str,
    isolation: str,
    begins: Mapping[Partition, int] = _BEGINNINGS,
    login: Login = NOBODY,
) -> Consumer:
    """Return librdkafka's consumer of some partitions, by default from the beginning of all."""
    made = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "readers",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            # What was there cannot be gone: no other place will do.
            "auto.offset.reset": "error",
            "fetch.wait.max.ms": 100,
            "enable.partition.eof": True,
            **LIBRDKAFKA,
            **librdkafka_settings(login),
            "error_cb": lambda _error: None,
            "log_level": 0,
        }
    )
    made.assign([TopicPartition(*place, at) for place, at in begins.items()])
    return made


def taken(message: Any) -> Read | None:
    """Return a record; None for what only tells of the end, or that the broker is down."""
    error = message.error()
    if error is None:
        value = message.value().decode()
        return Read(message.topic(), message.partition(), message.offset(), value)
    if error.code() == KafkaError._AUTO_OFFSET_RESET:
        raise KafkaException(error)
    return None


def _read_with_confluent(client: Client) -> Iterator[list[Read]]:
    reader = consumer(
        client.settings.servers, client.settings.isolation, login=client.settings.login
    )
    while True:
        polled = map(taken, reader.consume(MOST_RECORDS, POLL_S))
        yield [each for each in polled if each is not None]


def _read_with_kafka_python(client: Client) -> Iterator[list[Read]]:
    # Only who needs it imports it.
    import kafka
    from kafka.errors import AuthorizationError, KafkaConnectionError, KafkaTimeoutError

    places = [kafka.TopicPartition(*place) for place in PLACES]
    reader = kafka.KafkaConsumer(
        bootstrap_servers=client.settings.servers,
        group_id=None,
        isolation_level=client.settings.isolation,
        auto_offset_reset="none",
        fetch_max_wait_ms=100,
        reconnect_backoff_ms=20,
        reconnect_backoff_max_ms=200,
        **kafka_python_settings(client.settings.login),
    )
    reader.assign(places)
    for place in places:
        reader.seek(place, 0)
    while True:
        try:
            polled = reader.poll(timeout_ms=int(POLL_S * 1000), max_records=MOST_RECORDS)
        except (AuthorizationError, KafkaConnectionError, KafkaTimeoutError):
            # While the broker is down, or this is denied, it says so: others return nothing.
            time.sleep(POLL_S)
            polled = {}
        records = (record for batch in polled.values() for record in batch)
        yield [Read(r.topic, r.partition, r.offset, r.value.decode()) for r in records]


_KINDS = {"confluent": _read_with_confluent, "kafka_python": _read_with_kafka_python}
