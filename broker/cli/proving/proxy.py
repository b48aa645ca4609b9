"""A TCP proxy before a broker that cuts connections, also between a request and its response.

Clients only know the proxy. Bytes that arrived before a cut are delivered; later ones are dropped,
never delivered later: a delayed request is another fault, and the old protocol does not survive it
(KAFKA-17754).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from enum import Enum
from random import Random
from types import TracebackType
from typing import Final, Protocol, Self

from barnabas.broker.client.connection import Address
from barnabas.protocol.errors import Malformed
from barnabas.storage.runtime.threads import new_event, start_thread

HOST: Final = "127.0.0.1"
LENGTH_BYTES: Final = 4
FRAME_BYTES_MAX: Final = 32 << 20
"""Largest request or response that is decoded."""
_REST: Final = 1 << 62
"""More bytes than a connection carries."""
CHUNK_BYTES: Final = 1 << 16
SWALLOWS: Final = 0.7
"""Share of the cuts that lose the next response, too."""


class Act(Enum):
    """Action of the proxy on the bytes that a tap has seen."""

    FORWARD = "forward"
    CUT = "cut"
    """Close the connection before the bytes are forwarded."""
    SWALLOW = "swallow"
    """Forward them, and close the connection in place of the next response."""


class Tap(Protocol):
    """Sees the bytes of one connection before they are forwarded; runs on the proxy's thread."""

    def requests(self, data: bytes) -> tuple[Act, bytes]:
        """Take bytes of the client; the second result goes to the client in place of a response."""

    def responses(self, data: bytes) -> bytes:
        """Take bytes of the broker; return those for the client."""

    def closed(self) -> None:
        """Take the end of the connection."""


class _Open:
    """Tap that forwards everything."""

    def requests(self, data: bytes) -> tuple[Act, bytes]:
        del data
        return Act.FORWARD, b""

    def responses(self, data: bytes) -> bytes:
        return data

    def closed(self) -> None:
        return


class _Connection:
    """Two streams, and whether responses still reach the client."""

    def __init__(self, tap: Tap) -> None:
        self.tap = tap
        self.swallows = False
        self.writers: list[asyncio.StreamWriter] = []

    def close(self) -> None:
        for writer in self.writers:
            writer.transport.abort()


