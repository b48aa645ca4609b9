"""One connection to the HTTP port: requests in turn, each with its response."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import Final, Protocol, cast

from barnabas.broker.config.addresses import plain_host
from barnabas.broker.http.messages.answer import CONTINUE, Answer, Framing, Piece, Stream, text
from barnabas.broker.http.messages.answer_memory import AnswerMemory, Holding
from barnabas.broker.http.messages.request import BadRequest, Request, RequestReader
from barnabas.broker.runtime.clock import Clock, Timer
from barnabas.protocol.errors import KafkaError

logger = logging.getLogger("barnabas.broker.http")

QUESTION_SECONDS: Final = 5.0
"""Time in which a client must send a whole request."""
IDLE_SECONDS: Final = 15.0
"""Time in which a client must start the next request."""
ANSWER_SECONDS: Final = 30.0
"""Time in which a client must read a response; for a stream, the time without any read."""
PIECE_BYTES: Final = 64 * 1024
"""Bytes of a whole body that the transport gets at a time."""


class Port(Protocol):
    """Interface of the HTTP port for its connections."""

    memory: AnswerMemory
    clock: Clock

    def opened(self, connection: HttpConnection) -> None:
        """Admit a connection, and close another one if there is no room."""

    def request_received(self, connection: HttpConnection, request: Request | None) -> None:
        """Register a connection whose request is complete, or refused if None."""

    def streams(self, connection: HttpConnection) -> None:
        """Register a connection as one with an endless response."""

    def answered(self, connection: HttpConnection) -> None:
        """Register a connection as one that waits for its next request."""

    def closed(self, connection: HttpConnection) -> None:
        """Forget a connection."""

    def wants_a_turn(self, connection: HttpConnection) -> None:
        """Schedule the next piece of a long response, after those of other connections."""

    def answer(self, request: Request, peer_host: str) -> Answer | Awaitable[Answer]:
        """Return the response to a request, or an awaitable of it."""


class HttpConnection(asyncio.Protocol):
    """One connection: reads a request, writes its response, and repeats."""

    def __init__(self, port: Port) -> None:
        self._port = port
        self._transport: asyncio.Transport
        self._deadline: Timer | None = None
        self._reader = RequestReader()
        self._answering: asyncio.Task[None] | None = None
        self._body: Iterator[Piece] | None = None
        self._stream: Stream | None = None
        self._holding: Holding | None = None
        """Memory of the response that is being written."""
        self._is_finishing = False
        """Whether a response is complete and waits for its client."""
        self._framing: Framing | None = None
        """Framing of the current response, or None between requests."""
        self._is_told_to_continue = False
        self._reader_is_slow = False
        self._is_over = False
        self.host = "?"

    # ------------------------------------------------------------------------------- transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a slot; without a free one, the oldest connection is closed for it."""
        self._transport = cast("asyncio.Transport", transport)
        # The kernel takes a piece before the next one is produced.
        self._transport.set_write_buffer_limits(high=0)
        self.host = plain_host(str((transport.get_extra_info("peername") or "?")[0]))
        self._port.opened(self)
        self._set_deadline(QUESTION_SECONDS, self._too_slow)

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002
        """Release everything that the connection holds."""
        self._is_over = True
        self._body = None
        self._release()
        if self._deadline is not None:
            self._deadline.cancel()
        if self._answering is not None:
            self._answering.cancel()
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.left(self)
        self._port.closed(self)

    def data_received(self, data: bytes) -> None:
        """Handle the request if it is complete."""
        if self._is_over or self._framing is not None:
            # No request is processed before the current one has its response.
            self._no_more()
            return
        is_first = not self._reader.has_begun
        self._reader.receive(data)
        try:
            request = self._reader.next_request()
        except BadRequest as refused:
            self._refuse(refused)
            return
        if request is not None:
            self._handle(request)
        elif is_first:
            self._set_deadline(QUESTION_SECONDS, self._too_slow)
        if request is None and self._reader.awaits_permission and not self._is_told_to_continue:
            self._is_told_to_continue = True
            self._transport.write(CONTINUE)

    def eof_received(self) -> bool:
        """Continue with a response that is known and ends; close the connection otherwise."""
        if self._framing is not None and self._stream is None:
            self._framing.keeps_alive = False
            return True
        return False

    def pause_writing(self) -> None:
        """Stop producing the response while the client does not read it."""
        self._reader_is_slow = True
        if self._stream is not None:
            self._set_deadline(ANSWER_SECONDS, self.abort)

    def resume_writing(self) -> None:
        """Resume producing the response."""
        self._reader_is_slow = False
        if self._stream is not None:
            self._release()
            if self._deadline is not None:
                self._deadline.cancel()
        if self._is_finishing:
            self._finished()
        self._send_next()

    def abort(self) -> None:
        """Close at once: a cut answer is not taken for a whole one."""
        self._is_over = True
        self._body = None
        self._release()
        self._transport.abort()

    def show(self, piece: Piece) -> bool:
        """Send a piece of an endless response, unless the previous ones are unread."""
        framing = self._framing
        if self._stream is None or framing is None or self._reader_is_slow:
            return False
        data = framing.piece(piece)
        holding = self._port.memory.holding(self.host)
        try:
            holding.hold(len(data))
        except KafkaError:
            holding.release()
            return False
        self._holding = holding
        self._transport.write(data)
        if not self._reader_is_slow:
            self._release()
        return True

    def send_piece(self) -> None:
        """Produce the next piece of the response."""
        body, framing = self._body, self._framing
        if body is None or framing is None or self._reader_is_slow:
            return
        try:
            piece = next(body)
        except StopIteration:
            self._finish(framing.end)
        except Exception as error:  # noqa: BLE001  the top frame: a bug ends this response, no more
            self._failed(error)
        else:
            self._transport.write(framing.piece(piece))
            self._send_next()

    # ------------------------------------------------------------------------------ the response

    def _handle(self, request: Request) -> None:
        self._is_told_to_continue = False
        self._framing = Framing(keeps_alive=request.keeps_alive and not self._reader.has_begun)
        self._port.request_received(self, request)
        self._set_deadline(ANSWER_SECONDS, self.abort)
        try:
            answer = self._port.answer(request, self.host)
        except Exception as error:  # noqa: BLE001  the top frame: a bug ends this response, no more
            self._failed(error)
            return
        if isinstance(answer, Answer):
            self._send(answer, request)
        else:
            self._answering = asyncio.ensure_future(self._answer_later(answer, request))

    async def _answer_later(self, pending: Awaitable[Answer], request: Request) -> None:
        try:
            answer = await pending
        except Exception as error:  # noqa: BLE001  the top frame: a bug ends this response, no more
            self._failed(error)
        else:
            self._answering = None
            self._send(answer, request)

    def _refuse(self, refused: BadRequest) -> None:
        """Respond to a malformed request and close the connection: its end is unknown."""
        self._framing = Framing(keeps_alive=False)
        self._port.request_received(self, None)
        self._send(text(refused.status, str(refused), refused.headers), None)

    def _too_slow(self) -> None:
        self._refuse(BadRequest(408, "the request took too long"))

    def _send(self, answer: Answer, request: Request | None) -> None:
        framing = self._framing
        if self._is_over or framing is None:
            if answer.holding is not None:
                answer.holding.release()
            return
        self._hold(answer.holding)
        self._set_deadline(ANSWER_SECONDS, self.abort)
        is_head = request is not None and request.method == "HEAD"
        if isinstance(answer.body, tuple):
            self._send_whole(answer, answer.body, is_head=is_head)
            return
        framing.chunked = request is None or not request.is_old
        if not framing.chunked:
            framing.keeps_alive = False  # The end of the connection is the end of the body.
        head = framing.head(answer, None)
        if is_head:
            self._finish(head)
            return
        self._transport.write(head)
        if isinstance(answer.body, Stream):
            self._begin_stream(answer.body)
            return
        self._body = iter(answer.body)
        self._send_next()

    def _send_whole(self, answer: Answer, body: tuple[Piece, ...], *, is_head: bool) -> None:
        """Write a response of known length: in pieces if it is long."""
        framing = self._framing
        assert framing is not None
        framing.chunked = False
        data = b"".join(framing.piece(piece) for piece in body)
        head = framing.head(answer, len(data))
        if is_head or len(data) <= PIECE_BYTES:
            self._finish(head if is_head else head + data)
            return
        holding = answer.holding or self._port.memory.holding(self.host)
        try:
            holding.hold(len(data))
        except KafkaError as error:
            holding.release()
            refused = text(503, error.message)
            self._send_whole(refused, cast("tuple[Piece, ...]", refused.body), is_head=False)
            return
        self._hold(holding)
        self._transport.write(head)
        self._body = _pieces_of(data)
        self._send_next()

    def _hold(self, holding: Holding | None) -> None:
        """Keep the memory of a response until it is written."""
        self._holding = holding
        if holding is not None:
            holding.close_response = self.abort

    def _release(self) -> None:
        holding, self._holding = self._holding, None
        if holding is not None:
            holding.release()

    def _begin_stream(self, stream: Stream) -> None:
        """Start an endless response; from now on only a client that does not read times out."""
        assert self._deadline is not None
        self._deadline.cancel()
        self._stream = stream
        self._port.streams(self)
        stream.joined(self)

    def _send_next(self) -> None:
        if self._body is not None and not self._reader_is_slow:
            self._port.wants_a_turn(self)

    def _finish(self, rest: bytes) -> None:
        """Write the end of a response; the connection is free once the kernel accepts it."""
        self._body = None
        self._is_finishing = True
        if rest:
            self._transport.write(rest)
        if not self._reader_is_slow:
            self._finished()

    def _finished(self) -> None:
        framing = self._framing
        if self._is_over or framing is None:
            return
        self._is_finishing = False
        self._release()
        if not framing.keeps_alive:
            self._is_over = True
            self._transport.close()
            return
        self._framing = None
        self._port.answered(self)
        self._set_deadline(IDLE_SECONDS, self._transport.close)

    def _failed(self, error: Exception) -> None:
        logger.error("http request failed reason=%s", error, exc_info=error)
        self.abort()

    # --------------------------------------------------------------------------------- private

    def _no_more(self) -> None:
        """Take no second request: it is dropped, and the client sees the connection close."""
        if self._framing is not None:
            self._framing.keeps_alive = False
        if not self._transport.is_closing():
            self._transport.pause_reading()

    def _set_deadline(self, seconds: float, then: Callable[[], None]) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self._port.clock.call_later(seconds * 1000, then)


def _pieces_of(data: bytes) -> Iterator[memoryview]:
    view = memoryview(data)
    for start in range(0, len(view), PIECE_BYTES):
        yield view[start : start + PIECE_BYTES]
