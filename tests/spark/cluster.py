"""A Spark cluster of its own processes, with workers that take themselves for different machines.

Spark starts a copy of a slow task only on another host, so `local-cluster` never does.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.counterparts.jars import spark_jars
from tests.counterparts.java import java, java_home
from tests.counterparts.probe import free_port
from tests.counterparts.spark import QUICK_START
from tests.spark.sessions import kill_session

HOSTS = ("127.0.0.1", "127.0.0.2")
PATIENCE_S = 60
CORES_PER_HOST = 4
MEMORY_PER_HOST = "1g"
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.minTaskRuntime": "1s",
    "spark.speculation.quantile": "0.5",
    "spark.executor.extraJavaOptions": " ".join(QUICK_START),
}
"""What a driver sets to have a copy of a task once half of its stage is done, and a second old."""


class SparkCluster:
    """`with SparkCluster(directory) as cluster:` a master and a worker on each of two hosts."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self._directory = directory
        self._port = free_port()
        self._running = ExitStack()

    @property
    def master(self) -> str:
        """Where drivers find it; it may take a moment, and they wait."""
        return f"spark://{HOSTS[0]}:{self._port}"

    def __enter__(self) -> Self:
        here = ("--host", HOSTS[0], "--port", str(self._port), "--webui-port", "0")
        self._start("Master", HOSTS[0], *here)
        self._wait_for_master()
        for host in HOSTS:
            room = ("--cores", str(CORES_PER_HOST), "--memory", MEMORY_PER_HOST)
            files = ("--work-dir", str(self._directory / host))
            there = ("--host", host, "--webui-port", "0")
            self._start("Worker", host, *there, *room, *files, self.master)
        return self

    def _wait_for_master(self) -> None:
        """Workers that do not find it at once try again many seconds later."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            with suppress(OSError), socket.create_connection((HOSTS[0], self._port)):
                return
            time.sleep(0.02)
        raise TimeoutError((self._directory / f"Master-{HOSTS[0]}.log").read_text())

    def _start(self, role: str, host: str, *arguments: str) -> None:
        jars = spark_jars()
        environment = {
            **os.environ,
            "JAVA_HOME": str(java_home()),
            "SPARK_HOME": str(jars.parent),
            "SPARK_LOCAL_IP": host,
            "SPARK_LOCAL_DIRS": str(self._directory / "local"),
            "SPARK_SCALA_VERSION": "2.13",  # As its own start script says; otherwise it guesses.
        }
        main = f"org.apache.spark.deploy.{role.lower()}.{role}"
        command = [str(java()), *QUICK_START, "-cp", f"{jars}/*", main, *arguments]
        with (self._directory / f"{role}-{host}.log").open("ab") as output:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment,
                cwd=self._directory,
                start_new_session=True,
            )
        self._running.callback(kill_session, process)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._running.close()
