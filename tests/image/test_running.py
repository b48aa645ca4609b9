"""A container of the image as an operator meets it: start, stop, crash, settings, health."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import confluent_kafka
import pytest

from tests.image.clients import brokers_by_token, consume, partitions, produce
from tests.image.container import Container
from tests.issuer import AUDIENCE, ISSUER, standard_set, token
from tests.package.test_compose import DOCKER, SECRETS, project

ROOT = Path(__file__).parents[2]
READY = r"\[KafkaServer id=1\] started"
DATA = "/var/lib/kafka/data"
# An engine waits 10 seconds for an end before it kills.
QUICK_S = 8


def waiting(container, **options):
    """A container that starts the broker as soon as it gets its published port."""
    loop = "while [ ! -f /tmp/go ]; do sleep 0.05; done; . /tmp/go; exec /etc/kafka/docker/run"
    return container(command=["bash", "-c", loop], **options)


def start(container, environment=None, **options):
    """Start a broker behind a published port; return it and its address."""
    environment = {"KAFKA_LISTENERS": "PLAINTEXT://:9092", **(environment or {})}
    running = waiting(container, environment=environment, **options)
    address = f"127.0.0.1:{running.publish(9092)}"
    running.put("/tmp/go", f"export KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://{address}\n")
    running.wait_for_log(READY)
    return running, address


def values(count):
    return [b"%05d" % number for number in range(count)]


def processes_inside(process_id):
    """Return all processes in the namespace of one."""
    space = os.readlink(f"/proc/{process_id}/ns/pid")
    found = set()
    for path in Path("/proc").glob("[0-9]*"):
        # It has just ended, or it is one of the machine's that is not shown.
        with contextlib.suppress(FileNotFoundError, PermissionError):
            if os.readlink(path / "ns/pid") == space:
                found.add(int(path.name))
    return found


def brokers_seen_inside(container, server):
    """Request all brokers from a broker, from within its network."""
    code = "import sys; from tests.image.clients import brokers; print(*brokers(sys.argv[1]))"
    enter = ["nsenter", f"--target={container.process_id}", "--net"]
    return subprocess.run(
        [*enter, sys.executable, "-c", code, server],
        capture_output=True,
        text=True,
        timeout=90,
        check=True,
        cwd=ROOT,
    ).stdout.split()


def test_the_image_as_it_is(container):
    broker = container()
    assert broker.wait_for_log(READY) < QUICK_S
    assert "unknown settings" not in broker.log
    assert broker.command_line()[1:3] == ["/usr/local/bin/barnabas", "serve"]
    # A client outside gets the published port, one in another container the address that it used.
    assert brokers_seen_inside(broker, "localhost:9092") == ["localhost:9092"]
    assert brokers_seen_inside(broker, "127.0.1.1:19092") == ["127.0.1.1:19092"]
    began = time.monotonic()
    assert broker.stop() == 0
    assert time.monotonic() - began < QUICK_S
    assert "broker stops" in broker.log


def test_nothing_of_a_container_outlives_it(image, tmp_path):
    with Container(image, tmp_path) as broker:
        broker.wait_for_log(READY)
        inside = processes_inside(broker.process_id)
        assert broker.process_id in inside
    assert not any(Path(f"/proc/{process_id}").exists() for process_id in inside)


def test_a_client_and_a_second_start(container, tmp_path):
    data = tmp_path / "volume"
    data.mkdir()
    data.chmod(0o777)
    broker, address = start(container, volumes={DATA: data})
    produce(address, "orders", values(500))
    assert consume(address, "orders", 500) == values(500)
    assert broker.stop() == 0
    again, address = start(container, volumes={DATA: data})
    assert consume(address, "orders", 500) == values(500)
    produce(address, "orders", [b"more"])
    again.kill()
    _, address = start(container, volumes={DATA: data})
    assert consume(address, "orders", 501) == [*values(500), b"more"]


def test_sigterm_while_clients_are_connected(container):
    broker, address = start(container)
    producer = confluent_kafka.Producer({"bootstrap.servers": address, "linger.ms": 0})
    acknowledged = []
    for value in values(200):
        producer.produce("t", value, on_delivery=lambda error, _: acknowledged.append(error))
        producer.poll(0)
    assert producer.flush(60) == 0
    began = time.monotonic()
    assert broker.stop() == 0
    assert time.monotonic() - began < QUICK_S
    assert acknowledged == [None] * 200


def test_sigterm_when_no_broker_runs(container):
    # A first process gets only the signals that it has asked for.
    server = "import socket, time; s = socket.create_server(('127.0.0.1', 7777)); time.sleep(60)"
    asking = "exec barnabas ready --timeout 60 --bootstrap-server 127.0.0.1:7777"
    wait = "until (</dev/tcp/127.0.0.1/7777) 2>/dev/null; do sleep 0.05; done"
    ready = container(command=["bash", "-c", f'python3 -c "{server}" & {wait}; {asking}'])
    connections = Path(f"/proc/{ready.process_id}/net/tcp")
    while "ready" not in ready.command_line() or ":1E61 01 " not in connections.read_text():
        assert ready.is_running
        time.sleep(0.02)
    ready.signal(signal.SIGTERM)
    assert ready.wait() == 128 + signal.SIGTERM


def test_the_health_check(container):
    broker = waiting(container)
    command = broker.image.config["Healthcheck"]["Test"]
    assert command[0] == "CMD"
    before = broker.execute(*command[1:])
    assert (before.returncode, before.stderr.count("\n")) == (1, 1)
    broker.put("/tmp/go", "")
    broker.wait_for_log(READY)
    began = time.monotonic()
    after = broker.execute(*command[1:])
    assert after.returncode == 0, after.stderr
    # Otherwise an engine takes it for a failure.
    assert time.monotonic() - began < broker.image.config["Healthcheck"]["Timeout"] / 1e9


def test_http(container):
    broker = container(environment={"KAFKA_BARNABAS_HTTP_BEARER_TOKEN": "prometheus"})
    broker.wait_for_log(READY)
    address = f"http://127.0.0.1:{broker.publish(9644)}"
    with urllib.request.urlopen(f"{address}/readyz", timeout=60) as answer:
        assert answer.status == 200
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(f"{address}/metrics", timeout=60)
    asked = urllib.request.Request(f"{address}/metrics")
    asked.add_header("Authorization", "Bearer prometheus")
    with urllib.request.urlopen(asked, timeout=60) as answer:
        assert b"process_resident_memory_bytes" in answer.read()


def test_a_mounted_file_and_the_environment_over_it(container, tmp_path):
    config = tmp_path / "config"
    config.mkdir()
    (config / "server.properties").write_text(
        "num.partitions=3\nlisteners=PLAINTEXT://:19099\nnode.id=7\nlog.retention.hours=5\n"
    )
    broker = container(
        volumes={"/mnt/shared/config": config},
        environment={"KAFKA_NODE_ID": "8", "CLUSTER_ID": "4L6g3nShT-eMCtK--X86sw"},
    )
    broker.wait_for_log(r"\[KafkaServer id=8\] started")
    assert broker.execute("barnabas", "ready").stdout == "localhost:19099 is ready\n"
    shown = broker.execute("barnabas", "config").stdout
    lines = {line.split()[0]: line.split()[1:] for line in shown.splitlines()}
    assert lines["num.partitions"][0] == "3"
    assert lines["num.partitions"][1:] == ["/mnt/shared/config/server.properties", "line", "1"]
    assert lines["node.id"] == ["8", "environment", "KAFKA_NODE_ID"]
    assert lines["log.dir"][0] == DATA
    kept = (broker.volumes[DATA] / "meta.properties").read_text()
    assert "cluster.id=4L6g3nShT-eMCtK--X86sw" in kept
    assert broker.stop() == 0


def test_arguments_of_the_start_script(container):
    broker = container(
        command=["/etc/kafka/docker/run", "KAFKA_NODE_ID=5", "KAFKA_NUM_PARTITIONS=2"]
    )
    broker.wait_for_log(r"\[KafkaServer id=5\] started")
    wrong = container(command=["/etc/kafka/docker/run", "--help"])
    assert wrong.wait() == 2
    assert "--help is not NAME=value" in wrong.log


def test_other_commands(container):
    assert container(command=["barnabas", "--version"]).wait() == 0


def test_a_wrong_setting_is_one_line(container):
    broker = container(environment={"KAFKA_NUM_PARTITIONS": "none"})
    assert broker.wait() == 2
    (line,) = broker.log.splitlines()
    assert "num.partitions" in line
    assert "KAFKA_NUM_PARTITIONS" in line


def test_a_volume_that_cannot_be_written(container, tmp_path):
    data = tmp_path / "roots"
    data.mkdir(mode=0o755)
    broker = container(volumes={DATA: data})
    assert broker.wait() == 1
    assert "Traceback" not in broker.log
    assert f"barnabas: {DATA}" in broker.log.splitlines()[-1]
    assert "Permission denied" in broker.log.splitlines()[-1]


def test_any_user_id_of_group_0_and_a_read_only_root(container):
    broker, address = start(container, user=(73211, 0), read_only=True)
    produce(address, "t", values(10))
    assert consume(address, "t", 10) == values(10)
    assert broker.execute("touch", "/opt/kafka/x").returncode == 1
    assert broker.stop() == 0


def test_topics_from_the_environment_are_there_when_it_is_ready(container):
    broker, address = start(container, environment={"KAFKA_CREATE_TOPICS": "orders:3:1,audit:1:1"})
    assert partitions(address) == {"orders": 3, "audit": 1}
    broker.signal(signal.SIGINT)
    assert broker.wait() == 0


# ------------------------------------------------------------------------------------ compose files


@pytest.fixture
def composed(container, tmp_path):
    """Run the services of a compose file that have something to do before the broker, then it."""
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    secrets.chmod(0o777)

    def start(name, first):
        services = project(DOCKER / name)["services"]
        for service in (services[first], services["broker"]):
            directory = service.get("working_dir")
            command = service.get("command")
            if directory is not None:
                command = ["sh", "-c", f"cd {directory} && {shlex.join(command)}"]
            running = container(
                command=command,
                environment=service.get("environment"),
                volumes={SECRETS: secrets},
                host_name=service.get("hostname", first),
            )
            if service is services[first]:
                assert running.wait() == 0, running.log
        running.wait_for_log(READY)
        return running, secrets

    return start


def test_a_secured_broker(composed):
    broker, secrets = composed("compose.secure.yaml", "setup")
    assert broker.execute("barnabas", "ready").returncode == 0
    assert "admin.properties" in os.listdir(secrets / "barnabas")
    assert (secrets / "barnabas" / "ca.key").stat().st_mode & 0o777 == 0o600
    login = f"--command-config {SECRETS}/barnabas/admin.properties"
    created = broker.execute("sh", "-c", f"barnabas topics create orders {login}")
    assert created.stdout == "orders created\n", created.stderr
    for server in ("localhost:9092", "localhost:19092"):
        wanted = f"consume orders -o beginning -e -b {server} {login}"
        sent = f"echo {server} | barnabas produce orders -b {server} {login}"
        ended = broker.execute("sh", "-c", f"{sent} >&2 && barnabas {wanted}")
        assert server in ended.stdout.splitlines(), ended.stderr
    nobody = broker.execute("barnabas", "topics", "list")
    assert (nobody.returncode, nobody.stdout) == (1, "")


def test_what_prometheus_shows(composed):
    broker, secrets = composed("compose.observability.yaml", "token")
    asked = urllib.request.Request(f"http://127.0.0.1:{broker.publish(9644)}/metrics")
    token = (secrets / "http-token").read_text().strip()
    asked.add_header("Authorization", f"Bearer {token}")
    with urllib.request.urlopen(asked, timeout=60) as answer:
        assert b"barnabas_loop_busy_seconds_total" in answer.read()
    assert token not in str(broker.environment)


def test_client_logs_in_by_token(container, tmp_path):
    configuration = tmp_path / "configuration"
    configuration.mkdir()
    (configuration / "keys.json").write_bytes(standard_set())
    environment = {
        "KAFKA_LISTENERS": "SASL_PLAINTEXT://:9092",
        "KAFKA_SASL_ENABLED_MECHANISMS": "OAUTHBEARER",
        "KAFKA_SASL_OAUTHBEARER_JWKS_ENDPOINT_URL": "file:///mnt/shared/config/keys.json",
        "KAFKA_SASL_OAUTHBEARER_EXPECTED_ISSUER": ISSUER,
        "KAFKA_SASL_OAUTHBEARER_EXPECTED_AUDIENCE": AUDIENCE,
    }
    running = waiting(
        container, environment=environment, volumes={"/mnt/shared/config": configuration}
    )
    address = f"127.0.0.1:{running.publish(9092)}"
    advertised = f"export KAFKA_ADVERTISED_LISTENERS=SASL_PLAINTEXT://{address}\n"
    running.put("/tmp/go", advertised)
    running.wait_for_log(READY)
    assert brokers_by_token(address, token()) == [address]
    assert running.stop() == 0
