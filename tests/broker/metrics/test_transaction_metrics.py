"""Metrics of a broker after transactions."""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.end_txn import END_TXN, EndTxnRequest
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.testing import Broker
from tests.broker.metrics.scrape import scrape
from tests.counterparts.transaction_client import TransactionClient

SETTINGS = {
    "transaction.state.log.num.partitions": "2",
    "barnabas.transaction.wait.ms": "50",
}


@pytest.fixture
def broker():
    with Broker(config=SETTINGS) as running:
        running.create_topic("t", 2)
        running.port = running.address[1]
        yield running


@pytest.fixture
def client(broker):
    with TransactionClient(broker) as connected:
        yield connected


def open_now(broker):
    seen = scrape(broker)
    states = ("Ongoing", "PrepareCommit", "PrepareAbort")
    return [seen("barnabas_transactions_open", state=state) for state in states]


def oldest(broker):
    seen = scrape(broker)
    name = "barnabas_transaction_oldest_age_seconds"
    return seen(name, state="open"), seen(name, state="prepared")


def ended(broker):
    """Return the counts of started, committed, and aborted transactions, by cause of the abort."""
    seen = scrape(broker)
    aborted = "barnabas_transactions_aborted_total"
    return (
        seen("barnabas_transactions_begun_total"),
        seen("barnabas_transactions_committed_total"),
        *(seen(aborted, reason=reason) for reason in ("client", "timeout", "fenced")),
    )


def test_nothing_has_happened(broker):
    assert open_now(broker) == [0, 0, 0]
    assert oldest(broker) == (0, 0)
    assert ended(broker) == (0, 0, 0, 0, 0)
    assert scrape(broker)("barnabas_transactional_ids") == 0
    assert scrape(broker)("barnabas_transactional_ids_unreadable") == 0


def test_an_id_that_cannot_be_read(broker, client):
    client.init("t")
    machine = broker.server.transactions.log.shard_of("t").machine
    broker.call(lambda: machine.quarantine("t"))
    assert scrape(broker)("barnabas_transactional_ids_unreadable") == 1
    assert scrape(broker)("barnabas_transactional_ids") == 0


def test_how_transactions_end(broker, client):
    for key in ("committed", "aborted", "late", "fenced", "open"):
        client.begin(key, "t", 0, timeout_ms=60_000 if key == "late" else 900_000)
        client.write(key, "t", 0)
    assert open_now(broker) == [5, 0, 0]
    client.end("committed")
    client.end("committed")  # The second time it has happened already.
    client.end("aborted", commit=False)
    client.init("fenced")
    broker.clock.advance(minutes=2)
    assert ended(broker) == (5, 1, 1, 1, 1)
    assert open_now(broker) == [1, 0, 0]
    assert scrape(broker)("barnabas_transactional_ids") == 5
    broker.restart()
    assert open_now(broker) == [1, 0, 0]
    assert ended(broker) == (0, 0, 0, 0, 0)


def test_the_abort_of_nothing_is_no_transaction(broker, client):
    client.init("t")
    request = EndTxnRequest("t", *client.producers["t"], False)
    assert client.ask(END_TXN, request, 5).error_code == ErrorCode.NONE
    assert ended(broker) == (0, 0, 0, 0, 0)


def test_age_of_the_oldest(broker, client):
    client.begin("old", "t", 0, timeout_ms=900_000)
    broker.clock.advance(minutes=5)
    client.begin("new", "t", 1, timeout_ms=900_000)
    age, prepared = oldest(broker)
    assert 300 <= age < 360
    assert prepared == 0
    client.end("old")
    age, _ = oldest(broker)
    assert 0 <= age < 60


def test_stable_offset_lag_is_shown_per_partition(broker, client):
    client.begin("t", "t", 1)
    client.write("t", "t", 1, 4)
    seen = scrape(broker)
    assert seen("barnabas_stable_offset_lag", topic="t", partition=0) == 0
    assert seen("barnabas_stable_offset_lag", topic="t", partition=1) == 5
    assert seen("barnabas_stable_offset_lag_max", topic="t") == 5
    assert seen("barnabas_last_stable_offset", topic="t", partition=1) == 0
    client.end("t")
    seen = scrape(broker)
    assert seen("barnabas_stable_offset_lag_max", topic="t") == 0
    assert seen("barnabas_last_stable_offset", topic="t", partition=1) == 6


def test_the_largest_lag_of_a_topic_stays_where_partitions_are_switched_off():
    with Broker(config={**SETTINGS, "barnabas.metrics.partitions": "false"}) as broker:
        broker.create_topic("t", 2)
        names = {name for name, _ in scrape(broker).samples}
    assert "barnabas_stable_offset_lag_max" in names
    assert "barnabas_last_stable_offset" not in names


def test_markers_that_cannot_be_written(broker, client):
    """The disk is full after the decision: the markers come when there is room."""
    client.begin("t", "t", 0, 1)
    server = broker.server
    transactions = server.transactions
    seen = scrape(broker)
    assert seen("barnabas_transaction_markers_written_total") == 0
    phase = transactions._markers
    write_one = phase._write_one
    full = ErrorCode.KAFKA_STORAGE_ERROR
    broker.call(lambda: setattr(phase, "_write_one", lambda _place, _marker: full))
    client.ask(END_TXN, EndTxnRequest("t", *client.producers["t"], True), 3)
    assert open_now(broker) == [0, 1, 0]
    broker.clock.advance(seconds=30)
    seen = scrape(broker)
    assert seen("barnabas_transaction_markers_missing") == 2
    assert seen("barnabas_transaction_markers_delayed_total") >= 4
    assert seen("barnabas_transaction_oldest_age_seconds", state="prepared") >= 30
    # A client with the same id waits meanwhile, and gets an error in the end.
    request = InitProducerIdRequest("t", 60_000)
    assert client.ask(INIT_PRODUCER_ID, request, 4).error_code == (
        ErrorCode.CONCURRENT_TRANSACTIONS
    )
    client.send(INIT_PRODUCER_ID, request, 4)
    client.receive()
    seen = scrape(broker)
    assert seen("barnabas_transaction_requests_delayed_total") == 2
    assert seen("barnabas_transaction_requests_timed_out_total") == 2
    for old in ("requests_held_total", "requests_given_up_total"):
        assert seen(f"barnabas_transaction_{old}") == 2
    assert seen("barnabas_transaction_requests_waiting") == 0
    broker.call(lambda: setattr(phase, "_write_one", write_one))
    broker.clock.advance(seconds=2)
    seen = scrape(broker)
    assert seen("barnabas_transaction_markers_written_total") == 2
    assert seen("barnabas_transaction_markers_missing") == 0
    assert open_now(broker) == [0, 0, 0]
