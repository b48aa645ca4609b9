"""kafka-python's own administration command, `python -m kafka.admin`, through a topic's life.

The command runs in this process, and once as a process.
"""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from kafka.cli.admin import run_cli

from tests.interop.clients import KafkaPython, Sent

pytestmark = [pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore")]

Command = Callable[..., Any]


def words(bootstrap_servers: str, *arguments: str) -> list[str]:
    return ["-b", bootstrap_servers, "--format", "json", *arguments]


def run(bootstrap_servers: str, *arguments: str) -> tuple[int, str]:
    """Run a command in this process; return its exit code and its output."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        code = run_cli(words(bootstrap_servers, *arguments))
    return code or 0, output.getvalue().strip()


@pytest.fixture
def command(broker) -> Command:
    """Run a command that has to succeed; returns what it printed as JSON."""

    def run_it(*arguments: str) -> Any:
        code, output = run(broker.bootstrap_servers, *arguments)
        assert code == 0, (arguments, output)
        return json.loads(output)

    return run_it


def test_cluster(command, broker):
    cluster = command("cluster", "describe")
    as_process = [sys.executable, "-m", "kafka.admin"]
    given = words(broker.bootstrap_servers, "cluster", "describe")
    printed = subprocess.run([*as_process, *given], capture_output=True, timeout=300, check=True)
    assert json.loads(printed.stdout) == cluster
    (node,) = cluster["brokers"]
    assert f"{node['host']}:{node['port']}" == broker.bootstrap_servers
    assert cluster["controller_id"] == node["broker_id"] == 1
    assert "ALTER_CONFIGS" in cluster["authorized_operations"]
    assert command("cluster", "broker-version", "--broker", "1") == {"1": "4.3"}
    features = command("cluster", "describe-features")
    assert features["metadata.version"]["finalized"] == [30, 30]


def test_topics_and_their_settings(command, broker, topic):
    created = command("topics", "create", "-t", topic, "--num-partitions", "2")
    assert created["topics"][0]["configs"]["retention.ms"]["value"] == "604800000"
    assert topic in command("topics", "list")
    (described,) = command("topics", "describe", "-t", topic)
    assert [each["leader_id"] for each in described["partitions"]] == [1, 1]
    of_topic = ("-r", "topic", "-n", topic)
    altered = command("configs", "alter", *of_topic, "-c", "retention.ms=5000")
    assert altered == {"topic": {topic: "OK"}}
    modified = command("configs", "describe", *of_topic, "--modified")
    assert {key: each["value"] for key, each in modified["topic"][topic].items()} == {
        "retention.ms": "5000"
    }
    assert command("configs", "reset", *of_topic, "-c", "retention.ms") == {"topic": {topic: "OK"}}
    assert command("configs", "describe", *of_topic, "--modified") == {"topic": {topic: {}}}
    command("partitions", "create", "-p", f"{topic}:3")
    KafkaPython().produce(broker.bootstrap_servers, topic, [Sent(None, b"x" * 100)] * 5, "none", 0)
    (directory,) = command("cluster", "describe-log-dirs", "--topic", topic)[0]["log_dirs"]
    (sizes,) = directory["topics"]
    assert {each["partition_index"] for each in sizes["partitions"]} == {0, 1, 2}
    assert sum(each["partition_size"] for each in sizes["partitions"]) > 500
    assert directory["total_bytes"] > directory["usable_bytes"] > 0
    producers = command("transactions", "describe-producers", "-t", topic, "-p", "0")
    (producer,) = producers[f"{topic}:0"]["active_producers"]
    assert producer["last_sequence"] == 4
    command("topics", "delete", "-t", topic)


def test_settings_of_everything_else(command):
    listed = command("configs", "list")
    assert listed["broker"] == listed["broker_logger"] == ["1"]

    def value(kind: str, name: str, key: str) -> str | None:
        described = command("configs", "describe", "-r", kind, "-n", name, "-c", key)
        found: str | None = described[kind][name][key]["value"]
        return found

    assert value("broker", "1", "num.io.threads") == "8"
    assert value("broker", "1", "ssl.keystore.password") is None
    assert value("broker_logger", "1", "root") in {"INFO", "WARN", "ERROR"}
    of_group = ("-r", "group", "-n", "kafka-python-admin")
    command("configs", "alter", *of_group, "-c", "consumer.session.timeout.ms=50000")
    assert value("group", "kafka-python-admin", "consumer.session.timeout.ms") == "50000"
    assert "kafka-python-admin" in command("configs", "list")["group"]
    command("configs", "reset", *of_group, "-c", "consumer.session.timeout.ms")
    assert value("group", "kafka-python-admin", "consumer.session.timeout.ms") == "45000"


def test_replicas_users_and_rules(command, broker, create_topic):
    topic = create_topic(partitions=2)
    assert command("partitions", "list-reassignments") == {}
    moved = command("partitions", "alter-reassignments", "-r", f"{topic}:0=1")
    assert moved == {f"{topic}:0": None}
    moved = command("partitions", "alter-reassignments", "-r", f"{topic}:0=cancel")
    assert moved == {f"{topic}:0": "NoReassignmentInProgressError"}
    elected = command("partitions", "elect-leaders", "--no-raise-errors", "-t", topic)
    codes = [
        partition["error_code"]
        for result in elected["replica_election_results"]
        for partition in result["partition_result"]
    ]
    assert codes == [84, 84]
    assert command("users", "describe-scram-credentials") == {}
    code, output = run(broker.bootstrap_servers, "acls", "describe")
    assert code == 1
    assert "SecurityDisabled" in output
