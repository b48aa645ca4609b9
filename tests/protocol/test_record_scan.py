"""The scan of a batch's records accepts what decoding accepts, in pieces of any size."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.record_decoding import iterate_records
from barnabas.protocol.record_scan import RecordScan
from barnabas.protocol.records import (
    HEADER_BYTES,
    InvalidBatch,
    Record,
    encode_batch,
    read_header,
    seal,
)

LIMIT = 1 << 30
NEVER_MS = (1 << 63) - 1


def scanned(batch, *cuts):
    """Keyless records and smallest timestamp of a batch, fed in pieces that end at ``cuts``."""
    header = read_header(batch)
    body = bytes(batch[HEADER_BYTES:])
    scan = RecordScan(header)
    ends = sorted({min(cut, len(body)) for cut in cuts} | {len(body)})
    start = 0
    for end in ends:
        scan.feed(body[start:end])
        start = end
    scan.finish()
    return scan.keyless, scan.oldest_ms


def decoded(batch):
    """Return the result of decoding the records."""
    records = list(iterate_records(batch, limit_bytes=LIMIT))
    times = [record.timestamp for record in records if record.timestamp != -1]
    return sum(record.key is None for record in records), min(times, default=NEVER_MS)


def verdict(function, *arguments):
    try:
        return function(*arguments)
    except InvalidBatch:
        return None


parts = st.none() | st.binary(max_size=40)
record_lists = st.lists(
    st.tuples(
        st.integers(-5, 1 << 62) | st.integers(1000, 1300),
        parts,
        parts | st.integers(60, 300).map(bytes),
        st.lists(st.tuples(st.text(max_size=5), parts), max_size=3),
    ),
    min_size=1,
    max_size=70,
)
spoils = st.lists(
    st.tuples(
        st.integers(0, 60) | st.integers(0, 1 << 16),
        st.sampled_from(["set", "add", "insert", "delete"]),
        st.sampled_from([0, 1, 2, 3, 0x7F, 0x80, 0xFE, 0xFF]),
    ),
    max_size=3,
)


def made_of(found):
    return encode_batch(
        [Record(offset, *fields[:3], tuple(fields[3])) for offset, fields in enumerate(found)]
    )


def spoiled(batch, changes):
    """The batch with bytes of its records changed, and a checksum that fits."""
    body = bytearray(batch[HEADER_BYTES:])
    for place, kind, byte in changes:
        at = place % len(body)
        if kind == "set":
            body[at] = byte
        elif kind == "add":
            body[at] = (body[at] + byte) & 0xFF
        elif kind == "insert":
            body.insert(at, byte)
        elif len(body) > 1:
            del body[at]
    return seal(read_header(batch), bytes(body))


@given(record_lists, spoils, st.lists(st.integers(0, 2000), max_size=6))
def test_it_agrees_with_decoding(found, changes, cuts):
    batch = spoiled(made_of(found), changes)
    assert verdict(scanned, batch, *cuts) == verdict(decoded, batch)


@given(spoils, st.integers(1, 50_000))
def test_it_agrees_about_records_larger_than_what_is_kept(changes, step):
    records = [
        Record(0, 7, b"k" * 40_000, b"v" * 70_000, (("a", b"x" * 33_000), ("b", None))),
        Record(1, 5, None, b"w" * 40_000),
        Record(2, 9, b"", None),
    ]
    batch = spoiled(encode_batch(records), changes)
    cuts = range(step, len(batch), step) if step > 2000 else (step,)
    assert verdict(scanned, batch, *cuts) == verdict(decoded, batch)


def test_a_large_record_in_the_smallest_pieces():
    batch = encode_batch([Record(0, 7, b"k", b"v" * 40_000, (("a", b"x"), ("b", None)))] * 1)
    assert scanned(batch, *range(1, len(batch))) == (0, 7)


@pytest.mark.parametrize("more", [b"\0", b"\x0c\0\0\2\1\1\0", bytes(100)])
def test_what_follows_the_last_record_is_refused(more):
    batch = encode_batch([Record(0, 0, None, b"v")])
    with pytest.raises(InvalidBatch, match="bytes after the last record"):
        scanned(seal(read_header(batch), batch[HEADER_BYTES:] + more))


def test_offsets_are_counted_from_the_first_without_a_gap():
    with pytest.raises(InvalidBatch, match="record 1 has another offset delta"):
        scanned(encode_batch([Record(offset, 0, None, b"v") for offset in (0, 2, 3)]))


def test_a_count_that_is_not_there_is_refused():
    batch = encode_batch([Record(0, 0, None, b"v")])
    header = read_header(batch)._replace(record_count=3, last_offset_delta=2)
    with pytest.raises(InvalidBatch, match="1 records where 3 are announced"):
        scanned(seal(header, batch[HEADER_BYTES:]))


def test_timestamps_that_no_number_holds_are_refused():
    batch = encode_batch([Record(0, 1 << 62, None, b"v"), Record(1, (1 << 63) - 1, None, b"v")])
    assert scanned(batch) == (2, 1 << 62)
    later = read_header(batch)._replace(base_timestamp=(1 << 62) + 5)
    beyond = seal(later, batch[HEADER_BYTES:])
    assert verdict(decoded, beyond) is None
    with pytest.raises(InvalidBatch, match="too far"):
        scanned(beyond)


def test_what_is_kept_between_pieces_is_bounded():
    piece = bytes(64 * 1024)
    header = read_header(encode_batch([Record(0, 0, None, b"")]))
    scan = RecordScan(header)
    head = encode_batch([Record(0, 0, None, bytes(64_000_000))])[HEADER_BYTES:][:20]
    tracemalloc.start()
    try:
        scan.feed(head)
        for _ in range(900):
            scan.feed(piece)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1 << 20
