"""The topic of a coordinator: replay, and a topic that comes and goes."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

import pytest

from barnabas.broker.coordination.runner import Submission
from barnabas.broker.coordination.shard import java_hash
from barnabas.broker.metadata.topic_names import GROUP_OFFSETS
from barnabas.broker.runtime.clock import ManualClock
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
    Do,
    Toy,
    get,
    put,
    record_of,
    say,
    schedule,
    turn_after_each_batch,
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


def test_start_skips_unknown_kinds_and_reports_markers(opened, caplog):
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
    assert "unreadable record, its key is refused" in caplog.text
    key, _ = record_of("other", 1).encode()
    append(opened, encode_batch([LogRecord(0, 0, key, b"\x7f", ())]))
    assert opened.restarted().log.unreadable == [f"{GROUP_OFFSETS}-0"]


class SlowClock(ManualClock):
    """Time passes with every look at it."""

    def monotonic(self) -> float:
        self._skipped += 0.01
        return super().monotonic()


def test_slow_replay_runs_in_the_background():
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
    other = opened.runner.new_ticket()
    opened.submit(say(changes=("parked",)), ticket=other)
    late = (Answer(ticket, "late"), Schedule(Timer("k", "u"), 0))
    opened.submit(put("k", 1, "under way", effects=late))
    opened.submit(get("k"))
    opened.delete_topic()
    assert opened.log.refusal("k") == gone
    assert opened.answers == ["ok", gone], "the parked one; the others are on their way"
    opened.sync()
    assert opened.answers == ["ok", gone, "late", "under way", 1]
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
    # No request has arrived since: the timer comes first.
    opened.clock.advance(milliseconds=500)
    opened.submit(put("k", 1))
    assert opened.answers == ["ok", ErrorCode.NOT_COORDINATOR]
    opened.clock.advance(hours=1)
    assert opened.flushed == 1, "a timer of what is gone does not come again"


# ------------------------------------------------------------------- partitions are gained and lost

PARTITIONS = 4
KEYS = {java_hash(key) % PARTITIONS: key for key in ("a", "b", "c", "d")}
"""One key of each partition."""
GONE, LOADING, NONE = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NONE,
)


def load(coordinator: Coordinator) -> None:
    """Run what loads in the background to its end."""
    while coordinator.spawned:
        asyncio.run(coordinator.spawned.pop(0))


def go_on_to_the_end(loading: Coroutine[Any, Any, None]) -> None:
    """Run the rest of one loading task, one turn of the loop after the other."""
    with suppress(StopIteration):
        while True:
            loading.send(None)


@pytest.fixture
def four() -> Coordinator:
    """Four partitions with a number in each: that of the partition."""
    coordinator = Coordinator(PARTITIONS)
    coordinator.log.open()
    for index, key in KEYS.items():
        coordinator.submit(put(key, index), key)
    coordinator.sync()
    coordinator.answers.clear()
    return coordinator


def refusals(coordinator: Coordinator) -> list[ErrorCode]:
    return [coordinator.log.refusal(KEYS[index]) for index in range(PARTITIONS)]


def scans(coordinator: Coordinator) -> list[int]:
    topic = coordinator.administration.catalogue.topic(GROUP_OFFSETS)
    return [each.log.cleaning.scans for each in topic.partitions]


def test_lost_partition_is_not_coordinated_and_the_others_are(four):
    shard = four.log.shard_at(2)
    four.log.lose(2)
    assert refusals(four) == [NONE, NONE, GONE, NONE]
    assert shard.is_gone
    assert shard.machine.is_forgotten
    assert four.flushed == 1
    assert [each.index for each in four.log.shards] == [0, 1, 3]
    assert four.log.is_coordinator()
    assert not four.log.is_loading
    assert {four.log.partition_of(key) for key in KEYS.values()} == set(range(PARTITIONS))
    assert four.log.shard_here(KEYS[2]) is four.log.shard_at(2) is None
    assert four.log.shard_at(-1) is four.log.shard_at(PARTITIONS) is None
    for key in KEYS.values():
        four.submit(get(key), key)
    assert sorted(four.answers) == sorted([0, 1, GONE, 3])
    with pytest.raises(AssertionError, match="not led here"):
        four.log.shard_of(KEYS[2])


def test_the_keys_of_what_is_on_its_way_here_are_loading(four):
    topic = four.administration.catalogue.topic(GROUP_OFFSETS)
    four.log.lose(2)
    topic.partitions[2].is_coming = True
    assert refusals(four) == [NONE, NONE, LOADING, NONE]
    four.submit(get(KEYS[2]), KEYS[2])
    assert four.answers == [GONE], "who has asked before"
    topic.partitions[2].is_unreadable = True
    assert refusals(four) == [NONE, NONE, GONE, NONE], "damaged: it may take for ever"
    topic.partitions[2].is_unreadable = False
    again = Coordinator(administration=four.administration)
    assert not again.log.is_coordinator()
    assert refusals(again) == [GONE, GONE, LOADING, GONE]


def test_gained_partition_is_read_again_and_its_timers_start(four):
    four.submit(put(KEYS[2], 99), KEYS[2])
    four.sync()
    former = four.log.shard_at(2)
    four.log.lose(2)
    four.log.gain(2)
    assert refusals(four) == [NONE, NONE, LOADING, NONE]
    assert not four.log.replayed.is_set()
    assert four.log.describe_replay().endswith(": 0 of 1 partitions, 0 records replayed")
    load(four)
    assert refusals(four) == [NONE] * PARTITIONS
    assert four.log.replayed.is_set()
    assert four.log.describe_replay().endswith(": 1 of 1 partitions, 2 records replayed")
    again = four.log.shard_at(2)
    assert again is not former
    assert again.machine is not former.machine
    four.clock.advance(milliseconds=1000)
    four.sync()
    assert again.machine.numbers == {KEYS[2]: 100}
    assert former.machine.numbers == {KEYS[2]: 99}


def test_only_lost_partitions_can_be_gained_and_only_owned_ones_lost(four):
    with pytest.raises(AssertionError, match="gained before"):
        four.log.gain(2)
    four.log.lose(2)
    with pytest.raises(AssertionError, match="is not here"):
        four.log.lose(2)
    with pytest.raises(AssertionError, match="is not here"):
        four.log.lose(PARTITIONS)
    four.log.gain(2)
    with pytest.raises(AssertionError, match="gained before"):
        four.log.gain(2)
    load(four)
    assert refusals(four) == [NONE] * PARTITIONS


def test_a_log_with_appends_under_way_is_not_to_be_read(four):
    four.submit(put(KEYS[2], 7), KEYS[2])
    four.log.lose(2)
    with pytest.raises(AssertionError, match="not in its segments yet"):
        four.log.gain(2)
    four.sync()
    four.log.gain(2)
    load(four)
    assert four.log.shard_at(2).machine.numbers == {KEYS[2]: 7}


@pytest.mark.parametrize("lost", range(PARTITIONS))
def test_losing_what_is_being_read_stops_that(four, lost, monkeypatch):
    turn_after_each_batch(monkeypatch)
    for number in range(5):
        four.submit(put(KEYS[1], number), KEYS[1])
    four.sync()
    numbers = [each.machine.numbers for each in four.log.shards]
    for index in range(PARTITIONS):
        four.log.lose(index)
    for index in range(PARTITIONS):
        four.log.gain(index)
    (loading,) = four.spawned
    four.spawned.clear()
    while not four.log.shard_at(1).machine.numbers:
        loading.send(None)
    assert scans(four) == [0, 1, 0, 0]
    assert refusals(four) == [NONE, LOADING, LOADING, LOADING]
    four.log.lose(lost)
    go_on_to_the_end(loading)
    wanted = [NONE] * PARTITIONS
    wanted[lost] = GONE
    assert refusals(four) == wanted
    assert scans(four) == [0] * PARTITIONS
    assert four.log.replayed.is_set()
    total = PARTITIONS - (lost != 0)  # The first one was read already.
    assert four.log.replay.partitions == four.log.replay.total == total
    if lost == 1:
        assert four.log.replay.records < total + 6
    four.log.gain(lost)
    load(four)
    assert refusals(four) == [NONE] * PARTITIONS
    assert [each.machine.numbers for each in four.log.shards] == numbers


def test_partition_is_lost_and_gained_while_others_are_read(four, monkeypatch):
    turn_after_each_batch(monkeypatch)
    for index in range(PARTITIONS):
        four.log.lose(index)
    four.log.gain(3)
    (loading,) = four.spawned

    async def run() -> None:
        task = asyncio.ensure_future(loading)
        await asyncio.sleep(0)
        four.log.gain(0)
        four.log.lose(3)
        four.log.gain(3)
        four.log.gain(1)
        await task

    asyncio.run(run())
    assert len(four.spawned) == 1, "one reads for all"
    assert refusals(four) == [NONE, NONE, GONE, NONE]
    assert [each.machine.numbers for each in four.log.shards] == [
        {KEYS[index]: index} for index in (0, 1, 3)
    ]


def without_log(coordinator: Coordinator, index: int) -> None:
    """Move the leadership of a partition to another broker."""
    topic = coordinator.administration.catalogue.topic(GROUP_OFFSETS)
    topic.partitions[index].log = None


def test_a_start_gains_all_whose_log_is_here(four):
    log = four.log.shard_at(1).log
    without_log(four, 1)
    again = four.restarted()
    assert refusals(again) == [NONE, GONE, NONE, NONE]
    with pytest.raises(AssertionError, match="has no log here"):
        again.log.gain(1)
    four.administration.catalogue.topic(GROUP_OFFSETS).partitions[1].log = log
    again.log.gain(1)
    load(again)
    assert refusals(again) == [NONE] * PARTITIONS
    again.log.open()
    assert again.spawned == [], "nothing is left to gain"


def test_partitions_of_a_topic_that_others_lead_are_known_and_gained_one_by_one(four):
    logs = [shard.log for shard in four.log.shards]
    for index in range(PARTITIONS):
        without_log(four, index)
    again = Coordinator(administration=four.administration)
    assert refusals(again) == [GONE] * PARTITIONS
    assert again.log.is_coordinator()
    assert again.log.machines == []
    assert [again.log.partition_of(KEYS[index]) for index in range(PARTITIONS)] == [0, 1, 2, 3]
    topic = four.administration.catalogue.topic(GROUP_OFFSETS)
    topic.partitions[3].log = logs[3]
    again.log.gain(3)
    load(again)
    assert refusals(again) == [GONE, GONE, GONE, NONE]


def test_a_topic_with_something_in_it_is_served_when_its_partitions_are_gained(four):
    again = Coordinator(administration=four.administration)
    assert not again.log.is_coordinator()
    assert again.log.refusal(KEYS[1]) == GONE
    again.log.gain(1)
    load(again)
    assert refusals(again) == [GONE, NONE, GONE, GONE]


def test_a_topic_is_deleted_of_which_only_a_part_was_here(four):
    four.log.lose(0)
    four.submit(put(KEYS[1], 5), KEYS[1])
    shards = four.log.shards
    four.delete_topic()
    four.create_topic(2)
    assert four.log.refusal(KEYS[1]) == NONE
    assert four.answers == []
    four.sync()
    assert four.answers == ["done"], "it was durable before the deletion"
    assert all(shard.is_gone and shard.machine.is_forgotten for shard in shards)
    assert [shard.index for shard in four.log.shards] == [0, 1]
    assert [machine.numbers for machine in four.log.machines] == [{}, {}]


def test_nothing_is_served_in_the_middle_of_losing_a_topic_that_was_made_again(four):
    seen = []

    def ask(_response: object) -> None:
        seen.append([four.log.refusal(key) for key in KEYS.values()])
        four.submit(get(KEYS[3]), KEYS[3])

    for key in (KEYS[0], KEYS[3]):
        command = Do(say(changes=("parked",)))
        ticket = four.runner.new_ticket()
        four.runner.submit(Submission(key, command, ask, lambda code: code, ticket))
    four.delete_topic()
    four.create_topic(PARTITIONS)
    assert refusals(four) == [NONE] * PARTITIONS
    assert seen == [[GONE] * PARTITIONS] * 2
    assert four.answers == [GONE] * 2
    assert [machine.numbers for machine in four.log.machines] == [{}] * PARTITIONS


def test_a_partition_that_cannot_be_loaded_is_lost_and_gained_like_others(four):
    log = four.log.shard_at(1).log
    log.append_records(memoryview(bytearray(encode_batch([LogRecord(0, 0, None, b"v", ())]))))
    four.sync()
    four.log.lose(1)
    four.log.gain(1)
    four.log.lose(2)
    four.log.gain(2)
    assert four.log.unreadable == [], "it has not been tried"
    made: list[Toy] = []
    four.log.replay._make_machine = lambda: made.append(Toy()) or made[-1]
    unread = four.log.shard_at(1).machine
    load(four)
    assert refusals(four) == [NONE, LOADING, NONE, NONE]
    assert four.log.unreadable == [f"{GROUP_OFFSETS}-1"]
    assert unread.is_forgotten
    assert four.log.machines[1:2] == made
    assert scans(four) == [0] * PARTITIONS
    four.log.lose(1)
    assert four.log.unreadable == []
    assert refusals(four) == [NONE, GONE, NONE, NONE]


def test_the_highest_epoch_is_that_of_what_was_gained(four):
    epochs = {shard.log.leader_epoch for shard in four.log.shards}
    assert {four.log.highest_epoch} == epochs
    log = four.log.shard_at(1).log
    four.log.lose(1)
    log.leader_epoch += 5
    four.log.gain(1)
    assert four.log.highest_epoch == log.leader_epoch
    four.log.lose(1)
    assert four.log.highest_epoch == log.leader_epoch, "there was such a coordinator"
    load(four)
    assert Coordinator().log.highest_epoch == -1


@pytest.mark.parametrize("gone", [False, True])
def test_record_in_a_wrong_partition_is_ignored(four, gone):
    """The topic got more partitions while no broker served it."""
    key, value = record_of(KEYS[3], 99).encode()
    log = four.log.shard_at(1).log
    log.append_records(memoryview(bytearray(encode_batch([LogRecord(0, 0, key, value, ())]))))
    four.sync()
    for index in (1, 3):
        four.log.lose(index)
    four.log.gain(1)
    if not gone:
        four.log.gain(3)
    load(four)
    assert four.log.shard_at(1).machine.numbers[KEYS[3]] == 99
    four.clock.advance(hours=1)
    four.sync()
    assert four.log.shard_at(1).machine.numbers[KEYS[3]] == 99
    assert gone or four.log.shard_at(3).machine.numbers == {KEYS[3]: 3}


def test_topic_is_created_again_during_the_end_of_a_load(four, monkeypatch):
    """The loading is not finished then, and it reads the rest afterwards."""
    turn_after_each_batch(monkeypatch)
    genuine = Toy.begin

    def begin(_toy: Toy, _now: object) -> tuple[()]:
        monkeypatch.setattr(Toy, "begin", genuine)
        four.delete_topic()
        four.create_topic(2)
        assert four.log.is_coordinator()
        assert four.log.is_loading
        return ()

    monkeypatch.setattr(Toy, "begin", begin)
    four.log.lose(0)
    four.log.gain(0)
    (loading,) = four.spawned
    four.spawned.clear()
    go_on_to_the_end(loading)
    assert four.log.replayed.is_set()
    assert [shard.index for shard in four.log.shards] == [0, 1]
    assert {four.log.refusal(key) for key in KEYS.values()} == {NONE}
