"""The HTTP port as a server: one question per connection, everything bounded, bad input closed.

It runs on the broker's loop, so an answer from ``/livez`` is itself the proof that the loop turns.
It is the first thing to open and the last to close: a port that is taken shows before recovery, and
``/readyz`` says what a start or a stop is waiting for.

Rules of this file:

* **A probe always gets in.** Connections that have sent no request yet and those that are answered
  are limited apart (broker/http/connection_slots.py), and the newest is admitted: neither questions
  that never end nor readers that never read keep a probe out.
* **What is short is answered where the question ends**, without a task or another turn of the loop.
  A long answer goes piece by piece, no faster than it is read, and one piece of all long answers
  is made in a turn of the loop: many who ask at once wait for each other, not Kafka's clients.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, cast

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.http.connection_slots import ConnectionSlots
from barnabas.broker.http.message import (
    HEAD_BYTES_MAX,
    HEAD_END,
    LAST_CHUNK,
    Answer,
    BadRequest,
    encode_head,
    encode_piece,
    parse_question,
    text,
)
from barnabas.broker.network.socket_server import Listener, bind

logger = logging.getLogger("barnabas.broker.http")

ASKING_MAX: Final = 64
"""Connections at a time that have not said what they want."""
ANSWERED_MAX: Final = 32
"""Connections at a time that are being answered."""
BACKLOG: Final = 512
"""Connections that may come in one turn of the loop; the kernel lets one more try in a second."""
QUESTION_SECONDS: Final = 5.0
"""How long a client may take to ask."""
ANSWER_SECONDS: Final = 30.0
"""How long a client may take to read the answer."""

Page = Callable[[], Answer]


class HttpServer:
    """Serves ``pages`` by path on one address."""

    def __init__(self, host: str, port: int, pages: dict[str, Page]) -> None:
        self._asking: ConnectionSlots[HttpConnection] = ConnectionSlots(ASKING_MAX)
        self._answered: ConnectionSlots[HttpConnection] = ConnectionSlots(ANSWERED_MAX)
        self._connections: set[HttpConnection] = set()
        self._next_pieces: deque[HttpConnection] = deque()
        self._all_gone = asyncio.Event()
        self._all_gone.set()
        self._listener = Listener("http", host, port, None)
        self._pages = pages

    @property
    def address(self) -> tuple[str, int]:
        """Return where the port can be reached once it is open."""
        return self._listener.bound

    async def start(self, config: BrokerConfig) -> None:
        """Listen; raises ListenError."""
        listener = self._listener
        loop = asyncio.get_running_loop()
        for sock in bind(listener, config):
            server = await loop.create_server(
                lambda: HttpConnection(self), sock=sock, backlog=BACKLOG
            )
            listener.servers.append(server)
        logger.info("http listens address=%s:%d", *self.address)

    def close(self) -> None:
        """Close the port and every connection at once."""
        for server in self._listener.servers:
            server.close()
        self._listener.servers.clear()
        for connection in list(self._connections):
            connection.abort()

    async def stop(self) -> None:
        """Close, and wait until nothing is left of it."""
        self.close()
        await self._all_gone.wait()

    def opened(self, connection: HttpConnection) -> None:
        """Admit a new connection; the one that has to make room is closed."""
        self._connections.add(connection)
        self._all_gone.clear()
        self._make_room(self._asking.enter(connection, connection.host))

    def asked(self, connection: HttpConnection) -> None:
        """Move a connection to those that are answered."""
        self._asking.leave(connection)
        self._make_room(self._answered.enter(connection, connection.host))

    def closed(self, connection: HttpConnection) -> None:
        """Forget a connection."""
        self._asking.leave(connection)
        self._answered.leave(connection)
        self._connections.discard(connection)
        if not self._connections:
            self._all_gone.set()

    def wants_a_turn(self, connection: HttpConnection) -> None:
        """Have the next piece of a long answer made, after those of others."""
        self._next_pieces.append(connection)
        if len(self._next_pieces) == 1:
            asyncio.get_running_loop().call_soon(self._make_a_piece)

    def _make_a_piece(self) -> None:
        connection = self._next_pieces[0]
        connection.send_piece()
        self._next_pieces.popleft()
        if self._next_pieces:
            asyncio.get_running_loop().call_soon(self._make_a_piece)

    @staticmethod
    def _make_room(displaced: HttpConnection | None) -> None:
        if displaced is not None:
            displaced.abort()

    def answer(self, path: str) -> Answer:
        """Return the page at ``path``."""
        page = self._pages.get(path)
        if page is None:
            return text(404, "not found; what is here: " + " ".join(self._pages))
        return page()


class HttpConnection(asyncio.Protocol):
    """One question, one answer."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._transport: asyncio.Transport
        self._deadline: asyncio.TimerHandle
        self.host = "?"
        self._head = b""
        self._body: Iterator[str] | None = None
        self._chunked = False
        self._has_asked = False
        self._reader_is_slow = False

    # ------------------------------------------------------------------------------- transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a slot, the oldest one's if need be."""
        self._transport = cast("asyncio.Transport", transport)
        self.host = str((transport.get_extra_info("peername") or "?")[0])
        self._server.opened(self)
        self._set_deadline(QUESTION_SECONDS, self._too_slow)

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002
        """Leave."""
        self._deadline.cancel()
        self._body = None
        self._server.closed(self)

    def data_received(self, data: bytes) -> None:
        """Answer as soon as the head of the request is here; what follows it is not read."""
        if self._has_asked:
            return
        self._head += data
        end = self._head.find(HEAD_END)
        if 0 <= end <= HEAD_BYTES_MAX:
            self._question(self._head[: end + len(HEAD_END)])
        elif len(self._head) > HEAD_BYTES_MAX:
            self._send(text(431, f"a request's head has at most {HEAD_BYTES_MAX} bytes"))

    def eof_received(self) -> bool:
        """Go on with the answer, if it is known which."""
        return self._has_asked

    def pause_writing(self) -> None:
        """Make no more of the answer while it is not read."""
        self._reader_is_slow = True

    def resume_writing(self) -> None:
        """Go on."""
        self._reader_is_slow = False
        self._go_on()

    def abort(self) -> None:
        """Close at once: a cut answer is not taken for a whole one."""
        self._body = None
        self._transport.abort()

    def send_piece(self) -> None:
        """Make the next piece of the answer."""
        body = self._body
        if body is None or self._reader_is_slow:
            return
        try:
            piece = next(body)
        except StopIteration:
            self._finish(b"")
        except Exception as error:  # noqa: BLE001  the top frame: a bug ends this answer, no more
            self._failed(error)
        else:
            self._transport.write(encode_piece(piece, chunked=self._chunked))
            self._go_on()

    # ------------------------------------------------------------------------------ the answer

    def _question(self, head: bytes) -> None:
        try:
            question = parse_question(head)
            answer = self._server.answer(question.path)
        except BadRequest as refused:
            self._send(text(refused.status, str(refused), refused.headers))
        except Exception as error:  # noqa: BLE001  the top frame: a bug ends this answer, no more
            self._failed(error)
        else:
            self._chunked = question.chunked
            self._send(answer, is_head=question.is_head)

    def _too_slow(self) -> None:
        self._send(text(408, "the request took too long"))

    def _send(self, answer: Answer, *, is_head: bool = False) -> None:
        self._has_asked = True
        self._server.asked(self)
        self._set_deadline(ANSWER_SECONDS, self.abort)
        head = encode_head(answer, chunked=self._chunked)
        if is_head:
            self._transport.write(head)
            self._transport.close()
        elif isinstance(answer.body, tuple):
            pieces = (encode_piece(piece, chunked=self._chunked) for piece in answer.body)
            self._finish(head + b"".join(pieces))
        else:
            self._transport.write(head)
            self._body = iter(answer.body)
            self._go_on()

    def _go_on(self) -> None:
        if self._body is not None and not self._reader_is_slow:
            self._server.wants_a_turn(self)

    def _finish(self, rest: bytes) -> None:
        self._body = None
        self._transport.write(rest + LAST_CHUNK if self._chunked else rest)
        self._transport.close()

    def _failed(self, error: Exception) -> None:
        logger.error("http request failed", exc_info=error)
        self.abort()

    # --------------------------------------------------------------------------------- private

    def _set_deadline(self, seconds: float, then: Callable[[], None]) -> None:
        if self._has_asked:
            self._deadline.cancel()
        self._deadline = asyncio.get_running_loop().call_later(seconds, then)
