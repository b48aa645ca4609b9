"""`barnabas bench`: records produced, records counted, and the figures of its output."""

from __future__ import annotations

import io
import random
from functools import partial

import pytest

from barnabas.broker.cli.commands.bench import Latencies, Run
from barnabas.broker.cli.interruption import Interruption
from barnabas.broker.cli.output import Progress
from barnabas.storage.runtime.clock import sleep
from barnabas.storage.runtime.threads import start_thread
from tests.broker.metrics.scrape import scrape
from tests.counterparts.transaction_client import TransactionClient
from tests.waiting import wait_until


@pytest.fixture
def topic(shell, request):
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)
    shell("topics", "create", name, "-p", "2")
    return name


def test_count_of_records_is_produced_and_consumed(shell, topic):
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
        "records", "seconds", "records per second", "megabytes per second", "p50 ms", "p99 ms",
        "max ms",
    ]  # fmt: skip


def test_mistakes(shell, topic):
    assert shell("bench", "consume", topic).error == f"{topic}: the topic has no records"
    assert "UNKNOWN_TOPIC" in shell("bench", "produce", "nope").error
    large = shell("bench", "produce", topic, "--size", "2000000", "--batch", "1")
    assert "MESSAGE_TOO_LARGE" in large.error


def test_the_broker_counts_the_same(shell, shared_broker, topic):
    found = shell(
        *("bench", "produce", topic, "-n", "20050", "--batch", "100"),
        *("--size", "500", "-z", "lz4", "--format", "json"),
    ).json
    seen = scrape(shared_broker)
    assert seen("kafka_server_brokertopicmetrics_messagesin_total", topic=topic) == 20050
    assert seen("kafka_server_brokertopicmetrics_totalproducerequests_total", topic=topic) == 201
    # Each value is rounded, the megabytes to a tenth.
    seconds = found["seconds"]
    assert found["records_per_second"] * seconds == pytest.approx(20050, rel=0.05)
    expected = pytest.approx(20050 * 500 / 1e6, abs=0.06 * seconds + 0.6)
    assert found["megabytes_per_second"] * seconds == expected, "of values, not compressed"
    assert found["p50_ms"] <= found["p99_ms"] <= found["max_ms"] < seconds * 1000
    consumed = shell("bench", "consume", topic, "--format", "json").json
    assert consumed["records"] == 20050


def test_aborted_records_are_not_counted(shell, shared_broker, topic):
    shell("bench", "produce", topic, "-n", "30")
    shared_broker.port = shared_broker.address[1]
    with TransactionClient(shared_broker) as client:
        client.begin(topic, topic, 0)
        client.end(topic, commit=False)
    shell("bench", "produce", topic, "-n", "20")
    assert shell("bench", "consume", topic, "--format", "json").json["records"] == 50


def test_a_rate_is_kept(shell, topic):
    found = shell(
        *("bench", "produce", topic, "-n", "200", "--batch", "20", "--rate", "400"),
        *("--format", "json"),
    ).json
    assert found["records"] == 200
    # The tenth batch is due after 0.45 seconds.
    assert found["seconds"] >= 0.45
    found = shell(
        *("bench", "produce", topic, "-s", "0.4", "--batch", "1", "--rate", "1"),
        *("--format", "json"),
    ).json
    assert found["records"] == 1, "the second one was not due yet"


def test_with_a_rate_a_stall_counts_for_all_that_was_due_in_it(own_shell, own_broker):
    def stall(topic):
        partition = own_broker.call(lambda: own_broker.server.catalogue.partition(topic, 0))
        wait_until(lambda: partition.log.high_watermark > 100)
        own_broker.call(lambda: sleep(1))

    results = {}
    for topic, options in {"open": ["--rate", "1000"], "closed": []}.items():
        own_broker.create_topic(topic, 1)
        stalling = start_thread("stalls", partial(stall, topic))
        verb = ["bench", "produce", topic, "--batch", "10", "-s", "3", "--format", "json"]
        results[topic] = own_shell(*verb, *options).json
        stalling.join()
    for found in results.values():
        assert found["max_ms"] >= 900
    # A third of the requests was due during the pause of the broker.
    assert results["open"]["p99_ms"] >= 500


@pytest.mark.parametrize("seed", range(5))
def test_latencies_are_at_most_a_hundredth_too_high(seed):
    chance = random.Random(seed)
    exact = sorted(chance.lognormvariate(-7, 2) for _ in range(chance.randrange(1, 3000)))
    latencies = Latencies()
    for each in chance.sample(exact, len(exact)):
        latencies.add(each)
    for percent in (1, 50, 99, 100):
        rank = -(-len(exact) * percent // 100)
        told = latencies.percentile(percent)
        assert exact[rank - 1] * 0.999999 <= max(told, 1e-6) <= max(exact[rank - 1] * 1.0101, 1e-6)
    assert latencies.most_s == exact[-1]
    assert Latencies().percentile(99) == 0


def test_progress_line_is_formatted_only_when_shown(monkeypatch):
    class Counting(Run):
        made = 0

        def line(self):
            Counting.made += 1
            return super().line()

    run = Counting(None, 10.0, Interruption())
    monkeypatch.setattr("sys.stderr", io.StringIO())
    with Progress(output_waits=True) as unseen:
        for _ in range(100):
            run.add(1, 100, 0.001)
            run.show(unseen)
    assert Counting.made == 0
    with Progress(lines=True) as seen:
        for _ in range(100):
            run.show(seen)
    assert Counting.made == 1
