"""The monitor of a session's queries, with events as Spark sends them and a real broker."""

from __future__ import annotations

import json

import pytest

from barnabas.spark_connector.checkpoint.checkpoint import batch_end
from barnabas.spark_connector.cluster.cluster import connected
from barnabas.spark_connector.ledger import driver_sinks
from barnabas.spark_connector.ledger.driver_sinks import note_batch, sink_of_query
from barnabas.spark_connector.ledger.measured import Measured
from barnabas.spark_connector.monitoring import query_monitor
from barnabas.spark_connector.monitoring.query_events import Ended, Progressed, Started
from barnabas.spark_connector.monitoring.query_monitor import Monitor
from barnabas.spark_connector.settings.options import SinkOptions
from barnabas.spark_connector.sinks import kept_decider, starting
from barnabas.storage.runtime.chance import random_bytes
from barnabas.testing import Broker
from tests.broker.producers import open_transaction, write
from tests.spark_connector.checkpointed import (
    DATA_SOURCE,
    KINDS,
    PER_BATCH,
    Driver,
    SparkCheckpoint,
    options,
)
from tests.waiting import wait_until

REFRESH_S = 0.05


@pytest.fixture(scope="module")
def broker():
    with Broker(config={"transaction.two.phase.commit.enable": "true"}) as running:
        for topic in ("in", "out"):
            running.create_topic(topic, 1)
        write(running, "in", 5 * PER_BATCH)
        yield running


@pytest.fixture(autouse=True)
def _no_sinks_before(monkeypatch):
    monkeypatch.setattr(query_monitor, "REFRESH_MIN_S", REFRESH_S)
    monkeypatch.setattr(driver_sinks, "_sinks", {})
    yield
    for module in (kept_decider, starting):
        while module._kept:
            kept = module._kept.pop()
            (kept.decider if module is kept_decider else kept.cluster).close()


def monitored(broker, on_batch=None, refresh_s=REFRESH_S):
    chosen = SinkOptions.parse(
        {
            "kafka.bootstrap.servers": broker.bootstrap_servers,
            "sinkId": "any",
            "ledgerTopic": "ledger",
        }
    )
    return Monitor(chosen, on_batch, refresh_s=refresh_s)


class Query:
    """A query without Spark: its sink is real, its events are as Spark's."""

    def __init__(self, broker, monitor, kind, tmp_path, name=None):
        self.kind = kind
        self.files = SparkCheckpoint(tmp_path / random_bytes(4).hex())
        self.sink_id = f"{kind}-{self.files.directory.name}"
        self.options = options(broker, self.sink_id, self.files)
        self.driver = Driver(kind, self.options, self.files)
        self.monitor, self.name = monitor, name
        self.id = self.files.query_id
        self.run_id = random_bytes(4).hex()
        monitor.offer(Started(self.id, self.run_id, name))

    def run_batch(self):
        batch = self.driver.batch_id
        if self.kind != DATA_SOURCE:
            note_batch(self.id, self.options)
        self.driver.run_batch()
        if self.kind != DATA_SOURCE:
            note_batch(self.id, self.options, self.driver._sink.measured)
        self.monitor.offer(Progressed(json.dumps(self.report(batch))))

    def report(self, batch):
        source = self.kind == DATA_SOURCE
        ends = {"in": {"0": (batch + 1) * PER_BATCH}}
        assert batch_end(str(self.files.directory), batch).offsets == {("in", 0): ends["in"]["0"]}
        return {
            "id": self.id,
            "runId": self.run_id,
            "name": self.name,
            "batchId": batch,
            "timestamp": "2026-11-21T18:00:00.000Z",
            "durationMs": {"addBatch": 20, "triggerExecution": 25},
            "sink": {"description": "x.PythonTable@1" if source else "ForeachBatchSink"},
            "sources": [{"endOffset": ends, "latestOffset": ends}],
        }

    def end(self):
        self.driver.close()
        self.monitor.offer(Ended(self.id, self.run_id))


