"""One line for each batch that has ended, from what Spark reports."""

import json

import pytest

from barnabas.spark_connector.monitoring.progress import (
    BatchWatch,
    Facts,
    batch_progress,
    lag_of,
    topics_without_ends,
)
from tests.checkout import ROOT


def report(batch, *, rows=100, ran=True, at="2026-11-21T18:00:00.000Z"):
    return {
        "id": "query",
        "batchId": batch,
        "timestamp": at,
        "numInputRows": rows,
        "processedRowsPerSecond": 1234.5,
        "stateOperators": [],
        "sink": {"description": "ForeachBatchSink", "numOutputRows": -1},
        "durationMs": {"triggerExecution": 2500, **({"addBatch": 2000} if ran else {})},
        "sources": [
            {
                "endOffset": json.dumps({"in": {"0": 10, "1": 20}}),
                "latestOffset": {"in": {"0": 15, "1": 20, "2": 7}},
            }
        ],
    }


class FakeQuery:
    def __init__(self):
        self.reports = []
        self.asked = 0

    @property
    def lastProgress(self):  # noqa: N802
        return self.reports[-1] if self.reports else None

    @property
    def recentProgress(self):  # noqa: N802
        self.asked += 1
        return self.reports[-100:]


# As docs/spark.md has it.
LINE = (
    "ledger: batch 4, 200,000 rows, 91,241 rows/s, 100,000 scanned, lag 1,204,"
    " no transaction open, last commit 2026-11-21T18:00:02Z"
)


def test_the_line_for_a_person():
    found = report(4, rows=100_000)
    found["durationMs"]["triggerExecution"] = 2192
    found["sources"][0]["latestOffset"]["in"]["2"] = 1199
    assert batch_progress("ledger", found, Facts(200_000, transaction_age_ms=0)).as_text() == LINE
    assert LINE in (ROOT / "docs" / "spark.md").read_text()


def test_the_line_for_a_program():
    batch = batch_progress("ledger", report(7, rows=12_345), Facts(30_000, None, 1500, 12.5, 3.5))
    assert json.loads(batch.as_json()) == {
        "pipeline": "ledger",
        "batch": 7,
        "rows": 30_000,
        "rows_per_s": 12_000.0,
        "scanned_rows": 12_345,
        "scanned_rows_per_s": 1234.5,
        "duration_ms": 2500,
        "lag": 12,
        "watermark": None,
        "state_rows": None,
        "late_rows": None,
        "committed_at": "2026-11-21T18:00:02Z",
        "transaction_age_ms": 1500,
        "decide_ms": 12.5,
        "commit_ms": 3.5,
    }
    assert ", transaction open 1.5 s, " in batch.as_text()


def test_state_and_watermark_are_in_the_line_where_the_query_has_them():
    found = report(7)
    found["eventTime"] = {"watermark": "2026-11-21T17:00:00.000Z", "max": "x"}
    batch = batch_progress("ledger", found)
    assert ", watermark 2026-11-21T17:00:00.000Z, open transactions unknown, " in batch.as_text()
    operator = {"numRowsTotal": 1000, "numRowsDroppedByWatermark": 2}
    found["stateOperators"] = [operator, {**operator, "numRowsTotal": 234}]
    batch = batch_progress("ledger", found)
    assert ", watermark 2026-11-21T17:00:00.000Z, 1,234 rows of state, 4 late, " in batch.as_text()
    assert (batch.watermark, batch.state_rows, batch.late_rows) == (
        "2026-11-21T17:00:00.000Z",
        1234,
        4,
    )


@pytest.mark.parametrize(
    ("reported", "known", "rows", "says"),
    [
        pytest.param(-1, 50, 50, "50 rows, 20 rows/s, 100 scanned", id="the sink's own count"),
        pytest.param(70, 50, 50, "50 rows, 20 rows/s, 100 scanned", id="which is the right one"),
        pytest.param(70, None, 70, "70 rows, 28 rows/s, 100 scanned", id="Spark's own sink"),
        pytest.param(0, None, 0, "0 rows, 0 rows/s, 100 scanned", id="a batch without a result"),
        pytest.param(-1, None, None, "rows unknown, 100 scanned", id="nobody knows"),
    ],
)
def test_rows_are_those_of_the_result(reported, known, rows, says):
    found = report(7)
    found["sink"]["numOutputRows"] = reported
    batch = batch_progress("ledger", found, Facts(rows=known))
    assert batch.rows == rows
    assert f": batch 7, {says}, lag" in batch.as_text()


def test_every_batch_is_reported_once():
    query = FakeQuery()
    watch = BatchWatch(query)
    assert list(watch.ended()) == []
    query.reports += [report(0), report(1), report(2, ran=False, rows=0)]
    assert [each["batchId"] for each in watch.ended()] == [0, 1]
    asked = query.asked
    assert list(watch.ended()) == []
    assert query.asked == asked  # Nothing new: the long list is left alone.
    query.reports += [report(2), report(3, ran=False, rows=0)]
    assert [each["batchId"] for each in watch.ended()] == [2]


def test_resumed_query_begins_with_any_batch():
    query = FakeQuery()
    query.reports = [report(41)]
    assert [each["batchId"] for each in BatchWatch(query).ended()] == [41]


@pytest.mark.parametrize(
    ("sources", "lag"),
    [
        ([], None),
        ([{"endOffset": "12", "latestOffset": None}], None),
        ([{"endOffset": None, "latestOffset": {"a": {"0": 5}}}], None),
        ([{"endOffset": {"a": {"0": 9}}, "latestOffset": {"a": {"0": 5}}}], 0),
        (
            [
                {"endOffset": {"a": {"0": 1}}, "latestOffset": {"a": {"0": 5}}},
                {"endOffset": {"b": {"0": 1}}, "latestOffset": {"b": {"0": 3}}},
                {"endOffset": 5, "latestOffset": 7},
            ],
            6,
        ),
        pytest.param(
            [
                {"endOffset": {"a": {"0": 3}}, "latestOffset": {"a": {"0": 5}}},
                {"endOffset": {"a": {"0": 1}}, "latestOffset": {"a": {"0": 5}}},
            ],
            4,
            id="a topic that is read twice",
        ),
        pytest.param(
            [
                {"endOffset": {"a": {"0": 1}}, "latestOffset": {"a": {"0": 5}}},
                {"endOffset": {"b": {"0": 1}}, "latestOffset": None},
            ],
            None,
            id="an end that nobody knows",
        ),
    ],
)
def test_lag(sources, lag):
    assert lag_of(sources) == lag


def test_the_lag_of_a_batch_that_spark_repeats_is_known_from_the_brokers():
    found = report(7)
    assert topics_without_ends(found) == []
    found["sources"] = [
        {"endOffset": {"a": {"0": 1, "1": 2}}, "latestOffset": None},
        {"endOffset": {"b": {"0": 9}}, "latestOffset": {"b": {"0": 10}}},
        {"endOffset": 7, "latestOffset": None},
    ]
    assert topics_without_ends(found) == ["a"]
    ends = {("a", 0): 5, ("a", 1): 2, ("a", 2): 6}
    assert batch_progress("ledger", found, Facts(ends=ends)).lag == 4 + 0 + 6 + 1
    assert batch_progress("ledger", found, Facts(ends={("a", 0): 5})).lag is None
    assert "lag unknown" in batch_progress("ledger", found).as_text()
