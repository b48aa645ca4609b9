"""Processor time of reading a filter."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest

from barnabas.broker.console.records.filters import TERMS_MOST, read_filter
from barnabas.protocol.errors import KafkaError
from tests.protocol.test_patterns import UNITS


@pytest.mark.parametrize("unit", UNITS)
def test_no_filter_takes_long_to_read(unit):
    """Processor time: 0.13 s were seen."""
    seconds = []
    for count in range(1, 60 // len(unit) + 1):
        text = " ".join([f"/{unit * count}/"] * TERMS_MOST)
        begun = time.thread_time()
        with suppress(KafkaError):
            read_filter(text)
        seconds.append(time.thread_time() - begun)
    assert max(seconds) < 0.5
