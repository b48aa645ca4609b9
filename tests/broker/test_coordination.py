"""What runs the coordinators: lanes, parked answers, timers, refusals, replay, topics that go.

The machine here is a toy whose records are offset commits: a key has one number. The journal
commits when the test says ``sync``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any, Final

import pytest

from barnabas.broker.coordination.key_hash import java_hash
from barnabas.broker.coordination.runner import RECORDS_PER_SLICE, RETRY_MS, Coordination
from barnabas.broker.coordination.shard import Shard
from barnabas.broker.runtime.clock import ManualClock
from barnabas.broker.topics.topic_names import GROUP_OFFSETS
from barnabas.coordinator.decision import (
    Answer,
    Cancel,
    Decision,
    LongDecision,
    Now,
    Record,
    Schedule,
    Timer,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offset_commit_record import (
    OFFSET_COMMIT_RECORD,
    OffsetCommitKey,
    OffsetCommitValue,
)
from barnabas.protocol.records import HEADER_BYTES, control_batch, encode_batch, iterate_records
from barnabas.protocol.records import Record as LogRecord
from tests.broker.harness import Administration
from tests.storage.engines import InlineEngine

MISTAKE: Final = 1000
"""A producer whose marker cannot be taken in."""

Decide = Callable[["Toy", Now], Decision]


@dataclass(frozen=True)
class Do:
    """A command that is decided by a function of the test's."""

    decide: Decide
    shares_lane: bool = False
    ticket: int | None = None


@dataclass(frozen=True)
class Expired:
    """A timer that has come; adds one to its key."""

    timer: Timer


class Toy:
    """Numbers by key, a list of what was changed, and answers that wait."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.offsets: list[int] = []
        self.changes: list[object] = []
        self.timers: tuple[Timer, ...] = ()

    def decide(self, command: Any, now: Now) -> Decision:
        if isinstance(command, Expired):
            return put(command.timer.key, self.numbers.get(command.timer.key, 0) + 1)(self, now)
        return command.decide(self, now)

    def apply(self, record: Record, offset: int) -> None:
        if record.value is None:
            self.numbers.pop(record.key.group, None)
        else:
            assert record.value.offset >= 0, "a mistake in apply"
            self.numbers[record.key.group] = record.value.offset
        self.offsets.append(offset)

    def end_transaction(self, producer_id: int, *, commit: bool) -> Iterator[None] | None:
        """As many steps as the producer's number says, counted in its key."""
        if producer_id == 0:
            self.changes.append((producer_id, commit))
            return None
        return self._end(producer_id, commit=commit)

    def _end(self, producer_id: int, *, commit: bool) -> Iterator[None]:
        for number in range(producer_id):
            assert producer_id < MISTAKE, "a mistake in taking in a marker"
            self.numbers[f"p{producer_id}"] = number + 1
            yield
        self.changes.append((producer_id, commit))

    def change(self, change: object) -> None:
        assert change != "mistake"
        self.changes.append(change)

    def begin(self, now: Now) -> tuple[Schedule, ...]:
        return tuple(
            Schedule(Timer(key, "begun"), now.tick_ms + 1000)
            for key, number in self.numbers.items()
            if number == 99
        )

    def keys(self) -> list[str]:
        return list(self.numbers)


def record_of(key: str, number: int | None) -> Record:
    value = None if number is None else OffsetCommitValue(number)
    return Record(OFFSET_COMMIT_RECORD, OffsetCommitKey(key, "topic", 0), value, 4)


def put(key: str, number: int | None, response: object = "done", **more: Any) -> Decide:
    return lambda _toy, _now: Decision(response, (record_of(key, number),), **more)


def get(key: str) -> Decide:
    return lambda toy, _now: Decision(toy.numbers.get(key, "nothing"))


def say(**more: Any) -> Decide:
    return lambda _toy, _now: Decision(**more)


def fail(_toy: Toy, _now: Now) -> Decision:
    raise ZeroDivisionError


