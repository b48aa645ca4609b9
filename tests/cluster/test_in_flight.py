"""Every Produce request gets a response or a closed connection when its leader's session ends.

Clients keep requests of several kinds in flight at one broker. At one of its flushes, one of these
happens: its session ends before or after the store has the flush, and the broker learns of it by
the flush or by its heartbeat; or its partitions move to other brokers. The tests sweep over the
first flushes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import product
from random import Random
from typing import Any

import pytest

from barnabas.broker.cluster.leading.states import State
from barnabas.broker.cluster.view import NO_NODE
from barnabas.broker.testing.store.index import MemoryIndex
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.produce import PRODUCE, ProduceRequest
from barnabas.storage.runtime.clock import sleep
from barnabas.storage.runtime.threads import new_event, start_thread
from barnabas.testing import Cluster
from tests.broker.data_plane import Named, Wire, batch, produce_request
from tests.products import case
from tests.seeds import SEED
from tests.waiting import wait_until
from tests.worlds import world

__all__ = ["world"]

PARTITIONS = 6
TRANSACTIONS = 1
"""The key type of FindCoordinator."""
FLUSHES = 4
IN_FLIGHT = 5
LARGE_BYTES = 300_000
ANSWERED_WITHIN_S = 60.0
"""Far more than any answer takes: one that takes longer never comes."""
FLUSH_S = 0.002
ADDS_SINCE = 12
"""Version of Produce since which the leader adds its partition to the transaction."""
T = Named("t")
BEFORE, BEHIND = "before the store has it", "behind it"
BY_FLUSH, BY_HEARTBEAT = "heard of by the flush", "heard of by the heartbeat"
OF_EVEN_FLUSHES = {(BEFORE, BY_FLUSH), (BEHIND, BY_HEARTBEAT)}
"""Ends of a session at every second flush in `make test`; the others at those between."""


class Victim:
    """A broker, to which something happens at one of its flushes."""

    def __init__(self, cluster: Cluster, number: int) -> None:
        self.cluster = cluster
        self.broker = cluster.brokers[number]
        self.led = [each for each in range(PARTITIONS) if cluster.leader("t", each) == number]
        self.flushes = 0
        self.happens: dict[int, Callable[[Callable[[], Any]], Any]] = {}
        """At which flush, and what; it is given what asks the store."""
        self.has_begun = False
        """Whether flushes count: those that clients need to begin do not."""
        self.done = 0

    @property
    def session(self) -> int:
        return self.broker.server._home.session

    def commit(self, session: int, ask: Callable[[], Any]) -> Any:
        """Commit a flush; on any broker's thread."""
        if session != self.session or not self.has_begun:
            return ask()
        self.flushes += 1
        sleep(FLUSH_S)  # So that requests come meanwhile.
        happens = self.happens.get(self.flushes)
        if happens is None:
            return ask()
        self.done += 1
        return happens(ask)

    def loses_session(self, when: str, heard: str) -> Callable[[Callable[[], Any]], Any]:
        def lose(ask: Callable[[], Any]) -> Any:
            session = self.session
            if when == BEHIND:
                ask()
            self.cluster._base.cluster_index().fence(session)
            if heard == BY_HEARTBEAT:
                member = self.broker.server._member
                member._membership._note_end(session)
                wait_until(lambda: member._sessions._ended_session == session, "heard")
            return ask()  # Again, where the answer to the first was lost.

        return lose

    def is_moved(self) -> Callable[[Callable[[], Any]], Any]:
        """Move all partitions of the broker to others, and hold the flush until it has noticed."""
        others = [each for each in self.cluster.running if each != self.broker.node_id]

        def move(ask: Callable[[], Any]) -> Any:
            ids = self.cluster._partition_ids("t")
            for index in self.led:
                self.cluster.want("t", index, others[index % len(others)])
            states = [State.DRAINING, State.AWAY]
            wait_until(lambda: self.state(ids[self.led[0]]) in states, lambda: f"{self.led}")
            return ask()

        return move

    def state(self, partition_id: int) -> State:
        return self.broker.call(lambda: self.broker.server.leadership.state_of(partition_id))


class Sender:
    """Keeps requests in flight on one connection until it is refused; waits for all answers."""

    def __init__(self, address: tuple[str, int], make: Callable[[int], ProduceRequest]) -> None:
        self.answered = 0
        self.error: BaseException | None = None
        self.is_over = new_event()
        self._address = address
        self._make = make

    def start(self) -> None:
        self.thread = start_thread("sender", self._run)

    def _run(self) -> None:
        try:
            with Wire(self._address, timeout_s=ANSWERED_WITHIN_S) as wire:
                self._send(wire)
        except ConnectionError:
            pass
        except BaseException as error:  # noqa: BLE001  told by the test's own thread
            self.error = error

    def _send(self, wire: Wire) -> None:
        sent, owed = 0, deque[int]()
        is_refused = False
        while owed or not is_refused:
            while len(owed) < IN_FLIGHT and not (is_refused or self.is_over.is_set()):
                wire.send(PRODUCE, self._make(sent), ADDS_SINCE)
                owed.append(sent)
                sent += 1
            if not owed:
                return
            codes = [
                result.error_code
                for topic in wire.receive().responses
                for result in topic.partition_responses
            ]
            owed.popleft()
            self.answered += 1
            is_refused = is_refused or any(codes)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    config = {"auto.leader.rebalance.enable": "false"}  # What is moved is moved by the test.
    with Cluster(brokers=3, seed=SEED, config=config) as running:
        running.create_topic("t", PARTITIONS)
        yield running


