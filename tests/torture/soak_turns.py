"""`python -m tests.torture.soak_turns --seconds 600`: a broker dies every 5 s; see turns.py.

Rounds of a minute, each on a cluster of its own with the seed after the last one's. `--brokers
processes` has them be `barnabas serve` on a PostgreSQL pair, `objects` such processes with large
flushes in versitygw, `embedded` in this process. `--clients` is what uses them: the libraries of
the torture, Spark with the exactly-once sinks, Apache Kafka's verifiable tools, or the programs of
examples/proving, one in each round, which `barnabas prove` kills and pauses, too.
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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from barnabas.testing import Cluster
from tests.counterparts.object_stores import Versitygw
from tests.counterparts.postgresql_servers import Pair
from tests.interop.proving import (
    CONFLUENT,
    FRANZ_GO,
    JAVA,
    KAFKA_PYTHON,
    PROVED,
    prove,
)
from tests.interop.tools_at_a_cluster import copy_while_brokers_die
from tests.postgresql.brokers import LEASE_MS, Member, running
from tests.postgresql.object_stores import BUCKET, settings_of
from tests.spark.harness import SparkDriver
from tests.spark.pipelines import write_while_brokers_die
from tests.torture.embedded_brokers import EmbeddedBrokers
from tests.torture.killer import Killer
from tests.torture.process_brokers import ProcessBrokers
from tests.torture.torture import Say
from tests.torture.turns import EVERY_S, Brokers, TurnsTorture, told, unexpected
from tests.workload.access import BROKER_SETTINGS

BROKERS = 3
ROUND_S = 60.0
PROGRAMS = (FRANZ_GO, CONFLUENT, JAVA, KAFKA_PYTHON)
TWO_PHASE = {"transaction.two.phase.commit.enable": "true"}
COPIED_RECORDS = 600


@contextmanager
def _embedded(_directory: Path, seed: int) -> Iterator[Brokers]:
    config = {**BROKER_SETTINGS, "barnabas.lease.ms": str(LEASE_MS)}
    with Cluster(BROKERS, config=config, seed=seed) as cluster:
        yield EmbeddedBrokers(cluster)


@contextmanager
def _processes(directory: Path, _seed: int, **more: str) -> Iterator[Brokers]:
    with Pair() as pair:
        settings = BROKER_SETTINGS | TWO_PHASE | more
        members = [
            Member(directory / f"broker-{number}", pair.url, **settings)
            for number in range(BROKERS)
        ]
        with running(members):
            yield ProcessBrokers(members)


@contextmanager
def _processes_with_objects(directory: Path, seed: int) -> Iterator[Brokers]:
    with Versitygw(directory / "versitygw") as store:
        store.create_bucket(BUCKET)
        with _processes(directory, seed, **settings_of(store)) as brokers:
            yield brokers
        count = sum(each.is_file() for each in store.objects.rglob("wal/**/*"))
        assert count, "no flush was large enough for an object"


KINDS_OF_BROKERS = {
    "embedded": _embedded,
    "processes": _processes,
    "objects": _processes_with_objects,
}


class Round(NamedTuple):
    """One cluster, and how long its brokers die."""

    brokers: Brokers
    directory: Path
    seed: int
    seconds: float

    @property
    def kills(self) -> int:
        return max(1, int(self.seconds / EVERY_S))


def _libraries(of: Round, say: Say) -> bool:
    torture = TurnsTorture(of.brokers, of.directory, say)
    outcome = torture.run(of.seed, of.seconds, harms_broker=True)
    print(told(outcome), flush=True)
    return not (outcome.report.violations or outcome.wrong or unexpected(outcome))


def _spark(of: Round, say: Say) -> bool:
    assert isinstance(of.brokers, ProcessBrokers), "Spark needs --brokers processes or objects"
    with (
        SparkDriver(of.directory / "old-driver") as old,
        SparkDriver(of.directory / "new-driver") as new,
    ):
        say(write_while_brokers_die(of.brokers, old, new, of.directory, kills=of.kills // 2))
    return True


def _tools(of: Round, say: Say) -> bool:
    did = copy_while_brokers_die(
        of.brokers, of.directory, of.seed, kills=of.kills, moves=1, records=COPIED_RECORDS
    )
    say(did)
    return True


def _programs(of: Round, say: Say) -> bool:
    program = PROGRAMS[of.seed % len(PROGRAMS)]
    say(f"{program.library} {program.version}")
    servers = ("--bootstrap-server", of.brokers.bootstrap_servers)
    with Killer(of.brokers) as killer:
        run = prove(program, of.directory, *servers, "--seconds", of.seconds, "--seed", of.seed)
        say(f"{run.line(program.name, of.seed)}, {killer.kills} kills of brokers")
    return run.code == PROVED


CLIENTS: dict[str, Callable[[Round, Say], bool]] = {
    "libraries": _libraries,
    "programs": _programs,
    "spark": _spark,
    "tools": _tools,
}
"""The function of each round; it returns False, or raises AssertionError, for a fault."""


def main() -> int:
    """Kill brokers of clusters; exit 0 if no round has found a fault."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture.soak_turns")
    parser.add_argument("--seconds", type=float, default=600, help="in which brokers are killed")
    parser.add_argument("--round", type=float, default=ROUND_S, help="seconds of one round")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 20))
    parser.add_argument("--brokers", choices=list(KINDS_OF_BROKERS), default="processes")
    parser.add_argument("--clients", choices=list(CLIENTS), default="libraries")
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
            turn = Round(brokers, directory, seed, min(left_s, arguments.round))
            if not CLIENTS[arguments.clients](turn, say):
                say(f"kept: {directory / 'history.jsonl'}")
                return 1
        shutil.rmtree(directory)
        left_s -= arguments.round
        seed += 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
