"""Addresses of brokers in responses: each becomes the address of the proxy before it.

Clients connect to the addresses that responses contain. With those of the proxies they stay behind
the proxies, so that the brokers of any cluster need no setting.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from barnabas.broker.cli.proving.calls import WATCHED
from barnabas.broker.cli.proving.proxy import FRAME_BYTES_MAX, HOST, LENGTH_BYTES, Act, Stream, Tap
from barnabas.broker.client.connection import Address
from barnabas.protocol.errors import KafkaError, Malformed
from barnabas.protocol.header import API_VERSIONS_KEY, decode_response_header, response_frame
from barnabas.protocol.messages import ENTRIES, api_for_key
from barnabas.protocol.wire import Chunks

_LISTS: Final = {
    "Metadata": "brokers",
    "FindCoordinator": "coordinators",
    "DescribeCluster": "brokers",
    "Produce": "node_endpoints",
    "Fetch": "node_endpoints",
    "ShareFetch": "node_endpoints",
    "ShareAcknowledge": "node_endpoints",
}
"""The responses with addresses, each with its list of them."""
_LIST_OF_KEY: Final = {
    entry.key: _LISTS[entry.name] for entry in ENTRIES.values() if entry.name in _LISTS
}
_MAX_VERSIONS: Final = {
    entry.key: entry.max_version
    for entry in ENTRIES.values()
    if entry.name in _LISTS or entry.name in WATCHED
}
"""The newest version of each API that the proxy must understand."""
_OUTSTANDING_MAX: Final = 10_000
"""Requests of a connection whose responses are awaited; Produce with acks=0 has none."""
_REQUEST: Final = struct.Struct(">ihhi")
_RESPONSE: Final = struct.Struct(">ii")
_FRAME_BYTES_MIN: Final = _RESPONSE.size - LENGTH_BYTES


class _Awaited(NamedTuple):
    correlation_id: int
    key: int
    version: int


class Rerouted:
    """Tap that replaces addresses, and passes the bytes on to another tap."""

    def __init__(self, tap: Tap, ports: Mapping[Address, int]) -> None:
        """``ports`` has the port of each broker's proxy by the address that clients get."""
        self._tap = tap
        self._ports = ports
        self._requests = Stream(_REQUEST.size)
        self._responses = Stream(_RESPONSE.size)
        self._awaited: deque[_Awaited] = deque(maxlen=_OUTSTANDING_MAX)

    def requests(self, data: bytes) -> tuple[Act, bytes]:
        """Note the requests."""
        self._requests.add(data)
        while (start := self._requests.start()) is not None:
            size, key, version, correlation_id = _REQUEST.unpack(start)
            self._awaited.append(_Awaited(correlation_id, key, version))
            self._requests.skip(size)
        return self._tap.requests(data)

    def responses(self, data: bytes) -> bytes:
        """Return the responses with other addresses, as far as they are complete."""
        self._tap.responses(data)
        stream, out = self._responses, bytearray()
        out += stream.add(data)
        while (start := stream.start()) is not None:
            size, correlation_id = _RESPONSE.unpack(start)
            awaited = self._found(correlation_id)
            if awaited is None or not _FRAME_BYTES_MIN <= size <= FRAME_BYTES_MAX:
                out += stream.skip(size)
                continue
            frame = stream.take(size)
            if frame is None:
                self._awaited.appendleft(awaited)
                break
            for chunk in _rerouted(frame, awaited, self._ports):
                out += chunk
        return bytes(out)

    def closed(self) -> None:
        """Take the end of the connection."""
        self._tap.closed()

    def _found(self, correlation_id: int) -> _Awaited | None:
        """Remove the request of a response and those before it; return it if it is decoded."""
        if not any(each.correlation_id == correlation_id for each in self._awaited):
            return None
        while (first := self._awaited.popleft()).correlation_id != correlation_id:
            pass
        return first if first.key in _LIST_OF_KEY or first.key == API_VERSIONS_KEY else None


def _rerouted(frame: bytes, awaited: _Awaited, ports: Mapping[Address, int]) -> Chunks:
    """Return a response with other addresses, or as it is if it has none."""
    correlation_id, key, version = awaited
    api = api_for_key(key)
    view = memoryview(frame)[LENGTH_BYTES:]
    try:
        _, position = decode_response_header(view, key, version)
        response = api.decode_response(view, position, version)
    except (Malformed, KafkaError):  # It is of a later version, or not of Kafka's protocol.
        return [frame]
    if key == API_VERSIONS_KEY:
        is_changed = _limit(response)
    else:
        is_changed = _replace(response, _LIST_OF_KEY[key], ports)
    if not is_changed:
        return [frame]
    return response_frame(api, version, correlation_id, response)


def _replace(response: Any, name: str, ports: Mapping[Address, int]) -> bool:  # noqa: ANN401
    """Replace the addresses of a response; return whether it has one."""
    is_changed = False
    for each in _with_address(response, name):
        port = ports.get((each.host, each.port))
        if port is not None:
            each.host, each.port = HOST, port
            is_changed = True
    return is_changed


def _with_address(response: Any, name: str) -> Iterator[Any]:  # noqa: ANN401
    if hasattr(response, "host"):  # FindCoordinator before version 4.
        yield response
    yield from getattr(response, name)


def _limit(response: Any) -> bool:  # noqa: ANN401
    """Limit the version of each API to the latest one decoded here; return whether any changed."""
    is_changed = False
    for each in response.api_keys:
        most = _MAX_VERSIONS.get(each.api_key, each.max_version)
        if each.min_version <= most < each.max_version:
            each.max_version = most
            is_changed = True
    return is_changed
