"""Rules for appended batches that need a scan of their records."""

import random

import pytest

from barnabas.protocol.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD, compress
from barnabas.protocol.records import HEADER_BYTES, Record, encode_batch, read_header, seal, varint
from barnabas.storage.batches.batch_contents import (
    HERE_EXPANDED_BYTES,
    HERE_RECORDS,
    Contents,
    Inspection,
    TooMuchToLookHere,
    inspect_on_loop,
)
from barnabas.storage.errors import CorruptMessage, InvalidRecord, InvalidTimestamp
from barnabas.storage.log.batch_rules import FEW_RECORDS, BatchRules
from barnabas.storage.log.config import COMPACT, LogConfig

NOW_MS = 1_000_000
CODECS = [GZIP, SNAPPY, LZ4, ZSTD]


def rules(**config):
    return BatchRules("t-0", LogConfig(**config), lambda: NOW_MS)


def batch(count=1, *, compression=NONE, key=b"k", value=b"v" * 20, times=None):
    stamps = times or [NOW_MS] * count
    records = [Record(at, stamps[at], key, value) for at in range(count)]
    return encode_batch(records, compression=compression)


def with_records(good, body):
    """A batch like ``good`` with these expanded records, and a checksum that fits."""
    header = read_header(good)
    return seal(header, compress(header.compression, body))


def inspected(found):
    inspection = Inspection(found)
    while True:
        contents = inspection.step()
        if contents is not None:
            return contents


GARBAGE = {
    "noise": lambda body: random.Random(1).randbytes(len(body)),
    "zeros": lambda body: bytes(len(body)),
    "nothing": lambda _: b"",
    "a record less": lambda body: body[: len(body) * 2 // 3],
    "a byte less": lambda body: body[:-1],
    "a byte more": lambda body: body + b"\0",
    "a length that lies": lambda body: bytes([body[0] + 2]) + body[1:],
}


@pytest.mark.parametrize("codec", [NONE, *CODECS])
@pytest.mark.parametrize("kind", GARBAGE)
def test_garbage_under_a_valid_checksum_is_refused(codec, kind):
    body = batch(3)[HEADER_BYTES:]
    bad = with_records(batch(3, compression=codec), GARBAGE[kind](body))
    with pytest.raises(InvalidRecord):
        rules().check(bad)


@pytest.mark.parametrize("codec", CODECS)
def test_invalid_compressed_data_is_refused(codec):
    header = read_header(batch(3, compression=codec))
    with pytest.raises(InvalidRecord):
        rules().check(seal(header, b"no such thing" * 3))


def test_damaged_batch_is_corrupt_message():
    damaged = bytearray(batch(3, compression=LZ4))
    damaged[-1] ^= 1
    with pytest.raises(CorruptMessage):
        rules().check(bytes(damaged))


def test_large_uncompressed_batches_are_looked_into_where_the_topic_says_so():
    body = batch(FEW_RECORDS + 1)[HEADER_BYTES:]
    bad = with_records(batch(FEW_RECORDS + 1), body[:-1] + b"\1")
    rules().check(bad)
    for config in (
        {"validates_records": True},
        {"cleanup_policy": frozenset((COMPACT,))},
        {"timestamp_before_max_ms": 1000},
    ):
        with pytest.raises(InvalidRecord):
            rules(**config).check(bad)


@pytest.mark.parametrize("codec", [NONE, *CODECS])
def test_contents_are_the_same_wherever_they_are_looked_for(codec):
    found = batch(3, compression=codec, key=None, times=[NOW_MS, -1, 77])
    contents = inspect_on_loop(read_header(found), found)
    assert contents == inspected(found) == Contents("", 3, 77, NOW_MS, contents.expanded_bytes)


def zeros(size):
    return batch(value=bytes(size), compression=ZSTD)


@pytest.mark.parametrize(
    "large",
    [
        batch(HERE_RECORDS + 1, value=None, compression=LZ4),
        batch(HERE_RECORDS + 1, value=None, key=b""),
        zeros(HERE_EXPANDED_BYTES),
        batch(value=random.Random(1).randbytes(40_000), compression=GZIP),
    ],
)
def test_large_batch_is_not_inspected_on_the_loop(large):
    compacted = rules(cleanup_policy=frozenset((COMPACT,)))
    for ask in (compacted.inspect, compacted.check):
        with pytest.raises(TooMuchToLookHere):
            ask(large)
    contents = inspected(large)
    assert not contents.fault
    compacted.check(large, contents)


def test_rules_are_applied_to_what_was_found_before():
    large = batch(HERE_RECORDS + 1, key=None, value=None, times=[5] * (HERE_RECORDS + 1))
    contents = inspected(large)
    with pytest.raises(InvalidRecord, match="without a key"):
        rules(cleanup_policy=frozenset((COMPACT,))).check(large, contents)
    with pytest.raises(InvalidTimestamp):
        rules(timestamp_before_max_ms=1000).check(large, contents)
    rules().check(large, contents)


@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_is_no_batch(codec):
    """130 MB from a few hundred KB at most: more than a batch may expand to."""
    good = batch(compression=codec)
    bomb = seal(read_header(good), compress(codec, bytes(130 * 1024 * 1024)))
    assert "record" in inspected(bomb).fault


def test_the_bound_of_what_a_batch_expands_to():
    value = bytes(130 * 1024 * 1024)
    record = b"\0\0\0\1" + varint(len(value)) + value + b"\0"
    good = batch(compression=ZSTD)
    bomb = seal(read_header(good), compress(ZSTD, varint(len(record)) + record))
    assert "expands to more than 134217728 bytes" in inspected(bomb).fault
