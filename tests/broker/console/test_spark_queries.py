"""Spark's queries as the console reads their ledger, which the sinks' own cores have written."""

from __future__ import annotations

import json
import random

import pytest

from barnabas.broker.console.pages import spark_ledger as module
from barnabas.broker.console.pages.spark_ledger import (
    LEDGER_TOPIC,
    LedgerEntry,
    LedgerState,
    entry_of,
    taken_in,
)
from barnabas.broker.console.pages.spark_queries import sink_of
from barnabas.broker.console.records.pace import ThreadPace
from barnabas.broker.console.records.pieces import Batch, Piece
from barnabas.broker.console.records.standing import Standing
from barnabas.protocol.records import Record, control_batch, encode_batch, iterate_batches
from barnabas.spark_connector.cluster.incarnation import Home, Incarnation
from barnabas.spark_connector.ledger.entries import VERSION, Begun, Entry, Listed, encode, key_of
from barnabas.spark_connector.ledger.measured import Measured
from barnabas.spark_connector.ledger.prepared import task_transactional_id
from barnabas.spark_connector.settings.options import LEDGER_TOPIC as WRITTEN_TOPIC
from barnabas.testing import Broker
from tests.broker.console.asking import HTTP, fetch
from tests.broker.console.test_views import write
from tests.interop.spark_sink import Query, options, rows
from tests.waiting import wait_until

KEY = ("sink", "query")
ABOUT = Incarnation(
    Home("c", {"orders": "1", "payments": "2"}), Home("c", {"out": "3", LEDGER_TOPIC: "4"})
)
WHOLE = Entry(
    7,
    "ends",
    (Listed("spark.sink.7.0.0.a", 1, 2), Listed("spark.sink.7.1.1.b", 3, 4)),
    is_pinned=True,
    history=("before",),
    incarnation=ABOUT,
    record_counts=(12, 9),
    begun=Begun(8, "more"),
    measured=Measured(6, 12.5, 0.3),
)


class Written:
    """A log of the ledger, in memory."""

    def __init__(self):
        self.data = b""
        self.end = 0

    def add(self, key, value, producer_id=-1, offset=None):
        at = self.end if offset is None else offset
        transaction = {"producer_epoch": 0, "base_sequence": 0, "transactional": True}
        more = {"producer_id": producer_id, **transaction} if producer_id >= 0 else {}
        self.data += encode_batch([Record(at, 5, key, value)], base_offset=at, **more)
        self.end = at + 1
        return self

    def entry(self, batch, producer_id=-1, sink="sink", query="query"):
        return self.add(key_of(sink, query), encode(Entry(batch)), producer_id)

    def marker(self, producer_id, *, commit):
        self.data += control_batch(
            producer_id, 0, commit=commit, coordinator_epoch=0, timestamp=1, base_offset=self.end
        )
        self.end += 1
        return self

    def piece(self, start=0):
        view = memoryview(self.data)
        batches = [
            Batch(header, view[at : at + header.size])
            for at, header in iterate_batches(view)
            if header.next_offset > start
        ]
        standing = Standing(0, self.end, self.end, {}, None, ())
        return Piece(start, self.end, batches, len(self.data), standing, [])


def after(log, state=None):
    state = LedgerState() if state is None else state
    return taken_in(state, log.piece(state.position), ThreadPace())


def batches_of(state):
    return {key: entry.batch for key, entry in state.entries.items()}


def test_the_topic_is_the_one_that_sinks_write():
    assert LEDGER_TOPIC == WRITTEN_TOPIC


def test_an_entry_is_read_as_the_sinks_write_it():
    found = entry_of(KEY, Record(41, 1234, key_of(*KEY), encode(WHOLE)))
    assert VERSION in module.VERSIONS
    assert found == LedgerEntry(
        *KEY,
        offset=41,
        written_ms=1234,
        batch=7,
        begun_batch=8,
        records=12,
        measured_batch=6,
        decide_ms=12.5,
        commit_ms=0.3,
        transactions=("spark.sink.7.0.0.a", "spark.sink.7.1.1.b"),
        is_pinned=True,
        sources=("orders", "payments"),
        sinks=("out",),
    )
    bare = entry_of(KEY, Record(0, 1, key_of(*KEY), encode(Entry(-1, record_counts=(-1,)))))
    assert bare == LedgerEntry(*KEY, offset=0, written_ms=1)


