"""Write one invoice for each order, exactly once, with confluent-kafka."""

import os
import signal
import sys
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

name = f"invoicing-{sys.argv[1]}"
servers = {
    "bootstrap.servers": os.environ["KAFKA_BOOTSTRAP_SERVERS"],
    "reconnect.backoff.max.ms": 500,
}
producer = Producer(
    {
        "transactional.id": name,
        "transaction.timeout.ms": 10_000,
        "connections.max.idle.ms": 10_000,
        "metadata.recovery.strategy": "none",
        **servers,
    }
)
orders = Consumer(
    {
        "group.id": "invoicing",
        "group.instance.id": name,  # a restarted instance gets its partitions at once
        "session.timeout.ms": 6000,
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
        **servers,
    }
)
member: list[Any] = []


def assigned(consumer: Consumer, _partitions: list[TopicPartition]) -> None:
    """Keep the identity of this member while it has these partitions."""
    member[:] = [consumer.consumer_group_metadata()]


def revoked(_consumer: Consumer, _partitions: list[TopicPartition]) -> None:
    """Forget it, so that no offset is committed for another member."""
    member.clear()


def invoice(batch: list[Any]) -> None:
    """Commit the invoices of a batch together with its offsets."""
    ends = {(order.topic(), order.partition()): order.offset() + 1 for order in batch}
    producer.begin_transaction()
    for order in batch:
        producer.produce("invoices", order.value(), order.key(), headers=order.headers())
    producer.send_offsets_to_transaction(
        [TopicPartition(*partition, end) for partition, end in ends.items()], member[0], 30
    )
    producer.commit_transaction(30)


def received() -> list[Any]:
    """Return the orders that have arrived; the fatal error of a fenced member ends the program."""
    batch = []
    for order in orders.consume(50, 0.2):
        error = order.error()
        if error is None:
            batch.append(order)
        elif error.code() == KafkaError._FATAL:  # noqa: SLF001 (public, in spite of its name)
            raise KafkaException(error)
    return batch


def rewind() -> None:
    """Continue at the committed offsets, which do not have the aborted batch."""
    for partition in orders.committed(orders.assignment(), 30):
        partition.offset = max(partition.offset, 0)
        orders.seek(partition)


producer.init_transactions(30)  # aborts the transaction that a previous run left open
orders.subscribe(["orders"], on_assign=assigned, on_revoke=revoked, on_lost=revoked)

# Each other error ends the program; its supervisor starts it again.
while True:
    batch = received()
    if batch and member:
        signal.alarm(60)  # ends a program whose library hangs
        try:
            invoice(batch)
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            producer.abort_transaction(30)
            rewind()
        signal.alarm(0)
