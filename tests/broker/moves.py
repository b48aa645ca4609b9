"""A cluster in which a test decides which broker leads each partition."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from barnabas.broker.cluster.leading.states import State
from barnabas.broker.cluster.membership.handovers import HandOvers
from barnabas.broker.coordination.shard import java_hash
from barnabas.broker.metadata.topic_names import GROUP_OFFSETS, TRANSACTION_STATE
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.storage.replicated.cluster_index import Assignment, HandOver
from barnabas.storage.runtime.threads import new_event
from barnabas.testing import Broker, Cluster
from tests.broker.data_plane import Named, Wire
from tests.waiting import wait_until

INTERNAL_PARTITIONS = 3
"""Partitions of ``__consumer_offsets`` and of ``__transaction_state``."""
STAYS = {"auto.leader.rebalance.enable": "false"}
"""Setting of a cluster that moves no partition without a request."""


@contextlib.contextmanager
def led_cluster(
    leaders: Mapping[str, list[int]], *, brokers: int = 3, **config: str
) -> Iterator[Cluster]:
    """Start a cluster with topics led as ``leaders`` says; broker 0 leads all internal topics.

    ``leaders``: by topic, the broker of each partition.
    """
    with Cluster(brokers=brokers, config={**STAYS, **config}) as cluster:
        for topic, numbers in leaders.items():
            cluster.create_topic(topic, len(numbers))
        for key_type in (0, 1):  # Creates the internal topics.
            with Wire(cluster.brokers[0].address) as wire:
                request = FindCoordinatorRequest("any", key_type, ["any"])
                wait_until(
                    lambda request=request, wire=wire: (
                        not wire.ask(FIND_COORDINATOR, request, 4).coordinators[0].error_code
                    )
                )
        cluster.wait_until_served()
        lead(cluster, leaders)
        yield cluster


def lead(cluster: Cluster, leaders: Mapping[str, list[int]]) -> None:
    """Move all partitions to where ``led_cluster`` has them."""
    internal = [0] * INTERNAL_PARTITIONS
    wanted = {**leaders, GROUP_OFFSETS: internal, TRANSACTION_STATE: internal}
    for topic, numbers in wanted.items():
        for index, number in enumerate(numbers):
            if cluster.leader(topic, index) != number:
                cluster.move(topic, index, to=number)
    wait_until(lambda: has_loaded(cluster.brokers[0]), "the coordinators have loaded")


def has_loaded(broker: Broker) -> bool:
    """Whether the coordinators of a broker have read all partitions that it leads."""
    coordinators = (broker.server.groups, broker.server.transactions)
    return broker.call(lambda: all(each.log.replayed.is_set() for each in coordinators))


def key_at(index: int, name: str) -> str:
    """Return a group or a transactional id of a partition of its internal topic."""
    found = (f"{name}-{number}" for number in range(1000))
    return next(each for each in found if java_hash(each) % INTERNAL_PARTITIONS == index)


def named(broker: Broker, topic: str) -> Named:
    """Return a topic with its id."""
    return Named(topic, broker.server.catalogue.topics[topic].topic_id)


def log_of(broker: Broker, topic: str, index: int) -> Any:
    """Return the log of a partition, or None if another broker leads it."""
    return broker.server.catalogue.partition(topic, index).log


def partition_id(broker: Broker, topic: str, index: int) -> int:
    """Return the id of a partition."""
    return broker.server.catalogue.partition(topic, index).partition_id


def state(broker: Broker, topic: str, index: int) -> State:
    """Return the state of a partition at a broker."""
    found = partition_id(broker, topic, index)
    return broker.call(lambda: broker.server.leadership.state_of(found))


def stored(cluster: Cluster, topic: str, index: int) -> Any:
    """Return the leader, the epoch and the offsets of a partition in the store."""
    return cluster._store.index.partition(cluster._partition_ids(topic)[index])


def assign(cluster: Cluster, topic: str, index: int, number: int) -> None:
    """Make a broker the leader in the store; the present leader learns it from its view."""
    found = cluster._partition_ids(topic)[index]
    session = cluster.brokers[number].server._home.session
    epoch = stored(cluster, topic, index).leader_epoch
    assert cluster._store.index.assign([Assignment(found, session, epoch)])


def unled(cluster: Cluster, topic: str, index: int) -> None:
    """Remove the leader of a partition; ``frozen`` keeps it without one."""
    found = stored(cluster, topic, index)
    partition = HandOver(cluster._partition_ids(topic)[index], found.leader_epoch, None)
    cluster._store.index.hand_over(found.leader_session, [partition])


@contextlib.contextmanager
def frozen(cluster: Cluster) -> Iterator[None]:
    """Move no partition, and give no partition a leader: what is wished for stays a wish."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cluster._store.index, "assign", lambda _assignments: frozenset())
        patch.setattr(HandOvers, "release_next", lambda _handovers: None)
        yield


