"""MirrorMaker 2 of Apache Kafka 4.3.0 as its own program, `connect-mirror-maker`: one process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.counterparts.broker_process import HOST
from tests.counterparts.connect import started
from tests.counterparts.probe import free_port
from tests.counterparts.service import Service

MAIN_CLASS = "org.apache.kafka.connect.mirror.MirrorMaker"
FLOW = "source->target"
SETTINGS = {
    "clusters": "source, target",
    f"{FLOW}.enabled": "true",
    "target->source.enabled": "false",
    # A flow with heartbeats only would have workers of its own.
    "target->source.emit.heartbeats.enabled": "false",
    # Without this each start searches all classes of all jars for plugins.
    "target.plugin.discovery": "service_load",
    f"{FLOW}.heartbeats.topic.replication.factor": "1",
    # Without it a process cannot fence the tasks of the one before.
    "dedicated.mode.enable.internal.rest": "true",
    "target.exactly.once.source.support": "enabled",
    # By default Connect waits five minutes for a killed process to return.
    "target.scheduled.rebalance.max.delay.ms": "0",
    **{f"{name}.replication.factor": "1" for name in ("config.storage", "offset.storage")},
    "status.storage.replication.factor": "1",
}
READY = "Kafka MirrorMaker started"
STARTED = "Source task finished initialization and start"
FAILED = "Task threw an uncaught and unrecoverable exception"


class MirrorMakerProcess(Service):
    """`with MirrorMakerProcess(directory, source, target) as worker:` a process that copies.

    ``settings`` are those of the flow from the source to the target; ``tasks`` are the ids of the
    tasks that run when it does all of its work.
    """

    def __init__(
        self,
        directory: Path,
        source: str,
        target: str,
        *,
        settings: Mapping[str, str],
        tasks: frozenset[str],
    ) -> None:
        super().__init__(directory / "output.log")
        self._directory = directory
        self._tasks = tasks
        self._launched_at = 0
        self._settings = {
            **SETTINGS,
            "source.bootstrap.servers": source,
            "target.bootstrap.servers": target,
            "listeners": f"http://{HOST}:{free_port()}",
            **{f"{FLOW}.{name}": value for name, value in settings.items()},
        }

    def launch(self) -> None:
        """Start the process, and return before it is ready."""
        self._directory.mkdir(exist_ok=True)
        self._output_path.touch()
        self._launched_at = self._output_path.stat().st_size
        self._process = started(MAIN_CLASS, self._directory, self._settings, self._output_path)

    def is_ready(self) -> bool:
        """Return whether the process has started its connectors; tasks begin with topics."""
        return any(READY in line for line in self._lines())

    def is_at_work(self) -> bool:
        """Return whether each task has started since the launch, and none has failed."""
        lines = [line for line in self._lines() if STARTED in line]
        have_started = all(any(f"id={task}}}" in line for line in lines) for task in self._tasks)
        return have_started and not self.failures()

    def failures(self) -> list[str]:
        """Return the lines about tasks that have failed since the launch; nothing restarts them."""
        return [line for line in self._lines() if FAILED in line]

    def _lines(self) -> list[str]:
        with self._output_path.open("rb") as output:
            output.seek(self._launched_at)
            return output.read().decode(errors="replace").splitlines()
