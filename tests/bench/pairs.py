"""`python -m tests.bench.pairs`: an earlier Barnabas and this one, side by side in one run.

Both are compiled; in each round each row runs on one and then on the other, in turn, and what is
compared is round by round. So what changes on the machine meanwhile meets both.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from tests.bench.load import Measurement, RequestFailed
from tests.bench.machine import describe
from tests.bench.report import table
from tests.bench.rows import ROWS, Row
from tests.bench.run import create_topic, delete_topic, find_coordinator, run_row
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.broker_process import BrokerDied

TOLERANCE = 0.03
"""A row is slower where it is so beyond this and beyond its own scatter."""
FIRST_WARM_UP_S, WARM_UP_S, MUCH_WRITTEN_S = 2.0, 0.3, 1.0
PAGE = Path(__file__).parents[2] / "docs" / "benchmarks-before-after.md"

Pair = tuple[Measurement, Measurement]
"""One round of one row: before, after."""


class Ratio(NamedTuple):
    """After / before: the median of the rounds, and their quartiles."""

    low: float
    median: float
    high: float

    @property
    def is_less(self) -> bool:
        """Whether it is less than 1, beyond the tolerance and the scatter."""
        return self.median < 1 - TOLERANCE and self.high < 1

    @property
    def is_more(self) -> bool:
        """Whether it is more than 1, beyond the tolerance and the scatter."""
        return self.median > 1 + TOLERANCE and self.low > 1

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f} to {self.high:.2f})"


def ratio(pairs: Sequence[Pair], of: Callable[[Measurement], float]) -> Ratio:
    """Return how one number of a row changed, by what it did in each round."""
    ratios = [of(after) / of(before) for before, after in pairs]
    low, median, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return Ratio(low, median, high)


def line(row: Row, pairs: Sequence[Pair]) -> tuple[str, ...]:
    """Return a row of the table: its ratios, and whether it has become slower."""
    rate = ratio(pairs, lambda each: each.rate)
    cpu = ratio(pairs, lambda each: each.broker_cpu_s)
    p50 = ratio(pairs, lambda each: each.p50_s)
    verdict = "slower" if rate.is_less else "faster" if rate.is_more else "same"
    more_cpu = "more" if cpu.is_more else "less" if cpu.is_less else "same"
    return row.title, str(rate), verdict, str(cpu), more_cpu, str(p50)


def page(facts: Sequence[tuple[str, str]], lines: Sequence[tuple[str, ...]]) -> str:
    """Return the whole of docs/benchmarks-before-after.md."""
    head = ("row", "rate", "", "broker CPU", "", "p50")
    text = [
        "# Before and after",
        "",
        "Written by `make bench-pairs BEFORE=<revision>`: that revision and the one after it, both",
        "compiled, on this machine at the same time, each row in turn on one and on the other.",
        "Each number is what the later one took for each 1 that the earlier one did: the median of",
        "the rounds, in brackets their quartiles. A row is the same unless its median is off by",
        f"more than {TOLERANCE:.0%} and its quartiles are on the same side of 1. The rows are",
        "described in docs/benchmarks.md.",
        "",
        *table([("", ""), *facts]),
        "",
        *table([head, *lines]),
        "",
    ]
    return "\n".join(text)


def _broker(packages: Path) -> BarnabasProcess:
    """Return a broker that runs what is in a directory."""
    # Before there was one import name the packages lay there by themselves.
    module = "barnabas" if (packages / "barnabas").is_dir() else "broker"

    class Packaged(BarnabasProcess):
        def command(self) -> list[str]:
            return [module if part == "barnabas" else part for part in super().command()]

    Packaged.packages = str(packages)
    return Packaged()


def _rounds(
    brokers: Sequence[BarnabasProcess], row: Row, rounds: int, duration_s: float
) -> list[Pair]:
    topic = f"bench-{row.key}"
    duration_s = min(duration_s, MUCH_WRITTEN_S) if row.writes_much else duration_s
    for broker in brokers:
        create_topic(broker.port, topic, row.topic_partitions)
        if row.kind in {"commit", "rebalance"}:
            find_coordinator(broker.port, topic)
        run_row(broker, row, topic, 0.5, FIRST_WARM_UP_S)
    pairs: list[Pair] = []
    for number in range(rounds):
        # Each goes first as often as the other.
        order = [0, 1] if number % 2 == 0 else [1, 0]
        measured: dict[int, Measurement] = {}
        for which in order:
            os.sync()
            measured[which] = run_row(brokers[which], row, topic, WARM_UP_S, duration_s)
        pairs.append((measured[0], measured[1]))
    for broker in brokers:
        delete_topic(broker.port, topic)
    return pairs


def main() -> int:
    """Measure and print; a run of all rows also writes the page."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.pairs", description=__doc__)
    parser.add_argument("before", type=Path, help="directory of an installed, compiled Barnabas")
    parser.add_argument("after", type=Path, help="the same of the later one")
    parser.add_argument("--names", nargs=2, default=("before", "after"), help="their revisions")
    parser.add_argument("--only", choices=[row.key for row in ROWS], help="one row")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=2.0, help="how long each row runs")
    arguments = parser.parse_args()
    lines: list[tuple[str, ...]] = []
    try:
        with ExitStack() as stack:
            directories = (arguments.before.resolve(), arguments.after.resolve())
            brokers = [stack.enter_context(_broker(each)) for each in directories]
            for row in ROWS:
                if arguments.only in (None, row.key):
                    pairs = _rounds(brokers, row, arguments.rounds, arguments.seconds)
                    lines.append(line(row, pairs))
                    print(*lines[-1], sep=" | ", file=sys.stderr, flush=True)
    except (BrokerDied, RequestFailed, OSError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    machine = [fact for fact in describe(Path(tempfile.gettempdir())) if fact[0] in _FACTS]
    facts = [*machine, ("before", arguments.names[0]), ("after", arguments.names[1])]
    facts.append(("rounds", f"{arguments.rounds} of {arguments.seconds:g} s"))
    text = page(facts, lines)
    print(text)
    if arguments.only is None:
        PAGE.write_text(text)
    return 0


_FACTS = {"date", "processor", "kernel", "fdatasync of 4 KiB"}

if __name__ == "__main__":
    sys.exit(main())
