"""`python -m tests.bench.instructions`: how many instructions a request costs, by valgrind.

Each build is given as revision=directory of a compiled Barnabas. A count depends little on what
else the machine does (2 per cent: a busy machine has the journal written by its thread more often),
so it needs no quiet machine. It leaves out what the kernel does, and the waits for memory.

A broker also works while no request comes: that is counted first, and subtracted.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.bench import end_to_end
from tests.bench.pairs import Build, build, packaged
from tests.bench.report import table
from tests.bench.rows import ROWS, Row
from tests.bench.run import create_topic, find_coordinator, run_row
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.broker_process import BrokerProcess
from tests.counterparts.usage import CpuTime

KEYS: Final = ("produce-1", "end-to-end", "commit", "transaction-1", "transaction-16")
FIRST_WARM_UP_S, WARM_UP_S = 6.0, 1.0
PARK_S: Final = 0.03
"""The time that a broker under callgrind takes to park a Fetch."""
_TOTAL: Final = re.compile(r"^([\d,]+) .*PROGRAM TOTALS", re.MULTILINE)


def total(printed: str) -> int:
    """Return the instructions that callgrind_annotate prints for a whole program."""
    found = _TOTAL.search(printed)
    assert found is not None, printed
    return int(found[1].replace(",", ""))


class Counted(BarnabasProcess):
    """A broker under callgrind, which counts between ``count("on")`` and ``count("off")``."""

    start_timeout_s = 300.0

    def command(self) -> list[str]:
        """Return the command line, under callgrind."""
        output = f"--callgrind-out-file={self.counts_path}"
        return ["valgrind", "--tool=callgrind", "--instr-atstart=no", output, *super().command()]

    def start(self) -> Counted:
        """Start the process; valgrind prints before the broker does."""
        BrokerProcess.start(self)
        return self

    @property
    def counts_path(self) -> Path:
        """The file that callgrind writes at the end."""
        return self.directory / "callgrind.out"

    def count(self, switch: str) -> None:
        """Begin or cease to count: ``on`` or ``off``."""
        command = ["callgrind_control", "--instr=" + switch, str(self.pid)]
        subprocess.run(command, check=True, capture_output=True)

    def counted(self) -> int:
        """End the broker, and return how many instructions were counted."""
        self.terminate()
        command = ["callgrind_annotate", str(self.counts_path)]
        return total(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


class Switch:
    """Replaces the clock of a broker's CPU, which loads read before and after they measure."""

    def __init__(self, broker: Counted) -> None:
        self._broker = broker
        self._begun_s = 0.0
        self.elapsed_s = 0.0

    def __call__(self) -> CpuTime:
        if not self._begun_s:
            self._broker.count("on")
            self._begun_s = time.perf_counter()
        else:
            self.elapsed_s = time.perf_counter() - self._begun_s
            self._broker.count("off")
        return CpuTime(0.0, 0.0)


def idle(build: Build, seconds: float) -> float:
    """Return the instructions of a second in which no request comes."""
    with packaged(Counted, build.packages) as broker:
        time.sleep(FIRST_WARM_UP_S)
        broker.count("on")
        time.sleep(seconds)
        broker.count("off")
        return broker.counted() / seconds


def per_request(build: Build, row: Row, seconds: float, idle_per_s: float) -> float:
    """Return the instructions of a request of a row."""
    with packaged(Counted, build.packages) as broker:
        topic = f"bench-{row.key}"
        create_topic(broker.port, topic, row.topic_partitions)
        if row.kind in {"commit", "rebalance"}:
            find_coordinator(broker.port, topic)
        run_row(broker, row, topic, WARM_UP_S, FIRST_WARM_UP_S)
        switch = Switch(broker)
        broker.cpu_time = switch  # type: ignore[method-assign]  # The only way into a load.
        requests = run_row(broker, row, topic, WARM_UP_S, seconds).rate * seconds
        return (broker.counted() - idle_per_s * switch.elapsed_s) / requests


def main(arguments: Sequence[str] | None = None) -> int:
    """Count and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("builds", type=build, nargs="+", help="revision=directory of each")
    parser.add_argument("--only", choices=[row.key for row in ROWS], help="one row")
    parser.add_argument("--seconds", type=float, default=15.0, help="how long each row runs")
    chosen = parser.parse_args(arguments)
    if shutil.which("valgrind") is None:
        print(
            "bench-instructions: install valgrind (Debian: apt install valgrind)", file=sys.stderr
        )
        return 1
    end_to_end.PARK_S = PARK_S
    idles = {each.revision: idle(each, chosen.seconds) for each in chosen.builds}
    lines = [("a second without requests", *(f"{count:,.0f}" for count in idles.values()))]
    for row in ROWS:
        if row.key == chosen.only or (chosen.only is None and row.key in KEYS):
            found = [
                per_request(each, row, chosen.seconds, idles[each.revision])
                for each in chosen.builds
            ]
            lines.append((row.title, *(f"{count:,.0f}" for count in found)))
            print(*lines[-1], sep=" | ", file=sys.stderr, flush=True)
    print("\n".join(table([("instructions", *idles), *lines])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
