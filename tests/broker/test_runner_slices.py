"""Work of the runner in slices: long decisions, and large markers."""

from __future__ import annotations

import asyncio
from collections.abc import Generator

import pytest

from barnabas.broker.coordination.runner import RECORDS_PER_SLICE
from barnabas.broker.metadata.topic_names import GROUP_OFFSETS
from barnabas.coordinator.decision import (
    Decision,
    LongDecision,
    Now,
    Schedule,
    Timer,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.record_decoding import iterate_records
from barnabas.protocol.records import HEADER_BYTES, encode_batch
from barnabas.protocol.records import Record as LogRecord
from tests.broker.toy_coordinator import (
    MISTAKE,
    Coordinator,
    Decide,
    Toy,
    get,
    put,
    record_of,
)


@pytest.fixture
def opened() -> Coordinator:
    coordinator = Coordinator()
    coordinator.log.open()
    return coordinator


# ------------------------------------------------------------------------------------ large markers


async def runs(coordinator: Coordinator, turns: int) -> asyncio.Task[None]:
    """Run what was spawned for some turns of the loop."""
    task = asyncio.ensure_future(coordinator.spawned.pop(0))
    for _ in range(turns):
        await asyncio.sleep(0)
    return task


def end_transaction(coordinator: Coordinator, producer_id: int, *, commit: bool = True) -> None:
    (shard,) = coordinator.log.shards
    coordinator.runner.end_transaction(shard, producer_id, commit=commit)


def test_a_small_marker_is_taken_in_at_once(opened):
    end_transaction(opened, 0)
    opened.submit(get("k"))
    assert (opened.toy.changes, opened.answers, opened.spawned) == ([(0, True)], ["nothing"], [])


@pytest.mark.parametrize("turns", range(8))
async def test_nothing_is_read_before_the_last_part_of_a_large_marker(opened, turns, monkeypatch):
    monkeypatch.setattr("barnabas.broker.runtime.turns.SLICE_SECONDS", 0)
    opened.submit(put("k", 1, "in flight"))
    end_transaction(opened, 2)
    end_transaction(opened, 3, commit=False)
    assert opened.runner.must_wait("other")
    opened.submit(get("p2"), "p2")
    opened.submit(get("p3"), "p3")
    opened.submit(put("other", 4, "put"), "other")
    opened.submit(get("other"), "other")
    task = await runs(opened, turns)
    assert not task.done()
    opened.sync()
    opened.submit(get("k"))
    assert opened.answers == ["in flight"]
    await task
    assert opened.toy.changes == [(2, True), (3, False)]
    assert opened.answers == ["in flight", 2, 3]
    assert opened.flushed == 1
    opened.sync()
    assert opened.answers == ["in flight", 2, 3, "put", 4, 1]
    assert not opened.runner._slices
    assert not opened.runner.must_wait("other")


async def test_commands_held_by_a_long_decision_run_in_order_after_a_large_marker(
    opened, monkeypatch
):
    monkeypatch.setattr("barnabas.broker.runtime.turns.SLICE_SECONDS", 0)
    opened.submit(take(1, key="k"))
    deciding = await runs(opened, 0)
    opened.submit(put("k", 2, "first"))
    end_transaction(opened, 3)
    opened.submit(get("k"))
    opened.submit(put("k", 3, "second"))
    opened.submit(get("p3"), "p3")
    ending = await runs(opened, 0)
    await asyncio.gather(deciding, ending)
    opened.sync()
    assert sorted(map(str, opened.answers)) == ["2", "3", "first", "long", "second"]
    of_key = [each for each in opened.answers if each != 3]
    assert of_key == ["long", "first", 2, "second"]
    assert (opened.toy.numbers["k"], len(opened.runner._slices)) == (3, 0)


@pytest.mark.parametrize("turns", range(6))
async def test_a_long_decision_looks_at_nothing_while_a_marker_is_taken_in(
    opened, turns, monkeypatch
):
    monkeypatch.setattr("barnabas.broker.runtime.turns.SLICE_SECONDS", 0)
    seen: list[int] = []

    def look(toy: Toy, _now: Now) -> Decision:
        def steps() -> Generator[None, None, LongDecision]:
            for _ in range(3):
                yield
                seen.append(toy.numbers.get("p3", 0))
            return LongDecision("looked")

        return Decision(steps=steps())

    opened.submit(look)
    looking = await runs(opened, turns)
    end_transaction(opened, 3)
    ending = await runs(opened, 1)
    await asyncio.gather(looking, ending)
    assert opened.answers == ["looked"]
    assert set(seen) <= {0, 3}, "a part of the transaction was seen"


@pytest.mark.parametrize("turns", range(4))
async def test_a_topic_that_goes_takes_what_waits_for_a_marker_along(turns, monkeypatch):
    monkeypatch.setattr("barnabas.broker.runtime.turns.SLICE_SECONDS", 0)
    opened = await asyncio.to_thread(Coordinator)
    opened.log.open()
    opened.submit(take(1, 2))
    looking = await runs(opened, 1)
    end_transaction(opened, 5)
    opened.submit(get("k"))
    opened.submit(put("other", 1), "other")
    ending = await runs(opened, turns)
    opened.delete_topic()
    assert not opened.log.is_coordinator()
    while not (looking.done() and ending.done()):
        await asyncio.sleep(0)
        opened.sync()
    assert opened.answers == [ErrorCode.NOT_COORDINATOR] * 3
    assert opened.fatal == []


async def test_a_mistake_in_taking_in_a_large_marker_stops_the_broker(opened):
    end_transaction(opened, MISTAKE)
    opened.submit(get("k"))
    await runs(opened, 3)
    assert [type(each) for each in opened.fatal] == [AssertionError]
    assert opened.answers == []


# ----------------------------------------------------------------------------------- long decisions


def take(*numbers: int, key: str = "k", fails: bool = False) -> Decide:
    """A decision in as many steps as there are numbers; each is a record."""

    def decide(_toy: Toy, _now: Now) -> Decision:
        def steps() -> Generator[None, None, LongDecision]:
            for _ in numbers:
                yield
            if fails:
                raise ZeroDivisionError
            records = tuple(record_of(key, number) for number in numbers)
            return LongDecision("long", records, (Schedule(Timer(key, "long"), 1 << 40),))

        return Decision(steps=steps())

    return decide


async def ends(coordinator: Coordinator, *, syncs: bool = True) -> None:
    """Run what was spawned to its end, with a disk that answers at once."""
    task = asyncio.ensure_future(coordinator.spawned.pop())
    while not task.done():
        await asyncio.sleep(0)
        if syncs:
            coordinator.sync()
    await task


async def test_long_decision_holds_its_key_until_it_is_applied(opened):
    opened.submit(put("k", 1))
    opened.submit(take(2, 3, 4))
    assert opened.runner.must_wait("k")
    opened.submit(get("k"))
    opened.submit(put("k", 5, "last"))
    opened.submit(get("other"), "other")
    opened.sync()
    assert opened.answers == ["done", "nothing"]
    await ends(opened, syncs=False)
    assert opened.toy.offsets == [0, 1, 2, 3, 4]
    assert opened.answers == ["done", "nothing"], "it is not durable"
    opened.sync()
    assert opened.answers == ["done", "nothing", "long", 4, "last"]
    assert opened.flushed == 1
    (shard,) = opened.log.shards
    assert [*opened.runner._timers._running[shard]] == [Timer("k", "long")]
    assert len(opened.runner._slices) == 0


async def test_a_long_decision_is_one_batch_and_applied_in_slices(opened):
    numbers = range(3 * RECORDS_PER_SLICE)
    opened.log._batch_max_bytes = 1 << 20
    opened.submit(take(*numbers))
    await ends(opened)
    opened.sync()
    assert (opened.answers, opened.toy.numbers) == (["long"], {"k": numbers[-1]})
    log = opened.administration.catalogue.partition(GROUP_OFFSETS, 0).log
    ((_, header, batch),) = log.segments[0].scan_checked(0)
    written = [*iterate_records(batch, limit_bytes=1 << 20)]
    whole = [
        LogRecord(number, header.base_timestamp, *record_of("k", number).encode(), ())
        for number in numbers
    ]
    assert written == whole
    assert bytes(batch[HEADER_BYTES:]) == encode_batch(whole)[HEADER_BYTES:]
    again = opened.restarted()
    assert again.toy.numbers == opened.toy.numbers
    assert again.log.replay.records == len(numbers)


async def test_nothing_of_a_long_decision_is_left_that_is_too_large(opened):
    opened.submit(take(*range(1000)))
    opened.submit(get("k"))
    await ends(opened)
    assert opened.answers == [ErrorCode.UNKNOWN_SERVER_ERROR, "nothing"]
    assert opened.administration.catalogue.partition(GROUP_OFFSETS, 0).log.next_offset == 0


async def test_a_mistake_in_a_step_fails_its_command_alone(opened, caplog):
    opened.submit(take(1, 2, fails=True))
    opened.submit(put("k", 7))
    await ends(opened)
    opened.sync()
    assert opened.answers == [ErrorCode.UNKNOWN_SERVER_ERROR, "done"]
    assert "command failed" in caplog.text
    assert opened.fatal == []


async def test_a_mistake_in_taking_in_a_long_decision_stops_the_broker(opened):
    opened.submit(take(1, -2))
    await ends(opened)
    assert [type(each) for each in opened.fatal] == [AssertionError]
    assert opened.answers == []


@pytest.mark.parametrize("turns", range(8))
async def test_long_decision_of_a_deleted_topic_is_dropped(turns, monkeypatch):
    monkeypatch.setattr("barnabas.broker.coordination.runner.RECORDS_PER_SLICE", 1)
    monkeypatch.setattr("barnabas.broker.runtime.turns.SLICE_SECONDS", 0)
    opened = await asyncio.to_thread(Coordinator)
    opened.log.open()
    opened.submit(take(1, 2, 3))
    opened.submit(get("k"))
    task = asyncio.ensure_future(opened.spawned.pop())
    for _ in range(turns):
        await asyncio.sleep(0)
        opened.sync()
    assert not task.done()
    opened.delete_topic()
    assert not opened.log.is_coordinator()
    while not task.done():
        await asyncio.sleep(0)
        opened.sync()
    await task
    first, second = opened.answers
    assert first == ErrorCode.NOT_COORDINATOR
    assert second in {ErrorCode.NOT_COORDINATOR, "nothing"}
    assert opened.fatal == []


# --------------------------------------------------------------------------------- what is lost


@pytest.mark.parametrize("turns", [*range(10), None])
async def test_long_decision_of_a_lost_partition_is_refused_in_the_next_turn(turns, monkeypatch):
    monkeypatch.setattr("barnabas.broker.coordination.runner.RECORDS_PER_SLICE", 1)
    monkeypatch.setattr("barnabas.broker.runtime.turns.SLICE_SECONDS", 0)
    opened = await asyncio.to_thread(Coordinator)
    opened.log.open()
    opened.submit(take(1, 2, 3))
    opened.submit(get("k"))
    (shard,) = opened.log.shards
    task = asyncio.ensure_future(opened.spawned.pop())
    if turns is None:
        while not shard.log.next_offset:  # noqa: ASYNC110  Then it is on its way to the disk.
            await asyncio.sleep(0)
    else:
        for _ in range(turns):
            await asyncio.sleep(0)
    assert not task.done()
    opened.log.lose(0)
    assert opened.answers == [ErrorCode.NOT_COORDINATOR], "the command that it holds"
    applied = len(shard.machine.offsets)
    while not task.done():
        await asyncio.sleep(0)
        opened.sync()
    await task
    assert opened.answers == [ErrorCode.NOT_COORDINATOR] * 2
    assert len(shard.machine.offsets) == applied < 3
    assert len(opened.runner._slices) == len(opened.runner._timers) == 0
    opened.log.gain(0)
    await opened.spawned.pop()
    written = opened.administration.catalogue.partition(GROUP_OFFSETS, 0).log.next_offset
    assert opened.toy.numbers == ({"k": 3} if written else {})
    assert opened.fatal == []


@pytest.mark.parametrize("turns", range(4))
async def test_a_large_marker_of_a_partition_that_is_lost_ends(opened, turns, monkeypatch):
    monkeypatch.setattr("barnabas.broker.runtime.turns.SLICE_SECONDS", 0)
    (shard,) = opened.log.shards
    opened.submit(take(1, 2))
    looking = await runs(opened, 1)
    end_transaction(opened, 5)
    end_transaction(opened, 0)
    opened.submit(get("k"))
    opened.submit(put("other", 1), "other")
    ending = await runs(opened, turns)
    opened.log.lose(0)
    assert opened.answers == [ErrorCode.NOT_COORDINATOR] * 2, "the commands that are held"
    assert not opened.runner._slices
    taken_in = dict(shard.machine.numbers)
    opened.runner.end_transaction(shard, 7, commit=True)
    await asyncio.gather(looking, ending)
    assert opened.spawned == []
    assert shard.machine.numbers == taken_in
    assert shard.machine.changes == [(0, True)]
    assert opened.answers == [ErrorCode.NOT_COORDINATOR] * 3
    assert opened.fatal == []
