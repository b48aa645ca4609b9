"""`python -m tests.bench`: measure Barnabas and Apache Kafka 4.3.0 side by side."""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from tests.bench import report
from tests.bench.load import RequestFailed
from tests.bench.machine import describe
from tests.bench.rows import ROWS
from tests.bench.run import FULL, QUICK, run
from tests.counterparts.broker_process import BrokerDied
from tests.counterparts.errors import MissingCounterpart

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"


def main() -> int:
    """Measure, print the tables; a whole run of both brokers also writes docs/benchmarks.md."""
    arguments = _parser().parse_args()
    rows = [row for row in ROWS if arguments.only in (None, row.key)]
    names = ["barnabas", "kafka"] if arguments.brokers == "both" else [arguments.brokers]
    effort = QUICK if arguments.quick else FULL
    # Before the run, which is load enough itself: who else was using the machine?
    load = ("load average before", f"{os.getloadavg()[0]:.1f}")
    try:
        results = run(names, rows, effort)
    except (MissingCounterpart, BrokerDied, RequestFailed, OSError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    facts = [*describe(Path(tempfile.gettempdir())), load]
    print(report.page(facts, results, rows, names))
    if len(names) == 2 and not arguments.quick and arguments.only is None:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(report.page(facts, results, rows, names))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short round: seconds per row")
    parser.add_argument("--only", choices=[row.key for row in ROWS], help="one row")
    parser.add_argument("--brokers", choices=["barnabas", "kafka", "both"], default="both")
    return parser


sys.exit(main())
