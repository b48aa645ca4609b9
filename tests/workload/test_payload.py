"""Records with padding are their values; damaged ones are none that was sent."""

from __future__ import annotations

import pytest

from tests.workload.payload import payload, value_of


@pytest.mark.parametrize("pad_bytes", [0, 1, 5, 1000])
def test_the_value_of_a_payload(pad_bytes):
    data = payload("writer.7", pad_bytes)
    assert value_of(data) == "writer.7"
    assert len(data) >= pad_bytes


@pytest.mark.parametrize("at", [10, 500, 1008])
def test_damage_is_seen(at):
    data = bytearray(payload("writer.7", 1000))
    data[at] ^= 1
    assert value_of(bytes(data)) != "writer.7"
