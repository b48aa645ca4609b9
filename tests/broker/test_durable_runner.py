"""What applies decisions when they are durable: lanes, parked answers, timers, refusals."""

from __future__ import annotations

import asyncio
import logging

import pytest

from barnabas.broker.coordination.key_hash import java_hash
from barnabas.broker.coordination.lanes import Submission
from barnabas.broker.coordination.timers import RETRY_MS
from barnabas.coordinator.decision import (
    Answer,
    Cancel,
    Schedule,
    Timer,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.storage.refusal import Refusal
from tests.broker.toy_coordinator import (
    Coordinator,
    Do,
    fail,
    get,
    put,
    record_of,
    say,
    schedule,
)


@pytest.fixture
def opened() -> Coordinator:
    coordinator = Coordinator()
    coordinator.log.open()
    return coordinator


# -------------------------------------------------------------------------------------------- lanes


def test_nothing_shows_before_it_is_durable(opened):
    opened.submit(put("k", 1, changes=("changed",)))
    assert (opened.answers, opened.toy.numbers, opened.toy.changes) == ([], {}, [])
    opened.sync()
    assert (opened.answers, opened.toy.numbers) == (["done"], {"k": 1})
    assert opened.toy.changes == ["changed"]


def test_commands_for_a_key_wait_for_each_other_in_order(opened):
    opened.submit(put("k", 1))
    opened.submit(get("k"))
    opened.submit(lambda toy, now: put("k", toy.numbers["k"] + 1, "second")(toy, now))
    opened.submit(get("k"))
    assert opened.answers == []
    opened.sync()
    assert opened.answers == ["done", 1, "second", 2]
    assert opened.toy.offsets == [0, 1]


def test_other_keys_do_not_wait_and_share_a_sync(opened):
    opened.submit(put("k", 1))
    opened.submit(get("other"), key="other")
    assert opened.answers == ["nothing"]
    opened.submit(put("other", 2, "other"), key="other")
    syncs = opened.administration.logs.journal.batches
    opened.sync()
    assert opened.answers == ["nothing", "done", "other"]
    assert opened.administration.logs.journal.batches == syncs + 2


def test_commands_that_share_a_lane_do_not_wait_for_each_other(opened):
    opened.submit(put("k", 1, "first"), shares_lane=True)
    opened.submit(put("k", 2, "second"), shares_lane=True)
    opened.submit(get("k"), shares_lane=True)
    assert opened.answers == ["nothing"], "it sees what is durable, not what is under way"
    opened.sync()
    assert opened.answers == ["nothing", "first", "second"]
    assert opened.toy.numbers == {"k": 2}


def test_who_does_not_share_waits_and_nobody_overtakes(opened):
    opened.submit(put("k", 1, "first"), shares_lane=True)
    opened.submit(get("k"))
    opened.submit(put("k", 2, "second"), shares_lane=True)
    assert opened.answers == []
    opened.sync()
    assert opened.answers == ["first", 1, "second"]


def test_what_shares_waits_for_what_does_not(opened):
    opened.submit(put("k", 1, "alone"))
    opened.submit(get("k"), shares_lane=True)
    assert opened.answers == []
    opened.sync()
    assert opened.answers == ["alone", 1]


def test_what_shares_is_under_way_together_after_what_does_not(opened):
    opened.submit(put("k", 1, "alone"))
    for _ in range(2):
        opened.submit(lambda toy, now: put("k", toy.numbers["k"] + 1)(toy, now), shares_lane=True)
    opened.sync()
    assert opened.answers == ["alone", "done", "done"]
    assert opened.toy.numbers == {"k": 2}, "the second has not waited for the first"


def test_keys_fall_to_partitions_by_javas_hash():
    coordinator = Coordinator(partitions=50)
    coordinator.log.open()
    # Computed by java.lang.String.hashCode; the third one's is Integer.MIN_VALUE.
    for key, value in (("group", 98629247), ("naïve-😀", 1285319973), ("polygenelubricants", 0)):
        assert java_hash(key) == value
        assert coordinator.log.partition_of(key) == value % 50


# ----------------------------------------------------------------------------------- parked answers


def test_a_parked_answer_comes_with_a_later_decision(opened):
    first, second = opened.runner.new_ticket(), opened.runner.new_ticket()
    opened.submit(say(changes=("waits",)), ticket=first)
    opened.submit(put("k", 1, response=None), ticket=second)
    opened.sync()
    assert opened.answers == []
    effects = (Answer(second, "second"), Answer(first, "first"))
    opened.submit(put("k", 2, "last", effects=effects))
    assert opened.answers == []
    opened.sync()
    assert opened.answers == ["second", "first", "last"]


# ------------------------------------------------------------------------------------------- timers


def test_a_timer_comes_back_as_a_command_and_answers_leave_then(opened):
    opened.submit(schedule("t", 500))
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
    opened.submit(schedule("t", 500))
    opened.submit(schedule("t", 800))
    opened.clock.advance(milliseconds=700)
    assert opened.flushed == 0
    opened.submit(say(response="ok", effects=(Cancel(Timer("k", "t")), Cancel(Timer("k", "none")))))
    opened.clock.advance(hours=1)
    assert opened.flushed == 0


def test_a_timer_is_only_set_when_its_decision_is_durable(opened):
    opened.submit(put("k", 5, effects=(Schedule(Timer("k", "t"), 0),)))
    opened.clock.advance(hours=1)
    assert opened.flushed == 0
    opened.sync()
    opened.clock.advance(milliseconds=0)
    opened.sync()
    assert opened.toy.numbers == {"k": 6}


def test_a_timer_that_is_set_again_while_its_command_waits_does_nothing(opened):
    opened.submit(schedule("t", 500))
    opened.submit(put("k", 1, effects=(Schedule(Timer("k", "t"), 10_000),)))
    opened.clock.advance(milliseconds=500)  # Its command waits in the lane.
    opened.sync()
    assert opened.toy.numbers == {"k": 1}
    opened.clock.advance(milliseconds=9_500)
    opened.sync()
    assert opened.toy.numbers == {"k": 2}


def test_a_timers_command_comes_again_while_the_disk_is_full(opened):
    opened.submit(schedule("t", 500))
    opened.administration.logs.exhausted = True
    opened.clock.advance(milliseconds=500 + 3 * RETRY_MS)
    opened.administration.logs.exhausted = False
    opened.sync()
    assert opened.toy.numbers == {}
    opened.clock.advance(milliseconds=RETRY_MS)
    opened.sync()
    assert opened.toy.numbers == {"k": 1}


# ----------------------------------------------------------------------------------------- refusals


def test_a_full_disk_refuses_without_a_trace_and_reads_go_on(opened):
    opened.submit(put("k", 1))
    opened.sync()
    opened.administration.logs.exhausted = True
    opened.submit(put("k", 2, changes=("trace",)))
    opened.submit(get("k"))
    assert opened.answers == ["done", ErrorCode.COORDINATOR_NOT_AVAILABLE, 1]
    assert opened.toy.changes == []
    opened.administration.logs.exhausted = False
    opened.submit(put("k", 3))
    opened.sync()
    assert opened.toy.numbers == {"k": 3}
    assert opened.toy.offsets == [0, 1]


def test_what_must_be_true_at_the_append_is_asked_there_and_refuses_without_a_trace(opened):
    codes: list[ErrorCode] = []
    opened.submit(put("k", 1))
    opened.submit(put("k", 2), admit=codes.pop)
    opened.submit(put("k", 3, "third"), admit=codes.pop)
    codes += [ErrorCode.NONE, ErrorCode.INVALID_TXN_STATE]
    opened.sync()
    assert opened.answers == ["done", ErrorCode.INVALID_TXN_STATE, "third"]
    assert opened.toy.offsets == [0, 1]


def test_a_disk_that_fills_while_commands_wait_refuses_them_one_by_one(opened):
    opened.submit(put("k", 1))
    opened.submit(put("k", 2))
    opened.submit(put("k", 3))
    opened.administration.logs.exhausted = True
    opened.sync()
    full = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert opened.answers == ["done", full, full]
    opened.submit(get("k"))
    assert opened.answers[3:] == [1]


def test_a_bug_in_deciding_fails_its_command_only(opened, caplog):
    opened.submit(put("k", 1))
    opened.submit(fail)
    opened.submit(get("k"))
    with caplog.at_level(logging.ERROR):
        opened.sync()
    assert opened.answers == ["done", ErrorCode.UNKNOWN_SERVER_ERROR, 1]
    assert opened.fatal == []
    assert "command failed" in caplog.text
    assert "key=k" in caplog.text


def test_a_record_that_cannot_be_written_fails_its_command_only(opened, caplog):
    opened.submit(put("k" * 40_000, 1))
    assert opened.answers == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert "command failed" in caplog.text
    opened.submit(put("k", 1))
    opened.sync()
    assert opened.toy.offsets == [0]


def test_a_decision_too_large_for_the_journal_is_refused(opened, caplog):
    records = tuple(record_of("k", number) for number in range(1000))
    opened.submit(say(response="done", records=records))
    assert opened.answers == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert "decision too large" in caplog.text
    opened.sync()
    assert opened.toy.offsets == []


def test_a_mistake_in_taking_in_what_is_durable_stops_the_broker(opened):
    opened.submit(put("k", -5))
    opened.submit(get("k"))
    opened.sync()
    assert [type(error) for error in opened.fatal] == [AssertionError]
    assert opened.answers == [], "nothing is answered any more (D9)"


def test_a_mistake_in_a_change_stops_the_broker(opened):
    opened.submit(say(response="done", changes=("mistake",)))
    assert [type(error) for error in opened.fatal] == [AssertionError]
    assert opened.answers == []


def test_an_answer_that_fails_holds_nobody_up(opened, caplog):
    def stumble(_response: object) -> None:
        raise ZeroDivisionError

    opened.runner.submit(Submission("k", Do(put("k", 1)), stumble, lambda code: code))
    opened.submit(get("k"))
    opened.submit(put("other", 2), key="other")
    opened.sync()
    assert sorted(map(str, opened.answers)) == ["1", "done"]
    assert opened.fatal == []
    assert "answer failed" in caplog.text


def test_what_was_refused_and_waits_behind_it_leaves_no_trace(opened):
    opened.submit(put("k", 1))
    opened.submit(get("k"))
    opened.submit(put("k", 2))
    opened.submit(put("other", 3), key="other")
    for group in opened.administration.logs.journal.drop():
        group.refuse(Refusal([]))
    assert opened.answers == [ErrorCode.NOT_COORDINATOR] * 4
    assert opened.toy.numbers == {}
    opened.submit(get("k"))
    assert opened.answers[4:] == ["nothing"], "nobody is in the way"


# ------------------------------------------------------------------------------- what is lost


@pytest.fixture
def two() -> Coordinator:
    """Two partitions: of a and of b."""
    coordinator = Coordinator(2)
    coordinator.log.open()
    assert [coordinator.log.partition_of(key) for key in "ba"] == [0, 1]
    return coordinator


def is_empty(coordinator: Coordinator) -> bool:
    runner = coordinator.runner
    return not (runner._lanes or runner._timers or runner._parked or runner._in_flight)


def regain(coordinator: Coordinator, index: int) -> None:
    coordinator.log.gain(index)
    asyncio.run(coordinator.spawned.pop())


def test_whoever_waits_for_a_partition_that_is_lost_is_told_so_once(two):
    ticket = two.runner.new_ticket()
    two.submit(say(changes=("parked",)), "a", ticket=ticket)
    two.submit(put("a", 1, effects=(Answer(ticket, "late"), Schedule(Timer("a", "u"), 0))), "a")
    two.submit(put("a", 2), "a")
    two.submit(get("a"), "a")
    two.submit(put("b", 3, "other"), "b")
    two.log.lose(1)
    assert two.answers == [ErrorCode.NOT_COORDINATOR] * 4
    assert not two.runner.must_wait("a", Do(get("a")))
    assert two.runner.must_wait("b", Do(get("b")))
    two.submit(get("a"), "a")
    assert two.answers == [ErrorCode.NOT_COORDINATOR] * 5
    two.sync()
    assert two.answers == [ErrorCode.NOT_COORDINATOR] * 5 + ["other"]
    two.clock.advance(hours=1)
    assert is_empty(two)
    assert two.fatal == []


def test_a_decision_that_becomes_durable_after_its_partition_was_lost_is_read_when_it_is_back(two):
    former = two.log.shard_at(1).machine
    two.submit(put("a", 1), "a")
    two.log.lose(1)
    two.sync()
    assert (former.numbers, former.offsets, former.changes) == ({}, [], [])
    regain(two, 1)
    two.submit(get("a"), "a")
    assert two.answers == [ErrorCode.NOT_COORDINATOR, 1]


def test_timers_go_with_their_partition_alone(two):
    for key in "ab":
        after = int(two.clock.monotonic() * 1000) + 500
        two.submit(say(response="set", effects=(Schedule(Timer(key, "t"), after),)), key)
    assert len(two.runner._timers) == 2
    two.log.lose(1)
    assert len(two.runner._timers) == 1
    regain(two, 1)
    two.clock.advance(milliseconds=500)
    two.sync()
    assert [machine.numbers for machine in two.log.machines] == [{"b": 1}, {}]
    assert is_empty(two)


def test_a_timer_that_waits_for_its_turn_is_lost_with_its_partition(two):
    after = int(two.clock.monotonic() * 1000) + 500
    two.submit(say(response="set", effects=(Schedule(Timer("a", "t"), after),)), "a")
    two.submit(put("a", 1), "a")
    two.clock.advance(milliseconds=500)
    assert len(two.runner._timers) == 1, "it has come and waits in the lane"
    two.log.lose(1)
    assert is_empty(two)
    two.sync()
    two.clock.advance(hours=1)
    assert two.answers == ["set", ErrorCode.NOT_COORDINATOR]


def test_a_timer_whose_answer_loses_its_partition_does_not_come_again(two):
    # The partition is lost in the middle of what follows from the decision.
    ticket = two.runner.new_ticket()

    def lose(_response: object) -> None:
        two.log.lose(1)

    parked = Submission("a", Do(say(changes=("parked",))), lose, lambda code: code, ticket)
    two.runner.submit(parked)
    other = two.runner.new_ticket()
    two.submit(say(changes=("parked",)), "a", ticket=other)
    soon = Schedule(Timer("a", "t"), 0)
    effects = (Answer(ticket, "first"), soon, Answer(other, "second"))
    two.submit(put("a", 1, "last", effects=effects), "a")
    two.submit(get("a"), "a")
    two.sync()
    gone = ErrorCode.NOT_COORDINATOR
    assert two.answers == [gone, gone, "last"], "what is durable is the truth"
    assert is_empty(two)
    assert two.fatal == []


def test_a_lane_of_the_partition_when_it_is_back_is_not_that_of_before(two):
    two.submit(put("a", 1), "a")
    two.log.lose(1)
    two.sync()
    regain(two, 1)
    two.submit(put("a", 2, "second"), "a")
    two.submit(get("a"), "a")
    assert two.answers == [ErrorCode.NOT_COORDINATOR]
    two.sync()
    assert two.answers == [ErrorCode.NOT_COORDINATOR, "second", 2]
    assert is_empty(two)
