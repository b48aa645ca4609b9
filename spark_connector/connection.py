"""One blocking connection to one broker, on the codec that does no I/O.

Everything that makes a connection useless leaves as :class:`Disconnected`; whoever asks then takes
a new one and asks again.
"""

from __future__ import annotations

import socket
import time
from typing import Any, TypeVar

from barnabas.protocol.api import AnyApi, Api
from barnabas.protocol.client import NEED_DATA, AdvertisedVersions, ClientConnection
from barnabas.protocol.errors import KafkaError, Malformed
from barnabas.protocol.messages.api_versions import (
    API_VERSIONS,
    ApiVersionsRequest,
    ApiVersionsResponse,
)

Request = TypeVar("Request")
Response = TypeVar("Response")

_API_VERSIONS_VERSION = 3
_READ_BYTES = 1 << 18
_LARGEST_ANSWER_BYTES = 64 * 1024 * 1024
_TRANSACTION_VERSION = "transaction.version"


class Disconnected(Exception):
    """The connection cannot be used any more; whether the last requests arrived is not known."""


class Connection:
    """One connection; each wait for the broker ends after ``timeout_ms``."""

    def __init__(self, address: tuple[str, int], client_id: str, timeout_ms: int) -> None:
        self.name = f"{address[0]}:{address[1]}"
        self._timeout_s = timeout_ms / 1000
        self._protocol = ClientConnection(client_id, max_frame_bytes=_LARGEST_ANSWER_BYTES)
        try:
            self._socket = socket.create_connection(address, self._timeout_s)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            raise Disconnected(f"{self.name}: {error.strerror or error}") from None
        try:
            self._introduce()
        except BaseException:
            self.close()
            raise

    def _introduce(self) -> None:
        """Learn what the broker speaks."""
        request = ApiVersionsRequest("barnabas-spark", "1")
        self._send(API_VERSIONS, request, _API_VERSIONS_VERSION)
        answer: ApiVersionsResponse = self.receive(API_VERSIONS)
        try:
            self.versions = AdvertisedVersions.from_response(answer)
        except KafkaError as error:
            raise Disconnected(f"{self.name}: {error}") from None
        finalized = {each.name: each.max_version_level for each in answer.finalized_features}
        self.transaction_version = finalized.get(_TRANSACTION_VERSION, 0)

    @property
    def is_open(self) -> bool:
        """Whether it can still be used."""
        return self._socket.fileno() >= 0

    @property
    def in_flight(self) -> int:
        """How many requests have no answer yet."""
        return self._protocol.in_flight

    def speaks(self, api: AnyApi, version: int) -> bool:
        """Whether the broker knows this version of a request, or a later one."""
        return api in self.versions and self.versions.highest_common(api) >= version

    def ask(
        self, api: Api[Request, Response], request: Request, at_most: int | None = None
    ) -> Response:
        """Send a request and return its response."""
        self.send(api, request, at_most)
        return self.receive(api)

    def send(self, api: Api[Request, Any], request: Request, at_most: int | None = None) -> None:
        """Send a request in the highest version that both speak; its response is received later.

        Raises KafkaError UNSUPPORTED_VERSION where there is none.
        """
        self._send(api, request, self.versions.highest_common(api, at_most=at_most))

    def _send(self, api: Api[Request, Any], request: Request, version: int) -> None:
        _, chunks = self._protocol.request(api, version, request)
        try:
            self._socket.settimeout(self._timeout_s)
            self._socket.sendall(b"".join(chunks))
        except OSError as error:
            raise self._broken(error) from None

    def receive(self, api: Api[Any, Response]) -> Response:
        """Return the response to the oldest request without one, which was for ``api``."""
        deadline = time.monotonic() + self._timeout_s
        try:
            while (answer := self._protocol.next_response()) is NEED_DATA:
                self._socket.settimeout(max(deadline - time.monotonic(), 0.001))
                data = self._socket.recv(_READ_BYTES)
                if not data:
                    raise ConnectionResetError(f"connection closed before an answer to {api.name}")
                self._protocol.receive_data(data)
        except (OSError, Malformed) as error:
            raise self._broken(error) from None
        response: Response = answer[1]
        return response

    def close(self) -> None:
        """Close the connection; what was sent may still arrive."""
        self._socket.close()

    def _broken(self, error: Exception) -> Disconnected:
        self.close()
        if isinstance(error, TimeoutError):
            return Disconnected(f"{self.name}: no answer in {self._timeout_s:g} seconds")
        if isinstance(error, OSError):
            return Disconnected(f"{self.name}: {error.strerror or error}")
        return Disconnected(f"{self.name}: the answer is not Kafka's ({error})")
