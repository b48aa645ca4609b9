import json
import os
import re
import signal
import socket
import stat
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from kafka import KafkaProducer

from barnabas.testing import Broker
from tests.counterparts.barnabas_process import COMPILED
from tests.real.cli.command import READY, Served, barnabas, error_of, free_port


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains_and_ends_well(number, tmp_path):
    with Served(tmp_path, forked=False) as broker:
        assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700
        exit_code, stdout, _ = broker.stop(number)
    assert (exit_code, stdout) == (0, READY)


def test_a_second_signal_ends_at_once(tmp_path):
    with Served(tmp_path) as broker:
        # While the process is held, both arrive; it meets the second before the drain is done.
        for number in (signal.SIGSTOP, signal.SIGTERM, signal.SIGINT, signal.SIGCONT):
            broker.process.send_signal(number)
        exit_code, _, stderr = broker.stop()
    assert exit_code in {128 + signal.SIGTERM, 128 + signal.SIGINT}
    assert "second signal" in stderr


def test_the_ready_line_names_the_broker(tmp_path):
    with Served(tmp_path, "--override", "node.id=7") as broker:
        assert broker.ready_line == READY.replace("id=1", "id=7")


def test_a_second_start_finds_what_the_first_left(tmp_path):
    for _ in range(2):
        with Served(tmp_path, f"-Xlog.dirs={tmp_path}/elsewhere") as broker:
            assert broker.stop()[0] == 0
    assert not (tmp_path / "data").exists()


def test_a_killed_broker_starts_again(tmp_path):
    with Served(tmp_path) as broker:
        broker.process.kill()
        broker.process.wait()
    with Served(tmp_path) as broker:
        assert broker.stop()[0] == 0


def test_connected_clients_do_not_keep_it_from_stopping(tmp_path):
    with Served(tmp_path) as broker, socket.create_connection(("127.0.0.1", broker.port)) as idle:
        assert broker.stop()[0] == 0
        assert idle.recv(1) == b""


def test_the_file_and_the_environment_count(tmp_path):
    (tmp_path / "server.properties").write_text("log.dirs=from-file\nx.y=1\nnum.io.threads=8\n")
    environment = {"KAFKA_NODE_ID": "3", "KAFKA_NO_SUCH_KEY": "1"}
    with Served(tmp_path, "server.properties", env=environment) as broker:
        _, stdout, stderr = broker.stop()
    assert stdout == READY.replace("id=1", "id=3")
    assert (tmp_path / "from-file").is_dir()
    (warning,) = (line for line in stderr.splitlines() if "WARNING" in line)
    assert warning.endswith("unknown settings: no.such.key, x.y")
    (note,) = (line for line in stderr.splitlines() if "without effect" in line)
    assert note.endswith(": num.io.threads")


def test_log_lines_in_json(tmp_path):
    with Served(tmp_path, "-Xbarnabas.log.format=json") as broker:
        _, _, stderr = broker.stop()
    lines = [json.loads(line) for line in stderr.splitlines()]
    assert lines[0]["event"].startswith("barnabas starts")
    assert re.match(r"\d+\.\d+\.\d+", lines[0]["version"])
    assert lines[0]["build"] == ("compiled" if COMPILED else "pure")
    assert {line["level"] for line in lines} == {"INFO"}


def test_a_quiet_log(tmp_path):
    with Served(tmp_path, env={"KAFKA_LOG4J_ROOT_LOGLEVEL": "WARN"}) as broker:
        assert broker.stop()[2] == ""


# ------------------------------------------------------------------ what keeps it from starting


def refused(tmp_path, *arguments, exit_code=1):
    listener = f"-Xlisteners=PLAINTEXT://127.0.0.1:{free_port()}"
    quiet = "-Xbarnabas.http.listener="
    return error_of(barnabas("serve", listener, quiet, *arguments, cwd=tmp_path), exit_code)


