"""One blocking connection to a broker, in the versions that its user names."""

from __future__ import annotations

import collections
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from barnabas.broker.client.dialing import connect, is_readable
from barnabas.broker.client.errors import TlsIsSpoken
from barnabas.broker.version import __version__
from barnabas.protocol.api import Api
from barnabas.protocol.client import (
    DEFAULT_MAX_FRAME_BYTES,
    NEED_DATA,
    AdvertisedVersions,
    ClientConnection,
)
from barnabas.protocol.errors import Malformed
from barnabas.protocol.messages.api_versions import (
    API_VERSIONS,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from barnabas.protocol.sasl.login_client import LoginClient
from barnabas.storage.runtime.clock import monotonic

if TYPE_CHECKING:
    import ssl

Request = TypeVar("Request")
Response = TypeVar("Response")

TIMEOUT_SECONDS = 30
_API_VERSIONS_VERSION = 3
_READ_BYTES = 1 << 20
_TLS_READ_BYTES = 1 << 16
"""Size of a read: TLS records have at most 16 KB and are read one at a time."""
_TLS_ALERT: Final = b"\x15\x03"


class WireClient:
    """One blocking connection; every wait for the broker is bounded by ``timeout_seconds``.

    Raises OSError when the connection is lost, Malformed when a response is not Kafka's, and
    KafkaError UNSUPPORTED_VERSION when the two sides have no version in common. After the first two
    it is closed: whether the last requests arrived is not known. With ``tls`` the broker's
    certificate has to be for the host of ``address``, unless the context says otherwise.
    """

    def __init__(
        self,
        address: tuple[str, int],
        client_id: str = "barnabas",
        timeout_seconds: float = TIMEOUT_SECONDS,
        max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.timeout_seconds = timeout_seconds
        self._read_bytes = _READ_BYTES if tls is None else _TLS_READ_BYTES
        self._socket = self._connected(address)
        if tls is not None:
            self._socket = tls.wrap_socket(self._socket, server_hostname=address[0])
        self._connection = ClientConnection(client_id, max_frame_bytes=max_frame_bytes)
        self._early: collections.deque[Any] = collections.deque()
        self._heard_nothing = True
        self._versions: AdvertisedVersions | None = None
        self._features: dict[str, int] = {}

    def _connected(self, address: tuple[str, int]) -> socket.socket:
        """Return the connection's socket; raises OSError."""
        connected = connect(address, self.timeout_seconds)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connected

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; requests that were sent still arrive."""
        self._socket.close()

    @property
    def is_open(self) -> bool:
        """Return whether it can still be used."""
        return self._socket.fileno() >= 0

    @property
    def in_flight(self) -> int:
        """Number of requests without a response."""
        return self._connection.in_flight + len(self._early)

    def ask(self, api: Api[Request, Response], request: Request, version: int) -> Response:
        """Send a request and return its response."""
        self.send(api, request, version)
        return self.receive(api)

    def send(
        self,
        api: Api[Request, Any],
        request: Request,
        version: int,
        *,
        expects_response: bool = True,
    ) -> None:
        """Send a request; ``receive`` returns the responses in the order of the requests."""
        _, chunks = self._connection.request(
            api, version, request, expects_response=expects_response
        )
        try:
            self._socket.settimeout(self.timeout_seconds)
            self._socket.sendall(b"".join(chunks))
        except OSError:
            self.close()
            raise

    def receive(self, api: Api[Any, Response]) -> Response:
        """Return the response to the oldest request without one, which was for ``api``."""
        response: Response
        response = self._early.popleft() if self._early else self._received(api.name)
        return response

    def _received(self, name: str) -> Any:  # noqa: ANN401  the request says which
        try:
            return self._waited_for(name)
        except (OSError, Malformed):
            self.close()
            raise

    def _waited_for(self, name: str) -> Any:  # noqa: ANN401
        deadline = monotonic() + self.timeout_seconds
        while (answer := self._connection.next_response()) is NEED_DATA:
            left_seconds = deadline - monotonic()
            if left_seconds <= 0:
                raise TimeoutError(f"no answer to {name} in time")
            self._socket.settimeout(left_seconds)
            data = self._socket.recv(self._read_bytes)
            if not data:
                raise ConnectionResetError(f"connection closed during {name}")
            if self._heard_nothing and data.startswith(_TLS_ALERT):
                raise TlsIsSpoken("the listener expects TLS, this client uses none")
            self._heard_nothing = False
            self._connection.receive_data(data)
        return answer[1]

    def log_in(self, login: LoginClient) -> int:
        """Authenticate; return the lifetime in milliseconds, or 0 for that of the connection.

        Outstanding responses are read before, for a later ``receive``: no request may run beside an
        authentication. Raises LoginRefused, which is final, in addition to the errors of every
        request.
        """
        early = [self._received("a request") for _ in range(self._connection.in_flight)]
        while (ask := login.next_request()) is not None:
            self.send(ask.api, ask.request, ask.version)
            login.take(self._received(ask.api.name))
        self._early.extend(early)
        if login.versions_response is not None:
            self._introduce(login.versions_response)
        return login.lifetime_ms

    def has_answer(self, timeout_seconds: float) -> bool:
        """Return whether a response is available, or arrives within ``timeout_seconds``."""
        if self._early or self._connection.has_received or self._has_decrypted():
            return True
        return is_readable(self._socket, timeout_seconds)

    def _has_decrypted(self) -> bool:
        """Whether decrypted bytes of TLS are waiting to be read."""
        pending: Callable[[], int] | None = getattr(self._socket, "pending", None)
        return pending is not None and pending() > 0

    def version_of(self, api: Api[Any, Any], at_most: int | None = None) -> int:
        """Return the highest version of an API that both sides speak."""
        return self.versions.highest_common(api, at_most=at_most)

    @property
    def versions(self) -> AdvertisedVersions:
        """API versions of the broker, requested once."""
        if self._versions is None:
            request = ApiVersionsRequest("barnabas", __version__)
            return self._introduce(self.ask(API_VERSIONS, request, _API_VERSIONS_VERSION))
        return self._versions

    def _introduce(self, answer: ApiVersionsResponse) -> AdvertisedVersions:
        self._features = {each.name: each.max_version_level for each in answer.finalized_features}
        self._versions = AdvertisedVersions.from_response(answer)
        return self._versions

    @property
    def features(self) -> dict[str, int]:
        """The levels of the features that the cluster has finalized, by name."""
        _ = self.versions  # They come in the same answer.
        return self._features
