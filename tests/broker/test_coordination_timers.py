"""Timers of a coordinator meeting decisions whose records are on their way to the disk."""

from __future__ import annotations

from barnabas.coordinator.decision import Cancel, Decision, Effect, Now, Schedule, Timer
from tests.broker.toy_coordinator import Coordinator, Expired, Toy, put, say

TIMER = Timer("k", "session", "member")


def run(
    before: tuple[Effect, ...], in_flight: tuple[Effect, ...], monkeypatch
) -> tuple[list[Timer], list[Timer]]:
    """Let the timer expire while a decision is on its way to the disk; return what expired."""
    expired: list[Timer] = []
    decide = Toy.decide

    def note(toy: Toy, command, now: Now) -> Decision:
        if isinstance(command, Expired):
            expired.append(command.timer)
            return Decision()
        return decide(toy, command, now)

    monkeypatch.setattr(Toy, "decide", note)
    coordinator = Coordinator()
    coordinator.log.open()
    coordinator.submit(say(response="set", effects=before))
    coordinator.submit(put("k", 1, effects=in_flight))
    coordinator.clock.advance(seconds=2)
    assert expired == [], "it waits behind the decision"
    coordinator.sync()
    assert coordinator.answers == ["set", "done"]
    assert len(coordinator.runner._lanes) == 0
    at_once = list(expired)
    coordinator.clock.advance(seconds=10)
    assert coordinator.runner._timers._expiries == {}
    return at_once, expired


def after(delay_ms: int) -> Schedule:
    """``delay_ms`` after the start of the test's clock."""
    return Schedule(TIMER, int(Coordinator().clock.monotonic() * 1000) + delay_ms)


def test_a_timer_that_expires_meanwhile_is_decided_afterwards(monkeypatch):
    at_once, later = run((after(1000),), (), monkeypatch)
    assert at_once == later == [TIMER]


def test_a_timer_that_the_decision_starts_again_has_not_expired(monkeypatch):
    at_once, later = run((after(1000),), (after(5000),), monkeypatch)
    assert at_once == []
    assert later == [TIMER]


def test_a_timer_that_the_decision_cancels_has_not_expired(monkeypatch):
    assert run((after(1000),), (Cancel(TIMER),), monkeypatch) == ([], [])
