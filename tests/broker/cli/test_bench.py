"""`barnabas bench`: what it writes is there, what it reads is counted."""

from __future__ import annotations

import signal
import subprocess

import pytest

from tests.broker.cli.command import command, environment
from tests.waiting import wait_until


@pytest.fixture
def topic(shell, request):
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)
    shell("topics", "create", name, "-p", "2")
    return name


def test_so_many_records(shell, topic):
    found = shell("bench", "produce", topic, "-n", "1000", "--format", "json").json
    assert (found["verb"], found["topic"], found["records"]) == ("produce", topic, 1000)
    assert found["records_per_second"] > 0
    assert found["p99_ms"] >= found["p50_ms"] > 0
    described = shell("topics", "describe", topic, "--format", "json").json[0]
    assert [each["end_offset"] for each in described["partitions"]] == [500, 500]
    found = shell("bench", "consume", topic, "--format", "json").json
    assert found["records"] == 1000
    assert shell("bench", "consume", topic, "-n", "10", "--format", "json").json["records"] == 10


@pytest.mark.parametrize("codec", ["none", "lz4", "zstd"])
def test_sizes(shell, topic, codec):
    shell("bench", "produce", topic, "-n", "6", "--batch", "3", "--size", "50", "-z", codec)
    values = shell("consume", topic, "-o", "beginning", "-e").lines
    assert [len(each) for each in values] == [50] * 6
    assert len(set(values)) == 3


def test_no_more_than_so_many(shell, topic):
    shell("bench", "produce", topic, "-n", "250")
    assert shell("bench", "consume", topic, "--format", "json").json["records"] == 250


def test_fewer_than_a_batch(shell, topic):
    lines = shell("bench", "produce", topic, "-n", "7").lines
    assert lines[0] == "records 7"
    assert [line.rsplit(" ", 1)[0] for line in lines] == [
        "records", "seconds", "records per second", "megabytes per second", "p50 ms", "p99 ms"
    ]  # fmt: skip


def test_mistakes(shell, topic):
    assert shell("bench", "consume", topic).error == f"{topic}: there is nothing to read"
    assert "UNKNOWN_TOPIC" in shell("bench", "produce", "nope").error
    large = shell("bench", "produce", topic, "--size", "2000000", "--batch", "1")
    assert "MESSAGE_TOO_LARGE" in large.error


def test_ctrl_c_prints_what_was_measured(shell, shared_broker, topic, tmp_path):
    process = subprocess.Popen(
        command("bench", "produce", topic, "-s", "600", "-b", shell.address),
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    partition = shared_broker.call(lambda: shared_broker.server.catalogue.partition(topic, 0))
    wait_until(lambda: shared_broker.call(lambda: partition.log.high_watermark) > 1000)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stderr) == (130, "")
    assert stdout.startswith("records ")
