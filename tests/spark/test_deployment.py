"""On a cluster: executors that are processes of their own and die, the command, and spark-submit.

`local-cluster` and a standalone master with two workers, on this machine.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import pytest

from barnabas.spark_connector.session.jars import spark_kafka_jars
from examples import spark_data
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.spark import QUICK_PYTHONPATH, quick_start
from tests.products import for_the_night
from tests.spark.cluster import spark_cluster
from tests.spark.command import start_command, submit, words_of
from tests.spark.conftest import SETTINGS
from tests.spark.movements import check_movements, committed
from tests.spark.sessions import command_of, executors_of, kill_session, session_members
from tests.waiting import wait_until

PAYMENTS, PER_BATCH = 2000, 500
HALF = PAYMENTS // 2
PATIENCE_S = 400
KINDS = ("single_transaction", "two_phase")
PIPELINES = """
from barnabas.spark import Pipeline, Sink, Source, run
from examples.spark_ledger import movements

def saved(rows, batch):
    return batch.write_parquet(rows, "{table}")

def ledger(kind, table=None):
    return Pipeline(
        source=Source(topic="{name}-in", options={{"maxOffsetsPerTrigger": {per_batch}}}),
        transform=movements,
        sink=Sink(sink_id=f"{name}-{{kind}}", topic=f"{name}-{{kind}}", kind=kind, table=table),
    )

single, two = ledger("single_transaction", saved), ledger("two_phase")

if __name__ == "__main__":
    run(single, two)
