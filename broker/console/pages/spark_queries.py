"""Spark's exactly-once queries from their ledger, and their open transactions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

from barnabas.broker.api.checks import (
    GROUP,
    READ,
    TOPIC,
    TRANSACTIONAL_ID,
)
from barnabas.broker.console.pacing import ROW_UNITS
from barnabas.broker.console.pages import groups, transactions
from barnabas.broker.console.pages.spark_ledger import LEDGER_TOPIC, NOT_BEGUN, PARTITION
from barnabas.broker.console.parameters import paged
from barnabas.broker.console.route import Route, visible
from barnabas.broker.console.shapes_story import InputLag, SparkQueryPage, SparkQueryRow

if TYPE_CHECKING:
    from barnabas.broker.console.pages.spark_ledger import LedgerEntry
    from barnabas.broker.console.questions import Question
    from barnabas.broker.metadata.topic import Topic
    from barnabas.coordinator.groups.shard import GroupShard
    from barnabas.coordinator.transactions.state import Transaction

ORDERS: Final[Mapping[str, tuple[type, ...]]] = {
    "sink": (str, str),
    "written_ms": (int, str, str),
}
PREFIX: Final = "spark."
"""Prefix of the transactional ids of sinks; the driver's is the prefix and the sink id."""
TASK_PARTS: Final = 4
"""Parts of a task's id after the sink id: batch, partition, attempt, and a nonce."""
OPEN_SHOWN: Final = 5


def driver_id(sink: str) -> str:
    """Return the transactional id of a sink's driver."""
    return f"{PREFIX}{sink}"


def sink_of(transactional_id: str, sinks: Collection[str]) -> str | None:
    """Return the sink of a transactional id, or None."""
    if not transactional_id.startswith(PREFIX):
        return None
    rest = transactional_id[len(PREFIX) :]
    if rest in sinks:
        return rest
    sink, *task = rest.rsplit(".", TASK_PARTS)
    is_task = len(task) == TASK_PARTS and all(each.isdecimal() for each in task[:-1])
    return sink if is_task and sink in sinks else None


async def list_queries(question: Question) -> SparkQueryPage:
    """List the queries with an entry in the ledger."""
    topic = question.broker.catalogue.topic(LEDGER_TOPIC)
    reason = _hidden_reason(question)
    if topic is None or reason is not None:
        return SparkQueryPage(question.now_ms, None, reason, True, ())
    state = await question.places.ledger.read(topic)
    log = topic.partitions[PARTITION].log_here()
    is_complete = state.position >= log.high_watermark
    wanted, access = question.text("filter").casefold(), question.access
    selection = question.selection(ORDERS)
    for (sink, query), entry in state.entries.items():
        await question.pace.spend()
        is_there = entry.offset >= log.log_start_offset
        if not is_there or wanted not in sink.casefold():
            continue
        if access.may_see(TRANSACTIONAL_ID, driver_id(sink)):
            selection.offer_by(entry, entry, sink, query)
    shown = selection.page()
    left_open = await _left_open(question, {each.sink for each in shown})
    rows = [await _row(question, topic, each, left_open[each.sink]) for each in shown]
    await question.durable()  # Of what is open (C14).
    return SparkQueryPage(question.now_ms, selection.following, None, is_complete, tuple(rows))


def _hidden_reason(question: Question) -> str | None:
    """Return the reason that the ledger is hidden from the user, or None."""
    if not question.broker.config.console_records:
        return "records are hidden: barnabas.console.records is false"
    if not question.access.may_see(TOPIC, LEDGER_TOPIC, READ):
        return f"the user lacks READ on {LEDGER_TOPIC}"
    return None


async def _left_open(question: Question, sinks: Collection[str]) -> dict[str, list[Transaction]]:
    """Return the open transactions of visible transactional ids, by sink."""
    found: dict[str, list[Transaction]] = defaultdict(list)
    if not sinks:
        return found
    for machine in transactions.loaded(question).machines:
        for each in list(machine.open.values()):
            await question.pace.spend()
            sink = None if each.state.is_decided else sink_of(each.transactional_id, sinks)
            if sink is not None and question.access.may_see(
                TRANSACTIONAL_ID, each.transactional_id
            ):
                found[sink].append(each)
    return found


async def _row(
    question: Question, topic: Topic, entry: LedgerEntry, left_open: list[Transaction]
) -> SparkQueryRow:
    await question.pace.spend(ROW_UNITS)
    left_open.sort(key=lambda each: each.start_ms)
    return SparkQueryRow(
        driver_id(entry.sink),
        entry.sink,
        entry.query,
        None if entry.batch == NOT_BEGUN else entry.batch,
        entry.begun_batch if entry.begun_batch > entry.batch else None,
        entry.written_ms,
        entry.records,
        entry.measured_batch,
        entry.decide_ms,
        entry.commit_ms,
        len(entry.transactions),
        entry.is_pinned,
        len(left_open),
        tuple(each.transactional_id for each in left_open[:OPEN_SHOWN]),
        left_open[0].start_ms if left_open else None,
        await _inputs(question, entry),
        tuple(each for each in entry.sinks if question.access.may_see(TOPIC, each)),
        topic.name,
        PARTITION,
        entry.offset,
        entry.problem,
    )


async def _inputs(question: Question, entry: LedgerEntry) -> tuple[InputLag, ...]:
    """Return the lag of the inputs, by the offsets that the sink commits for a group."""
    key = driver_id(entry.sink)
    pipeline = question.broker.transactions.pipelines.of_id(key)
    group_id = key if pipeline is None else pipeline.group
    machine: GroupShard | None = None
    if question.access.may_see(GROUP, group_id):
        machine = groups.machine_that_knows(groups.loaded(question), group_id)
    found = []
    for topic in entry.sources:
        if not question.access.may_see(TOPIC, topic):
            continue
        lag = groups.Lag()
        if machine is not None:
            lag = await groups.lag_on(question, machine, group_id, topic)
        is_known = lag.partitions > 0
        found.append(
            InputLag(
                topic,
                lag.lag if is_known else None,
                lag.lag_readable if is_known else None,
                lag.lag_blocked if is_known else None,
            )
        )
    return tuple(found)


SPARK_QUERY_ROUTES: Final = (
    Route(
        "/api/v1/spark-queries",
        "Spark's exactly-once queries: last decided batch, open transactions, lag",
        list_queries,
        SparkQueryPage,
        visible(TRANSACTIONAL_ID),
        paged("sink", ORDERS, "the sink id"),
    ),
)
