"""Markers that cannot be written at once are retried until they are written (C6)."""

from __future__ import annotations

import logging

import pytest

from barnabas.broker.coordination import marker_phase
from barnabas.broker.coordination.marker_phase import MarkerPhase
from barnabas.coordinator.transactions.state import CLASSIC, TRANSACTIONS_V2, State
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.end_txn import END_TXN, EndTxnRequest
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.messages.write_txn_markers import (
    WRITE_TXN_MARKERS,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from barnabas.storage.log.transaction_marker import TransactionMarker
from barnabas.testing import Broker
from tests.broker.data_plane import Wire
from tests.crash.transaction_client import Producer, committed_offset, ends, persistent, producers
from tests.crash.transaction_life import batches_of
from tests.history.logs import partition_history
from tests.waiting import wait_until
from tests.worlds import world

__all__ = ["world"]

NONE = ErrorCode.NONE
PLACES = [("t", index) for index in range(3)]
GENERATIONS = pytest.mark.parametrize("generation", [CLASSIC, TRANSACTIONS_V2], ids=["tv1", "tv2"])


@pytest.fixture
def broker():
    with Broker() as running:
        running.create_topic("t", len(PLACES))
        yield running


@pytest.fixture
def wire(broker):
    with Wire(broker.address) as opened:
        assert opened.ask(FIND_COORDINATOR, FindCoordinatorRequest("g"), 3).error_code == NONE
        yield opened


def state(broker, key="id"):
    return broker.call(lambda: broker.server.transactions.transaction(key).state)


def log_of(broker, place):
    return broker.call(lambda: broker.server.catalogue.partition(*place).log)


def begun(wire, generation, *places, key="id"):
    producer = Producer(wire, key, generation)
    producer.begin(*(places or PLACES))
    return producer


def history(broker, place):
    log = log_of(broker, place)
    return partition_history(broker.call(lambda: batches_of(log)), place)


def until_complete(broker, key="id"):
    """Wait until a transaction has its markers, and until they are durable and can be seen."""
    wait_until(lambda: state(broker, key).is_idle)
    journal = broker.server.logs.journal
    wait_until(lambda: broker.call(journal.newest_group) is None)


@GENERATIONS
@pytest.mark.parametrize("commit", [True, False])
def test_a_partition_that_is_closed_for_a_while(broker, wire, generation, commit):
    producer = begun(wire, generation)
    log = log_of(broker, PLACES[1])
    log.closed = True
    assert producer.end(commit=commit) == NONE, "the decision stands"
    prepared = State.PREPARE_COMMIT if commit else State.PREPARE_ABORT
    assert state(broker) == prepared
    assert [ends(wire, place) for place in PLACES] == [(2, 2), (0, 1), (2, 2)]
    owed = broker.call(lambda: broker.server.transactions.awaiting_markers("id"))
    assert owed == [PLACES[1]]
    another = Producer(wire, "id", generation)
    assert another.init() == ErrorCode.CONCURRENT_TRANSACTIONS
    assert producer.add(PLACES[0]) in {NONE, ErrorCode.CONCURRENT_TRANSACTIONS}
    log.closed = False
    until_complete(broker)
    assert ends(wire, PLACES[1]) == (2, 2)
    assert [len(history(broker, place).markers) for place in PLACES] == [1, 1, 1]
    assert persistent(another.init) == NONE


@GENERATIONS
def test_offsets_that_are_still_loading(broker, wire, generation):
    producer = begun(wire, generation, PLACES[0])
    assert producer.send_offsets("g", PLACES[0], 7) == NONE
    shards = broker.server.groups.log.shards
    for shard in shards:
        shard.is_loaded = False
    assert producer.end() == NONE
    assert state(broker) == State.PREPARE_COMMIT
    for shard in shards:
        shard.is_loaded = True
    assert committed_offset(wire, "g", PLACES[0]) == 7
    until_complete(broker)


@GENERATIONS
def test_a_disk_that_is_full_to_the_last_byte(broker, wire, generation, monkeypatch):
    """StorageFull fails the markers and then the completion; with room both succeed (D10)."""
    producer = begun(wire, generation)
    logs = broker.server.logs
    begin = MarkerPhase.begin

    def begin_on_a_full_disk(phase, shard, key):
        logs.full = logs.exhausted = True
        return begin(phase, shard, key)

    monkeypatch.setattr(MarkerPhase, "begin", begin_on_a_full_disk)
    assert producer.end() == NONE
    monkeypatch.undo()
    assert state(broker) == State.PREPARE_COMMIT
    logs.full = logs.exhausted = True
    assert producer.write(PLACES[0], b"v")[0] != NONE
    logs.full = logs.exhausted = False
    until_complete(broker)
    assert [ends(wire, place) for place in PLACES] == [(2, 2)] * 3


@GENERATIONS
def test_the_reserve_of_the_disk_is_for_decisions_and_markers(broker, wire, generation):
    producer = begun(wire, generation)
    logs = broker.server.logs
    logs.full = True
    assert producer.write(PLACES[0], b"v")[0] == ErrorCode.KAFKA_STORAGE_ERROR
    assert producer.end() == NONE
    assert state(broker) == State.COMPLETE_COMMIT
    logs.exhausted = True
    again = begun_when_full(wire, generation, logs)
    assert again.end() == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert state(broker, "again") == State.ONGOING
    logs.full = logs.exhausted = False
    assert again.end() == NONE
    assert state(broker, "again") == State.COMPLETE_COMMIT


def begun_when_full(wire, generation, logs):
    logs.full = logs.exhausted = False
    producer = begun(wire, generation, key="again")
    logs.full = logs.exhausted = True
    return producer


@GENERATIONS
@pytest.mark.parametrize("when", ["before", "while it waits"])
def test_a_topic_that_is_deleted_never_blocks(broker, wire, generation, when):
    """M5; a topic that is created again under the name has no trace of the old transaction (A2)."""
    broker.create_topic("gone", 1)
    producer = begun(wire, generation, ("gone", 0), *PLACES)

    def delete():
        async def work():
            catalogue = broker.server.catalogue
            await catalogue.delete_topic(catalogue.topics["gone"].topic_id)

        broker._do(work())

    if when == "before":
        delete()
        assert producer.end() == NONE
    else:
        log_of(broker, ("gone", 0)).close()
        assert producer.end() == NONE
        assert state(broker) == State.PREPARE_COMMIT
        delete()
    until_complete(broker)
    broker.create_topic("gone", 1)
    assert ends(wire, ("gone", 0)) == (0, 0)
    producer.open(("gone", 0), *PLACES)
    assert producer.end() == NONE
    assert ends(wire, ("gone", 0)) == (2, 2)


@GENERATIONS
def test_topic_created_again_gets_a_lone_marker(broker, wire, generation):
    broker.create_topic("anew", 1)
    producer = begun(wire, generation, ("anew", 0), *PLACES)

    async def remake():
        catalogue = broker.server.catalogue
        await catalogue.delete_topic(catalogue.topics["anew"].topic_id)
        await catalogue.create_topic("anew", 1, {})

    broker._do(remake())
    assert producer.end(commit=False) == NONE
    assert state(broker) == State.COMPLETE_ABORT
    assert ends(wire, ("anew", 0)) == (1, 1)
    assert log_of(broker, ("anew", 0)).aborted_transactions(0, 1) == []


@GENERATIONS
def test_markers_interrupted_by_a_crash_are_sent_again(broker, wire, generation):
    producer = begun(wire, generation)
    log_of(broker, PLACES[1]).closed = True
    assert producer.end() == NONE
    before = broker.server.transactions.coordinator_epoch
    broker.crash()
    broker.restart()
    until_complete(broker)
    assert broker.server.transactions.coordinator_epoch > before
    found = [history(broker, place).markers for place in PLACES]
    assert [[each.had_data for each in markers] for markers in found] == [
        [True, False],
        [True],
        [True, False],
    ]
    assert all(markers[-1].coordinator_epoch > before for markers in found)


def test_attempts_come_less_often_and_say_so_less_often(broker, wire, caplog):
    caplog.set_level(logging.WARNING)
    producer = begun(wire, CLASSIC)
    log = log_of(broker, PLACES[1])
    log.closed = True
    assert producer.end() == NONE
    for _ in range(300):
        broker.clock.advance(seconds=1)
    retry = broker.server.transactions._markers._retries["id"]
    assert 250 < retry.attempts < 400
    lines = [each for each in caplog.messages if "waits for its markers" in each]
    assert len(lines) <= 10, "one for each power of two"
    assert "id=id missing=1 attempts=1 reason=t-1: NOT_LEADER_OR_FOLLOWER" in lines[0]
    log.closed = False
    until_complete(broker)
    assert broker.server.transactions._markers._retries == {}


def test_attempts_end_with_the_broker(broker, wire):
    producer = begun(wire, CLASSIC)
    log_of(broker, PLACES[1]).closed = True
    assert producer.end() == NONE
    transactions = broker.server.transactions
    assert list(transactions._markers._retries) == ["id"]
    broker.crash()
    assert transactions._markers._retries == {}
    assert len(transactions._runner._timers) == 0
    broker.restart()
    until_complete(broker)


@GENERATIONS
def test_very_many_partitions_take_several_turns(broker, wire, generation, monkeypatch):
    monkeypatch.setattr(marker_phase, "MARKERS_PER_TURN", 2)
    broker.create_topic("wide", 9)
    places = [("wide", index) for index in range(9)]
    producer = begun(wire, generation, *places)
    log_of(broker, places[1]).closed = True
    assert producer.end() == NONE
    wait_until(lambda: len(history(broker, places[8]).markers) == 1)
    assert state(broker) == State.PREPARE_COMMIT
    log_of(broker, places[1]).closed = False
    until_complete(broker)
    assert [len(history(broker, place).markers) for place in places] == [1] * 9


# -------------------------------------------------------- what cannot be, and the operator's cure


def write_by_hand(wire, row):
    marker = WritableTxnMarker(
        row.producer_id,
        row.producer_epoch,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic("t", [0])],
        coordinator_epoch=row.coordinator_epoch,
    )
    answer = wire.ask(WRITE_TXN_MARKERS, WriteTxnMarkersRequest([marker]), 1)
    return answer.markers[0].topics[0].partitions[0].error_code


