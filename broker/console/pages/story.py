"""History of transactions: of each transactional id, and the transactions ended last.

As in transactions.py every response waits until its contents are durable (C14).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Final

from barnabas.broker.api.checks import (
    TOPIC,
    TRANSACTIONAL_ID,
)
from barnabas.broker.console.parameters import Parameter, paged
from barnabas.broker.console.route import Route, visible
from barnabas.broker.console.shapes import TopicPartition
from barnabas.broker.console.shapes_story import (
    EndedPage,
    EndedTransaction,
    TransactionEventPage,
    TransactionEventRow,
)
from barnabas.broker.coordination.transaction_events import (
    ENDS,
    NO_TIME,
    SEPARATOR,
    Kind,
    Reason,
    TransactionEvent,
)

if TYPE_CHECKING:
    from barnabas.broker.console.questions import Question

EVENT_UNITS: Final = 2
"""Units for one event."""
KINDS: Final = tuple(kind.name.lower() for kind in Kind)
ORDERS: Final[Mapping[str, tuple[type, ...]]] = {"time_ms": (int,)}
"""Order by number, which is that of the events regardless of the clock."""


async def list_events(question: Question) -> TransactionEventPage:
    """List the events of transactional IDs."""
    events = question.broker.transactions.events
    kind = question.text("kind")
    selection = question.selection(ORDERS)
    async for each in _seen(question):
        if kind and each.kind.name.lower() != kind:
            continue
        selection.offer(each, each.number)
    rows = [_row(question, each) async for each in selection.rows(question.pace)]
    await question.durable()
    return TransactionEventPage(
        question.now_ms,
        selection.following,
        events.complete_since_ms,
        events.is_complete,
        tuple(rows),
    )


async def list_ended(question: Question) -> EndedPage:
    """List transactions that have ended."""
    events = question.broker.transactions.events
    selection = question.selection(ORDERS)
    async for each in _seen(question):
        if each.kind in ENDS:
            selection.offer(each, each.number)
    rows = [_ended(each) async for each in selection.rows(question.pace)]
    await question.durable()
    return EndedPage(
        question.now_ms,
        selection.following,
        events.complete_since_ms,
        events.is_complete,
        tuple(rows),
    )


async def _seen(question: Question) -> AsyncIterator[TransactionEvent]:
    """Yield the requested events, of visible ids."""
    wanted, key = question.text("filter").casefold(), question.text("transactional_id")
    since_ms = int(question.values["since_ms"])
    for each in question.broker.transactions.events.newest_first():
        await question.pace.spend(EVENT_UNITS)
        if each.time_ms < since_ms or (key and each.transactional_id != key):
            continue
        if wanted in each.transactional_id.casefold() and question.access.may_see(
            TRANSACTIONAL_ID, each.transactional_id
        ):
            yield each


def _row(question: Question, event: TransactionEvent) -> TransactionEventRow:
    client, former = event.client, event.former
    return TransactionEventRow(
        event.transactional_id,
        event.number,
        event.time_ms,
        event.kind.name.lower(),
        None if event.reason is Reason.NONE else event.reason.name.lower(),
        str(event.producer_id),
        event.producer_epoch,
        None if client is None else client.client_id,
        None if client is None else client.host,
        None if former is None else former.client_id,
        None if former is None else former.host,
        None if event.start_ms == NO_TIME else event.start_ms,
        event.partition_count,
        tuple(_partitions(question, event.names)),
    )


def _partitions(question: Question, names: str) -> list[TopicPartition]:
    found = []
    for name in names.split(SEPARATOR) if names else ():
        topic, _, index = name.rpartition("-")
        if question.access.may_see(TOPIC, topic):
            found.append(TopicPartition(topic, int(index)))
    return found


def _ended(event: TransactionEvent) -> EndedTransaction:
    client = event.client
    outcome = event.reason.name.lower()
    if event.reason is Reason.CLIENT:
        outcome = event.kind.name.lower()
    return EndedTransaction(
        event.transactional_id,
        event.start_ms,
        event.time_ms,
        outcome,
        str(event.producer_id),
        event.producer_epoch,
        None if client is None else client.client_id,
        None if client is None else client.host,
        event.partition_count,
    )


_TRANSACTION: Final = visible(TRANSACTIONAL_ID)
_FILTERS: Final = (
    *paged("-time_ms", ORDERS, "the transactional id"),
    Parameter("transactional_id", "Only those of this one."),
    Parameter("since_ms", "Only those from this time on.", int, 0),
)

STORY_ROUTES: Final = (
    Route(
        "/api/v1/transaction-events",
        "Events of transactional IDs",
        list_events,
        TransactionEventPage,
        _TRANSACTION,
        (*_FILTERS, Parameter("kind", "Only those of this kind.", choices=KINDS)),
        watched="transaction-events",
    ),
    Route(
        "/api/v1/ended-transactions",
        "Ended transactions",
        list_ended,
        EndedPage,
        _TRANSACTION,
        _FILTERS,
        watched="ended-transactions",
    ),
)
