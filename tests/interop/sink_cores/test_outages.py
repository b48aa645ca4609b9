"""The cores of the Spark sinks where the broker is killed, stays away, changes or forgets."""

from __future__ import annotations

import contextlib
import time

import pytest

from barnabas.protocol.messages.list_transactions import LIST_TRANSACTIONS, ListTransactionsRequest
from barnabas.spark_connector.cluster.cluster import connected
from barnabas.spark_connector.cluster.requests import take_over
from barnabas.spark_connector.errors import Fenced, TransactionLost
from barnabas.spark_connector.ledger.ledger import Ledger
from barnabas.spark_connector.sinks.two_phase import Decider
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.interop.administration import create
from tests.interop.sink_cores.faults import CLASSIC, PINNING
from tests.interop.spark_sink import (
    PARTITIONS,
    Crash,
    check_all_is_settled,
    crash_at,
    expected,
    open_transactions,
    options,
    read,
    restart_after_crash,
    rows,
)
from tests.products import case
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(280)


def test_decided_batch_survives_an_outage_longer_than_the_timeout(
    killed_broker, topic, monkeypatch, start
):
    create(killed_broker.bootstrap_servers, topic, partitions=PARTITIONS)
    query = start("two-phase", options(killed_broker, topic))
    query.run(0)
    query.stop()
    timeout_ms = 2000
    query.options = options(killed_broker, topic, transactionTimeoutMs=str(timeout_ms))
    in_time(lambda: restart_after_crash(monkeypatch, query, "C4-after", 1))
    not_pinned = in_time(lambda: one_task(query)).transactional_id
    killed_broker.kill()
    time.sleep(timeout_ms / 1000 * 1.5)
    killed_broker.restart()
    wait_until(lambda: not_pinned not in open_transactions(query.options), "timed out")
    assert len(open_transactions(query.options)) == PARTITIONS
    query.options = options(killed_broker, topic)
    query.run(1)
    assert read(killed_broker, topic, 2) == expected(2)
    check_all_is_settled(killed_broker, query, 2)


def one_task(query):
    task = query.participant(2, 9)
    task.write([rows(query.options.topic, 2, 0)])
    return task.prepared()


def in_time(run):
    """Return the result of a batch that ran before its transactions timed out.

    A busy machine may need longer than that for the tasks: then the batch is only run again.
    """
    for _ in range(19):
        with contextlib.suppress(TransactionLost, Fenced):
            return run()
    return run()


@pytest.mark.parametrize(
    ("kind", "places"),
    [
        case("single", ["P1-middle", "P1-before-end"], in_test=False),
        case("two-phase", ["W1-middle", "C1", "C3", "C4-after"], in_test=True),
    ],
    ids=["single", "two-phase"],
)
def test_a_broker_that_is_killed_in_the_middle_of_a_batch(
    killed_broker, topic, monkeypatch, kind, places, start
):
    create(killed_broker.bootstrap_servers, topic, partitions=PARTITIONS)
    query = start(kind, options(killed_broker, topic))
    for batch_id, place in enumerate(places):

        def kill(here, place=place):
            if here == place:
                monkeypatch.undo()
                killed_broker.kill()
                killed_broker.restart()

        if place in {"C1", "C2-middle", "P1-fenced"}:
            query.stop()
        for module in (
            *("ledger.ownership", "ledger.roll_forward"),
            *("sinks.single", "sinks.two_phase"),
        ):
            monkeypatch.setattr(f"barnabas.spark_connector.{module}.reach", kill)
        query.run(batch_id)
    check_all_is_settled(killed_broker, query, len(places))


def test_leftovers_of_a_crash_ahead_of_the_decision_are_swept_at_the_start(
    killed_broker, topic, monkeypatch, start
):
    create(killed_broker.bootstrap_servers, topic, partitions=PARTITIONS)
    query = start("two-phase", options(killed_broker, topic))
    restart_after_crash(monkeypatch, query, "C3", 0)
    assert len(open_transactions(query.options)) == PARTITIONS
    decider = Decider(query.options, "query", query.connected())
    assert decider.pins
    assert decider.recover() == -1
    assert open_transactions(query.options) == []
    crash_at(monkeypatch, "C1")
    with pytest.raises(Crash):
        decider.recover()
    monkeypatch.undo()
    query.run(0)
    check_all_is_settled(killed_broker, query, 1)


