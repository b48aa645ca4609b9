"""The contents of the batches' lines, with a real Spark, for each kind of sink and each output
mode.

The same rows go through all pipelines: each is named after its operation and its kind.
"""

from __future__ import annotations

import json
import signal
import urllib.request
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from barnabas.spark_connector.ledger.ledger import Ledger
from barnabas.spark_connector.pipelines.preflight import cluster_of
from barnabas.spark_connector.pipelines.sink import Sink
from barnabas.spark_connector.session.cache import cache_directory
from barnabas.spark_connector.settings.options import LEDGER_TOPIC
from examples import spark_data
from tests.products import for_the_night
from tests.spark.command import PATIENT_VIEW, start_command
from tests.spark.packages import avro_numbers, package
from tests.spark.test_pipeline import committed

INPUT, EVENTS = "lines-in", "lines-events"
RECORDS = 400
PER_BATCH = 300
ACCOUNTS = 10
PATIENCE_S = 300
PIPELINES = f"""
from barnabas.spark_connector import Pipeline, Sink, Source

def doubled(payments):
    return payments.selectExpr("explode(array(value, value)) as value")

def joined(payments):
    number = "get_json_object(cast(value as string), '$.id')"
    left = payments.selectExpr(f"{{number}} as id", "value")
    right = payments.selectExpr(f"{{number}} as other")
    return left.join(right, left.id == right.other).select("value")

def counted(payments):
    account = "get_json_object(cast(value as string), '$.from') % {ACCOUNTS}"
    counts = payments.selectExpr(f"cast({{account}} as int) as account").groupBy("account").count()
    return counts.selectExpr("string(account) as key", "to_json(struct(account, count)) as value")

def per_hour(events):
    from pyspark.sql import functions as F
    times = events.selectExpr("timestamp_seconds(cast(cast(value as string) as long)) as at")
    times = times.withWatermark("at", "1 minute").groupBy(F.window("at", "1 hour")).count()
    return times.selectExpr("to_json(struct(unix_seconds(window.start) as hour, count)) as value")

def in_avro(payments):
    from pyspark.sql.avro.functions import to_avro
    number = "cast(get_json_object(cast(value as string), '$.id') as int) as number"
    return payments.selectExpr(number).select(to_avro("number", '"int"').alias("value"))

MORE = {{"counted": {{"output_mode": "update"}}, "whole": {{"output_mode": "complete"}}}}
SOURCES = {{"hours": Source(topic="{EVENTS}", options={{"maxOffsetsPerTrigger": 2}})}}
PAYMENTS = Source(topic="{INPUT}", options={{"maxOffsetsPerTrigger": {PER_BATCH}}})
TRANSFORMS = {{"doubled": doubled, "joined": joined, "counted": counted, "whole": counted,
              "hours": per_hour, "avro": in_avro}}

for name in NAMES:
    what, kind = name.split("-")
    globals()[name.replace("-", "_")] = Pipeline(
        source=SOURCES.get(what, PAYMENTS),
        transform=TRANSFORMS[what],
        sink=Sink(sink_id=name, topic=f"out-{{name}}", kind=kind, **MORE.get(what, {{}})))
print("a file that prints something")
"""
FIRST = (
    *(f"{what}-{kind}" for what in ("doubled", "joined") for kind in ("two_phase", "stock")),
    *(f"counted-{kind}" for kind in ("auto", "single_transaction")),
    *(f"{what}-two_phase" for what in ("whole", "hours", "avro")),
)
SECOND = (
    *(f"{what}-single_transaction" for what in ("doubled", "joined")),
    *(f"counted-{kind}" for kind in ("two_phase", "stock")),
)
"""Pipelines that one command runs together."""


def kinds_of(what: str) -> list[str]:
    """Return the kinds of the pipelines of an operation."""
    return [each.partition("-")[2] for each in (*FIRST, *SECOND) if each.startswith(f"{what}-")]


# Two a batch. The watermark of the batch before decides which rows are late, so 20 is.
SECONDS = (0, 10, 100_000, 100_010, 100_011, 100_012, 20, 100_020)
pytestmark = pytest.mark.timeout(900)


class Batches:
    """Lines of all pipelines; a command runs at the first use of one of its pipelines."""

    def __init__(self, directory: Path, servers: str) -> None:
        self.directory = directory
        self.servers = servers
        self._found: dict[str, list[dict[str, Any]]] = {}

    def __getitem__(self, name: str) -> list[dict[str, Any]]:
        if name not in self._found:
            self._run(FIRST if name in FIRST else SECOND)
        return self._found[name]

    def write(self, names: Sequence[str]) -> str:
        """Write a file of pipelines; return its name."""
        text = f"{PATIENT_VIEW}NAMES = {names!r}\n{PIPELINES}"
        (self.directory / "lines.py").write_text(text)
        return "lines.py"

    def _run(self, names: Sequence[str]) -> None:
        spark_data.create_topics(self.servers, [f"out-{name}" for name in names], 2)
        # Spark adds fetched packages beside the connector's jars.
        cache = f"spark.jars.ivy={cache_directory() / 'ivy'}"
        more = ("--packages", package("spark-avro"), "--conf", cache) if names is FIRST else ()
        file = self.write(names)
        with start_command(self.directory, file, self.servers, "--once", *more) as process:
            try:
                output, errors = process.communicate(timeout=PATIENCE_S)
            finally:
                process.kill()
        assert (process.returncode, errors) == (0, "a file that prints something\n")
        for line in output.splitlines():
            batch = json.loads(line)
            self._found.setdefault(batch["pipeline"], []).append(batch)


