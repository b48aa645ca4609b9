"""Producers of a topic, and the groups that have read it.

A partition keeps the producers with a producer id of the last days, transactional or not. Readers
without a group are in the list of readers (clients.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from barnabas.broker.api.checks import (
    GROUP,
    READ,
    TOPIC,
    TRANSACTIONAL_ID,
)
from barnabas.broker.console.pages import groups, transactions
from barnabas.broker.console.pages.topics import spend_on, topic_of
from barnabas.broker.console.parameters import Parameter, paged
from barnabas.broker.console.route import Route, required
from barnabas.broker.console.shapes_topic_users import (
    GroupOfTopicPage,
    GroupOfTopicRow,
    ProducerPage,
    ProducerRow,
)

if TYPE_CHECKING:
    from barnabas.broker.console.questions import Question
    from barnabas.storage.log.producer_entry import ProducerEntry

PRODUCER_ORDERS: Final[Mapping[str, tuple[type, ...]]] = {
    "partition": (int, int),
    "last_write_ms": (int, int, int),
}
GROUP_ORDERS: Final[Mapping[str, tuple[type, ...]]] = {
    "group": (str,),
    **dict.fromkeys(("lag", "lag_readable", "lag_blocked"), (int, str)),
}


async def list_producers(question: Question) -> ProducerPage:
    """List the producers that the partitions of a topic know."""
    topic, pace = topic_of(question), question.pace
    only_open, only = bool(question.values["open"]), question.values.get("producer_id")
    selection = question.selection(PRODUCER_ORDERS)
    by_partition = selection.sort == "partition"
    for partition, log in topic.partitions_here():
        await spend_on(log, pace)
        producers = log.producers
        for entry in list(producers.open_transactions() if only_open else producers.entries()):
            await pace.spend()
            if only is not None and entry.producer_id != only:
                continue
            value = () if by_partition else (entry.last_timestamp,)
            row = partition.index, entry
            selection.offer(row, *value, partition.index, entry.producer_id)
    coordinator = transactions.loaded(question)
    rows = []
    async for index, entry in selection.rows(pace):
        owner = coordinator.transaction_of_producer(entry.producer_id)
        name = None if owner is None else owner.transactional_id
        is_seen = name is not None and question.access.may_see(TRANSACTIONAL_ID, name)
        rows.append(_row(index, entry, name if is_seen else None))
    await question.durable()  # Whose ids they are (C14).
    return ProducerPage(
        question.now_ms, selection.following, selection.total, topic.name, tuple(rows)
    )


def _row(partition: int, entry: ProducerEntry, transactional_id: str | None) -> ProducerRow:
    last = entry.batches[-1] if entry.batches else None
    return ProducerRow(
        partition,
        str(entry.producer_id),
        entry.epoch,
        transactional_id,
        None if last is None else last.last_sequence,
        entry.last_timestamp if entry.last_timestamp >= 0 else None,
        None if last is None else last.last_offset,
        entry.transaction_first_offset if entry.is_in_transaction else None,
    )


async def list_groups(question: Question) -> GroupOfTopicPage:
    """List the groups that have committed offsets of a topic."""
    topic, pace = topic_of(question), question.pace
    wanted = question.text("filter").casefold()
    selection = question.selection(GROUP_ORDERS)
    for machine in groups.loaded(question).machines:
        for group_id in machine.keys():  # noqa: SIM118  No mapping: a list of what there is.
            await pace.spend()
            if topic.name not in machine.offsets.of_group(group_id):
                continue
            if wanted not in group_id.casefold() or not question.access.may_see(GROUP, group_id):
                continue
            lag = await groups.lag_on(question, machine, group_id, topic.name)
            if not lag.partitions:
                continue  # Of another topic, which had this name.
            selection.offer_by(lag, (machine, group_id, lag), group_id)
    rows = []
    async for machine, group_id, lag in selection.rows(pace):
        state, _, _, members = groups.summary_of(machine, group_id)
        rows.append(
            GroupOfTopicRow(
                group_id,
                state,
                members,
                lag.partitions,
                lag.lag,
                lag.lag_readable,
                lag.lag_blocked,
            )
        )
    return GroupOfTopicPage(
        question.now_ms, selection.following, selection.total, topic.name, tuple(rows)
    )


TOPIC_USER_ROUTES: Final = (
    Route(
        "/api/v1/topics/{topic}/producers",
        "Producers that the partitions of a topic remember",
        list_producers,
        ProducerPage,
        required(TOPIC, READ),
        (
            *paged("-last_write_ms", PRODUCER_ORDERS),
            Parameter("open", "Only those with an open transaction in it.", bool, False),
            Parameter("producer_id", "Only this one.", int),
        ),
    ),
    Route(
        "/api/v1/topics/{topic}/groups",
        "Groups with committed offsets of a topic",
        list_groups,
        GroupOfTopicPage,
        required(TOPIC),
        paged("group", GROUP_ORDERS, "their id"),
    ),
)
