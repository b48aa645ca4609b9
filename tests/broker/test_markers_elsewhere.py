"""Markers at the broker that leads a partition, and transactions whose brokers end in between.

Broker 0 coordinates all transactions and leads ``t-0``; broker 1 leads ``t-1`` and coordinates the
group. What the coordinator sends, and when: ``test_remote_markers.py``.
"""

from __future__ import annotations

import asyncio

import pytest

from barnabas.broker.cluster.peers.interface import NoAnswer, Purpose
from barnabas.broker.coordination import slices
from barnabas.broker.metadata.topic_names import GROUP_OFFSETS, TRANSACTION_STATE
from barnabas.coordinator.transactions.state import CLASSIC, TRANSACTIONS_V2
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_transactions import (
    DESCRIBE_TRANSACTIONS,
    DescribeTransactionsRequest,
)
from barnabas.protocol.messages.end_txn import END_TXN, EndTxnRequest
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.protocol.messages.txn_offset_commit import TXN_OFFSET_COMMIT
from barnabas.protocol.messages.write_txn_markers import (
    WRITE_TXN_MARKERS,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.broker.data_plane import Named, Wire, batch, produce_request
from tests.broker.held_markers import Markers
from tests.broker.metrics.scrape import scrape
from tests.broker.moves import (
    has_loaded,
    is_served,
    key_at,
    lead,
    led_cluster,
    log_of,
    named,
    seize,
    stored,
)
from tests.crash.transaction_client import Producer, committed_offset, persistent
from tests.crash.transaction_life import batches_of
from tests.history.logs import partition_history
from tests.products import case
from tests.requests import codes_of, commit_in_transaction_request
from tests.waiting import wait_until
from tests.worlds import world

__all__ = ["world"]

NONE = ErrorCode.NONE
GENERATIONS = pytest.mark.parametrize("generation", [CLASSIC, TRANSACTIONS_V2], ids=["tv1", "tv2"])
HERE, THERE = ("t", 0), ("t", 1)
LEADERS = {"t": [0, 1], "other": [1]}
MANY = 500
"""Partitions of a topic whose offsets take more than one turn."""
GROUP = key_at(2, "g")


@pytest.fixture(scope="module")
def cluster(world):
    with led_cluster(LEADERS) as cluster:
        cluster.brokers[0].create_topic("many", MANY)
        yield cluster


@pytest.fixture
def brokers(cluster):
    for number in {0, 1, 2}.difference(cluster.running):
        cluster.restart(number)
    lead(cluster, LEADERS)
    if cluster.leader(GROUP_OFFSETS, 2) != 1:
        cluster.move(GROUP_OFFSETS, 2, to=1)
    wait_until(lambda: has_loaded(cluster.brokers[1]))
    return cluster.brokers


@pytest.fixture
def wire(brokers):
    with Wire(brokers[0].address) as opened:
        yield opened


class Writer(Producer):
    """A producer whose coordinator is broker 0; it writes to the leaders of the partitions."""

    def __init__(self, cluster, wire, name, generation=CLASSIC):
        self.cluster = cluster
        super().__init__(wire, key_at(0, name), generation)

    def write(self, place, *values):
        coordinator = self.client
        with Wire(self.cluster.brokers[self.cluster.leader(*place)].address) as self.client:
            found = super().write(place, *values)
        self.client = coordinator
        return found

    @property
    def is_idle(self):
        transactions = self.cluster.brokers[0].server.transactions
        return self.cluster.brokers[0].call(
            lambda: transactions.transaction(self.key).state.is_idle
        )

    def ends(self, *, commit=True):
        """End the transaction, and wait until it is complete."""
        assert persistent(lambda: self.end(commit=commit)) == NONE
        wait_until(lambda: self.is_idle)

    def markers(self, place):
        """All markers of a partition."""
        broker = self.cluster.brokers[self.cluster.leader(*place)]
        log = log_of(broker, *place)
        return broker.call(lambda: partition_history(batches_of(log), place)).markers


@pytest.fixture
def producer(cluster, wire, request):
    """One of the first generation, which has its id."""
    found = Writer(cluster, wire, request.node.name)
    assert persistent(found.init) == NONE
    return found


# --------------------------------------------------------------------------- brokers that end


def owed_by_broker(broker):
    """Return the missing markers that the metric shows, by broker."""
    name = "barnabas_transaction_markers_missing_elsewhere"
    samples = scrape(broker).samples
    return {
        dict(labels)["broker"]: count for (each, labels), count in samples.items() if each == name
    }


@GENERATIONS
def test_end_of_a_transaction_is_answered_while_another_broker_is_dead(
    world, cluster, brokers, wire, caplog, generation
):
    producer = Writer(cluster, wire, f"dead-{generation}", generation)
    producer.begin(HERE, THERE)
    before = len(producer.markers(HERE)), len(producer.markers(THERE))
    cluster.kill(1, expire=False)
    assert producer.end() == NONE
    wait_until(lambda: len(producer.markers(HERE)) == before[0] + 1)
    line = f"wait for the markers of a broker node=1 markers=1 id={producer.key}"
    wait_until(lambda: line in caplog.text)
    assert owed_by_broker(brokers[0]) == {"1": 1}
    request = DescribeTransactionsRequest([producer.key])
    (shown,) = wire.ask(DESCRIBE_TRANSACTIONS, request, 0).transaction_states
    assert shown.transaction_state == "PrepareCommit"
    assert [(topic.topic, topic.partitions) for topic in shown.topics] == [("t", [1])]
    wait_until(lambda: producer.is_idle, "another broker leads it, and has the marker")
    assert cluster.leader(*THERE) != 1
    assert len(producer.markers(THERE)) == before[1] + 1
    assert owed_by_broker(brokers[0]) == {}


@pytest.mark.parametrize(
    ("generation", "end"),
    [
        case(generation, end, in_test=(generation == CLASSIC) == (end == "kill"))
        for generation in (CLASSIC, TRANSACTIONS_V2)
        for end in ("stop", "kill")
    ],
)
def test_coordinator_that_ends_in_between_is_followed_by_one_that_sends_all_again(
    cluster, brokers, wire, generation, end
):
    """C6, with the epoch of the next leader of its partition (R6)."""
    producer = Writer(cluster, wire, f"ends-{generation}-{end}", generation)
    producer.begin(HERE, THERE)
    before = stored(cluster, TRANSACTION_STATE, 0).leader_epoch
    cluster.cut(0, 1)
    assert producer.end() == NONE
    getattr(cluster, end)(0)
    cluster.mend(0, 1)
    wait_until(lambda: cluster.leader(TRANSACTION_STATE, 0) in {1, 2})
    new = brokers[cluster.leader(TRANSACTION_STATE, 0)]
    wait_until(lambda: is_served(new, TRANSACTION_STATE, producer.key))
    transactions = new.server.transactions
    wait_until(lambda: new.call(lambda: transactions.transaction(producer.key).state.is_idle))
    cluster.wait_until_served()
    for place in (HERE, THERE):
        marker = producer.markers(place)[-1]
        assert marker.commit
        assert marker.coordinator_epoch > before


def test_refused_decision_sends_nothing_r2(world, cluster, brokers, producer):
    """Nor is it a decision: the transaction can be aborted."""
    producer.open(THERE)
    with brokers[1].intercept(WRITE_TXN_MARKERS) as sent:
        cluster.hold_commits(0)
        with Wire(brokers[0].address) as other:
            other.send(PRODUCE, produce_request(9, Named("t"), (0, batch())), 9)
            producer.client.send(END_TXN, EndTxnRequest(producer.key, *producer.identity, True), 4)
            transactions = brokers[0].server.transactions
            wait_until(lambda: brokers[0].call(lambda: transactions.is_deciding(producer.key)))
            seize(cluster, *HERE, 2)  # Not the coordinator's partition: one in the same flush.
            cluster.release_commits(0)
            assert producer.client.receive().error_code == ErrorCode.NOT_COORDINATOR
        world.sleep(10)
        assert sent.requests == []
    before = len(producer.markers(THERE))
    producer.ends(commit=False)
    (marker,) = producer.markers(THERE)[before:]
    assert not marker.commit


def test_marker_refused_at_remote_leader_stays_pending_r3(cluster, brokers, producer):
    """Mutant: the response is sent before the marker is durable."""
    producer.open(THERE)
    before = len(producer.markers(THERE))
    log = log_of(brokers[1], *THERE)
    end = log.next_offset
    cluster.hold_commits(1)
    assert producer.end() == NONE
    wait_until(lambda: log.next_offset == end + 1)
    seize(cluster, *THERE, 2)
    cluster.release_commits(1)
    wait_until(lambda: producer.is_idle)
    assert len(producer.markers(THERE)) == before + 1


def test_marker_of_a_refused_flush_stays_pending_r3(cluster, brokers, producer, monkeypatch):
    """The marker is in a later flush than the decision; the marker of another broker is missing."""
    markers = Markers(monkeypatch)
    producer.open(HERE, THERE)
    before, log = len(producer.markers(HERE)), log_of(brokers[0], *HERE)
    end = log.next_offset
    with brokers[1].intercept(WRITE_TXN_MARKERS, fail=ErrorCode.NOT_LEADER_OR_FOLLOWER):
        markers.stop()
        assert producer.end() == NONE
        cluster.hold_commits(0)
        markers.go_on()
        wait_until(lambda: log.next_offset == end + 1)
        seize(cluster, *HERE, 2)
        cluster.release_commits(0)
        wait_until(lambda: log.closed)
    wait_until(lambda: producer.is_idle)
    wait_until(lambda: log_of(brokers[2], *HERE) is not None)
    assert len(producer.markers(HERE)) == before + 1


# --------------------------------------------------------------------------- late copies of markers


def marker_of(cluster, producer, **changes):
    """A marker for THERE as the coordinator sends it."""
    says = {
        "producer_epoch": producer.epoch,
        "coordinator_epoch": stored(cluster, TRANSACTION_STATE, 0).leader_epoch,
        "leader_epoch": stored(cluster, *THERE).leader_epoch,
        "topic_id": named(cluster.brokers[0], "t").id,
    }
    for name, change in changes.items():
        says[name] = says[name] + change if isinstance(change, int) else change
    topic = WritableTxnMarkerTopic("t", [1], says["leader_epoch"], says["topic_id"])
    return WritableTxnMarker(
        producer.producer_id, says["producer_epoch"], True, [topic], says["coordinator_epoch"], 0
    )


def sent(brokers, marker, to=1):
    """Send a marker as broker 0 does; return its error."""
    peers, told = brokers[0].server.peers, []
    request = WriteTxnMarkersRequest([marker])

    def ask() -> None:
        peers.ask(
            to, Purpose.MARKERS, WRITE_TXN_MARKERS, 2, request, told.append, timeout_ms=60_000
        )

    while not told or isinstance(told[-1], NoAnswer):  # The other one has just started.
        count = len(told)
        brokers[0].call(ask)
        wait_until(lambda count=count: len(told) > count)
    return told[-1].markers[0].topics[0].partitions[0].error_code


def is_open(broker, producer):
    log = log_of(broker, *THERE)
    return broker.call(lambda: log.producers.has_open_transaction(producer.producer_id))


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"leader_epoch": -1}, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ({"leader_epoch": 1}, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ({"topic_id": bytes([2] * 16)}, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ({"coordinator_epoch": 1000}, ErrorCode.INVALID_REQUEST),
        ({"coordinator_epoch": -1}, ErrorCode.TRANSACTION_COORDINATOR_FENCED),
        ({}, NONE),
    ],
    ids=lambda each: "-".join(each) if isinstance(each, dict) else each.name,
)
def test_marker_that_is_meant_for_another_time_ends_nothing_r6_r10(
    cluster, brokers, producer, changes, code
):
    """Mutants: the leader epoch, the topic's id or the coordinator epoch is not compared."""
    for place in (("t", 1), (TRANSACTION_STATE, 0)):  # No epoch is the first one.
        cluster.move(*place, to=2)
    lead(cluster, LEADERS)
    producer.open(THERE)
    producer.ends()
    producer.open(THERE)
    before = len(producer.markers(THERE))
    assert sent(brokers, marker_of(cluster, producer, **changes)) == code
    assert is_open(brokers[1], producer) == (code != NONE)
    assert len(producer.markers(THERE)) == before + (code == NONE)
    producer.ends()


