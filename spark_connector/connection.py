"""One blocking connection to one broker, whose failures say which broker it was.

Everything that makes a connection useless leaves as :class:`Disconnected`; what was asked is then
asked again on a new one.
"""

from __future__ import annotations

from typing import Any, TypeVar

from barnabas.broker.client.wire_client import WireClient
from barnabas.protocol.api import AnyApi, Api
from barnabas.protocol.errors import KafkaError, Malformed

Request = TypeVar("Request")
Response = TypeVar("Response")

_LARGEST_ANSWER_BYTES = 64 * 1024 * 1024
_TRANSACTION_VERSION = "transaction.version"


class Disconnected(Exception):
    """The connection cannot be used any more; whether the last requests arrived is not known."""


class Connection:
    """One connection; each wait for the broker ends after ``timeout_ms``."""

    def __init__(self, address: tuple[str, int], client_id: str, timeout_ms: int) -> None:
        self.name = f"{address[0]}:{address[1]}"
        self._timeout_s = timeout_ms / 1000
        try:
            self._client = WireClient(
                address, client_id, self._timeout_s, max_frame_bytes=_LARGEST_ANSWER_BYTES
            )
        except OSError as error:
            raise Disconnected(f"{self.name}: {error.strerror or error}") from None
        try:
            self._introduce()
        except KafkaError as error:
            self.close()
            raise Disconnected(f"{self.name}: {error}") from None
        except (OSError, Malformed) as error:
            raise self._broken(error) from None

    def _introduce(self) -> None:
        """Learn what the broker speaks."""
        self.versions = self._client.versions
        self.transaction_version = self._client.feature_level(_TRANSACTION_VERSION)

    @property
    def is_open(self) -> bool:
        """Whether it can still be used."""
        return self._client.is_open

    @property
    def in_flight(self) -> int:
        """How many requests have no answer yet."""
        return self._client.in_flight

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
        version = self.versions.highest_common(api, at_most=at_most)
        try:
            self._client.send(api, request, version)
        except OSError as error:
            raise self._broken(error) from None

    def receive(self, api: Api[Any, Response]) -> Response:
        """Return the response to the oldest request without one, which was for ``api``."""
        try:
            return self._client.receive(api)
        except (OSError, Malformed) as error:
            raise self._broken(error) from None

    def close(self) -> None:
        """Close the connection; what was sent may still arrive."""
        self._client.close()

    def _broken(self, error: Exception) -> Disconnected:
        self.close()
        if isinstance(error, TimeoutError):
            return Disconnected(f"{self.name}: no answer in {self._timeout_s:g} seconds")
        if isinstance(error, OSError):
            return Disconnected(f"{self.name}: {error.strerror or error}")
        return Disconnected(f"{self.name}: the answer is not Kafka's ({error})")
