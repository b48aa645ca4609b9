"""The budget in bytes of the HTTP port, without a clock: what waits, what is refused, what goes."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.broker.http.messages.answer_memory import (
    LIMIT_BYTES,
    MIB,
    WORK_BYTES_MAX,
    AnswerMemory,
)
from barnabas.protocol.errors import ErrorCode, KafkaError

PROMISED_BYTES = 400 * MIB
"""Resident memory that SECURITY.md and docs/attacks.md promise."""


@pytest.fixture
def memory():
    """A budget of 100 bytes, of which responses may hold 60."""
    return AnswerMemory(limit_bytes=100, work_bytes_max=40)


def unread(memory, owner, size_bytes):
    """Return a response that waits for its client, and the list of those that were closed."""
    closed = []
    holding = memory.holding(owner)
    holding.hold(size_bytes)
    holding.close_response = lambda: closed.append(holding)
    return holding, closed


def test_limits_leave_room_below_the_promise():
    assert WORK_BYTES_MAX < LIMIT_BYTES
    assert LIMIT_BYTES + LIMIT_BYTES // 2 <= PROMISED_BYTES


def test_response_without_room_is_refused_and_leaves_the_budget_unchanged(memory):
    unread(memory, "alice", 50)
    second = memory.holding("alice")
    with pytest.raises(KafkaError, match="no room") as refused:
        second.hold(11)
    assert refused.value.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert memory.held_bytes == 50
    second.hold(10)
    assert memory.held_bytes == 60


def test_release_gives_back_bytes_once_and_calls_back(memory):
    holding, _ = unread(memory, "alice", 50)
    called = []
    holding.on_release(lambda: called.append(1))
    holding.release()
    holding.release()
    assert (memory.held_bytes, called) == (0, [1])


def test_other_user_gets_room_from_the_oldest_response_of_the_largest_owner(memory):
    first, closed_first = unread(memory, "mallory", 30)
    _, closed_second = unread(memory, "mallory", 30)
    unread(memory, "alice", 20)
    assert (closed_first, closed_second) == ([first], [])
    assert memory.held_bytes == 50


def test_largest_owner_gets_no_room_from_others(memory):
    _, closed = unread(memory, "alice", 20)
    with pytest.raises(KafkaError):
        unread(memory, "mallory", 50)
    assert closed == []


async def test_work_waits_in_turn_and_for_unread_responses(memory):
    ends = [await memory.begin_work(40), await memory.begin_work(40)]
    order = []

    async def work(name, size_bytes):
        end = await memory.begin_work(size_bytes)
        order.append(name)
        return end

    large = asyncio.create_task(work("large", 40))
    await asyncio.sleep(0)
    small = asyncio.create_task(work("small", 30))
    await asyncio.sleep(0)
    assert order == []
    ends[0]()
    await large
    assert order == ["large"]
    assert memory.work_bytes == 80
    ends[1]()
    (await small)()
    (await large)()
    assert order == ["large", "small"]
    assert memory.work_bytes == 0


async def test_unread_responses_stop_no_work(memory):
    unread(memory, "mallory", 60)
    end = await memory.begin_work(1000)
    assert memory.work_bytes == 40
    end()


async def test_cancelled_work_leaves_no_bytes_and_no_place_in_the_queue(memory):
    end = await memory.begin_work(40)
    second_end = await memory.begin_work(40)
    waiting = asyncio.create_task(memory.begin_work(40))
    await asyncio.sleep(0)
    behind = asyncio.create_task(memory.begin_work(20))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    (await behind)()
    end()
    second_end()
    assert memory.work_bytes == 0


async def test_work_cancelled_after_its_admission_gives_its_bytes_back(memory):
    end = await memory.begin_work(40)
    second_end = await memory.begin_work(40)
    waiting = asyncio.create_task(memory.begin_work(40))
    await asyncio.sleep(0)
    end()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    second_end()
    assert memory.work_bytes == 0