@GENERATIONS
def test_a_later_transaction_that_is_open_is_not_ended(broker, wire, generation, caplog):
    """M4, KAFKA-19999: the marker waits and is logged, and an operator's abort resumes it."""
    producer = begun(wire, generation)
    entry = log_of(broker, PLACES[0]).producers.entry(producer.producer_id)
    entry.epoch += 5
    assert producer.end() == NONE
    assert state(broker) == State.PREPARE_COMMIT
    assert "t-0: INVALID_PRODUCER_EPOCH" in caplog.text
    row = producers(wire, PLACES[0])[producer.producer_id]
    assert row.current_txn_start_offset == 0
    assert write_by_hand(wire, row) == NONE
    until_complete(broker)


def test_a_coordinator_epoch_that_was_forced(broker, wire, caplog):
    """Logs adopted from Kafka can have such an epoch: its abort must be possible."""
    producer = begun(wire, CLASSIC)
    entry = log_of(broker, PLACES[0]).producers.entry(producer.producer_id)
    entry.coordinator_epoch = 2**31 - 1
    assert producer.end() == NONE
    assert state(broker) == State.PREPARE_COMMIT
    assert "t-0: TRANSACTION_COORDINATOR_FENCED" in caplog.text
    assert write_by_hand(wire, producers(wire, PLACES[0])[producer.producer_id]) == NONE
    until_complete(broker)
    assert "marker not needed" in caplog.text
    broker.restart()  # No later epoch fits into a batch.
    assert broker.server.transactions.coordinator_epoch < 100


