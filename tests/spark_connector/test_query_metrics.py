"""Totals of a query: counted by the numbers of its batches."""

from __future__ import annotations

from barnabas.spark_connector.ledger.entries import HISTORY_MAX, NO_ENTRY
from barnabas.spark_connector.ledger.measured import Measured
from barnabas.spark_connector.monitoring.query_metrics import QueryTotals


def entry(last, count=lambda batch: 10 * (batch + 1)):
    found = NO_ENTRY
    for batch in range(last + 1):
        found = found.followed_by(
            batch, f"f{batch}", (), is_pinned=False, record_count=count(batch)
        )
    return found


def counted(totals):
    return totals.metrics.rows_decided, totals.metrics.batches_decided


def test_batches_count_from_the_first_finished_one_on():
    totals = QueryTotals("id", "name")
    totals.count([entry(5)])
    totals.add_durations([Measured(5, 1, 1)])
    assert (counted(totals), totals.metrics.measured_batches) == ((0, 0), 0)
    totals.finish(5, 20)
    totals.count([entry(5)])
    assert counted(totals) == (60, 1)
    assert (totals.metrics.sink_ms, totals.metrics.sink_total_ms) == (20, 20)
    totals.finish(5, 30)  # Another report of the same batch.
    totals.count([entry(5)])
    assert (counted(totals), totals.metrics.reported_batches) == ((60, 1), 1)
    totals.finish(6, 40)
    assert (totals.metrics.sink_ms, totals.metrics.sink_total_ms) == (40, 60)


def test_lost_reports_and_unreadable_ledgers_lose_no_records():
    totals = QueryTotals("id", "name")
    totals.finish(0, 20)
    totals.count([])
    assert counted(totals) == (0, 0)
    totals.finish(4, 20)
    totals.count([entry(3)])  # The ledger was read before batch 4 was decided.
    assert counted(totals) == (0, 0)
    totals.count([entry(3), entry(4)])
    assert counted(totals) == (10 + 20 + 30 + 40 + 50, 5)


def test_a_long_gap_counts_what_the_ledger_still_has():
    totals = QueryTotals("id", "name")
    totals.finish(0, 20)
    last = 3 * HISTORY_MAX
    totals.finish(last, 20)
    totals.count([entry(last, lambda _batch: 1)])
    assert counted(totals) == (HISTORY_MAX + 1, last + 1)


def test_durations_add_up_once_for_each_batch():
    totals = QueryTotals("id", "name")
    totals.finish(3, 20)
    totals.add_durations([Measured(2, 100, 100), Measured(3, 1.5, 2)])
    totals.add_durations([Measured(3, 1.5, 2), Measured(5, 4, 8), Measured(4, 2, 4)])
    metrics = totals.metrics
    assert (metrics.decide_total_ms, metrics.commit_total_ms) == (7.5, 14)
    assert (metrics.measured_batches, metrics.measured_batch) == (3, 5)
    assert (metrics.decide_ms, metrics.commit_ms) == (4, 8)
