"""Transactional ids, and whose open transactions readers wait for.

The state in memory is in the journal, but perhaps not durable: each response waits for that (C14).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Final

from barnabas.broker.api.checks import READ, TOPIC, TRANSACTIONAL_ID
from barnabas.broker.console.encoding import made_of, values_of
from barnabas.broker.console.pacing import PARTITION_UNITS, ROW_UNITS
from barnabas.broker.console.shapes import (
    BlockedPage,
    BlockedPartition,
    OpenTransaction,
    TopicPartition,
    TransactionDescription,
    TransactionPage,
    TransactionRow,
)
from barnabas.coordinator.transactions.state import NEVER_MS, STORABLE
from barnabas.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.console.paging import Selection
    from barnabas.broker.console.questions import ConsoleRequest, Question
    from barnabas.broker.coordination.transactions import Transactions
    from barnabas.broker.metadata.topic import Partition
    from barnabas.coordinator.transactions.state import Transaction
    from barnabas.coordinator.transactions.transaction_table import TransactionTable
    from barnabas.storage.log.producer_entry import ProducerEntry

STATES: Final = tuple(sorted(state.kafka_name for state in STORABLE))
ORDERS: Final[Mapping[str, tuple[type, ...]]] = {
    "transactional_id": (str,),
    **dict.fromkeys(("start_time_ms", "partition_count"), (int, str)),
}
PARTITION_ORDERS: Final[Mapping[str, tuple[type, ...]]] = {"topic": (str, int)}
BLOCKED_ORDERS: Final[Mapping[str, tuple[type, ...]]] = {
    "topic": (str, int),
    "blocked_offsets": (int, str, int),
}
TRANSACTIONS_SHOWN: Final = 10
"""Open transactions that are shown of one partition."""


# ----------------------------------------------------------------------------- transactional ids


async def list_transactions(question: Question) -> TransactionPage:
    """List transactional ids."""
    transactions = loaded(question)
    pace, access = question.pace, question.access
    wanted, state = question.text("filter").casefold(), question.text("state")
    only_open = bool(question.values["open"])
    selection = question.selection(ORDERS)
    sort = selection.sort
    for machine in transactions.machines:
        for each in _of_machine(machine, only_open=only_open):
            await pace.spend()
            key = each.transactional_id
            if state and each.state.kafka_name != state:
                continue
            if wanted not in key.casefold() or not access.may_see(TRANSACTIONAL_ID, key):
                continue
            if sort == "transactional_id":
                selection.offer(key, key)
            elif sort == "start_time_ms":
                selection.offer(key, -1 if each.state.is_idle else each.start_ms, key)
            else:
                selection.offer(key, len(each.partitions), key)
    rows, now_ms = [], question.now_ms
    async for key in selection.rows(pace):
        found = _found(transactions, key)
        if found is not None:
            rows.append(row_of(question, found, now_ms))
    await question.durable()
    return TransactionPage(now_ms, selection.following, selection.total, tuple(rows))


def _of_machine(machine: TransactionTable, *, only_open: bool) -> list[Transaction]:
    return list((machine.open if only_open else machine.transactions).values())


async def describe_one(question: Question) -> TransactionDescription:
    """Describe a transactional id."""
    transactions, found = question.broker.transactions, transaction_of(question)
    key = found.transactional_id
    now_ms = question.now_ms
    row = row_of(question, found, now_ms)
    partitions: Collection[tuple[str, int]] = found.partitions
    if found.state.is_decided:
        partitions = transactions.owed_markers(key)
    selection = question.selection(PARTITION_ORDERS)
    for topic, partition in partitions:
        await question.pace.spend()
        if question.access.may_see(TOPIC, topic):
            selection.offer(TopicPartition(topic, partition), topic, partition)
    page = selection.page()
    await question.durable()
    return made_of(
        TransactionDescription,
        now_ms,
        selection.following,
        *values_of(row),
        tuple(page),
    )


def _found(transactions: Transactions, key: str) -> Transaction | None:
    """Return the transaction of an id, or None, also if ``__transaction_state`` does not exist."""
    return transactions.transaction(key) if transactions.is_coordinator() else None


def transaction_of(request: ConsoleRequest) -> Transaction:
    """Return the transaction of the id in the path; raises KafkaError."""
    key, transactions = request.names["transactional_id"], loaded(request)
    code = transactions.refusal(key) if transactions.is_coordinator() else ErrorCode.NONE
    if code:
        raise KafkaError(code)
    found = _found(transactions, key)
    if found is None:
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    return found


def loaded(request: ConsoleRequest) -> Transactions:
    """Return the coordinator once it has read its log; raises KafkaError before."""
    transactions = request.broker.transactions
    if transactions.is_coordinator() and transactions.is_loading:
        raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    return transactions


def row_of(question: Question, found: Transaction, now_ms: int) -> TransactionRow:
    """Return the row of a transactional id in a list."""
    key = found.transactional_id
    client = question.broker.transactions.clients.of(key)
    producer_id, producer_epoch = found.owner
    start_ms = None if found.state.is_idle else found.start_ms
    age_ms = None if start_ms is None else max(0, now_ms - start_ms)
    remaining_ms = None
    if age_ms is not None and not found.state.is_decided and found.timeout_ms != NEVER_MS:
        remaining_ms = max(0, found.timeout_ms - age_ms)
    return TransactionRow(
        key,
        found.state.kafka_name,
        str(producer_id),
        producer_epoch,
        found.timeout_ms,
        start_ms,
        age_ms,
        remaining_ms,
        question.broker.node_id,
        None if client is None else client.client_id,
        None if client is None else client.host,
        len(found.partitions),
    )


# -------------------------------------------------------------------------- blocked partitions


async def list_blocked(question: Question) -> BlockedPage:
    """List the partitions with blocked consumers, and the blocking transactions."""
    loaded(question)
    selection = question.selection(BLOCKED_ORDERS)
    by_blocked = selection.sort == "blocked_offsets"
    async for partition, blocked_offsets in blocked_partitions(question):
        value = (blocked_offsets,) if by_blocked else ()
        selection.offer(partition, *value, *partition.topic_partition)
    now_ms = question.now_ms
    rows = await blocked_rows(question, selection, now_ms)
    await question.durable()
    return BlockedPage(now_ms, selection.following, selection.total, tuple(rows))


async def blocked_partitions(question: Question) -> AsyncIterator[tuple[Partition, int]]:
    """Yield this broker's partitions with blocked consumers, and the blocked offsets."""
    pace, access = question.pace, question.access
    wanted = question.text("filter").casefold()
    for topic in list(question.broker.catalogue.topics.values()):
        await pace.spend()
        if wanted not in topic.name.casefold() or not access.may_see(TOPIC, topic.name, READ):
            continue
        for partition, log in topic.partitions_here():
            await pace.spend(PARTITION_UNITS)
            blocked_offsets = log.high_watermark - log.last_stable_offset
            if blocked_offsets:
                yield partition, blocked_offsets


