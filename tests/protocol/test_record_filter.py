"""Batches with records taken out: what stays is what it was, offsets and sequences included."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.compression import NAMES
from barnabas.protocol.record_decoding import iterate_records
from barnabas.protocol.record_filter import (
    delete_horizon,
    emptied,
    expand,
    find_records,
    keep_records,
    placeholder,
)
from barnabas.protocol.records import (
    HEADER_BYTES,
    LOG_APPEND_TIME,
    InvalidBatch,
    Record,
    encode_batch,
    read_header,
    verify_batch,
)

LIMIT = 1 << 20
BYTES = st.none() | st.binary(max_size=30)
HEADERS = st.lists(st.tuples(st.text(max_size=5), BYTES), max_size=2).map(tuple)
RECORDS = st.lists(
    st.builds(Record, st.just(0), st.integers(0, 2**50), BYTES, BYTES, HEADERS),
    min_size=1,
    max_size=8,
).map(lambda records: [record._replace(offset=500 + at) for at, record in enumerate(records)])


def batch_of(records, **options):
    return encode_batch(records, base_offset=500, leader_epoch=3, **options)


def stored(batch):
    header = read_header(batch)
    data = expand(header, batch, limit_bytes=LIMIT)
    return header, data, list(find_records(header, data))


@given(RECORDS, st.integers(0, 4), st.booleans(), st.none() | st.integers(0, 2**50), st.data())
def test_what_is_kept_is_what_it_was(records, compression, stamped, horizon, data):
    producer = {"producer_id": 9, "producer_epoch": 1, "base_sequence": 40}
    timestamp_type = LOG_APPEND_TIME if stamped else 0
    batch = batch_of(records, compression=compression, timestamp_type=timestamp_type, **producer)
    header, expanded, found = stored(batch)
    chosen = data.draw(st.lists(st.booleans(), min_size=len(found), max_size=len(found)))
    kept = [record for record, keep in zip(found, chosen, strict=True) if keep] or found[:1]
    filtered = keep_records(header, expanded, kept, horizon)
    after = verify_batch(filtered)
    expected = {record.offset: record for record in iterate_records(batch, limit_bytes=LIMIT)}
    left = list(iterate_records(filtered, limit_bytes=LIMIT))
    assert left == [expected[500 + record.offset_delta] for record in kept]
    assert (after.base_offset, after.last_offset) == (header.base_offset, header.last_offset)
    assert after.last_sequence == header.last_sequence
    assert after.partition_leader_epoch == 3
    assert after.max_timestamp == max(record.timestamp for record in left)
    assert delete_horizon(after) == horizon
    assert [each.has_value for each in stored(filtered)[2]] == [r.value is not None for r in left]
    assert [each.key for each in stored(filtered)[2]] == [record.key for record in left]


@pytest.mark.parametrize("compression", range(len(NAMES)), ids=NAMES)
def test_an_emptied_batch_keeps_what_its_producer_needs(compression):
    records = [Record(500, 5, b"k", b"v"), Record(501, 9, b"k", None)]
    batch = batch_of(
        records,
        compression=compression,
        producer_id=9,
        producer_epoch=1,
        base_sequence=40,
        transactional=True,
    )
    empty = emptied(read_header(batch))
    header = verify_batch(empty)
    assert len(empty) == HEADER_BYTES
    assert (header.last_offset, header.last_sequence, header.producer_epoch) == (501, 41, 1)
    assert header.is_transactional
    assert not header.compression
    assert (header.max_timestamp, header.newest_timestamp) == (9, -1)
    assert list(iterate_records(empty, limit_bytes=LIMIT)) == []
    assert stored(empty)[2] == []
    nobody = verify_batch(placeholder(header))
    assert (nobody.base_offset, nobody.last_offset) == (500, 501)
    assert (nobody.producer_id, nobody.base_sequence, nobody.is_transactional) == (-1, -1, False)


def with_body(body, count=1):
    header = read_header(batch_of([Record(500, 5, b"k", b"v")]))
    return header._replace(record_count=count), body


@pytest.mark.parametrize(
    ("body", "count", "reason"),
    [
        (b"\x03", 1, "does not fit"),  # length -2
        (b"\x20\0\0\0\x02k\x02v\0", 1, "does not fit"),
        (b"\x0a\0\0\0\x04k", 1, "past the end"),
        (b"\x0a\0\0\0\x40k", 1, "past the end"),
        (b"\x0c\0\0\0\x08k\1", 1, "past the end"),
        (b"\x10\0\0\0\x02k\x02v\0!", 1, "after the last record"),
        (b"\x10\0\0\0\x02k\x02v\0", 2, "past the end"),
        (b"\x80", 1, "past the end"),
    ],
)
def test_bodies_that_are_none(body, count, reason):
    with pytest.raises(InvalidBatch, match=reason):
        list(find_records(*with_body(body, count)))


def test_what_does_not_expand():
    batch = batch_of([Record(500, 5, b"k", b"v" * 1000)], compression=1)
    with pytest.raises(InvalidBatch):
        expand(read_header(batch), batch, limit_bytes=100)