class Proxy:
    """`with Proxy(broker, port, seed):` listens, in a thread with a loop of its own."""

    def __init__(
        self,
        broker: Address,
        port: int,
        seed: int,
        tap: Callable[[int], Tap] = lambda _port: _Open(),
    ) -> None:
        """``tap`` makes the tap of a connection from the port of its client."""
        self.port = port
        self.cuts = 0
        self._broker = broker
        self._tap = tap
        self._chance = Random(seed)  # noqa: S311
        self._connections: set[_Connection] = set()
        self._loop = asyncio.new_event_loop()
        self._listening = new_event()
        self._stopping = asyncio.Event()
        self._ended = new_event()
        self._error: OSError | None = None
        """Reason why it does not listen."""

    def cut(self, share: float) -> None:
        """Cut a share of the connections: some at once, some in place of the next response."""
        self._loop.call_soon_threadsafe(self._cut, share)

    def _cut(self, share: float) -> None:
        for connection in list(self._connections):
            if self._chance.random() < share:
                connection.swallows = self._chance.random() < SWALLOWS
                if not connection.swallows:
                    connection.close()
                self.cuts += 1

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        except OSError as error:
            self._error = error
        finally:
            self._loop.close()
            self._listening.set()
            self._ended.set()

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._accept, HOST, self.port)
        self._listening.set()
        await self._stopping.wait()
        # A server that is closed first loses the connection that it accepts at that moment.
        for listener in server.sockets:
            self._loop.remove_reader(listener.fileno())
        while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
            for connection in list(self._connections):
                connection.close()
            await asyncio.gather(*tasks, return_exceptions=True)
        server.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._stopping.is_set():
            writer.transport.abort()
            return
        connection = _Connection(self._tap(writer.get_extra_info("peername")[1]))
        connection.writers.append(writer)
        self._connections.add(connection)
        try:
            with contextlib.suppress(OSError):
                upstream, to_broker = await asyncio.open_connection(*self._broker)
                connection.writers.append(to_broker)
                await asyncio.gather(
                    self._pump_requests(connection, reader, to_broker, writer),
                    self._pump_responses(connection, upstream, writer),
                )
        finally:
            self._connections.discard(connection)
            connection.tap.closed()
            connection.close()

    async def _pump_requests(
        self,
        connection: _Connection,
        source: asyncio.StreamReader,
        target: asyncio.StreamWriter,
        client: asyncio.StreamWriter,
    ) -> None:
        try:
            while data := await source.read(CHUNK_BYTES):
                act, response = connection.tap.requests(data)
                if act is Act.CUT:
                    self.cuts += 1
                    return
                if response:
                    client.write(response)
                    await client.drain()
                    continue
                if act is Act.SWALLOW:
                    self.cuts += 1
                    connection.swallows = True
                target.write(data)
                await target.drain()
        finally:
            connection.close()

    async def _pump_responses(
        self,
        connection: _Connection,
        source: asyncio.StreamReader,
        target: asyncio.StreamWriter,
    ) -> None:
        try:
            while data := await source.read(CHUNK_BYTES):
                response = connection.tap.responses(data)
                if connection.swallows:
                    return
                target.write(response)
                await target.drain()
        finally:
            connection.close()

    def __enter__(self) -> Self:
        """Listen; raises OSError."""
        start_thread("barnabas-proxy", self._run)
        self._listening.wait()
        if self._error is not None:
            raise self._error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._ended.wait()


class Stream:
    """Bytes of one direction, split into frames; ``skip`` forgets a frame that is not kept."""

    def __init__(self, start_bytes: int) -> None:
        """``start_bytes``: bytes of the start of a frame, with its length."""
        self._start_bytes = start_bytes
        self._kept = bytearray()
        self._skipped = 0
        """Bytes of the present frame that still arrive and are not kept."""

    def add(self, data: bytes) -> bytes:
        """Add bytes; return those that belong to a frame which is skipped."""
        passed = data[: self._skipped]
        self._skipped -= len(passed)
        self._kept += data[len(passed) :]
        return passed

    @property
    def is_empty(self) -> bool:
        """Whether no byte of the next frame has arrived."""
        return not self._kept

    def clear(self) -> None:
        """Forget the bytes that have arrived."""
        self._kept.clear()

    def start(self) -> bytes | None:
        """Return the start of the next frame, or ``None`` if it has not arrived."""
        if len(self._kept) < self._start_bytes:
            return None
        return bytes(self._kept[: self._start_bytes])

    def skip(self, size: int) -> bytes:
        """Remove a frame; return its bytes that have arrived.

        A connection whose frames have no possible size is skipped as a whole.
        """
        end = LENGTH_BYTES + size if size >= self._start_bytes - LENGTH_BYTES else _REST
        passed = bytes(self._kept[:end])
        del self._kept[:end]
        self._skipped = end - len(passed)
        return passed

    def take(self, size: int) -> bytes | None:
        """Remove and return a whole frame, or return ``None`` if it has not arrived."""
        end = LENGTH_BYTES + size
        if len(self._kept) < end:
            return None
        frame = bytes(self._kept[:end])
        del self._kept[:end]
        return frame

    def frames(self) -> Iterator[memoryview]:
        """Remove and yield whole frames without their length; raises Malformed for a larger one."""
        while (start := self.start()) is not None:
            size = int.from_bytes(start[:LENGTH_BYTES], "big")
            if size > FRAME_BYTES_MAX:
                raise Malformed(f"frame of {size} bytes")
            frame = self.take(size)
            if frame is None:
                break
            yield memoryview(frame)[LENGTH_BYTES:]
