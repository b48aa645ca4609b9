"""The topic of a coordinator: replay, and a topic that comes and goes."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.broker.runtime.clock import ManualClock
from barnabas.broker.topics.topic_names import GROUP_OFFSETS
from barnabas.coordinator.decision import (
    Answer,
    Schedule,
    Timer,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records import Record as LogRecord
from barnabas.protocol.records import control_batch, encode_batch
from tests.broker.harness import Administration
from tests.broker.toy_coordinator import (
    Coordinator,
    get,
    put,
    record_of,
    say,
    schedule,
)
from tests.storage.engines import InlineEngine


@pytest.fixture
def opened() -> Coordinator:
    coordinator = Coordinator()
    coordinator.log.open()
    return coordinator


# ------------------------------------------------------------------------------------------- replay


def test_a_start_replays_what_was_durable(opened):
    for number in (1, 2, 3):
        opened.submit(put("k", number))
    opened.submit(put("other", 7), key="other")
    opened.submit(put("gone", 8), key="gone")
    opened.submit(put("gone", None), key="gone")
    opened.sync()
    again = opened.restarted()
    assert again.toy.numbers == opened.toy.numbers == {"k": 3, "other": 7}
    assert again.toy.offsets == opened.toy.offsets
    assert again.log.replay.records == 6
    assert again.log.is_coordinator()
    assert not again.log.is_loading


def test_a_start_reads_the_last_record_of_each_key_where_that_says_it_all(opened):
    for number in (1, 2, 3):
        opened.submit(put("k", number))
    opened.submit(put("gone", 8), key="gone")
    opened.submit(put("gone", None), key="gone")
    opened.sync()
    again = opened.restarted(latest_only=True)
    assert again.toy.numbers == {"k": 3}
    assert len(again.toy.offsets) == 2 < len(opened.toy.offsets)
    assert again.log.replay.records == 2
    # A record without a key is refused there as everywhere.
    append(opened, encode_batch([LogRecord(0, 0, None, b"value", ())]))
    spoiled = opened.restarted(latest_only=True).log
    assert spoiled.is_loading
    assert spoiled.replayed.is_set()
    assert spoiled.unreadable == [f"{spoiled.topic_name}-0"]


def test_a_start_sets_the_timers_of_what_it_found(opened):
    opened.submit(put("k", 99))
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
    opened.submit(put("k", 1))
    opened.sync()
    again = opened.restarted()
    assert again.toy.numbers == {"p1": 1, "k": 1}
    assert again.toy.changes == [(1, True), (1, False)]
    assert "record of unknown kind skipped" in caplog.text


@pytest.mark.parametrize("latest_only", [True, False])
def test_a_record_that_cannot_be_read_costs_its_partition_or_its_key(opened, caplog, latest_only):
    opened.submit(put("k", 1))
    opened.submit(put("aside", 2), key="aside")
    opened.sync()
    key, _ = record_of("aside", 1).encode()
    append(opened, encode_batch([LogRecord(0, 0, key, b"\x7f", ())]))
    again = opened.restarted(latest_only=latest_only)
    assert again.log.replay.has_set_aside
    assert again.log.refusal("k") == ErrorCode.NONE
    assert again.toy.numbers["k"] == 1
    assert "record cannot be read, its key is refused" in caplog.text
    key, _ = record_of("other", 1).encode()
    append(opened, encode_batch([LogRecord(0, 0, key, b"\x7f", ())]))
    assert opened.restarted().log.unreadable == [f"{GROUP_OFFSETS}-0"]


class SlowClock(ManualClock):
    """Time passes with every look at it."""

    def monotonic(self) -> float:
        self._skipped += 0.01
        return super().monotonic()


def test_what_takes_long_is_replayed_in_the_background():
    coordinator = Coordinator(partitions=8)
    coordinator.log.open()
    keys = [f"key-{number}" for number in range(40)]
    for key in keys:
        coordinator.submit(put(key, 1), key=key)
    coordinator.sync()
    again = coordinator.restarted(clock=SlowClock(0))
    slow = again.log
    assert slow.is_loading
    assert not slow.replayed.is_set()
    assert slow.unreadable == []
    described = slow.describe_replay()
    assert described.startswith(f"{slow.topic_name}: {slow.replay.partitions} of 8 partitions, ")
    assert 0 < slow.replay.partitions < 8
    refusals = {key: slow.refusal(key) for key in keys}
    assert set(refusals.values()) == {ErrorCode.NONE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
    for key, code in refusals.items():
        keys_there = slow.shard_of(key).machine.keys()
        assert code or key in keys_there
    (loading,) = again.spawned
    asyncio.run(loading)
    assert not slow.is_loading
    assert {slow.refusal(key) for key in keys} == {ErrorCode.NONE}
    assert slow.replay.records == len(keys)
    assert slow.replayed.is_set()
    assert slow.replay.partitions == 8


# ------------------------------------------------------------------------- the topic comes and goes


def test_without_its_topic_there_is_no_coordinator_and_with_it_at_once():
    coordinator = Coordinator(administration=Administration(engine=InlineEngine()))
    coordinator.log.open()
    assert coordinator.log.refusal("k") == ErrorCode.NOT_COORDINATOR

    async def ensure() -> None:
        await asyncio.gather(coordinator.log.ensure(), coordinator.log.ensure())

    asyncio.run(ensure())
    topic = coordinator.administration.catalogue.topic(GROUP_OFFSETS)
    assert topic.configs["cleanup.policy"] == "compact"
    asyncio.run(coordinator.log.ensure())
    assert coordinator.log.refusal("k") == ErrorCode.NONE
    assert len(coordinator.log.machines) == 3
    coordinator.submit(put("k", 1))
    coordinator.sync()
    assert coordinator.answers == ["done"]


def test_a_topic_that_is_deleted_takes_everything_with_it(opened):
    gone = ErrorCode.NOT_COORDINATOR
    ticket = opened.runner.new_ticket()
    opened.submit(schedule("t", 500))
    opened.submit(say(changes=("parked",)), ticket=ticket)
    late = (Answer(ticket, "late"), Schedule(Timer("k", "u"), 0))
    opened.submit(put("k", 1, "under way", effects=late))
    opened.submit(get("k"))
    opened.delete_topic()
    assert opened.log.refusal("k") == gone
    assert opened.answers == ["ok", gone, gone], "parked, and waiting in the lane"
    opened.sync()
    assert opened.answers == ["ok", gone, gone, gone]
    opened.clock.advance(hours=1)
    assert (opened.flushed, opened.fatal) == (0, [])


def test_a_topic_made_again_begins_with_nothing(opened):
    opened.submit(put("k", 1))
    opened.sync()
    opened.delete_topic()
    opened.create_topic(2)
    assert opened.log.refusal("k") == ErrorCode.NONE
    opened.submit(get("k"))
    opened.submit(put("k", 5))
    opened.sync()
    assert opened.answers == ["done", "nothing", "done"]


def test_an_append_to_a_deleted_topic_is_no_longer_coordinated_here(opened):
    opened.submit(schedule("t", 500))
    opened.delete_topic()
    # Nobody has asked since: the timer comes first.
    opened.clock.advance(milliseconds=500)
    opened.submit(put("k", 1))
    assert opened.answers == ["ok", ErrorCode.NOT_COORDINATOR]
    opened.clock.advance(hours=1)
    assert opened.flushed == 1, "a timer of what is gone does not come again"
