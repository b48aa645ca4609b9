"""Tables: what was measured on the clusters, and how it compares with the targets."""

from __future__ import annotations

from collections.abc import Sequence

from tests.bench.cluster.rows import Row
from tests.bench.cluster.run import Measured, Results
from tests.bench.report import TITLES, table

_METHOD = """\
Written by `make bench-cluster`. Three brokers of each kind run on this machine, in the same run,
and take turns with the same bytes from the same client. Barnabas' three keep everything in a
PostgreSQL whose synchronous standby confirms each commit; Apache Kafka's three nodes are brokers
and controllers, keep three copies of everything, and acknowledge (acks=all) what two have in their
page cache. All of it, and the client, shares the cores: with a machine for each broker
both would be quicker, and what each pays here for the CPU of its others is in every number.
Numbers are medians of the rounds.

"Barnabas, objects": three brokers over a pair of their own whose large flushes go into an object
store, versitygw over a directory of this machine. It does not sync its files before it responds,
nor does Apache Kafka. The store is PostgreSQL with its standby, and here versitygw, too.

A producer of transactions speaks KIP-890's protocol, one transaction after the other, one record in
each partition. The records for several brokers leave at once; EndTxn follows their answers.
"Inside one broker": the coordinator leads the partitions, too. "Again" is how often a transaction
got CONCURRENT_TRANSACTIONS; the client retries after 20 ms, as Java's does.

"Behind connections of 1 MB": another process produces to the same broker, two requests under way on
each connection, in batches of 9,000 records.

Takeover: from `kill -9` of one broker until its partitions take records elsewhere. Both
wait for silence first, as they come: Barnabas for a lease of 10 s, Apache Kafka for a
session of 9 s.
"""


def page(
    facts: Sequence[tuple[str, str]], results: Results, rows: Sequence[Row], names: Sequence[str]
) -> str:
    """Return the whole of docs/benchmarks-cluster.md."""
    return "\n".join(
        [
            "# Benchmarks of a cluster",
            "",
            *_METHOD.split("\n"),
            *table([("", ""), *facts]),
            "",
            "## Targets",
            "",
            *target_table(results, rows),
            "",
            "## Measured",
            "",
            *measured_table(results, rows, names),
            "",
            *process_table(results, names),
            "",
        ]
    )


def target_table(results: Results, rows: Sequence[Row]) -> list[str]:
    """Return the targets, and whether they are met."""
    lines: list[tuple[str, ...]] = [("row", "of", "Barnabas", "Kafka", "target", "")]
    for row in rows:
        ours = results.rows.get(("barnabas", row.key))
        theirs = results.rows.get(("kafka", row.key))
        if ours is not None and row.p50_s is not None:
            lines.append(
                (
                    row.title,
                    "p50 ms",
                    _ms(ours.p50_s),
                    _ms(theirs.p50_s) if theirs is not None else "",
                    f"<= {row.p50_s * 1000:.0f}",
                    _verdict(is_met=ours.p50_s <= row.p50_s),
                )
            )
        if ours is not None and theirs is not None and row.rate is not None:
            lines.append(
                (
                    row.title,
                    "rate",
                    f"{ours.rate:,.0f}",
                    f"{theirs.rate:,.0f}",
                    f">= {row.rate:.0f} times",
                    f"{ours.rate / theirs.rate:.2f}, "
                    + _verdict(is_met=ours.rate >= row.rate * theirs.rate),
                )
            )
        on_objects = results.rows.get(("objects", row.key))
        if on_objects is not None and theirs is not None and row.for_each_cpu_second is not None:
            lines.append(_cpu_line(row, on_objects, theirs, row.for_each_cpu_second))
    return table(lines)


def _cpu_line(row: Row, on_objects: Measured, theirs: Measured, minimum: float) -> tuple[str, ...]:
    ours, kafkas = on_objects.megabytes_for_each_cpu_second, theirs.megabytes_for_each_cpu_second
    return (
        f"{row.title}, on an object store",
        "MB for each CPU second",
        f"{ours:,.0f}",
        f"{kafkas:,.0f}",
        f">= {minimum:.0f} times",
        f"{ours / kafkas:.2f}, " + _verdict(is_met=ours >= minimum * kafkas),
    )


def measured_table(results: Results, rows: Sequence[Row], names: Sequence[str]) -> list[str]:
    """Return one line per row and cluster; CPU is that of one record, and of one MB of values."""
    lines: list[tuple[str, ...]] = [
        (
            "row",
            "cluster",
            "per second",
            "p50 ms",
            "p99 ms",
            "EndTxn p50 ms",
            "EndTxn p99 ms",
            "again",
            "brokers' CPU us",
            "store's CPU us",
            "client CPU share",
            "MB/s",
            "brokers' CPU ms a MB",
            "store's CPU ms a MB",
        ),
    ]
    lines += [
        (row.title, TITLES[name], *_cells(measured, name))
        for row in rows
        for name in names
        if (measured := results.rows.get((name, row.key))) is not None
    ]
    return table(lines)


def process_table(results: Results, names: Sequence[str]) -> list[str]:
    """Return start-up, takeover and memory of each cluster."""
    head = (
        "cluster",
        "start-up s",
        "takeover s, first partition",
        "all of 16",
        "idle brokers MB",
        "idle store MB",
        "brokers MB after the load",
        "store MB",
    )
    lines = [
        (
            TITLES[name],
            f"{results.start_up_s[name]:.1f}",
            *(f"{each:.1f}" for each in results.takeover_s[name]),
            *_megabytes(results.idle_bytes[name]),
            *_megabytes(results.loaded_bytes[name]),
        )
        for name in names
        if name in results.takeover_s
    ]
    return table([head, *lines])


def _cells(measured: Measured, name: str) -> tuple[str, ...]:
    has_end = bool(measured.end_p50_s)
    return (
        f"{measured.rate:,.0f}",
        _ms(measured.p50_s),
        _ms(measured.p99_s),
        _ms(measured.end_p50_s) if has_end else "",
        _ms(measured.end_p99_s) if has_end else "",
        f"{measured.again:.2f}" if has_end else "",
        f"{measured.brokers_cpu_s * 1e6:,.0f}",
        f"{measured.store_cpu_s * 1e6:,.0f}" if name != "kafka" else "",
        f"{measured.client_share:.2f}",
        *_cells_of_bytes(measured, name),
    )


def _cells_of_bytes(measured: Measured, name: str) -> tuple[str, str, str]:
    if not measured.megabytes:
        return "", "", ""
    return (
        f"{measured.megabytes:,.1f}",
        _ms(measured.brokers_cpu_s_of_mb),
        _ms(measured.store_cpu_s_of_mb) if name != "kafka" else "",
    )


def _megabytes(brokers_and_store: tuple[int, int]) -> tuple[str, str]:
    brokers, store = brokers_and_store
    return f"{brokers / 1e6:,.0f}", f"{store / 1e6:,.0f}" if store else ""


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.2f}"


def _verdict(*, is_met: bool) -> str:
    return "met" if is_met else "missed"
