"""A Spark cluster of its own processes, with workers that take themselves for different machines.

Spark starts a copy of a slow task only on another host, so `local-cluster` never does.
"""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.counterparts.jars import spark_jars
from tests.counterparts.java import java, java_home
from tests.counterparts.probe import free_port
from tests.counterparts.spark import class_path, quick_java
from tests.spark.judge import until
from tests.spark.sessions import executors_of, kill_session

HOSTS = ("127.0.0.1", "127.0.0.2")
CORES_PER_HOST = 4
MEMORY_PER_HOST = "1g"
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.minTaskRuntime": "1s",
    "spark.speculation.quantile": "0.5",
}
"""Settings of a driver that starts a copy of a task once half of its stage is done, and a second
old."""


class SparkCluster(NamedTuple):
    """A cluster that runs."""

    master: str
    """The URL of the master for drivers."""
    processes: list[subprocess.Popen[bytes]]

    def executors(self) -> list[int]:
        """Return the executors of all drivers."""
        return [pid for each in self.processes for pid in executors_of(each.pid)]


@contextmanager
def spark_cluster(directory: Path) -> Iterator[SparkCluster]:
    """Run a master and a worker on each of two hosts."""
    directory.mkdir()
    port = free_port()
    master = f"spark://{HOSTS[0]}:{port}"
    cluster = SparkCluster(master, [])
    with ExitStack() as running:

        def start(role: str, host: str, *arguments: str) -> None:
            process = _start(directory, role, host, "--host", host, "--webui-port", "0", *arguments)
            running.callback(kill_session, process)
            cluster.processes.append(process)

        start("Master", HOSTS[0], "--port", str(port))
        # Workers that do not find it at once try again many seconds later.
        until(lambda: _listens(port), True, f"{directory} has the log")
        for host in HOSTS:
            room = ("--cores", str(CORES_PER_HOST), "--memory", MEMORY_PER_HOST)
            start("Worker", host, *room, "--work-dir", str(directory / host), master)
        yield cluster


def _start(directory: Path, role: str, host: str, *arguments: str) -> subprocess.Popen[bytes]:
    jars = spark_jars()
    environment = {
        **os.environ,
        "JAVA_HOME": str(java_home()),
        "SPARK_HOME": str(jars.parent),
        "SPARK_LOCAL_IP": host,
        "SPARK_LOCAL_DIRS": str(directory / "local"),
        "SPARK_SCALA_VERSION": "2.13",  # As its own start script says; otherwise it guesses.
    }
    main = f"org.apache.spark.deploy.{role.lower()}.{role}"
    with (directory / f"{role}-{host}.log").open("ab") as output:
        return subprocess.Popen(
            [str(java()), *quick_java(), "-cp", class_path(), main, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environment,
            cwd=directory,
            start_new_session=True,
        )


def _listens(port: int) -> bool:
    try:
        socket.create_connection((HOSTS[0], port)).close()
    except OSError:
        return False
    return True