class Coordinator:
    """A coordination over a real log on a simulated disk."""

    def __init__(self, partitions: int = 1, administration: Administration | None = None) -> None:
        self.administration = administration or Administration(engine=InlineEngine())
        if administration is None:
            self.create_topic(partitions)
        self.clock = ManualClock(1_000_000)
        self.fatal: list[BaseException] = []
        self.flushed = 0
        self.spawned: list[Any] = []
        self.coordination = self.make(self.clock)
        self.answers: list[object] = []

    def make(
        self, clock: ManualClock, batch_max_bytes: int = 10_000, *, latest_counts: bool = False
    ) -> Coordination:
        return Coordination(
            GROUP_OFFSETS,
            Toy,
            Expired,
            catalogue=self.administration.catalogue,
            clock=clock,
            after=self._count_flush,
            spawn=lambda coroutine, _name: self.spawned.append(coroutine),
            on_fatal=self.fatal.append,
            batch_max_bytes=batch_max_bytes,
            latest_counts=latest_counts,
        )

    def _count_flush(self) -> None:
        self.flushed += 1

    def create_topic(self, partitions: int) -> None:
        catalogue = self.administration.catalogue
        asyncio.run(
            catalogue.create_topic(GROUP_OFFSETS, partitions, {"cleanup.policy": "compact"})
        )

    def delete_topic(self) -> None:
        catalogue = self.administration.catalogue
        asyncio.run(catalogue.delete_topic(catalogue.topic(GROUP_OFFSETS).topic_id))

    @property
    def toy(self) -> Any:
        (machine,) = self.coordination.machines
        return machine

    def ask(self, decide: Decide, key: str = "k", **more: Any) -> None:
        assert not self.coordination.refusal(key)
        self.coordination.submit(key, Do(decide, **more), self.answers.append, lambda code: code)

    def sync(self) -> None:
        self.administration.step()

    def restarted(self) -> Coordinator:
        again = Coordinator(administration=self.administration)
        again.coordination.open()
        return again


@pytest.fixture
def opened() -> Coordinator:
    coordinator = Coordinator()
    coordinator.coordination.open()
    return coordinator


# ----------------------------------------------------------------------------------- large markers


async def runs(coordinator: Coordinator, turns: int) -> asyncio.Task[None]:
    """Run what was spawned for some turns of the loop."""
    task = asyncio.ensure_future(coordinator.spawned.pop(0))
    for _ in range(turns):
        await asyncio.sleep(0)
    return task


def end_transaction(coordinator: Coordinator, producer_id: int, *, commit: bool = True) -> None:
    (shard,) = coordination_shards(coordinator)
    coordinator.coordination.end_transaction(shard, producer_id, commit=commit)


def coordination_shards(coordinator: Coordinator) -> list[Shard]:
    return coordinator.coordination._shards


def test_a_small_marker_is_taken_in_at_once(opened):
    end_transaction(opened, 0)
    opened.ask(get("k"))
    assert (opened.toy.changes, opened.answers, opened.spawned) == ([(0, True)], ["nothing"], [])


@pytest.mark.parametrize("turns", range(8))
async def test_nothing_is_read_before_the_last_part_of_a_large_marker(opened, turns, monkeypatch):
    monkeypatch.setattr("barnabas.broker.runtime.turns.SLICE_SECONDS", 0)
    opened.ask(put("k", 1, "in flight"))
    end_transaction(opened, 2)
    end_transaction(opened, 3, commit=False)
    assert opened.coordination.must_wait("other", Do(get("other")))
    opened.ask(get("p2"), "p2")
    opened.ask(get("p3"), "p3")
    opened.ask(put("other", 4, "put"), "other")
    opened.ask(get("other"), "other")
    task = await runs(opened, turns)
    assert not task.done()
    opened.sync()
    opened.ask(get("k"))
    assert opened.answers == ["in flight"]
    await task
    assert opened.toy.changes == [(2, True), (3, False)]
    assert opened.answers == ["in flight", 2, 3, 1]
    assert opened.flushed == 1
    opened.sync()
    assert opened.answers == ["in flight", 2, 3, 1, "put", 4]
    assert not coordination_shards(opened)[0].lanes
    assert not opened.coordination.must_wait("other", Do(get("other")))


