"""Comparison of before and after: slower means beyond the tolerance and the scatter."""

import pytest

from tests.bench.load import Measurement
from tests.bench.pairs import line, page, ratio
from tests.bench.rows import ROWS

BEFORE = Measurement(1000.0, 0.002, 0.004, 0.00010, 0.2)


def pairs(*rates, cpu=0.00010):
    return [(BEFORE, BEFORE._replace(rate=rate, broker_cpu_s=cpu)) for rate in rates]


@pytest.mark.parametrize(
    ("rates", "verdict"),
    [
        ((900.0, 910.0, 920.0, 930.0, 940.0), "slower"),
        ((900.0, 910.0, 920.0, 1010.0, 1020.0), "same"),
        ((975.0, 976.0, 977.0, 978.0, 979.0), "same"),
        ((1040.0, 1041.0, 1042.0, 1043.0, 1044.0), "faster"),
        ((990.0, 995.0, 1042.0, 1043.0, 1044.0), "same"),
    ],
)
def test_a_row_is_slower_beyond_the_tolerance_and_its_scatter(rates, verdict):
    assert line(ROWS[0], pairs(*rates))[2] == verdict


def test_rounds_are_compared_with_each_other():
    found = ratio(
        [
            (BEFORE, BEFORE),
            (BEFORE._replace(rate=10.0), BEFORE._replace(rate=11.0)),
            (BEFORE, BEFORE._replace(rate=1200.0)),
        ],
        lambda each: each.rate,
    )
    assert (found.low, found.median, found.high) == pytest.approx((1.05, 1.1, 1.15))


def test_the_page_says_what_was_compared():
    slower = line(ROWS[0], pairs(900.0, 900.0, cpu=0.00012))
    text = page([("present", "89abcde")], {"1234567": [slower], "7654321": []})
    assert "| present | 89abcde |" in text
    assert text.index("## Beside 1234567") < text.index("slower") < text.index("## Beside 7654321")
    assert (
        f"| {ROWS[0].title} | 0.90 (0.90 to 0.90) | slower | 1.20 (1.20 to 1.20) | more |" in text
    )
