"""Record batches: every rule broken once, other encoders' batches, damage at every byte."""

import random
import struct

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.protocol import compression as codecs
from barnabas.protocol.record_decoding import Marker, iterate_records, read_marker, sole_record
from barnabas.protocol.records import (
    HEADER,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    MAX_SEQUENCE,
    BatchHeader,
    CorruptBatch,
    InvalidBatch,
    Record,
    check_batch,
    check_header,
    control_batch,
    decrement_sequence,
    encode_batch,
    encode_single,
    increment_sequence,
    iterate_batches,
    place_batch,
    placed,
    read_header,
    stamp_log_append_time,
    verify_batch,
)
from tests.protocol.kafka_python import MemoryRecords, MemoryRecordsBuilder
from tests.storage import golden

LIMIT = 1 << 20
RECORDS = [
    Record(0, 1_700_000_000_000, b"key", b"value", (("name", b"x"), ("nothing", None))),
    Record(1, 1_700_000_000_005, None, b""),
    Record(2, 1_699_999_999_999, b"", None),
]


def changed(batch, *, sealed=True, **fields):
    """The batch with other header fields, with the right checksum unless ``sealed`` is False."""
    body = bytes(batch[HEADER_BYTES:])
    header = read_header(batch)._replace(**fields)
    head = HEADER.pack(*header)
    if sealed and "crc" not in fields:
        head = HEADER.pack(*header._replace(crc=crc32c(head[21:] + body)))
    return head + body


# ---------------------------------------------------------------------------------------- encoding


@pytest.mark.parametrize("codec", range(5))
def test_records_read_back(codec):
    batch = encode_batch(RECORDS, compression=codec, producer_id=7, producer_epoch=3,
                         base_sequence=11, leader_epoch=9)  # fmt: skip
    header = check_batch(batch)
    assert list(iterate_records(batch, limit_bytes=LIMIT)) == RECORDS
    assert header.compression == codec
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 3, 11)
    assert header.partition_leader_epoch == 9
    assert (header.base_timestamp, header.max_timestamp) == (1_700_000_000_000, 1_700_000_000_005)
    assert header.size == len(batch)


def test_a_batch_on_the_wire_is_what_kafka_documents():
    """Field by field, spelled out once, so that encoder and decoder cannot err together."""
    batch = encode_batch(
        [Record(100, 1000, b"k", b"v", (("h", b"x"),)), Record(101, 1002, None, None)],
        base_offset=100, leader_epoch=4, producer_id=5, producer_epoch=6, base_sequence=7,
        transactional=True,
    )  # fmt: skip
    body = bytes.fromhex("18 00 00 00 02 6b 02 76 02 02 68 02 78".replace(" ", ""))
    body += bytes.fromhex("0c 00 04 02 01 01 00".replace(" ", ""))
    checked = struct.pack(">hiqqqhii", 0x10, 1, 1000, 1002, 5, 6, 7, 2) + body
    assert batch == struct.pack(
        ">qiibI", 100, 9 + len(checked), 4, 2, crc32c(checked)
    ) + checked  # fmt: skip


def test_header_properties():
    batch = encode_batch(RECORDS, base_offset=0, transactional=True, producer_id=1,
                         producer_epoch=0, base_sequence=MAX_SEQUENCE - 1)  # fmt: skip
    placed = bytearray(batch)
    place_batch(placed, 0, len(placed), 500, 8)
    header = read_header(placed)
    assert (header.base_offset, header.last_offset, header.next_offset) == (500, 502, 503)
    assert header.last_sequence == 0  # S7: 2147483646, 2147483647, 0
    assert header.is_transactional
    assert not header.is_control
    assert header.timestamp_type == 0
    plain = read_header(encode_batch(RECORDS))
    assert plain.last_sequence == -1
    assert not plain.is_transactional