@pytest.mark.parametrize(
    ("place", "late"),
    [("C4-after", slice(1, 2)), ("C5-after", slice(None))],
    ids=["decided", "committed"],
)
def test_a_request_to_pin_that_arrives_late_loses_and_repeats_nothing(
    killed_broker, topic, monkeypatch, start, place, late
):
    create(killed_broker.bootstrap_servers, topic, partitions=PARTITIONS)
    query = start("two-phase", options(killed_broker, topic))
    restart_after_crash(monkeypatch, query, place, 0)
    with query.connected() as cluster:
        entry = Ledger(cluster, query.options.ledger_topic).read(query.options.sink_id, "query")
        take_over(cluster, [each.transactional_id for each in entry.transactions[late]], 60_000)
    query.run(1)
    check_all_is_settled(killed_broker, query, 2)


@pytest.mark.parametrize(
    ("before", "after"),
    [case(CLASSIC, PINNING, in_test=True), case(PINNING, CLASSIC, in_test=False)],
    ids=["upgrade", "downgrade"],
)
def test_a_batch_is_not_repeated_when_the_transaction_version_changes(
    tmp_path, topic, monkeypatch, start, before, after
):
    with BarnabasProcess(tmp_path, **before) as broker:
        create(broker.bootstrap_servers, "source", partitions=1)
        create(broker.bootstrap_servers, topic, partitions=PARTITIONS)
        query = start("two-phase", options(broker, topic))
        restart_after_crash(monkeypatch, query, "C5-after", 0)
        restart_with(broker, **after)
        query.run(1)
        check_all_is_settled(broker, query, 2)


def test_the_single_sink_sweeps_what_the_two_phase_sink_has_left(
    killed_broker, topic, monkeypatch, start
):
    create(killed_broker.bootstrap_servers, topic, partitions=PARTITIONS)
    query = start("two-phase", options(killed_broker, topic))
    restart_after_crash(monkeypatch, query, "C3", 0)
    query.kind = "single"
    query.run(0)
    check_all_is_settled(killed_broker, query, 1)


FORGETFUL = {
    "barnabas.transactional.id.expiration.prefixes": "spark.:1",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "100",
}


@pytest.mark.parametrize("kind", [case("single", in_test=True), case("data-source", in_test=False)])
def test_driver_continues_after_its_transactional_id_expired(
    killed_broker, topic, monkeypatch, start, kind
):
    monkeypatch.setattr("barnabas.spark_connector.ledger.ownership.IDLE_S", 0.0)
    create(killed_broker.bootstrap_servers, topic, partitions=PARTITIONS)
    query = start(kind, options(killed_broker, topic))
    query.run(0)
    restart_with(killed_broker, **PINNING, **FORGETFUL)
    wait_until(lambda: not transactional_ids(killed_broker), "the ids are forgotten")
    restart_with(killed_broker, **PINNING)
    query.run(1)
    check_all_is_settled(killed_broker, query, 2)


def restart_with(broker, **overrides):
    broker.kill()
    broker.overrides = overrides
    broker.restart()


def transactional_ids(broker):
    with connected(options(broker, "any")) as cluster:
        connection = cluster.any_node()
        return connection.ask(LIST_TRANSACTIONS, ListTransactionsRequest()).transaction_states


def test_transactions_that_time_out_are_never_decided(killed_broker, topic, start):
    create(killed_broker.bootstrap_servers, topic, partitions=PARTITIONS)
    query = start("data-source", options(killed_broker, topic, transactionTimeoutMs="1000"))
    messages = in_time(lambda: query.run_tasks(0))
    wait_until(lambda: not open_transactions(query.options), "timed out")
    decider = Decider(query.options, None, query.connected())
    with pytest.raises(TransactionLost, match="transactionTimeoutMs"):
        decider.commit(0, messages)
    decider.abort(0, messages)
    query.options = options(killed_broker, topic)
    query.run(0)
    check_all_is_settled(killed_broker, query, 1)
