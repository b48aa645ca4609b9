"""The process that runs Spark for one row: a job on stdin, the measurements on the last line.

Spark has its own process, so that its CPU time and memory are separate from the brokers', and each
row gets a new one. The brokers take turns in it, and the first turn of each is discarded: the JVM
compiles then.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.spark_connector.session.spark_process import unix_sockets
from tests.bench.spark_job import Job, Taken, Target, turns
from tests.bench.spark_latency import WARM_UP_SHARE, RealTime, Triggers
from tests.bench.spark_sinks import measure_one_row, measure_read, measure_sink
from tests.counterparts.spark import spark_session
from tests.counterparts.usage import cpu_time
from tests.interop.administration import create

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def main() -> None:
    """Do the job."""
    job = Job.load(sys.stdin.read())
    # Spark as `barnabas.spark run` starts it.
    with unix_sockets() as settings:
        spark = spark_session(Path(job.directory), cores=job.cores, more=settings)
        results = measured(spark, job)
        spark.stop()
    print(json.dumps(results))


def measured(spark: SparkSession, job: Job) -> dict[str, list[Taken]]:
    """Return the rounds of each broker."""
    measure = MEASURES[job.kind]
    results: dict[str, list[Taken]] = {name: [] for name in job.targets}
    if job.warm_up_samples:
        short = job._replace(samples=job.warm_up_samples)
        for name, target in job.targets.items():
            measure(spark, short, target, f"{name}-0")
    for number, name in turns(list(job.targets), job.rounds):
        results[name].append(measure(spark, job, job.targets[name], f"{name}-{number}"))
    return results


def measure_triggers(spark: SparkSession, job: Job, target: Target, run: str) -> Taken:
    """Start a query, let it come to its speed, time some triggers."""
    triggers = Triggers(target.servers, _topics(job, target, run), job.partitions)
    is_stateful = job.variant == "stateful"
    query = triggers.start(spark, Path(job.directory) / run, stateful=is_stateful)
    return triggers.take(query, target.pid, job.samples)


def measure_real_time(spark: SparkSession, job: Job, target: Target, run: str) -> Taken:
    """Start a query in real-time mode, let it come to its speed, time some records."""
    real_time = RealTime(spark, target.servers, _topics(job, target, run))
    query = real_time.start(Path(job.directory) / run)
    try:
        real_time.take(query, 1)
        real_time.take(query, job.samples // WARM_UP_SHARE)
        before = cpu_time(target.pid).total_s
        times = real_time.take(query, job.samples)
        return Taken(times, 1, cpu_time(target.pid).total_s - before)
    finally:
        real_time.stop()
        query.stop()


def measure_sinks(spark: SparkSession, job: Job, target: Target, run: str) -> Taken:
    """Write generated rows with one sink, some micro-batches of them."""
    return measure_sink(spark, job, target, _topics(job, target, run)[1], run)


def measure_reads(spark: SparkSession, job: Job, target: Target, run: str) -> Taken:
    """Read a topic as a table, a few times."""
    return measure_read(spark, job, target, _topics(job, target, run)[0])


def measure_sink_rows(spark: SparkSession, job: Job, target: Target, run: str) -> Taken:
    """Write one row in each micro-batch with one sink."""
    return measure_one_row(spark, job, target, _topics(job, target, run), run)


def _topics(job: Job, target: Target, run: str) -> tuple[str, str]:
    names = tuple(f"bench-{job.kind}-{job.variant}-{run}-{end}" for end in ("in", "out"))
    for name in names:
        create(target.servers, name, partitions=job.partitions)
    return names[0], names[1]


MEASURES: dict[str, Callable[[SparkSession, Job, Target, str], Taken]] = {
    "trigger": measure_triggers,
    "real-time": measure_real_time,
    "read": measure_reads,
    "sink": measure_sinks,
    "sink-row": measure_sink_rows,
}

if __name__ == "__main__":
    main()
