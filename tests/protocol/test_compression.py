"""The codecs against each other's libraries, against damage, and against bombs."""

import gzip
import random
import struct
import tracemalloc

import cramjam
import lz4.frame
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.protocol.compression import (
    GZIP,
    LZ4,
    NAMES,
    NONE,
    PIECE_BYTES,
    SNAPPY,
    ZSTD,
    CompressionError,
    compress,
    decompress,
    expand,
)
from tests.protocol.kafka_python import codec as kafka_python

CODECS = [GZIP, SNAPPY, LZ4, ZSTD]
PAYLOADS = [b"", b"a", b"abc" * 40_000, random.Random(1).randbytes(70_000)]
KIB = 1024


@pytest.mark.parametrize("codec", [NONE, *CODECS])
@pytest.mark.parametrize("payload", PAYLOADS)
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_what_goes_in_comes_out(codec, payload, kind):
    packed = compress(codec, kind(payload))
    assert isinstance(packed, bytes)
    assert decompress(codec, kind(packed), len(payload)) == payload


@given(st.binary(max_size=2000))
@settings(max_examples=50)
def test_any_bytes_survive_every_codec(payload):
    for codec in CODECS:
        assert decompress(codec, compress(codec, payload), len(payload)) == payload


OTHERS = {
    "gzip": (GZIP, kafka_python.gzip_encode, kafka_python.gzip_decode),
    "snappy": (SNAPPY, kafka_python.snappy_encode, kafka_python.snappy_decode),
    "snappy without framing": (
        SNAPPY,
        lambda data: kafka_python.snappy_encode(data, xerial_compatible=False),
        None,
    ),
    "snappy in small blocks": (
        SNAPPY,
        lambda data: kafka_python.snappy_encode(data, xerial_blocksize=100),
        None,
    ),
    "lz4": (LZ4, kafka_python.lz4_encode, kafka_python.lz4_decode),
    "zstd": (ZSTD, kafka_python.zstd_encode, kafka_python.zstd_decode),
    "zstd without its size": (
        ZSTD,
        zstandard.ZstdCompressor(write_content_size=False).compress,
        None,
    ),
    "zstd in two frames": (
        ZSTD,
        lambda data: zstandard.compress(data[:50]) + zstandard.compress(data[50:]),
        None,
    ),
    "gzip in two members": (
        GZIP,
        lambda data: gzip.compress(data[:50]) + gzip.compress(data[50:]),
        None,
    ),
    "lz4 in independent blocks": (
        LZ4,
        lambda data: lz4.frame.compress(data, block_linked=False, store_size=False),
        None,
    ),
    "lz4 in linked blocks with checksums": (
        LZ4,
        lambda data: lz4.frame.compress(data, block_checksum=True, content_checksum=True),
        None,
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_encoders_are_understood_and_understand_ours(name):
    codec, encode, decode = OTHERS[name]
    for payload in (b"a" * 51, b"abc" * 40_000, random.Random(2).randbytes(70_000)):
        assert decompress(codec, encode(payload), len(payload)) == payload
        if decode is not None:
            assert decode(compress(codec, payload)) == payload


@pytest.mark.parametrize("codec", [NONE, *CODECS])
def test_the_limit_is_exact(codec):
    payload = b"x" * 5000
    packed = compress(codec, payload)
    assert len(decompress(codec, packed, 5000)) == 5000
    with pytest.raises(CompressionError, match="more than 4999 bytes"):
        decompress(codec, packed, 4999)


@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_is_not_expanded(codec):
    """64 MiB of zeros: refused without holding much more than the limit."""
    bomb = compress(codec, bytes(64 * KIB * KIB))
    assert len(bomb) < 4 * KIB * KIB
    decompress(codec, compress(codec, b"warm up"), KIB)  # imports allocate as well
    tracemalloc.start()
    try:
        with pytest.raises(CompressionError, match="more than 65536"):
            decompress(codec, bomb, 64 * KIB)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * KIB * KIB


@pytest.mark.parametrize("codec", CODECS)
def test_garbage_is_an_error(codec):
    for seed in range(200):
        garbage = random.Random(seed).randbytes(seed % 40 + 1)
        with pytest.raises(CompressionError):
            decompress(codec, b"\xff\xfe" + garbage, 1 << 20)


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4])
def test_every_truncation_is_an_error(codec):
    packed = compress(codec, b"abcdefgh" * 20 + random.Random(3).randbytes(100))
    for end in range(1, len(packed)):
        if codec == SNAPPY and end == 16:
            continue  # framing without a block: an empty payload
        with pytest.raises(CompressionError):
            decompress(codec, packed[:end], 1 << 20)


