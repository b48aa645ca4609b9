"""The tables: ratios are held against their targets, a busy client is marked."""

from tests.bench import report
from tests.bench.load import Measurement
from tests.bench.rows import ACL_ROWS, ROWS, TLS_ROWS
from tests.bench.run import Results
from tests.bench.spark_job import SparkMeasurement
from tests.bench.spark_rows import SPARK_ROWS

ROW = ROWS[0]
OURS = Measurement(1500.0, 0.001, 0.002, 0.00005, 0.2)
THEIRS = Measurement(1000.0, 0.002, 0.004, 0.00008, 0.6)


def results():
    return Results(
        rows={("barnabas", ROW.key): OURS, ("kafka", ROW.key): THEIRS},
        start_up_s={"barnabas": 0.2, "kafka": 2.0},
        idle_bytes={"barnabas": 50_000_000, "kafka": 200_000_000},
        loaded_bytes={"barnabas": 60_000_000, "kafka": 900_000_000},
    )


def cells(lines):
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_ratios_and_verdicts():
    rows = cells(report.ratio_table(results(), ROWS))[2:]
    assert rows == [
        [ROW.title, "rate", "1.50", ">= 1.5", "met"],
        [ROW.title, "broker CPU", "0.62", "<= 0.5", "missed"],
        ["start-up", "time", "0.10", "<= 0.15", "met"],
        ["idle memory", "bytes", "0.25", "<= 0.2", "missed"],
    ]


def test_a_busy_client_is_marked():
    ours, theirs = cells(report.measured_table(results(), ROWS, ["barnabas", "kafka"]))[2:]
    assert ours == [ROW.title, "Barnabas", "1,500", "1.00", "2.00", "50", "0.20"]
    assert theirs[-1] == "0.60 client-bound"


TRIGGER, SINK, SINGLE = (
    next(row for row in SPARK_ROWS if row.key == key)
    for key in ("spark-trigger-stateful", "spark-sink-stock", "spark-sink-single")
)
SPARK = {
    ("barnabas", TRIGGER.key): SparkMeasurement(2.5, 0.4, 0.5, 0.01, 24),
    ("kafka", TRIGGER.key): SparkMeasurement(1.25, 0.8, 1.6, 0.02, 24),
    ("barnabas", SINK.key): SparkMeasurement(200_000.0, 1.25, 1.5, 0.5, 5, 4e-6),
    ("barnabas", SINGLE.key): SparkMeasurement(50_000.0, 5.0, 5.5, 0.7, 5, 4.2e-6),
}


def test_a_query_is_held_against_the_same_query_on_kafka():
    rows = cells(report.ratio_table(Results(spark=SPARK), [], SPARK_ROWS))[2:]
    assert rows == [[TRIGGER.title, "p50", "0.50", "<= 0.5", "met"]]


def test_a_sink_is_held_against_the_stock_sink_on_the_same_broker():
    rows = cells(report.versus_table(Results(spark=SPARK), SPARK_ROWS, ["barnabas", "kafka"]))[2:]
    assert rows == [
        [SINGLE.title, SINK.title, "rate", "Barnabas", "0.25", ">= 0.3", "missed"],
        [SINGLE.title, SINK.title, "CPU of a row", "Barnabas", "1.05", "<= 1.1", "met"],
    ]


def test_one_row_trigger_is_compared_in_milliseconds():
    spark = {
        ("barnabas", "spark-row-two-phase"): SparkMeasurement(3.0, 0.3, 0.4, 0.1, 5),
        ("barnabas", "spark-row-format"): SparkMeasurement(2.7, 0.37, 0.4, 0.1, 5),
    }
    rows = cells(report.versus_table(Results(spark=spark), SPARK_ROWS, ["barnabas"]))[2:]
    assert [row[2:] for row in rows] == [
        ["rate", "Barnabas", "0.90", "", ""],
        ["p50", "Barnabas", "+70 ms", "<= +60 ms", "missed"],
    ]


def test_read_is_compared_by_rate():
    spark = {
        ("barnabas", "spark-read"): SparkMeasurement(500.0, 2.0, 2.0, 0.1, 5),
        ("kafka", "spark-read"): SparkMeasurement(250.0, 4.0, 4.0, 0.1, 5),
    }
    rows = cells(report.ratio_table(Results(spark=spark), [], SPARK_ROWS))[2:]
    assert [row[1:] for row in rows] == [["rate", "2.00", ">= 1.5", "met"]]


def test_a_transaction_is_held_against_plain_writes():
    measured = {
        ("barnabas", "transaction-1000"): OURS,
        ("barnabas", "plain-1000"): OURS._replace(rate=1600.0),
        ("barnabas", "plain-waiting"): OURS._replace(rate=3000.0),
        ("kafka", "transaction-1000"): THEIRS,
        ("kafka", "plain-1000"): THEIRS._replace(rate=4000.0),
    }
    rows = cells(report.versus_table(Results(rows=measured), ROWS, ["barnabas", "kafka"]))[2:]
    assert [row[2:] for row in rows] == [
        ["rate", "Barnabas", "0.94", ">= 0.9", "met"],
        ["rate", "Apache Kafka", "0.25", "", ""],
        ["rate", "Barnabas", "0.50", "", ""],
    ]


def test_every_row_that_another_is_held_against_exists():
    rows = (*ROWS, *TLS_ROWS, *ACL_ROWS, *SPARK_ROWS)
    keys = [row.key for row in rows]
    assert len(set(keys)) == len(keys)
    compared = {versus.key for row in rows for versus in row.versus}
    assert compared <= set(keys)


def test_rows_with_a_latency_alone_have_no_rate():
    rows = cells(report.spark_table(Results(spark=SPARK), SPARK_ROWS, ["barnabas", "kafka"]))[2:]
    assert rows[:2] == [
        [TRIGGER.title, "Barnabas", "", "400.0", "500.0", "10.0", "", "24"],
        [TRIGGER.title, "Apache Kafka", "", "800.0", "1,600.0", "20.0", "", "24"],
    ]
    assert rows[2][2:4] == ["200,000", "1,250.0"]


def test_the_page_holds_all_of_it():
    page = report.page([("date", "today")], results(), ROWS, SPARK_ROWS, ["barnabas", "kafka"])
    assert "| date | today |" in page
    assert "| Apache Kafka | 2,000       | 200            | 900" in page
