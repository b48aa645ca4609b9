"""Wishes for leaders: kept in the store, and shown at once at the broker that wrote them."""

from __future__ import annotations

import asyncio
import contextlib
from uuid import UUID

import pytest

from barnabas.broker.cluster.membership.store_calls import Errands
from barnabas.broker.cluster.membership.stored_moves import StoredMoves
from barnabas.broker.testing.store.base import MemoryStore
from barnabas.storage.replicated.cluster_index import Assignment, HandOver
from tests.waiting import until

CLUSTER_ID = "oKlTPFF2TkSvFtAbxy0nMg"


class ClusterSnapshot:
    """Last snapshot of one broker."""

    def __init__(self, index) -> None:
        self._index = index
        self.picture_version = 0
        self._led = {}

    def take(self) -> None:
        snapshot = self._index.snapshot(self.picture_version)
        self.picture_version = snapshot.version
        self._led.update({each.partition_id: each for each in snapshot.led})

    def wanted(self, partition_id):
        found = self._led.get(partition_id)
        return None if found is None else found.wanted_node

    def pinned(self, partition_id):
        found = self._led.get(partition_id)
        return None if found is None else found.pinned_node


@pytest.fixture
def store():
    with contextlib.closing(MemoryStore(CLUSTER_ID)) as found:
        index = found.index
        session = index.register(UUID(int=1), 1, "", 60_000)
        other = index.register(UUID(int=2), 2, "", 60_000)
        for each in range(4):
            index.add_partition(each)
        index.assign([Assignment(each, session, -1) for each in range(4)])
        found.sessions = session, other
        yield found


@pytest.fixture
def base(store):
    with contextlib.closing(store.base()) as found:
        yield found


@pytest.fixture
def snapshot(store):
    found = ClusterSnapshot(store.index)
    found.take()
    return found


@pytest.fixture
def refreshed():
    return []


@pytest.fixture
def moves(base, snapshot, refreshed):
    with contextlib.closing(Errands(base.cluster_index())) as errands:
        yield StoredMoves(errands, snapshot, lambda: refreshed.append(1))


def seen(moves):
    return [moves.wanted(each) for each in range(4)]


async def test_wishes_are_seen_before_the_next_picture_and_go_with_it(
    store, snapshot, moves, refreshed
):
    await moves.want({0: 2, 1: 2, 2: 3})
    assert seen(moves) == [2, 2, 3, None]
    assert refreshed, "the next picture is wanted soon"
    assert snapshot.wanted(0) is None
    snapshot.take()
    assert [snapshot.wanted(each) for each in range(4)] == seen(moves)
    session, other = store.sessions
    store.index.hand_over(session, [HandOver(0, 0, other)])
    snapshot.take()
    assert seen(moves) == [None, 2, 3, None], "it is met"


async def test_a_wish_is_taken_back(snapshot, moves):
    await moves.want({0: 2, 1: 2})
    snapshot.take()
    await moves.want({0: None})
    assert seen(moves) == [None, 2, None, None]
    snapshot.take()
    assert seen(moves) == [None, 2, None, None]


async def test_pins_are_seen_before_the_next_picture_and_stay(store, snapshot, moves, refreshed):
    await moves.want({1: 3})
    await moves.pin({0: 2, 1: 1, 2: 2})
    pinned = [2, 1, 2, None]
    assert refreshed
    # Broker 1 leads all of them, so it is not wished for.
    for _ in range(2):
        assert seen(moves) == [2, None, 2, None]
        assert [moves.pinned(each) for each in range(4)] == pinned
        snapshot.take()
    session, other = store.sessions
    store.index.hand_over(session, [HandOver(0, 0, other)])
    snapshot.take()
    assert seen(moves) == [None, None, 2, None]
    assert [moves.pinned(each) for each in range(4)] == pinned
    await moves.pin({0: None, 2: None})
    assert [moves.pinned(each) for each in range(4)] == [None, 1, None, None]
    assert seen(moves) == [None] * 4


async def test_others_see_it_too(store, moves):
    await moves.want({3: 2})
    other = ClusterSnapshot(store.index)
    other.take()
    assert other.wanted(3) == 2


async def test_cancelled_wait_does_not_cancel_wish(store, base, snapshot, moves):
    base.cut()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await moves.want({0: 2})
    assert seen(moves) == [None] * 4
    base.mend()
    other = ClusterSnapshot(store.index)

    def is_wanted():
        other.take()
        return other.wanted(0) == 2

    await until(is_wanted)
