"""Fetches that wait for bytes, produces that wait for the disk."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.broker.api.waiting import FetchWaits, ParkedFetch, PendingProduce
from barnabas.broker.runtime.clock import ManualClock


class Line:
    """Stands for a connection: keeps what is answered."""

    def __init__(self):
        self.answers = []
        self.bugs = []

    def answered(self, deferred):
        self.answers.append(deferred.response)

    def bug(self, name, error):
        self.bugs.append(error)


class Waiting:
    def __init__(self):
        self.clock = ManualClock(0)
        self.waits = FetchWaits(asyncio.get_running_loop(), self.clock)
        self.line = Line()
        self.reads = 0

    def park(self, *logs, min_bytes=1, wait_ms=500, read=None, read_if_enough=None):
        def count():
            self.reads += 1
            return f"answer {self.reads}"

        fetch = ParkedFetch(
            self.waits,
            logs,
            min_bytes=min_bytes,
            wait_ms=wait_ms,
            read=read or count,
            read_if_enough=read_if_enough,
        )
        fetch.connection = self.line
        fetch.route = type("Route", (), {"name": "Fetch"})
        return fetch


@pytest.fixture
async def waiting():
    return Waiting()


async def test_enough_bytes_answer_in_the_next_turn(waiting):
    waiting.park("a", "b", min_bytes=100)
    waiting.waits.advanced("a", 60)
    waiting.waits.advanced("c", 1000)
    await asyncio.sleep(0)
    assert not waiting.line.answers
    waiting.waits.advanced("b", 40)
    waiting.waits.advanced("b", 40)
    assert not waiting.line.answers  # a group moves many logs; one read sees them all
    await asyncio.sleep(0)
    assert waiting.line.answers == ["answer 1"]
    assert len(waiting.waits) == 0


async def test_due_fetches_can_be_answered_at_once(waiting):
    waiting.park("a")
    waiting.waits.advanced("a", 1)
    waiting.waits.answer_due()
    assert waiting.line.answers == ["answer 1"]
    await asyncio.sleep(0)
    assert waiting.line.answers == ["answer 1"]


async def test_time_answers(waiting):
    waiting.park("a", wait_ms=500)
    waiting.clock.advance(milliseconds=499)
    assert not waiting.line.answers
    waiting.clock.advance(milliseconds=1)
    assert waiting.line.answers == ["answer 1"]
    waiting.waits.advanced("a", 10)
    await asyncio.sleep(0)
    assert waiting.line.answers == ["answer 1"]


async def test_an_early_end_answers_once(waiting):
    fetch = waiting.park("a")
    fetch.complete_early()
    fetch.complete_early()
    waiting.clock.advance(seconds=1)
    assert waiting.line.answers == ["answer 1"]


async def test_wake_answers_everyone_who_waits_on_a_log(waiting):
    waiting.park("a", min_bytes=1000)
    waiting.park("a", "b", min_bytes=1000)
    waiting.park("b", min_bytes=1000)
    waiting.waits.wake("a")
    await asyncio.sleep(0)
    assert len(waiting.line.answers) == 2
    assert len(waiting.waits) == 1


async def test_who_has_gone_is_forgotten(waiting):
    fetch = waiting.park("a", "b")
    fetch.abandoned()
    fetch.abandoned()
    assert len(waiting.waits) == 0
    waiting.clock.advance(seconds=1)
    assert waiting.reads == 0


async def test_a_read_that_fails_is_a_bug_of_that_fetch_alone(waiting):
    def fail():
        raise ZeroDivisionError

    waiting.park("a", read=fail)
    waiting.park("a")
    waiting.waits.advanced("a", 1)
    await asyncio.sleep(0)
    assert [type(bug) for bug in waiting.line.bugs] == [ZeroDivisionError]
    assert waiting.line.answers == ["answer 1"]


async def test_who_finds_too_little_waits_on(waiting):
    """Not every byte is meant for every reader: an open transaction's are not."""
    found = [None, None, "enough"]
    waiting.park("a", min_bytes=100, read_if_enough=lambda: found.pop(0))
    waiting.waits.advanced("a", 100)
    await asyncio.sleep(0)
    waiting.waits.advanced("a", 1)
    waiting.waits.answer_due()
    assert not waiting.line.answers
    assert len(waiting.waits) == 1
    waiting.waits.advanced("a", 1)
    await asyncio.sleep(0)
    assert waiting.line.answers == ["enough"]
    assert len(waiting.waits) == 0


async def test_time_and_an_early_end_answer_with_too_little(waiting):
    for end in (
        lambda fetch: fetch.complete_early(),
        lambda _: waiting.clock.advance(milliseconds=500),
    ):
        fetch = waiting.park("a", read_if_enough=lambda: None)
        waiting.waits.advanced("a", 1)
        await asyncio.sleep(0)
        answered = len(waiting.line.answers)
        end(fetch)
        assert len(waiting.line.answers) == answered + 1
    assert len(waiting.waits) == 0


async def test_a_produce_is_answered_when_it_is_durable(waiting):
    pending = PendingProduce("stored")
    pending.connection = waiting.line
    assert not waiting.line.answers
    pending.prepare()
    assert waiting.line.answers == ["stored"]


async def test_a_produce_may_be_durable_before_anybody_listens():
    pending = PendingProduce("stored")
    pending.prepare()
    assert pending.response == "stored"
