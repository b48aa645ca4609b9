"""The client's side of a login, without I/O: which request comes next, and what its response means.

ApiVersions, SaslHandshake, then SaslAuthenticate until the mechanism has said all::

    login = LoginClient("PLAIN", PlainClient("alice", "secret"), software)
    while (ask := login.next_request()) is not None:
        login.take(send_and_receive(ask.api, ask.version, ask.request))
    use(login.versions, login.lifetime_ms)

``take`` may have to hash a password many times: ``rounds_of`` returns the number. A caller that
must not block calls ``take`` on a thread if that is more than ROUNDS_ASIDE.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Any, Final, NamedTuple

from barnabas.protocol.api import AnyApi
from barnabas.protocol.client import AdvertisedVersions
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.api_versions import (
    API_VERSIONS,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from barnabas.protocol.messages.sasl_authenticate import (
    SASL_AUTHENTICATE,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from barnabas.protocol.messages.sasl_handshake import (
    SASL_HANDSHAKE,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from barnabas.protocol.sasl.exchange import ClientExchange, SaslFailed

ROUNDS_ASIDE: Final = 20_000
"""Number of rounds that take about 5 ms."""

_VERSIONS_VERSION: Final = 3
_HANDSHAKE_VERSION: Final = 1
"""Later than version 0, whose tokens come bare: no broker since Apache Kafka 1.0 needs that."""


class LoginRefused(Exception):
    """The broker refuses this client, or cannot be trusted; the text has the reason.

    Do not retry: the same attempt would fail again, and might lock an account.
    """


class Ask(NamedTuple):
    """A request to send."""

    api: AnyApi
    version: int
    request: Any


class _Step(Enum):
    VERSIONS = auto()
    HANDSHAKE = auto()
    TOKENS = auto()
    DONE = auto()


class LoginClient:
    """One login on one connection, or its repetition (KIP-368)."""

    def __init__(
        self,
        mechanism: str,
        exchange: ClientExchange,
        software: tuple[str, str] = ("barnabas", "1"),
        versions: AdvertisedVersions | None = None,
    ) -> None:
        """``software`` is this client's name and version; ``versions``, where they are known."""
        self.lifetime_ms = 0
        """Lifetime of the login in ms, or 0 if it lasts as long as the connection."""
        self.versions_response: ApiVersionsResponse | None = None
        self._mechanism = mechanism
        self._exchange = exchange
        self._software = software
        self._versions = versions
        self._versions_version = _VERSIONS_VERSION
        self._step = _Step.VERSIONS if versions is None else _Step.HANDSHAKE
        self._token: bytes | None = None

    @property
    def versions(self) -> AdvertisedVersions:
        """Versions that the broker supports, after its response."""
        assert self._versions is not None, "the broker has not been asked"
        return self._versions

    def next_request(self) -> Ask | None:
        """Return the next request, or None if the client is logged in.

        Raises KafkaError UNSUPPORTED_VERSION for a broker that is too old.
        """
        if self._step is _Step.VERSIONS:
            request = ApiVersionsRequest(*self._software)
            return Ask(API_VERSIONS, self._versions_version, request)
        if self._step is _Step.HANDSHAKE:
            version = self.versions.highest_common(SASL_HANDSHAKE)
            if version < _HANDSHAKE_VERSION:
                raise KafkaError(
                    ErrorCode.UNSUPPORTED_VERSION, "the broker takes tokens without requests only"
                )
            return Ask(SASL_HANDSHAKE, version, SaslHandshakeRequest(self._mechanism))
        if self._step is _Step.TOKENS:
            token = self._exchange.first() if self._token is None else self._token
            version = self.versions.highest_common(SASL_AUTHENTICATE)
            return Ask(SASL_AUTHENTICATE, version, SaslAuthenticateRequest(token))
        return None

    def rounds_of(self, response: object) -> int:
        """Return the number of rounds of hashing that ``take`` needs for this response."""
        if isinstance(response, SaslAuthenticateResponse) and not response.error_code:
            return self._exchange.rounds(bytes(response.auth_bytes))
        return 0

    def take(self, response: object) -> None:
        """Process the response to the latest request; raises LoginRefused, KafkaError."""
        match response:
            case ApiVersionsResponse() if self._step is _Step.VERSIONS:
                self._take_versions(response)
            case SaslHandshakeResponse() if self._step is _Step.HANDSHAKE:
                self._take_mechanisms(response)
            case SaslAuthenticateResponse() if self._step is _Step.TOKENS:
                self._take_token(response)
            case _:
                raise AssertionError(f"{type(response).__name__} answers another request")

    def _take_versions(self, response: ApiVersionsResponse) -> None:
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION and self._versions_version:
            self._versions_version = 0  # A broker before Apache Kafka 2.4 (KIP-511).
            return
        self._versions = AdvertisedVersions.from_response(response)
        self.versions_response = response
        self._step = _Step.HANDSHAKE

    def _take_mechanisms(self, response: SaslHandshakeResponse) -> None:
        code = ErrorCode(response.error_code)
        if code is ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            offered = ", ".join(sorted(response.mechanisms)) or "none"
            raise LoginRefused(f"the broker does not offer {self._mechanism}; it offers {offered}")
        if code is ErrorCode.ILLEGAL_SASL_STATE:
            raise LoginRefused("the broker asks for no login here; is security.protocol right?")
        if code is not ErrorCode.NONE:
            raise KafkaError(code)
        self._step = _Step.TOKENS

    def _take_token(self, response: SaslAuthenticateResponse) -> None:
        code = ErrorCode(response.error_code)
        if code is ErrorCode.SASL_AUTHENTICATION_FAILED:
            raise LoginRefused(response.error_message or code.message)
        if code is not ErrorCode.NONE:
            raise KafkaError(code, response.error_message)
        try:
            self._token = self._exchange.step(bytes(response.auth_bytes))
        except SaslFailed as error:
            raise LoginRefused(str(error)) from error
        if self._token is None:
            self.lifetime_ms = response.session_lifetime_ms
            self._step = _Step.DONE
