"""Transactions that a Spark sink spares or settles: other drivers' work, and its own in doubt."""

from __future__ import annotations

import pytest

from barnabas.spark_connector.cluster.producer import TransactionalProducer
from barnabas.spark_connector.cluster.requests import Identity, end_all
from barnabas.spark_connector.errors import CheckpointMismatch, Fenced, InDoubt, TransactionLost
from barnabas.spark_connector.ledger.sweep import describe
from barnabas.spark_connector.sinks.single import SingleTransactionSink
from barnabas.spark_connector.sinks.two_phase import Decider
from tests.interop.administration import create
from tests.interop.sink_cores.faults import lose_decision
from tests.interop.spark_sink import (
    PARTITIONS,
    Crash,
    check_all_is_settled,
    crash_at,
    ends,
    open_transactions,
    options,
    restart_after_crash,
    rows,
)
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(280)


def test_an_abort_that_does_not_know_its_query_spares_what_is_decided(
    any_broker, sink, monkeypatch, start
):
    query = start("two-phase", sink)
    restart_after_crash(monkeypatch, query, "C5-middle", 0)
    Decider(sink, None, query.connected()).abort(1, [None, None])
    query.run(0)
    check_all_is_settled(any_broker, query, 1)


def test_an_overtaken_driver_spares_what_the_new_one_has_open(any_broker, sink, monkeypatch, start):
    old, new = start("two-phase", sink), start("two-phase", sink)
    first, second = (Decider(sink, "query", each.connected()) for each in (old, new))
    first.recover()
    messages = old.run_tasks(0)
    later = []

    def overtake(here):
        if here == "C5-middle":
            monkeypatch.undo()
            second.recover()
            later.extend(new.run_tasks(1))

    monkeypatch.setattr("barnabas.spark_connector.ledger.roll_forward.reach", overtake)
    assert first.commit(0, messages, "ends of 0", {("source", 0): 1})
    assert second.commit(1, later, "ends of 1", {("source", 0): 2})
    check_all_is_settled(any_broker, new, 2)


def test_a_sweep_that_is_overtaken_spares_what_was_decided_since(
    any_broker, sink, monkeypatch, start
):
    query = start("data-source", sink)
    messages = query.run_tasks(0)

    def overtake(cluster, transactional_ids):
        monkeypatch.undo()
        crash_at(monkeypatch, "C5-middle")
        with pytest.raises(Crash):
            Decider(sink, None, query.connected()).commit(0, messages, "ends of 0", {})
        return describe(cluster, transactional_ids)

    monkeypatch.setattr("barnabas.spark_connector.ledger.sweep.describe", overtake)
    assert Decider(sink, "query", query.connected()).recover() == -1
    monkeypatch.undo()
    query.run(1)
    check_all_is_settled(any_broker, query, 2)


def test_failed_task_blocks_no_reader(any_broker, sink, start):
    task = start("two-phase", sink).participant(0, 0)
    task.write([rows(sink.topic, 0, 0)])
    assert task.prepared().record_count
    assert len(open_transactions(sink)) == 1
    task.discard()
    assert open_transactions(sink) == []


def test_batch_that_fails_before_its_decision_blocks_no_reader(any_broker, topic, start):
    create(any_broker.bootstrap_servers, topic, partitions=PARTITIONS)
    sink = options(any_broker, topic, transactionTimeoutMs="600000")  # longer than we wait
    query = start("single", sink)
    query.run(0)
    _, before = ends(sink, sink.topic, 0)

    def failing():
        # The second one lets the first go: a request has one batch of a partition.
        yield from [rows(sink.topic, 1, 0)] * 2
        raise ValueError("the rows end here")

    failed = SingleTransactionSink(sink, "query", query.connected())
    with pytest.raises(ValueError, match="end here"):
        failed.write_batch(1, failing(), "ends of 1", {})

    def is_settled():
        stable, high = ends(sink, sink.topic, 0)
        return stable == high > before

    wait_until(is_settled, "readers wait for what has failed")
    query.stop()
    query.run(1)
    check_all_is_settled(any_broker, query, 2)


@pytest.mark.parametrize("arrives", [False, True], ids=["lost", "arrived"])
@pytest.mark.parametrize("kind", ["single", "two-phase"])
def test_a_decision_without_an_answer_is_not_taken_for_one(
    any_broker, sink, monkeypatch, kind, arrives, start
):
    query = start(kind, sink)
    query.run(0)
    with monkeypatch.context() as patch:
        lose_decision(patch, arrives=arrives)
        with pytest.raises(InDoubt, match="nothing is lost or doubled"):
            query.run(1)
    query.run(1)
    check_all_is_settled(any_broker, query, 2)


