"""Fetches that wait for bytes, produces that wait for the disk."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.broker.api.waiting import FetchWaits, PendingProduce, Watch
from barnabas.broker.runtime.clock import ManualClock


class Ticket:
    """Stands for the wait of a run: notes what it is resumed with."""

    def __init__(self):
        self.results = []

    def settle(self, result):
        self.results.append(result)


class Waiting:
    def __init__(self):
        self.clock = ManualClock(0)
        self.waits = FetchWaits(asyncio.get_running_loop(), self.clock)

    def watch(self, *logs, missing_bytes=1, wait_ms=500):
        watch = Watch(self.waits, logs, missing_bytes=missing_bytes, wait_ms=wait_ms)
        ticket = Ticket()
        assert watch.begin(ticket) is None
        return watch, ticket.results


@pytest.fixture
async def waiting():
    return Waiting()


async def test_enough_bytes_resume_in_the_next_turn(waiting):
    watch, resumed = waiting.watch("a", "b", missing_bytes=100)
    waiting.waits.advanced("a", 60)
    waiting.waits.advanced("c", 1000)
    await asyncio.sleep(0)
    assert not resumed
    waiting.waits.advanced("b", 40)
    waiting.waits.advanced("b", 40)
    assert not resumed  # a group moves many logs; one read sees them all
    await asyncio.sleep(0)
    assert resumed == [True]
    watch.close()
    assert len(waiting.waits) == 0


async def test_due_fetches_can_be_resumed_at_once(waiting):
    _, resumed = waiting.watch("a")
    waiting.waits.advanced("a", 1)
    waiting.waits.answer_due()
    assert resumed == [True]
    await asyncio.sleep(0)
    assert resumed == [True]


async def test_time_resumes(waiting):
    _, resumed = waiting.watch("a", wait_ms=500)
    waiting.clock.advance(milliseconds=499)
    assert not resumed
    waiting.clock.advance(milliseconds=1)
    assert resumed == [False]
    waiting.waits.advanced("a", 10)
    await asyncio.sleep(0)
    assert resumed == [False]


async def test_wake_resumes_every_fetch_of_a_log(waiting):
    watches = [waiting.watch(*logs, missing_bytes=1000) for logs in ("a", "ab", "b")]
    waiting.waits.wake("a")
    await asyncio.sleep(0)
    assert [resumed for _, resumed in watches] == [[True], [True], []]


async def test_closed_watch_is_forgotten(waiting):
    watch, resumed = waiting.watch("a", "b")
    watch.close()
    watch.close()
    assert len(waiting.waits) == 0
    waiting.clock.advance(seconds=1)
    assert not resumed


async def test_watch_that_waits_again_needs_more_bytes(waiting):
    """Some bytes are not for every consumer: those of an open transaction."""
    watch, resumed = waiting.watch("a", missing_bytes=100)
    waiting.waits.advanced("a", 100)
    await asyncio.sleep(0)
    assert resumed == [True]
    watch.wait_for(1)
    again = Ticket()
    watch.begin(again)
    await asyncio.sleep(0)
    assert not again.results
    waiting.waits.advanced("a", 1)
    await asyncio.sleep(0)
    assert again.results == [True]


@pytest.mark.parametrize("is_in_time", [True, False])
async def test_watch_remembers_what_came_before_its_wait(waiting, is_in_time):
    watch = Watch(waiting.waits, (), missing_bytes=100, wait_ms=500)
    watch.wait_on(["a"])
    if is_in_time:
        waiting.waits.wake("a")
        await asyncio.sleep(0)
    else:
        waiting.clock.advance(milliseconds=500)
    ticket = Ticket()
    watch.begin(ticket)
    assert ticket.results == [is_in_time]
    watch.close()


class Line:
    """A connection that keeps the responses."""

    def __init__(self):
        self.answers = []

    def answered(self, deferred):
        self.answers.append(deferred.response)


def test_a_produce_is_answered_when_it_is_durable():
    pending, line = PendingProduce("stored"), Line()
    pending.connection = line
    assert not line.answers
    pending.prepare()
    assert line.answers == ["stored"]


async def test_a_produce_may_be_durable_before_anybody_listens():
    pending = PendingProduce("stored")
    pending.prepare()
    assert pending.response == "stored"
