"""Walks of requests through the files: no walk becomes longer (``make walks`` prints the table)."""

from __future__ import annotations

import pytest

from tests.walks.counted import BOUNDS, numbers_of, table, walks


@pytest.fixture(scope="module")
def found():
    return walks()


def test_walks_stay_within_their_bounds(found):
    print(table(found))
    longer = {
        name: walk
        for name, walk in found.items()
        if walk.files > BOUNDS[name].files or walk.returns > BOUNDS[name].returns
    }
    assert longer == {}
    assert found.keys() == BOUNDS.keys()


def test_each_walk_crosses_the_rooms_that_it_must(found):
    # A recorder that misses a thread would find short walks.
    assert all(walk.functions > 80 for walk in found.values())


@pytest.mark.parametrize(
    ("route", "numbers"),
    [
        ("", (0, 0, 0, 0, 0)),
        ("aaa", (3, 1, 1, 0, 0)),
        ("abc", (3, 3, 3, 2, 0)),
        ("aba", (3, 2, 2, 2, 1)),
        ("abab", (4, 2, 2, 3, 2)),
        ("aabbca", (6, 3, 3, 3, 1)),
    ],
)
def test_numbers_of_a_route(route, numbers):
    assert numbers_of([(each, "1 f") for each in route]) == numbers
