"""Records of Kafka's metadata log, laid out by hand from the definitions in Kafka's jars."""

import struct

import pytest

from barnabas.protocol.errors import Malformed
from barnabas.protocol.kraft_records import (
    AclAdded,
    AclRemoved,
    ConfigSet,
    ProducerIdsTaken,
    QuotaSet,
    ScramCredentialRemoved,
    ScramCredentialSet,
    TopicAdded,
    TopicRemoved,
    decode_kraft_record,
)

ID = bytes(range(16))
NO_TAGS = b"\0"


def text(value: str) -> bytes:
    data = value.encode()
    assert len(data) < 0x7F
    return bytes([len(data) + 1]) + data


RECORDS = {
    b"\1\2\0" + text("orders") + ID + NO_TAGS: TopicAdded("orders", ID),
    b"\1\x09\0" + ID + NO_TAGS: TopicRemoved(ID),
    b"\1\4\0\2" + text("orders") + text("retention.ms") + text("-1") + NO_TAGS: ConfigSet(
        2, "orders", "retention.ms", "-1"
    ),
    b"\1\4\0\4" + text("") + text("log.retention.ms") + b"\0" + NO_TAGS: ConfigSet(
        4, "", "log.retention.ms", None
    ),
    b"\1\x0b\0"
    + text("alice")
    + b"\1"
    + text("salt")
    + text("key")
    + text("server")
    + (8192).to_bytes(4)
    + NO_TAGS: ScramCredentialSet("alice", 1, b"salt", b"key", b"server", 8192),
    b"\1\x16\0" + text("alice") + b"\2" + NO_TAGS: ScramCredentialRemoved("alice", 2),
    b"\1\x12\0"
    + ID
    + b"\2"
    + text("orders")
    + b"\4"
    + text("User:a")
    + text("*")
    + b"\3\3"
    + NO_TAGS: AclAdded(ID, 2, "orders", 4, "User:a", "*", 3, 3),
    b"\1\x13\0" + ID + NO_TAGS: AclRemoved(ID),
    b"\1\x0e\0\3"
    + text("user")
    + text("u")
    + NO_TAGS
    + text("client-id")
    + b"\0"
    + NO_TAGS
    + text("request_percentage")
    + struct.pack(">d", 0.5)
    + b"\0"
    + NO_TAGS: QuotaSet((("user", "u"), ("client-id", None)), "request_percentage", 0.5),
    b"\1\x0e\0\2" + text("ip") + b"\0" + NO_TAGS + text("k") + bytes(8) + b"\1" + NO_TAGS: QuotaSet(
        (("ip", None),), "k", None
    ),
    b"\1\x0f\0" + bytes(4) + bytes(8) + (7000).to_bytes(8) + NO_TAGS: ProducerIdsTaken(7000),
}


@pytest.mark.parametrize(("value", "record"), RECORDS.items(), ids=lambda each: repr(each)[:30])
def test_records_that_matter(value, record):
    assert decode_kraft_record(value) == record


@pytest.mark.parametrize("kind", [3, 5, 12, 27, 127])
def test_kinds_that_do_not_matter(kind):
    assert decode_kraft_record(bytes([1, kind, 0]) + b"anything") is None


@pytest.mark.parametrize("value", RECORDS, ids=lambda each: repr(each)[:30])
def test_records_cut_short(value):
    for size in range(len(value) - 1):
        with pytest.raises(Malformed):
            decode_kraft_record(value[:size])


@pytest.mark.parametrize(
    "value",
    [
        b"\2\2\0" + text("orders") + ID,
        b"\1\2\1" + text("orders") + ID,
        b"\1\2\0\0" + ID,
        b"\1\2\0\3\xff\xff" + ID,
    ],
    ids=["framing", "layout", "no name", "no text"],
)
def test_records_that_are_wrong(value):
    with pytest.raises(Malformed):
        decode_kraft_record(value)
