"""The runner of a coordinator: what moves when, what follows, parked answers, timers, refusals."""

from __future__ import annotations

import asyncio
import logging

import pytest

from barnabas.broker.coordination.runner import Submission
from barnabas.broker.coordination.shard import java_hash
from barnabas.broker.coordination.timers import RETRY_MS
from barnabas.coordinator.decision import (
    Answer,
    Cancel,
    Schedule,
    Timer,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.storage.journal.refusal import Refusal
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


@pytest.fixture
def two() -> Coordinator:
    """Two partitions: of a and of b."""
    coordinator = Coordinator(2)
    coordinator.log.open()
    assert [coordinator.log.partition_of(key) for key in "ba"] == [0, 1]
    return coordinator


def refuse_flush(coordinator: Coordinator) -> None:
    for group in coordinator.administration.logs.journal.drop():
        group.refuse(Refusal([]))


# ------------------------------------------------------------------------ state moves, answers wait


def test_state_moves_when_appended_and_answer_waits_for_disk(opened):
    opened.submit(put("k", 1, changes=("changed",)))
    assert (opened.answers, opened.toy.numbers) == ([], {"k": 1})
    assert opened.toy.changes == ["changed"]
    (shard,) = opened.log.shards
    assert shard.log.high_watermark == 0, "nothing is on the disk"
    opened.sync()
    assert opened.answers == ["done"]
    assert opened.restarted().toy.numbers == {"k": 1}


def test_decisions_of_one_key_share_a_sync_and_are_answered_in_order(opened):
    opened.submit(put("k", 1))
    opened.submit(get("k"))
    opened.submit(lambda toy, now: put("k", toy.numbers["k"] + 1, "second")(toy, now))
    opened.submit(get("k"))
    assert opened.answers == []
    opened.sync()
    assert opened.answers == ["done", 1, "second", 2]
    assert opened.toy.offsets == [0, 1]


def test_read_behind_a_decision_of_another_key_waits_for_the_partition(opened):
    opened.submit(get("other"), key="other")
    assert opened.answers == ["nothing"]
    opened.submit(put("k", 1))
    opened.submit(get("other"), key="other")
    assert opened.answers == ["nothing"]
    opened.sync()
    assert opened.answers == ["nothing", "done", "nothing"]


def test_read_in_a_partition_that_is_durable_does_not_wait_for_another(two):
    two.submit(put("a", 1), "a")
    two.submit(get("b"), "b")
    assert two.answers == ["nothing"]
    two.sync()
    assert two.answers == ["nothing", "done"]


def test_response_that_is_known_does_not_wait(opened):
    opened.submit(put("k", 1))
    opened.submit(say(response="alive", is_known=True, changes=("heard",)))
    assert (opened.answers, opened.toy.changes) == (["alive"], ["heard"])
    opened.sync()
    assert opened.answers == ["alive", "done"]


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


def test_timer_command_is_retried_while_the_disk_is_full(opened):
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


def test_full_disk_rejects_commands_without_a_trace_and_reads_continue(opened):
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


def test_condition_is_checked_at_the_append_and_rejects_without_a_trace(opened):
    codes: list[ErrorCode] = []
    codes += [ErrorCode.NONE, ErrorCode.INVALID_TXN_STATE]
    opened.submit(put("k", 1))
    opened.submit(put("k", 2), admit=codes.pop)
    opened.submit(put("k", 3, "third"), admit=codes.pop)
    assert opened.toy.numbers == {"k": 3}
    opened.sync()
    assert opened.answers == [ErrorCode.INVALID_TXN_STATE, "done", "third"]
    assert opened.toy.offsets == [0, 1]


def test_disk_that_fills_refuses_what_comes_behind_earlier_decisions(opened):
    opened.submit(put("k", 1))
    opened.administration.logs.exhausted = True
    opened.submit(put("k", 2))
    opened.submit(get("k"))
    full = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (opened.answers, opened.toy.numbers) == ([full], {"k": 1})
    opened.sync()
    assert opened.answers == [full, "done", 1]


def test_a_bug_in_deciding_fails_its_command_only(opened, caplog):
    opened.submit(put("k", 1))
    with caplog.at_level(logging.ERROR):
        opened.submit(fail)
    opened.submit(get("k"))
    opened.sync()
    assert opened.answers == [ErrorCode.UNKNOWN_SERVER_ERROR, "done", 1]
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


@pytest.mark.parametrize("mistake", [put("k", -5), say(response="done", changes=("mistake",))])
def test_mistake_in_applying_stops_the_broker(opened, mistake):
    with pytest.raises(AssertionError):
        opened.submit(mistake)
    assert [type(error) for error in opened.fatal] == [AssertionError]
    opened.sync()
    assert opened.answers == [], "nothing is answered (D9)"


def test_failing_response_blocks_no_command(opened, caplog):
    def stumble(_response: object) -> None:
        raise ZeroDivisionError

    opened.runner.submit(Submission("k", Do(put("k", 1)), stumble, lambda code: code))
    opened.submit(get("k"))
    opened.submit(put("other", 2), key="other")
    opened.sync()
    assert sorted(map(str, opened.answers)) == ["1", "done"]
    assert opened.fatal == []
    assert "response failed" in caplog.text


def test_flush_that_is_refused_answers_an_error_to_all_that_was_decided_upon_it(opened):
    opened.submit(put("k", 1))
    opened.submit(get("k"))
    opened.submit(put("k", 2))
    opened.submit(put("other", 3), key="other")
    refuse_flush(opened)
    assert opened.answers == [ErrorCode.NOT_COORDINATOR] * 4


def test_answer_waits_for_no_flush_after_the_one_of_its_partition(two):
    journal = two.administration.logs.journal
    journal._submit = lambda _group, *, alone: None
    two.submit(put("a", 1), "a")
    journal.flush()
    two.submit(put("b", 2), "b")
    two.submit(get("a"), "a")
    journal.advance_high_watermarks(1)
    journal.prepare_answers(1)
    journal.groups_became_durable(1)
    refuse_flush(two)
    assert two.answers == ["done", 1, ErrorCode.NOT_COORDINATOR], "only b is lost"


def test_read_between_a_refused_flush_and_the_loss_of_the_partition_is_refused(opened):
    opened.submit(put("k", 1))
    (shard,) = opened.log.shards
    refuse_flush(opened)
    shard.log.forget()
    opened.submit(get("k"))
    opened.submit(put("k", 2))
    assert opened.answers == [ErrorCode.NOT_COORDINATOR] * 3


# ------------------------------------------------------------------------------- what is lost


def is_empty(coordinator: Coordinator) -> bool:
    runner = coordinator.runner
    return not (runner._timers or runner._parked or runner._slices)


def regain(coordinator: Coordinator, index: int) -> None:
    coordinator.log.gain(index)
    asyncio.run(coordinator.spawned.pop())


def test_parked_commands_of_a_lost_partition_are_refused_and_answers_wait_for_the_flush(two):
    ticket, answered = two.runner.new_ticket(), two.runner.new_ticket()
    two.submit(say(changes=("parked",)), "a", ticket=ticket)
    two.submit(say(changes=("parked",)), "a", ticket=answered)
    effects = (Answer(answered, "late"), Schedule(Timer("a", "u"), 0))
    two.submit(put("a", 1, effects=effects), "a")
    two.submit(get("a"), "a")
    two.submit(put("b", 3, "other"), "b")
    two.log.lose(1)
    gone = ErrorCode.NOT_COORDINATOR
    assert two.answers == [gone]
    two.submit(get("a"), "a")
    assert two.answers == [gone, gone]
    assert is_empty(two)
    two.sync()
    assert two.answers == [gone, gone, "late", "done", 1, "other"]
    two.clock.advance(hours=1)
    assert (two.answers[6:], two.fatal) == ([], [])


def test_answers_of_a_lost_partition_become_errors_where_the_flush_is_refused(two):
    ticket = two.runner.new_ticket()
    two.submit(say(changes=("parked",)), "a", ticket=ticket)
    two.submit(put("a", 1, effects=(Answer(ticket, "late"),)), "a")
    two.log.lose(1)
    refuse_flush(two)
    assert two.answers == [ErrorCode.NOT_COORDINATOR] * 2


def test_decision_that_becomes_durable_after_its_partition_was_lost_is_read_when_it_is_back(two):
    two.submit(put("a", 1), "a")
    two.log.lose(1)
    two.sync()
    assert two.answers == ["done"], "the next leader of the partition finds it"
    regain(two, 1)
    two.submit(get("a"), "a")
    assert two.answers == ["done", 1]


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
    two.submit(say(response="last", effects=effects), "a")
    assert two.answers == [ErrorCode.NOT_COORDINATOR, "last"]
    assert is_empty(two)
    assert two.fatal == []
