"""The client's side of a connection, without I/O: requests to bytes, bytes to responses.

A broker answers the requests of one connection in the order they came in, so a response belongs to
the oldest request in flight and its correlation id only confirms that. The caller owns the socket::

    connection = ClientConnection("me")
    _, chunks = connection.request(API_VERSIONS, 4, ApiVersionsRequest("me", "1"))
    socket.sendmsg(chunks)
    while (answer := connection.next_response()) is NEED_DATA:
        connection.receive_data(socket.recv(65536))
    correlation_id, response = answer
"""

from __future__ import annotations

import collections
import enum
import struct
from typing import Any, Final, Literal, NamedTuple, TypeVar

from barnabas.protocol.api import AnyApi, Api, Chunks
from barnabas.protocol.errors import ErrorCode, KafkaError, Malformed
from barnabas.protocol.header import (
    API_VERSIONS_KEY,
    RequestHeader,
    decode_response_header,
    encode_request_header,
    request_frame,
)
from barnabas.protocol.messages.api_versions import ApiVersionsResponse

Request = TypeVar("Request")
Response = TypeVar("Response")

DEFAULT_MAX_FRAME_BYTES = 100 * 1024 * 1024
DEFAULT_MAX_IN_FLIGHT = 1_000

_LENGTH = struct.Struct(">i")
_ERROR_CODE = struct.Struct(">h")
_LAST_CORRELATION_ID = 0x7FFF_FFFF


class NeedData(enum.Enum):
    """Result of ``next_response`` when the next response has not arrived in full."""

    NEED_DATA = "need data"


NEED_DATA: Final = NeedData.NEED_DATA


class _InFlight(NamedTuple):
    correlation_id: int
    api: AnyApi
    version: int


class ClientConnection:
    """Encodes requests and decodes responses of one connection. Both limits protect the memory of
    the client.
    """

    def __init__(
        self,
        client_id: str | None,
        *,
        max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES,
        max_in_flight: int = DEFAULT_MAX_IN_FLIGHT,
    ) -> None:
        self._client_id = client_id
        self._max_frame_bytes = max_frame_bytes
        self._max_in_flight = max_in_flight
        self._next_correlation_id = 0
        self._in_flight: collections.deque[_InFlight] = collections.deque()
        self._received = bytearray()

    @property
    def in_flight(self) -> int:
        """Number of requests that wait for their response."""
        return len(self._in_flight)

    @property
    def has_received(self) -> bool:
        """Whether received bytes of a response were not taken yet."""
        return bool(self._received)

    def request(
        self,
        api: Api[Request, Any],
        version: int,
        request: Request,
        *,
        expects_response: bool = True,
    ) -> tuple[int, Chunks]:
        """Encode a request as a whole frame; return its correlation id and the buffers to send.

        A Produce with acks=0 is the one request that gets no response: say so with
        ``expects_response``. Raises KafkaError UNSUPPORTED_VERSION for a version that ``api``
        lacks, and OverflowError when as many requests are in flight as this connection allows.
        """
        header = self._next_header(api, version)
        chunks = request_frame(api, header, request)
        self._sent(api, header, expects_response=expects_response)
        return header.correlation_id, chunks

    def request_encoded(self, api: AnyApi, version: int, body: Chunks) -> tuple[int, Chunks]:
        """Return the frame of a delayed request, whose body is encoded already.

        Raises OverflowError as ``request`` does.
        """
        header = self._next_header(api, version)
        head = encode_request_header(header)
        size = len(head) + sum(map(len, body))
        self._sent(api, header, expects_response=True)
        return header.correlation_id, [_LENGTH.pack(size) + head, *body]

    def _next_header(self, api: AnyApi, version: int) -> RequestHeader:
        if len(self._in_flight) >= self._max_in_flight:
            raise OverflowError(f"{self._max_in_flight} requests are in flight already")
        return RequestHeader(api.key, version, self._next_correlation_id, self._client_id)

    def _sent(self, api: AnyApi, header: RequestHeader, *, expects_response: bool) -> None:
        last = header.correlation_id == _LAST_CORRELATION_ID
        self._next_correlation_id = 0 if last else header.correlation_id + 1
        if expects_response:
            self._in_flight.append(_InFlight(header.correlation_id, api, header.api_version))

    def receive_data(self, data: bytes | bytearray | memoryview) -> None:
        """Add received bytes. Drain ``next_response`` before receiving more."""
        self._received += data

    def next_response(self) -> tuple[int, Any] | Literal[NeedData.NEED_DATA]:
        """Return correlation id and response of the oldest request in flight, or NEED_DATA.

        Raises Malformed when the bytes are not that response; the connection is of no use
        afterwards. Records in the response belong to the caller: they refer to a copy of the frame.
        """
        frame = self._take_frame()
        if frame is None:
            return NEED_DATA
        if not self._in_flight:
            raise Malformed("a response came, but no request is in flight")
        expected = self._in_flight.popleft()
        correlation_id, position = decode_response_header(frame, expected.api.key, expected.version)
        if correlation_id != expected.correlation_id:
            raise Malformed(
                f"response {correlation_id} came where {expected.correlation_id} was expected"
            )
        version = _body_version(expected, frame, position)
        return correlation_id, expected.api.decode_response(frame, position, version)

    def _take_frame(self) -> memoryview | None:
        """Remove and return one complete frame, without its length."""
        if len(self._received) < _LENGTH.size:
            return None
        (size,) = _LENGTH.unpack_from(self._received)
        if not 0 <= size <= self._max_frame_bytes:
            raise Malformed(f"response of {size} bytes, the limit is {self._max_frame_bytes}")
        end = _LENGTH.size + size
        if len(self._received) < end:
            return None
        frame = bytes(memoryview(self._received)[_LENGTH.size : end])
        del self._received[:end]
        return memoryview(frame)


