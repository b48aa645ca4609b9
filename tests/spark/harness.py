"""Spark drivers as processes: start, let pause at a place, kill -9, start again."""

from __future__ import annotations

import json
import os
import select
import shlex
import signal
import subprocess
import sys
import time
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from barnabas.spark_connector.failpoints import VARIABLE
from tests.checkout import ROOT
from tests.counterparts.spark import QUICK_PYTHONPATH
from tests.spark.job import Job
from tests.spark.sessions import (
    command_of,
    executors_of,
    kill_session,
    parent_of,
    session_members,
)

PATIENCE_S = 240
LOOK_S = 0.02
# More slots than there are processors, since tasks that pause somewhere take one each.
ONE_PROCESS = "local[16,4]"
WITH_EXECUTORS = "local-cluster[2,4,1024]"


class DriverDied(Exception):
    """The driver ended where it should not; the message has its last output."""


class SparkDriver:
    """One Spark driver; `directory` keeps what it prints, and the places that are armed in it."""

    def __init__(
        self,
        directory: Path,
        master: str = ONE_PROCESS,
        python: str | Path = sys.executable,
        **settings: str,
    ) -> None:
        self._directory = directory
        self._python = str(python)
        self._master = master
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        self._paused: dict[str, Path] = {}
        """The sign that a query pauses somewhere, by the query's name."""
        self.failpoints = directory / "failpoints"
        self.failpoints.mkdir(parents=True)
        # What is killed does not clear up behind itself.
        self._temporary_files = directory / "temporary"
        self._temporary_files.mkdir()
        self.start()

    # -- life --------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the process; Spark gets ready meanwhile."""
        environment = {
            **os.environ,
            VARIABLE: str(self.failpoints),
            "PYTHONPATH": QUICK_PYTHONPATH,
            "TMPDIR": str(self._temporary_files),
            "PYSPARK_SUBMIT_ARGS": shlex.join(self._submit_arguments()),
            "JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={self._temporary_files}",
        }
        with self._output_path.open("ab") as output:
            self._process = subprocess.Popen(
                [self._python, "-m", "tests.spark.driver", str(self._directory), self._master],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                env=environment,
                cwd=ROOT,
                # All that it starts is killed with it.
                start_new_session=True,
            )
        self._is_ready = False

    def kill(self) -> None:
        """kill -9 for Python, the JVM and its workers, none of which can do anything more."""
        process = self._running
        kill_session(process)
        process.stdin.close()
        process.stdout.close()

    def kill_java(self) -> None:
        """kill -9 for the JVM alone; the Python driver lives on."""
        (java,) = [
            pid
            for pid in session_members(self._running.pid)
            if parent_of(pid) == self._running.pid and b"java" in command_of(pid)
        ]
        os.kill(java, signal.SIGKILL)

    def restart(self) -> None:
        """Kill it and start another one; nothing is armed."""
        self.kill()
        for each in self.failpoints.iterdir():
            each.unlink()
        self._paused.clear()
        self.start()

    def output(self, *, limit: int = 6000) -> str:
        """Return the end of what it printed."""
        return self._output_path.read_text(errors="replace")[-limit:]

    def workers(self) -> list[int]:
        """Return the Python workers that Spark has started, without the daemon they come from."""
        found = []
        for pid in session_members(self._running.pid):
            parent = parent_of(pid)
            if b"pyspark" in command_of(pid) and parent and b"pyspark" in command_of(parent):
                found.append(pid)
        return found

    def executors(self) -> list[int]:
        """Return Spark's executors, where they are processes of their own."""
        return executors_of(self._running.pid)

    # -- queries -----------------------------------------------------------------------------------

    def run(self, job: Job) -> None:
        """Run a query to the end of its input."""
        self.begin(job)
        self.finish(job)

    def begin(self, job: Job) -> None:
        """Start a query and leave it alone."""
        self._ask("start", job.as_json())

    def begin_until(self, job: Job, place: str) -> None:
        """Start a query and let it pause where it first comes to a place."""
        self.arm(place)
        self.begin(job)
        self.pauses(job, place)

    def pauses(self, job: Job, place: str) -> None:
        """Wait until a running query pauses at a place that is armed."""
        self._paused[job.name] = self.wait_for(place)

    def finish(self, job: Job) -> None:
        """Wait for the end of the query, which must be a good one."""
        error = self.end(job)
        if error is not None:
            raise DriverDied(f"{job.name}: {error}")

    def end(self, job: Job) -> str | None:
        """Wait for the end of the query; return what it failed of."""
        deadline = time.monotonic() + PATIENCE_S
        while (state := self._ask("look", job.name))["active"]:
            if time.monotonic() > deadline:
                raise DriverDied(f"{job.name} does not end: {self.output()}")
            time.sleep(LOOK_S)
        error: str | None = state["error"]
        return error

    def sentence(self, job: Job) -> str:
        """Wait for the failure of the query; return the sentence for the user."""
        error = self.end(job)
        assert error is not None, f"{job.name} went on as if nothing had happened"
        sentence: str = self._ask("look", job.name)["sentence"]
        return sentence

    def is_active(self, job: Job) -> bool:
        """Whether the query runs."""
        active: bool = self._ask("look", job.name)["active"]
        return active

    def stop(self, job: Job) -> None:
        """Stop the query; it may continue until it is released."""
        self._ask("stop", job.name)

    def monitor(self, servers: str) -> str:
        """Start to serve metrics of the queries; return their address."""
        url: str = self._ask("monitor", servers)["url"]
        return url

    # -- places ------------------------------------------------------------------------------------

    def arm(self, place: str, effect: str = "pause") -> None:
        """Make the first process that reaches this place die, raise or pause there."""
        unready = self.failpoints / f".{place}"
        unready.write_text(effect)
        unready.rename(self.failpoints / place)

    def kill_workers_of(self, job: Job, place: str) -> None:
        """Run a query, and kill each Python worker that comes to a place, until the query ends."""
        armed = self.failpoints / place
        self.arm(place, "kill")
        self.begin(job)
        deadline = time.monotonic() + PATIENCE_S
        while self.is_active(job):
            if time.monotonic() > deadline:
                raise DriverDied(f"{job.name} does not end: {self.output()}")
            if not armed.exists():
                self.arm(place, "kill")
            time.sleep(LOOK_S)
        armed.unlink(missing_ok=True)

    def wait_for(self, place: str) -> Path:
        """Wait until a process has reached the place; return its sign."""
        deadline = time.monotonic() + PATIENCE_S
        while not (found := self._newly_reached(place)):
            if self._running.poll() is not None:
                raise DriverDied(f"exit code {self._running.returncode}: {self.output()}")
            if time.monotonic() > deadline:
                raise DriverDied(f"{place} is not reached: {self.output()}")
            time.sleep(LOOK_S)
        return found[0]

    def _newly_reached(self, place: str) -> list[Path]:
        known = self._paused.values()
        reached = self.failpoints.glob(f"{place}.*")
        return [each for each in reached if each not in known]

    def release(self, job: Job) -> None:
        """Continue a paused query."""
        self._paused.pop(job.name).unlink()

    # -- plumbing ----------------------------------------------------------------------------------

    def _submit_arguments(self) -> list[str]:
        settings = {
            # A task that was given up lives on while it pauses, as it may on a machine far away.
            "spark.python.task.killTimeout": "1h",
            f"spark.executorEnv.{VARIABLE}": str(self.failpoints),
            "spark.executorEnv.PYTHONPATH": QUICK_PYTHONPATH,
            **self._settings,
        }
        words = [("--conf", f"{key}={value}") for key, value in settings.items()]
        return [*chain.from_iterable(words), "pyspark-shell"]

    @property
    def _output_path(self) -> Path:
        return self._directory / "driver.log"

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process

    def _ask(self, *command: object) -> Any:
        if not self._is_ready:
            self._answer()
            self._is_ready = True
        assert self._running.stdin is not None
        self._running.stdin.write(json.dumps(command).encode() + b"\n")
        self._running.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        answers = self._running.stdout
        assert answers is not None
        ready, _, _ = select.select([answers], [], [], PATIENCE_S)
        line = answers.readline() if ready else b""
        if not line:
            raise DriverDied(f"no answer: {self.output()}")
        return json.loads(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.kill()
