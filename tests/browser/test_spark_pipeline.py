"""A pipeline of Spark runs, and the console shows how far it is."""

from __future__ import annotations

import contextlib
import re
import urllib.request

import pytest
from playwright.sync_api import expect
from prometheus_client.parser import text_string_to_metric_families

from tests.browser.console_broker import ConsoleBroker
from tests.browser.looking import axe_check, cell, row_of
from tests.interop.administration import create
from tests.interop.clients import kafka
from tests.products import for_the_night
from tests.spark.command import start_command
from tests.spark.conftest import SETTINGS
from tests.spark.movements import committed
from tests.spark.sessions import kill_session
from tests.waiting import wait_until

PIPELINE = """
from barnabas.spark import Pipeline, Sink, Source

money = Pipeline(
    source=Source(topic="payments"),
    transform=lambda rows: rows.select("value"),
    sink=Sink(sink_id="money", topic="movements", kind="two_phase"))
"""
QUERIES = "Spark's queries"
START_MS = 300_000
"""Maximum time until Spark's first batch is decided."""

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def spark_broker(tmp_path):
    with ConsoleBroker(tmp_path / "broker", **SETTINGS) as running:
        create(running.bootstrap_servers, "payments", partitions=2)
        create(running.bootstrap_servers, "movements", partitions=2)
        yield running


@contextlib.contextmanager
def running_pipeline(broker, directory):
    (directory / "pipeline.py").write_text(PIPELINE)
    arguments = ("pipeline.py", broker.bootstrap_servers, "--metrics-port", "0")
    with start_command(directory, *arguments) as process:
        try:
            yield process
        finally:
            kill_session(process)


def send(broker, numbers):
    producer = kafka.KafkaProducer(bootstrap_servers=broker.bootstrap_servers, acks="all")
    for number in numbers:
        producer.send("payments", b"%d" % number, partition=number % 2)
    producer.close()


def metrics_of(process):
    """Return the metrics of the one pipeline, once they count all that was sent."""
    (url,) = re.findall(
        r"metrics are at (http://127.0.0.1:\d+/metrics)$", process.stderr.readline()
    )
    found = {}

    def are_complete():
        with urllib.request.urlopen(url, timeout=60) as response:
            families = text_string_to_metric_families(response.read().decode())
        samples = [sample for family in families for sample in family.samples]
        assert all(each.labels == {"query": "money", "sink_id": "money"} for each in samples)
        found.update((each.name, each.value) for each in samples)
        return found.get("barnabas_spark_rows_decided_total") == 30

    wait_until(are_complete, lambda: found)
    return found


@for_the_night(
    beside="tests/browser/test_coordinator_screens.py"
    "::test_pipelines_how_far_is_each_and_what_does_the_ledger_say"
)
def test_how_far_a_pipeline_of_spark_is(page, spark_broker, tmp_path):
    """The page is open before the first batch, and is never loaded again."""
    send(spark_broker, range(10))
    page.goto(f"{spark_broker.url}/pipelines")
    expect(page.get_by_text("No Spark sink has decided a batch yet.")).to_be_visible()
    with running_pipeline(spark_broker, tmp_path) as process:
        reads = "payments: 0 can be read now"
        rows = page.get_by_role("region", name=QUERIES, exact=True).locator("tbody tr")
        expect(rows).to_have_count(1, timeout=START_MS)
        row = row_of(page, QUERIES, "money")
        # Spark divides what was sent into batches as it comes to read.
        decided = cell(row, QUERIES, "Last decided batch")
        expect(decided).to_contain_text(re.compile(r"\d"), timeout=START_MS)
        expect(cell(row, QUERIES, "Sink id")).to_have_text("money")
        expect(cell(row, QUERIES, "Writes")).to_contain_text("movements")
        expect(cell(row, QUERIES, "Reads")).to_contain_text(reads)
        before = decided.inner_text()
        send(spark_broker, range(10, 30))
        expect(decided).not_to_have_text(before, timeout=START_MS)
        expect(cell(row, QUERIES, "Reads")).to_contain_text(reads)
        durations = (cell(row, QUERIES, "Decide"), cell(row, QUERIES, "Commit"))
        for duration in durations:
            expect(duration).to_have_text(re.compile(r"\d ms"))
        assert process.poll() is None
        axe_check(page)
        metrics = metrics_of(process)
        assert metrics["barnabas_spark_rows_decided_total"] == 30
        assert metrics["barnabas_spark_lag_records"] == 0
        assert metrics["barnabas_spark_oldest_transaction_age_seconds"] == 0
        for step in ("decide", "commit"):
            assert metrics[f"barnabas_spark_{step}_seconds_count"] >= 2
            assert metrics[f"barnabas_spark_{step}_seconds_sum"] > 0
        # Spark's own source is in no group: it is seen by what it fetches.
        page.get_by_role("navigation", name="Screens").get_by_role("link", name="Clients").click()
        readers = page.get_by_role("region", name="Readers", exact=True)
        expect(readers.get_by_role("link", name="payments-0").first).to_be_visible()
    output = committed(spark_broker.bootstrap_servers, "movements")
    assert sorted(map(int, output)) == list(range(30))
    wait_until(lambda: process.poll() is not None)
