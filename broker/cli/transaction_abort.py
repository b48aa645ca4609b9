"""Ending the transactions of other producers: through their coordinator, or past it.

The first is what a new instance of the producer does when it starts: it fences the old one, and
the coordinator aborts on every partition. The second writes a marker onto one partition. That would
tear a transaction which its coordinator still knows, so it is refused there: Kafka's own tool does
it without a look.
"""

from __future__ import annotations

from barnabas.broker.admin.exchange import Partition, partition_text
from barnabas.broker.admin.transactions import abort_on
from barnabas.broker.cli.cluster_view import Cluster
from barnabas.broker.cli.errors import CommandError
from barnabas.broker.cli.transaction_view import (
    ONGOING,
    PREPARED,
    Opened,
    Transaction,
    open_transactions,
)


def check_open(transaction: Transaction) -> None:
    """Raise CommandError unless the transaction can be aborted."""
    key = transaction.transactional_id
    if transaction.state in PREPARED:
        verb = "committed" if transaction.state == PREPARED[0] else "aborted"
        raise CommandError(f"{key}: it is decided, and {verb} as soon as its markers are written")
    if transaction.state != ONGOING:
        raise CommandError(f"{key}: no transaction is open, its state is {transaction.state}")


def abort_hanging(cluster: Cluster, partition: Partition, start_offset: int) -> None:
    """Write the marker that ends a transaction which no coordinator knows; raises CommandError."""
    producer = _hanging(cluster, partition, start_offset).producer
    identity = producer.producer_id, producer.producer_epoch, producer.coordinator_epoch
    cluster.run(abort_on(partition, *identity))


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
