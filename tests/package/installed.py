"""Environments with nothing but a wheel and what it needs, and a broker of one with a client."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from tests.counterparts.barnabas_process import BarnabasProcess
from tests.package.builds import run

INSTALL_TIMEOUT_S = 1200
TIMEOUT_MS = 60_000


def environment_with(
    directory: Path, *requirements: str | Path, python: str = sys.executable
) -> Path:
    """Create an empty environment with these requirements installed; return its commands."""
    run(python, "-m", "venv", directory, cwd=directory.parent)
    pip = (directory / "bin" / "python", "-m", "pip", "--disable-pip-version-check")
    run(*pip, "install", "--quiet", *requirements, cwd=directory, timeout_s=INSTALL_TIMEOUT_S)
    return directory / "bin"


class InstalledBroker(BarnabasProcess):
    """The broker of an environment; it finds the packages that are installed there only."""

    packages = ""


def serve_a_client(commands: Path, directory: Path) -> str:
    """Write to the environment's broker, kill it, read from it again; return the broker's output.

    The client is kafka-python, in the environment of the tests.
    """
    broker = InstalledBroker(directory)
    broker.interpreter = str(commands / "python")
    partition = TopicPartition("orders", 0)
    values = [b"%d" % number for number in range(10)]
    with broker:
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
        sent = [producer.send(partition.topic, value, partition=0) for value in values]
        assert [each.get(TIMEOUT_MS / 1000).offset for each in sent] == list(range(10))
        producer.close()
        broker.kill()
        broker.start()
        consumer = KafkaConsumer(
            bootstrap_servers=broker.bootstrap_servers,
            auto_offset_reset="earliest",
            consumer_timeout_ms=TIMEOUT_MS,
        )
        consumer.assign([partition])
        found = [record.value for record in itertools.islice(consumer, len(values))]
        consumer.close()
        assert found == values
        broker.terminate()
    return broker.output_path.read_text()
