"""Changes of a broker that clients request."""

from __future__ import annotations

import tracemalloc

import pytest

from barnabas.broker.runtime.clock import SystemClock
from barnabas.broker.runtime.events import SLOTS, EventRing
from barnabas.testing import Broker
from tests.broker.cli.inline import Shell
from tests.broker.console.asking import HTTP, fetch
from tests.broker.producers import delete_topic

LIMIT_BYTES = 512 * 1024


def test_changes_by_clients_are_listed(monkeypatch):
    with Broker(config=HTTP) as broker:
        shell = Shell(monkeypatch, broker.bootstrap_servers)
        broker.create_topic("seen", partitions=2)
        for change in (("-p", "3"), ("-X", "retention.ms=5000")):
            assert shell("topics", "alter", "seen", *change).exit_code == 0
        delete_topic(broker, "seen")
        answer = fetch(broker, "events", filter="topic:seen")
        assert [(each["kind"], each["words"]) for each in answer["items"]] == [
            ("topic_deleted", ""),
            ("configured", "retention.ms"),
            ("topic_grown", "3 partitions"),
            ("topic_created", "2 partitions"),
        ]
        assert answer["is_since_start"] is True
        (started,) = fetch(broker, "events", kind="started")["items"]
        assert "in an empty directory: 0 partitions, 0 batches replayed" in started["words"]
        kinds = {"started", "topic_created", "topic_grown", "configured", "topic_deleted"}
        assert kinds <= set(answer["kinds"])
        assert answer["kinds"] == fetch(broker, "events", kind="started")["kinds"]
        first = fetch(broker, "events", limit=2)
        rest = fetch(broker, "events", after=first["next"])
        assert first["items"] + rest["items"] == fetch(broker, "events")["items"]


def test_how_what_was_before_has_ended():
    with Broker(config=HTTP) as broker:
        for end, words in ((broker.stop, "after an orderly end"), (broker.crash, "after a crash")):
            end()
            broker.restart()
            (started,) = fetch(broker, "events", kind="started")["items"]
            assert words in started["words"]


@pytest.mark.parametrize("length", [10, 100_000])
def test_memory_has_a_limit(length):
    ring = EventRing(SystemClock())
    tracemalloc.start()
    try:
        for number in range(3 * SLOTS):
            text = f"{number}" + "\u4e00" * length
            ring.add("denied", text, resource=text, user=text, host="10.0.0.1")
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert 0 < len(ring) <= SLOTS
    assert taken <= LIMIT_BYTES
    assert ring.complete_since_ms >= ring.begun_ms
    numbers = [each.number for each in ring.newest_first()]
    assert numbers == sorted(numbers, reverse=True)
    assert numbers[0] == 3 * SLOTS
