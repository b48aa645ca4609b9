"""Pages by cursor."""

from __future__ import annotations

import base64
import json
import random

import pytest

from barnabas.broker.console.paging import Order, Selection
from barnabas.protocol.errors import KafkaError


@pytest.mark.parametrize("sort", ["lag", "-lag"])
@pytest.mark.parametrize("limit", [1, 2, 7, 1000])
def test_pages_are_what_sorting_would_give(sort, limit):
    chance = random.Random(20261125)
    places = [(chance.randrange(5), f"group-{number}") for number in range(200)]
    chance.shuffle(places)
    order = Order(sort, (int, str))
    found, after = [], None
    while True:
        selection = Selection(order, limit, after)
        for place in places:
            selection.offer(place, *place)
        page, after = selection.page(), selection.following
        assert len(page) <= limit
        found += page
        if after is None:
            break
    assert found == sorted(places, reverse=order.is_descending)


def test_little_is_kept():
    selection = Selection(Order("name", (str,)), 10, None)
    for number in range(10_000):
        selection.offer(number, f"{number:05}")
        assert len(selection._kept) <= 22


def encoded(value):
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "A",
        "!",
        "é",
        encoded(None),
        encoded({}),
        encoded([]),
        encoded(["lag"]),
        encoded(["lag", 1]),
        encoded(["lag", "1", "x"]),
        encoded(["lag", True, "x"]),
        encoded(["lag", 1.0, "x"]),
        encoded(["lag", 1, None]),
        encoded(["-lag", 1, "x"]),
        encoded(["lag", 1, "x", "y"]),
        base64.b64encode(b"[" * 40_000).decode(),
        base64.b64encode(b"\xff").decode(),
    ],
)
def test_a_cursor_of_ones_own_making(cursor):
    with pytest.raises(KafkaError):
        Order("lag", (int, str)).place(cursor)


def test_a_cursor_survives_any_name():
    order = Order("lag", (int, str))
    for name in ("", "a/b", "ü\u202e", "x" * 30_000, '"\\'):
        assert order.place(order.cursor((2**63 - 1, name))) == (2**63 - 1, name)
