"""Exactly-once pipelines, found from the offsets that transactions commit."""

from __future__ import annotations

from barnabas.broker.coordination import pipelines as module
from barnabas.broker.coordination.pipelines import Pipelines
from barnabas.coordinator.transactions.state import State, Transaction
from barnabas.testing import Broker
from tests.broker.console.asking import HTTP, fetch
from tests.broker.producers import Producer, write


def test_pipeline_lists_input_and_output_topics():
    with Broker(config=HTTP) as broker:
        broker.create_topic("orders", partitions=1)
        broker.create_topic("invoices", partitions=1)
        write(broker, "orders", 5)
        with Producer(broker, "invoicing-1") as producer:
            for offset, end in ((1, producer.commit), (2, producer.abort), (2, producer.commit)):
                producer.send("invoices", "x")
                producer.send_offsets("invoicing", {("orders", 0): offset})
                end()
        (row,) = fetch(broker, "pipelines")["items"]
        assert (row["group"], row["transactional_id"]) == ("invoicing", "invoicing-1")
        assert (row["inputs"], row["outputs"]) == (["orders"], ["invoices"])
        assert (row["commits"], row["aborts"]) == (2, 1)
        assert (row["lag"], row["lag_readable"]) == (3, 3)
        assert row["last_took_ms"] <= row["last_commit_ms"]
        assert fetch(broker, "pipelines", filter="other")["items"] == []


def test_everything_has_a_limit():
    found = Pipelines()
    for number in range(3 * module.PIPELINES_MOST):
        found.reads(f"group-{number}", f"id-{number}")
    assert len(found.all()) == module.PIPELINES_MOST
    for number in range(3 * module.IDS_MOST):
        found.reads("wide", f"wide-{number}")
    (wide,) = [each for each in found.all() if each.group == "wide"]
    assert len(wide.ids) == module.IDS_MOST
    found.reads("x" * (module.NAME_MOST + 1), "long")
    assert len(found.all()) == module.PIPELINES_MOST


def test_ids_that_are_here_no_more_are_forgotten_and_pipelines_with_them():
    found = Pipelines()
    for group, key in (("one", "a"), ("one", "b"), ("two", "c"), ("three", "d"), ("four", "d")):
        found.reads(group, key)
    assert [each.group for each in found.all()] == ["one", "two", "three", "four"]
    found.forget({"a", "c"}.__contains__)
    assert [(each.group, [*each.ids]) for each in found.all()] == [("one", ["b"]), ("four", ["d"])]
    assert [found.of_id(key) is None for key in "abcd"] == [True, False, True, False]
    found.reads("one", "a")
    found.forget(lambda _key: True)
    assert found.all() == []


def test_rates_are_of_whole_spans():
    found = Pipelines()
    found.reads("g", "id")
    for number in range(60):
        now_ms = 1_000_000 + number * 1000
        partitions = frozenset({("out", 0)})
        found.decided(
            Transaction("id", 1, 0, 1, State.PREPARE_COMMIT, partitions, now_ms - 7, now_ms)
        )
    (pipeline,) = found.all()
    assert pipeline.commits_per_s(1_060_000) == 1.0
    assert pipeline.commits_per_s(2_000_000) == 0.0
    assert (pipeline.took, list(pipeline.outputs)) == (7, ["out"])