async def test_who_waits_in_a_lane_goes_on_in_order_behind_a_large_marker(opened, monkeypatch):
    monkeypatch.setattr("barnabas.broker.runtime.turns.SLICE_SECONDS", 0)
    opened.ask(put("k", 1, "first"))
    opened.ask(get("k"))
    opened.ask(put("k", 2, "second"))
    end_transaction(opened, 3)
    opened.sync()
    opened.ask(get("k"))
    assert opened.answers == ["first"]
    task = await runs(opened, 20)
    assert task.done()
    opened.sync()
    assert opened.answers == ["first", 1, "second", 2]


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

    opened.ask(look)
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
    opened.coordination.open()
    opened.ask(take(1, 2))
    looking = await runs(opened, 1)
    end_transaction(opened, 5)
    opened.ask(get("k"))
    opened.ask(put("other", 1), "other")
    ending = await runs(opened, turns)
    await asyncio.to_thread(opened.delete_topic)
    assert not opened.coordination.is_coordinator()
    while not (looking.done() and ending.done()):
        await asyncio.sleep(0)
        opened.sync()
    assert opened.answers == [ErrorCode.NOT_COORDINATOR] * 3
    assert opened.fatal == []


async def test_a_mistake_in_taking_in_a_large_marker_stops_the_broker(opened):
    end_transaction(opened, MISTAKE)
    opened.ask(get("k"))
    await runs(opened, 3)
    assert [type(each) for each in opened.fatal] == [AssertionError]
    assert opened.answers == []


# ---------------------------------------------------------------------------------- long decisions


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


async def test_a_long_decision_has_its_key_for_itself(opened):
    opened.ask(put("k", 1), shares_lane=True)
    opened.ask(take(2, 3, 4))
    assert opened.spawned == []
    opened.sync()
    opened.ask(get("k"), shares_lane=True)
    opened.ask(put("k", 5, "last"), shares_lane=True)
    opened.ask(get("other"), "other")
    assert opened.answers == ["done", "nothing"]
    await ends(opened)
    opened.sync()
    assert opened.answers == ["done", "nothing", "long", 4, "last"]
    assert opened.flushed == 1
    assert opened.toy.offsets == [0, 1, 2, 3, 4]
    assert [*opened.coordination._timers] == [Timer("k", "long")]
    assert len(opened.coordination._shards[0].lanes) == 0


async def test_a_long_decision_is_one_batch_and_applied_in_slices(opened):
    numbers = range(3 * RECORDS_PER_SLICE)
    opened.coordination._batch_max_bytes = 1 << 20
    opened.ask(take(*numbers))
    await ends(opened)
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
    assert again.coordination.records_replayed == len(numbers)


async def test_nothing_of_a_long_decision_is_left_that_is_too_large(opened):
    opened.ask(take(*range(1000)))
    opened.ask(get("k"))
    await ends(opened)
    assert opened.answers == [ErrorCode.UNKNOWN_SERVER_ERROR, "nothing"]
    assert opened.administration.catalogue.partition(GROUP_OFFSETS, 0).log.next_offset == 0


async def test_a_mistake_in_a_step_fails_its_command_alone(opened, caplog):
    opened.ask(take(1, 2, fails=True))
    opened.ask(put("k", 7))
    await ends(opened)
    opened.sync()
    assert opened.answers == [ErrorCode.UNKNOWN_SERVER_ERROR, "done"]
    assert "command failed" in caplog.text
    assert opened.fatal == []


async def test_a_mistake_in_taking_in_a_long_decision_stops_the_broker(opened):
    opened.ask(take(1, -2))
    await ends(opened)
    assert [type(each) for each in opened.fatal] == [AssertionError]
    assert opened.answers == []