@pytest.mark.parametrize("kind", ["single", "two-phase"])
def test_a_decision_without_an_answer_is_not_made_twice(any_broker, sink, monkeypatch, kind, start):
    query = start(kind, sink)
    if kind == "single":
        driver, method = SingleTransactionSink(sink, "query", query.connected()), "write_batch"
        batch = [rows(sink.topic, 0, partition) for partition in range(PARTITIONS)]
    else:
        driver, method = Decider(sink, "query", query.connected()), "commit"
        batch = query.run_tasks(0)
    decision = (0, batch, "ends of 0", {("source", 0): 1})
    with monkeypatch.context() as patch:
        lose_decision(patch, arrives=True)
        with pytest.raises(InDoubt):
            getattr(driver, method)(*decision)
    assert not getattr(driver, method)(*decision)
    check_all_is_settled(any_broker, query, 1)


def test_batch_partly_lost_before_its_decision_blocks_no_reader(any_broker, sink, start):
    query = start("two-phase", sink)
    decider = Decider(sink, "query", query.connected())
    decider.recover()
    messages = query.run_tasks(0)
    with query.connected() as cluster:
        (message, *_) = messages
        identity = Identity(message.producer_id, message.epoch)
        end_all(cluster, {message.transactional_id: identity}, commit=False)
    with pytest.raises(TransactionLost, match="1 of its 2"):
        decider.commit(0, messages, "ends of 0", {("source", 0): 1})
    assert open_transactions(sink) == []
    query.run(0)
    check_all_is_settled(any_broker, query, 1)


def test_fenced_decider_spares_open_transactions_of_the_new_one(any_broker, sink, start):
    old, new = start("two-phase", sink), start("two-phase", sink)
    first, second = (Decider(sink, "query", each.connected()) for each in (old, new))
    first.recover()
    second.recover()
    messages = new.run_tasks(0)
    for _ in range(2):
        with pytest.raises(Fenced):
            first.commit(0, [], "ends of 0", {})
    first.abort(0, [])
    assert second.commit(0, messages, "ends of 0", {("source", 0): 1})
    check_all_is_settled(any_broker, new, 1)


def test_fenced_decider_spares_transactions_that_another_decider_received(
    any_broker, sink, monkeypatch, start
):
    query = start("data-source", sink)
    decision = (0, query.run_tasks(0), "ends of 0", {("source", 0): 1})
    first, second = (Decider(sink, None, query.connected()) for _ in range(2))

    def overtake(here):
        if here == "C3":
            monkeypatch.undo()
            crash_at(monkeypatch, "C5-middle")
            with pytest.raises(Crash):
                second.commit(*decision)

    monkeypatch.setattr("barnabas.spark_connector.sinks.two_phase.reach", overtake)
    with pytest.raises(Fenced):
        first.commit(*decision)
    query.run(0)
    check_all_is_settled(any_broker, query, 1)


def test_batch_decided_just_before_the_fence_is_known(any_broker, sink, monkeypatch, start):
    old, new = start("single", sink), start("single", sink)
    old.run(0)
    new.finished = 0
    begin = TransactionalProducer.begin

    def overtaken(producer):
        monkeypatch.undo()
        old.run(1)
        return begin(producer)

    monkeypatch.setattr(TransactionalProducer, "begin", overtaken)
    new.run(1)
    check_all_is_settled(any_broker, new, 2)


def test_a_decided_batch_that_ends_elsewhere_is_refused(any_broker, sink, start):
    query = start("single", sink)
    query.run(0)
    again = [rows(sink.topic, 0, 0)]
    with SingleTransactionSink(sink, "query", query.connected()) as driver:
        with pytest.raises(CheckpointMismatch, match="ends at other offsets"):
            driver.write_batch(0, again, "another")
        assert not driver.write_batch(0, again, "ends of 0")
    with Decider(sink, "query", query.connected()) as decider:
        with pytest.raises(CheckpointMismatch, match="ends at other offsets"):
            decider.is_decided(0, "another")
        assert decider.is_decided(0, "ends of 0")
    check_all_is_settled(any_broker, query, 1)
