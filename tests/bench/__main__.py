"""`python -m tests.bench`: measure Barnabas and Apache Kafka 4.3.0 side by side."""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from tests.bench import report
from tests.bench.load import RequestFailed
from tests.bench.machine import describe
from tests.bench.rows import ACL_ROWS, ROWS, TLS_ROWS
from tests.bench.run import FULL, QUICK, Results, run
from tests.bench.spark_rows import SPARK_ROWS
from tests.bench.spark_run import WorkerFailed
from tests.bench.starts import StartRow, measure_starts, start_rows
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.broker_process import BrokerDied
from tests.counterparts.errors import MissingCounterpart

BROKER_ROWS = (*ROWS, *TLS_ROWS, *ACL_ROWS)
ALL = (*BROKER_ROWS, *SPARK_ROWS)
LOG_GIGABYTES, QUICK_LOG_GIGABYTES = 20, 1
PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"


def main() -> int:
    """Measure, print the tables; a whole run of both brokers also writes docs/benchmarks.md."""
    arguments = _parser().parse_args()
    if arguments.python is not None:
        BarnabasProcess.interpreter, BarnabasProcess.packages = arguments.python, ""
    keys = _with_compared(arguments.only)
    rows = [row for row in BROKER_ROWS if row.key in keys]
    spark_rows = [row for row in SPARK_ROWS if row.key in keys]
    starts = _chosen_starts(arguments)
    names = ["barnabas", "kafka"] if arguments.brokers == "both" else [arguments.brokers]
    effort = QUICK if arguments.quick else FULL
    # Before the run, which is load enough itself: who else was using the machine?
    load = ("load average before", f"{os.getloadavg()[0]:.1f}")
    try:
        results = run(names, rows, spark_rows, effort) if rows or spark_rows else Results()
        if "barnabas" in names:
            results.starts = measure_starts(starts)
    except (MissingCounterpart, BrokerDied, RequestFailed, WorkerFailed, OSError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    facts = [*describe(Path(tempfile.gettempdir())), load]
    page = report.page(facts, results, rows, spark_rows, names, starts)
    print(page)
    if len(names) == 2 and not arguments.quick and arguments.only is None:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(page)
    return 0


def _with_compared(only: str | None) -> set[str]:
    """Return the rows to be run: all, or one and what it is compared with."""
    chosen = [row for row in ALL if only in (None, row.key)]
    compared = {versus.key for row in chosen for versus in row.versus}
    return compared | {row.key for row in chosen}


def _chosen_starts(arguments: argparse.Namespace) -> list[StartRow]:
    gigabytes = QUICK_LOG_GIGABYTES if arguments.quick else LOG_GIGABYTES
    if arguments.log_gigabytes is not None:
        gigabytes = arguments.log_gigabytes
    rows = start_rows(gigabytes, quick=arguments.quick)
    return [row for row in rows if arguments.only in (None, row.key)]


def _parser() -> argparse.ArgumentParser:
    keys = [row.key for row in (*ALL, *start_rows(LOG_GIGABYTES, quick=False))]
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short round: seconds per row")
    parser.add_argument("--only", choices=keys, help="one row")
    parser.add_argument("--brokers", choices=["barnabas", "kafka", "both"], default="both")
    parser.add_argument("--log-gigabytes", type=int, help="log for starts and stops: 20, quick 1")
    parser.add_argument("--python", help="what runs the Barnabas that is installed for it")
    return parser


sys.exit(main())
