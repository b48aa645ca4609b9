"""Write one invoice for each order, exactly once, with kafka-python."""

import os
import signal
import sys

from kafka import (
    ConsumerRebalanceListener,
    KafkaConsumer,
    KafkaProducer,
    OffsetAndMetadata,
    TopicPartition,
)

servers = {"bootstrap_servers": os.environ["KAFKA_BOOTSTRAP_SERVERS"].split(",")}
name = f"invoicing-{sys.argv[1]}"
LIMIT_S = 30  # of a turn of the loop: kafka-python 3.0.12 can wait forever when a broker dies


class Moves(ConsumerRebalanceListener):
    """Whether partitions have moved since the last look."""

    happened = True

    def on_partitions_revoked(self, _revoked: list[TopicPartition]) -> None:
        """Note that partitions move away."""
        self.happened = True

    def on_partitions_assigned(self, _assigned: list[TopicPartition]) -> None:
        """Note that partitions have come."""
        self.happened = True


orders = KafkaConsumer(
    group_id="invoicing",
    group_instance_id=name,  # a restarted instance gets its partitions at once
    session_timeout_ms=6000,
    enable_auto_commit=False,
    isolation_level="read_committed",
    auto_offset_reset="earliest",
    **servers,
)
producer = KafkaProducer(transactional_id=name, transaction_timeout_ms=10_000, **servers)
signal.alarm(LIMIT_S)  # ends this process unless it is set again in time
producer.init_transactions()  # aborts the transaction that a previous run left open
moves = Moves()
orders.subscribe(["orders"], listener=moves)

# Each error ends the program; its supervisor starts it again at the committed offsets.
while True:
    signal.alarm(LIMIT_S)
    if moves.happened:
        moves.happened = False
        for partition in orders.assignment():
            committed = orders.committed(partition)
            if committed is None:
                orders.seek_to_beginning(partition)
            else:
                orders.seek(partition, committed)
    # From before the poll: the library rebalances on a thread of its own.
    member = orders.group_metadata()
    batch = orders.poll(timeout_ms=200, max_records=50)
    if not batch or moves.happened or member.generation_id < 0:
        moves.happened |= bool(batch)
        continue
    ends = {p: OffsetAndMetadata(records[-1].offset + 1, "", -1) for p, records in batch.items()}
    producer.begin_transaction()
    sent = [
        producer.send("invoices", order.value, key=order.key, headers=order.headers)
        for records in batch.values()
        for order in records
    ]
    for invoice in sent:
        invoice.get(timeout=30)  # raises if the broker rejected the record
    producer.send_offsets_to_transaction(ends, member)
    producer.commit_transaction()
