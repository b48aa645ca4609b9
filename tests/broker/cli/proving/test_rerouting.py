"""Rerouting: the addresses of brokers in responses become those of their proxies."""

from __future__ import annotations

import pytest

from barnabas.broker.cli.proving import rerouting
from barnabas.broker.cli.proving.proxy import Act
from barnabas.broker.cli.proving.rerouting import Rerouted
from barnabas.protocol.header import RequestHeader, request_frame, response_frame
from barnabas.protocol.messages.api_versions import (
    API_VERSIONS,
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from barnabas.protocol.messages.describe_cluster import (
    DESCRIBE_CLUSTER,
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from barnabas.protocol.messages.fetch import FETCH, FetchRequest, FetchResponse, NodeEndpoint
from barnabas.protocol.messages.find_coordinator import (
    FIND_COORDINATOR,
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from barnabas.protocol.messages.heartbeat import HEARTBEAT, HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.metadata import (
    METADATA,
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
)

PORTS = {("kafka-1.example", 9092): 7001, ("kafka-2.example", 9092): 7002}
METADATA_RESPONSE = MetadataResponse(
    brokers=[MetadataResponseBroker(1, "kafka-1.example", 9092, "rack-a")],
    cluster_id="cluster",
    topics=[],
)


class Seen:
    """Tap that keeps what it gets."""

    def __init__(self) -> None:
        self.asked = b""
        self.answered = b""
        self.is_closed = False

    def requests(self, data: bytes) -> tuple[Act, bytes]:
        self.asked += data
        return Act.SWALLOW, b"rejected"

    def responses(self, data: bytes) -> bytes:
        self.answered += data
        return data

    def closed(self) -> None:
        self.is_closed = True


@pytest.fixture
def tap() -> Rerouted:
    return Rerouted(Seen(), PORTS)


def ask(tap: Rerouted, api, version: int, request, correlation_id: int = 5) -> bytes:
    header = RequestHeader(api.key, version, correlation_id, "client")
    data = b"".join(request_frame(api, header, request))
    tap.requests(data)
    return data


def answered(api, version: int, response, correlation_id: int = 5) -> bytes:
    return b"".join(response_frame(api, version, correlation_id, response))


def exchanged(tap: Rerouted, api, version: int, request, response):
    """Return the response that the client gets for a request."""
    ask(tap, api, version, request)
    data = tap.responses(answered(api, version, response))
    flexible = version >= api.flexible_from
    return api.decode_response(memoryview(data), 9 if flexible else 8, version)


@pytest.mark.parametrize("version", [0, 9, 13])
def test_metadata_has_the_proxy_of_each_broker(tap, version):
    brokers = [MetadataResponseBroker(number, f"kafka-{number}.example", 9092) for number in (1, 2)]
    response = MetadataResponse(brokers=brokers, topics=[])
    found = exchanged(tap, METADATA, version, MetadataRequest([]), response)
    assert [(each.node_id, each.host, each.port) for each in found.brokers] == [
        (1, "127.0.0.1", 7001),
        (2, "127.0.0.1", 7002),
    ]


@pytest.mark.parametrize("version", [1, 3])
def test_coordinator_of_an_early_version_is_rerouted(tap, version):
    response = FindCoordinatorResponse(node_id=2, host="kafka-2.example", port=9092)
    request = FindCoordinatorRequest(key="group")
    found = exchanged(tap, FIND_COORDINATOR, version, request, response)
    assert (found.node_id, found.host, found.port) == (2, "127.0.0.1", 7002)


def test_coordinators_are_rerouted(tap):
    response = FindCoordinatorResponse(
        coordinators=[Coordinator("group", 2, "kafka-2.example", 9092, 0, None)]
    )
    request = FindCoordinatorRequest(coordinator_keys=["group"])
    (found,) = exchanged(tap, FIND_COORDINATOR, 6, request, response).coordinators
    assert (found.key, found.host, found.port) == ("group", "127.0.0.1", 7002)


def test_described_brokers_are_rerouted_except_unknown_ones(tap):
    brokers = [
        DescribeClusterBroker(1, "kafka-1.example", 9092),
        DescribeClusterBroker(3, "kafka-3.example", 9092),
    ]
    response = DescribeClusterResponse(cluster_id="cluster", brokers=brokers)
    found = exchanged(tap, DESCRIBE_CLUSTER, 0, DescribeClusterRequest(), response)
    addresses = [(each.host, each.port) for each in found.brokers]
    assert addresses == [("127.0.0.1", 7001), ("kafka-3.example", 9092)]


def test_new_leader_of_a_fetch_is_rerouted(tap):
    response = FetchResponse(
        responses=[], node_endpoints=[NodeEndpoint(2, "kafka-2.example", 9092)]
    )
    found = exchanged(tap, FETCH, 16, FetchRequest(topics=[]), response)
    (endpoint,) = found.node_endpoints
    assert (endpoint.host, endpoint.port) == ("127.0.0.1", 7002)


def test_later_versions_of_watched_apis_are_not_offered(tap):
    keys = [ApiVersion(METADATA.key, 0, 99), ApiVersion(HEARTBEAT.key, 0, 3), ApiVersion(999, 0, 7)]
    response = ApiVersionsResponse(api_keys=keys)
    ask(tap, API_VERSIONS, 3, ApiVersionsRequest("client", "1"))
    data = tap.responses(answered(API_VERSIONS, 3, response))
    found = API_VERSIONS.decode_response(memoryview(data), 8, 3)
    assert [(each.api_key, each.max_version) for each in found.api_keys] == [
        (METADATA.key, METADATA.max_version),
        (HEARTBEAT.key, 3),
        (999, 7),
    ]


def test_other_responses_are_forwarded_without_waiting_for_their_end(tap):
    ask(tap, HEARTBEAT, 3, HeartbeatRequest("group", 1, "member"))
    data = answered(HEARTBEAT, 3, HeartbeatResponse())
    assert tap.responses(data[:9]) == data[:9]
    assert tap.responses(data[9:]) == data[9:]


def test_requests_and_responses_in_pieces_are_whole_for_the_client(tap):
    header = RequestHeader(METADATA.key, 1, 6, "client")
    for byte in b"".join(request_frame(METADATA, header, MetadataRequest([]))):
        assert tap.requests(bytes([byte])) == (Act.SWALLOW, b"rejected")
    data = answered(METADATA, 1, METADATA_RESPONSE, 6)
    parts = [tap.responses(bytes([byte])) for byte in data]
    assert not any(parts[:-1])
    found = METADATA.decode_response(memoryview(parts[-1]), 8, 1)
    assert found.brokers[0].port == 7001


def test_responses_in_one_piece_keep_their_order(tap):
    ask(tap, HEARTBEAT, 3, HeartbeatRequest("group", 1, "member"), 1)
    ask(tap, METADATA, 1, MetadataRequest([]), 2)
    ask(tap, HEARTBEAT, 3, HeartbeatRequest("group", 1, "member"), 3)
    beats = [answered(HEARTBEAT, 3, HeartbeatResponse(), number) for number in (1, 3)]
    middle = answered(METADATA, 1, METADATA_RESPONSE, 2)
    found = tap.responses(beats[0] + middle + beats[1])
    assert found.startswith(beats[0])
    assert found.endswith(beats[1])
    assert b"127.0.0.1" in found[len(beats[0]) : -len(beats[1])]


def test_request_without_a_response_does_not_shift_the_others(tap):
    ask(tap, METADATA, 1, MetadataRequest([]), 1)  # as Produce with acks=0
    ask(tap, METADATA, 9, MetadataRequest([]), 2)
    data = tap.responses(answered(METADATA, 9, METADATA_RESPONSE, 2))
    assert METADATA.decode_response(memoryview(data), 9, 9).brokers[0].port == 7001


def test_response_that_cannot_be_decoded_is_forwarded(tap):
    ask(tap, METADATA, 1, MetadataRequest([]))
    broken = b"\0\0\0\6\0\0\0\5\xff\xff"
    assert tap.responses(broken) == broken


def test_large_response_is_forwarded_as_it_is(tap, monkeypatch):
    monkeypatch.setattr(rerouting, "FRAME_BYTES_MAX", 20)
    ask(tap, METADATA, 1, MetadataRequest([]))
    data = answered(METADATA, 1, METADATA_RESPONSE)
    assert tap.responses(data[:10]) + tap.responses(data[10:]) == data


def test_connection_of_another_protocol_is_forwarded(tap):
    hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 3
    other = b"\xff\xff\xff\xff" * 4
    tap.requests(hello)
    assert tap.responses(other) + tap.responses(hello) == other + hello


def test_other_tap_gets_all_bytes_of_the_broker():
    seen = Seen()
    tap = Rerouted(seen, PORTS)
    asked = ask(tap, METADATA, 1, MetadataRequest([]))
    data = answered(METADATA, 1, METADATA_RESPONSE)
    tap.responses(data)
    tap.closed()
    assert (seen.asked, seen.answered, seen.is_closed) == (asked, data, True)
