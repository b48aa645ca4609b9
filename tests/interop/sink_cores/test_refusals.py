"""The queries that a Spark sink refuses, and its knowledge of the broker."""

from __future__ import annotations

import pytest

from barnabas.spark_connector.cluster.requests import end_all
from barnabas.spark_connector.errors import CheckpointMismatch, Recreated, WrongOption
from barnabas.spark_connector.ledger.ledger import Ledger
from barnabas.spark_connector.ledger.sweep import describe
from barnabas.spark_connector.sinks.two_phase import Decider
from barnabas.testing import Broker
from tests.interop.administration import admin, create
from tests.interop.spark_sink import (
    PARTITIONS,
    PLACES,
    check_all_is_settled,
    expected,
    options,
    read,
    restart_after_crash,
)
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(280)


def test_another_query_is_refused_and_what_was_decided_stays(
    any_broker, sink, monkeypatch, topic, start
):
    query = start("two-phase", sink)
    restart_after_crash(monkeypatch, query, "C4-after", 0)
    other = start("single", sink, "another checkpoint")
    with pytest.raises(CheckpointMismatch, match="newQuery"):
        other.run(0)
    with pytest.raises(CheckpointMismatch, match="newQuery"):
        start("data-source", sink, "yet another checkpoint").run(0)
    check_all_is_settled(any_broker, query, 1)
    other.options = options(any_broker, topic, newQuery="true")
    other.run(0)
    assert read(any_broker, topic, 2) == expected(1) + expected(1)


def test_another_query_does_not_end_the_one_that_runs(any_broker, sink, start):
    query = start("two-phase", sink)
    query.run(0)
    for kind in PLACES:
        with pytest.raises(CheckpointMismatch, match="newQuery"):
            start(kind, sink, f"another checkpoint, {kind}").run(0)
    query.run(2)
    check_all_is_settled(any_broker, query, 3)


@pytest.mark.parametrize("decides", [True, False], ids=["decides", "never-decides"])
def test_a_query_whose_first_decision_is_on_its_way_is_refused_only_without_it(
    any_broker, sink, monkeypatch, topic, start, decides
):
    """The driver dies with its ledger entry written; the broker ends that a moment later."""
    start("two-phase", sink).run(0)
    query = start("single", options(any_broker, topic, newQuery="true"), "another checkpoint")
    restart_after_crash(monkeypatch, query, "P1-before-end", 0)
    glimpse = Ledger.glimpse
    seen = []

    def glimpse_too_early(ledger, sink_id):
        seen.append(glimpse(ledger, sink_id))
        with query.connected() as cluster:
            end_all(cluster, describe(cluster, [sink.transactional_id]), commit=decides)
        return seen[-1]

    monkeypatch.setattr(Ledger, "glimpse", glimpse_too_early)
    query.options = sink  # A query is a new one once.
    if decides:
        query.run(0)
    else:
        with pytest.raises(CheckpointMismatch, match="newQuery"):
            query.run(0)
    ((decided, undecided),) = seen
    assert (decided.keys(), undecided) == ({"query"}, {"another checkpoint"})
    assert read(any_broker, topic, 1 + decides) == expected(1) + expected(int(decides))
    assert query.finished == (0 if decides else -1)


@pytest.mark.parametrize("kind", PLACES)
def test_an_output_topic_that_was_made_again_is_refused_by_its_id(any_broker, sink, start, kind):
    query = start(kind, sink)
    query.run(1)
    with query.connected() as cluster:
        before = cluster.home([sink.topic])
        entry = Ledger(cluster, sink.ledger_topic).read(sink.sink_id, "query")
    assert entry.incarnation.source == before._replace(topics=cluster_ids(query, "source"))
    assert entry.incarnation.sink.topics == cluster_ids(query, sink.topic, sink.ledger_topic)
    client = admin(any_broker.bootstrap_servers)
    client.delete_topics([sink.topic])[sink.topic].result(60)
    wait_until(lambda: not cluster_ids(query, sink.topic), "deleted")
    create(any_broker.bootstrap_servers, sink.topic, partitions=PARTITIONS)
    # Apache Kafka answers before every part of it knows of the topic.
    wait_until(lambda: cluster_ids(query, sink.topic), "made again")
    (now,) = cluster_ids(query, sink.topic).values()
    with pytest.raises(Recreated, match=f"{before.topics[sink.topic]} and has {now},"):
        query.run(2)


def cluster_ids(query, *topics):
    with query.connected() as cluster:
        return cluster.home(topics).topics


def test_one_sink_resumes_where_the_other_stopped(any_broker, sink, monkeypatch, start):
    query = start("two-phase", sink)
    restart_after_crash(monkeypatch, query, "C4-after", 2)
    query.kind = "single"
    restart_after_crash(monkeypatch, query, "P1-after-end", 4)
    query.kind = "data-source"
    query.run(5)
    check_all_is_settled(any_broker, query, 6)


def test_whether_transactions_can_be_pinned_is_known(any_broker, sink, start):
    with Decider(sink, "query", start("two-phase", sink).connected()) as decider:
        decider.recover()
        assert decider.pins == isinstance(any_broker, Broker)


def test_a_ledger_that_forgets_is_refused(any_broker, topic, start):
    create(any_broker.bootstrap_servers, topic, partitions=1)
    chosen = options(any_broker, topic, ledgerTopic=topic)
    with pytest.raises(WrongOption, match=r"cleanup\.policy=delete"):
        start("single", chosen).run(0)


def test_a_timeout_that_is_too_long_is_refused(any_broker, topic, start):
    create(any_broker.bootstrap_servers, topic, partitions=PARTITIONS)
    chosen = options(any_broker, topic, transactionTimeoutMs="900001")
    with pytest.raises(WrongOption, match=r"transaction\.max\.timeout\.ms"):
        start("single", chosen).run(0)
