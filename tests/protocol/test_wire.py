"""Lengths, counts and tags: at the limit, one above it, and absurd."""

import pytest

from barnabas.protocol.errors import Malformed
from barnabas.protocol.messages.fetch import FETCH, FetchRequest
from barnabas.protocol.messages.heartbeat import HEARTBEAT, HeartbeatRequest
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest
from barnabas.protocol.messages.produce import PRODUCE, ProduceRequest
from barnabas.protocol.messages.sync_group import SYNC_GROUP, SyncGroupResponse
from barnabas.protocol.wire import (
    MAX_ELEMENTS,
    MAX_TAGGED_FIELDS,
    MAX_VARINT,
    check_count,
    elements_most,
    long_count,
    long_size,
    put_varint,
    read_varint,
    skip_tags,
    tag_count,
    varint_end,
    varint_tail,
)

ABSURD_VARINTS = (b"\xff" * 10, b"\xff\xff\xff\xff\x08", b"\x80\x80\x80\x80\x80\x01")


def varint(value: int) -> bytes:
    out = bytearray()
    put_varint(out, value)
    return bytes(out)


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, b"\x00"),
        (1, b"\x01"),
        (0x7F, b"\x7f"),
        (0x80, b"\x80\x01"),
        (0x3FFF, b"\xff\x7f"),
        (0x4000, b"\x80\x80\x01"),
        (MAX_VARINT, b"\xff\xff\xff\xff\x07"),
    ],
)
def test_varints_go_both_ways(value, encoded):
    assert varint(value) == encoded
    assert read_varint(memoryview(encoded), 0) == (value, len(encoded))


@pytest.mark.parametrize("encoded", ABSURD_VARINTS)
def test_a_varint_above_a_java_int_is_refused(encoded):
    with pytest.raises(Malformed):
        read_varint(memoryview(encoded), 0)
    with pytest.raises(Malformed):
        varint_tail(memoryview(encoded), 1, encoded[0])


@pytest.mark.parametrize("tail", [b"\xff\xff", b"\xff\xff\xff", b"\x80\x08", b"\x80\x80\x01"])
def test_a_record_length_above_a_java_int_is_refused(tail):
    with pytest.raises(Malformed):
        varint_end(memoryview(tail + b"\xff" * 8), 0, 1 << 21)


def test_a_record_length_of_four_and_five_bytes():
    for value in (1 << 21, (1 << 28) - 1, 1 << 28, MAX_VARINT):
        encoded = memoryview(varint(value))
        low = (value & 0x1F_FFFF) + (1 << 21)
        assert varint_end(encoded, 3, low) == (value, len(encoded))


def test_a_varint_that_is_cut_short_runs_past_the_end():
    with pytest.raises(IndexError):
        read_varint(memoryview(b"\x80"), 0)


def test_a_null_length_is_refused_where_null_is_not_allowed():
    with pytest.raises(Malformed):
        long_size(memoryview(b"\x00"), 1, 0)
    with pytest.raises(Malformed):
        long_count(memoryview(b"\x00"), 1, 0, 1)


def test_long_sizes_are_read_whole():
    assert long_size(memoryview(b"\x81\x01"), 1, 0x81) == (0x81, 2)
    frame = memoryview(b"\x81\x01" + bytes(0x80))
    assert long_count(frame, 1, 0x81, 1) == (0x81, 2)
    with pytest.raises(Malformed):
        long_count(frame[:-1], 1, 0x81, 1)


def test_array_lengths_are_checked_against_the_limit_and_the_frame():
    frame = memoryview(bytes(MAX_ELEMENTS + 1))
    check_count(frame, 0, 0, 4)
    check_count(frame, 1, MAX_ELEMENTS, 1)
    for position, count, element_bytes in (
        (0, MAX_ELEMENTS + 1, 1),
        (2, MAX_ELEMENTS, 1),
        (0, MAX_ELEMENTS, 2),
        (0, 0x7FFF_FFFF, 1),
        (0, -1, 1),
        (0, -2, 1),
    ):
        with pytest.raises(Malformed):
            check_count(frame, position, count, element_bytes)


