"""Job and result that the benchmark and its Spark process exchange as JSON."""

from __future__ import annotations

import json
import statistics
from typing import NamedTuple


class Target(NamedTuple):
    """A broker to be measured."""

    servers: str
    pid: int


class Job(NamedTuple):
    """One row for one Spark process; the brokers have their turns in it, round by round."""

    kind: str
    variant: str
    cores: int
    partitions: int
    rounds: int
    warm_up_samples: int
    """Samples of a discarded round before the first; 0 for no such round."""
    samples: int
    """Samples in each round."""
    directory: str
    targets: dict[str, Target]

    def dump(self) -> str:
        """Return the job as a line of JSON."""
        return json.dumps(self._asdict())

    @classmethod
    def load(cls, text: str) -> Job:
        """Parse a job from the JSON of `dump`."""
        fields = json.loads(text)
        targets = {name: Target(*each) for name, each in fields.pop("targets").items()}
        return cls(**fields, targets=targets)


class Taken(NamedTuple):
    """One round on one broker: how long each of its samples took, and what they used."""

    times_s: list[float]
    rows: int
    """In each sample."""
    broker_cpu_s: float
    """CPU time of the broker, user and system, for all samples."""
    spark_cpu_s: float = 0.0
    """CPU time of Spark's JVM and Python processes for all samples; 0 where it is not measured."""


class SparkMeasurement(NamedTuple):
    """Result of all rounds of a row on one broker."""

    rate: float
    """Rows per second while a query works at them."""
    p50_s: float
    p95_s: float
    broker_cpu_s: float
    """Per sample."""
    samples: int
    row_cpu_s: float | None = None
    """CPU time of Spark and the broker for each row, or None where Spark's is not measured."""


def turns(names: list[str], rounds: int) -> list[tuple[int, str]]:
    """Return the rounds and brokers in order; the JVM gets faster, so no broker is always first."""
    return [
        (number, name)
        for number in range(1, rounds + 1)
        for name in (names if number % 2 else names[::-1])
    ]


def summarise(rounds: list[Taken]) -> SparkMeasurement:
    """Return the medians over all the samples of all rounds."""
    times = sorted(time_s for taken in rounds for time_s in taken.times_s)
    count = len(times)
    p50_s = statistics.median(times)
    cpu_s = sum(taken.broker_cpu_s for taken in rounds)
    p95_s = times[min(count - 1, count * 95 // 100)]
    spark_cpu_s = sum(taken.spark_cpu_s for taken in rounds)
    row_cpu_s = (spark_cpu_s + cpu_s) / (count * rounds[0].rows) if spark_cpu_s else None
    return SparkMeasurement(rounds[0].rows / p50_s, p50_s, p95_s, cpu_s / count, count, row_cpu_s)
