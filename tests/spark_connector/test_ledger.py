"""Entries and markers, paired as they come in the log."""

import pytest

from barnabas.protocol.records import Record, control_batch, encode_batch
from barnabas.spark_connector.cluster.cluster import Cluster
from barnabas.spark_connector.errors import InDoubt
from barnabas.spark_connector.ledger.entries import Entry, encode, key_of
from barnabas.spark_connector.ledger.ledger import Ledger


@pytest.fixture
def ledger():
    with Cluster("localhost:1", client_id="test", timeout_ms=1000) as cluster:
        ledger = Ledger(cluster, "ledger")
        ledger._reset("sink")
        yield ledger


class Log:
    def __init__(self):
        self.bytes = b""
        self.end = 0

    def entry(self, producer_id, batch_id, sink="sink", query="query"):
        record = Record(self.end, 1, key_of(sink, query), encode(Entry(batch_id)))
        self.bytes += encode_batch(
            [record],
            base_offset=self.end,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
        )
        self.end += 1
        return self

    def marker(self, producer_id, *, commit):
        self.bytes += control_batch(
            producer_id, 1, commit=commit, coordinator_epoch=0, timestamp=1, base_offset=self.end
        )
        self.end += 1
        return self

    def plain(self, key, value):
        records = [Record(self.end, 1, key, value)]
        self.bytes += encode_batch(records, base_offset=self.end)
        self.end += 1
        return self


def last(ledger):
    return {query: entry.batch_id for query, entry in ledger._entries.items()}


def test_only_what_has_a_commit_counts(ledger):
    log = Log().entry(1, 0).marker(1, commit=True).entry(1, 1).marker(1, commit=False)
    ledger._take(memoryview(log.bytes))
    assert last(ledger) == {"query": 0}
    assert not ledger._undecided
    assert ledger._position == log.end


def test_open_transaction_of_another_sink_blocks_no_reader(ledger):
    log = Log().entry(2, 9, sink="other").entry(1, 0).marker(1, commit=True)
    ledger._take(memoryview(log.bytes))
    assert last(ledger) == {"query": 0}
    assert not ledger._undecided


def test_interleaved_transactions_are_distinguished(ledger):
    log = Log().entry(1, 0).entry(3, 5, query="q2").marker(1, commit=True)
    ledger._take(memoryview(log.bytes))
    assert last(ledger) == {"query": 0}
    assert list(ledger._undecided) == [3]
    log.bytes = b""
    ledger._take(memoryview(log.marker(3, commit=True).bytes))
    assert last(ledger) == {"query": 0, "q2": 5}
    assert not ledger._undecided


@pytest.fixture
def looks(ledger, monkeypatch):
    """The bytes of each read of the topic; later reads are empty."""
    logs = []

    def read():
        ledger._take(memoryview(logs.pop(0) if logs else b""))

    monkeypatch.setattr(ledger, "_is_there", True)
    monkeypatch.setattr(ledger, "_read_to_the_end", read)
    return logs


def test_the_end_of_an_open_transaction_of_this_sink_is_waited_for(ledger, looks):
    log = Log().entry(1, 0)
    looks.append(log.bytes)
    log.bytes = b""
    looks.extend([b"", log.marker(1, commit=True).bytes])
    assert ledger.queries("sink") == {"query": Entry(0)}


def test_open_transaction_of_this_sink_is_not_awaited_forever(ledger, looks):
    looks.append(Log().entry(1, 0).bytes)
    with pytest.raises(InDoubt, match="another driver of this sink is at work"):
        ledger.queries("sink")


def test_record_read_twice_is_taken_once(ledger):
    log = Log().entry(1, 0).marker(1, commit=True)
    ledger._take(memoryview(log.bytes))
    ledger._take(memoryview(log.bytes))
    assert not ledger._undecided
    assert ledger._position == 2


def test_records_that_are_no_entries_are_skipped(ledger):
    log = Log().plain(None, b"x").plain(b"\xff", b"x").plain(key_of("sink", "gone"), None)
    log.plain(key_of("sink", "by hand"), encode(Entry(3)))
    ledger._take(memoryview(log.bytes))
    assert last(ledger) == {"by hand": 3}
    assert ledger._position == 4
