"""Queries to a broker before a pipeline starts."""

import pytest

from barnabas.broker.security.acls.operations import Operation
from barnabas.broker.testing.embedded import KAFKA_3_9, Broker
from barnabas.spark_connector import Pipeline, Sink, Source
from barnabas.spark_connector.errors import (
    BrokerTooOld,
    BrokerUnreachable,
    NotAllowed,
    TopicMissing,
)
from barnabas.spark_connector.pipelines.preflight import check_brokers
from tests.broker.security.changing_rights import TOPIC, controlled_broker, right
from tests.worlds import world

__all__ = ["world"]

TWO_PHASE = {"transaction.two.phase.commit.enable": "true"}


@pytest.fixture(scope="module")
def broker():
    with Broker(config=TWO_PHASE) as running:
        running.create_topic("in")
        running.create_topic("out")
        yield running


def pipeline(broker, *, source="in", sink="out", kind="auto"):
    servers = broker.bootstrap_servers
    return Pipeline(
        source=Source(topic=source, servers=servers),
        sink=Sink(sink_id="a", topic=sink, servers=servers, kind=kind),
    )


@pytest.mark.parametrize("kind", ["two_phase", "single_transaction", "stock"])
def test_a_kind_that_was_chosen_stays(broker, kind):
    assert check_brokers(pipeline(broker, kind=kind)) == kind


def test_two_phase_where_the_broker_offers_it(broker):
    assert check_brokers(pipeline(broker)) == "two_phase"


def test_a_single_transaction_elsewhere():
    with Broker() as plain:
        plain.create_topic("in")
        plain.create_topic("out")
        assert check_brokers(pipeline(plain)) == "single_transaction"


def test_topics_that_are_not_there(broker):
    with pytest.raises(TopicMissing, match=r"reads the topic nowhere, .*topics create nowhere"):
        check_brokers(pipeline(broker, source=["in", "nowhere"]))
    with pytest.raises(TopicMissing, match="writes the topic nowhere"):
        check_brokers(pipeline(broker, sink="nowhere"))


def test_topics_that_may_not_be_seen():
    may_describe = right(Operation.DESCRIBE, TOPIC, "in"), right(Operation.DESCRIBE, TOPIC, "out")
    with controlled_broker(*may_describe, **TWO_PHASE) as (controlled, rights):
        for name in ("in", "out"):
            controlled.create_topic(name)
        assert check_brokers(pipeline(controlled)) == "two_phase"
        for lost, name in zip(may_describe, ("in", "out"), strict=True):
            rights.take(lost)
            with pytest.raises(
                NotAllowed, match=rf"does not let this client see {name}: not allow"
            ):
                check_brokers(pipeline(controlled))
            rights.give(lost)


def test_a_broker_that_is_too_old():
    with Broker(max_versions={**KAFKA_3_9, "TxnOffsetCommit": 2}) as old:
        old.create_topic("in")
        old.create_topic("out")
        with pytest.raises(BrokerTooOld, match=r"Kafka 2\.5 or newer"):
            check_brokers(pipeline(old))
        assert check_brokers(pipeline(old, kind="stock")) == "stock"


def test_a_broker_that_is_not_there(monkeypatch):
    monkeypatch.setattr("barnabas.spark_connector.pipelines.preflight.TIMEOUT_MS", 100)
    with Broker() as gone:
        nobody = pipeline(gone)
    with pytest.raises(BrokerUnreachable, match="check that the broker is running"):
        check_brokers(nobody)
