"""Headers and whole frames."""

import pytest

from barnabas.protocol.errors import Malformed
from barnabas.protocol.header import (
    RequestHeader,
    decode_request_header,
    decode_response_header,
    encode_request_header,
    encode_response_header,
    has_flexible_response_header,
    is_flexible,
    request_frame,
    response_frame,
)
from barnabas.protocol.messages import ALL_KEYS, ENTRIES, request_header
from barnabas.protocol.messages.api_versions import API_VERSIONS, ApiVersion, ApiVersionsResponse
from barnabas.protocol.messages.fetch import (
    FETCH,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from barnabas.protocol.messages.heartbeat import HEARTBEAT, HeartbeatRequest, HeartbeatResponse


@pytest.mark.parametrize("client_id", [None, "", "client", "Zürich"])
def test_request_headers_agree_with_the_schema_for_every_api_and_version(client_id):
    for key in ALL_KEYS:
        entry = ENTRIES[key]
        for version in range(entry.min_version, entry.max_version + 1):
            header = RequestHeader(key, version, 0x1234_5678, client_id)
            encoded = bytes(encode_request_header(header))
            flexible = version >= entry.flexible_from
            assert is_flexible(key, version) == flexible
            generated = request_header.RequestHeader(key, version, 0x1234_5678, client_id)
            assert encoded == b"".join(
                request_header.REQUEST_HEADER.encode(generated, 2 if flexible else 1)
            )
            assert decode_request_header(memoryview(encoded + b"body")) == (header, len(encoded))


def test_unknown_tags_of_a_request_header_are_skipped():
    data = b"\0\x0c\0\4\0\0\0\7\0\1c" + b"\x02\x00\x03abc\x05\x00" + b"body"
    header, position = decode_request_header(memoryview(data))
    assert header == RequestHeader(12, 4, 7, "c")
    assert data[position:] == b"body"


def test_a_later_version_of_api_versions_still_has_a_flexible_header():
    data = b"\0\x12\0\x63\0\0\0\7\xff\xff\0"
    assert decode_request_header(memoryview(data)) == (RequestHeader(18, 99, 7, None), 11)
    with pytest.raises(Malformed):
        decode_request_header(memoryview(data[:-1]))


def test_an_unknown_api_has_a_classic_header():
    assert not is_flexible(4, 0)
    assert not is_flexible(1000, 7)
    assert decode_request_header(memoryview(b"\x03\xe8\0\7\0\0\0\1\xff\xff"))[1] == 10


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0\x0c\0\4\0\0\0\7\0",
        b"\0\x0c\0\0\0\0\0\7\0\2c",
        b"\0\x0c\0\0\0\0\0\7\xff\xfec",
        b"\0\x0c\0\0\0\0\0\7\0\1\xff",
        b"\0\x0c\0\4\0\0\0\7\0\1c",
        b"\0\x0c\0\4\0\0\0\7\0\1c\1",
        b"\0\x0c\0\4\0\0\0\7\0\1c" + b"\xff" * 10,
    ],
)
def test_broken_request_headers_are_refused(data):
    with pytest.raises(Malformed):
        decode_request_header(memoryview(data))


def test_response_headers_are_flexible_with_their_api_except_api_versions():
    for key in ALL_KEYS:
        entry = ENTRIES[key]
        for version in range(entry.min_version, entry.max_version + 1):
            flexible = version >= entry.flexible_from and key != 18
            assert has_flexible_response_header(key, version) == flexible
            encoded = encode_response_header(key, version, 99)
            assert encoded == (b"\0\0\0\x63\0" if flexible else b"\0\0\0\x63")
            view = memoryview(encoded + b"body")
            assert decode_response_header(view, key, version) == (99, len(encoded))


def test_unknown_tags_of_a_response_header_are_skipped():
    assert decode_response_header(memoryview(b"\0\0\0\1\1\0\2ab"), 12, 4) == (1, 9)


@pytest.mark.parametrize("data", [b"", b"\0\0\0", b"\0\0\0\1", b"\0\0\0\1\1", b"\0\0\0\1\1\0"])
def test_broken_response_headers_are_refused(data):
    with pytest.raises(Malformed):
        decode_response_header(memoryview(data), 12, 4)


def test_the_answer_to_an_unknown_version_of_api_versions_is_the_one_kafka_gives():
    response = ApiVersionsResponse(35, [ApiVersion(18, 0, 4)])
    (frame,) = response_frame(API_VERSIONS, 0, 7, response)
    assert frame == bytes.fromhex("00000010 00000007 0023 00000001 0012 0000 0004")


def test_a_request_frame_is_length_header_and_body():
    for version in (0, 4):
        request = HeartbeatRequest("group", 1, "member")
        header = RequestHeader(12, version, 5, "me")
        frame = b"".join(request_frame(HEARTBEAT, header, request))
        assert int.from_bytes(frame[:4], "big") == len(frame) - 4
        decoded, position = decode_request_header(memoryview(frame)[4:])
        assert decoded == header
        assert HEARTBEAT.decode_request(memoryview(frame)[4:], position, version) == request


def test_a_response_frame_is_length_header_and_body():
    for version in (0, 4):
        response = HeartbeatResponse(error_code=27)
        (frame,) = response_frame(HEARTBEAT, version, 5, response)
        assert int.from_bytes(frame[:4], "big") == len(frame) - 4
        correlation_id, position = decode_response_header(memoryview(frame)[4:], 12, version)
        assert correlation_id == 5
        assert HEARTBEAT.decode_response(memoryview(frame)[4:], position, version) == response


def test_a_response_frame_counts_the_records_it_refers_to():
    records = memoryview(b"batch" * 100)
    response = FetchResponse(responses=[FetchableTopicResponse("t", partitions=[])])
    response.responses[0].partitions.append(PartitionData(0, 0, 5, records=records))
    for version in (4, 12):
        chunks = response_frame(FETCH, version, 5, response)
        assert any(chunk is records for chunk in chunks)
        frame = b"".join(chunks)
        assert int.from_bytes(frame[:4], "big") == len(frame) - 4
        _, position = decode_response_header(memoryview(frame)[4:], 1, version)
        assert FETCH.decode_response(memoryview(frame)[4:], position, version) == response
