"""The command with a real Spark: the examples, SIGTERM in the middle of them, and failures."""

from __future__ import annotations

import json
import signal
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from examples import spark_data
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.broker_process import BrokerProcess
from tests.products import for_the_night
from tests.spark.command import start_command
from tests.spark.conftest import SETTINGS
from tests.spark.movements import check_movements, committed

RECORDS = 2000
PATIENCE_S = 600
# The ledger in batches so small that a signal comes between the first and the last.
PIPELINES = """
from dataclasses import replace
from examples import spark_enrichment, spark_ledger, spark_sessions

ledger = spark_ledger.pipeline
ledger = replace(ledger, source=replace(ledger.source, options={"maxOffsetsPerTrigger": 500}))
enrichment = spark_enrichment.pipeline
enrichment = replace(enrichment, sink=replace(enrichment.sink, kind="single_transaction"))
sessions = spark_sessions.pipeline
"""
FAILING = """
from dataclasses import replace
from barnabas.spark_connector import Pipeline, Sink, Source

def judge(value):
    raise ValueError("nothing is right for this one")

def judged(payments):
    from pyspark.sql.functions import udf
    return payments.select(udf(judge)("value").alias("value"))

failing = Pipeline(
    source=Source(topic="payments"),
    transform=judged,
    sink=Sink(sink_id="failing", topic="movements"),
)
columns = replace(failing, transform=lambda payments: payments.drop("topic"),
                  sink=replace(failing.sink, sink_id="columns"))
"""
pytestmark = [pytest.mark.timeout(1500), pytest.mark.slow]


class Command:
    """`python -m barnabas.spark run`, in a directory of its own."""

    def __init__(self, directory: Path, servers: str) -> None:
        self._directory = directory
        self.servers = servers

    def start(self, text: str, *arguments: str) -> subprocess.Popen[str]:
        (self._directory / "my_pipeline.py").write_text(text)
        return start_command(self._directory, "my_pipeline.py", self.servers, *arguments)

    def sockets(self) -> list[Path]:
        """Return the Unix sockets of Spark's Python workers that there are now."""
        return list(self._directory.glob("barnabas-*/.*.sock"))

    def run(self, text: str, *arguments: str) -> tuple[int, list[str], list[str]]:
        """Return the exit code and the lines on standard output and standard error."""
        with self.start(text, *arguments) as process:
            try:
                output, errors = process.communicate(timeout=PATIENCE_S)
            finally:
                process.kill()
        return process.returncode, output.splitlines(), errors.splitlines()


@contextmanager
def filled(broker: BrokerProcess) -> Iterator[Command]:
    """Give the command a broker with the input of all examples."""
    servers = broker.bootstrap_servers
    for name, generator in spark_data.GENERATORS.items():
        spark_data.create_topics(servers, spark_data.TOPICS[name], 2)
        spark_data.send(servers, generator(RECORDS))
    # Names of Unix sockets are short: pytest's own directories may be too long for them.
    with tempfile.TemporaryDirectory(prefix="pipelines-") as directory:
        yield Command(Path(directory), servers)


@pytest.fixture(scope="module")
def command(barnabas):
    with filled(barnabas) as command:
        yield command


@pytest.fixture
def examples(tmp_path):
    """Return a command and its broker, on which no example has run."""
    with BarnabasProcess(tmp_path / "broker", **SETTINGS) as broker, filled(broker) as command:
        yield command


def test_the_examples_write_each_result_once(examples, say):
    finish(examples, [], say)


@for_the_night(beside="tests/spark/test_pipeline.py::test_the_examples_write_each_result_once")
def test_the_examples_stopped_in_the_middle_and_finished(examples, say):
    finish(examples, stop_in_the_middle(examples), say)


