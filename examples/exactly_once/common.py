"""Common parts of the demonstrations: clients, batches of the input, a worker that may crash."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic

TIMEOUT_S = 60.0
# The library would also print what it raises.
SILENT = logging.getLogger("silent")
SILENT.setLevel(logging.CRITICAL + 1)
NOT_YET = {
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
}
COMMITTED, UNCOMMITTED = "read_committed", "read_uncommitted"


def fresh_name(demonstration: str) -> str:
    """Return a name that no earlier run has used, for topics, groups and transactional ids."""
    return f"{demonstration}-{time.time_ns()}"


def create_topics(servers: str, *topics: str, **configs: str) -> None:
    """Create topics of one partition."""
    settings = {key.replace("_", "."): value for key, value in configs.items()}
    admin = AdminClient({"bootstrap.servers": servers, "logger": SILENT})
    new = [NewTopic(topic, num_partitions=1, config=settings) for topic in topics]
    for future in admin.create_topics(new).values():
        future.result(TIMEOUT_S)


def plain_producer(servers: str) -> Producer:
    """Return a producer without transactions."""
    return Producer({"bootstrap.servers": servers, "enable.idempotence": True, "logger": SILENT})


def send(servers: str, topic: str, records: Iterable[tuple[str, str]]) -> None:
    """Write keys and values, outside of any transaction."""
    producer = plain_producer(servers)
    for key, value in records:
        producer.produce(topic, value, key)
    if producer.flush(TIMEOUT_S):
        raise TimeoutError(f"not everything could be written to {topic}")


def transactional_producer(servers: str, transactional_id: str) -> Producer:
    """Return the only producer of an ID, after ending an open transaction of the previous one."""
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "transactional.id": transactional_id,
            "logger": SILENT,
        }
    )
    producer.init_transactions(TIMEOUT_S)
    return producer


def consumer_of(servers: str, group: str, isolation: str) -> Consumer:
    """Return a consumer with assigned partitions, which reports the end of each."""
    return Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 50,
            "logger": SILENT,
        }
    )


def input_of(servers: str, group: str, topic: str) -> Consumer:
    """Return a consumer of a topic's only partition, from where the group has committed."""
    consumer = consumer_of(servers, group, COMMITTED)
    place = _committed(consumer, topic)
    if place.offset < 0:
        place.offset = OFFSET_BEGINNING
    consumer.assign([place])
    return consumer


def _committed(consumer: Consumer, topic: str) -> TopicPartition:
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            (place,) = consumer.committed([TopicPartition(topic, 0)], TIMEOUT_S)
        except KafkaException as error:
            # A broker that has just been started may still look for its coordinators.
            if error.args[0].code() not in NOT_YET or time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return place


def messages_of(consumer: Consumer) -> Iterator[Message]:
    """Yield messages up to the end of the partition."""
    while True:
        message = consumer.poll(TIMEOUT_S)
        if message is None:
            raise TimeoutError("the end of the partition does not come")
        error = message.error()
        if error is None:
            yield message
        elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
            return
        else:
            raise KafkaException(error)


def batches_of(consumer: Consumer, size: int) -> Iterator[list[Message]]:
    """Yield batches of messages up to the end of the partition."""
    batch: list[Message] = []
    for message in messages_of(consumer):
        batch.append(message)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def add_offsets(producer: Producer, consumer: Consumer) -> None:
    """Make the position in the input a part of the transaction."""
    places = consumer.position(consumer.assignment())
    producer.send_offsets_to_transaction(places, consumer.consumer_group_metadata(), TIMEOUT_S)


def read(servers: str, topic: str, isolation: str = COMMITTED) -> list[tuple[str, str]]:
    """Return keys and values of a topic, once no transaction is open in it."""
    consumer = consumer_of(servers, "nobody", isolation)
    _wait_until_settled(servers, topic)
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    found = [(text(message.key()), text(message.value())) for message in messages_of(consumer)]
    consumer.close()
    return found


def _wait_until_settled(servers: str, topic: str) -> None:
    """Wait for the markers of decided transactions, which follow the response to a commit."""
    deadline = time.monotonic() + TIMEOUT_S
    while len({_end(servers, topic, each) for each in (COMMITTED, UNCOMMITTED)}) > 1:
        if time.monotonic() > deadline:
            raise TimeoutError(f"a transaction stays open in {topic}")
        time.sleep(0.01)


def _end(servers: str, topic: str, isolation: str) -> int:
    consumer = consumer_of(servers, "nobody", isolation)
    end: int = consumer.get_watermark_offsets(TopicPartition(topic, 0), TIMEOUT_S)[1]
    consumer.close()
    return end


def text(content: bytes | None) -> str:
    """Return a key or a value as text."""
    return (content or b"").decode()


def crash() -> None:
    """End this process at once: no flush, no abort, no goodbye."""
    os.kill(os.getpid(), signal.SIGKILL)


def run_worker(worker: Callable[..., Any], *arguments: object, **options: object) -> None:
    """Run a worker in a process of its own, and say how it ended."""
    process = multiprocessing.get_context("spawn").Process(
        target=worker, args=arguments, kwargs=options
    )
    process.start()
    process.join()
    if process.exitcode not in {0, -signal.SIGKILL}:
        raise RuntimeError(f"the worker ended with exit code {process.exitcode}")
    how = "has finished" if process.exitcode == 0 else "was killed by SIGKILL"
    print(f"  The worker {how}.")


def show(title: str, values: Iterable[str]) -> None:
    """Print values on one line."""
    print(f"  {title}: {' '.join(values)}")
