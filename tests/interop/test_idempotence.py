"""Idempotent producers through kill -9 of the broker: no loss, no duplicate, order kept."""

import asyncio
import operator
import os
import threading
import time
from collections.abc import Callable

import aiokafka
import confluent_kafka
import pytest

from tests.interop.administration import create
from tests.interop.clients import Confluent, kafka
from tests.products import case
from tests.waiting import wait_until

pytestmark = [pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore")]
PARTITIONS = 3
# Apache Kafka comes back after twelve seconds only, its old registration has to expire first.
KILLS = (1,) if os.environ.get("INTEROP_BROKER") == "kafka" else (2, 4)
"""In `make test`, and at night."""
BETWEEN_KILLS_S = 0.7
RECORDS_BETWEEN_KILLS = 40
"""Per partition, at least."""
PAUSE_S = 0.004
"""The time between two records of a partition: more records would only show the same."""
FLUSH_S = 120
Counts = list[int]


def produce_with_confluent(servers: str, topic: str, stop: threading.Event, counts: Counts) -> None:
    errors = []
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": servers,
            "enable.idempotence": True,
            "linger.ms": 2,
            "reconnect.backoff.max.ms": 200,
            "message.timeout.ms": FLUSH_S * 1000,
            "log_level": 0,
        }
    )

    def delivered(error, _message):
        if error is not None:
            errors.append(error)

    while not stop.is_set():
        for partition in range(PARTITIONS):
            value = b"%d" % counts[partition]
            producer.produce(topic, value, partition=partition, on_delivery=delivered)
            counts[partition] += 1
        producer.poll(0)
        time.sleep(PAUSE_S)
    assert producer.flush(FLUSH_S) == 0
    assert errors == []


def produce_with_kafka_python(
    servers: str, topic: str, stop: threading.Event, counts: Counts
) -> None:
    producer = kafka.KafkaProducer(
        bootstrap_servers=servers,
        enable_idempotence=True,
        linger_ms=2,
        reconnect_backoff_max_ms=200,
        delivery_timeout_ms=FLUSH_S * 1000,
        request_timeout_ms=30_000,
    )
    futures = []
    try:
        while not stop.is_set():
            for partition in range(PARTITIONS):
                value = b"%d" % counts[partition]
                futures.append(producer.send(topic, value, partition=partition))
                counts[partition] += 1
            time.sleep(PAUSE_S)
        producer.flush(timeout=FLUSH_S)
        for future in futures:
            future.get(timeout=FLUSH_S)
    finally:
        producer.close(timeout=5)


def produce_with_aiokafka(servers: str, topic: str, stop: threading.Event, counts: Counts) -> None:
    async def produce() -> None:
        futures = []
        async with aiokafka.AIOKafkaProducer(
            bootstrap_servers=servers,
            enable_idempotence=True,
            linger_ms=2,
            request_timeout_ms=FLUSH_S * 1000,
        ) as producer:
            while not stop.is_set():
                for partition in range(PARTITIONS):
                    value = b"%d" % counts[partition]
                    futures.append(await producer.send(topic, value, partition=partition))
                    counts[partition] += 1
                await asyncio.sleep(PAUSE_S)
            await asyncio.wait_for(asyncio.gather(*futures), FLUSH_S)

    asyncio.run(produce())


PRODUCERS = {
    "confluent-kafka": produce_with_confluent,
    "kafka-python": produce_with_kafka_python,
    "aiokafka": produce_with_aiokafka,
}


class InBackground(threading.Thread):
    """Runs a producer until told to stop; its exception is handed on.

    ``counts`` says how many records it has handed to its client for each partition.
    """

    def __init__(self, produce: Callable[..., None], servers: str, topic: str) -> None:
        super().__init__(daemon=True)
        self.stop = threading.Event()
        self.counts: Counts = [0] * PARTITIONS
        self._arguments = (servers, topic, self.stop, self.counts)
        self._produce = produce
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            self._produce(*self._arguments)
        except BaseException as error:  # noqa: BLE001 - raised again by `finish`
            self._error = error

    def work(self) -> None:
        """Wait a while, and longer on a busy machine, until the producer has sent records."""
        wanted = [count + RECORDS_BETWEEN_KILLS for count in self.counts]
        time.sleep(BETWEEN_KILLS_S)
        wait_until(
            lambda: not self.is_alive() or all(map(operator.ge, self.counts, wanted)),
            "the producer works",
        )

    def finish(self) -> Counts:
        self.stop.set()
        self.join(FLUSH_S + 10)
        assert not self.is_alive(), "the producer hangs"
        if self._error is not None:
            raise self._error
        return self.counts


@pytest.mark.parametrize(
    ("name", "kills"),
    [case(each, kills, in_test=kills == KILLS[0]) for kills in KILLS for each in PRODUCERS],
)
def test_nothing_is_lost_doubled_or_reordered_through_kills(own_broker, topic, name, kills, say):
    servers = own_broker.bootstrap_servers
    create(servers, topic, partitions=PARTITIONS)
    producer = InBackground(PRODUCERS[name], servers, topic)
    producer.start()
    for _ in range(kills):
        producer.work()
        own_broker.kill()
        own_broker.restart()
    producer.work()
    counts = producer.finish()
    assert min(counts) > 100
    for partition, count in enumerate(counts):
        # The end offset shows that there is not one record more.
        received = Confluent().consume(servers, topic, partition, count)
        assert [int(record.value) for record in received] == list(range(count))
        assert [record.offset for record in received] == list(range(count))
        assert end_offset(servers, topic, partition) == count
    say(f"{name}: {sum(counts)} records through {kills} kills: none lost, doubled or reordered")


def end_offset(servers: str, topic: str, partition: int) -> int:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": servers, "group.id": "end"})
    try:
        place = confluent_kafka.TopicPartition(topic, partition)
        return consumer.get_watermark_offsets(place, timeout=60)[1]
    finally:
        consumer.close()
