"""The programs: each copies a topic on a system that others wrote."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.counterparts.go import built
from tests.counterparts.jars import pinned_jars
from tests.counterparts.java_programs import java_program

INPUT, OUTPUT, PARTITIONS = "input", "output", 3

JAVA = Path(__file__).with_name("java")
COMMON = JAVA / "Copy.java"
BENTHOS = Path(__file__).with_name("benthos")
MAPPING = f"""
meta number = (content().string().split(".").index(-1).number() % {PARTITIONS}).string()
root = "<" + content().string() + ">"
"""
_LOGGER = "-Dorg.slf4j.simpleLogger"
LOGGING = (
    f"{_LOGGER}.defaultLogLevel=warn",
    # Two that repeat themselves: a broker that is down, and a name of a metric.
    f"{_LOGGER}.log.org.apache.kafka.clients.NetworkClient=error",
    f"{_LOGGER}.log.org.apache.flink.metrics=error",
)


@dataclass(frozen=True)
class JavaCopy:
    """A program of `java/` on the jars of a family."""

    family: str
    artifacts: tuple[str, ...]
    """Jars whose versions `docs/ecosystem.md` states."""
    options: tuple[str, ...] = ()
    """Arguments of its own."""
    repeats: bool = False
    """Whether it may write a record twice, or again after later ones."""

    @property
    def name(self) -> str:
        return "-".join([self.family, *self.options]).lower()

    @property
    def versions(self) -> list[str]:
        pinned = pinned_jars(self.family)
        return [jar.version for jar in pinned if jar.artifact in self.artifacts]

    def command(self, directory: Path) -> Sequence[str]:
        """Return the command line; ``directory`` is where it may keep state."""
        source = JAVA / f"{self.family.capitalize()}Copy.java"
        options = (*LOGGING, f"-Djava.io.tmpdir={directory}")
        program = java_program(self.family, (COMMON, source), options)
        return [*program, "{servers}", INPUT, OUTPUT, self.name, str(directory), *self.options]


@dataclass(frozen=True)
class BenthosCopy:
    """A pipeline of Benthos, which promises each record at least once.

    It can repeat a batch that failed after later ones, at Apache Kafka as well.
    """

    component: str
    """Name of its input and output: `kafka_franz` (franz-go) or `kafka` (Sarama)."""
    servers_key: str
    more: tuple[tuple[str, str], ...] = ()
    """Settings of its output."""
    repeats: bool = True

    @property
    def name(self) -> str:
        return f"benthos-{self.component}"

    @property
    def versions(self) -> list[str]:
        return re.findall(r"benthos/v4 v(\S+)", (BENTHOS / "go.mod").read_text())

    def command(self, directory: Path) -> Sequence[str]:
        """Write the configuration, and return the command line."""
        reached = {self.servers_key: ["${KAFKA_BOOTSTRAP_SERVERS}"]}
        configuration = {
            "http": {"enabled": False},
            "input": {
                self.component: {
                    **reached,
                    "topics": [INPUT],
                    "consumer_group": self.name,
                    "start_from_oldest": True,
                    "commit_period": "500ms",
                    "batching": {"count": 50, "period": "50ms"},
                }
            },
            "pipeline": {"threads": 1, "processors": [{"mapping": MAPPING}]},
            "output": {
                self.component: {
                    **reached,
                    "topic": OUTPUT,
                    "partitioner": "manual",
                    "partition": '${! meta("number") }',
                    **dict(self.more),
                }
            },
        }
        path = directory / "benthos.json"
        path.write_text(json.dumps(configuration))
        return [str(built(BENTHOS)), "-c", str(path)]


FLINK = ("flink-runtime", "flink-connector-kafka", "kafka-clients")
SPRING = ("spring-kafka", "kafka-clients")
PROGRAMS = (
    BenthosCopy("kafka_franz", "seed_brokers"),
    BenthosCopy("kafka", "addresses", (("target_version", "3.6.0"),)),
    JavaCopy("flink", FLINK, ("INCREMENTING",)),
    JavaCopy("flink", FLINK, ("POOLING",)),
    JavaCopy("streams", ("kafka-streams", "kafka-clients")),
    JavaCopy("spring", SPRING, ("batch", "classic")),
    JavaCopy("spring", SPRING, ("record", "consumer")),
    JavaCopy("pekko", ("pekko-connectors-kafka_2.13", "kafka-clients")),
)