def test_copy_from_before_a_move_ends_no_later_transaction_r10(cluster, brokers, producer):
    """In the first generation the epoch stays, and nothing else in the marker differs."""
    producer.open(THERE)
    copy = marker_of(cluster, producer)
    producer.ends()
    cluster.move(*THERE, to=2)
    cluster.move(*THERE, to=1)
    producer.open(THERE)
    assert sent(brokers, copy) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    producer.ends(commit=False)
    assert [each.commit for each in producer.markers(THERE)[-2:]] == [True, False]


def test_transaction_that_a_later_marker_has_ended_needs_none(cluster, brokers, producer):
    """A broker gets no error; a tool gets the marker that is in the way."""
    producer.open(THERE)
    before = len(producer.markers(THERE))
    assert sent(brokers, marker_of(cluster, producer, producer_epoch=5)) == NONE
    with Wire(brokers[1].address) as tool:
        request = WriteTxnMarkersRequest([marker_of(cluster, producer)])
        answer = tool.ask(WRITE_TXN_MARKERS, request, 2)
    code = answer.markers[0].topics[0].partitions[0].error_code
    assert code == ErrorCode.INVALID_PRODUCER_EPOCH
    producer.ends()
    assert len(producer.markers(THERE)) == before + 1


def test_later_transaction_that_is_open_there_is_not_ended_m4(cluster, brokers, producer, caplog):
    producer.open(THERE)
    log = log_of(brokers[1], *THERE)
    brokers[1].call(lambda: setattr(log.producers.entry(producer.producer_id), "epoch", 5))
    assert producer.end() == NONE
    wait_until(lambda: "reason=t-1 at broker 1: INVALID_PRODUCER_EPOCH" in caplog.text)
    assert not producer.is_idle
    later = marker_of(cluster, producer, producer_epoch=5 - producer.epoch)
    assert sent(brokers, later) == NONE
    wait_until(lambda: producer.is_idle)


