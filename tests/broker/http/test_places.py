"""Places: the newest gets one, the oldest of the address with the most goes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.http.places import Places


@pytest.fixture
def places():
    return Places(3)


def test_there_is_room(places):
    assert [places.enter(guest, "a") for guest in range(3)] == [None] * 3
    assert len(places) == 3


def test_the_oldest_makes_room(places):
    for guest in range(3):
        places.enter(guest, "a")
    assert places.enter(3, "a") == 0
    assert places.enter(4, "a") == 1


def test_the_address_with_the_most_makes_room(places):
    places.enter("probe", "b")
    places.enter(1, "a")
    places.enter(2, "a")
    assert [places.enter(guest, "a") for guest in range(3, 9)] == [1, 2, 3, 4, 5, 6]


def test_who_left_is_not_displaced(places):
    for guest in range(3):
        places.enter(guest, "a")
    places.leave(0)
    places.leave(0)
    assert places.enter(3, "a") is None
    assert places.enter(4, "a") == 1


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from("abc"), st.booleans()), max_size=60))
def test_never_more_than_the_limit_and_always_the_newest(steps):
    places = Places(4)
    inside = {}
    for guest, address, leaves in steps:
        if leaves or guest in inside:
            places.leave(guest)
            inside.pop(guest, None)
            continue
        displaced = places.enter(guest, address)
        inside.pop(displaced, None)
        inside[guest] = address
        assert displaced != guest
        assert len(places) == len(inside) <= 4
