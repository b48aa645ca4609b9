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
    GROWTH_SPANS,
    GROWTH_SPANS_LEAST,
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
    """A broker with the objects that a history reads, and no more."""
    produce = SimpleNamespace(name="Produce", requests=0, times=Histogram())
    fetch = SimpleNamespace(name="Fetch", requests=0, times=Histogram())
    return SimpleNamespace(
        clock=ManualClock(),
        routes=[produce, fetch],
        logs=SimpleNamespace(
            visible_offsets=1000,
            visible_bytes=0,
            flush_times=Histogram(),
            flush_batches=Histogram(shift=0),
            journal_bytes=0,
            free_bytes=5,
            duplicates=0,
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
        history.sample()


def test_rates_levels_and_quantiles(broker):
    history = History(broker)
    history.sample()
    assert list(history.fine["records_in"].values()) == [], "what was before is no rate"

    def second(number):
        broker.logs.visible_offsets += 10 * number
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
    counts = history.heat["flush"].values()
    assert [sum(counts[:DURATION_BUCKETS]), sum(counts[DURATION_BUCKETS:])] == [5, 5]


def test_a_second_that_took_longer(broker):
    history = History(broker)
    history.sample()
    broker.logs.visible_offsets += 100
    broker.clock.advance(seconds=4)
    history.sample()
    assert history.fine["records_in"].newest == 25
    history.sample()  # No time has passed.
    assert len(history.fine_times.values()) == 1


def test_restarted_counter_counts_no_records(broker):
    history = History(broker)
    history.sample()
    broker.logs.visible_offsets = 0
    live(broker, history, 1)
    assert history.fine["records_in"].newest == 0


def test_time_above_the_last_bucket_is_counted(broker):
    history = History(broker)
    history.sample()
    broker.logs.flush_times.observe(1 << 50)
    live(broker, history, SECONDS_PER_SPAN)
    assert history.heat["flush"].values()[-1] == 1


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
    values = ring.values()
    assert list(values[::DURATION_BUCKETS]) == list(range(count))[-COARSE_SLOTS:]
    assert values[::DURATION_BUCKETS] == values[DURATION_BUCKETS - 1 :: DURATION_BUCKETS]


def test_cut_series_have_one_end_and_one_start(broker):
    history = History(broker)
    history.sample()

    def second(number):
        broker.logs.visible_offsets += number
        broker.logs.journal.backlog_bytes = number
        broker.logs.flush_times.observe(1)

    live(broker, history, 4 * SECONDS_PER_SPAN, second)
    names = ["records_in", "backlog_bytes"]
    now_ms = broker.clock.now_ms()
    fine = history.cut(names, ["flush"], is_fine=True, since_ms=now_ms - 12_000)
    assert list(fine.times) == [now_ms - 1000 * ago for ago in range(12, -1, -1)]
    for name in names:
        assert list(fine.series[name]) == list(range(27, 40))
    assert list(fine.heat_times) == [now_ms - 10_000, now_ms]
    assert len(fine.heat["flush"]) == 2 * DURATION_BUCKETS
    assert sum(fine.heat["flush"]) == 20
    coarse = history.cut(["backlog_bytes"], [], is_fine=False, since_ms=0)
    assert list(coarse.series["backlog_bytes"]) == [9, 19, 29, 39]
    assert len(history.cut(names, HEAT, is_fine=True, since_ms=now_ms + 1).times) == 0


def filling(broker, history, spans, bytes_per_span):
    """Take that much of the disk in each span."""
    for _ in range(spans):
        broker.logs.free_bytes -= bytes_per_span
        live(broker, history, SECONDS_PER_SPAN)


def test_when_the_disk_is_full_by_the_growth_of_the_last_hour(broker):
    history = History(broker)
    history.sample()
    broker.logs.free_bytes = 1_000_000
    filling(broker, history, GROWTH_SPANS_LEAST - 1, 1000)
    assert history.time_until_full_s() is None, "that is too short a time to say it"
    filling(broker, history, 1, 1000)
    assert history.time_until_full_s() == 10 * broker.logs.free_bytes / 1000
    filling(broker, history, GROWTH_SPANS, 10)
    assert history.time_until_full_s() == 10 * broker.logs.free_bytes / 10, "what was before counts"
    filling(broker, history, GROWTH_SPANS, 0)
    assert history.time_until_full_s() is None
    filling(broker, history, GROWTH_SPANS, -5)
    assert history.time_until_full_s() is None


def test_all_of_it_is_less_than_two_megabytes(broker):
    history = History(broker)
    history.sample()
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
