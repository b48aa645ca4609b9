"""Clients that come for a moment while the groups live: they write, read, look and vanish.

Nothing is asserted of them while the broker may be down; what they must not do is to stay, to leave
something in the broker's memory, or to disturb the groups.
"""

from __future__ import annotations

import contextlib
import random
import socket
import subprocess
import warnings
from collections.abc import Callable

from confluent_kafka import Consumer, KafkaException
from confluent_kafka.admin import AdminClient

from tests.counterparts.broker_process import HOST, BrokerProcess
from tests.counterparts.kafka_tools import CONSUMER_GROUPS, VERIFIABLE_PRODUCER, run_tool
from tests.counterparts.kcat import run_kcat

with warnings.catch_warnings():
    # kafka-python reads its schemas in a way that the standard library has deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka
    from kafka.errors import KafkaError

VISIT_S = 60
TOPIC = "visitors"
GROUP = "visitors"
Visit = Callable[[BrokerProcess, random.Random], None]


def _kcat_writes_and_reads(broker: BrokerProcess, chance: random.Random) -> None:
    lines = b"".join(b"%d\n" % number for number in range(chance.randrange(1, 200)))
    run_kcat(["-P", "-b", broker.bootstrap_servers, "-t", TOPIC], stdin=lines, timeout_s=VISIT_S)
    reading = ["-C", "-b", broker.bootstrap_servers, "-t", TOPIC, "-p", "0", "-o", "-5", "-e", "-q"]
    run_kcat(reading, timeout_s=VISIT_S)


def _joins_a_group_and_leaves(broker: BrokerProcess, chance: random.Random) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": f"{GROUP}-{chance.randrange(3)}",
            "group.protocol": chance.choice(["classic", "consumer"]),
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    consumer.subscribe([TOPIC])
    for _ in range(chance.randrange(1, 20)):
        consumer.consume(100, 0.1)
    consumer.close()


def _kafka_python_joins(broker: BrokerProcess, chance: random.Random) -> None:
    consumer = kafka.KafkaConsumer(
        TOPIC,
        bootstrap_servers=broker.bootstrap_servers,
        group_id=f"{GROUP}-kafka-python",
        session_timeout_ms=3000,
        heartbeat_interval_ms=500,
    )
    for _ in range(chance.randrange(1, 10)):
        consumer.poll(timeout_ms=100)
    consumer.close()


def _administrator_looks(broker: BrokerProcess, chance: random.Random) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    groups = admin.list_consumer_groups(request_timeout=VISIT_S).result()
    names = [group.group_id for group in groups.valid]
    if names:
        for answer in admin.describe_consumer_groups(names, request_timeout=VISIT_S).values():
            answer.result()


def _kafkas_tool_looks(broker: BrokerProcess, chance: random.Random) -> None:
    where = ("--bootstrap-server", broker.bootstrap_servers)
    run_tool(CONSUMER_GROUPS, *where, "--describe", "--all-groups", timeout_s=VISIT_S * 2)


def _verifiable_producer(broker: BrokerProcess, chance: random.Random) -> None:
    where = ("--bootstrap-server", broker.bootstrap_servers)
    many = ("--max-messages", str(chance.randrange(1, 500)))
    run_tool(VERIFIABLE_PRODUCER, *where, "--topic", TOPIC, *many, timeout_s=VISIT_S * 2)


def _stranger_connects(broker: BrokerProcess, chance: random.Random) -> None:
    """Connect, send half a frame or no bytes, and disconnect."""
    with socket.create_connection((HOST, broker.port), timeout=VISIT_S) as connection:
        connection.sendall(b"\0\0\1\0" + chance.randbytes(chance.randrange(200)))


VISITS: tuple[Visit, ...] = (
    _kcat_writes_and_reads,
    _joins_a_group_and_leaves,
    _kafka_python_joins,
    _administrator_looks,
    _kafkas_tool_looks,
    _verifiable_producer,
    _stranger_connects,
)


def visit(broker: BrokerProcess, chance: random.Random) -> str:
    """Run one visitor; return its name."""
    visitor = chance.choice(VISITS)
    # The broker may be killed under it.
    failures = (OSError, KafkaException, KafkaError, subprocess.SubprocessError)
    with contextlib.suppress(*failures):
        visitor(broker, chance)
    return visitor.__name__.strip("_")
