"""One client connection: frames in, handlers called, answers out in request order.

Rules of this file:

* **Nothing is awaited and no Task or Future is made** for a request unless its handler is a
  coroutine. What the transport delivers is parsed and handled inside ``buffer_updated``.
* **Answers leave in request order.** ``_slots`` holds what is owed: a list of chunks that is ready,
  or a Deferred that is not. Nothing is written while an older answer is missing.
* **Not handling is how everything is slowed down.** Each reason to handle nothing more is a bit of
  ``_mute``; frames stay in the buffer, and when that is full the socket is not read. The peer
  feels it as TCP back-pressure. The last bit to go resumes work.
* **Completing an answer never runs another handler.** It queues the connection for ``deliver``, so
  that a handler which wakes a hundred waiting fetches is not interrupted by their successors, and
  all answers of one loop iteration leave a connection in one write.
* Only two things are written to the log per connection: that it broke a rule (WARNING, limited), or
  that we did (ERROR with the traceback). The client sees a closed connection in both cases.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from struct import Struct
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from barnabas.broker.api.dispatch import (
    API_VERSIONS_KEY,
    FETCH_KEY,
    PRODUCE_KEY,
    CloseConnection,
    Deferred,
    Parked,
    RequestContext,
    Route,
    Shortcut,
)
from barnabas.broker.api.division import is_long
from barnabas.broker.api.refusals import refusal
from barnabas.broker.network.addresses import network_of, plain_host
from barnabas.broker.network.framing import (
    Chunks,
    answers_flexibly,
    encoded,
    range_answer,
    skip_header_tags,
)
from barnabas.broker.network.intake import Intake
from barnabas.broker.network.large import LARGE_BYTES, LONG_ELEMENTS, LargeAnswer
from barnabas.broker.network.sending import Remainder, has_slices, in_memory, send, send_unpaced
from barnabas.protocol.errors import KafkaError, Malformed
from barnabas.protocol.frame import FrameRefused
from barnabas.protocol.header import decode_request_header

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from barnabas.broker.network.socket_server import Listener, SocketServer

logger = logging.getLogger("barnabas.broker.network.connection")

Plan: TypeAlias = tuple[Route, RequestContext, int, bool, bool, Any, Any, Any, Shortcut | None]

# Key and version in one, correlation id, client id.
_request_header: Final = Struct(">iih").unpack_from
HEADER_BYTES: Final = 10

WRITE_BYTES: Final = 256 * 1024
"""Answers are handed to the transport once they add up to this much, so that a burst of requests
cannot pile up answers behind the transport's flow control."""

JOIN_BYTES: Final = 64 * 1024
"""Up to this much, one joined string is cheaper than a vector of small pieces."""

TURN_REQUESTS: Final = 200
"""Requests of one connection handled in a row: about 2 ms. A full ring of the smallest requests
would hold up everyone else for 30 ms, and the disk, which starts when the turn ends."""

TURN_NS: Final = 5_000_000
"""What costs more than the smallest is handled no longer than this in a row."""

# Why a connection handles nothing at the moment.
HANDLING: Final = 1  # a coroutine or a parked fetch is at work
WRITING: Final = 2  # the peer does not read its answers
BACKLOGGED: Final = 4  # the journal is behind
PIPELINED: Final = 8  # too many answers are owed
DRAINING: Final = 16  # the broker is stopping
CLOSED: Final = 32


