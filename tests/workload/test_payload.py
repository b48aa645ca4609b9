"""Records with padding are their values; damaged ones are none that was sent."""

from __future__ import annotations

import pytest

from barnabas.storage.runtime.clock import now_ns
from tests.broker.data_plane import unpack
from tests.workload.payload import payload, value_of
from tests.workload.wire_client import records_of


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


def test_records_have_the_present_time():
    """Retention would delete older ones under their readers."""
    before_ms = now_ns() // 1_000_000
    first, second = unpack(records_of([b"a", b"b"]))
    assert before_ms <= first.timestamp == second.timestamp <= now_ns() // 1_000_000
