"""The HTTP port as a server: one question per connection, everything bounded, bad input closed.

It runs on the broker's loop, so an answer from ``/livez`` is itself the proof that the loop turns.
It is the first thing to open and the last to close: a port that is taken shows before recovery, and
``/readyz`` says what a start or a stop is waiting for.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Final

from broker.config import BrokerConfig
from broker.http.message import (
    HEAD_BYTES_MAX,
    LAST_CHUNK,
    Answer,
    BadRequest,
    encode_head,
    encode_piece,
    parse_question,
    text,
)
from broker.socket_server import Listener, bind

logger = logging.getLogger("broker.http")

CONNECTIONS_MAX: Final = 32
QUESTION_SECONDS: Final = 5.0
"""How long a client may take to ask."""
ANSWER_SECONDS: Final = 30.0
"""How long a client may take to read the answer."""

Page = Callable[[], Answer]


class HttpServer:
    """Serves ``pages`` by path on one address."""

    def __init__(self, host: str, port: int, pages: dict[str, Page]) -> None:
        self._listener = Listener("http", host, port, None)
        self._pages = pages
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def address(self) -> tuple[str, int]:
        """Return where the port can be reached once it is open."""
        return self._listener.bound

    async def start(self, config: BrokerConfig) -> None:
        """Listen; raises ListenError."""
        listener = self._listener
        for sock in bind(listener, config):
            server = await asyncio.start_server(
                self._connected, sock=sock, limit=HEAD_BYTES_MAX, backlog=CONNECTIONS_MAX
            )
            listener.servers.append(server)
        logger.info("http listens address=%s:%d", *self.address)

    def close(self) -> None:
        """Close the port and every connection at once."""
        for server in self._listener.servers:
            server.close()
        self._listener.servers.clear()
        for task in self._tasks:
            task.cancel()

    async def stop(self) -> None:
        """Close, and wait until nothing is left of it."""
        self.close()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._tasks) >= CONNECTIONS_MAX:
            writer.transport.abort()
            return
        self._tasks.add(task)
        try:
            await self._serve(reader, writer)
        except (ConnectionError, EOFError, TimeoutError):
            writer.transport.abort()  # The client has gone, or is too slow: nobody to tell.
        except asyncio.CancelledError:
            writer.transport.abort()
        except Exception:  # The top frame: a bug ends this answer, no more.
            logger.exception("http request failed")
            writer.transport.abort()  # A cut answer is not taken for a whole one.
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        chunked = is_head = False
        try:
            async with asyncio.timeout(QUESTION_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            question = parse_question(head)
            chunked, is_head = question.chunked, question.is_head
            answer = self._answer(question.path)
        except TimeoutError:
            answer = text(408, "the request took too long")
        except asyncio.LimitOverrunError:
            answer = text(431, f"a request's head has at most {HEAD_BYTES_MAX} bytes")
        except BadRequest as refused:
            answer = text(refused.status, str(refused), refused.headers)
        async with asyncio.timeout(ANSWER_SECONDS):
            await _send(writer, answer, chunked=chunked, is_head=is_head)

    def _answer(self, path: str) -> Answer:
        page = self._pages.get(path)
        if page is None:
            return text(404, "not found; what is here: " + " ".join(self._pages))
        return page()


async def _send(
    writer: asyncio.StreamWriter, answer: Answer, *, chunked: bool, is_head: bool
) -> None:
    """Send an answer; the loop gets a turn after each piece, however fast the client reads."""
    writer.write(encode_head(answer, chunked=chunked))
    if not is_head:
        for piece in answer.body:
            writer.write(encode_piece(piece, chunked=chunked))
            await writer.drain()
            await asyncio.sleep(0)
        if chunked:
            writer.write(LAST_CHUNK)
    await writer.drain()
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()