@given(st.integers(0, MAX_SEQUENCE), st.integers(0, MAX_SEQUENCE))
def test_sequences_wrap_without_minus_or_gap(sequence, by):
    assert increment_sequence(sequence, by) == (sequence + by) % (MAX_SEQUENCE + 1)
    assert decrement_sequence(sequence, by) == (sequence - by) % (MAX_SEQUENCE + 1)


def test_a_batch_needs_a_record():
    with pytest.raises(ValueError, match="at least one"):
        encode_batch([])


# ---------------------------------------------------------------------------------- other encoders


def others(codec):
    """The same records as encoded by kafka-python and aiokafka."""
    ours = [Record(i, 1_700_000_000_000 + i * 3, b"k%d" % i, b"v" * (i * 5), (("h", b"\0"),))
            for i in range(30)]  # fmt: skip
    python = MemoryRecordsBuilder(magic=2, compression_type=codec, batch_size=1 << 20)
    aio = DefaultRecordBatchBuilder(2, codec, 1, 5, 6, 7, 1 << 20)
    for record in ours:
        headers = list(record.headers)
        python.append(record.timestamp, record.key, record.value, headers)
        aio.append(record.offset, record.timestamp, record.key, record.value, headers)
    python.close()
    yield ours, python.buffer()
    yield ours, bytes(aio.build())


@pytest.mark.parametrize("codec", range(5))
def test_batches_of_other_encoders_are_understood(codec):
    for ours, batch in others(codec):
        assert check_batch(batch).record_count == 30
        assert list(iterate_records(batch, limit_bytes=LIMIT)) == ours


@pytest.mark.parametrize("codec", range(5))
def test_other_decoders_understand_our_batches(codec):
    batch = encode_batch(RECORDS, compression=codec)
    (decoded,) = MemoryRecords(batch)
    assert [(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in decoded] == [
        tuple(record) for record in RECORDS
    ]


def stored_records(partition):
    """(codec, records) of each batch that Kafka 4.3.0 stored; each passes a client's checks."""
    ((_, log),) = golden.segments(partition)
    for position, header in iterate_batches(log):
        stored = log[position : position + header.size]
        assert verify_batch(stored) == header
        assert check_batch(stored) == header
        yield header.compression, list(iterate_records(stored, limit_bytes=LIMIT))


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_batches_of_the_java_client_are_understood(codec):
    batches = list(stored_records(f"java-{codec}-0"))
    assert {compression for compression, _ in batches} == {codecs.NAMES.index(codec)}
    records = [record for _, batch in batches for record in batch]
    assert [(record.offset, record.key, record.value) for record in records] == [
        (i, b"key%d" % (i + 1), b" ".join([b"value %d" % (i + 1)] * 4)) for i in range(400)
    ]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_batches_of_librdkafka_are_understood(codec):
    batches = list(stored_records(f"comp-{codec}-0"))
    assert codecs.NAMES.index(codec) in {compression for compression, _ in batches}
    records = [record for _, batch in batches for record in batch]
    assert [(record.offset, record.key, record.value, record.headers) for record in records] == [
        (
            i,
            b"k%d" % (i % 7),
            b"v%d" % i * 20,
            (("h", b"x"), ("n", None)) if i % 3 == 0 else (),
        )
        for i in range(200)
    ]


# ----------------------------------------------------------------------------- rules of the header

VALID = encode_batch(RECORDS, producer_id=7, producer_epoch=3, base_sequence=11)


@pytest.mark.parametrize(
    ("fields", "expected", "message"),
    [
        ({"magic": 0}, InvalidBatch, "format 0"),
        ({"magic": 1}, InvalidBatch, "format 1"),
        ({"magic": 3}, InvalidBatch, "format 3"),
        ({"batch_length": 48}, CorruptBatch, "shorter than a header"),
        ({"batch_length": -1}, CorruptBatch, "shorter than a header"),
        ({"batch_length": len(VALID) - 11}, CorruptBatch, "cut off"),
        ({"batch_length": len(VALID) - 13}, InvalidBatch, "more than one batch"),
        ({"record_count": 2}, InvalidBatch, "offset delta"),
        ({"record_count": 4}, InvalidBatch, "offset delta"),
        ({"record_count": 0, "last_offset_delta": -1}, InvalidBatch, "offset delta"),
        ({"record_count": -1, "last_offset_delta": -2}, InvalidBatch, "offset delta"),
        ({"record_count": 9, "last_offset_delta": 8}, InvalidBatch, "cannot fit"),
        ({"attributes": 0x20}, InvalidBatch, "control"),  # P5
        ({"attributes": 0x30}, InvalidBatch, "control"),
        ({"attributes": 0x40}, InvalidBatch, "delete horizon"),
        ({"attributes": 5}, InvalidBatch, "codec 5"),
        ({"attributes": 7}, InvalidBatch, "codec 7"),
        ({"base_sequence": -1}, InvalidBatch, "sequence -1"),
        ({"producer_epoch": -1}, InvalidBatch, "epoch -1"),
        ({"producer_id": -1, "attributes": 0x10}, InvalidBatch, "producer id"),
        ({"crc": 0}, CorruptBatch, "checksum"),
    ],
)
def test_each_rule_refuses_its_batch(fields, expected, message):
    batch = changed(VALID, **fields)
    with pytest.raises((CorruptBatch, InvalidBatch), match=message) as caught:
        check_batch(batch)
    assert type(caught.value) is expected


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"attributes": 0x10},
        {"attributes": 0x80},  # unknown bits are for later versions
        {"producer_id": -1, "producer_epoch": -1, "base_sequence": -1},
        {"producer_id": -1},  # a sequence without a producer has no meaning
        {"base_sequence": MAX_SEQUENCE},
        {"base_offset": 77, "partition_leader_epoch": -1},
        {"base_timestamp": -1, "max_timestamp": -1},
    ],
)
def test_what_no_rule_forbids_is_accepted(fields):
    batch = changed(VALID, **fields)
    header = check_batch(batch)
    assert header == read_header(batch)
    check_header(header, len(batch))