@pytest.mark.parametrize("turns", range(8))
async def test_a_long_decision_whose_topic_goes_comes_to_nothing(turns, monkeypatch):
    monkeypatch.setattr("barnabas.broker.coordination.runner.RECORDS_PER_SLICE", 1)
    monkeypatch.setattr("barnabas.broker.runtime.turns.SLICE_SECONDS", 0)
    opened = await asyncio.to_thread(Coordinator)
    opened.coordination.open()
    opened.ask(take(1, 2, 3))
    opened.ask(get("k"))
    task = asyncio.ensure_future(opened.spawned.pop())
    for _ in range(turns):
        await asyncio.sleep(0)
        opened.sync()
    assert not task.done()
    await asyncio.to_thread(opened.delete_topic)
    assert not opened.coordination.is_coordinator()
    while not task.done():
        await asyncio.sleep(0)
        opened.sync()
    await task
    first, second = opened.answers
    assert first == ErrorCode.NOT_COORDINATOR
    assert second in {ErrorCode.NOT_COORDINATOR, "nothing"}
    assert opened.fatal == []


# ------------------------------------------------------------------------------------------- lanes


def test_nothing_shows_before_it_is_durable(opened):
    opened.ask(put("k", 1, changes=("changed",)))
    assert (opened.answers, opened.toy.numbers, opened.toy.changes) == ([], {}, [])
    opened.sync()
    assert (opened.answers, opened.toy.numbers) == (["done"], {"k": 1})
    assert opened.toy.changes == ["changed"]


def test_commands_for_a_key_wait_for_each_other_in_order(opened):
    opened.ask(put("k", 1))
    opened.ask(get("k"))
    opened.ask(lambda toy, now: put("k", toy.numbers["k"] + 1, "second")(toy, now))
    opened.ask(get("k"))
    assert opened.answers == []
    opened.sync()
    assert opened.answers == ["done", 1, "second", 2]
    assert opened.toy.offsets == [0, 1]


def test_other_keys_do_not_wait_and_share_a_sync(opened):
    opened.ask(put("k", 1))
    opened.ask(get("other"), key="other")
    assert opened.answers == ["nothing"]
    opened.ask(put("other", 2, "other"), key="other")
    syncs = opened.administration.logs.journal.batches
    opened.sync()
    assert opened.answers == ["nothing", "done", "other"]
    assert opened.administration.logs.journal.batches == syncs + 2


def test_commands_that_share_a_lane_do_not_wait_for_each_other(opened):
    opened.ask(put("k", 1, "first"), shares_lane=True)
    opened.ask(put("k", 2, "second"), shares_lane=True)
    opened.ask(get("k"), shares_lane=True)
    assert opened.answers == ["nothing"], "it sees what is durable, not what is under way"
    opened.sync()
    assert opened.answers == ["nothing", "first", "second"]
    assert opened.toy.numbers == {"k": 2}


def test_who_does_not_share_waits_and_nobody_overtakes(opened):
    opened.ask(put("k", 1, "first"), shares_lane=True)
    opened.ask(get("k"))
    opened.ask(put("k", 2, "second"), shares_lane=True)
    assert opened.answers == []
    opened.sync()
    assert opened.answers == ["first", 1, "second"]


def test_what_shares_waits_for_what_does_not(opened):
    opened.ask(put("k", 1, "alone"))
    opened.ask(get("k"), shares_lane=True)
    assert opened.answers == []
    opened.sync()
    assert opened.answers == ["alone", 1]


def test_keys_fall_to_partitions_by_javas_hash():
    coordinator = Coordinator(partitions=50)
    coordinator.coordination.open()
    # Computed by java.lang.String.hashCode; the third one's is Integer.MIN_VALUE.
    for key, value in (("group", 98629247), ("naïve-😀", 1285319973), ("polygenelubricants", 0)):
        assert java_hash(key) == value
        assert coordinator.coordination.partition_of(key) == value % 50


# ---------------------------------------------------------------------------------- parked answers


def test_a_parked_answer_comes_with_a_later_decision(opened):
    first, second = opened.coordination.new_ticket(), opened.coordination.new_ticket()
    opened.ask(say(changes=("waits",)), ticket=first)
    opened.ask(put("k", 1, response=None), ticket=second)
    opened.sync()
    assert opened.answers == []
    effects = (Answer(second, "second"), Answer(first, "first"))
    opened.ask(put("k", 2, "last", effects=effects))
    assert opened.answers == []
    opened.sync()
    assert opened.answers == ["second", "first", "last"]


