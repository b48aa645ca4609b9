"""Whatever dies below a pipeline: one line with its name and the reason, and 1; then it goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from examples import spark_data
from tests.counterparts.spark import DAEMON
from tests.spark.command import start_command
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(900)
RECORDS = 1500
PATIENCE_S = 120
# A function in each row's way keeps a Python worker of Spark's busy.
SLOW = """
from barnabas.spark_connector import Pipeline, Sink, Source

def work(value):
    import time
    time.sleep(0.002)
    return value

def worked_on(payments):
    from pyspark.sql.functions import udf
    return payments.select(udf(work, "binary")("value").alias("value"))

pipeline = Pipeline(
    source=Source(topic="payments", options={{
        "maxOffsetsPerTrigger": 100,
        "kafka.default.api.timeout.ms": 6000, "kafka.request.timeout.ms": 5000}}),
    transform=worked_on,
    sink=Sink(sink_id="{name}", topic="{topic}", kind="{kind}",
              options={{}} if "{kind}" == "stock" else {{"kafka.delivery.timeout.ms": 4000}}),
)
"""
KINDS = ("two_phase", "single_transaction", "stock")


class Run:
    """One pipeline in a process that is about to lose something."""

    def __init__(self, directory: Path, servers: str, kind: str, topic: str, name: str) -> None:
        self._directory, self.name = directory, name
        (directory / "slow.py").write_text(SLOW.format(name=name, kind=kind, topic=topic))
        self._servers = servers
        self.process: subprocess.Popen[str]

    def start(self, *arguments: str) -> Iterator[dict[str, Any]]:
        """Start it; return an iterator over the batches it reports."""
        self.process = start_command(self._directory, "slow.py", self._servers, *arguments)
        assert self.process.stdout is not None
        return map(json.loads, self.process.stdout)

    def end(self) -> tuple[int, str]:
        """Return the exit code and what was printed on standard error."""
        try:
            _output, errors = self.process.communicate(timeout=PATIENCE_S)
        finally:
            self.process.kill()
        return self.process.returncode, errors


@pytest.fixture(scope="module")
def _payments(mortal):
    servers = mortal.bootstrap_servers
    spark_data.create_topics(servers, ["payments"], 2)
    spark_data.send(servers, spark_data.payments(RECORDS))


@pytest.fixture
def run(request, mortal, tmp_path, _payments):
    """Return what starts a pipeline of a kind over payments."""
    name = "".join(c if c.isalnum() else "-" for c in request.node.name).strip("-")
    servers = mortal.bootstrap_servers
    spark_data.create_topics(servers, [f"out-{name}"], 2)
    return Run(tmp_path, servers, request.param, f"out-{name}", name)


def java_of(driver: int) -> list[int]:
    return [pid for pid in children_of(driver) if "java" in command_of(pid)]


def workers_of(driver: int) -> list[int]:
    """Return the Python workers of a driver, without the daemons that fork them."""
    (java,) = java_of(driver)
    daemons = [pid for pid in children_of(java) if DAEMON in command_of(pid)]
    return [worker for daemon in daemons for worker in children_of(daemon)]


def children_of(parent: int) -> list[int]:
    found: list[int] = []
    for path in Path(f"/proc/{parent}/task").glob("*/children"):
        found += map(int, path.read_text().split())
    return found


def command_of(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")


def kill_java(run: Run) -> None:
    (java,) = java_of(run.process.pid)
    os.kill(java, signal.SIGKILL)


def kill_workers(run: Run) -> None:
    """Kill them until the pipeline ends: Spark replaces one that dies between two batches."""
    deadline = time.monotonic() + PATIENCE_S
    while run.process.poll() is None and time.monotonic() < deadline:
        with suppress(FileNotFoundError, ProcessLookupError, ValueError):  # It ends meanwhile.
            for worker in workers_of(run.process.pid):
                os.kill(worker, signal.SIGKILL)
        time.sleep(0.1)


def ended_by(run: Run, loss: Callable[[], None]) -> str:
    """Kill something after two batches; return the one line, without the pipeline's name."""
    batches = run.start()
    for _ in range(2):
        assert next(batches, None) is not None, run.end()
    loss()
    code, errors = run.end()
    assert code == 1, errors
    (line,) = errors.splitlines()
    return line.removeprefix(f"barnabas.spark: {run.name}: ")


def goes_on(run: Run) -> None:
    """Run it again to its end: no batch is left out."""
    batches = list(run.start("--once"))
    assert run.end() == (0, "")
    assert sum(batch["rows"] for batch in batches) > 0
    assert batches[-1]["lag"] == 0


@pytest.mark.parametrize("run", KINDS, indirect=True)
def test_the_java_process_is_killed(run):
    line = ended_by(run, partial(kill_java, run))
    assert line.startswith("Spark's Java process was killed by SIGKILL; start again")
    goes_on(run)


@pytest.mark.parametrize("run", KINDS[:1], indirect=True)
def test_the_python_workers_are_killed(run):
    line = ended_by(run, partial(kill_workers, run))
    assert line.startswith("a Python worker process died in the middle of a batch")


@pytest.mark.parametrize("run", KINDS[:1], indirect=True)
def test_the_driver_is_killed(run):
    """Nothing can be printed then; Java goes, too, and the next start goes on."""
    batches = run.start()
    next(batches)
    (java,) = java_of(run.process.pid)
    run.process.kill()
    assert run.end() == (-signal.SIGKILL, "")
    wait_until(lambda: not Path(f"/proc/{java}").exists(), "the end of Java")
    goes_on(run)