@pytest.mark.parametrize("size", [0, 1, 12, 60])
def test_less_than_a_header_is_corrupt(size):
    for check in (check_batch, verify_batch):
        with pytest.raises(CorruptBatch, match="less than a batch header"):
            check(VALID[:size])


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_can_be_checked(kind):
    assert check_batch(kind(VALID)) == read_header(VALID)


def test_every_flipped_bit_is_noticed_or_lies_outside_the_checksum():
    outside = {*range(8), *range(12, 16)}  # base offset and leader epoch are the broker's
    for position in range(len(VALID)):
        for bit in range(8):
            damaged = bytearray(VALID)
            damaged[position] ^= 1 << bit
            if position in outside:
                check_batch(damaged)
                verify_batch(damaged)
                continue
            with pytest.raises((CorruptBatch, InvalidBatch)):
                check_batch(damaged)
            with pytest.raises(CorruptBatch):
                verify_batch(damaged)


def test_every_truncation_is_corrupt():
    for size in range(len(VALID)):
        with pytest.raises(CorruptBatch):
            check_batch(VALID[:size])
        with pytest.raises(CorruptBatch):
            verify_batch(VALID[:size])


def test_stored_batches_may_break_the_clients_rules():
    marker = control_batch(7, 3, commit=True, coordinator_epoch=1, timestamp=5)
    with pytest.raises(InvalidBatch, match="control"):
        check_batch(marker)
    assert verify_batch(marker).is_control
    assert verify_batch(changed(VALID, record_count=1)).record_count == 1  # compacted


# ---------------------------------------------------------------------------------- walking batches