# ------------------------------------------------------------------------------------------ timers


def schedule(name: str, after_ms: int, **more: Any) -> Decide:
    return lambda _toy, now: Decision(
        "ok", effects=(Schedule(Timer("k", name), now.tick_ms + after_ms),), **more
    )


def test_a_timer_comes_back_as_a_command_and_answers_leave_then(opened):
    opened.ask(schedule("t", 500))
    opened.clock.advance(milliseconds=499)
    assert opened.flushed == 0
    opened.clock.advance(milliseconds=1)
    assert opened.flushed == 1
    opened.sync()
    assert opened.toy.numbers == {"k": 1}
    opened.clock.advance(hours=1)
    opened.sync()
    assert opened.toy.numbers == {"k": 1}, "once"


def test_a_timer_is_scheduled_again_and_cancelled(opened):
    opened.ask(schedule("t", 500))
    opened.ask(schedule("t", 800))
    opened.clock.advance(milliseconds=700)
    assert opened.flushed == 0
    opened.ask(say(response="ok", effects=(Cancel(Timer("k", "t")), Cancel(Timer("k", "none")))))
    opened.clock.advance(hours=1)
    assert opened.flushed == 0


def test_a_timer_is_only_set_when_its_decision_is_durable(opened):
    opened.ask(put("k", 5, effects=(Schedule(Timer("k", "t"), 0),)))
    opened.clock.advance(hours=1)
    assert opened.flushed == 0
    opened.sync()
    opened.clock.advance(milliseconds=0)
    opened.sync()
    assert opened.toy.numbers == {"k": 6}


def test_a_timer_that_is_set_again_while_its_command_waits_does_nothing(opened):
    opened.ask(schedule("t", 500))
    opened.ask(put("k", 1, effects=(Schedule(Timer("k", "t"), 10_000),)))
    opened.clock.advance(milliseconds=500)  # Its command waits in the lane.
    opened.sync()
    assert opened.toy.numbers == {"k": 1}
    opened.clock.advance(milliseconds=9_500)
    opened.sync()
    assert opened.toy.numbers == {"k": 2}


def test_a_timers_command_comes_again_while_the_disk_is_full(opened):
    opened.ask(schedule("t", 500))
    opened.administration.logs.exhausted = True
    opened.clock.advance(milliseconds=500 + 3 * RETRY_MS)
    opened.administration.logs.exhausted = False
    opened.sync()
    assert opened.toy.numbers == {}
    opened.clock.advance(milliseconds=RETRY_MS)
    opened.sync()
    assert opened.toy.numbers == {"k": 1}


# ---------------------------------------------------------------------------------------- refusals


def test_a_full_disk_refuses_without_a_trace_and_reads_go_on(opened):
    opened.ask(put("k", 1))
    opened.sync()
    opened.administration.logs.exhausted = True
    opened.ask(put("k", 2, changes=("trace",)))
    opened.ask(get("k"))
    assert opened.answers == ["done", ErrorCode.COORDINATOR_NOT_AVAILABLE, 1]
    assert opened.toy.changes == []
    opened.administration.logs.exhausted = False
    opened.ask(put("k", 3))
    opened.sync()
    assert opened.toy.numbers == {"k": 3}
    assert opened.toy.offsets == [0, 1]


def test_a_disk_that_fills_while_commands_wait_refuses_them_one_by_one(opened):
    opened.ask(put("k", 1))
    opened.ask(put("k", 2))
    opened.ask(put("k", 3))
    opened.administration.logs.exhausted = True
    opened.sync()
    full = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert opened.answers == ["done", full, full]
    opened.ask(get("k"))
    assert opened.answers[3:] == [1]


def test_a_bug_in_deciding_fails_its_command_only(opened, caplog):
    opened.ask(put("k", 1))
    opened.ask(fail)
    opened.ask(get("k"))
    with caplog.at_level(logging.ERROR):
        opened.sync()
    assert opened.answers == ["done", ErrorCode.UNKNOWN_SERVER_ERROR, 1]
    assert opened.fatal == []
    assert "command failed" in caplog.text
    assert "key=k" in caplog.text


