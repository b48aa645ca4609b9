import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.metrics import exposition as module
from barnabas.broker.metrics.exposition import exposition
from barnabas.broker.metrics.families import (
    COUNTER,
    GAUGE,
    HISTOGRAM,
    SUMMARY,
    Family,
    Metrics,
    labels,
    value,
)
from barnabas.broker.metrics.histograms import (
    Window,
    count_samples,
    duration_samples,
    quantile_ms,
    summary_samples,
)
from barnabas.storage.counts import Histogram
from barnabas.storage.runtime.clock import sleep
from tests.broker.metrics.scrape import Scrape


def written(*families):
    return Scrape("".join(exposition(families)))


@given(st.dictionaries(st.text("abc_", min_size=1), st.text(max_size=8), max_size=3), st.floats())
def test_prometheus_reads_what_was_written(names, number):
    if math.isnan(number) or math.isinf(number):
        number = 0.5
    names = {f"l{name}": text for name, text in names.items()}
    scrape = written(Family("one", GAUGE, 'a "doc"\nwith \\ all', [(labels(**names), number)]))
    assert scrape("one", **names) == number
    assert scrape.families[0].documentation == 'a "doc"\nwith \\ all'


def test_pieces_are_bounded_in_samples_and_in_time(monkeypatch):
    many = Family("many", GAUGE, "doc", (("", number) for number in range(10_000)))
    pieces = list(exposition([many]))
    assert max(piece.count("\n") for piece in pieces) <= module.PIECE_SAMPLES + 1
    assert "".join(pieces).count("\nmany ") == 10_000

    def slow():
        for _ in range(4):
            sleep(0.002)
            yield "", 1

    assert len(list(exposition([Family("slow", GAUGE, "doc", slow())]))) == 4


def test_counters_and_only_counters_end_in_total():
    with pytest.raises(AssertionError, match="a counter is called"):
        value("requests", COUNTER, "doc", 1)
    with pytest.raises(AssertionError, match="only a counter"):
        value("requests_total", GAUGE, "doc", 1)


def test_collectors_are_asked_in_order_and_a_name_comes_once():
    metrics = Metrics()
    metrics.register(lambda: [value("a", GAUGE, "doc", 1)])
    metrics.register(lambda: [value("b", GAUGE, "doc", 2)])
    assert [family.name for family in metrics.collect()] == ["a", "b"]
    metrics.register(lambda: [value("a", GAUGE, "doc", 3)])
    with pytest.raises(AssertionError, match="a is collected twice"):
        list(metrics.collect())


def test_a_histogram_of_durations():
    histogram = Histogram()
    for nanoseconds in (500, 1_000_000, 1_000_000, 100_000_000_000):
        histogram.observe(nanoseconds)
    scrape = written(Family("t_seconds", HISTOGRAM, "doc", duration_samples(histogram, 'api="X"')))
    assert scrape("t_seconds_bucket", api="X", le="1.024e-06") == 1
    assert scrape("t_seconds_bucket", api="X", le="0.000524288") == 1
    assert scrape("t_seconds_bucket", api="X", le="0.001048576") == 3
    assert scrape("t_seconds_bucket", api="X", le="+Inf") == 4
    assert scrape("t_seconds_count", api="X") == 4
    assert scrape("t_seconds_sum", api="X") == pytest.approx(100.0020005)
    (family,) = scrape.families
    assert family.type == "histogram"


def test_a_histogram_of_counts_has_bounds_that_include_themselves():
    histogram = Histogram(shift=0)
    for number in (0, 1, 2, 3, 4, 1_000_000):
        histogram.observe(number)
    scrape = written(Family("n", HISTOGRAM, "doc", count_samples(histogram)))
    assert [scrape("n_bucket", le=bound) for bound in (0, 1, 3, 7, "+Inf")] == [1, 2, 4, 5, 6]
    assert scrape("n_sum") == 1_000_010


def test_quantiles_are_right_to_within_a_bucket():
    histogram = Histogram()
    for microseconds in range(1, 10_001):
        histogram.observe(microseconds * 1000)
    for share in (0.001, 0.5, 0.9, 0.99, 1.0):
        exact_ms = 10 * share
        assert exact_ms / 2 < quantile_ms(histogram.counts, share) < exact_ms * 2


def test_old_times_leave_the_quantiles_and_stay_in_the_sum():
    histogram = Histogram()
    window = Window(histogram)
    histogram.observe(8_000_000_000)
    window.turn()
    histogram.observe(2_000_000)
    assert sum(window.counts()) == 2  # The last interval still counts.
    window.turn()
    assert sum(window.counts()) == 1
    scrape = written(Family("s", SUMMARY, "doc", summary_samples(window, 'request="X"')))
    assert 1 < scrape("s", request="X", quantile="0.999") < 4
    assert scrape("s_count", request="X") == 2
    assert scrape("s_sum", request="X") == 8002
    window.turn()
    assert scrape.names == {"s", "s_sum", "s_count"}
    assert written(Family("s", SUMMARY, "doc", summary_samples(window))).names == {
        "s_sum",
        "s_count",
    }
