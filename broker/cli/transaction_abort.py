"""Ending the transactions of other producers: through their coordinator, or past it.

The first is what a new instance of the producer does when it starts: it fences the old one, and
the coordinator aborts on every partition. The second writes a marker onto one partition. That would
tear a transaction which its coordinator still knows, so it is refused there: Kafka's own tool does
it without a look.
"""

from __future__ import annotations

from barnabas.broker.cli.cluster_view import Cluster, Partition, check, partition_text
from barnabas.broker.cli.errors import CommandError
from barnabas.broker.cli.group_view import coordinators
from barnabas.broker.cli.transaction_view import (
    ONGOING,
    PREPARED,
    Opened,
    Transaction,
    open_transactions,
)
from barnabas.broker.client.brokers import TRANSACTION
from barnabas.protocol.ending_transactions import abort_marker, fencing
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID
from barnabas.protocol.messages.write_txn_markers import WRITE_TXN_MARKERS
from barnabas.protocol.versions import INIT_PRODUCER_ID_STABLE


def check_open(transaction: Transaction) -> None:
    """Raise CommandError unless the transaction can be aborted."""
    key = transaction.transactional_id
    if transaction.state in PREPARED:
        verb = "committed" if transaction.state == PREPARED[0] else "aborted"
        raise CommandError(f"{key}: it is decided, and {verb} as soon as its markers are written")
    if transaction.state != ONGOING:
        raise CommandError(f"{key}: no transaction is open, its state is {transaction.state}")


def abort_everywhere(cluster: Cluster, transaction: Transaction) -> None:
    """Fence the producer of a transactional ID; raises Rejected while another fencing runs."""
    key = transaction.transactional_id
    request = fencing(key, transaction.timeout_ms)
    node_id = coordinators(cluster, [key], TRANSACTION)[key]
    answer = cluster.node(node_id).ask(INIT_PRODUCER_ID, request, INIT_PRODUCER_ID_STABLE)
    check(key, answer.error_code)


def abort_hanging(cluster: Cluster, partition: Partition, start_offset: int) -> None:
    """Write the marker that ends a transaction which no coordinator knows; raises CommandError."""
    hanging = _hanging(cluster, partition, start_offset)
    producer = hanging.producer
    request = abort_marker(
        partition.topic,
        partition.number,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        coordinator_epoch=producer.coordinator_epoch,
    )
    broker = cluster.node(partition.leader_id)
    for answer in broker.ask(WRITE_TXN_MARKERS, request).markers:
        for topic in answer.topics:
            for each in topic.partitions:
                check(partition_text((topic.name, each.partition_index)), each.error_code)


def _hanging(cluster: Cluster, partition: Partition, start_offset: int) -> Opened:
    name = partition_text(partition.topic_partition)
    found = open_transactions(cluster, [partition])
    for each in found:
        if each.start_offset != start_offset:
            continue
        if each.transaction is not None:
            raise CommandError(
                f"{name}: the transaction does not hang, it belongs to "
                f"{each.transaction.transactional_id} ({each.transaction.state}): abort that id"
            )
        return each
    starts = ", ".join(str(each.start_offset) for each in found) or "nowhere"
    raise CommandError(
        f"{name}: no transaction begins at offset {start_offset}; open ones begin at: {starts}"
    )
