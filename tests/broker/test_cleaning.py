"""Compaction in a running broker, moved by its clock."""

import inspect
from dataclasses import replace

import pytest

from barnabas.storage.runtime.clock import now_ns
from barnabas.testing import Broker
from tests.broker.console.asking import HTTP, fetch
from tests.broker.producers import Producer, delete_topic
from tests.waiting import wait_until
from tests.worlds import world

__all__ = ["world"]

COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "1000",
    "min.cleanable.dirty.ratio": "0.01",
}


@pytest.fixture
def broker():
    with Broker(config={**HTTP, "log.cleaner.dedupe.buffer.size": str(1 << 20)}) as running:
        running.create_topic("t", configs=COMPACTED)
        yield running


def fill(broker, rounds=5):
    """One key, each record in a segment of its own; all of them are in the segment files."""
    now_ms = now_ns() // 1_000_000
    with Producer(broker) as producer:
        for number in range(rounds):
            producer.send("t", b"%d" % number, key=b"key", time_ms=now_ms + number * 2000)
    wait_for(broker, lambda: not the_log(broker).unflushed)


def the_log(broker):
    (log,) = broker.server.logs.logs.values()
    return log


def cleaner(broker):
    return broker.server._housekeeping.cleaner


def wait_for(broker, condition):
    wait_until(lambda: broker.call(condition), lambda: inspect.getsource(condition).strip())


def values(broker):
    return [record.value for record in broker.records("t").result]


def test_the_clock_makes_it_due(broker):
    fill(broker)
    assert cleaner(broker).counts.passes == 0
    broker.clock.advance(seconds=20)
    wait_for(broker, lambda: cleaner(broker).counts.passes == 1)
    assert values(broker) == [b"3", b"4"]
    counts = cleaner(broker).counts
    assert 0 < counts.bytes_written < counts.bytes_read
    assert counts.failures == 0
    wait_for(broker, lambda: cleaner(broker).latest)
    (ended,) = cleaner(broker).latest
    assert ended.time_ms >= counts.last_pass_ms
    assert (ended.topic, ended.partition) == ("t", 0)
    assert 0 < ended.bytes_after < ended.bytes_before
    (shown,) = fetch(broker, "storage")["compactions"]
    assert tuple(shown.values()) == ended


def test_a_restart_finds_what_was_left(broker):
    fill(broker)
    broker.clock.advance(seconds=20)
    wait_for(broker, lambda: cleaner(broker).counts.passes == 1)
    broker.crash()
    broker.restart()
    # The swap was in no checkpoint yet, so the old segments are back; they say the same.
    assert values(broker)[-2:] == [b"3", b"4"]
    broker.clock.advance(seconds=20)
    wait_for(broker, lambda: cleaner(broker).counts.passes >= 1)
    assert values(broker) == [b"3", b"4"]


def test_disabled_cleaner_cleans_no_log():
    with Broker(config={"log.cleaner.enable": "false"}) as broker:
        broker.create_topic("t", configs=COMPACTED)
        fill(broker)
        broker.clock.advance(seconds=60)
        broker.call(lambda: cleaner(broker).survey())
        assert broker.call(lambda: cleaner(broker)._running) == set()
        assert len(values(broker)) == 5


def test_damage_ends_a_pass_and_the_next_one_stops_in_front_of_it(caplog):
    config = {
        "log.cleaner.dedupe.buffer.size": str(1 << 20),
        "barnabas.scrub.bytes.per.second": "0",
    }
    with Broker(config=config) as broker:
        broker.create_topic("t", configs=COMPACTED)
        fill(broker)
        log = the_log(broker)
        damaged = log.segments[2]
        broker.call(lambda: damaged.file.pwritev([b"\xff"], 65))
        broker.clock.advance(seconds=20)
        wait_for(broker, lambda: log.damaged and log.cleaning.failure is None)
        broker.call(lambda: cleaner(broker).survey())
        wait_for(broker, lambda: log.cleaning.clean_offset == damaged.base_offset)
        broker.clock.advance(seconds=60)
        broker.call(lambda: cleaner(broker).survey())
        assert cleaner(broker).counts.failures == 1
        told = [record.getMessage() for record in caplog.records]
        assert len([line for line in told if line.startswith("not compacted for now ")]) == 1
        assert len([line for line in told if line.startswith("log damaged topic=t ")]) == 1


def test_a_topic_deleted_during_a_pass(broker):
    fill(broker)
    log = the_log(broker)
    broker.call(lambda: cleaner(broker).survey())
    delete_topic(broker, "t")
    wait_for(broker, lambda: not cleaner(broker)._running)
    assert log.cleaning.failure is None
    assert cleaner(broker).counts.failures == 0


def test_a_rate_limit_stretches_a_pass(broker):
    fill(broker)

    def limit():
        server = broker.server
        server.config = replace(server.config, log_cleaner_io_max_bytes_per_second=1.0)
        cleaner(broker).survey()

    broker.call(limit)
    compaction = cleaner(broker)
    assert len(compaction._running) == 1
    broker.stop()  # It does not wait for the pass.
    assert compaction.counts.passes == 0
