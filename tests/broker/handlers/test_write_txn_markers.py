"""WriteTxnMarkers over the wire: allowed and rejected markers, and their effects (M1-M6)."""

from __future__ import annotations

import pytest

from barnabas.broker.handlers.transactions import transaction_markers
from barnabas.broker.metadata.topic_names import GROUP_OFFSETS, TRANSACTION_STATE
from barnabas.coordinator.transactions.state import CLASSIC, TRANSACTIONS_V2
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.messages.write_txn_markers import (
    WRITE_TXN_MARKERS,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from barnabas.testing import Broker
from tests.broker.data_plane import Wire
from tests.crash.transaction_client import Producer, committed_offset, ends, persistent, producers
from tests.crash.transaction_life import batches_of
from tests.history.logs import partition_history

NONE = ErrorCode.NONE
E = ErrorCode
PID = 5000
GENERATIONS = pytest.mark.parametrize("generation", [CLASSIC, TRANSACTIONS_V2], ids=["tv1", "tv2"])


@pytest.fixture
def broker():
    with Broker() as running:
        running.create_topic("t", 3)
        yield running


@pytest.fixture
def wire(broker):
    with Wire(broker.address) as opened:
        assert opened.ask(FIND_COORDINATOR, FindCoordinatorRequest("g"), 3).error_code == NONE
        yield opened


@pytest.fixture
def own_epoch(broker):
    return broker.call(lambda: broker.server.transactions.coordinator_epoch)


def marker(epoch, places, *, coordinator_epoch=0, commit=True, version=0, producer_id=PID):
    topics = [WritableTxnMarkerTopic(topic, list(indexes)) for topic, indexes in places.items()]
    return WritableTxnMarker(producer_id, epoch, commit, topics, coordinator_epoch, version)


def ask(wire, *markers, version=2):
    """The error of each partition of each topic of each marker, in the order of the request."""
    answer = wire.ask(WRITE_TXN_MARKERS, WriteTxnMarkersRequest(list(markers)), version)
    assert [each.producer_id for each in answer.markers] == [each.producer_id for each in markers]
    return [
        partition.error_code
        for each in answer.markers
        for topic in each.topics
        for partition in topic.partitions
    ]


def write(wire, epoch, **settings):
    (code,) = ask(wire, marker(epoch, {"t": [0]}, **settings))
    return code


def stored(broker, place=("t", 0)):
    return broker.call(lambda: batches_of(broker.server.catalogue.partition(*place).log))


def transaction(wire, generation, *indexes, key="id"):
    producer = Producer(wire, key, generation)
    producer.begin(*(("t", index) for index in indexes))
    return producer


@pytest.mark.parametrize(
    ("version", "epoch", "wanted"),
    [
        (0, 7, NONE),
        (0, 8, NONE),
        (0, 6, E.INVALID_PRODUCER_EPOCH),
        (1, 7, NONE),
        (2, 7, NONE),
        (2, 8, NONE),
        (2, 6, E.INVALID_PRODUCER_EPOCH),
        (3, 6, E.INVALID_PRODUCER_EPOCH),
    ],
)
def test_epochs_where_nothing_is_open(broker, wire, version, epoch, wanted):
    assert write(wire, 7) == NONE
    assert write(wire, epoch, version=version) == wanted
    assert len(stored(broker)) == 1 + (wanted == NONE), "a duplicate is appended, a refusal not"


@pytest.mark.parametrize(
    ("version", "ahead", "wanted"),
    [
        (0, 0, NONE),
        (0, 1, NONE),
        (0, -1, E.INVALID_PRODUCER_EPOCH),
        (2, 0, E.INVALID_PRODUCER_EPOCH),
        (2, 1, NONE),
        (2, -1, E.INVALID_PRODUCER_EPOCH),
    ],
)
def test_epochs_where_a_transaction_is_open(wire, version, ahead, wanted):
    producer = Producer(wire, "id", CLASSIC)
    assert persistent(producer.init) == NONE
    producer.begin(("t", 0))
    settings = {"producer_id": producer.producer_id, "version": version}
    assert write(wire, producer.epoch + ahead, **settings) == wanted
    is_open = ends(wire, ("t", 0)) == (0, 1)
    assert is_open == (wanted != NONE)


def test_largest_epoch_ends_an_impossible_transaction(wire):
    assert write(wire, 32_767, version=2) == NONE
    assert write(wire, 32_767, version=2) == NONE


def test_an_older_coordinator_is_fenced_and_leaves_no_trace(broker, wire, own_epoch):
    assert write(wire, 7, coordinator_epoch=own_epoch) == NONE
    before = stored(broker)
    for epoch in (7, 8):
        refused = write(wire, epoch, coordinator_epoch=own_epoch - 1)
        assert refused == E.TRANSACTION_COORDINATOR_FENCED
    assert write(wire, 6, coordinator_epoch=own_epoch - 1) == E.INVALID_PRODUCER_EPOCH
    assert stored(broker) == before
    (row,) = producers(wire, ("t", 0)).values()
    assert (row.producer_epoch, row.coordinator_epoch) == (7, own_epoch)
    assert write(wire, 7, coordinator_epoch=own_epoch) == NONE


def test_markers_of_no_possible_coordinator_are_rejected(broker, wire, own_epoch):
    invalid = E.INVALID_REQUEST
    assert write(wire, 7, coordinator_epoch=own_epoch + 1) == invalid
    assert write(wire, 7, coordinator_epoch=2**31 - 1) == invalid
    assert write(wire, 7, coordinator_epoch=-2) == E.TRANSACTION_COORDINATOR_FENCED
    assert write(wire, -1) == invalid
    assert write(wire, 7, producer_id=-1) == invalid
    assert write(wire, 7, version=-1) == invalid
    assert stored(broker) == []
    assert write(wire, 7, coordinator_epoch=-1) == NONE


def test_missing_partitions_get_unknown_topic_or_partition(wire):
    places = {"nowhere": [0], "t": [0, 3, -1], TRANSACTION_STATE: [0], GROUP_OFFSETS: [99]}
    unknown = E.UNKNOWN_TOPIC_OR_PARTITION
    assert ask(wire, marker(7, places)) == [unknown, NONE, unknown, unknown, unknown, unknown]


def test_a_partition_that_is_being_closed_asks_to_come_again(broker, wire):
    broker.call(broker.server.catalogue.partition("t", 0).log.close)
    assert write(wire, 7) == E.NOT_LEADER_OR_FOLLOWER


def test_a_marker_alone_counts_and_fences_but_aborts_nothing(broker, wire):
    assert write(wire, 7, commit=False) == NONE
    assert ends(wire, ("t", 0)) == (1, 1)
    (row,) = producers(wire, ("t", 0)).values()
    found = row.producer_epoch, row.last_sequence, row.current_txn_start_offset
    assert found == (7, -1, -1)
    log = broker.call(lambda: broker.server.catalogue.partition("t", 0).log)
    assert log.aborted_transactions(0, 1) == []
    late = Producer(wire, "late", TRANSACTIONS_V2).be(PID, 6)
    assert late.write(("t", 0), b"v")[0] == E.INVALID_PRODUCER_EPOCH


def test_an_abort_with_data_is_in_the_index(broker, wire):
    producer = transaction(wire, CLASSIC, 0)
    assert write(wire, 0, producer_id=producer.producer_id, commit=False) == NONE
    log = broker.call(lambda: broker.server.catalogue.partition("t", 0).log)
    (aborted,) = log.aborted_transactions(0, 2)
    assert (aborted.producer_id, aborted.first_offset, aborted.last_offset) == (
        producer.producer_id,
        0,
        1,
    )
    assert ends(wire, ("t", 0)) == (2, 2)


def test_the_bytes_of_a_marker(broker, wire):
    """Apache Kafka 4.3.0 writes the same bytes, except the time and what depends on it (M6)."""
    assert write(wire, 7, coordinator_epoch=1) == NONE
    (batch,) = stored(broker)
    fixed = batch[8:12] + batch[16:17] + batch[21:27] + batch[43:]
    assert fixed.hex(" ", 4) == (
        bytes.fromhex("00000042")  # what follows: 66 bytes
        + b"\x02"  # magic
        + bytes.fromhex("0030 00000000")  # transactional and control; last offset delta
        + PID.to_bytes(8, "big")
        + bytes.fromhex("0007 ffffffff 00000001")  # epoch, no sequence, one record
        + bytes.fromhex("20 00 00 00 08 00000001 0c 0000 00000001 00")
    ).hex(" ", 4)


def test_partitions_that_are_named_again_get_one_marker_for_each_producer(broker, wire):
    twice = {"t": [1, 1, 2]}
    assert ask(wire, marker(7, twice), marker(7, twice, producer_id=PID + 1)) == [NONE] * 6
    assert len(stored(broker, ("t", 1))) == 2
    assert len(stored(broker, ("t", 2))) == 2


def test_a_later_marker_of_the_same_request_meets_the_one_before(broker, wire):
    places = {"t": [0]}
    assert ask(wire, marker(7, places), marker(6, places)) == [NONE, E.INVALID_PRODUCER_EPOCH]


def test_nothing_asked_nothing_answered(wire):
    assert ask(wire) == []
    assert ask(wire, marker(7, {}), marker(7, {"t": []})) == []


def test_version_1_is_of_the_classic_generation(wire):
    producer = transaction(wire, CLASSIC, 0)
    settings = {"producer_id": producer.producer_id}
    assert ask(wire, marker(producer.epoch, {"t": [0]}, **settings), version=1) == [NONE]


def test_more_markers_than_anybody_needs_close_the_connection(broker, wire, monkeypatch):
    monkeypatch.setattr(transaction_markers, "MARKERS_MAX", 5)
    assert ask(wire, marker(7, {"t": [0, 1, 2]}), marker(8, {"t": [0, 1]})) == [NONE] * 5
    with pytest.raises(OSError):
        ask(wire, marker(9, {"t": [0, 1, 2]}), marker(9, {"t": [0, 1, 2]}))
    assert all(len(stored(broker, ("t", index))) <= 2 for index in range(3))


def test_many_markers_take_several_turns(broker, wire, monkeypatch):
    monkeypatch.setattr(transaction_markers, "MARKERS_PER_TURN", 2)
    assert ask(wire, *(marker(epoch, {"t": [0, 1, 2]}) for epoch in range(5))) == [NONE] * 15
    assert [len(stored(broker, ("t", index))) for index in range(3)] == [5, 5, 5]


# --------------------------------------------------------------------------- __consumer_offsets


@GENERATIONS
@pytest.mark.parametrize("commit", [True, False])
def test_offsets_are_there_when_their_marker_is_answered(broker, wire, generation, commit):
    """KAFKA-17507: after the acknowledgement of the marker, no client finds the offsets pending."""
    for number in range(1, 6):
        producer = Producer(wire, f"id-{number}", generation)
        assert persistent(producer.init) == NONE
        assert producer.send_offsets("g", ("t", 0), number) == NONE
        assert committed_offset(wire, "g", ("t", 0), wait=False) is None
        place = broker.call(
            lambda key=producer.key: next(
                iter(broker.server.transactions.transaction(key).partitions)
            )
        )
        ended = marker(
            producer.epoch + generation // 2,
            {place.topic: [place.partition]},
            commit=commit,
            producer_id=producer.producer_id,
            version=generation,
        )
        assert ask(wire, ended) == [NONE]
        found = committed_offset(wire, "g", ("t", 0), wait=False)
        assert found == (number if commit else -1)


def test_offsets_that_are_not_loaded_ask_to_come_again(broker, wire):
    assert broker.call(broker.server.groups.is_coordinator)
    shard = broker.server.groups.log.shards[0]
    shard.is_loaded = False
    places = {GROUP_OFFSETS: [0, 1]}
    assert ask(wire, marker(7, places)) == [E.NOT_LEADER_OR_FOLLOWER, NONE]
    shard.is_loaded = True
    assert ask(wire, marker(7, places)) == [NONE, NONE]


# ------------------------------------------------------------------------------ by an operator


@GENERATIONS
@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("ahead", [0, 1, 9])
def test_an_operators_abort_and_the_coordinators_own_markers_after_it(
    broker, wire, generation, commit, ahead
):
    """A1: a partition that an operator ended stays ended; the transaction completes on the others.

    With an epoch further ahead than the coordinator's, its marker finds nothing to end there.
    """
    producer = transaction(wire, generation, 0, 1)
    row = producers(wire, ("t", 0))[producer.producer_id]
    by_hand = marker(
        row.producer_epoch + ahead,
        {"t": [0]},
        commit=False,
        producer_id=row.producer_id,
        coordinator_epoch=row.coordinator_epoch,
    )
    assert ask(wire, by_hand) == [NONE]
    assert ends(wire, ("t", 0)) == (2, 2)
    assert ends(wire, ("t", 1)) == (0, 1)
    assert producer.end(commit=commit) == NONE
    first, second = (partition_history(stored(broker, ("t", at)), ("t", at)) for at in (0, 1))
    assert first.committed == []
    assert len(second.committed) == commit
    assert not first.open | second.open
    fenced = ahead > generation // 2
    assert len(first.markers) == (1 if fenced else 2)
    # The id works on that partition too; its epoch passes that of the operator after a few ends.
    while producer.epoch < row.producer_epoch + ahead:
        assert persistent(producer.init) == NONE
    producer.open(("t", 0), ("t", 1))
    assert producer.end() == NONE
    assert ends(wire, ("t", 1)) == (4, 4)
