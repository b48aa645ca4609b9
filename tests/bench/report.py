"""Tables: what was measured, and how it compares with the targets."""

from collections.abc import Iterable, Sequence

from tests.bench.load import Measurement
from tests.bench.rows import IDLE_MEMORY_TARGET, START_UP_TARGET, Row
from tests.bench.run import Results

CLIENT_BOUND_SHARE = 0.5
TITLES = {"barnabas": "Barnabas", "kafka": "Apache Kafka"}


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
    ]
    return table([head, *lines])


def ratio_table(results: Results, rows: Sequence[Row]) -> list[str]:
    """Return a Markdown table of the ratios Barnabas / Apache Kafka and their targets."""
    lines: list[tuple[str, ...]] = [("row", "ratio of", "Barnabas / Kafka", "target", "")]
    for row in rows:
        ours = results.rows.get(("barnabas", row.key))
        theirs = results.rows.get(("kafka", row.key))
        if ours is not None and theirs is not None:
            lines += _row_ratios(row, ours, theirs)
    if {"barnabas", "kafka"} <= results.start_up_s.keys():
        ours_s, theirs_s = results.start_up_s["barnabas"], results.start_up_s["kafka"]
        lines.append(_at_most("start-up", "time", ours_s / theirs_s, START_UP_TARGET))
        memory = results.idle_bytes["barnabas"] / results.idle_bytes["kafka"]
        lines.append(_at_most("idle memory", "bytes", memory, IDLE_MEMORY_TARGET))
    return table(lines)


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
    facts: Sequence[tuple[str, str]], results: Results, rows: Sequence[Row], names: Sequence[str]
) -> str:
    """Return the whole of docs/benchmarks.md."""
    return "\n".join(
        [
            "# Benchmarks",
            "",
            "Written by `make bench`. Both brokers run on this machine, in the same run, in turn,",
            "with the same bytes from the same client (raw sockets, batches encoded beforehand,",
            "acks=all, five requests in flight on each connection, which has its own partition;",
            "a rebalance is timed whole). Barnabas syncs to disk before each answer; Apache Kafka",
            "as it comes answers from the page cache. Numbers are medians of the rounds.",
            'A row is marked "client-bound" where the load client took more than half a core.',
            "",
            *table([("", ""), *facts]),
            "",
            "## Ratios",
            "",
            *ratio_table(results, rows),
            "",
            "## Measured",
            "",
            *measured_table(results, rows, names),
            "",
            *process_table(results, names),
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


def _at_least(title: str, of: str, ratio: float, target: float) -> tuple[str, ...]:
    return (title, of, f"{ratio:.2f}", f">= {target}", "met" if ratio >= target else "missed")


def _at_most(title: str, of: str, ratio: float, target: float) -> tuple[str, ...]:
    return (title, of, f"{ratio:.2f}", f"<= {target}", "met" if ratio <= target else "missed")
