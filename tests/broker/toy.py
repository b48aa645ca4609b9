"""A socket server with toy APIs whose messages are plain bytes, and a raw client for it."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import struct
from collections.abc import Generator
from types import SimpleNamespace
from typing import Any, NamedTuple

from barnabas.broker.api.dispatch import Deferred, RequestContext, Routes
from barnabas.broker.api.driver import Run
from barnabas.broker.api.waits import Ticket
from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.config.features import levels_of
from barnabas.broker.handlers.api_versions import api_versions
from barnabas.broker.network.socket_server import SocketServer
from barnabas.broker.runtime.clock import Clock, SystemClock
from barnabas.broker.security.listeners.listeners import ListenerSecurity
from barnabas.protocol.api import Api, Message
from barnabas.protocol.errors import Malformed
from barnabas.protocol.messages.api_versions import API_VERSIONS

PRODUCE, FETCH, ECHO, SLOW, TAGGED, ADD_OFFSETS = 0, 1, 3, 4, 5, 25

TLS: ToyTls | None = None
"""Transport security of the server and its clients, set by tests."""


class ToyTls(NamedTuple):
    """The rules of a listener with TLS, and a context for its clients."""

    security: ListenerSecurity
    client_context: ssl.SSLContext


def decode(view, position):
    if bytes(view[position : position + 3]) == b"bad":
        raise Malformed("bad bytes")
    return bytes(view[position:]), len(view)


def encode(message, out):
    out += message
    return [out]


def toy_api(key: int, name: str, flexible_from: int = 0x8000) -> Api[bytes, bytes]:
    def message(kind):
        return Message(f"{name}{kind}", (0, 3), flexible_from, {0: (decode, encode)})

    return Api(key, name, message("Request"), message("Response"))


class ToyAnswer:
    """The wait for an answer that the test gives, a word; it notes what becomes of the wait."""

    is_work = False

    def __init__(self, request: bytes, *, ends_early: bool) -> None:
        self.request = request
        self.ends_early = ends_early
        self.is_early = 0
        self.gone = False
        self.response: Any = None
        self.ticket: Ticket

    def __await__(self) -> Generator[Any, Any, Any]:
        return (yield self)

    def begin(self, ticket: Ticket) -> None:
        self.ticket = ticket

    def complete(self, response: Any) -> None:
        self.response = response
        self.ticket.settle(response)

    async def wait(self) -> Any:
        try:
            response = await self
        except GeneratorExit:
            self.gone = True
            raise
        if response is False:
            self.is_early += 1
            self.response = b"early " + self.request
        return self.response


class Toy:
    """The server, the requests of its handlers, and their pending responses."""

    def __init__(self, config: BrokerConfig, clock: Clock | None = None) -> None:
        self.handled: list[bytes] = []
        self.produces: list[ToyAnswer] = []
        self.fetches: list[ToyAnswer] = []
        self.contexts: list[RequestContext] = []
        self.gate = asyncio.Event()
        names = ("ApiVersions", "Produce", "Fetch", "Echo", "Slow", "Tagged", "AddOffsetsToTxn")
        self.routes = Routes(checks=dict.fromkeys(names, ()))
        serves = self.routes.serves
        serves(API_VERSIONS, versions=(0, 4))(api_versions)
        serves(toy_api(PRODUCE, "Produce"), versions=(3, 3))(self.produce)
        serves(toy_api(FETCH, "Fetch"), versions=(0, 3))(self.fetch)
        serves(toy_api(ECHO, "Echo"), versions=(0, 3))(self.echo)
        serves(toy_api(SLOW, "Slow"), versions=(0, 3))(self.slow)
        serves(toy_api(TAGGED, "Tagged", flexible_from=2), versions=(0, 3))(self.echo)
        serves(toy_api(ADD_OFFSETS, "AddOffsetsToTxn"), versions=(0, 3))(self.echo)
        security = None if TLS is None else {"PLAINTEXT": TLS.security}
        self.server = SocketServer(config, clock or SystemClock(), self.routes, security)
        self.routes.bind(
            {
                "routes": self.routes,
                "configs": SimpleNamespace(features=levels_of({}, config.transaction_version)),
                "host": SimpleNamespace(config=config),
                "peer_sessions": self.server.peer_sessions,
            }
        )

    def produce(self, context: RequestContext, request: bytes) -> Any:
        self.handled.append(request)
        if request == b"acks=0":
            return None
        if request == b"stay":
            return b"stays" if context.records_stay else b"dies"
        if request == b"at once":
            done: Deferred[bytes] = Deferred()
            done.complete(b"done")
            return done
        produce = ToyAnswer(request, ends_early=False)
        self.produces.append(produce)
        return Run(produce.wait(), is_parked=False)

    def fetch(self, context: RequestContext, request: bytes) -> Any:
        self.handled.append(request)
        if request == b"ready":
            return b"data"
        fetch = ToyAnswer(request, ends_early=True)
        self.fetches.append(fetch)
        return Run(fetch.wait())

    def echo(self, context: RequestContext, request: bytes) -> bytes:
        self.handled.append(request)
        self.contexts.append(context)
        if request == b"bug":
            raise ZeroDivisionError("a bug")
        if request.startswith(b"size "):
            return b"x" * int(request[5:])
        return request

    async def slow(self, context: RequestContext, request: bytes) -> bytes:
        self.handled.append(request)
        await self.gate.wait()
        if request == b"bug":
            raise ZeroDivisionError("a bug")
        return b"slow " + request


def small_config(**changes: Any) -> BrokerConfig:
    return BrokerConfig(**({"listeners": ("PLAINTEXT://127.0.0.1:0",)} | changes))


def request(
    key: int,
    body: bytes = b"",
    *,
    version: int = 0,
    correlation_id: int = 1,
    client: bytes | None = b"toy",
    tags: bytes = b"",
) -> bytes:
    name = struct.pack(">h", -1) if client is None else struct.pack(">h", len(client)) + client
    payload = struct.pack(">hhi", key, version, correlation_id) + name + tags + body
    return struct.pack(">i", len(payload)) + payload


class Refused:
    """A client whose TLS handshake has found a closed connection."""

    async def closed(self) -> bytes:
        return b""

    async def close(self) -> None:
        """Return at once: the connection is closed already."""


class RawClient:
    """A socket that sends bytes and takes frames apart."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def to(cls, address: tuple[str, int]) -> RawClient | Refused:
        context = None if TLS is None else TLS.client_context
        try:
            return cls(*await asyncio.open_connection(*address, limit=1 << 26, ssl=context))
        except ConnectionResetError:
            if TLS is None:
                raise
            return Refused()  # before the handshake

    async def send(self, *frames: bytes) -> None:
        self.writer.write(b"".join(frames))
        await self.writer.drain()

    async def answer(self, timeout: float = 60) -> tuple[int, bytes]:
        """Return correlation id and body of the next answer."""
        async with asyncio.timeout(timeout):
            (size,) = struct.unpack(">i", await self.reader.readexactly(4))
            payload = await self.reader.readexactly(size)
        return struct.unpack_from(">i", payload)[0], payload[4:]

    async def closed(self, timeout: float = 60) -> bytes:
        """Return the bytes that arrive until the server disconnects."""
        async with asyncio.timeout(timeout):
            try:
                return await self.reader.read(-1)
            except ConnectionResetError:
                return b""

    async def silent(self, seconds: float = 0.05) -> bool:
        """Return whether nothing comes for a moment."""
        try:
            async with asyncio.timeout(seconds):
                return not await self.reader.read(1)
        except TimeoutError:
            return True

    async def close(self) -> None:
        # A client that waits for the server's goodbye may wait for long.
        if TLS is not None and not self.writer.is_closing():
            self.writer.transport.abort()
        self.writer.close()
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            await self.writer.wait_closed()