def test_batches_follow_each_other_until_one_is_cut():
    other = encode_batch(RECORDS[:1])
    log = VALID + other + VALID
    expected = [(0, read_header(VALID)), (len(VALID), read_header(other))]
    for end in range(len(VALID) + len(other), len(log)):
        assert list(iterate_batches(log[:end])) == expected
    assert len(list(iterate_batches(log))) == 3
    assert next(iterate_batches(log, len(VALID))) == expected[1]
    assert list(iterate_batches(b"")) == []


@pytest.mark.parametrize("tail", [bytes(61), b"\xff" * 61, changed(VALID, magic=1)])
def test_where_no_batch_can_begin_is_corrupt(tail):
    found = []
    with pytest.raises(CorruptBatch, match=f"at byte {len(VALID)}"):
        found.extend(position for position, _ in iterate_batches(VALID + tail))


# ----------------------------------------------------------------------------------------- patching


def test_placing_a_batch_touches_offset_and_epoch_only():
    buffer = bytearray(b"before" + VALID + b"after")
    place_batch(buffer, 6, len(VALID), 1 << 40, 77)
    placed = memoryview(buffer)[6 : 6 + len(VALID)]
    assert verify_batch(placed) == read_header(VALID)._replace(
        base_offset=1 << 40, partition_leader_epoch=77
    )
    assert buffer[:6] == b"before"
    assert buffer[-5:] == b"after"
    assert [r.offset - (1 << 40) for r in iterate_records(placed, limit_bytes=LIMIT)] == [0, 1, 2]


def test_append_time_is_the_time_of_every_record():
    buffer = bytearray(b"before" + VALID + b"after")
    stamp_log_append_time(buffer, 6, len(VALID), 42)
    stamped = memoryview(buffer)[6 : 6 + len(VALID)]
    header = verify_batch(stamped)
    assert header.timestamp_type == LOG_APPEND_TIME
    assert (header.base_timestamp, header.max_timestamp) == (1_700_000_000_000, 42)
    assert [r.timestamp for r in iterate_records(stamped, limit_bytes=LIMIT)] == [42] * 3
    assert (buffer[:6], buffer[-5:]) == (b"before", b"after")
    (theirs,) = MemoryRecords(bytes(stamped))
    assert [record.timestamp for record in theirs] == [42] * 3


# ------------------------------------------------------------------------------------------ records

texts = st.text(max_size=10)
contents = st.none() | st.binary(max_size=40)
times = st.integers(-1, 1 << 60)
record_lists = st.lists(
    st.builds(
        lambda *fields: fields,
        times, contents, contents, st.lists(st.tuples(texts, contents), max_size=3),
    ),
    min_size=1, max_size=20,
)  # fmt: skip


@given(record_lists, st.integers(0, 4), st.integers(0, 1 << 50))
@settings(max_examples=150)
def test_any_records_read_back(rows, codec, base_offset):
    records = [
        Record(base_offset + index, time, key, value, tuple(headers))
        for index, (time, key, value, headers) in enumerate(rows)
    ]
    batch = encode_batch(records, base_offset=base_offset, compression=codec)
    assert list(iterate_records(batch, limit_bytes=LIMIT)) == records
    assert verify_batch(batch).max_timestamp == max(record.timestamp for record in records)


def test_a_compacted_batch_has_gaps():
    records = [Record(10, 5, b"a", b"b"), Record(17, 6, b"c", b"d")]
    batch = encode_batch(records, base_offset=10)
    assert list(iterate_records(batch, limit_bytes=LIMIT)) == records
    assert read_header(batch).last_offset == 17


def test_only_the_batch_at_the_start_of_the_view_is_read():
    assert list(iterate_records(VALID + b"more", limit_bytes=LIMIT)) == RECORDS


def test_expansion_is_bounded():
    batch = encode_batch([Record(0, 0, None, bytes(100_000))], compression=codecs.GZIP)
    assert len(list(iterate_records(batch, limit_bytes=100_100))) == 1
    with pytest.raises(InvalidBatch, match="more than 50000"):
        list(iterate_records(batch, limit_bytes=50_000))