@pytest.fixture(scope="module")
def batches(barnabas, tmp_path_factory):
    """Return the reports of all pipelines, by their names."""
    servers = barnabas.bootstrap_servers
    spark_data.create_topics(servers, [INPUT], 2)
    spark_data.create_topics(servers, [EVENTS], 1)
    rows = (each._replace(topic=INPUT) for each in spark_data.payments(RECORDS))
    spark_data.send(servers, rows)
    producer = confluent_kafka.Producer({"bootstrap.servers": servers})
    for second in SECONDS:
        producer.produce(EVENTS, b"%d" % second)
    assert producer.flush(PATIENCE_S) == 0
    return Batches(tmp_path_factory.mktemp("lines"), servers)


def total(batches, name):
    return sum(batch[name] for batch in batches)


@for_the_night(beside="tests/spark_connector/test_progress.py::test_rows_are_those_of_the_result")
@pytest.mark.parametrize("kind", kinds_of("joined"))
def test_rows_are_those_of_the_result_and_not_those_that_were_read(batches, barnabas, kind):
    doubled, joined = batches[f"doubled-{kind}"], batches[f"joined-{kind}"]
    assert len(doubled) == len(joined) == 2
    assert (total(doubled, "rows"), total(doubled, "scanned_rows")) == (2 * RECORDS, RECORDS)
    # One source, which the query reads twice.
    assert (total(joined, "rows"), total(joined, "scanned_rows")) == (RECORDS, 2 * RECORDS)
    for each in (doubled, joined):
        assert each[-1]["lag"] == 0
        assert each[0]["lag"] == each[1]["scanned_rows"] // (2 if each is joined else 1)
        written = committed(barnabas.bootstrap_servers, f"out-{each[0]['pipeline']}")
        assert len(written) == total(each, "rows")
        for batch in each:
            durations = (batch["decide_ms"], batch["commit_ms"])
            assert durations == (None, None) if kind == "stock" else min(durations) > 0


@for_the_night(
    beside="tests/spark_connector/test_progress.py"
    "::test_state_and_watermark_are_in_the_line_where_the_query_has_them"
)
@pytest.mark.parametrize(
    "names",
    [FIRST, SECOND],
    ids=["first", "second"],
)
def test_state_and_watermark_are_null_where_there_are_none(batches, names):
    for name in names:
        has_state = not name.startswith(("doubled", "avro"))
        for batch in batches[name]:
            assert (batch["state_rows"] is not None) == has_state
            assert (batch["late_rows"] is not None) == has_state
            assert (batch["watermark"] is not None) == name.startswith("hours")


@for_the_night(
    beside="tests/spark_connector/test_progress.py"
    "::test_state_and_watermark_are_in_the_line_where_the_query_has_them"
)
def test_late_rows_and_the_watermark_they_come_behind(batches, barnabas):
    hours = batches["hours-two_phase"]
    assert total(hours, "late_rows") == 1
    assert total(hours, "scanned_rows") == len(SECONDS)
    assert hours[-1]["watermark"] == "1970-01-02T03:46:00.000Z"  # A minute before the last event.
    assert hours[-1]["state_rows"] == 1
    written = committed(barnabas.bootstrap_servers, "out-hours-two_phase")
    assert written == [{"hour": 0, "count": 2}]
    assert total(hours, "rows") == 1


@for_the_night(
    beside="tests/spark_connector/test_broker_view.py"
    "::test_the_rows_of_a_batch_are_those_that_were_decided"
)
@pytest.mark.parametrize("kind", kinds_of("counted"))
def test_results_that_change_are_written_by_each_kind_and_each_once(batches, barnabas, kind):
    counted = batches[f"counted-{kind}"]
    written = committed(barnabas.bootstrap_servers, f"out-counted-{kind}")
    assert len(written) == total(counted, "rows")
    expected = Counter(each.value["from"] % ACCOUNTS for each in spark_data.payments(RECORDS))
    latest = {each["account"]: each["count"] for each in written}
    assert latest == dict(expected)
    # Each is written with each batch that it is in, with another value.
    assert len({(each["account"], each["count"]) for each in written}) == len(written)
    with cluster_of(Sink(sink_id="any", servers=barnabas.bootstrap_servers)) as cluster:
        entries = list(Ledger(cluster, LEDGER_TOPIC).queries(f"counted-{kind}").values())
    in_transactions_of_tasks = [bool(each.transactions) for each in entries]
    assert in_transactions_of_tasks == {"stock": [], "single_transaction": [False]}.get(
        kind, [True]
    )


