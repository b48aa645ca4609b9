"""`python -m tests.bench.pairs`: earlier builds of Barnabas and this one, side by side in one run.

All are compiled; in each round each row runs on one after the other, and what is compared is round
by round. So what changes on the machine meanwhile meets all of them.

One of the earlier builds is the baseline, a revision that BASELINE names and that moves only
forward: of a series of changes each may stay within the tolerance, and all together may not.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple, TypeVar

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

Kind = TypeVar("Kind", bound=BarnabasProcess)
Pair = tuple[Measurement, Measurement]
"""One round of one row: before, after."""


class Build(NamedTuple):
    """A compiled Barnabas."""

    revision: str
    packages: Path


class Ratio(NamedTuple):
    """Quotients of after and before: the median of the rounds, and their quartiles."""

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
    """Return the change of one number of a row, from the quotients of the rounds."""
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


def page(facts: Sequence[tuple[str, str]], tables: Mapping[str, Sequence[tuple[str, ...]]]) -> str:
    """Return the whole of docs/benchmarks-before-after.md; ``tables``: lines, by revision."""
    head = ("row", "rate", "", "broker CPU", "", "p50")
    text = [
        "# Before and after",
        "",
        "Written by `make bench-pairs`: the baseline (`tests/bench/BASELINE`, moved only forward),",
        "with `BEFORE=<revision>` that revision, too, and the present one, all compiled, on one",
        "machine at the same time, each row in turn on each of them.",
        "Each number is what the present one took for each 1 of the earlier one: the median of",
        "the rounds, in brackets their quartiles. A row is the same unless its median is off by",
        f"more than {TOLERANCE:.0%} and its quartiles are on the same side of 1. The rows are",
        "described in docs/benchmarks.md.",
        "",
        *table([("", ""), *facts]),
        "",
    ]
    for revision, lines in tables.items():
        text += [f"## Beside {revision}", "", *table([head, *lines]), ""]
    return "\n".join(text)


def packaged(kind: type[Kind], packages: Path) -> Kind:
    """Return a broker that runs the build in a directory."""
    # Before there was one import name the packages lay there by themselves.
    module = "barnabas" if (packages / "barnabas").is_dir() else "broker"

    class Packaged(kind):  # type: ignore[misc, valid-type]
        def command(self) -> list[str]:
            return [module if part == "barnabas" else part for part in super().command()]

    Packaged.packages = str(packages)
    return Packaged()


def _rounds(
    brokers: Sequence[BarnabasProcess], row: Row, rounds: int, duration_s: float
) -> list[list[Measurement]]:
    """Measure a row; of each round one measurement of each broker."""
    topic = f"bench-{row.key}"
    duration_s = min(duration_s, MUCH_WRITTEN_S) if row.writes_much else duration_s
    for broker in brokers:
        create_topic(broker.port, topic, row.topic_partitions)
        if row.kind in {"commit", "rebalance"}:
            find_coordinator(broker.port, topic)
        run_row(broker, row, topic, 0.5, FIRST_WARM_UP_S)
    found: list[list[Measurement]] = []
    for number in range(rounds):
        # Each goes first as often as any other.
        measured: dict[int, Measurement] = {}
        for turn in range(len(brokers)):
            which = (number + turn) % len(brokers)
            os.sync()
            measured[which] = run_row(brokers[which], row, topic, WARM_UP_S, duration_s)
        found.append([measured[which] for which in range(len(brokers))])
    for broker in brokers:
        delete_topic(broker.port, topic)
    return found


def build(argument: str) -> Build:
    """Return the build that a command line names: revision=directory."""
    revision, _, packages = argument.partition("=")
    return Build(revision, Path(packages).resolve())


def main() -> int:
    """Measure and print; a run of all rows also writes the page."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.pairs", description=__doc__)
    parser.add_argument(
        "builds", type=build, nargs="+", help="revision=directory of each, the present one last"
    )
    parser.add_argument("--only", choices=[row.key for row in ROWS], help="one row")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=2.0, help="how long each row runs")
    arguments = parser.parse_args()
    *earlier, present = arguments.builds
    tables: dict[str, list[tuple[str, ...]]] = {each.revision: [] for each in earlier}
    try:
        with ExitStack() as stack:
            brokers = [
                stack.enter_context(packaged(BarnabasProcess, each.packages))
                for each in arguments.builds
            ]
            for row in ROWS:
                if arguments.only in (None, row.key):
                    rounds = _rounds(brokers, row, arguments.rounds, arguments.seconds)
                    for which, (revision, lines) in enumerate(tables.items()):
                        lines.append(line(row, [(each[which], each[-1]) for each in rounds]))
                        print(revision, *lines[-1], sep=" | ", file=sys.stderr, flush=True)
    except (BrokerDied, RequestFailed, OSError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    machine = [fact for fact in describe(Path(tempfile.gettempdir())) if fact[0] in _FACTS]
    facts = [*machine, ("present", present.revision)]
    facts.append(("rounds", f"{arguments.rounds} of {arguments.seconds:g} s"))
    text = page(facts, tables)
    print(text)
    if arguments.only is None:
        PAGE.write_text(text)
    return 0


_FACTS = {"date", "processor", "kernel", "fdatasync of 4 KiB"}

if __name__ == "__main__":
    sys.exit(main())
