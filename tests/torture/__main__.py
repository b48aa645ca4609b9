"""`python -m tests.torture --duration 600 --seed 1`: see torture.py.

A long torture is made of rounds, each on a broker of its own, with the seeds after the first one.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

from tests.counterparts.apache_kafka import ApacheKafka
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.torture.torture import Outcome, Torture
from tests.workload.access import ACCESSES

ROUND_S = 60.0
BROKERS = {"barnabas": BarnabasProcess, "kafka": ApacheKafka}


def main() -> int:
    """Torture a broker; exit 0 when nothing was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("--duration", type=float, default=600, help="seconds of faults")
    parser.add_argument("--round", type=float, default=ROUND_S, help="seconds of one round")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 20))
    parser.add_argument("--broker", choices=sorted(BROKERS), default="barnabas")
    parser.add_argument("--access", choices=list(ACCESSES), default="plain")
    parser.add_argument(
        "--clients-only",
        action="store_true",
        help="leave the broker alone; Apache Kafka itself tears transactions when it is killed",
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of the broker"
    )
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    # Leave no broker and no clients behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    wrong = False
    for outcome in _rounds(arguments):
        for line in outcome.lines():
            print(line, flush=True)
        wrong = wrong or bool(outcome.report.violations or outcome.wrong)
    return 1 if wrong else 0


def _rounds(arguments: argparse.Namespace) -> Iterator[Outcome]:
    started_s = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - started_s:7.1f} s  {text}", flush=True)

    chosen = dict(each.split("=", 1) for each in arguments.set)
    left_s, seed = arguments.duration, arguments.seed
    while left_s > 0:
        # Stays when something is wrong: the history, what every client wrote down, the data.
        directory = Path(tempfile.mkdtemp(prefix=f"torture-{seed}-"))
        say(f"seed {seed}, in {directory}")
        broker = BROKERS[arguments.broker](directory / "broker", **chosen)
        access = ACCESSES[arguments.access](broker)
        with broker:
            torture = Torture(broker, access, directory, say)
            harms_broker = not arguments.clients_only
            outcome = torture.run(seed, min(left_s, arguments.round), harms_broker=harms_broker)
        yield outcome
        if outcome.report.violations or outcome.wrong:
            say(f"kept: {directory / 'history.jsonl'}")
            return
        shutil.rmtree(directory)
        left_s -= arguments.round
        seed += 1


if __name__ == "__main__":
    sys.exit(main())
