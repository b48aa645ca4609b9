"""The starts of containers by Testcontainers' Kafka modules: settings, commands, files, waits.

Taken from the modules' sources, one entry for each way of starting. All of them let the container
wait for a script that can only be written once the published port is known.
"""

from __future__ import annotations

from typing import NamedTuple

RUNNING = r".*Transitioning from RECOVERY to RUNNING.*"
STARTED = r".*\[KafkaServer id=\d+\] started.*"
SERVER_STARTED = r".*Kafka Server started.*"
CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
LONG_MAX = "9223372036854775807"


class Module(NamedTuple):
    """One way of starting."""

    name: str
    environment: dict[str, str]
    command: list[str]
    script_path: str
    script: str
    """The script, with {host} and {port} of the published port, and {name}, the host name."""
    port: int
    """The port to publish."""
    ready: str
    mode: int = 0o755
    written_inside: bool = False
    """The script is written by a command run in the container, not copied in."""


def shell_wait(path: str, then: str | None = None, shell: str = "sh") -> list[str]:
    """Return the command that waits for the script."""
    return [shell, "-c", f"while [ ! -f {path} ]; do sleep 0.1; done; {then or path}"]


def with_controller(plaintext: int, broker: int, host: str = "0.0.0.0") -> dict[str, str]:
    """Return the listeners of a module that knows KRaft."""
    return {
        "KAFKA_LISTENERS": f"PLAINTEXT://{host}:{plaintext},BROKER://{host}:{broker},"
        f"CONTROLLER://{host}:9094",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": (
            "BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"
        ),
        "KAFKA_INTER_BROKER_LISTENER_NAME": "BROKER",
        "KAFKA_PROCESS_ROLES": "broker,controller",
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "KAFKA_NODE_ID": "1",
    }


def with_zookeeper(plaintext: int, broker: int) -> dict[str, str]:
    """Return the listeners of a module that brings a ZooKeeper."""
    return {
        "KAFKA_LISTENERS": f"PLAINTEXT://0.0.0.0:{plaintext},BROKER://0.0.0.0:{broker}",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "KAFKA_INTER_BROKER_LISTENER_NAME": "BROKER",
        "KAFKA_BROKER_ID": "1",
    }


def one_of_everything(flush_interval: str = LONG_MAX) -> dict[str, str]:
    """Return the settings with which internal topics fit on one broker."""
    return {
        "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
        "KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS": "1",
        "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
        "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
        "KAFKA_LOG_FLUSH_INTERVAL_MESSAGES": flush_interval,
        "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
    }


JAVA_SCRIPT = "/tmp/testcontainers_start.sh"
JAVA_ENVIRONMENT = {
    "CLUSTER_ID": CLUSTER_ID,
    **with_controller(9092, 9093, host=""),
    **one_of_everything(),
}

JAVA_APACHE = Module(
    "java-apache",
    JAVA_ENVIRONMENT,
    shell_wait(JAVA_SCRIPT),
    JAVA_SCRIPT,
    "#!/bin/bash\n"
    "export KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://{host}:{port},BROKER://{name}:9093\n"
    "/etc/kafka/docker/run \n",
    9092,
    RUNNING,
    mode=0o777,
)

# withListener: a further listener, called TC-0.
JAVA_LISTENER = JAVA_APACHE._replace(
    name="java-apache-with-listener",
    environment={
        **JAVA_ENVIRONMENT,
        "KAFKA_LISTENERS": JAVA_ENVIRONMENT["KAFKA_LISTENERS"] + ",TC-0://0.0.0.0:19092",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": (
            JAVA_ENVIRONMENT["KAFKA_LISTENER_SECURITY_PROTOCOL_MAP"] + ",TC-0:PLAINTEXT"
        ),
    },
    script="#!/bin/bash\n"
    "export KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://{host}:{port},BROKER://{name}:9093,"
    "TC-0://kafka:19092\n"
    "/etc/kafka/docker/run \n",
)

JAVA_CONFLUENT = JAVA_APACHE._replace(
    name="java-confluent",
    script=JAVA_APACHE.script.replace("/etc/kafka/", "/etc/confluent/"),
)

GO_SCRIPT = "/usr/sbin/testcontainers_start.sh"
GO = Module(
    "go",
    {
        **with_controller(9093, 9092),
        **one_of_everything(),
        "KAFKA_BROKER_ID": "1",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9094",
        "KAFKA_REST_BOOTSTRAP_SERVERS": "PLAINTEXT://0.0.0.0:9093,BROKER://0.0.0.0:9092",
        "CLUSTER_ID": "test-cluster",
    },
    shell_wait(GO_SCRIPT, f"bash {GO_SCRIPT}"),
    GO_SCRIPT,
    "#!/bin/bash\n"
    "source /etc/confluent/docker/bash-config\n"
    'export KAFKA_ADVERTISED_LISTENERS="PLAINTEXT://{host}:{port},BROKER://{name}:9092"\n'
    "echo Starting Kafka KRaft mode\n"
    "sed -i '/KAFKA_ZOOKEEPER_CONNECT/d' /etc/confluent/docker/configure\n"
    'echo \'kafka-storage format --ignore-formatted -t "$(kafka-storage random-uuid)" '
    "-c /etc/kafka/kafka.properties' >> /etc/confluent/docker/configure\n"
    "echo '' > /etc/confluent/docker/ensure\n"
    "/etc/confluent/docker/configure\n"
    "/etc/confluent/docker/launch",
    9093,
    RUNNING,
)

