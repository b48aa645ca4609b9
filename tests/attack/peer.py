"""One connection of a client that need not keep to the protocol, and one of a client that does."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from typing import Any, Self

from barnabas.protocol.client import NEED_DATA, ClientConnection
from barnabas.protocol.header import RequestHeader, request_frame

CONNECT_TIMEOUT_S = 60.0
PIECE_BYTES = 1 << 16
RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class Peer:
    """A raw connection. What it meets (resets, timeouts) it raises as OSError."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock

    @classmethod
    async def connect(
        cls, host: str, port: int, *, receive_buffer_bytes: int = 0, source: str = "", **more: Any
    ) -> Self:
        """Connect; a small receive buffer lets what is not read stay with the broker.

        ``source`` is the address of this machine to come from.
        """
        sock = socket.socket()
        sock.setblocking(False)
        if source:
            sock.bind((source, 0))
        if receive_buffer_bytes:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                await asyncio.get_running_loop().sock_connect(sock, (host, port))
        except BaseException:
            sock.close()
            raise
        return cls(sock, **more)

    async def send(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self.socket, data)

    async def receive(self, size: int = PIECE_BYTES) -> bytes:
        """Receive the next bytes, at most ``size``; empty at the end."""
        return await asyncio.get_running_loop().sock_recv(self.socket, size)

    def finish(self) -> None:
        """Close the sending direction."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)

    async def hung_up(self, patience_s: float) -> tuple[bool, int]:
        """Read until the broker closes: whether it did in time, and how many bytes it sent."""
        received = 0
        try:
            async with asyncio.timeout(patience_s):
                while piece := await self.receive():
                    received += len(piece)
        except ConnectionError:
            return True, received
        except TimeoutError:
            return False, received
        return True, received

    def reset(self) -> None:
        """Close without a goodbye: the broker meets a reset."""
        with contextlib.suppress(OSError):
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        self.close()

    def close(self) -> None:
        self.socket.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        self.close()


class Wire(Peer):
    """A connection that speaks the protocol: one request at a time, its answer or an error."""

    def __init__(self, sock: socket.socket, client_id: str = "wire") -> None:
        super().__init__(sock)
        self._connection = ClientConnection(client_id)

    async def ask(self, api: Any, request: Any, version: int) -> Any:
        """Send a request, return its response; raises ConnectionError when there is none."""
        _, chunks = self._connection.request(api, version, request)
        await self.send(b"".join(chunks))
        while (answer := self._connection.next_response()) is NEED_DATA:
            received = await self.receive()
            if not received:
                raise ConnectionError("the broker hung up on a request")
            self._connection.receive_data(received)
        return answer[1]


def frame(
    api: Any, version: int, request: Any, *, client_id: str | None = "attack", correlation: int = 1
) -> bytes:
    """A whole frame of a request, its length in front."""
    header = RequestHeader(api.key, version, correlation, client_id)
    return b"".join(request_frame(api, header, request))