@for_the_night(
    beside="tests/spark_connector/test_broker_view.py"
    "::test_the_rows_of_a_batch_are_those_that_were_decided"
)
def test_whole_results_are_written_with_each_batch(batches, barnabas):
    whole = batches["whole-two_phase"]
    assert [batch["rows"] for batch in whole] == [ACCOUNTS] * 2
    written = committed(barnabas.bootstrap_servers, "out-whole-two_phase")
    assert len(written) == 2 * ACCOUNTS


@for_the_night(
    beside="tests/spark/test_schema_registry.py"
    "::test_records_of_two_schemas_and_tombstones_are_decoded"
)
def test_rows_in_the_format_of_a_fetched_package(batches, barnabas):
    assert total(batches["avro-two_phase"], "rows") == RECORDS
    found = avro_numbers(barnabas.bootstrap_servers, "out-avro-two_phase", 2, RECORDS)
    assert found == list(range(RECORDS))


# ------------------------------------------------------------------------------- repeated batches

PLACES = {
    ("two_phase", "append"): "C5-after",
    ("two_phase", "update"): "C5-after",
    ("single_transaction", "append"): "P1-after-end",
}
"""The place where each fails after its batch was decided, by kind and output mode."""
COPIES = """
from barnabas.spark_connector import Pipeline, Sink, Source

def copied(payments):
    return payments.selectExpr("explode(array_repeat(value, {copies})) as value")

pipeline = Pipeline(
    source=Source(topic="{source}", options={{"maxOffsetsPerTrigger": {per_batch}}}),
    transform=copied,
    sink=Sink(sink_id="{name}", topic="out-{name}", kind="{kind}", output_mode="{mode}"),
)
"""


@for_the_night(
    beside="tests/spark_connector/test_broker_view.py"
    "::test_the_rows_of_a_batch_are_those_that_were_decided"
)
@pytest.mark.usefixtures("batches")  # Since there is something to read then.
@pytest.mark.parametrize(("kind", "mode"), PLACES)
def test_a_batch_that_was_decided_and_is_repeated_says_what_was_decided(
    barnabas, tmp_path, kind, mode
):
    """Report the decided rows and a lag, even if the transform has changed since then."""
    servers, name, place = barnabas.bootstrap_servers, f"repeated-{kind}-{mode}", PLACES[kind, mode]
    spark_data.create_topics(servers, [f"out-{name}"], 2)

    def run(copies, **armed):
        known = {"name": name, "kind": kind, "mode": mode, "source": INPUT}
        text = COPIES.format(copies=copies, per_batch=PER_BATCH, **known)
        (tmp_path / "copies.py").write_text(PATIENT_VIEW + text)
        with start_command(tmp_path, "copies.py", servers, "--once", **armed) as process:
            try:
                output, errors = process.communicate(timeout=PATIENCE_S)
            finally:
                process.kill()
        return process.returncode, list(map(json.loads, output.splitlines())), errors

    failpoints = tmp_path / "failpoints"
    failpoints.mkdir()
    (failpoints / place).write_text("raise")
    code, reported, errors = run(2, BARNABAS_SPARK_FAILPOINTS=str(failpoints))
    assert (code, reported) == (1, [])
    assert f"the failpoint {place} was armed" in errors
    code, reported, errors = run(5)
    assert (code, errors) == (0, "")
    first, second = reported
    assert (first["batch"], second["batch"]) == (0, 1)
    read = total(reported, "lag") + second["lag"]
    written = committed(servers, f"out-{name}")
    assert first["rows"] + second["rows"] == len(written)
    assert first["rows"] == 2 * (RECORDS - first["lag"])
    assert second["rows"] == 5 * first["lag"]
    assert read == first["lag"] > 0


# -------------------------------------------------------------------------------------------- UI


@for_the_night(beside="tests/spark/test_pipeline.py::test_the_examples_write_each_result_once")
def test_sparks_ui_is_where_the_command_says(batches):
    arguments = ("--pipeline", "doubled-stock", "--ui", "--conf", "spark.ui.port=0")
    assert batches["doubled-stock"]
    file = batches.write(FIRST)
    with start_command(batches.directory, file, batches.servers, *arguments) as process:
        try:
            assert process.stderr.readline() == "a file that prints something\n"
            line = process.stderr.readline()
            address = line.strip().removeprefix("Spark's UI is at ")
            assert address.startswith("http://"), line
            with urllib.request.urlopen(f"{address}/jobs/", timeout=PATIENCE_S) as page:
                assert b"Spark Jobs" in page.read()
            process.send_signal(signal.SIGTERM)
            output, errors = process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()
    assert (process.returncode, output, errors) == (0, "", "")