def body(text):
    """A batch whose records are these bytes, all else in order."""
    data = bytes.fromhex(text.replace(" ", ""))
    return HEADER.pack(*read_header(VALID)._replace(
        batch_length=49 + len(data), record_count=1, last_offset_delta=0)) + data  # fmt: skip


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("", "past the end"),
        ("0c 00 00 00 01 01 00 00", "bytes after the last record"),
        ("0e 00 00 00 01 01 00", "does not fit"),
        ("0a 00 00 00 01 01 00", "another length"),
        ("01 00 00 00 01 01 00", "does not fit"),
        ("0c 00 00 02 01 01 00", "offset delta 1"),
        ("0c 00 00 01 01 01 00", "offset delta -1"),
        ("0c 00 00 00 03 01 00", "length -2"),
        ("0c 00 00 00 08 01 00", "past the end of its record"),
        ("0c 00 00 00 01 08 00", "past the end of its record"),
        ("0c 00 00 00 01 01 01", "-1 headers"),
        ("0c 00 00 00 01 01 20", "16 headers"),
        ("10 00 00 00 01 01 02 01 01", "without a name"),
        ("1e 00 81 80 80 80 80 80 80 80 80 02 00 01 01 00", "too long"),
        ("1e 00 fe ff ff ff ff ff ff ff ff 01 00 01 01 00", "too far"),
        ("ff ff ff ff ff 01", "too long"),
        ("16 00 ff ff ff ff ff ff ff ff ff ff 01", "too long|does not fit"),
        ("80 80", "past the end"),
    ],
)
def test_malformed_records_are_refused(data, message):
    with pytest.raises(InvalidBatch, match=message):
        list(iterate_records(body(data), limit_bytes=LIMIT))


def test_a_headers_name_need_not_be_utf8():
    (record,) = iterate_records(body("12 00 00 00 01 01 02 02 ff 01"), limit_bytes=LIMIT)
    assert record.headers == (("\ufffd", None),)


def test_the_smallest_record_is_seven_bytes():
    assert list(iterate_records(body("0c 00 00 00 01 01 00"), limit_bytes=LIMIT)) == [
        Record(0, 1_700_000_000_000, None, None)
    ]


def test_a_batch_full_of_the_smallest_records_fits():
    batch = encode_batch([Record(offset, 0, None, None) for offset in range(60)])
    assert len(batch) == HEADER_BYTES + 60 * 7
    assert check_batch(batch).record_count == 60


def test_offsets_within_a_batch_increase():
    one = "0c 00 00 00 01 01 00"
    batch = body(one + one)
    head = read_header(batch)._replace(record_count=2, last_offset_delta=1)
    with pytest.raises(InvalidBatch, match="offset delta 0 after 0"):
        list(iterate_records(HEADER.pack(*head) + batch[61:], limit_bytes=LIMIT))


@pytest.mark.parametrize("codec", range(5))
def test_mutilated_records_raise_nothing_else(codec):
    """Random damage past the checksum: records, or InvalidBatch, nothing else."""
    batch = encode_batch([*RECORDS, Record(3, 0, b"x" * 50, b"y" * 50)], compression=codec)
    generator = random.Random(codec)
    refused = 0
    for _ in range(2000):
        damaged = bytearray(batch)
        for _ in range(generator.randint(1, 4)):
            damaged[generator.randrange(HEADER_BYTES, len(damaged))] = generator.randrange(256)
        try:
            list(iterate_records(damaged, limit_bytes=LIMIT))
        except InvalidBatch:
            refused += 1
    assert refused > 500


def test_a_wrong_count_is_noticed_for_every_codec():
    for codec in range(5):
        batch = encode_batch(RECORDS, compression=codec)
        for count, delta in ((2, 2), (4, 3), (2, 1)):
            with pytest.raises(InvalidBatch):
                list(
                    iterate_records(
                        changed(batch, record_count=count, last_offset_delta=delta),
                        limit_bytes=LIMIT,
                    )
                )


