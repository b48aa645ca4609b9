"""A TCP proxy before the broker that cuts connections, also between a request and its answer.

Clients only know the proxy. Bytes that arrived before a cut are delivered; later ones are dropped,
never delivered later: a delayed request is another fault, and the old protocol does not survive it
(KAFKA-17754).
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from types import TracebackType
from typing import Self

from tests.counterparts.broker_process import HOST

CHUNK_BYTES = 1 << 16
MOST_SWALLOWED_S = 0.1


class _Connection:
    """Two streams, and whether answers still reach the client."""

    def __init__(self) -> None:
        self.swallows = False
        self.writers: list[asyncio.StreamWriter] = []

    def close(self) -> None:
        for writer in self.writers:
            writer.transport.abort()


class Proxy:
    """`with Proxy(broker_port, port, seed):` listens, in a thread with a loop of its own."""

    def __init__(self, broker_port: int, port: int, seed: int) -> None:
        self.port = port
        self.cuts = 0
        self._broker_port = broker_port
        self._chance = random.Random(seed)
        self._connections: set[_Connection] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="proxy")
        self._listening = threading.Event()
        self._stopping = asyncio.Event()

    def cut(self, share: float) -> None:
        """Cut a share of the connections, some at once, some after answers were swallowed."""
        self._loop.call_soon_threadsafe(self._cut, share)

    def _cut(self, share: float) -> None:
        for connection in list(self._connections):
            if self._chance.random() < share:
                connection.swallows = self._chance.random() < 0.7
                after_s = self._chance.uniform(0, MOST_SWALLOWED_S) if connection.swallows else 0
                self._loop.call_later(after_s, connection.close)
                self.cuts += 1

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._accept, HOST, self.port)
        self._listening.set()
        await self._stopping.wait()
        server.close()
        for connection in list(self._connections):
            connection.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = _Connection()
        connection.writers.append(writer)
        self._connections.add(connection)
        try:
            with contextlib.suppress(OSError):
                upstream, to_broker = await asyncio.open_connection(HOST, self._broker_port)
                connection.writers.append(to_broker)
                await asyncio.gather(
                    self._pump(connection, reader, to_broker, is_answer=False),
                    self._pump(connection, upstream, writer, is_answer=True),
                )
        finally:
            self._connections.discard(connection)
            connection.close()

    async def _pump(
        self,
        connection: _Connection,
        source: asyncio.StreamReader,
        target: asyncio.StreamWriter,
        *,
        is_answer: bool,
    ) -> None:
        try:
            while data := await source.read(CHUNK_BYTES):
                if not (is_answer and connection.swallows):
                    target.write(data)
                    await target.drain()
        finally:
            connection.close()

    def __enter__(self) -> Self:
        self._thread.start()
        self._listening.wait()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()
