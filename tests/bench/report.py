"""Tables: what was measured, and how it compares with the targets."""

from collections.abc import Iterable, Sequence
from itertools import product

from tests.bench.load import Measurement
from tests.bench.rows import IDLE_MEMORY_TARGET, START_UP_TARGET, Row, Versus
from tests.bench.run import Results
from tests.bench.spark_rows import SparkRow
from tests.bench.starts import StartRow

CLIENT_BOUND_SHARE = 0.5
TITLES = {"barnabas": "Barnabas", "objects": "Barnabas, objects", "kafka": "Apache Kafka"}
_METHOD = """\
Written by `make bench`. Both brokers run on this machine, in the same run, in turn,
with the same bytes from the same client. It uses raw sockets, batches encoded beforehand,
acks=all, and five requests in flight on each connection, which has its own partition.
A rebalance is timed whole. Barnabas syncs to disk before each response; Apache Kafka with
its defaults responds from the page cache. Numbers are medians of the rounds.
Where much is written, free memory is touched before each measurement: on a virtual machine
the first write to a page may wait for the host, and which broker meets such pages is chance.
Barnabas is compiled as in the image, and runs on the distribution's own Python if that
is new enough and has its headers, else on the one of the checkout
(`make bench BENCH_PYTHON=...` chooses another).
A row is marked "client-bound" where the load client took more than half a core.

Plain writes beside transactions of the same size: like Java's, the plain idempotent producer
sends its next 1,000 records while the last ones are on their way. A transaction waits for
its records, then for its end, before the next one starts. The plain row with one request in
flight waits for its records too: compared with it, a transaction shows the cost of its end.

The row with ACLs is measured on brokers with 1,000 of them, and on brokers without any in the same
rounds; the client's rights are in ACLs with a prefix.

Each of Spark's rows has a Spark of its own, `local[2]`, beside the brokers, which take turns in
it; a first turn of each is not counted. A trigger is `triggerExecution` of an idle query over 4
partitions, stock source and sink, that gets one record. In real-time mode the time is from the
sending of a record to its arrival at a reader of the output. A sink's time is that of a
micro-batch: 250,000 generated rows with a key and a value of 100 bytes, into 4 partitions; or one
row, which the stock source reads for an idle query. Spark and sinks are as `barnabas.spark run`
starts them, and the broker offers two-phase commit. `format` is the sink `format("barnabas")`. A
read is of a topic of a million records of 180 bytes as a table, with the defaults of `Source`. "All
CPU" is that of Spark's JVM, its Python processes and the broker.

Starts and stops with much on the disk are Barnabas' alone, each on a directory of its own. A start
ends when transactional ids are served, so with all coordinators' records read; the stop is the
one after the recovery, which has every partition's indexes and producers to write.
"""


def measured_table(results: Results, rows: Sequence[Row], names: Sequence[str]) -> list[str]:
    """Return a Markdown table with one line per row and broker."""
    lines: list[tuple[str, ...]] = [
        ("row", "broker", "requests/s", "p50 ms", "p99 ms", "broker CPU us", "client CPU share"),
    ]
    for row in rows:
        for name in names:
            measured = results.rows.get((name, row.key))
            if measured is not None:
                lines.append((row.title, TITLES[name], *_cells(measured)))
    return table(lines)


def process_table(results: Results, names: Sequence[str]) -> list[str]:
    """Return a Markdown table of start-up and memory."""
    head = ("broker", "start-up ms", "idle memory MB", "memory after the load MB")
    lines = [
        (
            TITLES[name],
            f"{results.start_up_s[name] * 1000:,.0f}",
            f"{results.idle_bytes[name] / 1e6:,.0f}",
            f"{results.loaded_bytes[name] / 1e6:,.0f}",
        )
        for name in names
        if name in results.start_up_s
    ]
    return table([head, *lines])