@pytest.mark.parametrize("key", [None, b"", b"k", b"k" * 63, b"k" * 64, b"k" * 8192])
@pytest.mark.parametrize("value", [None, b"", b"v" * 58, b"v" * 100_000])
def test_one_record_is_encoded_as_in_any_batch(key, value):
    producer = {"producer_id": 1 << 40, "producer_epoch": 7, "base_sequence": 5}
    assert encode_single(1234, key, value) == encode_batch([Record(0, 1234, key, value)])
    transactional = encode_batch([Record(0, 9, key, value)], transactional=True, **producer)
    assert encode_single(9, key, value, attributes=0x10, **producer) == transactional


# ------------------------------------------------------------------------------------------ markers


@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_has_the_form_kafka_gives_it(commit):
    """M6: one record, uncompressed, both bits, no sequence, one offset, exact key and value."""
    batch = control_batch(
        9, 4, commit=commit, coordinator_epoch=77, timestamp=1234, base_offset=50, leader_epoch=3
    )
    header = verify_batch(batch)
    assert header == BatchHeader(
        50, 66, 3, 2, header.crc, 0x30, 0, 1234, 1234, 9, 4, -1, 1
    )  # fmt: skip
    (record,) = iterate_records(batch, limit_bytes=LIMIT)
    assert record == Record(50, 1234, b"\0\0\0\1" if commit else b"\0\0\0\0", b"\0\0\0\0\0\x4d")
    assert read_marker(batch) == Marker(commit, 77)


def control(key, value, records=1):
    batch = encode_batch([Record(0, 0, key, value)], control=True, transactional=True)
    return changed(batch, record_count=records)


def test_longer_markers_of_later_versions_are_understood():
    assert read_marker(control(b"\0\1\0\1more", b"\0\1\0\0\0\5more")) == Marker(True, 5)


def test_other_control_records_and_emptied_ones_are_no_markers():
    assert read_marker(control(b"\0\0\0\2", b"\0\0")) is None
    assert read_marker(control(b"\0\0\0\1", b"\0\0\0\0\0\5", records=0)) is None


@pytest.mark.parametrize(("key", "value"), [(None, b""), (b"\0\0\0", b""), (b"\0\0\0\1", b"\0\0")])
def test_a_marker_without_its_fields_is_invalid(key, value):
    with pytest.raises(InvalidBatch):
        read_marker(control(key, value))


@pytest.mark.parametrize("key", [None, b"", b"k" * 200])
@pytest.mark.parametrize("value", [None, b"", b"v" * 20_000])
def test_the_only_record_of_a_plain_batch_is_read_at_once(key, value):
    batch = encode_batch([Record(0, 1_700_000_000_000, key, value, ())])
    batch = placed(batch, read_header(batch), 77, 3)
    (expected,) = iterate_records(batch, limit_bytes=LIMIT)
    assert sole_record(read_header(batch), memoryview(batch)) == expected


@pytest.mark.parametrize(
    "batch",
    [
        encode_batch([Record(at, 1, b"k", b"v", ()) for at in range(2)]),
        encode_batch([Record(0, 1, b"k", b"v", (("name", b"h"),))]),
        encode_batch([Record(0, 1, b"k", b"v" * 100, ())], compression=1),
    ],
)
def test_other_batches_are_left_to_those_who_look_closely(batch):
    assert sole_record(read_header(batch), batch) is None


def test_a_damaged_record_is_never_read_otherwise_than_by_those_who_look_closely():
    whole = encode_batch([Record(0, 1, b"key", b"value", ())])
    for at in range(61, len(whole)):
        for flip in (1, 0x40, 0x80, 0xFF):
            damaged = bytearray(whole)
            damaged[at] ^= flip
            found = sole_record(read_header(damaged), damaged)
            if found is not None:
                assert [found] == list(iterate_records(damaged, limit_bytes=LIMIT))