"""
pytestmark = [pytest.mark.timeout(1500), pytest.mark.slow]


class Lines:
    """The lines that a program prints about its batches."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.batches: list[dict] = []
        self.errors: list[str] = []
        self._threads = [
            threading.Thread(target=target, daemon=True)
            for target in (self._read_batches, self._read_errors)
        ]
        for each in self._threads:
            each.start()

    def _read_batches(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            # Under spark-submit a program's errors are on its standard output.
            if line.startswith("{"):
                self.batches.append(json.loads(line))
            else:
                self.errors.append(line.strip())

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        self.errors.extend(line.strip() for line in self.process.stderr)

    def wait(self, name: str, **wanted: object) -> None:
        """Wait until there was a batch of each kind of pipeline that is so."""

        def missing() -> set[str]:
            found = {
                each["pipeline"]
                for each in self.batches
                if all(each[key] == value for key, value in wanted.items())
            }
            return {f"{name}-{kind}" for kind in KINDS} - found

        def is_so() -> bool:
            assert self.process.poll() is None, self.errors[-20:]
            return not missing()

        wait_until(
            is_so,
            lambda: f"{wanted} of {missing()}; {self.batches}; {self.errors[-20:]}",
            seconds=PATIENCE_S,
        )

    def end(self) -> int:
        """Wait for the end of the program and of all that it has started; return its exit code."""
        code = self.process.wait(PATIENCE_S)
        for each in self._threads:
            each.join(PATIENCE_S)
        pid = self.process.pid
        wait_until(
            lambda: not session_members(pid), lambda: session_members(pid), seconds=PATIENCE_S
        )
        return code


@contextmanager
def running(process: subprocess.Popen[str]) -> Iterator[Lines]:
    # Leaving it closes its pipes.
    with process:
        try:
            yield Lines(process)
        finally:
            kill_session(process)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with BarnabasProcess(tmp_path_factory.mktemp("broker"), **SETTINGS) as broker:
        yield broker.bootstrap_servers


def send_payments(servers: str, name: str, first: int, end: int) -> None:
    """Send those with these numbers to the pipelines of a name."""
    payments = islice(spark_data.payments(end), first, None)
    spark_data.send(servers, (each._replace(topic=f"{name}-in") for each in payments))


def write_pipelines(directory: Path, servers: str, name: str, payments: int = PAYMENTS) -> str:
    """Write the file of two pipelines over ``payments`` payments; return its name."""
    topics = [f"{name}-in", *(f"{name}-{kind}" for kind in KINDS)]
    spark_data.create_topics(servers, topics, 2)
    send_payments(servers, name, 0, payments)
    text = PIPELINES.format(name=name, per_batch=PER_BATCH, table=directory / "table")
    (directory / "ledger.py").write_text(text)
    return "ledger.py"


def check(servers: str, name: str) -> None:
    for kind in KINDS:
        check_movements(committed(servers, f"{name}-{kind}"), PAYMENTS)


def kill_one(executors: Callable[[], list[int]]) -> None:
    """Kill one of two executors, of which a batch needs only the first."""
    wait_until(lambda: len(executors()) == 2, executors, seconds=PATIENCE_S)
    os.kill(executors()[0], signal.SIGKILL)


@for_the_night(
    beside="tests/interop/sink_cores/test_crashes.py"
    "::test_losing_and_zombie_tasks_are_invisible_and_block_no_reader"
)
def test_the_command_on_executors_of_which_one_dies(servers, tmp_path):
    file = write_pipelines(tmp_path, servers, "local-cluster")
    master = "local-cluster[2,1,1024]"
    with running(start_command(tmp_path, file, servers, master=master)) as lines:
        lines.wait("local-cluster", batch=0)
        kill_one(lambda: executors_of(lines.process.pid))
        lines.wait("local-cluster", lag=0)
        lines.process.send_signal(signal.SIGTERM)
        assert lines.end() == 0, lines.errors
    check(servers, "local-cluster")


@for_the_night(beside="tests/interop/sink_cores/test_crashes.py::test_a_crash_at_every_step")
def test_spark_submit_to_a_cluster_stopped_in_the_middle_and_an_executor_dies(servers, tmp_path):
    file = write_pipelines(tmp_path, servers, "submitted", HALF)
    with spark_cluster(tmp_path / "cluster") as cluster:
        settings = {
            **quick_start(),
            "spark.jars": ",".join(map(str, spark_kafka_jars())),
            "spark.cores.max": "4",
            "spark.executor.cores": "2",
            "spark.executor.memory": "512m",
            "spark.executorEnv.PYTHONPATH": QUICK_PYTHONPATH,
            "spark.ui.enabled": "false",
            "spark.log.level": "ERROR",
            "spark.sql.shuffle.partitions": "2",
        }
        options = ["--master", cluster.master, *words_of(settings)]
        arguments = ("--servers", servers, "--format", "json")
        with running(submit(tmp_path, options, file, *arguments)) as lines:
            lines.wait("submitted", batch=0)
            lines.process.send_signal(signal.SIGTERM)
            assert lines.end() == 128 + signal.SIGTERM
        # Of which one would be killed otherwise.
        wait_until(lambda: not cluster.executors(), cluster.executors, seconds=PATIENCE_S)
        # The quicker one may have written all that there was, and would have nothing to report.
        send_payments(servers, "submitted", HALF, PAYMENTS)
        with running(submit(tmp_path, options, file, *arguments)) as lines:
            # A batch that was cut off is written first.
            wait_until(lambda: len(lines.batches) > 0, lambda: lines.errors, seconds=PATIENCE_S)
            kill_one(cluster.executors)
            lines.wait("submitted", lag=0)
            os.kill(program_of(lines.process.pid, file), signal.SIGTERM)
            assert lines.end() == 0, lines.errors
    check(servers, "submitted")


@for_the_night(beside="tests/interop/sink_cores/test_crashes.py::test_a_crash_at_every_step")
def test_the_java_process_of_spark_submit_is_killed(servers, tmp_path):
    """The whole driver dies without a line, and no process continues."""
    file = write_pipelines(tmp_path, servers, "killed")
    jars = ",".join(map(str, spark_kafka_jars()))
    options = ["--master", "local[2]", "--jars", jars, *words_of(quick_start())]
    arguments = ("--servers", servers, "--format", "json")
    with running(submit(tmp_path, options, file, *arguments)) as lines:
        lines.wait("killed", batch=0)
        lines.process.kill()
        assert lines.end() == -signal.SIGKILL
    with running(submit(tmp_path, options, file, *arguments, "--once")) as lines:
        assert lines.end() == 0, lines.errors
    check(servers, "killed")


def program_of(submitted: int, file: str) -> int:
    """Return the Python that spark-submit has started."""
    words = {pid: command_of(pid).split(b"\0") for pid in session_members(submitted)}
    (found,) = [pid for pid, each in words.items() if each[1:2] and each[1].endswith(file.encode())]
    return found


@for_the_night(
    beside="tests/spark/test_failures.py::test_invalid_arguments_end_the_command_with_one_line"
)
@pytest.mark.parametrize(
    ("options", "arguments", "code", "says"),
    [
        (
            ["--master", "local[1]"],
            ["--servers", "{servers}"],
            1,
            "refused-two_phase: Spark has no Kafka connector: give spark-submit the option --jars",
        ),
        (
            ["--master", "local[1]"],
            ["--master", "local[2]"],
            2,
            "--master, --packages, --conf and --ui are for spark-submit to say here",
        ),
        (
            ["--master", "spark://127.0.0.1:1", "--deploy-mode", "cluster"],
            [],
            1,
            "Cluster deploy mode is currently not supported for python applications on standalone",
        ),
    ],
    ids=["without-jars", "settings-in-the-wrong-place", "cluster-mode"],
)
def test_missing_or_unsupported_spark_submit_options_are_refused(
    servers, tmp_path, options, arguments, code, says
):
    file = write_pipelines(tmp_path, servers, "refused", 0)
    given = [each.format(servers=servers) for each in arguments]
    with running(submit(tmp_path, options, file, *given)) as lines:
        assert lines.end() == code
    assert any(says in line for line in lines.errors), lines.errors
