"""A broker and its clients need only the files that ``barnabas init --secure`` writes."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import confluent_kafka
import pytest

from tests.broker.cli.inline import Ended
from tests.counterparts.kafka_tools import CONFIGS, CONSOLE_CONSUMER, CONSOLE_PRODUCER, run_tool
from tests.counterparts.probe import free_port
from tests.interop.clients import kafka
from tests.interop.command_line import command, environment, run
from tests.package.test_compose import DOCKER, prepared
from tests.waiting import wait_until

TIMEOUT_S = 60
TOPIC = "orders"


@contextmanager
def serving(*words: object, more: Mapping[str, str] | None = None) -> Iterator[None]:
    """Run a broker as a user does."""
    broker = subprocess.Popen(
        command(*words),
        env=environment() | dict(more or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert broker.stdout is not None
        assert any(b"started" in line for line in broker.stdout)
        yield
    finally:
        broker.terminate()
        broker.communicate(timeout=TIMEOUT_S)
    assert broker.returncode == 0


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory that init has filled, with a broker that serves from it."""
    path = tmp_path_factory.mktemp("init") / "secure"
    assert run("init", "--secure", path, "--port", free_port()).exit_code == 0
    with serving("serve", path / "server.properties", "-X", "barnabas.http.listener="):
        yield path


def ends_well(words: list[str], variables: Mapping[str, str]) -> bool:
    return subprocess.run(words, env=variables, check=False).returncode == 0


def librdkafka(directory: Path) -> dict[str, str]:
    lines = (directory / "admin.librdkafka").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)


def test_kafka_python(directory):
    settings = json.loads((directory / "admin.json").read_text())
    with kafka.KafkaProducer(**settings) as producer:
        producer.send(TOPIC, b"of kafka-python").get(TIMEOUT_S)
    with kafka.KafkaConsumer(
        TOPIC, group_id="kafka-python", auto_offset_reset="earliest", **settings
    ) as consumer:
        assert b"of kafka-python" in (message.value for message in consumer)


def test_confluent(directory):
    settings = librdkafka(directory)
    producer = confluent_kafka.Producer(settings)
    producer.produce(TOPIC, b"of librdkafka")
    assert producer.flush(TIMEOUT_S) == 0
    consumer = confluent_kafka.Consumer(
        settings | {"group.id": "librdkafka", "auto.offset.reset": "earliest"}
    )
    try:
        consumer.subscribe([TOPIC])
        received = iter(lambda: consumer.poll(TIMEOUT_S).value(), None)
        assert b"of librdkafka" in received
    finally:
        consumer.close()


def test_java(directory):
    file = directory / "admin.properties"
    servers = librdkafka(directory)["bootstrap.servers"]
    common = ("--bootstrap-server", servers, "--command-config", str(file))
    sent = run_tool(CONSOLE_PRODUCER, *common, "--topic", "java", stdin="of Java\n")
    assert sent.exit_code == 0, sent.output
    received = run_tool(
        CONSOLE_CONSUMER, *common, "--topic", "java", "--from-beginning", "--max-messages", "1"
    )
    assert "of Java" in received.output.splitlines()
    users = run_tool(CONFIGS, *common, "--describe", "--entity-type", "users")
    assert "user-principal 'admin' are SCRAM-SHA-512=iterations=4096" in users.output


def test_our_own_commands(directory):
    servers = librdkafka(directory)["bootstrap.servers"]

    def ask(user: str, *words: str, stdin: bytes = b"") -> Ended:
        file = directory / f"{user}.properties"
        return run(*words, "-b", servers, "--command-config", file, stdin=stdin)

    assert ask("admin", "users", "create", "bob", stdin=b"bob-secret\n").lines == ["bob created"]
    of_admin = (directory / "admin.properties").read_text()
    password = librdkafka(directory)["sasl.password"]
    of_bob = of_admin.replace("admin", "bob").replace(password, "bob-secret")
    (directory / "bob.properties").write_text(of_bob)
    assert ask("admin", "topics", "create", "of-bob").exit_code == 0
    assert "(TOPIC_AUTHORIZATION_FAILED)" in ask("bob", "produce", "of-bob", stdin=b"1\n").stderr
    rule = ("--user", "bob", "--operation", "READ,WRITE", "--topic", "of-bob")
    assert ask("admin", "acls", "add", *rule).exit_code == 0
    assert ask("bob", "produce", "of-bob", stdin=b"1\n2\n").exit_code == 0
    assert ask("bob", "consume", "of-bob", "-o", "beginning", "-e").lines == ["1", "2"]
    denied = ask("bob", "quotas", "set", "producer_byte_rate=1", "--user", "bob")
    assert "(CLUSTER_AUTHORIZATION_FAILED)" in denied.stderr
    assert ask("admin", "users", "delete", "bob").lines == ["bob deleted"]
    assert ask("bob", "topics", "list").exit_code == 1


def test_the_compose_file_has_such_a_broker(tmp_path):
    """The file has both listeners, by the clients' names; the test sets ports and data."""
    settings = prepared(DOCKER / "compose.secure.yaml", tmp_path)["environment"]
    ports = {9092: free_port(), 19092: free_port()}
    for key in ("KAFKA_LISTENERS", "KAFKA_ADVERTISED_LISTENERS"):
        for port, free in ports.items():
            settings[key] = re.sub(rf":{port}\b", f":{free}", settings[key])
    # There is no such name outside of the project.
    advertised = settings["KAFKA_ADVERTISED_LISTENERS"].replace("//broker:", "//localhost:")
    settings |= {
        "KAFKA_ADVERTISED_LISTENERS": advertised,
        "KAFKA_LOG_DIRS": str(tmp_path / "data"),
        "KAFKA_BARNABAS_HTTP_LISTENER": "",
        "BARNABAS_DEFAULTS": str(DOCKER / "defaults.properties"),
    }
    files = tmp_path / "barnabas"
    with serving("serve", more=settings):
        # The image's health check, which has three seconds, and is repeated.
        wait_until(lambda: ends_well(command("ready"), environment() | settings), "it is ready")
        for port in ports.values():
            client = librdkafka(files) | {"bootstrap.servers": f"localhost:{port}"}
            producer = confluent_kafka.Producer(client)
            producer.produce(TOPIC, b"in a container")
            assert producer.flush(TIMEOUT_S) == 0


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"sasl.password": "wrong"}, confluent_kafka.KafkaError._AUTHENTICATION),
        ({"ssl.ca.location": None}, confluent_kafka.KafkaError._SSL),
        ({"security.protocol": "SSL"}, confluent_kafka.KafkaError._TRANSPORT),
    ],
)
def test_other_credentials_are_refused(directory, changed, code):
    errors: list[confluent_kafka.KafkaError] = []
    settings = librdkafka(directory) | changed
    given = {key: value for key, value in settings.items() if value is not None}
    client = confluent_kafka.Producer(given | {"error_cb": errors.append})
    wait_until(lambda: client.poll(0.1) or code in [each.code() for each in errors], "the error")
