"""Queries to brokers about the batches of a running pipeline."""

import pytest

from barnabas.protocol.records import Record, encode_batch
from barnabas.spark_connector import Pipeline, Sink, Source
from barnabas.spark_connector.ledger.driver_sinks import note_batch, sink_of_query
from barnabas.spark_connector.ledger.measured import Measured
from barnabas.spark_connector.monitoring.progress import NOTHING_KNOWN, Facts
from barnabas.spark_connector.rows.encoded import EncodedBatch
from barnabas.spark_connector.running import broker_view
from barnabas.spark_connector.running.broker_view import BrokerView
from barnabas.spark_connector.sinks import kept_decider, starting
from barnabas.storage.runtime.chance import random_bytes
from barnabas.testing import Broker
from tests.broker.producers import Producer
from tests.spark_connector.checkpointed import KINDS, Driver, SparkCheckpoint, options

TWO_PHASE = {"transaction.two.phase.commit.enable": "true"}


@pytest.fixture(scope="module")
def broker():
    with Broker(config=TWO_PHASE) as running:
        for topic in ("in", "out"):
            running.create_topic(topic, 2)
        yield running


@pytest.fixture
def _kept():
    """Close the connections that a worker of the data source keeps."""
    yield
    for module in (kept_decider, starting):
        while module._kept:
            kept = module._kept.pop()
            (kept.decider if module is kept_decider else kept.cluster).close()


def view_of(broker, sink_id="age", *, source=None, **sink):
    servers = broker.bootstrap_servers
    source = source or Source(topic="in", servers=servers)
    settings = {"topic": "out", "options": {"ledgerTopic": "ledger"}} | sink
    return BrokerView(
        Pipeline(source=source, sink=Sink(sink_id=sink_id, servers=servers, **settings))
    )


def report(batch=0, query="query", ends=None):
    sources = [{"endOffset": ends, "latestOffset": None}] if ends else []
    return {"id": query, "batchId": batch, "sources": sources}


# -------------------------------------------------------------------------------------------- rows


class Rows(Driver):
    """Writes three records in batch 0, six in batch 1, three more in each batch."""

    def _rows(self, batch_id):
        count = 3 * (batch_id + 1)
        records = [Record(each, 1, None, b"x") for each in range(count)]
        return [EncodedBatch("out", 0, count, bytearray(encode_batch(records)))]


@pytest.mark.usefixtures("_kept")
@pytest.mark.parametrize("kind", KINDS)
def test_the_rows_of_a_batch_are_those_that_were_decided(broker, tmp_path, kind):
    sink_id = f"rows-{kind}"
    files = SparkCheckpoint(tmp_path / random_bytes(4).hex())
    driver = Rows(kind, options(broker, sink_id, files), files)
    with view_of(broker, sink_id) as view:
        assert view.facts(report(0, files.query_id)).rows is None
        for batch in range(3):
            driver.run_batch()
            # At once: the transaction's marker may not be written yet.
            assert view.facts(report(batch, files.query_id)).rows == 3 * (batch + 1)
        rows = [view.facts(report(batch, files.query_id)).rows for batch in range(4)]
        assert rows == [3, 6, 9, None]
        assert view.facts(report(1, "another query")).rows is None
    driver.close()


def test_durations_of_a_batch_are_those_that_the_sink_has_measured(broker, tmp_path):
    files = SparkCheckpoint(tmp_path / "checkpoint")
    note_batch("durations", options(broker, "durations", files))
    with view_of(broker, "durations") as view:
        assert view.facts(report(0, "durations")).decide_ms is None
    note_batch("durations", sink_of_query("durations").options, Measured(0, 12.5, 3.5))
    with view_of(broker, "durations") as view:
        facts = view.facts(report(0, "durations"))
        assert (facts.decide_ms, facts.commit_ms) == (12.5, 3.5)
        assert view.facts(report(1, "durations")).commit_ms is None


