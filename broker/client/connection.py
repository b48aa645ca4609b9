"""One connection to one broker, in the versions that both sides know; logged in where asked."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from barnabas.broker.client.access import OPEN, Access
from barnabas.broker.client.errors import TokenUnavailable, Unreachable, WrongSetting
from barnabas.broker.client.problems import Stage, problem_of
from barnabas.broker.client.wire_client import WireClient
from barnabas.broker.config.addresses import address_text
from barnabas.protocol.api import AnyApi, Api
from barnabas.protocol.client import DEFAULT_MAX_FRAME_BYTES, AdvertisedVersions
from barnabas.protocol.errors import KafkaError, Malformed
from barnabas.protocol.sasl.login_client import LoginRefused
from barnabas.storage.runtime.clock import monotonic

Address = tuple[str, int]
Request = TypeVar("Request")
Response = TypeVar("Response")

LOGIN_AGE: Final = 0.85
"""Share of its lifetime after which an authentication is repeated (KIP-368), as in Java clients."""
LOGIN_SECONDS_MIN: Final = 1.1
"""Brokers refuse to repeat a login within a second."""

_BROKEN: Final = (OSError, Malformed, KafkaError, LoginRefused, WrongSetting, TokenUnavailable)


class Connection:
    """One connection; each wait for the broker ends after ``timeout_seconds``.

    Errors that make it useless are raised as Unreachable, which names the broker. An authentication
    with a lifetime is repeated in time, before a request.
    """

    def __init__(
        self,
        address: Address,
        client_id: str,
        timeout_seconds: float,
        max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES,
        access: Access = OPEN,
        opening_timeout_seconds: float | None = None,
    ) -> None:
        """Connect, log in, and read the versions that the broker supports.

        ``opening_timeout_seconds`` is the limit of each wait until that is done.
        """
        if opening_timeout_seconds is None:
            opening_timeout_seconds = timeout_seconds
        self.name = address_text(*address)
        self._address = address
        self._access = access
        self._timeout_seconds = opening_timeout_seconds
        self._stage = Stage.CONNECTING
        self._login_due_s: float | None = None
        try:
            self._client = WireClient(
                address, client_id, opening_timeout_seconds, max_frame_bytes, access.context
            )
        except OSError as error:
            raise self._unreachable(error) from None
        self._stage = Stage.INTRODUCING
        try:
            self._introduce()
        except _BROKEN as error:
            self.close()
            raise self._unreachable(error) from None
        self._stage = Stage.NEW
        self._timeout_seconds = self._client.timeout_seconds = timeout_seconds

    def _introduce(self) -> None:
        if self._access.credential is not None:
            self._log_in()
        self.versions = self._client.versions
        self.features = self._client.features

    def _log_in(self, versions: AdvertisedVersions | None = None) -> None:
        login = self._access.new_login(self._timeout_seconds, versions)
        try:
            lifetime_ms = self._client.log_in(login)
        except LoginRefused:
            self._access.refused()
            raise
        self._login_due_s = None
        if lifetime_ms:
            pause_s = max(lifetime_ms / 1000 * LOGIN_AGE, LOGIN_SECONDS_MIN)
            self._login_due_s = monotonic() + pause_s

    @property
    def is_open(self) -> bool:
        """Whether the connection can still be used."""
        return self._client.is_open

    @property
    def in_flight(self) -> int:
        """Number of requests without a response."""
        return self._client.in_flight

    def speaks(self, api: AnyApi, version: int) -> bool:
        """Return whether the broker supports this version of an API, or a later one."""
        return api in self.versions and self.versions.highest_common(api) >= version

    def feature_level(self, name: str) -> int:
        """Return the level of a feature that the cluster has finalized; 0 without it."""
        return self.features.get(name, 0)

    def ask(
        self, api: Api[Request, Response], request: Request, at_most: int | None = None
    ) -> Response:
        """Send a request and return its response."""
        self.send(api, request, at_most)
        return self.receive(api)

    def send(
        self,
        api: Api[Request, Any],
        request: Request,
        at_most: int | None = None,
        *,
        expects_response: bool = True,
    ) -> None:
        """Send a request in the highest common version, without waiting.

        ``receive`` returns the responses in order. Raises KafkaError UNSUPPORTED_VERSION where the
        two have no version in common.
        """
        try:
            version = self.versions.highest_common(api, at_most=at_most)
        except KafkaError as error:
            raise KafkaError(error.code, f"{self.name}: {error.message}") from None
        try:
            if self._login_due_s is not None and monotonic() > self._login_due_s:
                self._log_in(self.versions)
            self._client.send(api, request, version, expects_response=expects_response)
        except _BROKEN as error:
            self.close()
            raise self._unreachable(error) from None

    def receive(self, api: Api[Any, Response]) -> Response:
        """Return the response to the oldest request without one, which was for ``api``."""
        try:
            response = self._client.receive(api)
        except (OSError, Malformed) as error:
            raise self._unreachable(error) from None
        self._stage = Stage.IN_USE
        return response

    def has_answer(self, timeout_seconds: float) -> bool:
        """Return whether the next response, or the end, arrives within ``timeout_seconds``."""
        return self._client.has_answer(timeout_seconds)

    def close(self) -> None:
        """Close the connection; requests that were sent may still arrive."""
        self._client.close()

    def _unreachable(self, error: Exception) -> Unreachable:
        if isinstance(error, TimeoutError):
            return Unreachable(f"{self.name}: no answer in {self._timeout_seconds:g} seconds")
        return problem_of(error, self._address, self._access, self._stage)
