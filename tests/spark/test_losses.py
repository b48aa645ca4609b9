"""Losses of a broker, a topic and a checkpoint: the sentence of each sink, and how it continues.

All on the Spark that files share. test_failures.py has the same with the command, which starts a
Spark for each loss.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.counterparts.broker_process import BrokerProcess
from tests.interop.administration import TIMEOUT_S, admin
from tests.products import for_the_night
from tests.spark.job import DATA_SOURCE, EXACT_SINKS, SINGLE, TWO_PHASE, Job
from tests.spark.judge import feed, judge, until

pytestmark = pytest.mark.timeout(900)

BATCH = 100
PLACES = {SINGLE: "P1-before-end", TWO_PHASE: "C4-before", DATA_SOURCE: "C4-before"}
"""Places where a batch is written, and the sink still needs the broker for it."""
IMPATIENT = {"kafka.delivery.timeout.ms": "12000", "kafka.request.timeout.ms": "6000"}
"""Options of sinks that are to miss a broker."""

Jobs = Callable[[BrokerProcess], list[Job]]


@pytest.fixture
def jobs(request: pytest.FixtureRequest, tmp_path: Path) -> Jobs:
    """Return a function that makes a job of each sink on a broker."""
    name = re.sub(r"[\W_]+", "-", request.node.name).strip("-")

    def make(broker: BrokerProcess) -> list[Job]:
        return [
            Job(broker.bootstrap_servers, sink, f"{name}-{sink}", str(tmp_path / sink), BATCH)
            for sink in EXACT_SINKS
        ]

    return make


@for_the_night(
    beside="tests/spark_connector/test_sender.py::test_sender_gives_up_after_its_timeout"
)
def test_broker_unavailable_beyond_the_timeout_ends_the_query(jobs, mortal, driver):
    impatient = [replace(job, options=IMPATIENT) for job in jobs(mortal)]
    for job in impatient:
        feed(job, range(BATCH))
        driver.begin_until(job, PLACES[job.sink])
    mortal.kill()
    try:
        for job in impatient:
            driver.release(job)
        sentences = [driver.sentence(job) for job in impatient]
    finally:
        mortal.restart()
    for job, sentence in zip(impatient, sentences, strict=True):
        expected = f"did not succeed within 12 seconds at {job.servers}, the last problem was"
        assert expected in sentence
    patient = jobs(mortal)
    for job in patient:
        driver.run(job)
    for job in patient:
        judge([mortal], job, BATCH)


def delete(servers: str, topic: str) -> None:
    client = admin(servers)
    client.delete_topics([topic])[topic].result(TIMEOUT_S)
    until(lambda: topic in client.list_topics(timeout=TIMEOUT_S).topics, False, "deleted")


@for_the_night(
    beside="tests/spark_connector/test_incarnation.py"
    "::test_a_topic_that_was_deleted_between_two_batches_is_missed"
)
def test_deleted_output_topic_ends_the_query(jobs, barnabas, driver):
    running = jobs(barnabas)
    for job in running:
        feed(job, range(2 * BATCH))
        driver.begin_until(job, PLACES[job.sink])
        delete(job.servers, job.output)
    # Together, since each task is tried four times, and each time waits for the topic.
    for job in running:
        driver.release(job)
    for job in running:
        expected = f"The topic {job.output} does not exist at {job.servers}"
        assert driver.sentence(job).startswith(expected)


@for_the_night(
    beside="tests/interop/sink_cores/test_crashes.py"
    "::test_losing_and_zombie_tasks_are_invisible_and_block_no_reader"
)
def test_python_workers_killed_at_each_attempt_end_the_query(jobs, barnabas, driver):
    (job,) = [each for each in jobs(barnabas) if each.sink == TWO_PHASE]
    feed(job, range(BATCH))
    driver.kill_workers_of(job, "W1-middle")
    expected = "a Python worker process died in the middle of a batch"
    assert driver.sentence(job).startswith(expected)
    driver.run(job)
    judge([barnabas], job, BATCH)


@for_the_night(
    beside="tests/interop/sink_cores/test_refusals.py"
    "::test_another_query_is_refused_and_what_was_decided_stays"
)
def test_other_checkpoint_ends_the_query_before_it_writes(jobs, barnabas, driver):
    for job in jobs(barnabas):
        feed(job, range(BATCH))
        driver.run(job)
        other = replace(job, checkpoint=f"{job.checkpoint}-other")
        driver.begin(other)
        expected = f"The sink {job.name} was written by another query ("
        assert driver.sentence(other).startswith(expected)
        judge([barnabas], job, BATCH)
