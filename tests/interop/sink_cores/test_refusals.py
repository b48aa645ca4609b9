"""Which queries a Spark sink refuses, and what it knows of the broker."""

from __future__ import annotations

import pytest

from spark_connector.errors import CheckpointMismatch, WrongOption
from spark_connector.two_phase import Decider
from tests.interop.administration import create
from tests.interop.sink_cores.faults import PINNING
from tests.interop.spark_sink import (
    PARTITIONS,
    PLACES,
    check_all_is_settled,
    expected,
    options,
    read,
    restart_after_crash,
)

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


def test_one_sink_goes_on_where_the_other_stopped(any_broker, sink, monkeypatch, start):
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
        assert decider.pins == (any_broker.overrides == PINNING)


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