def test_the_port_is_in_use(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        line = refused(tmp_path, f"-Xlisteners=PLAINTEXT://127.0.0.1:{port}")
    beside = port + 10_000 if port + 10_000 < 65_536 else port - 10_000
    assert line.endswith(
        f"PLAINTEXT://127.0.0.1:{port}: Address already in use (listeners, --override); "
        f"for another port, start with -X listeners=PLAINTEXT://127.0.0.1:{beside}"
    )
    assert not (tmp_path / "data").exists()


def test_where_a_listener_comes_from(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        (tmp_path / "server.properties").write_text(f"\nlisteners=PLAINTEXT://127.0.0.1:{port}\n")
        ended = barnabas("serve", "server.properties", cwd=tmp_path)
    assert (
        error_of(ended, 1).count("in use (listeners, server.properties line 2); for another port")
        == 1
    )


def test_start_prints_the_listening_address(tmp_path):
    with Served(tmp_path, port=free_port()) as broker:
        assert broker.listening == [f"listening on PLAINTEXT://127.0.0.1:{broker.port}"]


def test_start_prints_the_advertised_address(tmp_path):
    advertised = "-Xadvertised.listeners=PLAINTEXT://broker.example:19092"
    with Served(tmp_path, advertised) as broker:
        (line,) = broker.listening
    assert line.endswith(f":{broker.port}, clients are sent to broker.example:19092")


def test_the_http_port_that_was_asked_for_is_in_use(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        line = refused(tmp_path, f"-Xbarnabas.http.listener=127.0.0.1:{port}")
    assert f"http://127.0.0.1:{port}" in line
    assert "in use" in line


def test_health_and_metrics_over_http(tmp_path):
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    with Served(tmp_path, f"-Xbarnabas.http.listener=127.0.0.1:{port}") as broker:
        with urlopen(f"{address}/readyz", timeout=60) as answer:
            assert json.load(answer)["status"] == "ok"
        with urlopen(f"{address}/metrics", timeout=60) as answer:
            assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
            lines = answer.read().decode().splitlines()
        assert "kafka_server_kafkaserver_brokerstate 3" in lines
        assert broker.stop()[0] == 0
    with pytest.raises(URLError):
        urlopen(f"{address}/livez", timeout=60)


def test_foreign_address_stops_the_start(tmp_path):
    line = refused(tmp_path, "-Xlisteners=PLAINTEXT://192.0.2.1:9092")
    assert "192.0.2.1:9092" in line


def test_another_broker_uses_the_directory(tmp_path):
    with Served(tmp_path) as broker:
        line = refused(tmp_path)
        assert line == "barnabas: ./data: another broker is using this data directory"
        assert barnabas("ready", "-b", broker.address, cwd=tmp_path).returncode == 0


def test_the_directory_is_a_file(tmp_path):
    (tmp_path / "file").write_text("")
    assert refused(tmp_path, "-Xlog.dirs=file").endswith("(log.dirs, --override)")


def test_the_directory_cannot_be_written(tmp_path):
    line = refused(tmp_path, "-Xlog.dirs=/proc/barnabas")
    assert "/proc/barnabas" in line


@pytest.mark.parametrize(
    "override", ["num.partitions=zero", "no.such.key=1", "num.partitions", "listeners=X://:1"]
)
def test_bad_keys_and_values(override, tmp_path):
    refused(tmp_path, "-X", override, exit_code=2)
    assert not (tmp_path / "data").exists()


def test_a_topic_that_cannot_be_created(tmp_path):
    line = refused(tmp_path, "-Xbarnabas.create.topics=..:1:1")
    assert line.startswith("barnabas: barnabas.create.topics: ")


def test_topics_are_there_when_it_is_ready(tmp_path):
    environment = {"KAFKA_CREATE_TOPICS": "orders:3:1,prices:1:1:compact"}
    with Served(tmp_path, env=environment) as broker:
        assert broker.stop()[0] == 0
    for _ in range(2):
        with Served(tmp_path, env=environment) as broker:
            listed = barnabas(
                "topics", "list", "-b", broker.address, "--format", "json", cwd=tmp_path
            )
            topics = {row["topic"]: row["partitions"] for row in json.loads(listed.stdout)}
            assert topics == {"orders": 3, "prices": 1}


def test_a_damaged_metadata_store(tmp_path):
    with Served(tmp_path) as broker:
        broker.stop()
    for path in (tmp_path / "data").glob("barnabas-metadata.sqlite*"):
        path.write_bytes(b"damaged " * 1024)
    assert "metadata store" in (line := refused(tmp_path))
    assert "data/barnabas-metadata.sqlite" in line


def test_a_damaged_checkpoint(tmp_path):
    with Served(tmp_path) as broker:
        broker.stop()
    for path in (tmp_path / "data").glob("barnabas-checkpoint-*"):
        path.write_bytes(b"damaged")
    line = refused(tmp_path)
    assert "is corrupt at byte" in line
    assert "--repair" not in line


def test_damaged_log_names_the_command_that_shows_the_loss(tmp_path):
    with (
        Broker(storage=tmp_path / "data") as broker,
        KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer,
    ):
        broker.create_topic("orders")
        producer.send("orders", b"one").get(60)
    (log,) = (tmp_path / "data").glob("orders-0/*.log")
    os.truncate(log, log.stat().st_size - 1)
    line = refused(tmp_path)
    assert f"{log.name} is corrupt at byte" in line
    (command,) = re.findall(
        r"; `barnabas (check --repair -d \S+)` shows what a repair would lose$", line
    )
    listed = barnabas(*command.split(), cwd=tmp_path)
    assert "refused: 1 problem, in 1 of 1 partition: orders-0" in listed.stdout


def test_another_clusters_directory(tmp_path):
    with Served(tmp_path, "-Xcluster.id=one") as broker:
        broker.stop()
    line = refused(tmp_path, "-Xcluster.id=two")
    assert line.endswith("./data belongs to cluster one, the configuration says two")


def test_another_brokers_directory(tmp_path):
    with Served(tmp_path) as broker:
        broker.stop()
    line = refused(tmp_path, "-Xnode.id=2")
    assert line.endswith("belongs to node 1, the configuration says 2")
