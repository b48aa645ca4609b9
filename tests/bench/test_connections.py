"""Connections send and receive the requests of the measurement, with TLS and without."""

import pytest

from tests.bench.connections import LARGE_BYTES, measure


@pytest.mark.slow
@pytest.mark.parametrize("tls", [False, True])
def test_connections_cost_less_than_what_went_through_them(tls):
    cost = measure(100, tls=tls)
    assert cost.idle_bytes < 150_000
    assert cost.used_bytes < LARGE_BYTES
