"""The rings behind the story of transactional ids: what they keep, and how much memory that is."""

from __future__ import annotations

import tracemalloc

import pytest

from barnabas.broker.coordination import transaction_events as module
from barnabas.broker.coordination.transaction_events import Client, Kind, Reason, TransactionEvents
from barnabas.coordinator.decision import Now
from barnabas.coordinator.transactions.commands import (
    AddPartitions,
    EndTransaction,
    Expire,
    InitProducer,
    MarkersPlaced,
    MarkersWritten,
    TimerExpired,
)
from barnabas.coordinator.transactions.shard import TransactionShard
from barnabas.coordinator.transactions.state import (
    TRANSACTIONS_V2,
    TopicPartition,
    timeout_timer,
)

LIMIT_BYTES = 512 * 1024


class Coordinator:
    """A machine whose transitions are noted, as the runner has them noted."""

    def __init__(self):
        self.machine = TransactionShard(TRANSACTIONS_V2)
        self.events = TransactionEvents(0)
        self.now_ms = 0
        self.fresh = 0
        self.former = {}

    def run(self, command, client=None):
        self.now_ms += 1
        decision = self.machine.decide(command, Now(self.now_ms, self.now_ms))
        if decision.records:
            key = command.transactional_id
            former = self.former.get(key)
            self.events.moves(self.machine, decision, command, client, former, self.now_ms)
            for record in decision.records:
                self.machine.apply(record, 0)
            if client is not None:
                self.former[key] = client
        for change in decision.changes:
            self.machine.change(change)
        return decision.response

    def init(self, key, client=None, **more):
        self.fresh += 1
        return self.run(InitProducer(key, 60_000, fresh_producer_id=self.fresh, **more), client)

    def add(self, key, *partitions, topic="t"):
        found = self.machine.transactions[key]
        added = frozenset(TopicPartition(topic, each) for each in partitions)
        return self.run(AddPartitions(key, *found.producer, added, TRANSACTIONS_V2))

    def end(self, key, *, commit=True):
        found = self.machine.transactions[key]
        self.run(EndTransaction(key, *found.owner, commit, TRANSACTIONS_V2, 10**6))
        self.complete(key)

    def complete(self, key):
        found = self.machine.transactions[key]
        self.machine.change(MarkersPlaced(key, found.partitions))
        self.run(MarkersWritten(key, *found.producer))

    def kinds(self):
        return [each.kind for each in reversed(list(self.events.newest_first()))]


@pytest.fixture
def coordinator():
    return Coordinator()


def test_a_known_partition_is_no_event(coordinator):
    coordinator.init("a")
    coordinator.add("a", 0)
    coordinator.add("a", 0)
    coordinator.add("a", 0, 1)
    coordinator.end("a")
    assert coordinator.kinds() == [
        Kind.INITIALIZED,
        Kind.BEGUN,
        Kind.PARTITIONS_ADDED,
        Kind.COMMITTED,
    ]
    added = list(coordinator.events.newest_first())[1]
    assert (added.names, added.partition_count) == ("t-1", 1)


def test_offsets_prepared_and_expired(coordinator):
    one, other = Client("one", "/1"), Client("other", "/2")
    coordinator.init("a", one)
    coordinator.add("a", 0)
    coordinator.add("a", 7, topic="__consumer_offsets")
    coordinator.init("a", other, keep_prepared=True)
    prepared = next(coordinator.events.newest_first())
    assert (prepared.kind, prepared.client, prepared.former) == (Kind.PREPARED, other, one)
    coordinator.end("a")
    coordinator.now_ms += 10**9
    coordinator.run(Expire("a", 1000))
    assert coordinator.kinds() == [
        Kind.INITIALIZED,
        Kind.BEGUN,
        Kind.OFFSETS_ADDED,
        Kind.PREPARED,
        Kind.COMMITTED,
        Kind.EXPIRED,
    ]
    assert next(coordinator.events.newest_first()).client is None


def test_an_abort_of_nothing_is_no_event(coordinator):
    coordinator.init("a")
    coordinator.end("a", commit=False)
    assert coordinator.kinds() == [Kind.INITIALIZED]


def test_busy_producer_does_not_displace_notable_events(coordinator):
    coordinator.init("hung")
    coordinator.add("hung", 0)
    coordinator.run(TimerExpired(timeout_timer("hung"), 10**7))
    coordinator.init("busy")
    for _ in range(2 * module.ROUTINE_SLOTS):
        coordinator.add("busy", 0)
        coordinator.end("busy")
    found = list(coordinator.events.newest_first())
    assert len(found) == len(coordinator.events) == module.ROUTINE_SLOTS + 1
    assert (found[-1].transactional_id, found[-1].reason) == ("hung", Reason.TIMEOUT)
    assert [each.number for each in found] == sorted((each.number for each in found), reverse=True)
    assert not coordinator.events.is_complete
    oldest_kept = found[-2]
    assert coordinator.events.complete_since_ms <= oldest_kept.time_ms


def test_repeated_refusals_are_one_event(coordinator):
    coordinator.init("a")
    zombie = Client("zombie", "/1")
    for _ in range(10):
        coordinator.events.refused(coordinator.machine.transactions["a"], zombie, 5)
    assert coordinator.kinds() == [Kind.INITIALIZED, Kind.REFUSED]


def test_ids_that_are_here_no_more_are_forgotten_and_what_follows_is_not_known(coordinator):
    zombie = Client("zombie", "/3")
    for key in "ab":
        coordinator.init(key)
        coordinator.add(key, 0)
        coordinator.init(key, zombie)
    events = coordinator.events
    before = [each for each in events.newest_first() if each.transactional_id == "b"]
    events.forget(lambda key: key == "a", 50)
    assert list(events.newest_first()) == before
    assert {each.kind for each in before} >= {Kind.INITIALIZED, Kind.ABORTED}
    assert (events.complete_since_ms, events.is_complete) == (50, True)
    events.refused(coordinator.machine.transactions["a"], zombie, 60)
    events.restart(70)
    assert len(events) == len(before) + 1
    assert events.complete_since_ms == 70


@pytest.mark.parametrize("length", [30, 30_000])
def test_memory_has_a_limit(length):
    coordinator = Coordinator()
    tracemalloc.start()
    try:
        for number in range(2000):
            key = f"{number:06}" + "k" * (length - 6)
            client = Client("an-application-of-mine", f"/10.1.2.{number % 50}")
            known = CLIENTS.setdefault(client, client)
            coordinator.init(key, known)
            coordinator.add(key, *range(number % 6 + 1), topic="a-topic-of-usual-length")
            if number % 2:
                coordinator.run(TimerExpired(timeout_timer(key), 10**7))
            coordinator.machine.transactions.clear()
            coordinator.machine.open.clear()
            coordinator.former.clear()
        before = tracemalloc.get_traced_memory()[0]
        coordinator.events.forget(lambda _key: True, 0)
        freed = before - tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert 0 < freed <= LIMIT_BYTES


CLIENTS: dict[Client, Client] = {}
"""One for each client, as the coordinator's own table has them."""