@pytest.mark.parametrize("stop", [Broker.stop, Broker.crash])
def test_the_epoch_of_a_start_is_later_than_that_of_any_marker(broker, wire, stop):
    """D6; a later one comes with logs that were taken over from Kafka."""
    producer = begun(wire, CLASSIC)
    log = log_of(broker, PLACES[0])
    settings = {"coordinator_epoch": 77, "commit": True}
    appended = broker.call(
        lambda: log.append_marker(TransactionMarker(*producer.identity, **settings))
    )
    wait_until(lambda: appended.group.durable)
    stop(broker)
    broker.restart()
    assert broker.server.transactions.coordinator_epoch > 77
    broker.restart()
    assert broker.server.transactions.coordinator_epoch > 78


# ------------------------------------------------------------------------------------- their cost


def syncs(broker):
    return broker.call(lambda: sum(broker.server.logs.flush_times.counts))


def test_the_markers_of_many_transactions_share_the_disk(broker, wire, capsys):
    """A transaction over 16 partitions ends with one sync; 100 at once share a few."""
    broker.create_topic("wide", 16)
    places = [("wide", index) for index in range(16)]
    many = []
    for number in range(100):
        producer = Producer(wire, f"id-{number}")
        assert persistent(producer.init) == NONE
        assert producer.add(*places) == NONE
        many.append(producer)
    single = begun(wire, CLASSIC, *places)
    before = syncs(broker)
    assert single.end() == NONE
    alone = syncs(broker) - before
    for producer in many:
        wire.send(END_TXN, EndTxnRequest(producer.key, *producer.identity, True), 4)
    assert [wire.receive().error_code for _ in many] == [NONE] * len(many)
    together = syncs(broker) - before - alone
    with capsys.disabled():
        print(f"\nsyncs to end a transaction over 16 partitions: {alone}; 100 of them: {together}")
    assert alone == 1
    assert together <= len(many) / 2
    assert all(len(history(broker, place).markers) == 101 for place in places)