# ------------------------------------------------------------------------------------------ offsets


@pytest.mark.parametrize(("topic", "count"), [("other", 1), ("many", MANY)])
@pytest.mark.parametrize("commit", [True, False])
def test_offsets_show_before_their_marker_is_answered_r5(
    brokers, producer, topic, count, commit, monkeypatch
):
    """KAFKA-17507: a client that knows of the end of the transaction finds them, all of them."""
    turns = []

    async def turn() -> None:
        turns.append(1)
        await asyncio.sleep(0)

    monkeypatch.setattr(slices, "next_turn", turn)
    last = count - 1
    with Wire(brokers[1].address) as there:
        for offset in range(1, 4):
            former = committed_offset(there, GROUP, (topic, last))
            assert persistent(lambda: producer.add_offsets(GROUP)) == NONE
            offsets = {(topic, each): offset for each in range(count)}
            request = commit_in_transaction_request(producer.key, GROUP, producer.identity, offsets)
            assert set(codes_of(there.ask(TXN_OFFSET_COMMIT, request, 3))) == {NONE}
            assert committed_offset(there, GROUP, (topic, last), wait=False) is None
            producer.ends(commit=commit)
            for index in {0, last}:
                shown = committed_offset(there, GROUP, (topic, index), wait=False)
                assert shown == (offset if commit else former)
        assert bool(turns) == (count > 1), "some were taken in in slices"
