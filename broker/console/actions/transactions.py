"""Transactions ended by an operator: by their id, or on a partition if no coordinator knows it.

The first is what a new instance of the producer does: it fences the old one, and the coordinator
aborts on every partition. The second writes a marker past the coordinator, which would tear a
transaction that it still knows: there it is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.api.checks import READ, TOPIC, TOPIC_DENIED, denied
from barnabas.broker.console.actions.command import Command, Conflict, invalid
from barnabas.broker.console.actions.effect import Change, Plan
from barnabas.broker.console.actions.wire import check
from barnabas.coordinator.transactions.state import State
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.write_txn_markers import (
    WRITE_TXN_MARKERS,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

if TYPE_CHECKING:
    from barnabas.broker.topics.topic import Partition
    from barnabas.coordinator.transactions.state import Transaction
    from barnabas.storage.producer_entry import ProducerEntry

INIT_PRODUCER_ID_STABLE: Final = 5
"""The last version of InitProducerId that asks for nothing but a new epoch."""
_TIMEOUT_MS: Final = 60_000
"""What producers get that do not say one: more might be more than the broker allows by now."""
_CLASSIC: Final = 0
"""An operator's marker carries the epoch of the data."""


async def plan_abort(command: Command) -> Plan:
    """Say which transaction would be aborted, and who waits for it."""
    found = _open_transaction(command)
    held = 0
    for topic, index in found.partitions:
        await command.pace.spend()
        partition = command.broker.catalogue.partition(topic, index)
        if partition is not None and command.may_see(topic):
            held += partition.log.high_watermark - partition.log.last_stable_offset
    age_ms = command.broker.clock.now_ms() - found.start_ms
    changes = tuple(
        Change(f"{topic}-{index}", "open", "aborted", None)
        for topic, index in sorted(found.partitions)[:100]
        if command.may_see(topic)
    )
    await command.broker.transactions.durable()
    return Plan(
        f"abort the open transaction of {found.transactional_id} and fence its producer",
        {"partitions": len(found.partitions), "offsets_held_back": held, "open_for_ms": age_ms},
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
    timeout_ms = min(found.timeout_ms, _TIMEOUT_MS)
    request = InitProducerIdRequest(found.transactional_id, timeout_ms)
    answer = await command.wire.ask(INIT_PRODUCER_ID, request, INIT_PRODUCER_ID_STABLE)
    # Its markers are under way: the answer says no more than that the epoch cannot be given yet.
    if answer.error_code != ErrorCode.CONCURRENT_TRANSACTIONS:
        check(answer.error_code)


def _open_transaction(command: Command) -> Transaction:
    key, transactions = command.names["transactional_id"], command.broker.transactions
    if transactions.is_loading:
        raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    found = transactions.transaction(key) if transactions.is_coordinator() else None
    if found is None:
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    if found.state.is_decided:
        words = f"{key} is decided ({found.state.kafka_name}): its markers are being written"
        raise KafkaError(ErrorCode.INVALID_TXN_STATE, words)
    if found.state is not State.ONGOING:
        words = f"{key} has no open transaction, its state is {found.state.kafka_name}"
        raise KafkaError(ErrorCode.INVALID_TXN_STATE, words)
    return found


# ---------------------------------------------------------------------- what no coordinator knows


async def plan_abort_hanging(command: Command) -> Plan:
    """Say which transaction of a partition would be ended."""
    partition, entry = _hanging(command)
    log = partition.log
    await command.broker.transactions.durable()
    where = f"{partition.topic.name}-{partition.index}"
    change = Change(where, f"open since offset {entry.transaction_first_offset}", "aborted", None)
    return Plan(
        f"end the transaction that hangs on {where}, of producer {entry.producer_id}",
        {"offsets_held_back": log.high_watermark - log.last_stable_offset},
        (change,),
        (entry.producer_id, entry.epoch, entry.transaction_first_offset),
    )


async def abort_hanging(command: Command, _: Plan) -> None:
    """Write the marker that ends it."""
    partition, entry = _hanging(command)
    topic = WritableTxnMarkerTopic(partition.topic.name, [partition.index])
    marker = WritableTxnMarker(
        entry.producer_id,
        entry.epoch,
        transaction_result=False,
        topics=[topic],
        # As Kafka's tool: that of the last marker, so that it is not taken for an older one.
        coordinator_epoch=max(entry.coordinator_epoch, 0),
        transaction_version=_CLASSIC,
    )
    answer = await command.wire.ask(WRITE_TXN_MARKERS, WriteTxnMarkersRequest([marker]))
    for each in answer.markers:
        for found in each.topics:
            for result in found.partitions:
                check(result.error_code)


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
    known = {
        each.producer_id: each
        for machine in command.broker.transactions.machines
        for each in machine.open.values()
    }
    for entry in partition.log.producers.open_transactions():
        if entry.transaction_first_offset != start:
            continue
        owner = known.get(entry.producer_id)
        if owner is not None and (topic.name, index) in owner.partitions:
            words = f"it does not hang: it is part of {owner.transactional_id}; abort that"
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, words)
        return partition, entry
    words = f"no transaction is open on {topic.name}-{index} from offset {start}"
    raise KafkaError(ErrorCode.INVALID_TXN_STATE, words)
