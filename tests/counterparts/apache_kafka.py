"""Apache Kafka 4.3.0: one KRaft node on loopback ports, in its default configuration."""

import functools
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.counterparts.broker_process import HOST, BrokerProcess
from tests.counterparts.class_archive import SERVER, archive_options
from tests.counterparts.jars import KAFKA_VERSION, kafka_class_path
from tests.counterparts.java import java
from tests.counterparts.kafka_tools import STORAGE, tool_command
from tests.counterparts.probe import free_port

CLUSTER_ID = "QmFybmFiYXNDb3VudGVycA"
# What kafka-server-start passes.
JVM_OPTIONS = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
# A test's broker lives for seconds: its code is never worth the second compiler.
QUICK_START = ("-XX:TieredStopAtLevel=1",)


class ApacheKafka(BrokerProcess):
    """`with ApacheKafka() as kafka:` a single node, formatted, started and answering."""

    name = f"Apache Kafka {KAFKA_VERSION}"
    heap = "1g"

    def __init__(self, directory: Path | None = None, **overrides: str) -> None:
        super().__init__(directory, **overrides)
        self._controller_port = free_port()

    def prepare(self) -> None:
        properties = self.properties() | self.overrides
        lines = [f"{key}={value}\n" for key, value in properties.items()]
        self._properties_path.write_text("".join(lines))
        if not (self.data_directory / "meta.properties").exists():
            self.data_directory.mkdir(exist_ok=True)
            for name, content in _formatted().items():
                (self.data_directory / name).write_bytes(content)

    def command(self) -> list[str]:
        heap = [f"-Xms{self.heap}", f"-Xmx{self.heap}"]
        options = [*heap, *JVM_OPTIONS, *self.start_options()]
        command = [str(java()), *options, "-cp", kafka_class_path()]
        return [*command, "kafka.Kafka", str(self._properties_path)]

    def start_options(self) -> Sequence[str]:
        """Return the JVM options beside those of Kafka's own script."""
        return [*QUICK_START, *archive_options(SERVER)]

    @property
    def _properties_path(self) -> Path:
        return self.directory / "server.properties"

    def properties(self) -> dict[str, str]:
        """Return the configuration without the overrides of a test."""
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{HOST}:{self._controller_port}",
            "listeners": f"{self.listeners},CONTROLLER://{HOST}:{self._controller_port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": ",".join(f"{each}:{each}" for each in PROTOCOLS)
            + ",CONTROLLER:PLAINTEXT",
            "log.dirs": str(self.data_directory),
            # One node: every replicated default has to be one.
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
        }


class ApacheKafkaAsItComes(ApacheKafka):
    """Apache Kafka with nothing but the options of its own script: what is measured."""

    def start_options(self) -> Sequence[str]:
        return []


@functools.cache
def _formatted() -> dict[str, bytes]:
    """Return the files of a formatted data directory, which are the same for every node.

    They name neither ports nor paths, so that one run of the tool does for all.
    """
    with tempfile.TemporaryDirectory(prefix="formatted-") as directory:
        data = Path(directory) / "data"
        properties = Path(directory) / "server.properties"
        properties.write_text(
            "process.roles=broker,controller\nnode.id=1\n"
            f"controller.quorum.voters=1@{HOST}:9093\n"
            f"listeners=PLAINTEXT://{HOST}:9092,CONTROLLER://{HOST}:9093\n"
            f"controller.listener.names=CONTROLLER\nlog.dirs={data}\n"
        )
        arguments = ["format", "-t", CLUSTER_ID, "-c", str(properties)]
        tool = tool_command(STORAGE, *arguments)
        subprocess.run(tool, capture_output=True, timeout=300, check=True)
        return {path.name: path.read_bytes() for path in data.iterdir() if path.is_file()}