def test_every_truncation_of_zstd_yields_less_or_an_error():
    payload = b"abcdefgh" * 20 + random.Random(3).randbytes(100)
    packed = compress(ZSTD, payload)
    for end in range(len(packed)):
        try:
            assert len(decompress(ZSTD, packed[:end], 1 << 20)) < len(payload)
        except CompressionError:
            continue


def framed(*blocks):
    head = struct.pack(">8sii", b"\x82SNAPPY\x00", 1, 1)
    return head + b"".join(struct.pack(">i", len(block)) + block for block in blocks)


@pytest.mark.parametrize(
    "data",
    [
        framed()[:12],
        framed() + b"\0\0",
        framed() + struct.pack(">i", -1),
        framed() + struct.pack(">i", 5) + b"abc",
        framed(b"\xff\xff\xff\xff\xff"),
    ],
)
def test_damaged_snappy_framing_is_an_error(data):
    with pytest.raises(CompressionError):
        decompress(SNAPPY, data, 1 << 20)


def test_the_limit_counts_all_snappy_blocks():
    block = bytes(cramjam.snappy.compress_raw(b"x" * 100))
    assert decompress(SNAPPY, framed(block, block), 200) == b"x" * 200
    with pytest.raises(CompressionError):
        decompress(SNAPPY, framed(block, block), 199)


@pytest.mark.parametrize("codec", [-1, 5, 7])
def test_an_unknown_codec_is_an_error(codec):
    with pytest.raises(CompressionError, match=f"unknown compression codec {codec}"):
        decompress(codec, b"abc", 10)


def test_names_follow_kafkas_numbers():
    assert NAMES == ("none", "gzip", "snappy", "lz4", "zstd")


def test_lz4_blocks_are_independent():
    # Kafka's Java clients refuse others; only data of several blocks shows the difference.
    frame = compress(LZ4, b"0123456789" * 100_000)
    independent_blocks_bit = 0x20
    assert frame[4] & independent_blocks_bit
    assert decompress(LZ4, frame, 1 << 20) == b"0123456789" * 100_000


@pytest.mark.parametrize("codec", [NONE, *CODECS])
def test_pieces_are_small_and_add_up(codec):
    payload = random.Random(4).randbytes(200_000) + bytes(3_000_000)
    pieces = list(expand(codec, compress(codec, payload), len(payload)))
    assert b"".join(pieces) == payload
    assert max(map(len, pieces)) <= PIECE_BYTES


@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_is_expanded_piece_by_piece(codec):
    bomb = compress(codec, bytes(64 * KIB * KIB))
    next(expand(codec, bomb, 1 << 30))
    tracemalloc.start()
    try:
        assert sum(map(len, expand(codec, bomb, 1 << 30))) == 64 * KIB * KIB
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1 * KIB * KIB


def test_a_snappy_block_that_lies_about_its_size_is_not_believed():
    block = bytes(cramjam.snappy.compress_raw(b"x"))
    liar = b"\xff\xff\xff\x3f" + block[1:]  # 128 MiB from a few bytes
    for data in (liar, framed(liar)):
        with pytest.raises(CompressionError, match=r"\d+ bytes cannot become 134217727"):
            decompress(SNAPPY, data, 1 << 30)


def test_a_zstandard_window_beyond_kafkas_is_refused():
    params = zstandard.ZstdCompressionParameters(window_log=28, write_content_size=False)
    compressor = zstandard.ZstdCompressor(compression_params=params)
    packed = compressor.compressobj()
    frame = packed.compress(b"a" * 1000) + packed.flush()
    with pytest.raises(CompressionError, match="zstd"):
        decompress(ZSTD, frame, 1 << 30)


@pytest.mark.parametrize(
    ("codec", "empty"),
    [
        (GZIP, gzip.compress(b"")),
        (ZSTD, zstandard.compress(b"")),
        (SNAPPY, struct.pack(">i", 1) + b"\0"),
    ],
    ids=["gzip", "zstd", "snappy"],
)
def test_endless_empty_frames_come_to_nothing(codec, empty):
    data = (framed() if codec == SNAPPY else b"") + empty * 20_000
    assert decompress(codec, data, 10) == b""
