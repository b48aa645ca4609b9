"""Transactions of real producers, as consumers and observers see them: rare cases (L, A2)."""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.delete_records import DELETE_RECORDS
from barnabas.protocol.messages.describe_producers import DESCRIBE_PRODUCERS
from barnabas.protocol.messages.fetch import FETCH
from barnabas.storage.runtime.threads import new_event
from barnabas.testing import Broker
from tests.broker.committed_reader import Seen, committed_records
from tests.broker.data_plane import Named, Wire, batch, fetch_request
from tests.broker.raw_producer import RawProducer
from tests.requests import codes_of, delete_records_request, describe_producers_request
from tests.waiting import wait_until

PATIENCE_S = 60
COMMITTED = 1
BOTH = [11, 12]
"""Versions of Produce, one of each generation."""


@pytest.fixture
def broker():
    with Broker() as running:
        running.create_topic("t", 2)
        yield running


@pytest.fixture
def wire(broker):
    with Wire(broker.address, timeout_s=PATIENCE_S) as opened:
        yield opened


T = Named("t")


def log_of(broker, partition=0):
    return broker.server.catalogue.topics["t"].partitions[partition].log


def settle(broker, end, partition=0):
    """Wait until everything up to ``end`` is durable and in its file."""
    log = log_of(broker, partition)
    wait_until(lambda: broker.call(lambda: log.high_watermark == end and not log.unflushed))


def described(wire, partition=0):
    asked = describe_producers_request(("t", partition))
    rows = wire.ask(DESCRIBE_PRODUCERS, asked, 0).topics[0].partitions[0].active_producers
    return {row.producer_id: row for row in rows}


def read(wire, position):
    """Return the values that a `read_committed` consumer gets from ``position`` on, and its end."""
    found = []
    while True:
        data = wire.fetch_one(T, position, isolation=COMMITTED)
        if not len(data.records):
            return found, position
        seen, position = committed_records(data, position)
        found += seen


@pytest.mark.parametrize("version", BOTH)
def test_an_answer_of_aborted_records_only_moves_the_reader_on_l5(broker, wire, version):
    """librdkafka #2993: the response has no record, but a position to continue from."""
    producer = RawProducer(wire, "id", version)
    producer.begin(T, b"a")
    producer.send(T, b"b")
    producer.end(commit=False)
    settle(broker, 3)
    for limit in (1, 1 << 20):
        position = 0
        while position < 3:
            data = wire.fetch_one(T, position, isolation=COMMITTED, partition_max_bytes=limit)
            assert len(data.records)
            seen, following = committed_records(data, position)
            assert (seen, following > position) == ([], True)
            position = following


@pytest.mark.parametrize("session", [False, True])
@pytest.mark.parametrize("version", BOTH)
def test_waiting_consumer_gets_the_abort_kafka_5376(broker, wire, version, session):
    producer = RawProducer(wire, "id", version)
    producer.begin(T, b"aborted")
    with Wire(broker.address, timeout_s=PATIENCE_S) as reader:
        asked, name = [(T, (0, 0), (1, 0))], (0, -1)
        if session:
            first = reader.fetch(*asked, isolation=COMMITTED, session=(0, 0))
            asked, name = [], (first.session_id, 1)
        request = fetch_request(
            12, *asked, isolation=COMMITTED, session=name, max_wait_ms=PATIENCE_S * 1000
        )
        reader.send(FETCH, request, 12)
        wait_until(lambda: broker.call(lambda: len(broker.server.fetch_waits)))
        producer.send(T, b"more of it")
        assert reader.silent(), "what is open is not for this reader"
        producer.end(commit=False)
        data = reader.receive().responses[0].partitions[0]
    assert [(each.producer_id, each.first_offset) for each in data.aborted_transactions] == [
        (producer.producer_id, 0)
    ]
    seen, position = committed_records(data, 0)
    assert seen == []
    assert position > 0


def test_a_transaction_that_ends_while_the_disk_is_read(broker, wire, monkeypatch):
    """The answer has the end, the records and the list of one moment (L4)."""
    first, second = RawProducer(wire, "first"), RawProducer(wire, "second")
    first.begin(T, b"aborted")
    first.end(commit=False)
    second.begin(T, b"open")
    settle(broker, 3)
    reading, ended = new_event(), new_event()
    run = broker.server.readers.run

    def slowly(work):
        def wait_and_work():
            reading.set()
            assert ended.wait(PATIENCE_S)
            work()

        return run(wait_and_work)

    monkeypatch.setattr(broker.server.readers, "run", slowly)
    broker.server.file_system.cold = True
    with Wire(broker.address, timeout_s=PATIENCE_S) as reader:
        reader.send(FETCH, fetch_request(12, (T, (0, 0)), isolation=COMMITTED), 12)
        assert reading.wait(PATIENCE_S)
        second.end(commit=False)
        settle(broker, 4)
        ended.set()
        data = reader.receive().responses[0].partitions[0]
    seen, position = committed_records(data, 0)
    assert seen == []
    assert 0 < position <= data.last_stable_offset


