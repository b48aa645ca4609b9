"""Slots: the newest gets one, the oldest of the address with the most goes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.http.connection_slots import ConnectionSlots


@pytest.fixture
def slots():
    return ConnectionSlots(3)


def test_connections_up_to_the_limit_enter(slots):
    assert [slots.enter(connection, "a") for connection in range(3)] == [None] * 3
    assert len(slots) == 3


def test_the_oldest_makes_room(slots):
    for connection in range(3):
        slots.enter(connection, "a")
    assert slots.enter(3, "a") == 0
    assert slots.enter(4, "a") == 1


def test_the_address_with_the_most_makes_room(slots):
    slots.enter("probe", "b")
    slots.enter(1, "a")
    slots.enter(2, "a")
    assert [slots.enter(connection, "a") for connection in range(3, 9)] == [1, 2, 3, 4, 5, 6]


def test_closed_connection_is_not_displaced(slots):
    for connection in range(3):
        slots.enter(connection, "a")
    slots.leave(0)
    slots.leave(0)
    assert slots.enter(3, "a") is None
    assert slots.enter(4, "a") == 1


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from("abc"), st.booleans()), max_size=60))
def test_never_more_than_the_limit_and_always_the_newest(steps):
    slots = ConnectionSlots(4)
    inside = {}
    for connection, address, leaves in steps:
        if leaves or connection in inside:
            slots.leave(connection)
            inside.pop(connection, None)
            continue
        displaced = slots.enter(connection, address)
        inside.pop(displaced, None)
        inside[connection] = address
        assert displaced != connection
        assert len(slots) == len(inside) <= 4