PYTHON_SCRIPT = "/tc-start.sh"
PYTHON_END = (
    "export KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://{host}:{port},BROKER://$(hostname -i):9092\n"
    ". /etc/confluent/docker/bash-config\n"
    "/etc/confluent/docker/configure\n"
    "/etc/confluent/docker/launch\n"
)
PYTHON_KRAFT = Module(
    "python-kraft",
    {
        **with_controller(9093, 9092),
        **one_of_everything("10000000"),
        "KAFKA_BROKER_ID": "1",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9094",
        "CLUSTER_ID": "u5Bf/1vMSyeW+d1LQnJSuA==",
    },
    shell_wait(PYTHON_SCRIPT, f"sh {PYTHON_SCRIPT}"),
    PYTHON_SCRIPT,
    "#!/bin/bash\n"
    "sed -i '/KAFKA_ZOOKEEPER_CONNECT/d' /etc/confluent/docker/configure\n"
    "echo 'kafka-storage format --ignore-formatted -t u5Bf/1vMSyeW+d1LQnJSuA== "
    "-c /etc/kafka/kafka.properties' >> /etc/confluent/docker/configure\n" + PYTHON_END,
    9093,
    SERVER_STARTED,
    mode=0o644,
)

ZOOKEEPER = (
    "echo 'clientPort=2181' > zookeeper.properties\n"
    "echo 'dataDir=/var/lib/zookeeper/data' >> zookeeper.properties\n"
    "echo 'dataLogDir=/var/lib/zookeeper/log' >> zookeeper.properties\n"
    "zookeeper-server-start zookeeper.properties &\n"
)
PYTHON_ZOOKEEPER = PYTHON_KRAFT._replace(
    name="python-zookeeper",
    environment={**with_zookeeper(9093, 9092), **one_of_everything("10000000")},
    script=f"#!/bin/bash\n{ZOOKEEPER}export KAFKA_ZOOKEEPER_CONNECT='localhost:2181'\n{PYTHON_END}",
    ready=STARTED,
)

NODE_SCRIPT = "/testcontainers_start.sh"
NODE_EXPORT = "export KAFKA_ADVERTISED_LISTENERS=BROKER://{name}:9092,PLAINTEXT://{host}:{port}\n"
NODE_KRAFT = Module(
    "node-kraft",
    {
        **with_controller(9093, 9092),
        **one_of_everything(),
        "KAFKA_BROKER_ID": "1",
        "KAFKA_CONFLUENT_SUPPORT_METRICS_ENABLE": "false",
        "KAFKA_ADVERTISED_LISTENERS": "BROKER://localhost:9092",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9094",
        "CLUSTER_ID": CLUSTER_ID,
    },
    shell_wait(NODE_SCRIPT),
    NODE_SCRIPT,
    f"#!/bin/bash\n{NODE_EXPORT}/etc/confluent/docker/run \n",
    9093,
    SERVER_STARTED,
    mode=0o777,
)
NODE_ZOOKEEPER = NODE_KRAFT._replace(
    name="node-zookeeper",
    environment={
        **with_zookeeper(9093, 9092),
        **one_of_everything(),
        "KAFKA_ADVERTISED_LISTENERS": "BROKER://localhost:9092",
        "KAFKA_ZOOKEEPER_CONNECT": "localhost:2181",
    },
    script=f"#!/bin/bash\n{NODE_EXPORT}echo '' > /etc/confluent/docker/ensure \n{ZOOKEEPER}"
    "/etc/confluent/docker/run \n",
)

DOTNET_SCRIPT = "/testcontainers.sh"
DOTNET_EXPORT = (
    "export KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://{host}:{port},BROKER://127.0.1.1:9093\n"
)
DOTNET_APACHE = Module(
    "dotnet-apache",
    {**with_controller(9092, 9093), **one_of_everything(), "KAFKA_BROKER_ID": "1"},
    shell_wait(DOTNET_SCRIPT, shell="/bin/sh"),
    DOTNET_SCRIPT,
    f"#!/bin/bash\n{DOTNET_EXPORT}exec /etc/kafka/docker/run\n",
    9092,
    STARTED,
)
DOTNET_CONFLUENT = DOTNET_APACHE._replace(
    name="dotnet-confluent-zookeeper",
    environment={
        **with_zookeeper(9092, 9093),
        **one_of_everything(),
        "KAFKA_ZOOKEEPER_CONNECT": "localhost:2181",
    },
    script=f"#!/bin/bash\necho '' > /etc/confluent/docker/ensure\n{ZOOKEEPER}{DOTNET_EXPORT}"
    "exec /etc/confluent/docker/run\n",
)

RUST_SCRIPT = "/opt/kafka/testcontainers_start.sh"
RUST_APACHE = Module(
    "rust-apache",
    {
        **with_controller(9092, 9093),
        "KAFKA_BROKER_ID": "1",
        "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
        "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://localhost:9092,BROKER://localhost:9092",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9094",
        "CLUSTER_ID": "5L6g3nShT-eMCtK--X86sw",
    },
    shell_wait(RUST_SCRIPT, f"chmod 755 {RUST_SCRIPT} && {RUST_SCRIPT}", shell="bash"),
    RUST_SCRIPT,
    "#!/usr/bin/env bash\\n"
    "export KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://127.0.0.1:{port},BROKER://localhost:9093\\n"
    "/etc/kafka/docker/run \\n",
    9092,
    SERVER_STARTED,
    written_inside=True,
)

MODULES = (
    JAVA_APACHE, JAVA_LISTENER, JAVA_CONFLUENT, GO, PYTHON_KRAFT, PYTHON_ZOOKEEPER,
    NODE_KRAFT, NODE_ZOOKEEPER, DOTNET_APACHE, DOTNET_CONFLUENT, RUST_APACHE,
)  # fmt: skip
