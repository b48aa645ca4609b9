"""`python -m tests.bench.cluster`: brokers of Barnabas and of Apache Kafka 4.3.0 side by side."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from tests.bench.cluster import old_records, report, takeovers
from tests.bench.cluster.rows import ROWS
from tests.bench.cluster.run import FULL, QUICK, run
from tests.bench.cluster.sides import SIDES
from tests.bench.cluster.takeover_report import part_of, with_part, written
from tests.bench.load import RequestFailed
from tests.bench.machine import describe
from tests.counterparts.broker_process import BrokerDied
from tests.counterparts.errors import MissingCounterpart
from tests.counterparts.postgresql_servers import PostgreSqlFailed

PAGE = Path(__file__).parents[3] / "docs" / "benchmarks-cluster.md"


def main() -> int:
    """Measure, print the tables; a whole run of all also writes docs/benchmarks-cluster.md."""
    arguments = _parser().parse_args()
    if arguments.takeovers:
        return _takeovers(arguments)
    if arguments.old_takeover or arguments.cold_scan:
        return _old_records(arguments)
    rows = [row for row in ROWS if arguments.only is None or row.key in arguments.only]
    names = list(SIDES) if arguments.clusters == "all" else [arguments.clusters]
    # Before the run, which is load enough itself: who else was using the machine?
    load = ("load average before", f"{os.getloadavg()[0]:.1f}")
    try:
        results = run(names, rows, QUICK if arguments.quick else FULL)
    except (MissingCounterpart, BrokerDied, PostgreSqlFailed, RequestFailed, OSError) as error:
        print(f"bench-cluster: {error}", file=sys.stderr)
        return 1
    facts = describe(
        Path(tempfile.gettempdir()),
        barnabas="three brokers, a PostgreSQL and its synchronous standby",
        kafka="three nodes, three copies, min.insync.replicas 2, 512 MiB heap each",
    )
    page = report.page([*facts, load], results, rows, names)
    print(page)
    if names == list(SIDES) and not arguments.quick and arguments.only is None:
        PAGE.write_text(with_part(page, part_of(PAGE.read_text())))
    return 0


def _old_records(arguments: argparse.Namespace) -> int:
    """Measure a takeover of logs with old records, a scan of such a log, or both."""
    partitions = arguments.partitions
    print("load average before", f"{os.getloadavg()[0]:.1f}")
    try:
        if arguments.old_takeover:
            gib = 100.0 if arguments.gib is None else arguments.gib
            kill = old_records.takeover(partitions, gib, arguments.lease_ms)
            print("\n".join(["", *old_records.takeover_table(partitions, gib, kill)]))
        if arguments.cold_scan:
            gib = 10.0 if arguments.gib is None else arguments.gib
            found = old_records.scan(gib, arguments.cache_mib, in_objects=arguments.objects)
            print("\n".join(["", *old_records.scan_table(found)]))
    except (BrokerDied, PostgreSqlFailed, RequestFailed, OSError) as error:
        print(f"bench-cluster: {error}", file=sys.stderr)
        return 1
    return 0


def _takeovers(arguments: argparse.Namespace) -> int:
    """Measure takeovers; a run of the usual size also writes its part of the page."""
    size = takeovers.Size(arguments.partitions, lease_ms=arguments.lease_ms)
    load = ("load average before", f"{os.getloadavg()[0]:.1f}")
    try:
        results = takeovers.run(size)
    except (BrokerDied, PostgreSqlFailed, RequestFailed, OSError) as error:
        print(f"bench-cluster: {error}", file=sys.stderr)
        return 1
    facts = describe(
        Path(tempfile.gettempdir()), barnabas="three brokers, a PostgreSQL and its standby"
    )
    part = written([*(each for each in facts if each[0] != "Apache Kafka"), load], results)
    print(part)
    print("slowest to be served:", *results.kill.served.slowest)
    print(f"asked again after {results.stop.cycle_s * 1000:.0f} ms (median) during the stop")
    if size == takeovers.Size():
        PAGE.write_text(with_part(PAGE.read_text(), part))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.cluster", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short round: a second per row")
    parser.add_argument(
        "--only",
        choices=[row.key for row in ROWS],
        action="append",
        help="one row; may be repeated",
    )
    parser.add_argument("--clusters", choices=[*SIDES, "all"], default="all")
    parser.add_argument(
        "--takeovers", action="store_true", help="how long partitions are without a leader"
    )
    parser.add_argument(
        "--old-takeover",
        action="store_true",
        help="a takeover of logs with old records in PostgreSQL (--partitions, --gib, --lease-ms)",
    )
    parser.add_argument(
        "--cold-scan",
        action="store_true",
        help="a consumer reads a log through a smaller cache (--gib, --cache-mib)",
    )
    parser.add_argument(
        "--objects", action="store_true", help="the scan reads an object store, a directory"
    )
    parser.add_argument("--gib", type=float, help="of old records: 100 for a takeover, 10 to scan")
    parser.add_argument("--cache-mib", type=int, default=1024, help="barnabas.cache.max.bytes")
    parser.add_argument("--partitions", type=int, default=1000, help="of the topic of takeovers")
    parser.add_argument("--lease-ms", type=int, default=10_000, help="of the brokers of takeovers")
    return parser


if __name__ == "__main__":
    sys.exit(main())
