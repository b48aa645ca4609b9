"""Compression piece by piece: what comes out expands to what went in, at every level."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.protocol.compression import (
    GZIP,
    LZ4,
    NONE,
    SNAPPY,
    ZSTD,
    decompress,
    refuse_unreadable,
)
from barnabas.protocol.encoders import encoder
from tests.protocol.kafka_python import codec as kafka_python

LEVELS = {
    NONE: [0],
    GZIP: [-1, 1, 9],
    SNAPPY: [0],
    LZ4: [1, 9, 17],
    ZSTD: [-131072, -5, 1, 3, 22],
}
EVERY = [(codec, level) for codec, levels in LEVELS.items() for level in levels]
LIMIT_BYTES = 1 << 24


def encoded(codec, level, pieces):
    chosen = encoder(codec, level)
    return b"".join([*map(chosen.feed, pieces), chosen.finish()])


def text(size=300_000):
    chance = random.Random(1)
    words = [chance.randbytes(6).hex().encode() for _ in range(500)]
    return b" ".join(chance.choice(words) for _ in range(size // 13))


@settings(deadline=None, max_examples=25)
@given(pieces=st.lists(st.binary(max_size=70_000), max_size=4))
def test_pieces_of_any_size_expand_to_what_they_were(pieces):
    whole = b"".join(pieces)
    for codec, level in EVERY:
        data = encoded(codec, level, pieces)
        assert bytes(decompress(codec, data, LIMIT_BYTES)) == whole
        refuse_unreadable(codec, data)


@pytest.mark.parametrize(("codec", "level"), EVERY)
def test_a_library_of_others_expands_it(codec, level):
    whole = text()
    pieces = [whole[at : at + 65_536] for at in range(0, len(whole), 65_536)]
    data = encoded(codec, level, pieces)
    decoders = {
        NONE: bytes,
        GZIP: kafka_python.gzip_decode,
        SNAPPY: kafka_python.snappy_decode,
        LZ4: kafka_python.lz4_decode,
        ZSTD: kafka_python.zstd_decode,
    }
    assert decoders[codec](data) == whole


@pytest.mark.parametrize("codec", [GZIP, LZ4, ZSTD])
def test_higher_levels_make_it_smaller(codec):
    low, high = {GZIP: (1, 9), LZ4: (9, 12), ZSTD: (-50, 19)}[codec]
    whole = text()
    assert len(encoded(codec, high, [whole])) < 0.99 * len(encoded(codec, low, [whole]))