class RecordedMoves:
    """The wishes that a broker makes, as it makes them."""

    def __init__(self, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[dict[int, int | None]] = []
        """Wishes without pins."""
        self.asked_to_pin: list[dict[int, int | None]] = []
        for name, asked in (("want", self.asked), ("pin", self.asked_to_pin)):
            self._record(broker.server.moves, name, asked, monkeypatch)

    def _record(self, moves: Any, name: str, asked: list[Any], patch: Any) -> None:
        genuine = getattr(moves, name)

        async def record(wishes: Mapping[int, int | None]) -> None:
            asked.append(dict(wishes))
            await genuine(wishes)

        patch.setattr(moves, name, record)


def served(cluster: Cluster, topic: str, index: int, number: int) -> None:
    """Wait until a broker serves a partition, its coordinator included."""
    broker = cluster.brokers[number]
    wait_until(
        lambda: state(broker, topic, index) is State.SERVED,
        lambda: f"{topic}-{index}: {state(broker, topic, index)}",
    )
    wait_until(lambda: has_loaded(broker), "the coordinators have loaded")


def seize(cluster: Cluster, topic: str, index: int, number: int) -> None:
    """Do what ``assign`` does, and wait until the new leader serves the partition."""
    assign(cluster, topic, index, number)
    served(cluster, topic, index, number)


def lose(broker: Broker, topic: str, index: int) -> None:
    """Take a partition from its coordinator, while the broker still leads it."""
    coordinator = coordinator_of(broker, topic)
    broker.call(lambda: coordinator.lose(index))


def gain(broker: Broker, topic: str, index: int) -> None:
    """Give a partition back to its coordinator, and wait until the coordinator has read it."""
    coordinator, log = coordinator_of(broker, topic), log_of(broker, topic, index)
    wait_until(lambda: broker.call(lambda: not log.unflushed), "all is in segments")
    broker.call(lambda: coordinator.gain(index))
    wait_until(lambda: has_loaded(broker), "the coordinator has loaded")


def coordinator_of(broker: Broker, topic: str) -> Any:
    """Return the coordinator whose state is in an internal topic."""
    server = broker.server
    return {GROUP_OFFSETS: server.groups, TRANSACTION_STATE: server.transactions}[topic]


def is_served(broker: Broker, topic: str, key: str) -> bool:
    """Whether a broker coordinates a group or a transactional id."""
    coordinator = coordinator_of(broker, topic)
    return broker.call(lambda: coordinator.refusal(key)) == ErrorCode.NONE


class Held:
    """Calls of a function that wait until ``release``: on threads, not on a loop."""

    def __init__(
        self, monkeypatch: Any, owner: object, name: str, *, has_result: bool = False
    ) -> None:
        """``has_result``: the calls wait when they have their result, not before."""
        self.calls = 0
        self._may_continue = new_event()
        genuine: Callable[..., Any] = getattr(owner, name)

        def held(*given: Any, **more: Any) -> Any:
            if has_result:
                result = genuine(*given, **more)
                self._wait()
                return result
            self._wait()
            return genuine(*given, **more)

        monkeypatch.setattr(owner, name, held)

    def release(self) -> None:
        """Continue all calls."""
        self._may_continue.set()

    def _wait(self) -> None:
        self.calls += 1
        self._may_continue.wait()