def start_table(results: Results, rows: Sequence[StartRow]) -> list[str]:
    """Return a Markdown table of starts and stops with much on the disk, and their targets."""
    head = ("Barnabas with", "of", "seconds", "target", "")
    lines: list[tuple[str, ...]] = [head]
    for row in rows:
        measured = results.starts.get(row.key)
        if measured is None:
            continue
        recovery = f"{measured.recovery_s:.2f}", "", ""
        memory = f"memory, {measured.resident_bytes / 1e6:,.0f} MB", "", "", ""
        lines += [
            (row.title, "start", *_seconds(measured.start_s, row.start_s)),
            (row.title, "stop", *_seconds(measured.stop_s, row.stop_s)),
            (row.title, "start after kill -9", *recovery),
            (row.title, *memory),
        ]
    return table(lines)


def spark_table(results: Results, rows: Sequence[SparkRow], names: Sequence[str]) -> list[str]:
    """Return a Markdown table with one line per row that Spark runs and broker."""
    head = (
        *("row", "broker", "rows/s", "p50 ms", "p95 ms"),
        *("broker CPU ms", "all CPU us/row", "samples"),
    )
    lines = [
        (
            row.title,
            TITLES[name],
            "" if row.is_about_time else f"{measured.rate:,.0f}",
            f"{measured.p50_s * 1000:,.1f}",
            f"{measured.p95_s * 1000:,.1f}",
            f"{measured.broker_cpu_s * 1000:,.1f}",
            "" if measured.row_cpu_s is None else f"{measured.row_cpu_s * 1e6:.1f}",
            str(measured.samples),
        )
        for row in rows
        for name in names
        if (measured := results.spark.get((name, row.key))) is not None
    ]
    return table([head, *lines])


def ratio_table(
    results: Results, rows: Sequence[Row], spark_rows: Sequence[SparkRow] = ()
) -> list[str]:
    """Return a Markdown table of the ratios Barnabas / Apache Kafka and their targets."""
    lines: list[tuple[str, ...]] = [("row", "ratio of", "Barnabas / Kafka", "target", "")]
    for row in rows:
        ours = results.rows.get(("barnabas", row.key))
        theirs = results.rows.get(("kafka", row.key))
        if ours is not None and theirs is not None:
            lines += _row_ratios(row, ours, theirs)
    for spark_row in spark_rows:
        lines += _spark_ratios(results, spark_row)
    if {"barnabas", "kafka"} <= results.start_up_s.keys():
        ours_s, theirs_s = results.start_up_s["barnabas"], results.start_up_s["kafka"]
        lines.append(_at_most("start-up", "time", ours_s / theirs_s, START_UP_TARGET))
        memory = results.idle_bytes["barnabas"] / results.idle_bytes["kafka"]
        lines.append(_at_most("idle memory", "bytes", memory, IDLE_MEMORY_TARGET))
    return table(lines)


def versus_table(
    results: Results, rows: Sequence[Row | SparkRow], names: Sequence[str]
) -> list[str]:
    """Return a Markdown table of rows held against other rows on the same broker."""
    titles = {row.key: row.title for row in rows}
    rates = {key: measured.rate for key, measured in results.rows.items()}
    rates |= {key: measured.rate for key, measured in results.spark.items()}
    lines: list[tuple[str, ...]] = [("row", "against", "of", "broker", "ratio", "target", "")]
    for row in rows:
        for versus, name in product(row.versus, names):
            ours, other = rates.get((name, row.key)), rates.get((name, versus.key))
            if ours is None or other is None:
                continue
            head = row.title, titles[versus.key]
            # Barnabas has promises to keep; Apache Kafka's ratio is for orientation.
            target = versus.rate if name == "barnabas" else 0.0
            lines.append(
                (*head, "rate", TITLES[name], *_at_least("", "", ours / other, target)[2:])
            )
            lines += _spark_versus(results, (row.key, versus), head, name)
    return table(lines)


