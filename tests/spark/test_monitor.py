"""Five metrics of each query on one endpoint, compared with librdkafka and the ledger.

One Spark runs each kind of exactly-once sink. Each query first finishes two batches, then pauses in
a third one, before its decision.
"""

from __future__ import annotations

import math
import urllib.request
from collections import defaultdict

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, IsolationLevel
from prometheus_client.parser import text_string_to_metric_families

from barnabas.spark_connector.ledger.ledger import Ledger
from barnabas.spark_connector.pipelines.preflight import cluster_of
from barnabas.spark_connector.pipelines.sink import Sink
from barnabas.spark_connector.settings.options import LEDGER_TOPIC
from tests.interop.administration import admin
from tests.interop.transactional import COMMITTED, read_with_confluent
from tests.products import for_the_night
from tests.spark.job import DATA_SOURCE, EXACT_SINKS, SINGLE, TWO_PHASE, Job
from tests.spark.judge import PARTITIONS, feed, log_ends, open_transactions
from tests.waiting import wait_until

BATCH = 100
PATIENCE_S = 240
PLACES = {SINGLE: "P1-before-end", TWO_PHASE: "C4-before", DATA_SOURCE: "C4-before"}
PREFIX = "barnabas_spark_"
ROWS, LAG = f"{PREFIX}rows_decided_total", f"{PREFIX}lag_records"
AGE = f"{PREFIX}oldest_transaction_age_seconds"
STEPS = ("decide_seconds", "commit_seconds")

pytestmark = pytest.mark.timeout(900)


def scraped(url):
    """Return the samples of all queries, by sink id and name."""
    with urllib.request.urlopen(url, timeout=60) as response:
        text = response.read().decode()
    found = defaultdict(dict)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            assert sample.labels["query"] == sample.labels["sink_id"]
            found[sample.labels["sink_id"]][sample.name] = sample.value
    return found


def rows_of_readers(job):
    found = read_with_confluent(job.servers, job.output, PARTITIONS, COMMITTED)
    return sum(map(len, found.values()))


def lag_of_the_group(job):
    ends = log_ends(
        job.servers,
        [(job.input, partition) for partition in range(PARTITIONS)],
        IsolationLevel.READ_COMMITTED,
    )
    # One of the paused transactions has offsets of the group.
    client = admin(job.servers)
    asked = client.list_consumer_group_offsets(
        [ConsumerGroupTopicPartitions(job.group)], require_stable=False
    )
    offsets = asked[job.group].result(PATIENCE_S).topic_partitions
    committed = {(each.topic, each.partition): each.offset for each in offsets}
    return sum(end - committed[place] for place, end in ends.items())


def entry_of(job):
    with cluster_of(Sink(sink_id=job.name, servers=job.servers)) as cluster:
        (entry,) = Ledger(cluster, LEDGER_TOPIC).glimpse(job.name)[0].values()
    return entry


@for_the_night(
    beside="tests/spark_connector/test_query_monitor.py::test_the_five_metrics_of_a_query"
)
def test_five_metrics_of_each_kind_of_query_on_one_endpoint(barnabas, driver, tmp_path):
    servers = barnabas.bootstrap_servers
    url = driver.monitor(servers)
    jobs = [
        Job(servers, kind, f"monitor-{kind}", str(tmp_path / kind), BATCH, is_endless=True)
        for kind in EXACT_SINKS
    ]
    for job in jobs:
        feed(job, range(2 * BATCH))
        driver.begin(job)

    def until(name, value):
        wait_until(
            lambda: [scraped(url)[job.name].get(name) for job in jobs] == [value] * len(jobs),
            lambda: dict(scraped(url)),
            seconds=PATIENCE_S,
            pause_s=0.2,
        )

    until(ROWS, 2 * BATCH)
    until(LAG, 0)
    until(AGE, 0)
    found = scraped(url)
    for job in jobs:
        samples, entry = found[job.name], entry_of(job)
        assert rows_of_readers(job) == 2 * BATCH
        assert sum(filter(None, map(entry.records_of, range(entry.batch_id + 1)))) == 2 * BATCH
        assert lag_of_the_group(job) == 0
        assert samples[f"{PREFIX}query_active"] == 1
        assert samples[f"{PREFIX}batches_decided_total"] == entry.batch_id + 1 == 2
        assert samples[f"{PREFIX}sink_seconds_count"] == 2
        assert open_transactions(barnabas, f"spark.{job.name}") == []
        # The entry of the second batch has the durations of the first one.
        expected = (entry.measured.decide_ms / 1000, entry.measured.commit_ms / 1000)
        measured = 1 if job.sink == DATA_SOURCE else 2
        within = sum(samples[f"{PREFIX}{step}_sum"] for step in STEPS)
        assert samples[f"{PREFIX}sink_seconds_sum"] > within
        for step, seconds in zip(STEPS, expected, strict=True):
            assert samples[f"{PREFIX}{step}_count"] == measured
            total = samples[f"{PREFIX}{step}_sum"]
            assert total > 0
            assert math.isclose(total, seconds) == (measured == 1)
            assert total >= seconds or math.isclose(total, seconds)

    # Each query pauses in its next batch, and reads no more input.
    for job in jobs:
        driver.arm(PLACES[job.sink])
        feed(job, range(2 * BATCH, 3 * BATCH))
        driver.pauses(job, PLACES[job.sink])
        feed(job, range(3 * BATCH, 4 * BATCH))
    until(LAG, 2 * BATCH)
    wait_until(lambda: all(scraped(url)[job.name][AGE] > 0 for job in jobs), seconds=PATIENCE_S)
    before = scraped(url)
    for job in jobs:
        assert before[job.name][ROWS] == rows_of_readers(job) == 2 * BATCH
        assert before[job.name][LAG] == lag_of_the_group(job)
        assert open_transactions(barnabas, f"spark.{job.name}")
    wait_until(
        lambda: all(scraped(url)[job.name][AGE] > before[job.name][AGE] for job in jobs),
        seconds=PATIENCE_S,
    )

    for job in jobs:
        driver.release(job)
    until(ROWS, 4 * BATCH)
    until(LAG, 0)
    until(AGE, 0)
    for job in jobs:
        assert rows_of_readers(job) == 4 * BATCH
        driver.stop(job)
    # An ended query is marked, and nothing is said of what only a running one can change.
    until(f"{PREFIX}query_active", 0)
    ended = scraped(url)
    for job in jobs:
        assert ended[job.name][ROWS] == 4 * BATCH
        assert not {AGE, LAG} & ended[job.name].keys()
