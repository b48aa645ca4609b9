"""Clients that write outside of transactions."""

from __future__ import annotations

import itertools
import os
import random
import time
from collections.abc import Sequence
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from tests.counterparts.logins import librdkafka_settings
from tests.history.model import NOT_KNOWN, OK, SEND, UNKNOWN, Write
from tests.torture.client import Client
from tests.torture.settings import LEFT, LIBRDKAFKA, PARTITIONS, RIGHT

REST_S = 0.16
FLUSH_S = 120
DEBUG = os.environ.get("TORTURE_DEBUG", "")
"""What librdkafka writes down of what it does, as "msg,topic,metadata,protocol"; into stderr."""


def send(client: Client) -> None:
    """Idempotent sends outside of transactions, several at a time, until told to stop."""
    chance = random.Random(client.settings.seed)
    numbers = itertools.count()
    producer = Producer(
        {
            "bootstrap.servers": client.settings.servers,
            "enable.idempotence": True,
            "message.timeout.ms": FLUSH_S * 1000,
            "linger.ms": 1,
            **LIBRDKAFKA,
            **librdkafka_settings(client.settings.login),
            "error_cb": lambda _error: None,
            **({"debug": DEBUG, "log_level": 7} if DEBUG else {"log_level": 0}),
        }
    )
    client.journal.new_session()
    while not client.stopping:
        writes = [
            Write(chance.choice((LEFT, RIGHT)), chance.randrange(PARTITIONS), value)
            for value in (f"{client.settings.name}.{next(numbers)}" for _ in range(3))
        ]
        _send_all(client, producer, writes)
        time.sleep(chance.uniform(0, REST_S))


def _send_all(client: Client, producer: Producer, writes: Sequence[Write]) -> None:
    number = client.journal.begin(SEND)
    client.journal.write(number, writes)
    acked: list[Write] = []
    errors: list[KafkaError] = []
    for each in writes:

        def delivered(error: KafkaError | None, message: Any, each: Write = each) -> None:
            if error is not None:
                errors.append(error)
            else:
                offset = message.offset()
                acked.append(each._replace(offset=NOT_KNOWN if offset is None else offset))

        producer.produce(each.topic, each.value, partition=each.partition, on_delivery=delivered)
    left = producer.flush(FLUSH_S)
    client.journal.acked(number, acked)
    client.journal.finish(number, UNKNOWN if left or errors else OK, str(errors[:1]))
    if errors:
        # An idempotent producer that lost a record does not go on.
        raise KafkaException(errors[0])