def test_only_committed_batches_count():
    log = Written().entry(0, 1).marker(1, commit=True).entry(1, 1).marker(1, commit=False)
    log.entry(2, 1).entry(5, 2, query="other")
    state = after(log)
    assert batches_of(state) == {KEY: 0}
    assert set(state.undecided) == {1, 2}
    log.marker(1, commit=True)
    state = after(log, state)
    assert (batches_of(state), set(state.undecided)) == ({KEY: 2}, {2})
    # The same again changes nothing; a tombstone takes back.
    assert after(log, state) == state
    log.marker(2, commit=True).entry(6).add(key_of(*KEY), None)
    assert batches_of(after(log, state)) == {("sink", "other"): 5}


def test_reading_in_pieces_comes_to_the_same():
    chance = random.Random(7)
    log, states = Written(), []
    state = LedgerState()
    for number in range(200):
        producer = chance.randrange(4)
        if chance.random() < 0.4:
            log.marker(producer, commit=chance.random() < 0.7)
        else:
            log.entry(number, producer, query=f"q{chance.randrange(5)}")
        if chance.random() < 0.2:
            state = after(log, state)
            states.append(state)
    assert len(states) > 5
    assert after(log, state) == after(log)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"{}"),
        (b"", b"{}"),
        (b"[1, 2]", b"{}"),
        (b'["a"]', b"{}"),
        (b'["\\ud800", "q"]', b"{}"),
        (b"[" * 1000, b"{}"),
        (json.dumps(["x" * 300, "q"]).encode(), b"{}"),
        (b"\xff", b"{}"),
    ],
)
def test_invalid_ledger_entry_is_skipped(key, value):
    assert after(Written().add(key, value).entry(3)).entries.keys() == {KEY}


@pytest.mark.parametrize(
    "value",
    [
        b"not json",
        b"[]",
        b"{}",
        b'{"version":2}',
        b'{"version":[]}',
        b"[" * 100_000,
        b'{"version":2,"batchId":1e999,"transactions":[],"pinned":false}',
        b'{"version":2,"batchId":1,"transactions":[1],"pinned":false}',
        b'{"version":2,"batchId":1,"transactions":[],"pinned":false,"source":7}',
        b'{"version":99,"batchId":1}',
        b"x" * (module.VALUE_MOST_BYTES + 1),
    ],
)
def test_foreign_ledger_entry_reports_a_problem(value):
    (entry,) = after(Written().add(key_of(*KEY), value)).entries.values()
    assert entry.problem
    assert entry == LedgerEntry(*KEY, offset=0, written_ms=5, problem=entry.problem)


@pytest.mark.parametrize(
    "measured",
    [
        None,
        7,
        [0, 1, 2],
        {"batchId": 0},
        {"batchId": -1, "decideMs": 1, "commitMs": 1},
        {"batchId": 2**64, "decideMs": 1, "commitMs": 1},
        {"batchId": 0, "decideMs": float("inf"), "commitMs": 1},
        {"batchId": 0, "decideMs": 1, "commitMs": float("nan")},
        {"batchId": 0, "decideMs": -1, "commitMs": 1},
        {"batchId": 0, "decideMs": "x", "commitMs": 1},
    ],
)
def test_unreadable_durations_hide_nothing_else(measured):
    fields = json.loads(encode(WHOLE)) | {"measured": measured}
    found = entry_of(KEY, Record(0, 1, b"", json.dumps(fields).encode()))
    assert (found.batch, found.records, found.problem) == (7, 12, None)
    assert (found.measured_batch, found.decide_ms, found.commit_ms) == (None, None, None)


