"""One line for each batch that has ended, from what Spark reports."""

import json

import pytest

from barnabas.spark_connector.progress import BatchWatch, batch_progress, lag_of


def report(batch, *, rows=100, ran=True, at="2026-11-21T18:00:00.000Z"):
    return {
        "batchId": batch,
        "timestamp": at,
        "numInputRows": rows,
        "processedRowsPerSecond": 1234.5,
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


def test_the_line_for_a_person_and_for_a_program():
    batch = batch_progress("ledger", report(7, rows=12_345))
    assert batch.as_text() == (
        "ledger: batch 7, 12,345 rows, 1,234 rows/s, lag 12, no transaction open,"
        " last commit 2026-11-21T18:00:02Z"
    )
    assert json.loads(batch.as_json()) == {
        "pipeline": "ledger",
        "batch": 7,
        "rows": 12_345,
        "rows_per_s": 1234.5,
        "duration_ms": 2500,
        "lag": 12,
        "committed_at": "2026-11-21T18:00:02Z",
        "transaction_age_ms": None,
    }


def test_every_batch_is_reported_once():
    query = FakeQuery()
    watch = BatchWatch("a", query)
    assert list(watch.ended()) == []
    query.reports += [report(0), report(1), report(2, ran=False, rows=0)]
    assert [each.batch for each in watch.ended()] == [0, 1]
    asked = query.asked
    assert list(watch.ended()) == []
    assert query.asked == asked  # Nothing new: the long list is left alone.
    query.reports += [report(2), report(3, ran=False, rows=0)]
    assert [each.batch for each in watch.ended()] == [2]


def test_a_query_that_goes_on_begins_with_any_batch():
    query = FakeQuery()
    query.reports = [report(41)]
    assert [each.batch for each in BatchWatch("a", query).ended()] == [41]


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
    ],
)
def test_lag(sources, lag):
    assert lag_of(sources) == lag