def _spark_versus(
    results: Results, of: tuple[str, Versus], head: tuple[str, str], name: str
) -> list[tuple[str, ...]]:
    """Return the lines about CPU time and latency of a row that Spark runs."""
    key, versus = of
    ours, other = results.spark.get((name, key)), results.spark.get((name, versus.key))
    if ours is None or other is None:
        return []
    lines = []
    if versus.cpu and ours.row_cpu_s is not None and other.row_cpu_s is not None:
        cells = _at_most("", "", ours.row_cpu_s / other.row_cpu_s, versus.cpu)[2:]
        lines.append((*head, "CPU of a row", TITLES[name], *cells))
    if versus.slower_ms:
        more_ms = (ours.p50_s - other.p50_s) * 1000
        is_met = "met" if more_ms <= versus.slower_ms else "missed"
        cells = f"{more_ms:+.0f} ms", f"<= +{versus.slower_ms:.0f} ms", is_met
        lines.append((*head, "p50", TITLES[name], *cells))
    return lines


def table(lines: Iterable[tuple[str, ...]]) -> list[str]:
    """Return a Markdown table whose columns are aligned; the first line is its head."""
    rows = list(lines)
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    texts = [
        "| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    return [texts[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *texts[1:]]


def page(
    facts: Sequence[tuple[str, str]],
    results: Results,
    rows: Sequence[Row],
    spark_rows: Sequence[SparkRow],
    names: Sequence[str],
    starts: Sequence[StartRow] = (),
) -> str:
    """Return the whole of docs/benchmarks.md."""
    return "\n".join(
        [
            "# Benchmarks",
            "",
            *_METHOD.split("\n"),
            *table([("", ""), *facts]),
            "",
            "## Ratios",
            "",
            *ratio_table(results, rows, spark_rows),
            "",
            "## On the same broker",
            "",
            *versus_table(results, [*rows, *spark_rows], names),
            "",
            "## Measured",
            "",
            *measured_table(results, rows, names),
            "",
            *spark_table(results, spark_rows, names),
            "",
            *process_table(results, names),
            "",
            *start_table(results, starts),
            "",
        ]
    )


def _cells(measured: Measurement) -> tuple[str, ...]:
    bound = " client-bound" if measured.client_share > CLIENT_BOUND_SHARE else ""
    return (
        f"{measured.rate:,.0f}",
        f"{measured.p50_s * 1000:.2f}",
        f"{measured.p99_s * 1000:.2f}",
        f"{measured.broker_cpu_s * 1e6:,.0f}",
        f"{measured.client_share:.2f}{bound}",
    )


def _row_ratios(row: Row, ours: Measurement, theirs: Measurement) -> list[tuple[str, ...]]:
    lines = []
    targets = row.targets
    if targets.rate is not None:
        lines.append(_at_least(row.title, "rate", ours.rate / theirs.rate, targets.rate))
    if targets.cpu is not None:
        cpu = ours.broker_cpu_s / theirs.broker_cpu_s if theirs.broker_cpu_s else 0.0
        lines.append(_at_most(row.title, "broker CPU", cpu, targets.cpu))
    if targets.p99 is not None:
        lines.append(_at_most(row.title, "p99", ours.p99_s / theirs.p99_s, targets.p99))
    return lines


def _spark_ratios(results: Results, row: SparkRow) -> list[tuple[str, ...]]:
    ours = results.spark.get(("barnabas", row.key))
    theirs = results.spark.get(("kafka", row.key))
    if ours is None or theirs is None:
        return []
    lines = []
    if row.p50 is not None:
        lines.append(_at_most(row.title, "p50", ours.p50_s / theirs.p50_s, row.p50))
    if row.rate is not None:
        lines.append(_at_least(row.title, "rate", ours.rate / theirs.rate, row.rate))
    return lines


def _seconds(taken_s: float, target_s: float | None) -> tuple[str, str, str]:
    if target_s is None:
        return f"{taken_s:.2f}", "", ""
    return f"{taken_s:.2f}", f"<= {target_s}", "met" if taken_s <= target_s else "missed"


def _at_least(title: str, of: str, ratio: float, target: float) -> tuple[str, ...]:
    if not target:
        return (title, of, f"{ratio:.2f}", "", "")
    return (title, of, f"{ratio:.2f}", f">= {target}", "met" if ratio >= target else "missed")


def _at_most(title: str, of: str, ratio: float, target: float) -> tuple[str, ...]:
    return (title, of, f"{ratio:.2f}", f"<= {target}", "met" if ratio <= target else "missed")