def test_a_record_that_cannot_be_written_fails_its_command_only(opened, caplog):
    opened.ask(put("k" * 40_000, 1))
    assert opened.answers == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert "command failed" in caplog.text
    opened.ask(put("k", 1))
    opened.sync()
    assert opened.toy.offsets == [0]


def test_a_decision_too_large_for_the_journal_is_refused(opened, caplog):
    records = tuple(record_of("k", number) for number in range(1000))
    opened.ask(say(response="done", records=records))
    assert opened.answers == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert "decision too large" in caplog.text
    opened.sync()
    assert opened.toy.offsets == []


def test_a_mistake_in_taking_in_what_is_durable_stops_the_broker(opened):
    opened.ask(put("k", -5))
    opened.ask(get("k"))
    opened.sync()
    assert [type(error) for error in opened.fatal] == [AssertionError]
    assert opened.answers == [], "nothing is answered any more (D9)"


def test_a_mistake_in_a_change_stops_the_broker(opened):
    opened.ask(say(response="done", changes=("mistake",)))
    assert [type(error) for error in opened.fatal] == [AssertionError]
    assert opened.answers == []


def test_an_answer_that_fails_holds_nobody_up(opened, caplog):
    def stumble(_response: object) -> None:
        raise ZeroDivisionError

    opened.coordination.submit("k", Do(put("k", 1)), stumble, lambda code: code)
    opened.ask(get("k"))
    opened.ask(put("other", 2), key="other")
    opened.sync()
    assert sorted(map(str, opened.answers)) == ["1", "done"]
    assert opened.fatal == []
    assert "answer failed" in caplog.text


# ------------------------------------------------------------------------------------------ replay


def test_a_start_replays_what_was_durable(opened):
    for number in (1, 2, 3):
        opened.ask(put("k", number))
    opened.ask(put("other", 7), key="other")
    opened.ask(put("gone", 8), key="gone")
    opened.ask(put("gone", None), key="gone")
    opened.sync()
    again = opened.restarted()
    assert again.toy.numbers == opened.toy.numbers == {"k": 3, "other": 7}
    assert again.toy.offsets == opened.toy.offsets
    assert again.coordination.records_replayed == 6
    assert again.coordination.is_coordinator()
    assert not again.coordination.is_loading


def test_a_start_reads_the_last_record_of_each_key_where_that_says_it_all(opened):
    for number in (1, 2, 3):
        opened.ask(put("k", number))
    opened.ask(put("gone", 8), key="gone")
    opened.ask(put("gone", None), key="gone")
    opened.sync()
    again = opened.make(ManualClock(), latest_counts=True)
    again.open()
    (machine,) = again.machines
    assert isinstance(machine, Toy)
    assert machine.numbers == {"k": 3}
    assert len(machine.offsets) == 2 < len(opened.toy.offsets)
    assert again.records_replayed == 2
    # A record without a key is refused there as everywhere.
    append(opened, encode_batch([LogRecord(0, 0, None, b"value", ())]))
    spoiled = opened.make(ManualClock(), latest_counts=True)
    spoiled.open()
    assert spoiled.is_loading
    assert spoiled.replayed.is_set()
    assert spoiled.unreadable == [f"{spoiled.topic_name}-0"]


def test_a_start_sets_the_timers_of_what_it_found(opened):
    opened.ask(put("k", 99))
    opened.sync()
    again = opened.restarted()
    again.clock.advance(milliseconds=1000)
    again.sync()
    assert again.toy.numbers == {"k": 100}


def append(opened: Coordinator, batch: bytes) -> None:
    log = opened.administration.catalogue.partition(GROUP_OFFSETS, 0).log
    log.append_records(memoryview(bytearray(batch)))
    opened.sync()


def test_a_start_passes_over_unknown_kinds_and_tells_of_markers(opened, caplog):
    for commit in (True, False):
        append(opened, control_batch(1, 0, commit=commit, coordinator_epoch=0, timestamp=0))
    append(opened, encode_batch([LogRecord(0, 0, b"\x7f\x00unknown", b"value", ())]))
    opened.ask(put("k", 1))
    opened.sync()
    again = opened.restarted()
    assert again.toy.numbers == {"p1": 1, "k": 1}
    assert again.toy.changes == [(1, True), (1, False)]
    assert "record of unknown kind skipped" in caplog.text


