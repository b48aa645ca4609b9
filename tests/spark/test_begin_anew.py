"""Topics and brokers that are recreated under a pipeline, and copies of its checkpoint, with Spark.

The command is used for exit codes and messages; one Spark plays the rest for all sinks.
tests/spark_connector/test_incarnation.py has all cases, without Spark.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest
from confluent_kafka import IsolationLevel

from barnabas.spark_connector.cluster.cluster import Cluster
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.spark import QUICK_PYTHONPATH, quick_launcher, quick_start
from tests.interop.administration import TIMEOUT_S, admin, create
from tests.products import for_the_night
from tests.spark.conftest import SETTINGS
from tests.spark.job import DATA_SOURCE, EXACT_SINKS, SINGLE, TWO_PHASE, Job
from tests.spark.judge import PARTITIONS, feed, log_ends, results, until

pytestmark = [pytest.mark.timeout(1500)]

BATCH = 100
AFTER_A_BATCH = {SINGLE: "P1-after-end", TWO_PHASE: "C5-after", DATA_SOURCE: "C5-after"}
PIPELINES = """
from barnabas.spark_connector import Pipeline, Sink, Source

def pipeline(kind):
    return Pipeline(
        source=Source(topic="anew-in", options={"maxOffsetsPerTrigger": 100}),
        transform=lambda records: records.select("key", "value"),
        sink=Sink(sink_id=f"anew-{kind}", topic="anew-out", kind=kind),
    )

