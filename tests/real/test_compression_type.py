"""Topics with a codec of their own: for how long batches hold the loop."""

from __future__ import annotations

import random

from barnabas.protocol.compression import ZSTD
from barnabas.protocol.errors import ErrorCode
from tests.attack.loop_lag import loop_lag
from tests.broker.data_plane import batch
from tests.broker.handlers.test_compression_type import LINES, create, stored

HELD_MS_MAX = 250
"""Processor time of the loop's thread in one go; the rule is 50 ms on a quiet machine."""


def test_bombs_are_refused_and_do_not_hold_the_loop(broker, wire, request):
    topic = create(broker, request, "uncompressed")
    bomb = batch(bytes(32 * 1024 * 1024), compression=ZSTD)
    with loop_lag(broker, "bombs") as lag:
        for _ in range(3):
            assert wire.produce(topic, bomb).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert wire.produce(topic, batch(*LINES)).error_code == 0
    assert lag.busy_ms < HELD_MS_MAX


def test_large_batches_of_slow_levels_do_not_hold_the_loop(broker, wire, request):
    more = {"compression_zstd_level": "19", "max_message_bytes": str(1 << 24)}
    topic = create(broker, request, "zstd", **more)
    noise = random.Random(1)
    large = batch(*[noise.randbytes(100).hex().encode() for _ in range(3_000)])
    with loop_lag(broker, "zstd 19") as lag:
        assert wire.produce(topic, large).error_code == 0
    assert stored(wire, topic) == [ZSTD]
    assert lag.busy_ms < HELD_MS_MAX
