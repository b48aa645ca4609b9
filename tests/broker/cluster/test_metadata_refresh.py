"""Requests for an object that another broker has just created find it."""

from __future__ import annotations

import asyncio

from barnabas.broker.cluster import metadata_refresh as misses
from barnabas.broker.cluster.membership import membership
from barnabas.broker.cluster.metadata_refresh import COORDINATOR_PATIENCE_S, PATIENCE_S, Misses
from barnabas.broker.runtime.clock import ManualClock
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic
from barnabas.storage.runtime.clock import monotonic
from tests.broker.data_plane import Wire
from tests.cluster.watched import WatchedCluster
from tests.waiting import until, wait_until

LONG_S = 60.0


class ScriptedLooks:
    """Looks that begin, and are shown, when a test says so."""

    def __init__(self) -> None:
        self.polls_started = self.polls_applied = self.asked = 0
        self.is_following = self.is_away = False
        self.clock = ManualClock()
        self.misses = Misses(self, lambda: self.is_following, lambda: self.is_away, self.clock)

    def refresh(self) -> None:
        self.asked += 1

    def begin(self) -> None:
        self.polls_started += 1

    def show(self) -> None:
        self.polls_applied = self.polls_started
        self.misses.wake()

    async def ask(self) -> asyncio.Task[None]:
        """Start a wait for a poll."""
        asked = self.asked
        task = asyncio.ensure_future(self.misses.wait_for_poll())
        await until(lambda: self.asked > asked)
        return task


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_look_under_way_answers_only_those_who_came_before_it():
    looks = ScriptedLooks()
    first = await looks.ask()
    looks.begin()
    second = await looks.ask()
    looks.show()
    await first
    await settle()
    assert not second.done()
    looks.begin()
    looks.show()
    await second


async def test_newer_metadata_is_shown_first():
    looks = ScriptedLooks()
    waiting = await looks.ask()
    looks.begin()
    looks.is_following = True
    looks.show()
    await settle()
    assert not waiting.done()
    looks.is_following = False
    looks.misses.wake()
    await waiting


async def test_poll_wait_is_limited_and_skipped_without_store():
    looks = ScriptedLooks()
    waiting = await looks.ask()
    looks.clock.advance(seconds=PATIENCE_S)
    await waiting
    looks.is_away = True
    asked = looks.asked
    await looks.misses.wait_for_poll()
    assert looks.asked == asked == 1


async def test_looks_are_taken_until_there_is_a_coordinator():
    """Polls continue while the store is unavailable: another broker takes over as soon as it
    returns.
    """
    looks, known = ScriptedLooks(), []
    looks.is_away = True
    waiting = asyncio.ensure_future(looks.misses.wait_for_coordinator(lambda: bool(known)))
    for count in (1, 2):
        await until(lambda count=count: looks.asked == count)
        looks.begin()
        looks.show()
    await until(lambda: looks.asked == 3)
    looks.clock.advance(seconds=2 * PATIENCE_S)
    await settle()
    assert not waiting.done()
    known.append(1)
    looks.begin()
    looks.show()
    await waiting
    assert looks.asked == 3


async def test_wait_for_coordinator_is_limited():
    looks = ScriptedLooks()
    waiting = asyncio.ensure_future(looks.misses.wait_for_coordinator(lambda: False))
    await until(lambda: looks.asked)
    looks.clock.advance(seconds=COORDINATOR_PATIENCE_S)
    await waiting
    assert looks.asked == 1


# ------------------------------------------------------------------------------------- of brokers


def metadata_of(wire: Wire, name: str, topic_id: bytes = bytes(16)):
    asked = [MetadataRequestTopic(name=None if any(topic_id) else name, topic_id=topic_id)]
    request = MetadataRequest(asked, allow_auto_topic_creation=False)
    (topic,) = wire.ask(METADATA, request, 12).topics
    return topic


def coordinator_of(wire: Wire, group: str):
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
    (found,) = wire.ask(FIND_COORDINATOR, request, 4).coordinators
    return found


def test_a_topic_of_another_broker_is_known_at_once(monkeypatch):
    """Requests alone cause polls: no change is notified, and the next periodic poll is late."""
    monkeypatch.setattr(misses, "PATIENCE_S", LONG_S)
    with WatchedCluster(2) as cluster:
        one, two = cluster.brokers
        cluster.create_topic("first")
        cluster.settle("first")
        monkeypatch.setattr(membership, "LOOK_EVERY_S", LONG_S)
        with Wire(two.address) as wire:
            for number in range(5):
                name = f"t{number}"
                one.create_topic(name, 2)
                topic_id = one.server.catalogue.topic(name).topic_id
                found = metadata_of(wire, name, topic_id if number % 2 else bytes(16))
                assert (found.error_code, found.name) == (ErrorCode.NONE, name)
            assert metadata_of(wire, "none").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert metadata_of(wire, "", bytes([9] * 16)).error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_coordinator_is_looked_for(monkeypatch):
    monkeypatch.setattr(misses, "COORDINATOR_PATIENCE_S", LONG_S)
    with (
        WatchedCluster(2) as cluster,
        Wire(cluster.brokers[0].address) as first,
        Wire(cluster.brokers[1].address) as second,
    ):
        wait_until(lambda: coordinator_of(first, "g").error_code == ErrorCode.NONE)
        assert coordinator_of(second, "g").error_code == ErrorCode.NONE
        assert coordinator_of(second, "g").node_id == coordinator_of(first, "g").node_id


def test_unknown_topic_error_is_quick_with_unavailable_store():
    with WatchedCluster(2) as cluster:
        cluster.cut_from_store(0)
        with Wire(cluster.brokers[0].address) as wire:
            began_s = monotonic()
            assert metadata_of(wire, "none").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert monotonic() - began_s < LONG_S / 2
        cluster.mend_to_store(0)
        cluster.brokers[1].create_topic("t")
        wait_until(lambda: cluster.on(0, lambda server: server.catalogue.topic("t")) is not None)
