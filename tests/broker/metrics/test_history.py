"""The rings of the broker's own figures: what they hold, and that they never hold more."""

from __future__ import annotations

import math
import sys
from types import SimpleNamespace

import pytest

from barnabas.broker.metrics.histograms import DURATION_BUCKETS
from barnabas.broker.metrics.history import (
    COARSE_SLOTS,
    DOCS,
    FINE_SLOTS,
    HEAT,
    NAMES,
    SECONDS_PER_SPAN,
    HeatRing,
    History,
    Ring,
)
from barnabas.broker.runtime.clock import ManualClock
from barnabas.storage.counts import Histogram
from barnabas.testing import Broker
from tests.broker.console.asking import HTTP
from tests.waiting import until


@pytest.fixture
def broker():
    """What a history looks at, with nothing behind it."""
    produce = SimpleNamespace(name="Produce", requests=0, times=Histogram())
    fetch = SimpleNamespace(name="Fetch", requests=0, times=Histogram())
    return SimpleNamespace(
        clock=ManualClock(),
        routes=[produce, fetch],
        logs=SimpleNamespace(
            shown_offsets=1000,
            shown_bytes=0,
            flush_times=Histogram(),
            flush_batches=Histogram(shift=0),
            files=None,
            free_bytes=5,
            journal=SimpleNamespace(backlog_bytes=0),
        ),
        sockets=SimpleNamespace(
            received_bytes=0,
            sent_bytes=0,
            connections=[],
            connections_refused=0,
            failed_logins=SimpleNamespace(count=0),
        ),
        loop_monitor=SimpleNamespace(busy_ns=0, lag=Histogram()),
        transactions=SimpleNamespace(
            machines=[],
            counts=SimpleNamespace(
                committed=0, requests_held=0, aborted={"client": 0, "timeout": 0, "fenced": 0}
            ),
        ),
    )


def live(broker, history, seconds, each=lambda number: None):
    for number in range(seconds):
        each(number)
        broker.clock.advance(seconds=1)
        history.look()


def test_rates_levels_and_quantiles(broker):
    history = History(broker)
    history.look()
    assert list(history.fine["records_in"].values()) == [], "what was before is no rate"

    def second(number):
        broker.logs.shown_offsets += 10 * number
        broker.logs.journal.backlog_bytes = number
        if number % 2:
            broker.logs.flush_times.observe(3_000_000)

    live(broker, history, 20, second)
    assert list(history.fine["records_in"].values()) == [10 * number for number in range(20)]
    assert list(history.coarse["records_in"].values()) == [45, 145]
    assert list(history.coarse["backlog_bytes"].values()) == [9, 19], "of backlog the worst"
    p99 = history.fine["flush_p99_ms"].values()
    assert [math.isnan(each) for each in p99] == [number % 2 == 0 for number in range(20)]
    assert all(2 < each <= 5 for each in p99[1::2])
    assert math.isnan(history.coarse["produce_p50_ms"].newest)
    assert [sum(row) for row in history.heat["flush"].rows()] == [5, 5]


def test_a_second_that_took_longer(broker):
    history = History(broker)
    history.look()
    broker.logs.shown_offsets += 100
    broker.clock.advance(seconds=4)
    history.look()
    assert history.fine["records_in"].newest == 25
    history.look()  # No time has passed.
    assert len(history.fine_times.values()) == 1


def test_a_counter_that_begins_anew(broker):
    history = History(broker)
    history.look()
    broker.logs.shown_offsets = 0
    live(broker, history, 1)
    assert history.fine["records_in"].newest == 0


def test_what_takes_longer_than_the_last_bucket_is_counted(broker):
    history = History(broker)
    history.look()
    broker.logs.flush_times.observe(1 << 50)
    live(broker, history, SECONDS_PER_SPAN)
    assert history.heat["flush"].rows()[0][-1] == 1


@pytest.mark.parametrize("count", [0, 1, 4, 5, 6, 9, 10, 11])
def test_a_ring_holds_the_newest(count):
    ring = Ring(5)
    for number in range(count):
        ring.add(number)
    assert list(ring.values()) == list(range(count))[-5:]
    assert ring.newest == count - 1 or math.isnan(ring.newest)


@pytest.mark.parametrize("count", [0, 1, COARSE_SLOTS, COARSE_SLOTS + 7])
def test_a_ring_of_counts_holds_the_newest(count):
    ring = HeatRing()
    for number in range(count):
        ring.add([number] * DURATION_BUCKETS)
    assert [row[0] for row in ring.rows()] == list(range(count))[-COARSE_SLOTS:]
    assert all(len(row) == DURATION_BUCKETS for row in ring.rows())


def test_all_of_it_is_less_than_two_megabytes(broker):
    history = History(broker)
    history.look()
    live(broker, history, 2 * FINE_SLOTS)
    full = sum(sys.getsizeof(each._values) for each in history.fine.values())
    # What is long is filled by hand: six hours of seconds would take long.
    for rings in (history.coarse, {"times": history.coarse_times}):
        for each in rings.values():
            for _ in range(2 * COARSE_SLOTS):
                each.add(0)
            full += sys.getsizeof(each._values)
    for each in history.heat.values():
        for _ in range(2 * COARSE_SLOTS):
            each.add([0] * DURATION_BUCKETS)
        full += sys.getsizeof(each._counts)
    assert full < 2_000_000


def test_every_series_says_what_it_is():
    assert len(set(NAMES)) == len(NAMES)
    assert set(DOCS) == set(NAMES)
    assert not set(HEAT) & set(NAMES)


async def test_a_broker_records_itself(monkeypatch):
    monkeypatch.setattr("barnabas.broker.metrics.loop.INTERVAL_SECONDS", 0.02)
    async with Broker(config=HTTP) as broker:
        history = broker.server.history
        broker.clock.advance(seconds=1)
        await until(lambda: len(history.fine_times.values()) >= 1)
        assert history.fine["connections"].newest == 0
        assert history.fine["disk_free_bytes"].newest > 0
    async with Broker(config={**HTTP, "barnabas.console.history": "false"}) as broker:
        assert broker.server.history is None