class SlowClock(ManualClock):
    """Time passes with every look at it."""

    def monotonic(self) -> float:
        self._skipped += 0.01
        return super().monotonic()


def test_what_takes_long_is_replayed_in_the_background():
    coordinator = Coordinator(partitions=8)
    coordinator.coordination.open()
    keys = [f"key-{number}" for number in range(40)]
    for key in keys:
        coordinator.ask(put(key, 1), key=key)
    coordinator.sync()
    slow = coordinator.make(SlowClock(0))
    slow.open()
    assert slow.is_loading
    assert not slow.replayed.is_set()
    assert slow.unreadable == []
    told = slow.describe_replay()
    assert told.startswith(f"{slow.topic_name}: {slow.partitions_replayed} of 8 partitions, ")
    assert 0 < slow.partitions_replayed < 8
    refusals = {key: slow.refusal(key) for key in keys}
    assert set(refusals.values()) == {ErrorCode.NONE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
    for key, code in refusals.items():
        keys_there = slow.machine_of(key).keys()
        assert code or key in keys_there
    (loading,) = coordinator.spawned
    asyncio.run(loading)
    assert not slow.is_loading
    assert {slow.refusal(key) for key in keys} == {ErrorCode.NONE}
    assert slow.records_replayed == len(keys)
    assert slow.replayed.is_set()
    assert slow.partitions_replayed == 8


# ------------------------------------------------------------------------- the topic comes and goes


def test_without_its_topic_there_is_no_coordinator_and_with_it_at_once():
    coordinator = Coordinator(administration=Administration(engine=InlineEngine()))
    coordinator.coordination.open()
    assert coordinator.coordination.refusal("k") == ErrorCode.NOT_COORDINATOR
    asyncio.run(coordinator.coordination.ensure_topic(3, {}))
    asyncio.run(coordinator.coordination.ensure_topic(4, {}))
    assert coordinator.coordination.refusal("k") == ErrorCode.NONE
    assert len(coordinator.coordination.machines) == 3
    coordinator.ask(put("k", 1))
    coordinator.sync()
    assert coordinator.answers == ["done"]


def test_a_topic_that_is_deleted_takes_everything_with_it(opened):
    gone = ErrorCode.NOT_COORDINATOR
    ticket = opened.coordination.new_ticket()
    opened.ask(schedule("t", 500))
    opened.ask(say(changes=("parked",)), ticket=ticket)
    late = (Answer(ticket, "late"), Schedule(Timer("k", "u"), 0))
    opened.ask(put("k", 1, "under way", effects=late))
    opened.ask(get("k"))
    opened.delete_topic()
    assert opened.coordination.refusal("k") == gone
    assert opened.answers == ["ok", gone, gone], "parked, and waiting in the lane"
    opened.sync()
    assert opened.answers == ["ok", gone, gone, gone]
    opened.clock.advance(hours=1)
    assert (opened.flushed, opened.fatal) == (0, [])


def test_a_topic_made_again_begins_with_nothing(opened):
    opened.ask(put("k", 1))
    opened.sync()
    opened.delete_topic()
    opened.create_topic(2)
    assert opened.coordination.refusal("k") == ErrorCode.NONE
    opened.ask(get("k"))
    opened.ask(put("k", 5))
    opened.sync()
    assert opened.answers == ["done", "nothing", "done"]


def test_an_append_to_a_deleted_topic_is_no_longer_coordinated_here(opened):
    opened.ask(schedule("t", 500))
    opened.delete_topic()
    # Nobody has asked since: the timer comes first.
    opened.clock.advance(milliseconds=500)
    opened.coordination.submit("k", Do(put("k", 1)), opened.answers.append, lambda code: code)
    assert opened.answers == ["ok", ErrorCode.NOT_COORDINATOR]
    opened.clock.advance(hours=1)
    assert opened.flushed == 1, "a timer of what is gone does not come again"
