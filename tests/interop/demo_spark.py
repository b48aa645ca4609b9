"""`python -m tests.interop.demo_spark`: a ledger of payments, through kills of all that runs.

Each sink reads the same payments and writes two movements of money for each. Its Spark driver, its
Python workers and the broker are killed with SIGKILL at random. In the end a `read_committed`
consumer counts the copies of each movement.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import NamedTuple

from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.broker_process import BrokerProcess
from tests.counterparts.errors import MissingCounterpart
from tests.interop.administration import create
from tests.interop.demo_kills import Kill, Show, batches_of, plan
from tests.interop.demo_payments import Copies, judge, produce
from tests.spark.harness import SparkDriver
from tests.spark.job import DATA_SOURCE, SINGLE, STOCK, TWO_PHASE, Job

PARTITIONS = 4
INPUT = "payments"
TITLES = {
    STOCK: "Spark's own Kafka sink",
    SINGLE: "one transaction by the driver",
    TWO_PHASE: "two-phase, foreachBatch",
    DATA_SOURCE: "two-phase sink",
}
SETTINGS = {"transaction.two.phase.commit.enable": "true"}


class Result(NamedTuple):
    """The output of one sink."""

    copies: Copies
    kills: list[Kill]
    failures: int
    seconds: float


def main() -> int:
    """Run the pipeline with each sink; exit 0 if those of Barnabas were exact."""
    parser = argparse.ArgumentParser(prog="python -m tests.interop.demo_spark", description=__doc__)
    parser.add_argument("--records", type=int, default=5_000_000, help="payments (%(default)s)")
    parser.add_argument("--batches", type=int, default=50, help="to read them in (%(default)s)")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 20))
    parser.add_argument("--sinks", nargs="+", choices=sorted(TITLES), default=[STOCK, DATA_SOURCE])
    parser.add_argument("--plot", type=Path, help="write the picture to this file")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    # Leave no broker and no Spark behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    started = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - started:7.1f} s  {text}", flush=True)

    say(f"seed {arguments.seed}: the same kills again with --seed {arguments.seed}")
    with tempfile.TemporaryDirectory(prefix="demo-") as scratch:
        try:
            results = _run(Path(scratch), arguments, say)
        except MissingCounterpart as error:
            print(f"demo: {error}", file=sys.stderr)
            return 1
    _table(arguments.records, results)
    if arguments.plot is not None:
        _plot(arguments, results)
    exact = all(each.copies.is_exact for sink, each in results.items() if sink != STOCK)
    say("exactly once" if exact else "NOT exactly once")
    return 0 if exact else 1


def _run(scratch: Path, arguments: argparse.Namespace, say) -> dict[str, Result]:
    results = {}
    with BarnabasProcess(scratch / "broker", **SETTINGS) as broker:
        create(broker.bootstrap_servers, INPUT, partitions=PARTITIONS)
        produce(broker.bootstrap_servers, INPUT, arguments.records, PARTITIONS)
        say(f"{arguments.records:,} payments written")
        for sink in arguments.sinks:
            say(f"--- {TITLES[sink]}")
            results[sink] = _run_sink(sink, broker, scratch, arguments, say)
    return results


def _run_sink(
    sink: str, broker: BrokerProcess, scratch: Path, arguments: argparse.Namespace, say
) -> Result:
    records: int = arguments.records
    job = Job(
        broker.bootstrap_servers,
        sink,
        f"ledger-{sink}",
        str(scratch / f"checkpoint-{sink}"),
        per_trigger=_per_trigger(arguments),
        payments=INPUT,
    )
    create(broker.bootstrap_servers, job.output, partitions=PARTITIONS)
    kills = plan(arguments.seed, batches_of(records, job.per_trigger))
    with SparkDriver(scratch / f"driver-{sink}") as driver:
        show = Show(driver, broker, job, say)
        seconds = show.run(kills)
    say("all read; counting what a reader of committed records sees")
    copies = judge(broker.bootstrap_servers, job.output, records, PARTITIONS)
    say(f"{copies.records:,} results, {copies.duplicates:,} duplicates, {copies.losses:,} losses")
    return Result(copies, kills, show.failures, seconds)


def _per_trigger(arguments: argparse.Namespace) -> int:
    return max(PARTITIONS, arguments.records // arguments.batches)


def _table(records: int, results: dict[str, Result]) -> None:
    head = ("sink", "input", "results due", "output", "duplicates", "losses", "kills", "seconds")
    rows = [
        (
            TITLES[sink],
            *(f"{each:,}" for each in (records, 2 * records, found.copies.records)),
            *(f"{each:,}" for each in (found.copies.duplicates, found.copies.losses)),
            str(len(found.kills)),
            f"{found.seconds:.0f}",
        )
        for sink, found in results.items()
    ]
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    print()
    for row in (head, *rows):
        first, *others = zip(row, widths, strict=True)
        cells = [first[0].ljust(first[1]), *(text.rjust(width) for text, width in others)]
        print("  " + "  ".join(cells))
    print(flush=True)


def _plot(arguments: argparse.Namespace, results: dict[str, Result]) -> None:
    from tests.interop.demo_plot import plot

    title = (
        f"{arguments.records:,} payments through Spark while driver, Python workers and broker are"
        f" killed (seed {arguments.seed})"
    )
    found = {TITLES[sink]: each.copies for sink, each in results.items()}
    kills = {TITLES[sink]: each.kills for sink, each in results.items()}
    plot(arguments.plot, title, _per_trigger(arguments), found, kills)


if __name__ == "__main__":
    sys.exit(main())
