"""Tagged fields that only this project's schemas know, on the requests between brokers (R10)."""

import pytest

from barnabas.protocol.errors import Malformed
from barnabas.protocol.messages.api_versions import (
    API_VERSIONS,
    ApiVersionsRequest,
    PeerHello,
)
from barnabas.protocol.messages.write_txn_markers import (
    WRITE_TXN_MARKERS,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

TAG = bytes((0xE8, 0x07))
"""1000 as an unsigned varint."""


def markers(**tagged):
    topic = WritableTxnMarkerTopic("t", [0, 7], **tagged)
    return WriteTxnMarkersRequest([WritableTxnMarker(5, 2, True, [topic], 9, 2)])


def encoded(api, request, version):
    return b"".join(api.encode_request(request, version))


@pytest.mark.parametrize(("version", "generation"), [(1, ""), (2, "02")])
def test_a_marker_without_the_leaders_epoch_has_the_bytes_of_always(version, generation):
    bytes_of_always = f"0200000000000000050002010202740300000000000000070000000009{generation}0000"
    assert encoded(WRITE_TXN_MARKERS, markers(), version).hex() == bytes_of_always


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("epoch", [0, 1, 2**31 - 1])
def test_a_marker_with_the_leaders_epoch_differs_by_one_tag(version, epoch):
    plain = encoded(WRITE_TXN_MARKERS, markers(), version)
    tagged = encoded(WRITE_TXN_MARKERS, markers(leader_epoch=epoch), version)
    end_of_topic = plain.index(bytes((0, 0, 0, 7))) + 4
    tag = b"\1" + TAG + b"\4" + epoch.to_bytes(4, "big")
    assert tagged == plain[:end_of_topic] + tag + plain[end_of_topic + 1 :]
    again = WRITE_TXN_MARKERS.decode_request(memoryview(tagged), 0, version)
    assert again.markers[0].topics == markers(leader_epoch=epoch).markers[0].topics


@pytest.mark.parametrize("version", [1, 2])
def test_a_marker_with_the_topics_id_as_well_has_two_tags(version):
    named = WriteTxnMarkersRequest(
        [WritableTxnMarker(5, 1, True, [WritableTxnMarkerTopic("t", [7], 3, bytes(range(16)))])]
    )
    again = WRITE_TXN_MARKERS.decode_request(
        memoryview(encoded(WRITE_TXN_MARKERS, named, version)), 0, version
    )
    assert again.markers[0].topics == named.markers[0].topics


def test_a_leaders_epoch_of_another_size_is_malformed():
    data = encoded(WRITE_TXN_MARKERS, markers(leader_epoch=3), 2)
    longer = data.replace(TAG + b"\4\0\0\0\3", TAG + b"\5\0\0\0\3\0")
    with pytest.raises(Malformed):
        WRITE_TXN_MARKERS.decode_request(memoryview(longer), 0, 2)


def test_who_is_no_broker_says_no_hello():
    data = encoded(API_VERSIONS, ApiVersionsRequest("me", "1"), 3)
    assert data == b"\3me\2" + b"1\0"
    assert API_VERSIONS.decode_request(memoryview(data), 0, 3).peer_hello is None


@pytest.mark.parametrize("version", [3, 4])
def test_a_hello_is_one_tag_behind_the_request(version):
    hello = PeerHello(2, 2**40, "markers", 77)
    plain = encoded(API_VERSIONS, ApiVersionsRequest("me", "1"), version)
    data = encoded(API_VERSIONS, ApiVersionsRequest("me", "1", hello), version)
    body = (
        (2).to_bytes(4, "big")
        + (2**40).to_bytes(8, "big")
        + b"\x08markers"
        + (77).to_bytes(8, "big")
        + b"\0"
    )
    assert data == plain[:-1] + b"\1" + TAG + bytes((len(body),)) + body
    assert API_VERSIONS.decode_request(memoryview(data), 0, version).peer_hello == hello


@pytest.mark.parametrize("version", range(3))
def test_versions_without_tags_leave_the_hello_out(version):
    request = ApiVersionsRequest("me", "1", PeerHello(2, 3, "markers", 4))
    assert encoded(API_VERSIONS, request, version) == b""