def only(monitor):
    (found,) = monitor.queries()
    return found


def until_counted(monitor, batches):
    wait_until(lambda: [each.batches_decided for each in monitor.queries()] == [batches])


@pytest.mark.parametrize("kind", KINDS)
def test_the_five_metrics_of_a_query(broker, tmp_path, kind):
    reported = []
    with monitored(broker, reported.append) as monitor:
        query = Query(broker, monitor, kind, tmp_path, name="payments")
        assert monitor.queries() == ()
        for batch in range(3):
            query.run_batch()
            until_counted(monitor, batch + 1)
        # Of a commit worker the next entry has the durations.
        last = 1 if kind == DATA_SOURCE else 2
        found = only(monitor)
        assert (found.query, found.query_id) == ("payments", query.id)
        assert (found.sink_id, found.is_active) == (query.sink_id, True)
        assert (found.rows_decided, found.batch) == (3, 2)
        assert (found.measured_batch, found.measured_batches) == (last, last + 1)
        assert min(found.decide_ms, found.commit_ms) > 0
        assert found.decide_total_ms >= found.decide_ms
        assert found.lag == 2 * PER_BATCH
        assert found.transaction_age_ms == 0
        assert [each.batch for each in reported] == [0, 1, 2]
        assert [each.rows for each in reported] == [1, 1, 1]
        if kind != DATA_SOURCE:
            assert all(each.decide_ms > 0 for each in reported)
            assert reported[-1].commit_ms == found.commit_ms
        query.end()
        wait_until(lambda: not only(monitor).is_active)
        ended = only(monitor)
        assert (ended.rows_decided, ended.lag, ended.transaction_age_ms) == (3, None, None)


def test_age_and_lag_move_on_without_events(broker, tmp_path):
    with monitored(broker) as monitor:
        query = Query(broker, monitor, "single", tmp_path)
        query.run_batch()
        wait_until(lambda: monitor.queries() and only(monitor).lag == 4 * PER_BATCH)
        assert only(monitor).query == query.id
        with open_transaction(broker, f"spark.{query.sink_id}.x", "out", 1):
            wait_until(lambda: only(monitor).transaction_age_ms > 0)
        wait_until(lambda: only(monitor).transaction_age_ms == 0)
        query.end()


def test_a_run_that_ends_after_the_next_has_started_changes_nothing(broker, tmp_path):
    with monitored(broker) as monitor:
        query = Query(broker, monitor, "single", tmp_path)
        query.run_batch()
        until_counted(monitor, 1)
        monitor.offer(Started(query.id, "second run", None))
        monitor.offer(Ended(query.id, query.run_id))
        query.run_batch()
        until_counted(monitor, 2)
        assert only(monitor).is_active
        monitor.offer(Ended(query.id, "second run"))
        wait_until(lambda: not only(monitor).is_active)
        query.driver.close()


def test_of_two_queries_with_one_name_the_later_one_is_shown(broker, tmp_path):
    with monitored(broker) as monitor:
        first = Query(broker, monitor, "single", tmp_path, "money")
        first.run_batch()
        until_counted(monitor, 1)
        first.end()
        wait_until(lambda: not only(monitor).is_active)
        second = Query(broker, monitor, "single", tmp_path, "money")
        second.options = SinkOptions.parse(
            {
                "kafka.bootstrap.servers": broker.bootstrap_servers,
                "sinkId": first.sink_id,
                "topic": "out",
                "ledgerTopic": "ledger",
            }
        )
        note_batch(second.id, second.options)
        wait_until(lambda: only(monitor).query_id == second.id)
        second.end()


