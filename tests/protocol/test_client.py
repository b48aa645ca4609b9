"""The sans-IO client, fed by hand."""

import pytest

from barnabas.protocol.client import NEED_DATA, AdvertisedVersions, ClientConnection
from barnabas.protocol.errors import ErrorCode, KafkaError, Malformed
from barnabas.protocol.header import decode_request_header, response_frame
from barnabas.protocol.messages.api_versions import (
    API_VERSIONS,
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from barnabas.protocol.messages.fetch import (
    FETCH,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from barnabas.protocol.messages.heartbeat import HEARTBEAT, HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.produce import PRODUCE, ProduceRequest


def heartbeat(correlation_id: int, error_code: int = 0) -> bytes:
    response = HeartbeatResponse(error_code=error_code)
    return b"".join(response_frame(HEARTBEAT, 4, correlation_id, response))


@pytest.fixture
def connection():
    return ClientConnection("me", max_frame_bytes=1000, max_in_flight=3)


def test_a_request_is_a_whole_frame(connection):
    request = HeartbeatRequest("group", 1, "member")
    for expected_id in (0, 1):
        correlation_id, chunks = connection.request(HEARTBEAT, 4, request)
        frame = b"".join(chunks)
        assert int.from_bytes(frame[:4], "big") == len(frame) - 4
        header, position = decode_request_header(memoryview(frame)[4:])
        assert correlation_id == header.correlation_id == expected_id
        assert (header.api_key, header.api_version, header.client_id) == (12, 4, "me")
        assert HEARTBEAT.decode_request(memoryview(frame)[4:], position, 4) == request
    assert connection.in_flight == 2


def test_responses_come_back_in_order_however_the_bytes_are_cut(connection):
    for _ in range(3):
        connection.request(HEARTBEAT, 4, HeartbeatRequest())
    answers = []
    for byte in heartbeat(0) + heartbeat(1, 27) + heartbeat(2):
        connection.receive_data(bytes([byte]))
        answer = connection.next_response()
        if answer is not NEED_DATA:
            answers.append(answer)
    assert answers == [
        (0, HeartbeatResponse()),
        (1, HeartbeatResponse(error_code=27)),
        (2, HeartbeatResponse()),
    ]
    assert connection.in_flight == 0


def test_several_responses_in_one_read(connection):
    for _ in range(2):
        connection.request(HEARTBEAT, 4, HeartbeatRequest())
    connection.receive_data(heartbeat(0) + heartbeat(1)[:-1])
    assert connection.next_response() == (0, HeartbeatResponse())
    assert connection.next_response() is NEED_DATA
    connection.receive_data(heartbeat(1)[-1:])
    assert connection.next_response() == (1, HeartbeatResponse())


def test_correlation_ids_start_again_after_the_last():
    connection = ClientConnection(None)
    connection._next_correlation_id = 0x7FFF_FFFF
    assert connection.request(HEARTBEAT, 0, HeartbeatRequest())[0] == 0x7FFF_FFFF
    assert connection.request(HEARTBEAT, 0, HeartbeatRequest())[0] == 0


def test_a_request_without_a_response_is_not_waited_for(connection):
    connection.request(PRODUCE, 9, ProduceRequest(acks=0), expects_response=False)
    assert connection.in_flight == 0
    connection.request(HEARTBEAT, 4, HeartbeatRequest())
    connection.receive_data(heartbeat(1))
    assert connection.next_response() == (1, HeartbeatResponse())


def test_a_failed_request_uses_up_nothing(connection):
    with pytest.raises(KafkaError):
        connection.request(HEARTBEAT, 9, HeartbeatRequest())
    assert connection.in_flight == 0
    assert connection.request(HEARTBEAT, 4, HeartbeatRequest())[0] == 0


def test_requests_in_flight_are_limited(connection):
    for _ in range(3):
        connection.request(HEARTBEAT, 4, HeartbeatRequest())
    with pytest.raises(OverflowError, match="3 requests"):
        connection.request(HEARTBEAT, 4, HeartbeatRequest())


@pytest.mark.parametrize("size", [1001, 0x7FFF_FFFF, -1, -2])
def test_a_frame_above_the_limit_is_refused_by_its_length(connection, size):
    connection.request(HEARTBEAT, 4, HeartbeatRequest())
    connection.receive_data(size.to_bytes(4, "big", signed=True))
    with pytest.raises(Malformed):
        connection.next_response()


def test_a_frame_at_the_limit_is_waited_for(connection):
    connection.request(HEARTBEAT, 4, HeartbeatRequest())
    connection.receive_data((1000).to_bytes(4, "big"))
    assert connection.next_response() is NEED_DATA


def test_a_response_out_of_order_is_refused(connection):
    connection.request(HEARTBEAT, 4, HeartbeatRequest())
    connection.receive_data(heartbeat(5))
    with pytest.raises(Malformed, match="response 5"):
        connection.next_response()


def test_a_response_nobody_asked_for_is_refused(connection):
    connection.receive_data(heartbeat(0))
    with pytest.raises(Malformed, match="no request"):
        connection.next_response()


def test_a_broken_response_is_refused(connection):
    connection.request(HEARTBEAT, 4, HeartbeatRequest())
    connection.receive_data(b"\0\0\0\6" + heartbeat(0)[4:10])
    with pytest.raises(Malformed):
        connection.next_response()


def test_records_of_a_response_outlive_the_connection(connection):
    records = memoryview(b"batch" * 20)
    response = FetchResponse(
        responses=[FetchableTopicResponse("t", partitions=[PartitionData(0, records=records)])]
    )
    connection.request(FETCH, 12, FetchRequest())
    for chunk in response_frame(FETCH, 12, 0, response):
        connection.receive_data(chunk)
    _, decoded = connection.next_response()
    connection.receive_data(heartbeat(1))
    assert decoded.responses[0].partitions[0].records == records


def test_a_refused_api_versions_is_read_in_version_0(connection):
    connection.request(API_VERSIONS, 4, ApiVersionsRequest("me", "1"))
    refusal = ApiVersionsResponse(35, [ApiVersion(18, 0, 3)])
    connection.receive_data(b"".join(response_frame(API_VERSIONS, 0, 0, refusal)))
    assert connection.next_response() == (0, refusal)


def test_an_accepted_api_versions_is_read_in_its_version(connection):
    connection.request(API_VERSIONS, 4, ApiVersionsRequest("me", "1"))
    answer = ApiVersionsResponse(0, [ApiVersion(0, 0, 13)], finalized_features_epoch=3)
    connection.receive_data(b"".join(response_frame(API_VERSIONS, 4, 0, answer)))
    assert connection.next_response() == (0, answer)


def test_an_api_versions_answer_cut_short_is_refused(connection):
    connection.request(API_VERSIONS, 4, ApiVersionsRequest("me", "1"))
    connection.receive_data(b"\0\0\0\5\0\0\0\0\0")
    with pytest.raises(Malformed):
        connection.next_response()


@pytest.mark.parametrize(
    ("low", "high", "at_most", "expected"),
    [(0, 99, None, 4), (0, 3, None, 3), (4, 9, None, 4), (0, 99, 2, 2), (5, 9, None, None)],
)
def test_the_highest_common_version(low, high, at_most, expected):
    versions = AdvertisedVersions({HEARTBEAT.key: (low, high)})
    assert (HEARTBEAT in versions) == (expected is not None)
    if expected is None:
        with pytest.raises(KafkaError, match="versions 5-9 of Heartbeat") as raised:
            versions.highest_common(HEARTBEAT, at_most=at_most)
        assert raised.value.code is ErrorCode.UNSUPPORTED_VERSION
    else:
        assert versions.highest_common(HEARTBEAT, at_most=at_most) == expected


def test_versions_come_from_the_answer_to_api_versions():
    response = ApiVersionsResponse(0, [ApiVersion(0, 0, 11), ApiVersion(99, 0, 0)])
    versions = AdvertisedVersions.from_response(response)
    assert versions.highest_common(PRODUCE) == 11
    assert HEARTBEAT not in versions
    with pytest.raises(KafkaError, match="no version of Heartbeat, this client 0-2"):
        versions.highest_common(HEARTBEAT, at_most=2)
    with pytest.raises(KafkaError):
        AdvertisedVersions.from_response(ApiVersionsResponse(35))


def test_a_request_that_was_encoded_before_is_the_same_frame():
    body = HEARTBEAT.encode_request(HeartbeatRequest("group", 1, "member"), 4)
    encoded, plain = ClientConnection("me"), ClientConnection("me")
    for expected_id in (0, 1):
        correlation_id, chunks = encoded.request_encoded(HEARTBEAT, 4, body)
        _, same = plain.request(HEARTBEAT, 4, HeartbeatRequest("group", 1, "member"))
        assert correlation_id == expected_id
        assert b"".join(chunks) == b"".join(same)
    encoded.receive_data(heartbeat(0))
    assert encoded.next_response() == (0, HeartbeatResponse())
    assert encoded.in_flight == 1


def test_no_more_encoded_requests_than_allowed_are_in_flight(connection):
    body = HEARTBEAT.encode_request(HeartbeatRequest(), 4)
    for _ in range(3):
        connection.request_encoded(HEARTBEAT, 4, body)
    with pytest.raises(OverflowError):
        connection.request_encoded(HEARTBEAT, 4, body)


def test_an_exact_version_is_offered_or_not():
    versions = AdvertisedVersions({HEARTBEAT.key: (2, 3)})
    offered = [version for version in range(5) if versions.offers(HEARTBEAT, version)]
    assert offered == [2, 3]
    assert not versions.offers(FETCH, 0)
