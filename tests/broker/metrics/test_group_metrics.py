"""Lag and members, as a dashboard for groups wants them."""

from __future__ import annotations

import pytest

from barnabas.protocol.messages.delete_topics import DELETE_TOPICS, DeleteTopicsRequest
from barnabas.testing import Broker
from tests.broker.metrics.committing import commit
from tests.broker.metrics.scrape import scrape
from tests.broker.metrics.test_broker_metrics import WireClient, batch, produce


@pytest.fixture
def broker():
    with Broker() as running:
        running.create_topic("t", 2)
        for partition in (0, 0, 0, 1):
            assert produce(running, "t", memoryview(batch()), partition) == 0
        yield running


def lag(seen, partition, group="g"):
    return seen("kafka_consumergroup_lag", consumergroup=group, topic="t", partition=partition)


def test_lag_of_a_group_without_members(broker):
    commit(broker, "g", "t", {0: 1, 1: 1})
    seen = scrape(broker)
    assert [lag(seen, 0), lag(seen, 1)] == [2, 0]
    assert seen("kafka_consumergroup_lag_sum", consumergroup="g", topic="t") == 2
    labels = {"consumergroup": "g", "topic": "t"}
    assert seen("kafka_consumergroup_current_offset", **labels, partition=0) == 1
    assert seen("kafka_consumergroup_current_offset_sum", **labels) == 2
    assert seen("kafka_consumergroup_members", consumergroup="g") == 0
    assert seen("barnabas_groups", state="Empty") == 1


def test_a_commit_beyond_the_end_is_no_negative_lag(broker):
    commit(broker, "g", "t", {0: 100})
    assert lag(scrape(broker), 0) == 0


def test_offsets_of_a_deleted_topic_are_not_shown(broker):
    commit(broker, "g", "t", {0: 1})
    with WireClient(broker.address) as client:
        client.ask(DELETE_TOPICS, DeleteTopicsRequest(topic_names=["t"], timeout_ms=5000), 5)
    broker.create_topic("t", 1)
    seen = scrape(broker)
    assert not any(name == "kafka_consumergroup_lag" for name, _ in seen.samples)


def test_sums_stay_when_partitions_are_switched_off():
    with Broker(config={"barnabas.metrics.partitions": "false"}) as broker:
        broker.create_topic("t")
        produce(broker, "t", memoryview(batch()))
        commit(broker, "g", "t", {0: 0})
        seen = scrape(broker)
    assert seen("kafka_consumergroup_lag_sum", consumergroup="g", topic="t") == 1
    assert "kafka_consumergroup_lag" not in seen.names


def test_after_a_restart(broker):
    commit(broker, "g", "t", {0: 2})
    broker.restart()
    assert lag(scrape(broker), 0) == 1
