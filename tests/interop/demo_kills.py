"""A pipeline whose driver, Python workers and broker are killed at random until its input is done.

What is killed in which batch, and how far into it, comes from the seed alone; how far the pipeline
then is, is the machine's choice.
"""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.counterparts.broker_process import BrokerProcess
from tests.spark.harness import SparkDriver
from tests.spark.job import Job

DRIVER, WORKERS, BROKER = KINDS = ("driver", "workers", "broker")
BETWEEN_KILLS = 4
"""Batches, on average."""
LOOK_S = 0.02
PATIENCE_S = 900
FIRST_GUESS_S = 3.0


class Kill(NamedTuple):
    """The target of a kill, its batch, and the moment as a share of the batch's duration."""

    batch: int
    kind: str
    part: float


def plan(seed: int, batches: int) -> list[Kill]:
    """Draw the kills; the kinds take turns in a random order, so that none is left out."""
    random = Random(seed)
    count = max(len(KINDS), batches // BETWEEN_KILLS)
    kinds: list[str] = []
    while len(kinds) < count:
        kinds += random.sample(KINDS, len(KINDS))
    chosen = sorted(random.sample(range(batches), min(count, batches)))
    return [Kill(batch, kind, random.random()) for batch, kind in zip(chosen, kinds, strict=False)]


class Show:
    """One sink's run through all the kills."""

    def __init__(
        self, driver: SparkDriver, broker: BrokerProcess, job: Job, say: Callable[[str], None]
    ) -> None:
        self._driver = driver
        self._broker = broker
        self._job = job
        self._say = say
        self._checkpoint = Path(job.checkpoint)
        self._batch_s = FIRST_GUESS_S
        self.failures = 0
        """The number of times that the query ended with an error and was restarted."""

    def run(self, kills: list[Kill]) -> float:
        """Run to the end of the input; return for how long."""
        started = time.monotonic()
        self._driver.begin(self._job)
        for kill in kills:
            self._wait_for_batch(kill.batch)
            time.sleep(kill.part * self._batch_s)
            self._strike(kill)
        while not self._is_done():
            time.sleep(LOOK_S)
        return time.monotonic() - started

    def _strike(self, kill: Kill) -> None:
        self._say(f"kill -9 in batch {kill.batch}: {kill.kind}")
        if kill.kind == BROKER:
            self._broker.kill()
            self._broker.restart()
        elif kill.kind == WORKERS:
            for pid in self._driver.workers():
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
        else:
            self._driver.restart()
            self._driver.begin(self._job)

    def _wait_for_batch(self, batch: int) -> None:
        """Wait until a batch has started, and learn how long one takes."""
        deadline = time.monotonic() + PATIENCE_S
        began = time.monotonic()
        before = self._begun()
        while (begun := self._begun()) < batch and not self._is_done():
            assert time.monotonic() < deadline, f"batch {batch} does not begin"
            time.sleep(LOOK_S)
        if begun > before + 1:
            self._batch_s = (time.monotonic() - began) / (begun - before)

    def _begun(self) -> int:
        """Return the last batch that Spark has planned."""
        names = [each.name for each in self._checkpoint.glob("offsets/*")]
        return max((int(name) for name in names if name.isdigit()), default=-1)

    def _is_done(self) -> bool:
        """Whether the query has ended well; one that failed is started again, as users do."""
        if self._driver.is_active(self._job):
            return False
        error = self._driver.end(self._job)
        if error is None:
            return True
        self.failures += 1
        self._say(f"the query failed and is started again: {_sentence(error)}")
        self._driver.begin(self._job)
        return False


def batches_of(records: int, per_trigger: int) -> int:
    """Return in how many batches the input is read."""
    return math.ceil(records / per_trigger)


def _sentence(error: str) -> str:
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    telling = [
        line for line in lines if "barnabas.spark_connector.errors" in line or "Error:" in line
    ]
    return (telling or lines or [""])[0][:160]
