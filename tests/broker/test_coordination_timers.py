"""Timers of a coordinator that expire while decisions are on their way to the disk."""

from __future__ import annotations

import pytest

from barnabas.broker.coordination.timers import RETRY_MS
from barnabas.coordinator.decision import Cancel, Decision, Effect, Now, Schedule, Timer
from tests.broker.toy_coordinator import Coordinator, Expired, Toy, put, say

TIMER = Timer("k", "session", "member")


@pytest.fixture
def expired(monkeypatch) -> list[Timer]:
    """The timers whose commands were decided."""
    found: list[Timer] = []
    decide = Toy.decide

    def note(toy: Toy, command, now: Now) -> Decision:
        if isinstance(command, Expired):
            found.append(command.timer)
            return Decision()
        return decide(toy, command, now)

    monkeypatch.setattr(Toy, "decide", note)
    return found


@pytest.fixture
def opened() -> Coordinator:
    coordinator = Coordinator()
    coordinator.log.open()
    coordinator.submit(say(response="set", effects=(after(coordinator, 1000),)))
    return coordinator


def after(coordinator: Coordinator, delay_ms: int) -> Schedule:
    return Schedule(TIMER, int(coordinator.clock.monotonic() * 1000) + delay_ms)


def expire_behind_disk(coordinator: Coordinator, waited_ms: int, *effects: Effect) -> None:
    """Append a decision, let the timer expire, and let the disk answer after that."""
    coordinator.clock.advance(milliseconds=500)
    coordinator.submit(put("k", 1))
    coordinator.clock.advance(milliseconds=500)
    if effects:
        coordinator.submit(say(response="heard", effects=effects))
    coordinator.clock.advance(milliseconds=waited_ms)
    coordinator.sync()
    assert coordinator.answers == ["set", "done", "heard"][: 2 + len(effects)]


def test_timer_that_expires_behind_disk_is_decided_after_answers(opened, expired):
    opened.clock.advance(milliseconds=500)
    opened.submit(put("k", 1))
    opened.clock.advance(milliseconds=500 + RETRY_MS - 1)
    assert expired == [], "a client does not know its next step yet"
    opened.sync()
    assert expired == [TIMER]
    assert not opened.runner._timers._expiries


def test_timer_that_expires_behind_slow_disk_is_postponed_once(opened, expired):
    expire_behind_disk(opened, RETRY_MS)
    assert expired == []
    opened.submit(put("k", 2))
    opened.clock.advance(milliseconds=RETRY_MS - 1)
    assert expired == []
    opened.clock.advance(milliseconds=1)
    assert expired == [TIMER], "the second time the disk is not waited for"
    assert not opened.runner._timers._postponed


@pytest.mark.parametrize("waited_ms", [0, RETRY_MS])
def test_timer_that_is_started_again_behind_disk_has_not_expired(opened, expired, waited_ms):
    expire_behind_disk(opened, waited_ms, after(opened, 9000))
    opened.clock.advance(milliseconds=7990 - waited_ms)
    assert expired == []
    opened.clock.advance(milliseconds=20)
    assert expired == [TIMER]
    assert not opened.runner._timers._postponed


@pytest.mark.parametrize("waited_ms", [0, RETRY_MS])
def test_timer_that_is_cancelled_behind_disk_has_not_expired(opened, expired, waited_ms):
    expire_behind_disk(opened, waited_ms, Cancel(TIMER))
    opened.clock.advance(hours=1)
    assert expired == []
    assert len(opened.runner._timers) == 0


def test_postponed_timer_that_is_started_again_has_all_its_time(opened, expired):
    expire_behind_disk(opened, RETRY_MS)
    opened.submit(say(response="heard", effects=(after(opened, 5000),)))
    opened.clock.advance(milliseconds=4999)
    assert expired == []
    opened.submit(put("k", 2))
    opened.clock.advance(milliseconds=1)
    assert expired == [], "it was not postponed before"
    opened.sync()
    assert expired == [TIMER]


def test_timer_behind_disk_is_lost_with_its_partition(opened, expired):
    opened.submit(put("k", 1))
    opened.clock.advance(milliseconds=1000)
    assert len(opened.runner._timers) == 1
    opened.log.lose(0)
    assert len(opened.runner._timers) == 0
    opened.sync()
    opened.clock.advance(hours=1)
    assert (expired, opened.answers) == ([], ["set", "done"])


def test_timer_waits_for_the_last_group_of_its_partition_alone(expired):
    two = Coordinator(2)
    two.log.open()
    timer = Timer("a", "session", "member")
    at_ms = int(two.clock.monotonic() * 1000) + 500
    two.submit(say(response="set", effects=(Schedule(timer, at_ms),)), "a")
    journal = two.administration.logs.journal
    journal._submit = lambda _group, *, alone: None
    two.submit(put("a", 1), "a")
    journal.flush()
    two.submit(put("b", 2), "b")
    two.clock.advance(milliseconds=500)
    assert expired == []
    journal.advance_high_watermarks(1)
    journal.prepare_answers(1)
    journal.groups_became_durable(1)
    assert expired == [timer], "the newest group has nothing of its partition"
