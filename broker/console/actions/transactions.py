"""Transactions ended by an operator: by their id, or on a partition if no coordinator knows it.

The first is what a new instance of the producer does: it fences the old one, and the coordinator
aborts on every partition. The second writes a marker past the coordinator, which would tear a
transaction that it still knows: there it is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.admin import exchange
from barnabas.broker.admin.transactions import abort_on, fence
from barnabas.broker.api.checks import READ, TOPIC, TOPIC_DENIED, denied
from barnabas.broker.console.actions.command import Command, Conflict, invalid
from barnabas.broker.console.actions.effect import Change, Plan
from barnabas.broker.console.pages.transactions import loaded, owner_of, transaction_of
from barnabas.coordinator.transactions.state import State
from barnabas.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.metadata.topic import Partition
    from barnabas.coordinator.transactions.state import Transaction
    from barnabas.storage.log.producer_entry import ProducerEntry


async def plan_abort(command: Command) -> Plan:
    """Return the transaction that would be aborted, and the records that it blocks."""
    found = _open_transaction(command)
    held, refusals = 0, command.broker.transactions.refusals
    for topic, index in found.partitions:
        await command.pace.spend()
        partition = command.broker.catalogue.partition(topic, index)
        log = None if partition is None else partition.log
        if log is not None and command.may_see(topic):
            held += log.high_watermark - log.last_stable_offset
    age_ms = command.broker.clock.now_ms() - found.start_ms
    changes = tuple(
        Change(f"{topic}-{index}", "open", "aborted", None)
        for topic, index in sorted(found.partitions)[:100]
        if command.may_see(topic)
    )
    await command.broker.transactions.durable(refusals)
    return Plan(
        f"abort the open transaction of {found.transactional_id} and fence its producer",
        {"partitions": len(found.partitions), "offsets_blocked": held, "open_for_ms": age_ms},
        changes,
        _basis(found),
    )


def _basis(found: Transaction) -> tuple[object, ...]:
    return found.producer_id, found.producer_epoch, found.start_ms, found.state.kafka_name


async def abort(command: Command, plan: Plan) -> None:
    """Fence the producer of a transactional id; its transaction is aborted."""
    found = _open_transaction(command)
    # Nothing comes in between this look and the request: it is handled in the same turn.
    if _basis(found) != plan.basis:
        raise Conflict
    try:
        await command.wire.run(fence(found.transactional_id, found.timeout_ms))
    except exchange.Rejected as problem:
        # Its markers are under way: the error is only that the epoch cannot be given yet.
        if problem.code is not ErrorCode.CONCURRENT_TRANSACTIONS:
            raise


def _open_transaction(command: Command) -> Transaction:
    """Return a transaction that is not decided yet; raises KafkaError."""
    found = transaction_of(command)
    key = found.transactional_id
    if found.state.is_decided:
        words = f"{key} is decided ({found.state.kafka_name}): its markers are being written"
        raise KafkaError(ErrorCode.INVALID_TXN_STATE, words)
    if found.state is not State.ONGOING:
        words = f"{key} has no open transaction, its state is {found.state.kafka_name}"
        raise KafkaError(ErrorCode.INVALID_TXN_STATE, words)
    return found


# ---------------------------------------------------------------------- what no coordinator knows


async def plan_abort_hanging(command: Command) -> Plan:
    """Return the transaction of a partition that would be ended."""
    partition, entry = _hanging(command)
    log = partition.log_here()
    await command.broker.transactions.durable()
    where = f"{partition.topic.name}-{partition.index}"
    change = Change(where, f"open since offset {entry.transaction_first_offset}", "aborted", None)
    return Plan(
        f"abort the hanging transaction on {where} of producer {entry.producer_id}",
        {"offsets_blocked": log.high_watermark - log.last_stable_offset},
        (change,),
        (entry.producer_id, entry.epoch, entry.transaction_first_offset),
    )


async def abort_hanging(command: Command, _: Plan) -> None:
    """Write the marker that ends it."""
    partition, entry = _hanging(command)
    place = exchange.Partition(partition.topic.name, partition.index, command.broker.node_id)
    identity = entry.producer_id, entry.epoch, entry.coordinator_epoch
    await command.wire.run(abort_on(place, *identity))


def _hanging(command: Command) -> tuple[Partition, ProducerEntry]:
    """Return a transaction that only an operator can end; raises KafkaError."""
    name = command.names["topic"]
    if not command.access.may_see(TOPIC, name, READ):  # As DescribeProducers asks for it.
        raise denied(TOPIC_DENIED, READ, TOPIC, name)
    topic, index = command.topic(), command.number("partition")
    start = command.number("start_offset")
    if index is None or not 0 <= index < len(topic.partitions):
        raise invalid(f"partition: {topic.name} has {len(topic.partitions)}")
    partition = topic.partitions[index]
    transactions = loaded(command)
    for entry in partition.log_here().producers.open_transactions():
        if entry.transaction_first_offset != start:
            continue
        owner = owner_of(transactions, partition, entry)
        if owner is not None:
            words = f"it does not hang: it is part of {owner.transactional_id}; abort that"
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, words)
        return partition, entry
    words = f"no transaction is open on {topic.name}-{index} from offset {start}"
    raise KafkaError(ErrorCode.INVALID_TXN_STATE, words)