def test_queries_with_other_sinks_have_no_metrics_and_create_no_ledger(broker, caplog):
    chosen = {"kafka.bootstrap.servers": broker.bootstrap_servers, "sinkId": "any"}
    report = {"id": "q", "runId": "r", "batchId": 0, "durationMs": {"addBatch": 1}}
    seen = []
    with Monitor(SinkOptions.parse(chosen), seen.append, refresh_s=REFRESH_S) as monitor:
        for sink in ("KafkaTable", "ForeachBatchSink", "x.PythonTable@1"):
            named = report | {"id": sink, "sink": {"description": sink}}
            monitor.offer(Progressed(json.dumps(named)))
        wait_until(lambda: len(monitor._refreshed_at_s) == 3)
        assert monitor.queries() == ()
    assert (seen, caplog.messages) == ([], [])
    with connected(SinkOptions.parse(chosen)) as cluster:
        assert not cluster.existing(["__spark_sink_ledger"])


def test_brokers_that_are_unavailable_are_noted_once(broker, caplog, monkeypatch):
    monkeypatch.setattr("barnabas.spark_connector.monitoring.query_view.PATIENCE_MS", 200)
    with Broker() as gone:
        servers = gone.bootstrap_servers
    chosen = SinkOptions.parse({"kafka.bootstrap.servers": servers, "sinkId": "gone"})
    note_batch("q", chosen)
    note_batch("q", chosen, Measured(0, 1.5, 2.5))
    with monitored(broker) as monitor:
        monitor.offer(Started("q", "r", "lost"))
        wait_until(monitor.queries)
        wait_until(lambda: caplog.messages)
        refreshed_at_s = monitor._refreshed_at_s["q"]
        wait_until(lambda: monitor._refreshed_at_s["q"] > refreshed_at_s + 0.5)
        assert (only(monitor).transaction_age_ms, only(monitor).lag) == (None, None)
    (line,) = caplog.messages
    assert line.startswith("metrics are not known query=lost reason=")


def test_failures_of_the_users_function_and_of_events_end_nothing(broker, tmp_path, caplog):
    def fail(_batch):
        raise ValueError("the user's")

    with monitored(broker, fail) as monitor:
        monitor.offer(Progressed("not JSON"))
        query = Query(broker, monitor, "single", tmp_path)
        for batch in range(2):
            query.run_batch()
            until_counted(monitor, batch + 1)
        query.end()
    assert sorted(caplog.messages) == [
        "an event of a query was dropped",
        "on_batch failed",
    ]


def test_events_beyond_the_limit_are_dropped_without_waiting(broker, caplog, monkeypatch):
    monkeypatch.setattr(query_monitor, "EVENTS_MAX", 3)
    with monitored(broker, refresh_s=60.0) as monitor:
        for number in range(5):  # Nothing here waits, so that no other thread of the World runs.
            monitor.offer(Started(f"q{number}", "r", None))
        assert monitor._events.qsize() == 3
        wait_until(lambda: len(monitor._watched) == 3)
        monitor.stop()
        monitor.offer(Started("late", "r", None))
        assert monitor._events.qsize() <= 1
    (line,) = caplog.messages
    assert line.startswith("events of queries were dropped")


def test_the_number_of_queries_has_a_limit(broker, monkeypatch):
    monkeypatch.setattr(query_monitor, "QUERIES_MAX", 3)
    monkeypatch.setattr(driver_sinks, "QUERIES_MAX", 3)
    with monitored(broker) as monitor:
        for number in range(3):
            monitor.offer(Started(f"q{number}", "r", None))
        monitor.offer(Ended("q1", "r"))
        monitor.offer(Started("q3", "r", None))
        wait_until(lambda: list(monitor._watched) == ["q0", "q2", "q3"])
        monitor.offer(Started("q4", "r", None))
        wait_until(lambda: list(monitor._watched) == ["q2", "q3", "q4"])
    for number in range(5):
        note_batch(f"q{number}", SinkOptions("localhost:9", "sink"), Measured(number, 1, 1))
    assert [sink_of_query(f"q{number}") is None for number in range(5)] == [True] * 2 + [False] * 3
