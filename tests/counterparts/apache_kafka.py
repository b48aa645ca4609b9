"""Apache Kafka 4.3.0: one KRaft node on loopback ports, in its default configuration."""

import subprocess
from pathlib import Path

from tests.counterparts.broker_process import HOST, BrokerProcess
from tests.counterparts.jars import KAFKA_VERSION, kafka_class_path
from tests.counterparts.java import java
from tests.counterparts.probe import free_port

CLUSTER_ID = "QmFybmFiYXNDb3VudGVycA"
# What kafka-server-start passes: the comparison is with Kafka as it comes.
JVM_OPTIONS = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)


class ApacheKafka(BrokerProcess):
    """`with ApacheKafka() as kafka:` a single node, formatted, started and answering."""

    name = f"Apache Kafka {KAFKA_VERSION}"
    heap = "1g"

    def __init__(self, directory: Path | None = None, **overrides: str) -> None:
        super().__init__(directory, **overrides)
        self._controller_port = free_port()

    def prepare(self) -> None:
        properties = self._properties() | self.overrides
        lines = [f"{key}={value}\n" for key, value in properties.items()]
        self._properties_path.write_text("".join(lines))
        if not (self.data_directory / "meta.properties").exists():
            self._format()

    def command(self) -> list[str]:
        heap = [f"-Xms{self.heap}", f"-Xmx{self.heap}"]
        command = [str(java()), *heap, *JVM_OPTIONS, "-cp", kafka_class_path()]
        return [*command, "kafka.Kafka", str(self._properties_path)]

    @property
    def _properties_path(self) -> Path:
        return self.directory / "server.properties"

    def _format(self) -> None:
        tool = [str(java()), "-cp", kafka_class_path(), "kafka.tools.StorageTool", "format"]
        arguments = ["-t", CLUSTER_ID, "-c", str(self._properties_path)]
        subprocess.run([*tool, *arguments], capture_output=True, timeout=60, check=True)

    def _properties(self) -> dict[str, str]:
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{HOST}:{self._controller_port}",
            "listeners": f"PLAINTEXT://{HOST}:{self.port},"
            f"CONTROLLER://{HOST}:{self._controller_port}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.data_directory),
            # One node: every replicated default has to be one.
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
        }
