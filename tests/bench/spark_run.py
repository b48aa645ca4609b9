"""Run the rows that need Spark, each in a process of its own, bounded in time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.bench.spark_job import Job, SparkMeasurement, Taken, Target, summarise
from tests.bench.spark_rows import SparkRow
from tests.checkout import PYTHONPATH, ROOT
from tests.counterparts.broker_process import BrokerProcess

TIMEOUT_S = 600
_WORKER = [sys.executable, "-m", "tests.bench.spark_worker"]


class WorkerFailed(Exception):
    """The process that runs Spark failed, or took too long; the message has its last output."""


class Effort(NamedTuple):
    """Repetition of the measurements of a kind of row."""

    rounds: int
    warm_up_samples: int
    samples: int


FULL = {
    "trigger": Effort(rounds=2, warm_up_samples=4, samples=12),
    # The JVM reaches its speed after about a thousand records: until then the first broker is
    # slowest.
    # A median of 250 records is 20 % up or down in the next round.
    "real-time": Effort(rounds=10, warm_up_samples=1000, samples=250),
    "read": Effort(rounds=3, warm_up_samples=2, samples=3),
    "sink": Effort(rounds=1, warm_up_samples=0, samples=5),
    "sink-row": Effort(rounds=2, warm_up_samples=4, samples=24),
}
QUICK = {
    "trigger": Effort(rounds=1, warm_up_samples=4, samples=4),
    "real-time": Effort(rounds=1, warm_up_samples=50, samples=100),
    "read": Effort(rounds=1, warm_up_samples=1, samples=1),
    "sink": Effort(rounds=1, warm_up_samples=0, samples=2),
    "sink-row": Effort(rounds=1, warm_up_samples=4, samples=8),
}


def run_spark(
    brokers: Mapping[str, BrokerProcess], rows: Sequence[SparkRow], *, quick: bool
) -> dict[tuple[str, str], SparkMeasurement]:
    """Return the result of each row, by broker and row."""
    results = {}
    for row in rows:
        print(f"  {row.title}: {', '.join(brokers)}", file=sys.stderr, flush=True)
        for name, rounds in run_row(measured_on(brokers, row), row, quick=quick).items():
            results[name, row.key] = summarise(rounds)
    return results


def measured_on(brokers: Mapping[str, BrokerProcess], row: SparkRow) -> dict[str, BrokerProcess]:
    """Return the brokers of a row: both, or one if it is compared with another row there."""
    chosen = dict(brokers)
    if not row.against_kafka and "barnabas" in chosen:
        return {"barnabas": chosen["barnabas"]}
    return chosen


def run_row(
    brokers: Mapping[str, BrokerProcess], row: SparkRow, *, quick: bool
) -> dict[str, list[Taken]]:
    """Run one row in a Spark process and return its rounds by broker."""
    effort = (QUICK if quick else FULL)[row.kind]
    targets = {name: Target(each.bootstrap_servers, each.pid) for name, each in brokers.items()}
    # The JVM may still be clearing up there itself.
    with tempfile.TemporaryDirectory(
        prefix="bench-spark-", ignore_cleanup_errors=True
    ) as directory:
        job = Job(row.kind, row.variant, row.cores, row.partitions, *effort, directory, targets)
        log = Path(directory) / "worker.log"
        output = run_worker(_WORKER, job.dump(), log, timeout_s=TIMEOUT_S)
    last = output.strip().rpartition("\n")[2]
    return {name: [Taken(*each) for each in rounds] for name, rounds in json.loads(last).items()}


def run_worker(command: Sequence[str], job: str, log: Path, *, timeout_s: float) -> str:
    """Run a process with the job on its stdin and return its stdout; end it when its time is up."""
    # Spark's own Python workers import barnabas.spark_connector too.
    environment = {**os.environ, "PYTHONPATH": PYTHONPATH}
    with log.open("wb") as errors:
        worker = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment,
            cwd=ROOT,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = worker.communicate(job, timeout_s)
        except BaseException as error:
            # The JVM is in its group.
            os.killpg(worker.pid, signal.SIGKILL)
            worker.communicate()
            if isinstance(error, subprocess.TimeoutExpired):
                raise WorkerFailed(f"Spark took more than {timeout_s} s: {_end(log)}") from None
            raise
    if worker.returncode:
        raise WorkerFailed(f"Spark failed: {_end(log)}")
    return output


def _end(log: Path) -> str:
    return log.read_text(errors="replace")[-4000:]