def test_the_number_of_tagged_fields_is_limited():
    assert tag_count(memoryview(b""), 0, 5) == (5, 0)
    for count in (MAX_TAGGED_FIELDS, MAX_TAGGED_FIELDS + 1):
        encoded = memoryview(varint(count))
        if count == MAX_TAGGED_FIELDS:
            assert tag_count(encoded, 1, encoded[0]) == (count, len(encoded))
        else:
            with pytest.raises(Malformed):
                tag_count(encoded, 1, encoded[0])


def test_unknown_tags_are_skipped():
    section = b"\x02\x07\x03abc\xff\x7f\x00rest"
    assert skip_tags(memoryview(section), 1, section[0]) == len(section) - len(b"rest")


# The same through whole messages, as a client would send them.


def heartbeat_with_tags(section: bytes) -> memoryview:
    data = b"".join(HEARTBEAT.encode_request(HeartbeatRequest("group", 1, "member"), 4))
    return memoryview(data[:-1] + section)


def test_a_request_with_as_many_unknown_tags_as_allowed_is_read():
    tags = b"".join(varint(tag + 1) + b"\x01x" for tag in range(MAX_TAGGED_FIELDS))
    view = heartbeat_with_tags(varint(MAX_TAGGED_FIELDS) + tags)
    assert HEARTBEAT.decode_request(view, 0, 4).member_id == "member"


@pytest.mark.parametrize(
    "section",
    [
        varint(MAX_TAGGED_FIELDS + 1) + b"\x01\x00" * (MAX_TAGGED_FIELDS + 1),
        b"\x01\x01\x05abcd",
        b"\x01\x01",
        b"\x01",
        b"\x01" + b"\xff" * 10,
        b"\x01\x01" + b"\xff" * 10,
        *ABSURD_VARINTS,
    ],
)
def test_tagged_fields_above_the_limit_or_the_frame_are_refused(section):
    with pytest.raises(Malformed):
        HEARTBEAT.decode_request(heartbeat_with_tags(section), 0, 4)


def test_a_known_tag_of_the_wrong_size_is_refused():
    # FetchRequest.cluster_id (tag 0): a string of two bytes in a field that claims three.
    data = b"".join(FETCH.encode_request(FetchRequest(), 12))
    right = data[:-1] + b"\x01\x00\x03\x03ab"
    assert FETCH.decode_request(memoryview(right), 0, 12).cluster_id == "ab"
    for section in (b"\x01\x00\x04\x03ab\x00", b"\x01\x00\x02\x03ab"):
        with pytest.raises(Malformed):
            FETCH.decode_request(memoryview(data[:-1] + section), 0, 12)