def test_a_sink_of_sparks_has_no_ledger(broker):
    with view_of(broker, "rows-single", kind="stock", options={}) as view:
        assert view.facts(report()) == Facts(transaction_age_ms=0)


# -------------------------------------------------------------------------------------------- ends


def test_where_the_source_ends_for_readers_of_committed_records(broker):
    broker.create_topic("ends", 2)
    producer = Producer(broker, "ends")
    producer.send("ends", *"xyz", partition=1)
    found = report(ends={"ends": {"0": 0, "1": 0}})
    with view_of(broker) as view:
        assert view.facts(found).ends == {("ends", 0): 0, ("ends", 1): 0}
        assert view.facts(report(ends={"nowhere": {"0": 0}})).ends is None
        # With a function for a source it is the sink's cluster, or what an option says.
        with view_of(broker, source=lambda spark: spark) as other:
            assert other.facts(found).ends == view.facts(found).ends
        nowhere = {"sourceServers": "127.0.0.1:1", "ledgerTopic": "ledger"}
        with view_of(broker, source=lambda spark: spark, options=nowhere) as other:
            assert other._source.servers == "127.0.0.1:1"
        producer.commit()
        assert view.facts(found).ends == {("ends", 0): 0, ("ends", 1): 4}
    producer.close()


def test_where_the_source_ends_for_readers_of_everything(broker):
    servers = broker.bootstrap_servers
    broker.create_topic("all", 1)
    producer = Producer(broker, "all")
    producer.send("all", "x")
    source = Source(
        topic="all", servers=servers, options={"kafka.isolation.level": "read_uncommitted"}
    )
    with view_of(broker, source=source, kind="stock", options={}) as view:
        assert view.facts(report(ends={"all": {"0": 0}})).ends == {("all", 0): 1}
    producer.close()


# --------------------------------------------------------------------------- transactions, limits


def test_the_age_of_the_oldest_transaction_of_a_sink(broker):
    view = view_of(broker)
    assert view.facts(report()).transaction_age_ms == 0
    producers = {}
    for name in ("spark.age", "spark.age.7.0.1.abc", "spark.agent", "other"):
        producers[name] = Producer(broker, name)
        producers[name].send("out", "x")
    age = view.facts(report()).transaction_age_ms
    assert age is not None
    assert age > 0
    producers["spark.age"].commit()
    assert view.facts(report()).transaction_age_ms
    producers["spark.age.7.0.1.abc"].abort()
    assert view.facts(report()).transaction_age_ms == 0
    for producer in producers.values():
        producer.close()
    view.close()


def test_failed_query_of_the_broker_stops_nothing_and_is_retried_later(monkeypatch):
    monkeypatch.setattr(broker_view, "PATIENCE_MS", 1000)
    with Broker() as gone:
        view = view_of(gone)
    asked = []
    monkeypatch.setattr(view, "_rows", _noting(asked, view._rows))
    monkeypatch.setattr(view, "_oldest_transaction_ms", _noting(asked, lambda: None))
    assert view.facts(report(ends={"in": {"0": 0}})) == NOTHING_KNOWN
    assert len(asked) == 1
    monkeypatch.setattr(view, "_next_request_at_s", 0.0)
    assert view.facts(report()) == NOTHING_KNOWN
    assert len(asked) == 2
    view.close()


def _noting(asked, question):
    def ask(*arguments):
        asked.append(arguments)
        return question(*arguments)

    return ask


def test_which_topic_of_a_pipeline_is_not_there(broker):
    servers = broker.bootstrap_servers
    with view_of(broker) as view:
        assert view.missing_topic() is None
    with view_of(broker, source=Source(topic=["in", "gone"], servers=servers)) as view:
        assert view.missing_topic() == (
            f"the topic gone, which the pipeline reads, does not exist any more at {servers}"
        )
    with view_of(broker, topic="away", kind="stock", options={}) as view:
        assert "the topic away, which the pipeline writes, does not exist" in view.missing_topic()