single, two = pipeline("single_transaction"), pipeline("two_phase")
"""


def job_of(broker, tmp_path, sink, name):
    return Job(broker.bootstrap_servers, sink, f"{name}-{sink}", str(tmp_path / name / sink), BATCH)


def id_of(servers, topic):
    with Cluster(servers, client_id="test", timeout_ms=10_000) as cluster:
        return cluster.home([topic]).topics[topic]


def cluster_id_of(servers):
    with Cluster(servers, client_id="test", timeout_ms=10_000) as cluster:
        return cluster.home([]).cluster_id


def recreate(servers, topic):
    client = admin(servers)
    client.delete_topics([topic])[topic].result(TIMEOUT_S)
    until(lambda: topic in client.list_topics(timeout=TIMEOUT_S).topics, False, "deleted")
    create(servers, topic, partitions=PARTITIONS)


def output_ends(job):
    """Return the ends with open and aborted records: no sink may write anything."""
    places = [(job.output, partition) for partition in range(PARTITIONS)]
    return log_ends(job.servers, places, IsolationLevel.READ_UNCOMMITTED)


def is_about(sentence, topic, before, now):
    return f"topic {topic} had the id {before} and has {now}," in sentence


@for_the_night(
    beside="tests/spark_connector/test_incarnation.py"
    "::test_a_topic_that_was_made_again_between_two_runs_is_refused"
)
@pytest.mark.parametrize("sink", EXACT_SINKS)
def test_topics_made_again_between_two_runs(barnabas, driver, tmp_path, sink):
    job = job_of(barnabas, tmp_path, sink, "between-runs")
    feed(job, range(BATCH))
    driver.run(job)
    before = id_of(job.servers, job.input)
    recreate(job.servers, job.input)
    feed(job, range(3 * BATCH))
    ends = output_ends(job)
    driver.begin(job)
    sentence = driver.sentence(job)
    assert is_about(sentence, job.input, before, id_of(job.servers, job.input)), sentence
    assert output_ends(job) == ends
    accepted = replace(job, options={"acceptIds": id_of(job.servers, job.input)})
    driver.run(accepted)
    before = id_of(job.servers, job.output)
    recreate(job.servers, job.output)
    feed(job, range(BATCH))
    ends = output_ends(job)
    driver.begin(job)
    sentence = driver.sentence(job)
    assert is_about(sentence, job.output, before, id_of(job.servers, job.output)), sentence
    assert output_ends(job) == ends


@for_the_night(
    beside="tests/spark_connector/test_incarnation.py"
    "::test_a_topic_that_is_made_again_between_two_batches_is_refused"
)
@pytest.mark.parametrize("sink", EXACT_SINKS)
def test_the_source_made_again_between_two_batches(barnabas, driver, tmp_path, sink):
    job = job_of(barnabas, tmp_path, sink, "between-batches")
    feed(job, range(3 * BATCH))
    driver.begin_until(job, AFTER_A_BATCH[sink])
    ends = output_ends(job)
    before = id_of(job.servers, job.input)
    recreate(job.servers, job.input)
    feed(job, range(6 * BATCH))
    driver.release(job)
    sentence = driver.sentence(job)
    assert is_about(sentence, job.input, before, id_of(job.servers, job.input)), sentence
    assert output_ends(job) == ends


@for_the_night(
    beside="tests/spark_connector/test_incarnation.py"
    "::test_a_topic_that_is_made_again_in_the_middle_of_a_batch_is_refused"
)
def test_refused_commit_is_reported_regardless_of_the_abort(barnabas, driver, tmp_path):
    """Spark aborts what was not committed, and would say only that writing failed."""
    job = job_of(barnabas, tmp_path, DATA_SOURCE, "commit-refuses")
    feed(job, range(BATCH))
    driver.run(job)
    feed(job, range(BATCH, 2 * BATCH))
    driver.begin_until(job, "W1")
    before = id_of(job.servers, job.input)
    recreate(job.servers, job.input)
    driver.release(job)
    sentence = driver.sentence(job)
    assert is_about(sentence, job.input, before, id_of(job.servers, job.input)), sentence
    assert results(job, BATCH).is_exact


@for_the_night(
    beside="tests/spark_connector/test_incarnation.py"
    "::test_old_copy_of_the_checkpoint_is_refused_and_fences_no_driver"
)
@pytest.mark.parametrize("sink", EXACT_SINKS)
def test_an_old_copy_of_the_checkpoint(barnabas, driver, tmp_path, sink):
    job = job_of(barnabas, tmp_path, sink, "copied")
    feed(job, range(BATCH))
    driver.run(job)
    copy = replace(job, checkpoint=f"{job.checkpoint}-copy")
    shutil.copytree(job.checkpoint, copy.checkpoint)
    feed(job, range(BATCH, 3 * BATCH))
    driver.run(job)
    feed(job, range(3 * BATCH, 4 * BATCH))
    ends = output_ends(job)
    driver.begin(copy)
    sentence = driver.sentence(copy)
    assert f"{copy.checkpoint} ends before batch 2, the last" in sentence
    assert output_ends(job) == ends
    driver.run(job)
    assert results(job, 4 * BATCH).is_exact


# -------------------------------------------------------------------------------------- the command


def run(directory, servers, *arguments):
    """Return the exit code and what is on standard error."""
    file = directory / "my_pipelines.py"
    file.write_text(PIPELINES)
    command = [sys.executable, "-m", "barnabas.spark", "run", str(file), "--once", *arguments]
    command += ["--servers", servers, "--master", "local[2]"]
    for key, value in quick_start().items():
        command += ["--conf", f"{key}={value}"]
    own = {"PYTHONPATH": QUICK_PYTHONPATH, "TMPDIR": str(directory), **quick_launcher()}
    environment = {**os.environ, **own}
    done = subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, check=False,
        timeout=600,
    )  # fmt: skip
    return done.returncode, done.stderr


@for_the_night(
    beside="tests/spark_connector/test_incarnation.py::test_recreated_broker_is_refused_by_both_its_ids"
)
def test_a_broker_whose_directory_was_emptied(tmp_path):
    with BarnabasProcess(tmp_path / "broker", **SETTINGS) as broker:
        servers = broker.bootstrap_servers
        job = Job(servers, SINGLE, "anew", "")
        feed(job, range(BATCH))
        assert run(tmp_path, servers) == (0, "")
        before = cluster_id_of(servers)
        broker.kill()
        shutil.rmtree(broker.data_directory)
        broker.restart()
        feed(job, range(3 * BATCH))
        ids = f"the source's cluster had the id {before} and has {cluster_id_of(servers)}"
        for name, kind in (("single", "single_transaction"), ("two", "two_phase")):
            code, said = run(tmp_path, servers, "--pipeline", name)
            assert (code, said.count("\n")) == (1, 1), said
            assert said.startswith(f"barnabas.spark: anew-{kind}: The checkpoint of"), said
            assert ids in said
        assert set(output_ends(job).values()) == {0}
        # The advice of the message: a new checkpoint.
        shutil.rmtree(tmp_path / "checkpoints")
        assert run(tmp_path, servers, "--pipeline", "two") == (0, "")