def _body_version(expected: _InFlight, frame: memoryview, position: int) -> int:
    """Return the version of a response's body: the request's own, except for a refused ApiVersions.

    A broker that does not support the version of an ApiVersions request responds in version 0
    (KIP-511).
    """
    if expected.api.key == API_VERSIONS_KEY and len(frame) >= position + _ERROR_CODE.size:
        (error_code,) = _ERROR_CODE.unpack_from(frame, position)
        if error_code == ErrorCode.UNSUPPORTED_VERSION:
            return 0
    return expected.version


class AdvertisedVersions:
    """Versions that a broker supports, from its ApiVersionsResponse."""

    def __init__(self, ranges: dict[int, tuple[int, int]]) -> None:
        """Take the lowest and the highest version by API key."""
        self._ranges = ranges

    @classmethod
    def from_response(cls, response: ApiVersionsResponse) -> AdvertisedVersions:
        """Read the ranges of a response; KafkaError when it carries an error."""
        if response.error_code != ErrorCode.NONE:
            raise KafkaError(ErrorCode(response.error_code))
        return cls({api.api_key: (api.min_version, api.max_version) for api in response.api_keys})

    def __contains__(self, api: AnyApi) -> bool:
        return self._common(api) is not None

    def offers(self, api: AnyApi, version: int) -> bool:
        """Return whether the broker supports exactly this version."""
        lowest, highest = self._ranges.get(api.key, (1, 0))
        return lowest <= version <= highest

    def highest_common(self, api: AnyApi, *, at_most: int | None = None) -> int:
        """Return the highest version that both sides support.

        Raises KafkaError UNSUPPORTED_VERSION if there is none.
        """
        version = self._common(api, at_most)
        if version is None:
            offer = self._ranges.get(api.key)
            theirs = f"versions {offer[0]}-{offer[1]}" if offer else "no version"
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"the broker speaks {theirs} of {api.name}, this client {api.min_version}-"
                f"{api.max_version if at_most is None else at_most}",
            )
        return version

    def _common(self, api: AnyApi, at_most: int | None = None) -> int | None:
        lowest, highest = self._ranges.get(api.key, (1, 0))
        last = min(highest, api.max_version)
        if at_most is not None:
            last = min(last, at_most)
        return last if last >= max(lowest, api.min_version) else None