@pytest.mark.parametrize("length", [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xfe", b"\x80\x00\x00\x00"])
def test_absurd_classic_array_lengths_are_refused(length):
    null = b"\xff\xff\xff\xff"
    assert METADATA.decode_request(memoryview(null), 0, 1) == MetadataRequest(None)
    with pytest.raises(Malformed):
        METADATA.decode_request(memoryview(length), 0, 1)
    with pytest.raises(Malformed):
        METADATA.decode_request(memoryview(null), 0, 0)


@pytest.mark.parametrize("length", [*ABSURD_VARINTS, b"\xff\xff\xff\xff\x07"])
def test_absurd_compact_array_lengths_are_refused(length):
    tail = b"\x00\x00\x00\x00"
    assert METADATA.decode_request(memoryview(b"\x00" + tail), 0, 9).topics is None
    with pytest.raises(Malformed):
        METADATA.decode_request(memoryview(length + tail), 0, 9)


def test_an_array_at_the_limit_is_read_and_one_above_it_refused():
    # MetadataRequest v1: names of two bytes, the length of an empty string.
    def request(count: int) -> memoryview:
        return memoryview(count.to_bytes(4, "big") + bytes(2 * count))

    assert len(METADATA.decode_request(request(MAX_ELEMENTS), 0, 1).topics) == 1_000_000
    with pytest.raises(Malformed):
        METADATA.decode_request(request(MAX_ELEMENTS + 1), 0, 1)


def fetch_of_topics(topics: int, partitions: int, *, one_more: bool = False) -> memoryview:
    """A FetchRequest v4 with numbers of topics and of partitions for each."""

    def topic(count: int) -> bytes:
        return b"\0\0" + count.to_bytes(4, "big") + bytes(16 * count)

    head = bytes(16) + b"\0" + topics.to_bytes(4, "big")
    return memoryview(head + topic(partitions) * (topics - 1) + topic(partitions + one_more))


@pytest.fixture
def nested_limit():
    """A lower limit than the usual one: a million objects take their time."""
    token = elements_most.set(20_000)
    yield 20_000
    elements_most.reset(token)


def test_elements_inside_arrays_are_limited_over_the_whole_request(nested_limit):
    # 125 at a time: none of these arrays is long enough to be checked by itself.
    topics, partitions = nested_limit // 125, 125
    request = FETCH.decode_request(fetch_of_topics(topics, partitions), 0, 4)
    assert sum(len(topic.partitions) for topic in request.topics) == nested_limit
    with pytest.raises(Malformed, match="are allowed"):
        FETCH.decode_request(fetch_of_topics(topics, partitions, one_more=True), 0, 4)


def test_compact_elements_inside_arrays_are_limited_alike(nested_limit):
    topic = b"\2t" + varint(nested_limit + 1) + bytes(6 * nested_limit) + b"\0"
    head = b"\0" + bytes(6)
    one = PRODUCE.decode_request(memoryview(head + b"\2" + topic + b"\0"), 0, 9)
    assert len(one.topic_data[0].partition_data) == nested_limit
    another = b"\2t\2" + bytes(6) + b"\0"
    with pytest.raises(Malformed, match="are allowed"):
        PRODUCE.decode_request(memoryview(head + b"\3" + topic + another + b"\0"), 0, 9)


def test_tagged_fields_inside_arrays_are_limited_over_the_whole_request(nested_limit):
    tags = varint(MAX_TAGGED_FIELDS) + b"\1\0" * MAX_TAGGED_FIELDS
    structures = nested_limit // MAX_TAGGED_FIELDS

    def request(count: int, last: bytes = b"") -> memoryview:
        names = bytes(16) + b"\2t"
        topics = (names + tags) * count + (names + last if last else b"")
        return memoryview(varint(count + bool(last) + 1) + topics + bytes(3))

    assert len(METADATA.decode_request(request(structures), 0, 11).topics) == structures
    with pytest.raises(Malformed, match="are allowed"):
        METADATA.decode_request(request(structures, b"\1\1\0"), 0, 11)


@pytest.mark.parametrize("length", [b"\xff\xfe", b"\x80\x00", b"\x7f\xff", b"\xff\xff"])
def test_absurd_classic_string_lengths_are_refused(length):
    with pytest.raises(Malformed):
        HEARTBEAT.decode_request(memoryview(length + b"group"), 0, 0)


@pytest.mark.parametrize("length", [b"\xff\xff\xff\xfe", b"\x80\x00\x00\x00", b"\x7f\xff\xff\xff"])
def test_absurd_record_lengths_are_refused(length):
    data = b"".join(PRODUCE.encode_request(ProduceRequest(acks=1), 3))
    partition = b"\x00\x00\x00\x01\x00\x01t\x00\x00\x00\x01\x00\x00\x00\x00"
    right = data[:-4] + partition + b"\xff\xff\xff\xff"
    request = PRODUCE.decode_request(memoryview(right), 0, 3)
    assert request.topic_data[0].partition_data[0].records is None
    with pytest.raises(Malformed):
        PRODUCE.decode_request(memoryview(data[:-4] + partition + length), 0, 3)


def test_bytes_that_are_no_utf_8_are_refused():
    with pytest.raises(Malformed):
        HEARTBEAT.decode_request(memoryview(b"\x00\x01\xff" + bytes(8)), 0, 0)


def test_an_empty_sync_group_assignment_is_legal():
    for version in range(SYNC_GROUP.min_version, SYNC_GROUP.max_version + 1):
        response = SYNC_GROUP.decode_response(
            memoryview(b"".join(SYNC_GROUP.encode_response(empty_sync(), version))), 0, version
        )
        assert response.assignment == b""


def empty_sync():
    return SyncGroupResponse(assignment=b"")
