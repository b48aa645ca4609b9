"""`python -m tests.soak --duration 3600 --seed 1`: see soak.py."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
import warnings
from pathlib import Path

from tests.counterparts.apache_kafka import ApacheKafka
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.groups.scenario import BROKER_SETTINGS
from tests.soak.soak import Soak

ROUND_S = 60.0
BROKERS = {"barnabas": BarnabasProcess, "kafka": ApacheKafka}


def main() -> int:
    """Soak a broker; exit 0 when nothing was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--duration", type=float, default=3600, help="seconds")
    parser.add_argument("--round", type=float, default=ROUND_S, help="seconds of one round")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--broker", choices=sorted(BROKERS), default="barnabas")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    started_s = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - started_s:7.1f} s  {text}", flush=True)

    say(f"seed {arguments.seed}")
    with tempfile.TemporaryDirectory(prefix="soak-broker-") as directory:
        path = Path(directory)
        with BROKERS[arguments.broker](path, **BROKER_SETTINGS) as broker:
            report = Soak(broker, arguments.seed, arguments.round, say).run(arguments.duration)
    for line in report.lines():
        say(line)
    for violation in report.violations[:50]:
        say(f"WRONG: {violation}")
    say("WRONG" if report.violations else "all right")
    return 1 if report.violations else 0


if __name__ == "__main__":
    sys.exit(main())
