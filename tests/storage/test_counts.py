"""Counters beside the logs: what is traffic, and what is not."""

from random import Random

import pytest

from barnabas.storage.counts import Histogram, Traffic
from tests.seeds import SEED


def test_a_histogram_counts_by_powers_of_two():
    histogram = Histogram()
    for value in (0, 1023, 1024, 2047, 2048):
        histogram.observe(value)
    histogram.observe(1 << 40, times=3)
    assert histogram.counts[:4] == [2, 2, 1, 0]
    assert histogram.counts[31] == 3
    assert sum(histogram.counts) == 8
    assert histogram.sum == 1023 + 1024 + 2047 + 2048 + 3 * (1 << 40)


def test_the_longest_time_there_is_has_a_place():
    histogram = Histogram(shift=0)
    histogram.observe(2**63 - 1)
    assert histogram.counts[63] == 1


def test_every_value_is_below_its_bound_and_not_below_the_one_before():
    random = Random(SEED)
    for _ in range(2000):
        value = random.getrandbits(random.randint(1, 50))
        histogram = Histogram()
        histogram.observe(value)
        place = histogram.counts.index(1)
        assert value < 1 << (10 + place)
        assert place == 0 or value >= 1 << (10 + place - 1)


def test_traffic_adds_up():
    assert Traffic(1, 2, 3).plus(Traffic(10, 20, 30, 40)) == Traffic(11, 22, 33, 40)
    assert Traffic().plus(Traffic()) == pytest.approx((0,) * 8)
