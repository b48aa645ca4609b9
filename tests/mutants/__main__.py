"""`make mutants`: changes the product in small ways, and shows that a test notices each of them.

First each command of the table is run on the sources as they are, and must be green; then on a copy
with the mutant, and must be red. A mutant that survives is a hole in the tests. A text that is not
there any more, a command that hangs or that runs no test fails the run as well.
"""

from __future__ import annotations

import argparse
import itertools
import resource
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from tests.mutants.running import Outcome, Run, run
from tests.mutants.table import Mutant, groups, mutants
from tests.mutants.trees import mutated, unchanged

_SAID: Final = {
    Outcome.GREEN: "SURVIVED",
    Outcome.RED: "killed",
    Outcome.RED_BY_LIMIT: "killed by a test's time limit",
    Outcome.RED_IN_SET_UP: "killed in a test's set-up",
    Outcome.HUNG: "HUNG",
    Outcome.NOT_RUN: "NOT RUN",
}
_KILLED: Final = {Outcome.RED, Outcome.RED_BY_LIMIT, Outcome.RED_IN_SET_UP}
_LINES_MAX: Final = 40


class Report:
    """Results so far, printed as they come; any thread may add to it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.killed: Counter[str] = Counter()
        """Number of killed mutants, by the directory of the tests."""
        self.failures: list[str] = []

    def add_mutant(self, mutant: Mutant, result: Run) -> None:
        """Note the result of a mutant."""
        with self._lock:
            said = f"{_SAID[result.outcome]:8} {mutant.name} ({result.seconds:.0f} s)"
            if result.outcome in _KILLED:
                self.killed["/".join(mutant.tests[0].split("/")[:2])] += 1
                print(f"{said} by {result.failed}", flush=True)
            else:
                self._fail(f"{said}: {mutant.red}", result.output)

    def add_red(self, command: str, result: Run) -> None:
        """Note a command that fails on the sources as they are."""
        with self._lock:
            self._fail(f"NOT GREEN without a mutant: {command}", result.output)

    def add_lost(self, mutant: Mutant, reason: str) -> None:
        """Note a mutant that does not fit the sources."""
        with self._lock:
            self._fail(f"NOT FOUND {mutant.name}: {reason}", "")

    def _fail(self, said: str, output: str) -> None:
        self.failures.append(said)
        print("\n".join([said, *output.splitlines()[-_LINES_MAX:]]), flush=True)


def run_group(command: str, group: Sequence[Mutant], plain: Path, report: Report) -> None:
    """Run a command as it is, and with each of its mutants."""
    result = run(command, plain)
    if result.outcome is not Outcome.GREEN:
        report.add_red(command, result)
        return
    for mutant in group:
        try:
            with mutated(plain, mutant, f"mutant-{next(_numbers)}") as tree:
                report.add_mutant(mutant, run(command, tree))
        except ValueError as error:
            report.add_lost(mutant, str(error))


_numbers = itertools.count()


def chosen(all_mutants: Sequence[Mutant], words: Sequence[str]) -> list[Mutant]:
    """Return the mutants that break a rule or guard that is named, or are in a file that is."""
    if not words:
        return [*all_mutants]
    return [each for each in all_mutants if {*each.breaks, each.file} & {*words}]


def part_of(commands: Sequence[str], part: str) -> list[str]:
    """Return the commands of a part such as 2/5; raises ValueError for what is none."""
    number, _, count = part.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise ValueError(f"PART={part} is not a part such as 2/5")
    return [*commands[int(number) - 1 :: int(count)]]


def main() -> int:
    """Run the mutants of a part, or those that are named."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--part", default="1/1", help="the second of five parts is 2/5")
    parser.add_argument("--jobs", type=int, default=1, help="commands to run at the same time")
    parser.add_argument("words", nargs="*", help="rules, guards or files; all if there are none")
    arguments = parser.parse_args()
    by_command = groups(chosen(mutants(), arguments.words))
    try:
        commands = part_of([*by_command], arguments.part)
    except ValueError as error:
        parser.error(str(error))
    count = sum(len(by_command[each]) for each in commands)
    if not count:
        parser.error("no mutant breaks, or is in, what is named")
    print(f"mutants: {count} mutants, {len(commands)} commands, part {arguments.part}", flush=True)
    report = Report()
    with unchanged() as plain, ThreadPoolExecutor(arguments.jobs) as threads:
        running = [
            threads.submit(run_group, each, by_command[each], plain, report) for each in commands
        ]
    for each in running:
        each.result()
    return summary(report, count)


def summary(report: Report, count: int) -> int:
    """Print the counts and the failures; return the status of the process."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    killed = sum(report.killed.values())
    print(f"\nmutants: {killed} of {count} killed, {usage.ru_utime + usage.ru_stime:.0f} s of CPU")
    for directory, number in report.killed.most_common():
        print(f"{number:6} by {directory}")
    for each in report.failures:
        print(each)
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
