"""TCP links between processes, each of which can be cut by itself.

with Links() as links:
    links.listen(port, to_port, Between(1, "store"))
    links.cut([Between(1, "store")])
    links.mend([Between(1, "store")])

The links run on a thread with a loop of its own. Connections are identified by their source.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator
from enum import Enum
from types import TracebackType
from typing import NamedTuple, Self

from tests.counterparts.broker_process import HOST

CHUNK_BYTES = 1 << 16
MOST_HELD_BYTES = 1 << 16
"""In the buffers of one direction, before its sender is made to wait."""
PIECE_S = 0.05
"""Interval between two pieces on a slow link."""
CLIENT_ID_AT = 14
"""In a request's frame: behind its length, key, version, correlation id and the id's length."""


class Between(NamedTuple):
    """The source and the target of a link."""

    source: object
    target: object


class Cut(Enum):
    """The way in which a link is cut, and its state after the repair."""

    RESET = "connections are reset, and so is who tries again"
    SILENT = "nothing arrives; what was sent is gone with its connection when the link is mended"
    LATE = "nothing arrives until the link is mended, then all of it"


class _Link:
    """The connections of one link, and whether something gets through."""

    def __init__(self) -> None:
        self.how: Cut | None = None
        self.is_open = asyncio.Event()
        self.is_open.set()
        self.connections: set[_Connection] = set()
        self.bytes_per_s: int | None = None
        self.passed_bytes = 0

    def cut(self, how: Cut) -> None:
        self.how = how
        self.is_open.clear()
        if how is Cut.RESET:
            self.reset()

    def mend(self) -> None:
        if self.how is Cut.SILENT:
            self.reset()
        self.how = None
        self.is_open.set()

    def reset(self) -> None:
        for connection in list(self.connections):
            connection.close()


class _Connection:
    """Two streams: what comes in at one goes out at the other."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.writers = [writer]
        self.is_closed = False

    def add(self, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        if self.is_closed:
            self.close()

    def close(self) -> None:
        self.is_closed = True
        for writer in self.writers:
            writer.transport.abort()


Source = Callable[[asyncio.StreamReader], Awaitable[tuple[object, bytes]]]


class Links:
    """Listening ports, and what lies behind each."""

    def __init__(self) -> None:
        self.cuts = 0
        """The number of cuts."""
        self._links: dict[Between, _Link] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="links")
        self._servers: list[asyncio.Server] = []

    def listen(self, port: int, to_port: int, between: Between) -> None:
        """Forward all connections of a port to another one."""

        async def source(_reader: asyncio.StreamReader) -> tuple[object, bytes]:
            return between.source, b""

        self._listen(port, to_port, between.target, source)

    def listen_for_brokers(self, port: int, to_port: int, target: object) -> None:
        """Bring what brokers send there; by its client id it shows who of them connects."""
        self._listen(port, to_port, target, _client_id)

    def cut(self, betweens: Iterable[Between], how: Cut) -> None:
        """Stop all traffic of these links."""
        for each in betweens:
            self.cuts += 1
            self._call(_Link.cut, each, how)

    def mend(self, betweens: Iterable[Between]) -> None:
        """Undo ``cut``."""
        for each in betweens:
            self._call(_Link.mend, each)

    def slow(self, between: Between, bytes_per_s: int) -> None:
        """Limit each direction to this rate."""
        self._call(lambda link: setattr(link, "bytes_per_s", bytes_per_s), between)

    def passed_bytes(self, between: Between) -> int:
        """Return the number of bytes that passed, in both directions."""
        return self._links[between].passed_bytes

    # -- on the loop -------------------------------------------------------------------------------

    def _call(self, function: Callable[..., None], between: Between, *arguments: Cut) -> None:
        async def call() -> None:
            function(self._link(between), *arguments)

        asyncio.run_coroutine_threadsafe(call(), self._loop).result()

    def _link(self, between: Between) -> _Link:
        return self._links.setdefault(between, _Link())

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._loop.run_until_complete(self._end())
        self._loop.close()

    def _listen(self, port: int, to_port: int, target: object, source: Source) -> None:
        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connection = _Connection(writer)
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                who, begun = await source(reader)
                await self._join(
                    self._link(Between(who, target)), connection, to_port, reader, begun
                )
            connection.close()

        async def listen() -> None:
            listener = socket.socket()
            # What the system holds of a slow link is nothing that its sender could wait for.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, MOST_HELD_BYTES)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((HOST, port))
            self._servers.append(
                await asyncio.start_server(accept, sock=listener, limit=MOST_HELD_BYTES)
            )

        asyncio.run_coroutine_threadsafe(listen(), self._loop).result()

    async def _join(
        self,
        link: _Link,
        connection: _Connection,
        to_port: int,
        reader: asyncio.StreamReader,
        begun: bytes,
    ) -> None:
        link.connections.add(connection)
        try:
            if link.how is Cut.RESET:
                return
            await link.is_open.wait()
            upstream, upstream_writer = await asyncio.open_connection(HOST, to_port)
            connection.add(upstream_writer)
            upstream_writer.write(begun)
            await asyncio.gather(
                _pump(link, connection, reader, upstream_writer),
                _pump(link, connection, upstream, connection.writers[0]),
            )
        finally:
            link.connections.discard(connection)

    async def _end(self) -> None:
        for server in self._servers:
            server.close()
        for link in self._links.values():
            link.reset()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


async def _pump(
    link: _Link,
    connection: _Connection,
    source: asyncio.StreamReader,
    target: asyncio.StreamWriter,
) -> None:
    """Forward data; the end of one direction ends both, once it can be known."""
    try:
        while data := await source.read(CHUNK_BYTES):
            await link.is_open.wait()
            link.passed_bytes += len(data)
            for piece in _pieces(data, link.bytes_per_s):
                target.write(piece)
                await target.drain()
                if link.bytes_per_s:
                    await asyncio.sleep(len(piece) / link.bytes_per_s)
        await link.is_open.wait()
    finally:
        connection.close()


def _pieces(data: bytes, bytes_per_s: int | None) -> Iterator[bytes]:
    """Divide what comes over a slow link, of which each piece takes a moment."""
    size = len(data) if bytes_per_s is None else max(1, round(bytes_per_s * PIECE_S))
    for at in range(0, len(data), size):
        yield data[at : at + size]


async def _client_id(reader: asyncio.StreamReader) -> tuple[object, bytes]:
    """Return the client id of the first request, and what was read for it."""
    head = await reader.readexactly(CLIENT_ID_AT)
    name = await reader.readexactly(int.from_bytes(head[-2:]))
    return name.decode(), head + name
