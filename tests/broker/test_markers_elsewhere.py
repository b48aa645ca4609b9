"""A transaction whose partitions two brokers lead ends at both.

The coordinator is broker 1; of each topic it leads the partitions with an even number, broker 2 the
others. Data are put straight into the logs of broker 2: it asks nobody about them.
"""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from barnabas.broker.coordination import marker_intake
from barnabas.broker.coordination.key_hash import java_hash
from barnabas.broker.peers.interface import NoAnswer, Purpose
from barnabas.coordinator.decision import TransactionalProducer
from barnabas.coordinator.groups.commands import Caller, TransactionalOffsetCommit
from barnabas.coordinator.transactions.commands import AddPartitions
from barnabas.coordinator.transactions.state import (
    CLASSIC,
    TRANSACTIONS_V2,
    State,
    TopicPartition,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_offsets_to_txn import ADD_OFFSETS_TO_TXN, AddOffsetsToTxnRequest
from barnabas.protocol.messages.describe_transactions import (
    DESCRIBE_TRANSACTIONS,
    DescribeTransactionsRequest,
)
from barnabas.protocol.messages.write_txn_markers import (
    WRITE_TXN_MARKERS,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.broker.data_plane import Wire, batch
from tests.broker.long_commit import long_commit
from tests.broker.several import pair, topic_id
from tests.broker.test_refused_groups import refusing
from tests.crash.transaction_client import Producer, committed_offset, persistent
from tests.crash.transaction_history import partition_history
from tests.crash.transaction_life import batches_of
from tests.waiting import wait_until
from tests.worlds import world

__all__ = ["world"]

NONE = ErrorCode.NONE
GENERATIONS = pytest.mark.parametrize("generation", [CLASSIC, TRANSACTIONS_V2], ids=["tv1", "tv2"])
HERE, THERE = ("t", 0), ("t", 1)
TOPICS = {"t": 4, "__transaction_state": 1, "__consumer_offsets": 2}


@pytest.fixture
def brokers():
    with pair(TOPICS) as both:
        yield both


@pytest.fixture
def wire(brokers):
    with Wire(brokers[0].address) as opened:
        yield opened


def leader_of(brokers, place):
    return brokers[place[1] % 2]


def put(brokers, producer, place, value=b"v"):
    """Append a batch of a transaction where it is led."""
    broker = leader_of(brokers, place)
    records = batch(
        value,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        base_sequence=producer.sequences[place],
        transactional=True,
    )
    producer.sequences[place] += 1
    broker.call(lambda: broker.log(*place).append(records))


def begun(brokers, wire, *places, generation=CLASSIC):
    producer = Producer(wire, "id", generation)
    assert persistent(producer.init) == NONE
    return opened(brokers, producer, *places)


def add(brokers, producer, *places):
    """As AddPartitionsToTxn; in the second generation as the leaders of the partitions ask."""
    if producer.generation == CLASSIC:
        return producer.add(*places)
    named = frozenset(TopicPartition(*place) for place in places)
    command = AddPartitions(producer.key, *producer.identity, named, TRANSACTIONS_V2)
    return brokers[0].call(lambda: brokers[0].server.transactions.add(command))


def opened(brokers, producer, *places):
    assert persistent(lambda: add(brokers, producer, *places)) == NONE
    for place in places:
        put(brokers, producer, place)
    return producer


def markers(brokers, place):
    broker = leader_of(brokers, place)
    return broker.call(lambda: partition_history(batches_of(broker.log(*place)), place)).markers


def state(brokers, key="id"):
    return brokers[0].call(lambda: brokers[0].server.transactions.transaction(key).state)


@GENERATIONS
@pytest.mark.parametrize("commit", [True, False])
def test_both_brokers_write_their_markers(brokers, wire, generation, commit):
    places = [HERE, THERE, ("t", 3)]
    producer = begun(brokers, wire, *places, generation=generation)
    assert producer.end(commit=commit) == NONE
    wait_until(lambda: state(brokers).is_idle)
    for place in places:
        (marker,) = markers(brokers, place)
        assert marker.had_data
    opened(brokers, producer, *places)
    assert producer.end(commit=commit) == NONE
    wait_until(lambda: all(len(markers(brokers, place)) == 2 for place in places))


# ------------------------------------------------------------------------------ one of them is away


def knows(brokers):
    """Tell each broker which epoch the other one leads in by now."""
    for broker, other in (brokers, brokers[::-1]):
        epoch = other.call(lambda other=other: other.server.logs.leader_epoch)

        def learn(broker=broker, epoch=epoch):
            broker.view.epoch = epoch
            broker.view.version += 1

        broker.call(learn)


def is_owed(brokers, key="id"):
    transactions = brokers[0].server.transactions
    return brokers[0].call(lambda: transactions.awaiting_markers(key))


@GENERATIONS
@pytest.mark.parametrize("end", ["stop", "crash"])
def test_who_decides_is_answered_while_the_other_broker_is_away(
    brokers, wire, caplog, generation, end
):
    producer = begun(brokers, wire, HERE, THERE, generation=generation)
    wait_until(lambda: is_durable(brokers, THERE))
    getattr(brokers[1], end)()
    assert producer.end() == NONE
    wait_until(lambda: len(markers(brokers, HERE)) == 1)
    assert state(brokers) == State.PREPARE_COMMIT
    assert is_owed(brokers) == [THERE]
    wait_until(lambda: "wait for the markers of a broker node=2 markers=1 id=id" in caplog.text)
    assert owed_by_broker(brokers[0]) == [('{broker="2"}', 1)]
    (shown,) = wire.ask(
        DESCRIBE_TRANSACTIONS, DescribeTransactionsRequest(["id"]), 0
    ).transaction_states
    assert shown.transaction_state == "PrepareCommit"
    assert [(topic.topic, topic.partitions) for topic in shown.topics] == [("t", [1])]
    brokers[1].restart()
    # It leads in a later epoch, and the marker names the one before: nobody told the coordinator.
    wait_until(lambda: "reason=t-1 at broker 2: NOT_LEADER_OR_FOLLOWER" in caplog.text)
    assert markers(brokers, THERE) == []
    knows(brokers)
    wait_until(lambda: state(brokers).is_idle)
    assert [len(markers(brokers, place)) for place in (HERE, THERE)] == [1, 1]
    assert owed_by_broker(brokers[0]) == []


def owed_by_broker(broker):
    """What the metric says."""
    (family,) = broker.call(
        lambda: [
            each
            for each in broker.server.metrics.collect()
            if each.name == "barnabas_transaction_markers_missing_elsewhere"
        ]
    )
    return [*family.samples]


def is_durable(brokers, place):
    broker = leader_of(brokers, place)
    log = broker.log(*place)
    return broker.call(lambda: log.high_watermark == log.next_offset)


@GENERATIONS
@pytest.mark.parametrize("end", ["stop", "crash"])
def test_a_coordinator_that_ends_in_between_sends_all_again(brokers, wire, caplog, generation, end):
    """C6, with the epoch of its next start (R6)."""
    producer = begun(brokers, wire, HERE, THERE, ("t", 3), generation=generation)
    log = brokers[1].log(*THERE)
    brokers[1].call(lambda: setattr(log, "closed", True))
    assert producer.end() == NONE
    wait_until(lambda: is_owed(brokers) == [THERE])
    before = brokers[0].server.transactions.coordinator_epoch
    getattr(brokers[0], end)()
    # What was on its way has come by then.
    wait_until(lambda: not brokers[1].call(lambda: len(brokers[1].server.sockets.connections)))
    brokers[1].call(lambda: setattr(log, "closed", False))
    brokers[0].restart()
    # Broker 2 has not heard of the later epoch yet.
    wait_until(lambda: "at broker 2: INVALID_REQUEST" in caplog.text)
    assert markers(brokers, THERE) == []
    knows(brokers)
    wait_until(lambda: state(brokers).is_idle)
    found = [markers(brokers, place) for place in (HERE, THERE, ("t", 3))]
    assert [[each.had_data for each in each_of] for each_of in found] == [
        [True, False],
        [True],
        [True, False],
    ]
    assert all(each[-1].coordinator_epoch > before for each in found)


def test_a_decision_that_is_refused_sends_nothing_r2(brokers, wire):
    producer = begun(brokers, wire, HERE, THERE)
    first = brokers[0]
    asked = []
    ask = first.server.peers.ask
    first.server.peers.ask = lambda *given, **more: (asked.append(given), ask(*given, **more))
    with refusing(first):
        assert producer.end() == ErrorCode.NOT_COORDINATOR
    for _ in range(20):
        first.clock.advance(seconds=1)
        first.call(lambda: None)
    assert asked == []
    assert markers(brokers, THERE) == []
    first.crash()
    first.restart()
    knows(brokers)
    with Wire(first.address) as again:
        producer.client = again
        assert persistent(lambda: producer.end(commit=False)) == NONE
        wait_until(lambda: state(brokers).is_idle)
    (marker,) = markers(brokers, THERE)
    assert not marker.commit


def test_a_marker_that_is_refused_where_it_was_written_is_owed_r3(brokers, wire):
    """Mutant: it is answered before it is durable."""
    producer = begun(brokers, wire, THERE)
    wait_until(lambda: is_durable(brokers, THERE))
    with refusing(brokers[1]):
        assert producer.end() == NONE
        log = brokers[1].log(*THERE)
        wait_until(lambda: brokers[1].call(lambda: log.closed))
        transactions = brokers[0].server.transactions
        wait_until(lambda: brokers[0].call(lambda: transactions.counts.markers_delayed))
    assert state(brokers) == State.PREPARE_COMMIT
    brokers[1].crash()
    brokers[1].restart()
    knows(brokers)
    wait_until(lambda: state(brokers).is_idle)
    assert len(markers(brokers, THERE)) == 1


def test_a_topic_that_is_deleted_while_its_leader_is_away_r8(brokers, wire):
    producer = begun(brokers, wire, HERE, THERE)
    brokers[1].crash()
    assert producer.end() == NONE
    assert is_owed(brokers) == [THERE]

    async def delete():
        catalogue = brokers[0].server.catalogue
        await catalogue.delete_topic(catalogue.topics["t"].topic_id)

    brokers[0].do(delete)
    wait_until(lambda: state(brokers).is_idle)


# --------------------------------------------------------------------------- late copies of markers


def tagged(brokers, producer, **changes):
    """A marker for THERE as the coordinator sends it."""
    first, second = brokers
    log = second.log(*THERE)
    says = {
        "producer_epoch": producer.epoch,
        "coordinator_epoch": first.server.transactions.coordinator_epoch,
        "leader_epoch": second.call(lambda: log.leader_epoch),
        "topic_id": topic_id(1),
    } | changes
    topic = WritableTxnMarkerTopic("t", [1], says["leader_epoch"], says["topic_id"])
    return WritableTxnMarker(
        producer.producer_id, says["producer_epoch"], True, [topic], says["coordinator_epoch"], 0
    )


def sent(brokers, marker):
    """Send a marker as broker 1 does; return its error."""
    peers, told = brokers[0].server.peers, []
    request = WriteTxnMarkersRequest([marker])

    def ask() -> None:
        peers.ask(2, Purpose.MARKERS, WRITE_TXN_MARKERS, 2, request, told.append, timeout_ms=60_000)

    while not told or isinstance(told[-1], NoAnswer):  # Where the other one has just begun anew.
        count = len(told)
        brokers[0].call(ask)
        wait_until(lambda count=count: len(told) > count)
    return told[-1].markers[0].topics[0].partitions[0].error_code


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"leader_epoch": 0}, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ({"leader_epoch": 2}, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ({"topic_id": topic_id(2)}, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ({"coordinator_epoch": 2}, ErrorCode.INVALID_REQUEST),
        ({"coordinator_epoch": 0}, ErrorCode.TRANSACTION_COORDINATOR_FENCED),
        ({}, NONE),
    ],
    ids=lambda each: "-".join(each) if isinstance(each, dict) else each.name,
)
def test_a_marker_that_is_meant_for_another_time_ends_nothing_r6_r10(brokers, wire, changes, code):
    """Mutants: the leader epoch, the topic's id or the coordinator epoch is not compared."""
    producer = begun(brokers, wire, THERE)
    assert producer.end() == NONE
    wait_until(lambda: state(brokers).is_idle)
    opened(brokers, producer, THERE)
    before = len(markers(brokers, THERE))
    assert sent(brokers, tagged(brokers, producer, **changes)) == code
    is_open = brokers[1].call(
        lambda: brokers[1].log(*THERE).producers.has_open_transaction(producer.producer_id)
    )
    assert is_open == (code != NONE)
    assert len(markers(brokers, THERE)) == before + (code == NONE)


def test_a_copy_of_before_a_restart_ends_no_later_transaction_r10(brokers, wire):
    """In the first generation the same epoch goes on, and nothing else in the marker tells."""
    producer = begun(brokers, wire, THERE)
    copy = tagged(brokers, producer)
    assert producer.end() == NONE
    wait_until(lambda: state(brokers).is_idle)
    brokers[1].crash()
    brokers[1].restart()
    knows(brokers)
    opened(brokers, producer, THERE)
    assert sent(brokers, copy) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert producer.end(commit=False) == NONE
    wait_until(lambda: state(brokers).is_idle)
    assert [each.commit for each in markers(brokers, THERE)] == [True, False]


def test_what_a_later_marker_has_ended_needs_none(brokers, wire):
    """A broker is told so; a tool is told which marker is in the way."""
    producer = begun(brokers, wire, THERE)
    later = tagged(brokers, producer, producer_epoch=producer.epoch + 5)
    assert sent(brokers, later) == NONE
    with Wire(brokers[1].address) as tool:
        request = WriteTxnMarkersRequest([tagged(brokers, producer)])
        answer = tool.ask(WRITE_TXN_MARKERS, request, 2)
    told = answer.markers[0].topics[0].partitions[0].error_code
    assert told == ErrorCode.INVALID_PRODUCER_EPOCH
    assert producer.end() == NONE
    wait_until(lambda: state(brokers).is_idle)
    assert len(markers(brokers, THERE)) == 1


def test_a_later_transaction_that_is_open_there_is_not_ended_m4(brokers, wire, caplog):
    producer = begun(brokers, wire, THERE)
    log = brokers[1].log(*THERE)
    brokers[1].call(lambda: setattr(log.producers.entry(producer.producer_id), "epoch", 5))
    assert producer.end() == NONE
    wait_until(lambda: "reason=t-1 at broker 2: INVALID_PRODUCER_EPOCH" in caplog.text)
    assert state(brokers) == State.PREPARE_COMMIT
    assert sent(brokers, tagged(brokers, producer, producer_epoch=5)) == NONE
    wait_until(lambda: state(brokers).is_idle)


# ------------------------------------------------------------------------------------------ offsets


GROUP = next(key for key in map(str, range(100)) if java_hash(key) % 2 == 1)
"""Its offsets are committed at broker 2."""


def pending(brokers, producer, offset, partitions):
    """Commit offsets in a transaction where the group is coordinated."""
    groups, told = brokers[1].server.groups, []
    command = TransactionalOffsetCommit(
        Caller("client", "/host", 3),
        long_commit(GROUP, offset, 1, partitions),
        TransactionalProducer(*producer.identity),
    )
    brokers[1].call(lambda: groups.submit(GROUP, command, told.append))
    wait_until(lambda: told)
    assert {each.error_code for topic in told[0].topics for each in topic.partitions} == {NONE}


@pytest.mark.parametrize("partitions", [1, 500], ids=["at once", "in slices"])
@pytest.mark.parametrize("commit", [True, False])
def test_offsets_show_before_their_marker_is_answered_r5(partitions, commit, monkeypatch):
    """KAFKA-17507: who knows that the transaction is complete finds them, all of them."""
    turns = []

    async def turn() -> None:
        turns.append(1)
        await asyncio.sleep(0)

    monkeypatch.setattr(marker_intake, "next_turn", turn)
    with (
        pair(TOPICS | {"topic-0": partitions}) as brokers,
        Wire(brokers[0].address) as wire,
        Wire(brokers[1].address) as there,
    ):
        producer = Producer(wire, "id")
        assert persistent(producer.init) == NONE
        for offset in range(1, 4):
            added = AddOffsetsToTxnRequest("id", *producer.identity, GROUP)
            ask = partial(wire.ask, ADD_OFFSETS_TO_TXN, added, 3)
            assert persistent(lambda ask=ask: ask().error_code) == NONE
            pending(brokers, producer, offset, partitions)
            last = ("topic-0", partitions - 1)
            assert committed_offset(there, GROUP, last, wait=False) is None
            assert producer.end(commit=commit) == NONE
            wait_until(lambda: state(brokers).is_idle)
            for place in (("topic-0", 0), last):
                found = committed_offset(there, GROUP, place, wait=False)
                assert found == (offset if commit else -1)
        assert bool(turns) == (partitions > 1), "some were taken in in slices"
