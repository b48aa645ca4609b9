"""The part of the page about takeovers, and its comparison with the targets."""

import pytest

from tests.bench.cluster.takeover_report import HEADING, part_of, with_part, written
from tests.bench.cluster.takeovers import Failover, Kill, Results, Size, Stop, Times

PAGE = "# Benchmarks\n\n## Measured\n\n| a |\n"


def results(served_s=11.0, gap_s=0.2, acknowledged_s=1.0, loaded=0):
    times = Times.of({0: 0.1, 1: gap_s, 2: 0.1})
    return Results(
        Size(),
        [Failover("it crashes", 0.5, {1: 0.1, 2: acknowledged_s}, loaded, 0)],
        Stop(333, 2.0, 32, times, times, 0.05),
        5.0,
        Kill(10.0, 333, Times.of({0: 10.0, 1: served_s}), 17, Times.of({0: 10.5})),
    )


@pytest.mark.parametrize(
    ("measured", "missed"),
    [
        (results(), 0),
        (results(served_s=13.1), 1),
        (results(gap_s=0.31), 2),
        (results(acknowledged_s=2.1), 1),
        (results(loaded=1), 1),
    ],
)
def test_takeover_targets_are_compared_with_the_measurements(measured, missed):
    part = written([("load", "1.0")], measured)
    assert (part.count("missed"), part.count("met")) == (missed, 5 - missed)


def test_the_part_takes_the_place_of_the_one_before_and_of_nothing_else():
    first, second = written([], results()), written([], results(served_s=12.0))
    page = with_part(PAGE, first)
    assert page.startswith(PAGE)
    assert (part_of(PAGE), part_of(page)) == ("", first)
    assert with_part(page, second) == with_part(PAGE, second)
    assert with_part(PAGE, "") == PAGE
    assert page.count(HEADING) == 1


def test_times_are_summed_up():
    assert Times.of({7: 3.0, 8: 1.0, 9: 2.0}) == Times(1.0, 2.0, 3.0, [7, 9, 8])