def finish(command: Command, batches: list[dict], say) -> None:
    """Run all examples to their end, and demand each result once."""
    code, output, errors = command.run(PIPELINES, "--once")
    assert (code, errors) == (0, [])
    batches += [json.loads(line) for line in output]
    by_pipeline = defaultdict(list)
    for batch in batches:
        by_pipeline[batch["pipeline"]].append(batch)
    say({name: len(each) for name, each in by_pipeline.items()})
    for name, rows in (("ledger", RECORDS), ("enrichment", RECORDS), ("sessions", RECORDS + 1)):
        each = by_pipeline[name]
        # A batch that was cut off by the stop is reported by the run that has finished it.
        numbers = [batch["batch"] for batch in each]
        assert sorted(set(numbers)) == numbers
        assert each[-1]["lag"] == 0
        assert sum(batch["scanned_rows"] for batch in each) <= rows
    check_movements(committed(command.servers, "movements"), RECORDS)
    check_orders(committed(command.servers, "orders-by-country"))
    check_sessions(committed(command.servers, "sessions"))


def stop_in_the_middle(command: Command) -> list[dict]:
    """Start the ledger, end it after its first batch; return the batches."""
    batches = []
    with command.start(PIPELINES, "--pipeline", "ledger") as process:
        try:
            for line in process.stdout:
                batches.append(json.loads(line))
                break
            assert command.sockets(), "Spark's workers are reached over TCP"
            process.send_signal(signal.SIGTERM)
            output, errors = process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()
    assert (process.returncode, errors) == (0, "")
    assert not command.sockets()
    return batches + [json.loads(line) for line in output.splitlines()]


def check_orders(orders: list[dict]) -> None:
    expected = []
    for record in spark_data.orders(RECORDS):
        if record.topic == "orders":
            country = spark_data.COUNTRIES[record.value["customer"] % len(spark_data.COUNTRIES)]
            expected.append((record.value["order"], country))
    assert sorted((each["order"], each["country"]) for each in orders) == sorted(expected)


def check_sessions(sessions: list[dict]) -> None:
    visits: dict[tuple[str, int], list[int]] = defaultdict(list)
    for record in spark_data.clicks(RECORDS):
        second = record.value["second"]
        visits[record.key, (second - spark_data.FIRST_CLICK_S) // 3600].append(second)
    expected = [
        (user, min(seconds), max(seconds) + 1800, len(seconds))
        for (user, _hour), seconds in visits.items()
        if user != "nobody"  # Whose session is still open.
    ]
    found = [(each["user"], each["began"], each["ended"], each["clicks"]) for each in sessions]
    assert sorted(found) == sorted(expected)


@for_the_night(
    beside="tests/real/spark_connector/test_failures.py"
    "::test_exception_of_a_transform_is_reported_with_its_line"
)
def test_a_failure_is_one_line_and_1(command):
    code, output, errors = command.run(FAILING, "--once", "--pipeline", "failing")
    assert (code, output) == (1, [])
    (line,) = errors
    assert line.startswith(
        "barnabas.spark: failing: transform raised ValueError: nothing is right for this one"
        " (my_pipeline.py, line 6) (Spark's log: "
    )
    log = Path(line.rpartition("(Spark's log: ")[2].removesuffix(")"))
    assert "ValueError" in log.read_text()


@for_the_night(
    beside="tests/spark/test_failures.py::test_invalid_arguments_end_the_command_with_one_line"
)
def test_wrong_columns_are_one_line_and_2(command):
    # What the source has and the sink does not: offset, timestampType.
    code, output, errors = command.run(FAILING, "--once", "--pipeline", "columns")
    assert (code, output) == (2, [])
    (line,) = errors
    assert line.startswith("barnabas.spark: columns: the sink has no column 'offset'")


def test_a_topic_that_is_not_there_is_said_before_spark_starts(command):
    text = FAILING.replace('"movements"', '"nowhere"')
    code, output, errors = command.run(text, "--once", "--pipeline", "failing")
    assert (code, output) == (1, [])
    (line,) = errors
    assert line.startswith("barnabas.spark: failing: The pipeline writes the topic nowhere, which")
    assert line.endswith("with `barnabas topics create nowhere --partitions 4`.")
