"""The tables: ratios are held against their targets, a busy client is marked."""

from tests.bench import report
from tests.bench.load import Measurement
from tests.bench.rows import ROWS
from tests.bench.run import Results

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


def test_the_page_holds_all_of_it():
    page = report.page([("date", "today")], results(), ROWS, ["barnabas", "kafka"])
    assert "| date | today |" in page
    assert "| Apache Kafka | 2,000       | 200            | 900" in page
