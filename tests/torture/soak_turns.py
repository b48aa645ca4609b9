"""`python -m tests.torture.soak_turns --seconds 600`: a broker dies every 5 s; see turns.py.

Rounds of a minute, each on a cluster of its own with the seed after the last one's. `--brokers
processes` has them be `barnabas serve` on a PostgreSQL pair, `embedded` in this process.
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
from contextlib import contextmanager
from pathlib import Path

from barnabas.testing import Cluster
from tests.counterparts.postgresql_servers import Pair
from tests.postgresql.brokers import LEASE_MS, Member, running, start
from tests.torture.access import BROKER_SETTINGS
from tests.torture.embedded_brokers import EmbeddedBrokers
from tests.torture.turns import Brokers, TurnsTorture, told, unexpected
from tests.waiting import wait_until

BROKERS = 3
ROUND_S = 60.0
READY = 200
LOOK_S = 0.05


class Processes:
    """Processes on one PostgreSQL pair."""

    def __init__(self, members: list[Member]) -> None:
        self._members = members
        self.count = len(members)

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(each.bootstrap_servers for each in self._members)

    def kill(self) -> None:
        for each in self._members:
            each.kill()

    def restart(self) -> None:
        start(self._members)

    def kill_one(self, number: int) -> None:
        self._members[number].kill()

    def stop_one(self, number: int) -> None:
        member = self._members[number]
        status = member.terminate()
        assert status == 0, f"broker {number} ended with {status}: {member.output()}"

    def start_one(self, number: int) -> None:
        self._members[number].restart()

    def wait_until_ready(self) -> None:
        def are_ready() -> bool:
            return all(each.probe("/readyz") == READY for each in self._members)

        wait_until(are_ready, "every broker is ready", pause_s=LOOK_S)

    def failure(self) -> str | None:
        ended = [each for each in self._members if not each.is_running]
        return f"a broker ended: {ended[0].output()}" if ended else None


@contextmanager
def _embedded(_directory: Path, seed: int) -> Iterator[Brokers]:
    config = {**BROKER_SETTINGS, "barnabas.lease.ms": str(LEASE_MS)}
    with Cluster(BROKERS, config=config, seed=seed) as cluster:
        yield EmbeddedBrokers(cluster)


@contextmanager
def _processes(directory: Path, _seed: int) -> Iterator[Brokers]:
    with Pair() as pair:
        members = [
            Member(directory / f"broker-{number}", pair.url, **BROKER_SETTINGS)
            for number in range(BROKERS)
        ]
        with running(members):
            yield Processes(members)


KINDS_OF_BROKERS = {"embedded": _embedded, "processes": _processes}


def main() -> int:
    """Let clusters lose brokers; exit 0 when nothing was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture.soak_turns")
    parser.add_argument("--seconds", type=float, default=600, help="in which brokers are killed")
    parser.add_argument("--round", type=float, default=ROUND_S, help="seconds of one round")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 20))
    parser.add_argument("--brokers", choices=list(KINDS_OF_BROKERS), default="processes")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    # Leave no server behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    started_s = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - started_s:7.1f} s  {text}", flush=True)

    left_s, seed = arguments.seconds, arguments.seed
    while left_s > 0:
        directory = Path(tempfile.mkdtemp(prefix=f"turns-{seed}-"))
        say(f"seed {seed}, in {directory}")
        with KINDS_OF_BROKERS[arguments.brokers](directory, seed) as brokers:
            torture = TurnsTorture(brokers, directory, say)
            outcome = torture.run(seed, min(left_s, arguments.round), harms_broker=True)
        print(told(outcome), flush=True)
        if outcome.report.violations or outcome.wrong or unexpected(outcome):
            say(f"kept: {directory / 'history.jsonl'}")
            return 1
        shutil.rmtree(directory)
        left_s -= arguments.round
        seed += 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