def test_everything_has_a_limit(monkeypatch):
    monkeypatch.setattr(module, "QUERIES_MOST", 10)
    monkeypatch.setattr(module, "UNDECIDED_MOST", 10)
    log = Written()
    for number in range(50):
        log.entry(number, query=f"q{number}").entry(number, number, query=f"open{number}")
    state = after(log)
    assert list(batches_of(state).values()) == list(range(40, 50))
    assert list(state.undecided) == list(range(40, 50))
    records = [Record(log.end + n, 5, key_of("sink", f"b{n}"), encode(Entry(n))) for n in range(30)]
    log.data += encode_batch(
        records,
        base_offset=log.end,
        producer_id=99,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )
    log.end += 30
    state = after(log, state)
    assert {each: len(found) for each, found in state.undecided.items()} == {99: 10}
    topics = {f"t{n}": "1" for n in range(200)}
    about = Incarnation(Home("c", topics), Home("c", topics))
    wide = entry_of(KEY, Record(0, 1, b"", encode(WHOLE._replace(incarnation=about))))
    assert len(wide.sources) == len(wide.sinks) == module.TOPICS_MOST


def test_sink_of_a_transactional_id_is_found():
    sinks = {"a", "a.b", "a.1.2.3.x"}
    for sink in sinks:
        assert sink_of(f"spark.{sink}", sinks) == sink
        task = task_transactional_id(sink, "query", 7, 0, 3, "nonce")
        assert sink_of(task, sinks) == sink
    for other in ("spark.other", "spark", "a", "spark.a.x.2.3.n", "spark.a.1.2.3", "spark."):
        assert sink_of(other, sinks) is None


def fetched(broker, **query):
    return fetch(broker, "spark-queries", **query)


@pytest.mark.parametrize("kind", ["single", "two-phase"])
def test_how_far_a_query_is_and_what_it_has_left_open(kind):
    with Broker(config={**HTTP, "transaction.two.phase.commit.enable": "true"}) as broker:
        assert fetched(broker)["items"] == []
        for topic, partitions in (("out", 2), ("source", 1), ("elsewhere", 1)):
            broker.create_topic(topic, partitions=partitions)
        write(broker, "source", 10)
        write(broker, "elsewhere", 6)
        query = Query(kind, options(broker, "out", sinkId="sink-1"))
        query.run(2)
        (row,) = wait_until_decided(broker, 2)
        assert (row["sink"], row["query"], row["transactional_id"]) == (
            "sink-1",
            "query",
            "spark.sink-1",
        )
        assert row["records"] == 12
        assert row["measured_batch"] == 1
        assert min(row["decide_ms"], row["commit_ms"]) > 0
        assert row["transactions"] == (0 if kind == "single" else 2)
        assert row["outputs"] == ["out"]
        assert {each["topic"]: each["lag"] for each in row["inputs"]} == {
            "source": 7,
            "elsewhere": 1,
        }
        assert (row["open_transactions"], row["open_since_ms"]) == (0, None)
        record = fetch(
            broker,
            "topics",
            LEDGER_TOPIC,
            "partitions",
            str(row["ledger_partition"]),
            "records",
            str(row["ledger_offset"]),
        )
        assert json.loads(record["record"]["value"]["text"])["batchId"] == 2
        lost = query.participant(3, 0)
        lost.write([rows("out", 3, 0)])
        left = lost.prepared().transactional_id
        (row,) = fetched(broker)["items"]
        assert (row["batch"], row["open_transactions"]) == (2, 1)
        assert row["open_transactional_ids"] == [left]
        assert row["open_since_ms"] <= row["written_ms"] + 60_000
        query.stop()
        assert fetched(broker, filter="INK-1")["items"] == [row]
        assert fetched(broker, filter="other")["items"] == []


def rows_of(topic, batch_id):
    from tests.interop.spark_sink import rows

    return [rows(topic, batch_id, 0)]


def wait_until_decided(broker, batch):
    def decided():
        return [each["batch"] for each in fetched(broker)["items"]] == [batch]

    wait_until(decided, "the marker is there")
    return fetched(broker)["items"]