@pytest.mark.parametrize("version", BOTH)
def test_records_deleted_out_of_an_aborted_transaction(broker, wire, version):
    producer = RawProducer(wire, "id", version)
    for number in range(4):
        producer.begin(T, b"%d" % number) if not number else producer.send(T, b"%d" % number)
    wire.produce(T, batch(b"plain"))
    assert codes_of(wire.ask(DELETE_RECORDS, delete_records_request({("t", 0): 2}), 2)) == [0]
    data = wire.fetch_one(T, 2, isolation=COMMITTED)
    assert (data.log_start_offset, data.last_stable_offset) == (2, 2)
    assert described(wire)[producer.producer_id].current_txn_start_offset == 0
    producer.end(commit=False)
    settle(broker, 6)
    data = wire.fetch_one(T, 2, isolation=COMMITTED)
    assert [each.first_offset for each in data.aborted_transactions] == [0]
    assert read(wire, 2) == ([Seen(4, b"plain")], 6)
    below = wire.fetch_one(T, 1, isolation=COMMITTED)
    assert below.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("version", BOTH)
def test_observers_see_the_transaction_begin_and_end(broker, wire, version, commit):
    producer = RawProducer(wire, "id", version)
    wire.produce(T, batch(b"before"))
    assert described(wire) == {}
    producer.begin(T, b"a", b"b")
    epoch = producer.epoch
    row = described(wire)[producer.producer_id]
    assert (row.producer_epoch, row.last_sequence, row.current_txn_start_offset) == (epoch, 1, 1)
    assert row.coordinator_epoch == -1
    producer.end(commit=commit)
    row = described(wire)[producer.producer_id]
    assert (row.producer_epoch, row.current_txn_start_offset) == (producer.epoch, -1)
    assert row.last_sequence == (1 if producer.is_classic else -1)
    assert row.coordinator_epoch == broker.server.transactions.coordinator_epoch
    assert row.last_timestamp > 0


@pytest.mark.parametrize("version", BOTH)
def test_nothing_of_a_deleted_topic_is_left_in_the_next_of_its_name_a2(broker, wire, version):
    producer, other = RawProducer(wire, "id", version), RawProducer(wire, "other", version)
    for each in (producer, other):
        each.begin(T, b"old")
    other.end(commit=False)
    catalogue = broker.server.catalogue
    broker._do(catalogue.delete_topic(catalogue.topics["t"].topic_id))
    broker.create_topic("t", 2)
    assert described(wire) == {}
    wire.produce(T, batch(b"new"))
    data = wire.fetch_one(T, 0, isolation=COMMITTED)
    assert (data.last_stable_offset, data.high_watermark) == (1, 1)
    assert data.aborted_transactions == []
    producer.end(commit=False)  # M5: its marker is for a partition of that name, and harmless
    transactions = broker.server.transactions
    wait_until(lambda: broker.call(lambda: not transactions.transaction("id").partitions))
    end = broker.call(lambda: log_of(broker).next_offset)
    settle(broker, end)
    data = wire.fetch_one(T, 0, isolation=COMMITTED)
    assert read(wire, 0) == ([Seen(0, b"new")], end)
    assert data.aborted_transactions == []
    assert data.last_stable_offset == end
    # The new topic knows the producer by its marker only, so it begins at 0, as in Kafka.
    assert producer.add(T, 0) == 0
    assert producer.send(T, b"goes on", sequence=0).base_offset == end


@pytest.mark.parametrize("version", BOTH)
def test_producers_are_forgotten_but_not_in_a_transaction_s9(version):
    settings = {
        "producer.id.expiration.ms": "1000",
        "producer.id.expiration.check.interval.ms": "1000",
    }
    with Broker(config=settings) as broker, Wire(broker.address, timeout_s=PATIENCE_S) as wire:
        broker.create_topic("t", 2)
        idle, producer = RawProducer(wire, "idle", version), RawProducer(wire, "id", version)
        idle.begin(T, b"a")
        idle.end()
        producer.begin(T, b"b")
        broker.clock.advance(seconds=10)
        wait_until(lambda: idle.producer_id not in described(wire))
        assert described(wire)[producer.producer_id].current_txn_start_offset == 2
        assert producer.send(T, b"c").error_code == 0
        producer.end()
        broker.clock.advance(seconds=10)
        wait_until(lambda: described(wire) == {})
        # An idle producer continues; only transaction protocol v2 starts each transaction at 0.
        assert idle.add(T, 0) == 0
        result = idle.send(T, b"d", sequence=1)
        assert result.error_code == (0 if idle.is_classic else 45)
