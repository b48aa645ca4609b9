"""Replay of records to a topic, as a job: what it would write, its start, its cancel."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Final

from barnabas.broker.api.checks import (
    READ,
    TOPIC,
    TOPIC_DENIED,
    TRANSACTIONAL_ID,
    TRANSACTIONAL_ID_DENIED,
    WRITE,
    denied,
)
from barnabas.broker.console.actions.command import Command, invalid
from barnabas.broker.console.actions.effect import Change, Plan
from barnabas.broker.console.jobs.registry import Job
from barnabas.broker.console.jobs.replay import ORIGIN, Replay, Writing
from barnabas.broker.console.jobs.selection import Selection, read_offsets, within
from barnabas.broker.console.records.filters import read_filter
from barnabas.broker.console.records.pace import ThreadPace
from barnabas.broker.console.records.ranges import (
    FOR_EVER_MS,
    chosen,
    ranges_of,
    read_partitions,
    read_start,
)
from barnabas.broker.console.records.reading import check_readable
from barnabas.broker.metadata.topic import Topic
from barnabas.protocol.errors import ErrorCode, KafkaError

BY_KEY: Final = "key"
SAME: Final = "same"
PARTITIONING: Final = (BY_KEY, SAME)
NOW: Final = "now"
KEPT: Final = "kept"
TIMES: Final = (NOW, KEPT)
COUNTED_BYTES: Final = 64 * 1024 * 1024
COUNTED_SECONDS: Final = 8.0
"""Maximum time for which the page waits for the count before it shows the preview."""


async def plan_replay(command: Command) -> Plan:
    """Return the records that would be written; a preview counts them, within a time limit."""
    known = command.jobs.asked_before(command.access, command.text("once"))
    selection = await _selection(command)
    writing = _writing(command, selection.topic)
    if known is None:
        command.jobs.check_room()
    words = f"write records of {selection.topic.name} to {writing.topic.name}, in one transaction"
    note = f"each with the header {ORIGIN}"
    plan = Plan(
        words,
        {"offsets": selection.offsets},
        (Change(writing.topic.name, None, "records added", note),),
        state=(selection, writing),
    )
    return await _counted(command, plan, selection) if command.is_dry else plan


async def _counted(command: Command, plan: Plan, selection: Selection) -> Plan:
    """Return the plan with the numbers of its records and bytes."""
    pace, clock = ThreadPace(), command.broker.clock
    ends_s = clock.monotonic() + COUNTED_SECONDS
    records = size = looked = read = 0
    try:
        async with aclosing(selection.found(command.readers, pace, whole=False)) as pieces:
            async for offsets, found in pieces:
                looked += offsets
                read += found.bytes
                records += len(found.rows)
                size += sum(each.size_bytes for each in found.rows)
                if read >= COUNTED_BYTES or clock.monotonic() >= ends_s:
                    break
    finally:
        pace.end()
    figures = {**plan.figures, "records": records, "bytes": size}
    if looked < selection.offsets:
        figures["offsets_not_counted"] = selection.offsets - looked
    return replace(plan, figures=figures)


async def replay(command: Command, plan: Plan) -> Plan:
    """Start the job, unless the same request has started it already."""
    assert isinstance(plan.state, tuple)
    selection, writing = plan.state
    key = command.text("once")
    job = command.jobs.asked_before(command.access, key)
    if job is None:
        job = command.jobs.add(partial(_job, command, selection, key))
        running = Replay(command.broker, job, selection, writing, command.readers)
        command.broker.spawn(running.run(), f"job {job.name}")
    return replace(plan, changes=(Change(job.name, None, "started", "the job"), *plan.changes))


def _job(command: Command, selection: Selection, key: str, name: str) -> Job:
    return Job(
        name,
        command.access,
        selection.topic.name,
        command.text("target"),
        command.broker.clock.now_ms(),
        key,
        offsets_total=selection.offsets,
    )


async def _selection(command: Command) -> Selection:
    """Return the records to read; raises KafkaError."""
    name, access = command.text("topic"), command.access
    if not access.may(READ, TOPIC, name):
        raise denied(TOPIC_DENIED, READ, TOPIC, name)
    topic = _topic(command, "topic")
    check_readable(command.broker, access, name)
    wanted = read_filter(command.text("filter"))
    if "offsets" in command.values:
        if command.values.keys() & {"partition", "from", "until_ms"}:
            raise invalid("offsets: goes without partition, from and until_ms")
        named = read_offsets(command.text("offsets"), topic)
        if wanted.partitions is not None:
            named = [each for each in named if each.partition in wanted.partitions]
        return Selection(topic, within(topic, named), wanted)
    start = read_start(command.text("from", "beginning"))
    until_ms = command.number("until_ms")
    until_ms = FOR_EVER_MS if until_ms is None else until_ms
    named_partitions = read_partitions(command.text("partition"))
    partitions = chosen(topic, named_partitions, wanted.partitions)
    ranges = await ranges_of(partitions, start, until_ms, command.readers, committed=True)
    since_ms = start.number if start.kind == "time" else -FOR_EVER_MS
    return Selection(topic, within(topic, ranges), wanted, since_ms, until_ms)


def _writing(command: Command, origin: Topic) -> Writing:
    """Return target and options of writing; raises KafkaError."""
    target, name = _topic(command, "target"), command.jobs.next_name
    if target.is_internal:
        words = f"{target.name} is a topic of the broker itself"
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, words)
    if not command.access.may(WRITE, TRANSACTIONAL_ID, name):
        raise denied(TRANSACTIONAL_ID_DENIED, WRITE, TRANSACTIONAL_ID, name)
    same = command.text("partitioning", BY_KEY) == SAME
    return Writing(origin.name, target, same, command.text("timestamps", NOW) == KEPT)


def _topic(command: Command, field: str) -> Topic:
    """Return the topic that a field names; raises KafkaError."""
    found = command.broker.catalogue.topic(command.text(field))
    if found is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{field}: there is no such topic")
    return found


# ----------------------------------------------------------------------------------------- cancel


async def plan_cancel(command: Command) -> Plan:
    """Return the job that would be cancelled."""
    job = _running(command)
    words = f"cancel {job.name}, and abort what it has written to {job.target}"
    return Plan(words, {"records": job.records})


async def cancel(command: Command, _: Plan) -> None:
    """Abort a job before its next step."""
    _running(command).cancel()


def _running(command: Command) -> Job:
    job = command.jobs.get(command.names["transactional_id"])
    if job.is_over:
        words = f"{job.name} is over: it is {job.state}"
        raise KafkaError(ErrorCode.INVALID_TXN_STATE, words)
    return job