async def blocked_rows(
    question: Question, selection: Selection[Partition], now_ms: int
) -> list[BlockedPartition]:
    """Return rows of partitions, without partitions that were deleted in between."""
    rows = []
    async for each in selection.rows(question.pace, ROW_UNITS * TRANSACTIONS_SHOWN):
        found = question.broker.catalogue.partition(*each.topic_partition)
        if found is not None and found.log is not None:
            rows.append(_blocked(question, found, now_ms))
    return rows


def owner_of(
    transactions: Transactions, partition: Partition, entry: ProducerEntry
) -> Transaction | None:
    """Return the transaction that owns a partition's open one, or None if it hangs.

    Its markers carry its epoch or the next one, and end every transaction without a later one.
    """
    found = transactions.transaction_of_producer(entry.producer_id)
    if found is None or found.state.is_idle or entry.epoch > found.producer_epoch:
        return None
    return found if partition.topic_partition in found.partitions else None


def open_on(question: Question, partition: Partition, now_ms: int) -> Iterator[OpenTransaction]:
    """Yield the open transactions of a partition, the oldest first; raises KafkaError."""
    access, transactions = question.access, loaded(question)
    for entry in partition.log_here().producers.open_transactions():
        owner = owner_of(transactions, partition, entry)
        is_seen = owner is not None and access.may_see(TRANSACTIONAL_ID, owner.transactional_id)
        yield OpenTransaction(
            entry.transaction_first_offset,
            str(entry.producer_id),
            entry.epoch,
            entry.last_timestamp,
            owner is None,
            row_of(question, owner, now_ms) if owner is not None and is_seen else None,
        )


def _blocked(question: Question, partition: Partition, now_ms: int) -> BlockedPartition:
    log = partition.log_here()
    return BlockedPartition(
        partition.topic.name,
        partition.index,
        log.last_stable_offset,
        log.high_watermark,
        log.high_watermark - log.last_stable_offset,
        log.producers.open_count,
        tuple(islice(open_on(question, partition, now_ms), TRANSACTIONS_SHOWN)),
    )