class Connection(asyncio.BufferedProtocol):
    """A client connection as the transport drives it; see the rules at the head of this file."""

    __slots__ = (
        "_budget",
        "_client",
        "_close_deadline",
        "_decoding",
        "_delivery",
        "_descriptor",
        "_endpoint",
        "_frames",
        "_intake",
        "_mute",
        "_out",
        "_out_bytes",
        "_parked",
        "_pipeline_limit",
        "_plans",
        "_queued_bytes",
        "_ready",
        "_remainder",
        "_repeated",
        "_server",
        "_slots",
        "_swept",
        "_transport",
        "last_active",
        "listener",
        "peer",
        "peer_host",
        "received_bytes",
        "requests",
        "sent_bytes",
    )

    def __init__(self, server: SocketServer, listener: Listener) -> None:
        self._server = server
        self._delivery = server.delivery
        self._budget = server.frame_budget
        self._intake = Intake(self, server.frame_budget, server.ring_pool, server.max_frame_bytes)
        self._frames = self._intake.frames
        self._transport: asyncio.Transport
        self._pipeline_limit = server.pipeline_limit
        self._plans: dict[int, Plan] = {}
        self._client: bytes | None = None
        self._repeated: tuple[Route, Shortcut] | None = None
        self._slots: deque[Chunks | Deferred[Any]] = deque()
        self._queued_bytes = 0
        self._out: Chunks = []
        self._out_bytes = 0
        self._remainder: Remainder | None = None
        self._parked: Parked[Any] | None = None
        self._mute = 0
        self._ready = False
        self._decoding = False
        self._descriptor = -1
        self._endpoint: tuple[str, int] | None = None
        self._swept = (0, 0)
        self._close_deadline: float | None = None
        self.listener = listener
        self.peer = "?"
        self.peer_host = "?"
        self.last_active = 0.0
        self.requests = 0
        self.received_bytes = 0
        self.sent_bytes = 0

    # ------------------------------------------------------------------------------- transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start, or hang up where a limit on connections is reached."""
        transport = self._transport = cast("asyncio.Transport", transport)
        self._intake.start(transport)
        peer = transport.get_extra_info("peername") or ("?", 0)
        self.peer_host = plain_host(str(peer[0]))
        self.peer = f"{self.peer_host}:{peer[1]}"
        self.last_active = self._server.clock.monotonic()
        refused = self._server.admit(self)
        if refused is not None:
            self._mute |= CLOSED
            self._server.complain(f"connection refused: peer={self.peer} reason={refused}")
            transport.abort()
            return
        if transport.get_extra_info("ssl_object") is None:
            self._descriptor = transport.get_extra_info("socket").fileno()
            if self.peer_host.startswith("127.") or self.peer_host == "::1":
                send_unpaced(self._descriptor)
        transport.set_write_buffer_limits(high=self._server.write_buffer_bytes)

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002
        """Drop everything that was held for the peer."""
        self._mute |= CLOSED
        self._descriptor = -1  # the number may belong to another connection soon
        self._server.forget(self)
        self._drop_remainder()
        self._intake.end()
        slots, self._slots = self._slots, deque()
        self._parked = None
        self._repeated = None
        self._out = []
        self._plans = {}
        for slot in slots:
            if isinstance(slot, Deferred):
                slot.connection = None
                slot.abandoned()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        """Return where the transport is to receive."""
        if self._budget.careful:
            return self._intake.room(is_served=not self._mute)
        return self._frames.writable()

    def buffer_updated(self, nbytes: int) -> None:
        """Handle what has come in as far as possible."""
        frames = self._frames
        frames.received(nbytes)
        self.received_bytes += nbytes
        if not self._mute:
            if self._delivery.overdrawn:
                self._queue_delivery()
            else:
                self._process()
        elif self._parked is not None:
            self._hurry_parked()
        if frames.settle() != self._intake.held_bytes:
            self._intake.settle(is_served=not self._mute)
        if frames.full:
            self._intake.pause()

    def eof_received(self) -> bool:
        """Close: as with Apache Kafka, a client that has stopped sending is gone."""
        return False

    def pause_writing(self) -> None:
        """Handle nothing while the peer does not read its answers."""
        self._mute |= WRITING

    def resume_writing(self) -> None:
        """Go on after the peer has read enough."""
        if self._remainder is None:
            self._unmute_soon(WRITING)

    # -------------------------------------------------------------------- handlers may use this

    @property
    def endpoint(self) -> tuple[str, int]:
        """Return the host and port a client of this connection is told for this broker."""
        if self.listener.advertised is not None:
            return self.listener.advertised
        if self._endpoint is None:
            self._endpoint = self.local_address
        return self._endpoint

    @property
    def local_address(self) -> tuple[str, int]:
        """Return the host and port that the client dialled."""
        host, port = self._transport.get_extra_info("sockname")[:2]
        return plain_host(host), port

    @property
    def network(self) -> str:
        """Return what shares one client's part of memory: its address, or its IPv6 network."""
        return network_of(self.peer_host)

    @property
    def is_not_read(self) -> bool:
        """Return whether nothing is handled only because the peer does not read its answers."""
        return self._mute == WRITING

    @property
    def frame_is_owned(self) -> bool:
        """Return whether the frame in hand has a buffer of its own (see protocol/frame.py)."""
        return self._frames.frame_is_owned

    def close(self, reason: str) -> None:
        """Hang up because of what the client did; answers that are ready still leave."""
        if self._mute & CLOSED:
            return
        self._server.complain(f"connection closed: peer={self.peer} {reason}")
        self._hang_up()

    def bug(self, name: str, error: BaseException) -> None:
        """Log an error of ours with its traceback and hang up."""
        logger.error(
            "request failed: peer=%s api=%s error=%r", self.peer, name, error, exc_info=error
        )
        self._hang_up()

    # ------------------------------------------------------------------------- called by others

    def answered(self, deferred: Deferred[Any]) -> None:
        """Encode the answer of a Deferred that was completed, if it has one, and queue it."""
        if self._mute & CLOSED:
            return
        if deferred.chunks is not None:
            self._queue_delivery()
            return
        route = deferred.route
        assert route is not None
        if (deferred.large or not route.short) and is_long(deferred.response, LONG_ELEMENTS):
            self._server.start_request(self._server.large.encode(self, deferred))
            return
        try:
            deferred.chunks, _ = encoded(
                route.api.encode_response,
                deferred.response,
                deferred.version,
                deferred.correlation_id,
                answers_flexibly(route, deferred.version),
            )
        except Exception as error:  # noqa: BLE001  a bug of ours ends this connection, not the caller
            self.bug(route.name, error)
            return
        self._queue_delivery()

    def answer_is_ready(self) -> None:
        """Send, in its turn, the answer of a Deferred that encoded it itself."""
        if not self._ready:
            self._ready = True
            self._delivery.add(self)

    def deliver(self) -> None:
        """Write the answers whose turn has come, and resume work that waited for them."""
        self._ready = False
        if self._mute & CLOSED:
            return
        slots = self._slots
        out = self._out
        now_ns = perf_counter_ns() if slots else 0
        while slots:
            head = slots[0]
            if isinstance(head, Deferred):
                chunks = head.chunks
                if chunks is None:
                    break
                out += chunks
                self._out_bytes += len(chunks[0]) if len(chunks) == 1 else sum(map(len, chunks))
                assert head.route is not None
                head.route.times.observe(now_ns - head.begun_ns, head.requests)
            else:
                out.extend(head)
                size = sum(map(len, head))
                self._out_bytes += size
                self._queued_bytes -= size
            slots.popleft()
        if out:
            self._write()
        if self._parked is not None and self._parked.chunks is not None:
            self._parked = None
            self._mute &= ~HANDLING
        if self._mute & PIPELINED and not self._over_pipeline_limit():
            self._mute &= ~PIPELINED
        if not self._mute:
            self._resume()
        elif self._mute & DRAINING and not slots and self._remainder is None:
            self._finish()

    def unmute_backlogged(self) -> None:
        """Go on after the journal has caught up."""
        self._unmute_soon(BACKLOGGED)

    def forget_plans(self) -> None:
        """Look routes up again: the table has changed."""
        self._plans.clear()
        self._repeated = None

    def drain(self) -> None:
        """Handle nothing more; answers that are due still leave."""
        self._mute |= DRAINING
        self._intake.stop()
        if self._parked is not None and self._parked.chunks is None:
            self._parked.hurry()
        self._queue_delivery()

    def abort(self) -> None:
        """Close at once; what was not sent is lost."""
        self._mute |= CLOSED
        self._drop_remainder()
        self._transport.abort()

    def sweep(self, now: float) -> None:
        """Check the time limits: idle, an incomplete frame, a close that does not end.

        Called every few seconds, so that no request pays for a timer.
        """
        server = self._server
        if self._close_deadline is not None:
            if now >= self._close_deadline:
                self._transport.abort()
            return
        if self._mute & CLOSED:
            return
        if self._intake.peer_has_gone(self._descriptor):
            self.abort()
            return
        unsent = self._transport.get_write_buffer_size()
        if self._remainder is not None:
            unsent += self._remainder.size_bytes
        progress = (self.requests, unsent)
        if progress == self._swept:
            self._frames.shrink()
            self._settle()
        if progress != self._swept or self._slots or self._mute & ~WRITING:
            self._swept = progress
            self.last_active = now
            self._intake.progressed()
            return
        if self._frames.pending_bytes and not self._mute:
            overdue = self._intake.overdue(now, server.receive_timeout)
            if overdue:
                self.close(f"reason={overdue}")
        elif now - self.last_active >= server.idle_timeout:
            self._hang_up()

    # -------------------------------------------------------------------------------- requests

    def _process(self) -> None:
        """Handle whole frames until something mutes the connection or its turn is over."""
        frames = self._frames
        frame: memoryview | None = None
        begun_ns = now_ns = perf_counter_ns()
        try:
            for _ in range(TURN_REQUESTS):
                if self._mute:
                    break
                if now_ns - begun_ns > TURN_NS:
                    self._queue_delivery()
                    break
                repeated = self._repeated
                if repeated is not None and self._take_short(repeated[0], repeated[1], now_ns):
                    now_ns = perf_counter_ns()
                    continue
                frame = frames.next_frame()
                if frame is None:
                    if frames.wanted_bytes:
                        self._intake.begin_large()
                    break
                self._handle(frame, now_ns)
                now_ns = perf_counter_ns()
                if frames.frame_is_owned and not self._decoding:
                    self._intake.handled()
            else:  # the others' turn; the rest waits in the buffer
                self._queue_delivery()
        except (Malformed, FrameRefused, CloseConnection) as error:
            self.close(f"{self._describe(frame)}reason={error}")
        except Exception as error:  # noqa: BLE001  the connection's top frame: a bug ends it
            self.bug(self._describe(frame).removeprefix("api=").strip(), error)
        if self._out:
            self._write()
        self._delivery.spend(now_ns - begun_ns)

    def _take_short(self, route: Route, shortcut: Shortcut, begun_ns: int) -> bool:
        """Let the latest request's shortcut take what comes next; False: that is not like it."""
        pending = shortcut.take(self._frames)
        if pending is None:
            return False
        pending.begun_ns = begun_ns
        pending.route = route
        self.requests += pending.requests
        route.requests += pending.requests
        self._slots.append(pending)
        if self._server.backlogged or len(self._slots) >= self._pipeline_limit:
            self._hold_back()
        return True

    def _handle(self, frame: memoryview, begun_ns: int) -> None:
        """Decode one request, call its handler, and answer or note that an answer is owed."""
        key_and_version, correlation_id, client_size = _request_header(frame)
        position = HEADER_BYTES
        client = None
        if client_size >= 0:
            position += client_size
            client = bytes(frame[HEADER_BYTES:position])
        plan = self._plans.get(key_and_version)
        if plan is None or client != self._client:
            new = self._plan(frame, key_and_version, client)
            if new is None:
                return
            plan = new
        route, context, version, flexible, flexible_answer, decode, handler, encode, shortcut = plan
        if flexible:
            position = skip_header_tags(frame, position)
        self.requests += 1
        route.requests += 1
        if len(frame) > LARGE_BYTES and route.api.key != PRODUCE_KEY:
            self._handle_large(frame, position, plan, correlation_id, begun_ns)
            return
        if self._frames.frame_is_owned:
            request = self._server.large.decode_here(decode, frame, position, version)
        else:
            request = decode(frame, position, version)
        if shortcut is not None:
            shortcut.learn(frame, position, request)
            self._repeated = route, shortcut
        try:
            response = handler(context, request)
        except KafkaError as error:
            response = refusal(route, request, error)
        if response is None:
            self._hold_back()  # No answer (acks=0), but what it appended waits for the disk too.
            return
        if isinstance(response, Deferred):
            if response.response is None:
                response.begun_ns = begun_ns
                self._defer(response, route, version, correlation_id)
                return
            response = response.response
        elif route.is_coroutine:
            self._start(response, route, request, version, correlation_id, begun_ns)
            return
        if not route.short and is_long(response, LONG_ELEMENTS):
            aside: Deferred[Any] = Deferred()
            aside.begun_ns = begun_ns
            self._defer(aside, route, version, correlation_id)
            aside.complete(response)
            return
        chunks, size = encoded(encode, response, version, correlation_id, flexible_answer)
        self._answer(chunks, size)
        route.times.observe(perf_counter_ns() - begun_ns)

    def _plan(self, frame: memoryview, key_and_version: int, client: bytes | None) -> Plan | None:
        """Prepare everything that stays the same for requests of this key, version and client.

        Returns None where the request has been dealt with: ApiVersions of an unknown version.
        """
        header, _ = decode_request_header(frame)
        key, version = header.api_key, header.api_version
        if client != self._client:
            self._client = client
            self._plans.clear()
        route = self._server.routes.get(key)
        if route is None:
            raise CloseConnection("unknown api key")
        if not route.min_version <= version <= route.max_version:
            if key == API_VERSIONS_KEY:
                self._unsupported_api_versions(route, header.correlation_id)
                return None
            raise CloseConnection(
                f"unsupported version, served are {route.min_version} to {route.max_version}"
            )
        api = route.api
        context = RequestContext(self, key, version, header.client_id)
        plan = (
            route,
            context,
            version,
            version >= api.flexible_from,
            answers_flexibly(route, version),
            api.decode_request,
            route.handler,
            api.encode_response,
            route.shortcut(context) if route.shortcut is not None else None,
        )
        self._plans[key_and_version] = plan
        return plan

    def _unsupported_api_versions(self, route: Route, correlation_id: int) -> None:
        """Answer what Apache Kafka answers: a v0 body with error 35 and the range of key 18.

        The one API with an answer for versions unknown: a client that is newer than the broker
        learns from it what to say.
        """
        self.requests += 1
        answer = range_answer(route, correlation_id)
        self._answer([answer], len(answer))

    def _start(
        self,
        coroutine: Awaitable[Any],
        route: Route,
        request: Any,  # noqa: ANN401
        version: int,
        correlation_id: int,
        begun_ns: int,
    ) -> None:
        """Run a coroutine handler; nothing else of this connection is handled meanwhile."""
        parked: Parked[Any] = Parked()
        parked.begun_ns = begun_ns
        self._owe(parked, route, version, correlation_id)
        self._server.start_request(self._run(coroutine, route, request, parked))

    async def _run(
        self,
        coroutine: Awaitable[Any],
        route: Route,
        request: Any,  # noqa: ANN401
        parked: Parked[Any],
    ) -> None:
        try:
            try:
                response = await coroutine
            except KafkaError as error:
                response = refusal(route, request, error)
        except CloseConnection as error:
            self.close(f"api={route.name} reason={error}")
        except Exception as error:  # noqa: BLE001  the request's top frame: a bug ends the connection
            self.bug(route.name, error)
        else:
            parked.complete(response)

    def _handle_large(
        self, frame: memoryview, position: int, plan: Plan, correlation_id: int, begun_ns: int
    ) -> None:
        """Have a request decoded aside and handled in slices; nothing else is handled meanwhile."""
        route, context, version = plan[0], plan[1], plan[2]
        self._decoding = self._frames.frame_is_owned
        if not self._decoding:
            frame = memoryview(bytes(frame))  # The ring goes on.
        answer = LargeAnswer()
        answer.begun_ns = begun_ns
        self._owe(answer, route, version, correlation_id)
        serving = self._server.large.serve(self, frame, position, route, context, answer)
        self._server.start_request(serving)
        self._hurry_parked()

    def large_frame_is_decoded(self) -> None:
        """Return the memory of a frame that was decoded aside."""
        if self._decoding:
            self._decoding = False
            self._intake.handled()

    def _defer(
        self, deferred: Deferred[Any], route: Route, version: int, correlation_id: int
    ) -> None:
        self._owe(deferred, route, version, correlation_id)
        if deferred.parked:
            self._hurry_parked()
        else:
            self._hold_back()

    def _hold_back(self) -> None:
        """Mute the connection if the journal is behind, or if too many answers are owed."""
        if self._over_pipeline_limit():
            self._mute |= PIPELINED
        if self._server.backlogged:
            self._mute |= BACKLOGGED
            self._server.wait_for_backlog(self)

    def _owe(
        self, deferred: Deferred[Any], route: Route, version: int, correlation_id: int
    ) -> None:
        deferred.route = route
        deferred.version = version
        deferred.correlation_id = correlation_id
        deferred.connection = self
        self._slots.append(deferred)
        if isinstance(deferred, Parked):
            self._parked = deferred
            self._mute |= HANDLING

    def _hurry_parked(self) -> None:
        """Cut a wait short when a request that is not a Fetch has come in behind it.

        Not for another Fetch: a client that keeps two in flight would be answered in a spin.
        """
        parked = self._parked
        if parked is None or parked.chunks is not None:
            return
        key = self._frames.next_key()
        if key is not None and key != FETCH_KEY:
            parked.hurry()

    # --------------------------------------------------------------------------------- answers

    def _answer(self, chunks: Chunks, size: int) -> None:
        """Queue an answer that is ready, behind those that are owed."""
        if self._slots:
            self._slots.append(chunks)
            self._queued_bytes += size
            if self._over_pipeline_limit():
                self._mute |= PIPELINED
            return
        self._out += chunks
        self._out_bytes += size
        if self._out_bytes >= WRITE_BYTES:
            self._write()

    def _write(self) -> None:
        """Send what is in ``_out``, and leave to the transport what the socket does not take.

        Sending here instead of through the transport saves one turn of uvloop's loop and about
        2 us for each write; order is kept because it is done only when the transport has nothing.
        Nor has it while parts of files are being sent.
        """
        out, self._out = self._out, []
        size, self._out_bytes = self._out_bytes, 0
        self.sent_bytes += size
        transport = self._transport
        if size <= JOIN_BYTES:
            out = [b"".join(out)]
        if self._remainder is not None:
            self._remainder.add(out)
            return
        if self._descriptor >= 0 and not transport.get_write_buffer_size():
            self._send(out)
            if not out or self._mute & CLOSED:
                return
            if size > JOIN_BYTES and self._leave_remainder(out):
                return
        try:
            out = in_memory(out)
        except OSError as error:
            self._remainder_failed(error)
            return
        for chunk in out:  # not writelines: asyncio's forgot flow control (3.12.0 to 3.13.1)
            transport.write(chunk)

    def _send(self, out: Chunks) -> None:
        """Send what the socket takes; a broken one ends the connection at once.

        What has come in behind would be handled for nobody, and its answers made in memory.
        """
        try:
            send(self._descriptor, out)
        except OSError as error:
            self._remainder_failed(error)

    def _leave_remainder(self, out: Chunks) -> bool:
        """Have what is in files sent as the socket takes it; False if nothing is, or none can."""
        if not has_slices(out):
            return False
        try:
            self._remainder = Remainder(
                self._descriptor, out, self._remainder_is_sent, self._remainder_failed
            )
        except OSError:  # no descriptor is free
            return False
        self._mute |= WRITING
        return True

    def _remainder_is_sent(self, left: Chunks) -> None:
        self._remainder = None
        self._unmute_soon(WRITING)
        for chunk in left:
            self._transport.write(chunk)

    def _remainder_failed(self, error: OSError) -> None:
        """Hang up: either the peer has, or the file cannot be read."""
        self._remainder = None
        if not isinstance(error, ConnectionError):
            self._server.complain(f"connection closed: peer={self.peer} reason={error}")
        self.abort()

    def _over_pipeline_limit(self) -> bool:
        return (
            len(self._slots) >= self._pipeline_limit
            or self._queued_bytes >= self._server.write_buffer_bytes
        )

    # ------------------------------------------------------------------------------ flow control

    def _queue_delivery(self) -> None:
        if not self._ready:
            self._ready = True
            self._delivery.add(self)

    def _unmute_soon(self, reason: int) -> None:
        self._mute &= ~reason
        self._queue_delivery()

    def _resume(self) -> None:
        """Handle what has waited in the buffer, then read on."""
        self._process()
        if self._mute & CLOSED:
            return
        self._settle()
        self._intake.resume()

    def _settle(self) -> None:
        if self._frames.settle() != self._intake.held_bytes:
            self._intake.settle(is_served=not self._mute)

    def _drop_remainder(self) -> None:
        remainder, self._remainder = self._remainder, None
        if remainder is not None:
            remainder.cancel()

    def _hang_up(self) -> None:
        if self._mute & CLOSED:
            return
        if self._out:
            self._write()
        self._drop_remainder()
        self._mute |= CLOSED
        self._close_deadline = self._server.clock.monotonic() + self._server.receive_timeout
        self._transport.close()

    def _finish(self) -> None:
        """Close after what was written has left."""
        self._mute |= CLOSED
        self._transport.close()

    def _describe(self, frame: memoryview | None) -> str:
        """Return which request a frame holds, for the log."""
        if frame is None:
            return ""
        key_and_version = _request_header(frame)[0]
        key, version = key_and_version >> 16, ((key_and_version & 0xFFFF) ^ 0x8000) - 0x8000
        route = self._server.routes.get(key)
        name = route.name if route is not None else str(key)
        return f"api={name} version={version} "
