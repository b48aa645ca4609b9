"""Connection to a peer: opened, logged in and introduced once, then requests and responses.

``Network.open`` does the one-time steps, as a coroutine; afterwards all of it uses callbacks:
``data_received`` decodes the bytes from asyncio's transport and passes responses to the owner.

A broker logs in as any client does (``broker/client``): TLS uses a client's settings, and
``LoginClient`` does the login. Steps that can block run on a thread: reading stores, fetching a
token, hashing a password many times.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, TypeVar, cast

from barnabas.broker.client.access import OPEN, SOFTWARE, Access
from barnabas.broker.client.errors import (
    NotLetIn,
    TlsIsSpoken,
    TokenUnavailable,
    WrongSetting,
)
from barnabas.broker.client.problems import Stage, reason_of
from barnabas.broker.config.security_protocols import has_tls
from barnabas.broker.config.types import ConfigError
from barnabas.broker.runtime.threads import Pool
from barnabas.protocol.client import (
    NEED_DATA,
    AdvertisedVersions,
    ClientConnection,
    NeedData,
)
from barnabas.protocol.errors import ErrorCode, KafkaError, Malformed
from barnabas.protocol.messages.api_versions import (
    API_VERSIONS,
    ApiVersionsRequest,
    PeerHello,
)
from barnabas.protocol.sasl.login_client import ROUNDS_ASIDE, LoginRefused

if TYPE_CHECKING:
    from barnabas.broker.client.security import ClientSecurity
    from barnabas.broker.cluster.peers.interface import Limits
    from barnabas.broker.cluster.peers.sessions import Hello
    from barnabas.protocol.api import AnyApi, Chunks

Result = TypeVar("Result")
Address = tuple[str, int]

HELLO_VERSION: Final = 3
"""First version of ApiVersions with tags, and so with a hello."""
_CLOSED: Final = "the peer has closed the connection"
_TLS_ALERT: Final = b"\x15\x03"

BROKEN: Final = (OSError, Malformed, KafkaError, LoginRefused, WrongSetting, TokenUnavailable)
"""Exceptions of a connection that cannot be used."""


class Owner(Protocol):
    """Owner of a connection; no calls follow ``ended``."""

    def answered(self, answer: Any) -> None:  # noqa: ANN401
        """Receive the response to the oldest request that was sent."""

    def ended(self, reason: str) -> None:
        """Record, once, that the connection cannot be used any more."""


class Transport(Protocol):
    """Factory of connections to peers."""

    async def open(self, address: Address, hello: Hello) -> Opened:
        """Open a connection; raises Refused. If it is cancelled, nothing may stay open."""

    def close(self) -> None:
        """Stop opening connections."""


class Opened(NamedTuple):
    """Connection that is ready for requests."""

    connection: PeerConnection
    versions: AdvertisedVersions
    """Versions of APIs that the peer supports."""
    login_ms: int
    """Lifetime of the login in milliseconds, or 0 if it lasts as long as the connection."""


class PeerConnection(asyncio.Protocol):
    """Bytes of one connection, which cannot be used again after it has ended."""

    def __init__(self, client_id: str, limits: Limits) -> None:
        # A hello or a login request is in flight beside those of the owner.
        self._wire = ClientConnection(
            client_id,
            max_frame_bytes=limits.answer_bytes_max,
            max_in_flight=limits.questions_max + 1,
        )
        self._transport: asyncio.Transport | None = None
        self._owner: Owner | None = None
        self._introduction: asyncio.Future[Any] | None = None
        self._heard_nothing = True
        self.is_open = True
        """Whether the connection can be used."""
        self._problems: list[Exception] = []
        """The error that ended the connection, until ``ask`` raises it: its traceback refers to
        this object."""

    # ---------------------------------------------------------------------------- of the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Pass on every response that is complete."""
        if not self.is_open:
            return
        try:
            if self._heard_nothing and data.startswith(_TLS_ALERT):
                raise TlsIsSpoken("the listener expects TLS, this broker uses none")
            self._heard_nothing = False
            self._wire.receive_data(data)
            while (found := self._next_response()) is not NEED_DATA:
                self._hand_out(found[1])
        except (Malformed, KafkaError) as error:
            self._end(error)

    def eof_received(self) -> bool:
        """Close the connection, since the peer has stopped sending."""
        return False

    def connection_lost(self, error: Exception | None) -> None:
        """Notify the owner and a waiting ``ask``."""
        self._end(error or ConnectionResetError(_CLOSED))

    # -------------------------------------------------------------------------------- of its owner

    def belongs_to(self, owner: Owner) -> None:
        """Pass later responses to ``owner``."""
        self._owner = owner

    def send(self, api: AnyApi, version: int, body: Chunks) -> None:
        """Send an encoded request."""
        assert self._transport is not None
        _, chunks = self._wire.request_encoded(api, version, body)
        self._transport.writelines(chunks)

    async def ask(self, api: AnyApi, version: int, request: Any) -> Any:  # noqa: ANN401
        """Send a request and return its response, before the connection has an owner."""
        if not self.is_open:
            raise self._problems.pop() if self._problems else ConnectionResetError(_CLOSED)
        assert self._owner is None
        self._introduction = asyncio.get_running_loop().create_future()
        self.send(api, version, api.encode_request(request, version))
        try:
            return await self._introduction
        finally:
            self._introduction = None

    def abort(self) -> None:
        """Close the connection at once, without a call of the owner."""
        self._owner = None
        self._end(ConnectionAbortedError("given up"))

    # ------------------------------------------------------------------------------------- private

    def _next_response(self) -> tuple[int, Any] | Literal[NeedData.NEED_DATA]:
        return self._wire.next_response() if self.is_open else NEED_DATA

    def _hand_out(self, response: Any) -> None:  # noqa: ANN401
        if self._owner is not None:
            self._owner.answered(response)
        elif self._introduction is not None and not self._introduction.done():
            self._introduction.set_result(response)

    def _end(self, problem: Exception) -> None:
        if not self.is_open:
            return
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()
        if self._introduction is not None and not self._introduction.done():
            self._introduction.set_exception(problem)
        elif self._owner is None:
            self._problems = [problem.with_traceback(None)]
        owner, self._owner = self._owner, None
        if owner is not None:
            owner.ended(str(problem))


