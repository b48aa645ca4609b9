"""Kafka Connect 4.3.0 in distributed mode: one worker as a process, with its REST API."""

from __future__ import annotations

import json
import signal
import subprocess
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError

from tests.counterparts.broker_process import HOST
from tests.counterparts.jars import connect_class_path
from tests.counterparts.java import java
from tests.counterparts.probe import free_port
from tests.counterparts.service import Service
from tests.http_client import urlopen

MAIN_CLASS = "org.apache.kafka.connect.cli.ConnectDistributed"
JVM_OPTIONS = ("-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
STOP_TIMEOUT_S = 60
REST_TIMEOUT_S = 90
"""The time limit of Connect itself for a request."""
SETTINGS = {
    "group.id": "connect",
    "exactly.once.source.support": "enabled",
    "config.storage.topic": "connect-configs",
    "offset.storage.topic": "connect-offsets",
    "status.storage.topic": "connect-status",
    "config.storage.replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "offset.storage.partitions": "3",
    "status.storage.replication.factor": "1",
    "status.storage.partitions": "1",
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    # By default Connect waits five minutes for a killed worker to return.
    "scheduled.rebalance.max.delay.ms": "0",
}
_LOGGING = """
appenders=console
appender.console.type=Console
appender.console.name=console
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=%d %p %c{1}: %m%n
rootLogger.level=INFO
rootLogger.appenderRef.console.ref=console
logger.quiet.name=org.apache.kafka.clients
logger.quiet.level=WARN
logger.configs.name=org.apache.kafka.common.config
logger.configs.level=WARN
"""


def started(
    main_class: str, directory: Path, settings: Mapping[str, str], output_path: Path
) -> subprocess.Popen[bytes]:
    """Start a Java process of Kafka Connect with ``settings`` as its properties file."""
    properties = directory / "worker.properties"
    properties.write_text("".join(f"{k}={v}\n" for k, v in settings.items()))
    logging = directory / "log4j2.properties"
    logging.write_text(_LOGGING)
    options = [*JVM_OPTIONS, f"-Dlog4j2.configurationFile={logging}"]
    command = [str(java()), *options, "-cp", connect_class_path(), main_class, str(properties)]
    with output_path.open("ab") as output:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )


class ConnectWorker(Service):
    """`with ConnectWorker(directory, servers) as worker:` a worker that is ready for connectors.

    ``servers`` is the Kafka cluster of the worker's own topics. ``settings`` replace SETTINGS.
    ``plugins`` are directories, each with the jars of a plugin that is not on the class path.
    """

    def __init__(
        self,
        directory: Path,
        servers: str,
        *,
        settings: Mapping[str, str] | None = None,
        plugins: Sequence[Path] = (),
    ) -> None:
        super().__init__(directory / "output.log")
        self.directory = directory
        self.url = f"http://{HOST}:{free_port()}"
        self._settings = {
            **SETTINGS,
            "bootstrap.servers": servers,
            "listeners": self.url,
            "plugin.path": str(directory / "plugins"),
            **(settings or {}),
        }
        self._plugins = plugins

    def launch(self) -> None:
        """Start the process, and return before it is ready."""
        self._link_plugins()
        self._process = started(MAIN_CLASS, self.directory, self._settings, self._output_path)

    def _link_plugins(self) -> None:
        """Make the directory of plugins, which has a link to each of them."""
        plugins = self.directory / "plugins"
        plugins.mkdir(parents=True, exist_ok=True)
        for each in self._plugins:
            link = plugins / each.name
            if not link.exists():
                link.symlink_to(each)

    def stop(self) -> int:
        """Send SIGTERM to the process; return its exit code."""
        assert self._process is not None, "not started"
        self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"the worker ignored SIGTERM: {self.output()}") from None

    # -- REST --------------------------------------------------------------------------------------

    def request(self, method: str, path: str, body: object = None) -> Any:
        """Return the response to a request as parsed JSON; raise HTTPError, URLError."""
        request = urllib.request.Request(
            f"{self.url}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urlopen(request, timeout=REST_TIMEOUT_S) as response:
            return json.loads(response.read() or b"null")

    def is_ready(self) -> bool:
        """Return whether the worker has read its topics and accepts requests."""
        try:
            return bool(self.request("GET", "/health")["status"] == "healthy")
        except (URLError, OSError):
            return False

    def configure(self, name: str, config: Mapping[str, str]) -> None:
        """Create a connector, or change its configuration."""
        try:
            self.request("PUT", f"/connectors/{name}/config", dict(config))
        except HTTPError as error:
            said = error.read().decode(errors="replace")
            raise AssertionError(f"connector {name} refused: {error.code} {said}") from error

    def states(self, name: str) -> list[str]:
        """Return the state of a connector, followed by the states of its tasks."""
        status = self.request("GET", f"/connectors/{name}/status")
        return [each["state"] for each in (status["connector"], *status["tasks"])]

    def all_run(self) -> bool:
        """Return whether connectors exist and they and their tasks run; each has at least one."""
        try:
            names = self.request("GET", "/connectors")
            found = [self.states(name) for name in names]
        except (URLError, OSError):
            return False
        return bool(found) and all(len(each) > 1 and {*each} == {"RUNNING"} for each in found)

    def is_at_work(self) -> bool:
        """Return whether the worker accepts requests, and all connectors run."""
        return self.is_ready() and self.all_run()

    def failures(self) -> list[str]:
        """Return the traces of connectors and tasks that have failed."""
        status = [
            self.request("GET", f"/connectors/{name}/status")
            for name in self.request("GET", "/connectors")
        ]
        parts = [part for each in status for part in (each["connector"], *each["tasks"])]
        return [each.get("trace", "") for each in parts if each["state"] == "FAILED"]
