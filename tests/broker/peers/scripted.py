"""Peer that follows a test's script, down to the byte, and its client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

from barnabas.broker.client.security import ClientSecurity
from barnabas.broker.cluster.peers.client import PeerClient
from barnabas.broker.cluster.peers.connection import Network
from barnabas.broker.cluster.peers.interface import Limits, Purpose
from barnabas.broker.runtime.clock import ManualClock
from barnabas.protocol.api import Api
from barnabas.protocol.header import decode_request_header, response_frame
from barnabas.protocol.messages.add_partitions_to_txn import ADD_PARTITIONS_TO_TXN
from barnabas.protocol.messages.api_versions import (
    API_VERSIONS,
    ApiVersion,
    ApiVersionsResponse,
)
from barnabas.protocol.messages.end_txn import END_TXN
from barnabas.protocol.messages.write_txn_markers import (
    WRITE_TXN_MARKERS,
    WritableTxnMarker,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tests.waiting import until

NODE = 7
SESSION = 99
APIS: dict[int, Api[Any, Any]] = {
    api.key: api for api in (API_VERSIONS, WRITE_TXN_MARKERS, ADD_PARTITIONS_TO_TXN, END_TXN)
}
VERSIONS = ApiVersionsResponse(
    api_keys=[ApiVersion(18, 0, 4), ApiVersion(24, 0, 5), ApiVersion(27, 1, 2)]
)
TIMEOUT_MS = 30_000


class Asked(NamedTuple):
    """A request, and the connection it came on."""

    line: Line
    api: Api[Any, Any]
    version: int
    correlation_id: int
    request: Any

    def frame(self, response: Any) -> bytes:
        """The whole answer."""
        chunks = response_frame(self.api, self.version, self.correlation_id, response)
        return b"".join(bytes(chunk) for chunk in chunks)

    def answer(self, response: Any) -> None:
        self.line.write(self.frame(response))


class Line(asyncio.Protocol):
    """One connection of the scripted peer."""

    def __init__(self, peer: ScriptedPeer) -> None:
        self._peer = peer
        self._received = bytearray()
        self.is_open = True
        self.number = len(peer.lines)
        peer.lines.append(self)

    def connection_made(self, transport) -> None:
        self.transport = transport

    def data_received(self, data) -> None:
        self._received += data
        while len(self._received) >= 4:
            end = 4 + int.from_bytes(self._received[:4], "big")
            if len(self._received) < end:
                return
            frame = memoryview(bytes(self._received[4:end]))
            del self._received[:end]
            header, position = decode_request_header(frame)
            api = APIS[header.api_key]
            request = api.decode_request(frame, position, header.api_version)
            asked = Asked(self, api, header.api_version, header.correlation_id, request)
            self._peer.take(asked)

    def connection_lost(self, error) -> None:
        self.is_open = False

    def write(self, data: bytes) -> None:
        """Send, unless the other side has closed by now."""
        if self.is_open:
            self.transport.write(data)

    def close(self) -> None:
        self.transport.close()


class ScriptedPeer:
    """Responds to hellos; later requests are in ``asked`` for the test."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.hellos: list[Any] = []
        self.asked: list[Asked] = []
        self.on_hello: Callable[[Asked], None] = lambda asked: asked.answer(VERSIONS)
        self.on_question: Callable[[Asked], None] = lambda _asked: None
        self._server: asyncio.Server | None = None
        self.address = ("127.0.0.1", 0)

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: Line(self), *self.address)
        self.address = self._server.sockets[0].getsockname()[:2]

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            for line in self.lines:
                line.close()
            await self._server.wait_closed()
            self._server = None

    def take(self, asked: Asked) -> None:
        if asked.api is API_VERSIONS:
            self.hellos.append(asked.request.peer_hello)
            self.on_hello(asked)
        else:
            self.asked.append(asked)
            self.on_question(asked)


class Asking:
    """Client of one peer, with constant time, and the results of its callbacks."""

    def __init__(self, peer: ScriptedPeer, **limits: Any) -> None:
        self.peer = peer
        self.clock = ManualClock()
        self.security = ClientSecurity()
        self.addresses = {NODE: lambda: peer.address}
        self.told: dict[int, Any] = {}
        self.order: list[int] = []
        self.limits = Limits(**limits)
        self.client = PeerClient(
            node_id=1,
            session=SESSION,
            address_of=lambda node: self.addresses[node]() if node in self.addresses else None,
            transport=Network(lambda: self.security, self.limits),
            clock=self.clock,
            limits=self.limits,
        )

    def ask(
        self,
        number: int,
        *,
        node: int = NODE,
        purpose: Purpose = Purpose.MARKERS,
        api: Api[Any, Any] = WRITE_TXN_MARKERS,
        request: Any = None,
        version: int = 2,
        timeout_ms: float = TIMEOUT_MS,
    ) -> None:
        """Send a request; ``number`` identifies it and is its producer ID."""

        def tell(answer: Any) -> None:
            assert number not in self.told, "told twice"
            self.told[number] = answer
            self.order.append(number)

        if request is None:
            request = question(number)
        self.client.ask(node, purpose, api, version, request, tell, timeout_ms=timeout_ms)
        assert number not in self.told, "told from inside of ask"

    async def answer_to(self, number: int) -> Any:
        await until(lambda: number in self.told)
        return self.told[number]

    async def asked(self, count: int) -> list[Asked]:
        """Wait until so many questions have arrived."""
        await until(lambda: len(self.peer.asked) >= count)
        assert len(self.peer.asked) == count
        return self.peer.asked


def question(number: int) -> WriteTxnMarkersRequest:
    return WriteTxnMarkersRequest([WritableTxnMarker(number)])


def number_of(asked: Asked) -> int:
    return asked.request.markers[0].producer_id


def echo(asked: Asked) -> None:
    """Send a response that identifies the request."""
    asked.answer(answer(number_of(asked)))


def answer(number: int) -> WriteTxnMarkersResponse:
    from barnabas.protocol.messages.write_txn_markers import WritableTxnMarkerResult

    return WriteTxnMarkersResponse([WritableTxnMarkerResult(number)])