class Refused(Exception):
    """Refused connection; the text is the reason."""

    def __init__(self, reason: str, *, is_final: bool) -> None:
        """Store the message; ``is_final``: whether attempts fail until a setting is changed."""
        self.is_final = is_final
        super().__init__(reason)


class Network:
    """``Transport`` over TCP, TLS and SASL."""

    def __init__(self, security: Callable[[], ClientSecurity], limits: Limits) -> None:
        """``security`` returns the login settings for each connection; it may raise ConfigError."""
        self._security = security
        self._limits = limits
        self._threads = Pool("peers")

    async def open(self, address: Address, hello: Hello) -> Opened:
        """Connect to a peer, log in, and send a hello; raises Refused.

        Cancelling leaves nothing open. The caller limits the time.
        """
        try:
            security = self._security()
        except ConfigError as error:
            raise Refused(str(error), is_final=True) from None
        return await _opened(_Opening(address, self._limits, self._threads), security, hello)

    def close(self) -> None:
        """Stop opening connections."""
        self._threads.close()


async def _opened(opening: _Opening, security: ClientSecurity, hello: Hello) -> Opened:
    try:
        return await opening.run(security, hello)
    except BROKEN as error:
        opening.give_up()
        if isinstance(error, ConnectionError) and not str(error):  # uvloop's, of a handshake
            error = ConnectionResetError(_CLOSED)
        reason = reason_of(error, opening.address[0], opening.access, opening.stage)
        raise Refused(str(reason), is_final=isinstance(reason, NotLetIn)) from None
    except BaseException:
        opening.give_up()
        raise


class _Opening:
    """Steps until a connection is ready for requests."""

    def __init__(self, address: Address, limits: Limits, threads: Pool) -> None:
        self.stage = Stage.CONNECTING
        self.access: Access = OPEN
        self.address = address
        self._limits = limits
        self._threads = threads
        self._connection: PeerConnection | None = None

    async def run(self, security: ClientSecurity, hello: Hello) -> Opened:
        """Run all steps."""
        if has_tls(security.protocol):
            # Again for each connection, since stores may have been replaced.
            self.access = await self._aside(security.access)
        else:
            self.access = security.access()
        connection = await self._connect(f"barnabas-broker-{hello.node_id}")
        self.stage = Stage.INTRODUCING
        login_ms = 0
        if self.access.credential is not None:
            login_ms = await self._log_in(connection)
        return await introduced(connection, hello, login_ms)

    def give_up(self) -> None:
        """Close the connection, if it was opened."""
        if self._connection is not None:
            self._connection.abort()

    async def _connect(self, client_id: str) -> PeerConnection:
        def new_connection() -> PeerConnection:
            self._connection = PeerConnection(client_id, self._limits)
            return self._connection

        host, port = self.address
        context = self.access.context
        _, connection = await asyncio.get_running_loop().create_connection(
            new_connection,
            host,
            port,
            ssl=context,
            server_hostname=None if context is None else host,
        )
        return connection

    async def _log_in(self, connection: PeerConnection) -> int:
        seconds = self._limits.connect_timeout_ms / 1000
        login = await self._aside(partial(self.access.new_login, seconds))
        try:
            while (ask := login.next_request()) is not None:
                response = await connection.ask(ask.api, ask.version, ask.request)
                if login.rounds_of(response) > ROUNDS_ASIDE:
                    await self._aside(partial(login.take, response))
                else:
                    login.take(response)
        except LoginRefused:
            await self._aside(self.access.refused)
            raise
        return login.lifetime_ms

    async def _aside(self, work: Callable[[], Result]) -> Result:
        return await self._threads.run(work)


async def introduced(connection: PeerConnection, hello: Hello, login_ms: int = 0) -> Opened:
    """Send a hello; raises Refused and the errors of a connection.

    The response also confirms that the session's earlier connection handles no more requests.
    """
    request = ApiVersionsRequest(*SOFTWARE, PeerHello(*hello))
    response = await connection.ask(API_VERSIONS, HELLO_VERSION, request)
    try:
        return Opened(connection, AdvertisedVersions.from_response(response), login_ms)
    except KafkaError as error:
        is_final = error.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        raise Refused(f"the hello is refused: {error}", is_final=is_final) from None