@pytest.fixture
def victim(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Victim:
    cluster.wait_until_served()
    leaders = [cluster.leader("t", index) for index in range(PARTITIONS)]
    number = max(range(3), key=leaders.count)
    found = Victim(cluster, number)
    commit = MemoryIndex.commit_flush

    def commit_flush(index: MemoryIndex, session: int, flush: Any) -> Any:
        return found.commit(session, lambda: commit(index, session, flush))

    monkeypatch.setattr(MemoryIndex, "commit_flush", commit_flush)
    return found


def senders(victim: Victim, random: Random) -> list[Sender]:
    """Clients of several kinds, all of one broker."""
    led, address = victim.led, victim.broker.address
    producer = transactional_producer(victim, f"id-{random.random()}")

    def small(_number: int) -> ProduceRequest:
        return produce_request(ADDS_SINCE, T, (random.choice(led), batch(b"small")))

    def to_all(_number: int) -> ProduceRequest:
        return produce_request(
            ADDS_SINCE, T, *[(each, batch(b"all")) for each in range(PARTITIONS)]
        )

    def to_own(_number: int) -> ProduceRequest:
        return produce_request(ADDS_SINCE, T, *[(each, batch(b"own")) for each in led])

    def large(_number: int) -> ProduceRequest:
        return produce_request(ADDS_SINCE, T, (random.choice(led), batch(bytes(LARGE_BYTES))))

    def many(_number: int) -> ProduceRequest:
        data = [(led[each % len(led)], batch(b"many")) for each in range(250)]
        return produce_request(ADDS_SINCE, T, *data)

    def transactional(number: int) -> ProduceRequest:
        key, producer_id, epoch = producer
        records = batch(
            b"transaction",
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=number,
            transactional=True,
        )
        return produce_request(ADDS_SINCE, T, (led[0], records), transactional_id=key)

    kinds = (small, small, to_all, to_own, large, many, transactional)
    return [Sender(address, each) for each in kinds]


def transactional_producer(victim: Victim, key: str) -> tuple[str, int, int]:
    """Return a new transactional id, with its producer id and epoch."""
    found: list[Any] = []

    addresses = [each.address for each in victim.cluster.brokers]

    def is_initialized() -> bool:
        with Wire(victim.broker.address) as wire:
            asked = FindCoordinatorRequest(key, key_type=TRANSACTIONS)
            node_id = wire.ask(FIND_COORDINATOR, asked, 3).node_id
        if node_id == NO_NODE:
            return False
        with Wire(addresses[node_id]) as wire:
            found[:] = [wire.ask(INIT_PRODUCER_ID, InitProducerIdRequest(key, 60_000), 4)]
        return bool(found[0].error_code == ErrorCode.NONE)

    wait_until(is_initialized, lambda: found)
    return key, found[0].producer_id, found[0].producer_epoch


def all_are_answered(victim: Victim, random: Random, count: int) -> None:
    """Run clients until ``count`` events have happened, and each has its response."""
    clients = senders(victim, random)
    victim.has_begun = True
    for each in clients:
        each.start()
    wait_until(lambda: victim.done == count, lambda: f"{victim.flushes} flushes")
    for each in clients:
        each.is_over.set()
    for each in clients:
        each.thread.join(3 * ANSWERED_WITHIN_S)
    assert [each.error for each in clients if each.error is not None] == []
    assert not any(each.thread.is_alive() for each in clients)
    assert sum(each.answered for each in clients) > 0


@pytest.mark.parametrize(
    ("at", "when", "heard"),
    [
        case(at, when, heard, in_test=(at % 2 == 0) == ((when, heard) in OF_EVEN_FLUSHES))
        for at, when, heard in product(
            range(1, FLUSHES + 1), (BEFORE, BEHIND), (BY_FLUSH, BY_HEARTBEAT)
        )
    ],
)
def test_a_session_ends_under_requests(victim, at, when, heard):
    victim.happens[at] = victim.loses_session(when, heard)
    all_are_answered(victim, Random(SEED + at), 1)


@pytest.mark.parametrize("at", range(1, FLUSHES + 1))
def test_partitions_are_let_go_of_under_requests(victim, at):
    victim.happens[at] = victim.is_moved()
    all_are_answered(victim, Random(SEED + at), 1)
