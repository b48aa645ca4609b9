"""One client connection: bytes between its transport and its pipeline, and its end.

What the transport delivers is handled inside ``buffer_updated``: pipeline.py makes answers of it,
writer.py sends them, intake.py says when to stop receiving.

Only two things are written to the log per connection: that it broke a rule (WARNING, limited), or
that we did (ERROR with the traceback). The client sees a closed connection in both cases.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, cast

from barnabas.broker.api.client_seen import ClientSeen
from barnabas.broker.api.dispatch import CloseConnection
from barnabas.broker.config.addresses import address_text, client_network, plain_host
from barnabas.broker.network.intake import Intake
from barnabas.broker.network.late_close import LateClose
from barnabas.broker.network.login_gate import LoginGate
from barnabas.broker.network.pauses import CLOSED, DRAINING, WRITING
from barnabas.broker.network.pipeline import TURN_REQUESTS, Pipeline
from barnabas.broker.network.sending import send_unpaced
from barnabas.broker.network.stale_coordinator import has_stale_coordinator
from barnabas.broker.network.writer import Writer
from barnabas.broker.security.listeners.certificate_names import NoName
from barnabas.broker.security.session import NOBODY, Session
from barnabas.broker.security.tls.der import MalformedDer
from barnabas.protocol.errors import ErrorCode, Malformed
from barnabas.protocol.frame import MIN_FRAME_BYTES, FrameRefused
from barnabas.storage.runtime.clock import counter_ns

if TYPE_CHECKING:
    from barnabas.broker.cluster.peers.sessions import PeerLink
    from barnabas.broker.network.socket_server import Listener, SocketServer
    from barnabas.broker.runtime.clock import Timer
    from barnabas.broker.security.sasl.login import LoggedIn, Login, LoginFailed, Outcome

logger = logging.getLogger("barnabas.broker.network.connection")

LOGIN_REPEATED_EVERY_S: Final = 1.0
TLS_HANDSHAKE: Final = 0x16
"""The first byte of a TLS connection. In a plain request it would mean a length of 369 MB."""


class Connection(asyncio.BufferedProtocol):
    """A client connection as the transport drives it."""

    __slots__ = (
        "_awaited",
        "_budget",
        "_close_deadline",
        "_delivery",
        "_descriptor",
        "_endpoint",
        "_expiry",
        "_frames",
        "_intake",
        "_is_queued",
        "_late_close",
        "_login_deadline",
        "_login_repeated",
        "_pipeline",
        "_server",
        "_swept",
        "_transport",
        "_writer",
        "gate",
        "last_active",
        "link",
        "listener",
        "number",
        "peer",
        "peer_host",
        "received_bytes",
        "seen",
        "session",
        "since_ms",
    )

    def __init__(self, server: SocketServer, listener: Listener) -> None:
        self._server = server
        self._delivery = server.delivery
        self._budget = server.frame_budget
        self._intake = Intake(self, server.frame_budget, server.ring_pool, server.max_frame_bytes)
        self._frames = self._intake.frames
        self._pipeline = Pipeline(self, self._intake, server)
        self._writer = Writer(self)
        self._transport: asyncio.Transport
        self._is_queued = False
        self._descriptor = -1
        self._endpoint: tuple[str, int] | None = None
        self._swept = (0, 0)
        self._close_deadline: float | None = None
        self._login_deadline: float | None = None
        self._login_repeated: float | None = None
        self._awaited = ""
        self._late_close: LateClose | None = None
        self._expiry: Timer | None = None
        self.gate: LoginGate | None = None
        self.session: Session = NOBODY
        self.listener = listener
        self.peer = "?"
        self.peer_host = "?"
        self.last_active = 0.0
        self.received_bytes = 0
        self.seen = ClientSeen()
        self.link: PeerLink | None = None
        self.number = 0
        """Number among all connections of this broker, once it is registered."""
        self.since_ms = server.clock.now_ms()

    # ------------------------------------------------------------------------------- transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start, or close the connection if a limit on connections is reached."""
        transport = self._transport = cast("asyncio.Transport", transport)
        self._intake.start(transport)
        self._writer.start(transport, -1)
        peer = transport.get_extra_info("peername") or ("?", 0)
        self.peer_host = plain_host(str(peer[0]))
        self.peer = address_text(self.peer_host, peer[1])
        self.last_active = self._server.clock.monotonic()
        refused = self._server.admit(self)
        if refused is not None:
            self._pipeline.pauses |= CLOSED
            self._server.complain(f"connection refused: peer={self.peer} reason={refused}")
            transport.abort()
            return
        self._descriptor = transport.get_extra_info("socket").fileno()
        is_local = self.peer_host.startswith("127.") or self.peer_host == "::1"
        if is_local and self._descriptor >= 0:
            send_unpaced(self._descriptor)
        transport.set_write_buffer_limits(high=self._server.write_buffer_bytes)
        if self.listener.security.tls is None:
            self._writer.start(transport, self._descriptor)
            self._begin(None)
        else:
            self._writer.start(transport, -1, takes_slices=True)
            self._await("TLS handshake")

    def secured(self, certificate: bytes | None) -> None:
        """Start to serve after the TLS handshake. ``certificate`` is the client's, in DER."""
        self._login_deadline = None
        try:
            self._begin(certificate)
        except (NoName, MalformedDer) as error:
            reason = str(error) or "no rule of ssl.principal.mapping.rules applies"
            self.close(f"listener={self.listener.name} reason=the client's certificate: {reason}")

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002
        """Release all resources of the peer."""
        self._pipeline.pauses |= CLOSED
        self._descriptor = -1  # The number may belong to another connection soon.
        if self._expiry is not None:
            self._expiry.cancel()
        if self._late_close is not None:
            self._late_close.end()
        if self.link is not None:
            self.link.gone()
        self._server.forget(self)
        self._writer.end()
        self._intake.end()
        self._pipeline.abandon()
        self.gate = None  # It refers to this connection: a cycle may never be freed (daemon.py).

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        """Return the memory for the transport to receive into."""
        if self._budget.careful:
            return self._intake.room(is_served=not self._pipeline.pauses)
        return self._frames.writable()

    def buffer_updated(self, nbytes: int) -> None:
        """Handle the complete requests in the received data."""
        frames = self._frames
        pipeline = self._pipeline
        frames.received(nbytes)
        self.received_bytes += nbytes
        if not pipeline.pauses:
            if self._delivery.overdrawn:
                self.queue_delivery()
            else:
                self._process()
        elif pipeline.is_parked:
            pipeline.complete_parked_early()
        if frames.settle() != self._intake.held_bytes:
            self._intake.settle(is_served=not pipeline.pauses)
        if frames.full:
            self._intake.pause()

    def eof_received(self) -> bool:
        """Close: as with Apache Kafka, a client that has stopped sending has disconnected."""
        return False

    def pause_writing(self) -> None:
        """Stop handling requests while the peer does not read its responses."""
        self.writing_waits()

    def resume_writing(self) -> None:
        """Resume after the peer has read enough."""
        if not self._writer.sends_files:
            self.writing_goes_on()

    # ------------------------------------------------------------------------------------- login

    @property
    def login(self) -> Login | None:
        """Return the login that is under way."""
        gate = self.gate
        return None if gate is None else gate.login

    def login_again(self) -> Login | None:
        """Start to repeat a login with a lifetime (KIP-368), at most once a second."""
        now = self._server.clock.monotonic()
        begun = self._login_repeated
        is_too_soon = begun is not None and now - begun < LOGIN_REPEATED_EVERY_S
        if self.session.expires_ms is None or is_too_soon:
            return None
        self._login_repeated = now
        self._login_deadline = now + self._server.login_timeout
        self._open_gate(self.listener.security.new_login(self.session))
        return self.login

    def logged_in(self, outcome: LoggedIn) -> int:
        """Serve the client as its proven principal; return its session's lifetime in ms, or 0."""
        self.session = self.listener.security.session_of(
            outcome, self.peer_host, self._server.clock.now_ms()
        )
        self.gate = None
        self._login_deadline = None
        self._frames.max_frame_bytes = self._server.max_frame_bytes
        self._frames.min_frame_bytes = MIN_FRAME_BYTES
        self._pipeline.forget_plans()
        self._server.audit.logged_in(
            str(outcome.principal), self.peer_host, self.listener.name, outcome.mechanism
        )
        return self._limit_session()

    def take_token(self, token: bytes) -> Outcome:
        """Process the next token of the present login.

        Raises CloseConnection for a client whose address has guessed too often.
        """
        login = self.login
        assert login is not None
        if login.earlier is None and not self._server.failed_logins.may_try(self.network):
            raise CloseConnection("too many failed logins from this address")
        return login.step(token)

    def login_failed(self, failed: LoginFailed) -> float:
        """Log and count a failed login; return the delay of its response in ms."""
        self._login_deadline = None  # The login has ended.
        # Bare tokens get no reason, and a client that breaks the order of requests needs none.
        is_raw = self.login is not None and self.login.raw
        failed_logins = self._server.failed_logins
        if not is_raw and failed.code is not ErrorCode.ILLEGAL_SASL_STATE:
            self._late_close = LateClose(failed_logins, self._server.clock)
        if failed.code is ErrorCode.SASL_AUTHENTICATION_FAILED:
            failed_logins.failed(self.network)
        mechanism = failed.mechanism or (self.login.mechanism if self.login is not None else "")
        self._server.audit.login_failed(
            failed.user, self.peer_host, self.listener.name, mechanism, failed.reason
        )
        self._server.complain(
            f"login failed: peer={self.peer} listener={self.listener.name} "
            f"mechanism={mechanism or None} {failed.described}"
        )
        return failed_logins.hold_back()

    def _begin(self, certificate: bytes | None) -> None:
        """Serve the client as its present principal, or require a login."""
        security = self.listener.security
        self.session = security.new_session(self.peer_host, certificate)
        if security.needs_login:
            self._await("login")
            self._open_gate(security.new_login())

    def _await(self, step: str) -> None:
        self._awaited = step
        self._login_deadline = self._server.clock.monotonic() + self._server.login_timeout

    def _open_gate(self, login: Login) -> None:
        server = self._server
        self.gate = LoginGate(login, self, server.routes, server.clock)
        self._frames.max_frame_bytes = self.listener.security.max_receive_bytes
        self._frames.min_frame_bytes = 0  # A bare token may be as short as it likes.
        self._pipeline.forget_plans()

    def _limit_session(self) -> int:
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        expires_ms = self.session.expires_ms
        if expires_ms is None:
            return 0
        left_ms = max(1, expires_ms - self._server.clock.now_ms())
        self._expiry = self._server.clock.call_later(left_ms, self._session_ends)
        return left_ms

    def _session_ends(self) -> None:
        """Serve only a new login; requests under way still get their responses.

        A login that is being repeated at the moment may complete: nothing else is served then.
        """
        self._expiry = None
        if self.gate is not None:
            return
        security = self.listener.security
        self._open_gate(security.new_login(self.session, is_expired=True))

    # ----------------------------------------------------------------- a Peer to handlers, an Owner

    @property
    def endpoint(self) -> tuple[str, int]:
        """Return the host and port that a client of this connection receives for this broker."""
        if self.listener.advertised is not None:
            return self.listener.advertised
        if self._endpoint is None:
            self._endpoint = self.local_address
        return self._endpoint

    @property
    def listener_name(self) -> str:
        """Return the name of the client's listener."""
        return self.listener.name

    @property
    def local_address(self) -> tuple[str, int]:
        """Return the host and port that the client dialled."""
        host, port = self._transport.get_extra_info("sockname")[:2]
        return plain_host(host), port

    @property
    def network(self) -> str:
        """Return the key of the client's share of memory: its address, or its IPv6 network."""
        return client_network(self.peer_host)

    @property
    def requests(self) -> int:
        """Return the number of whole requests received so far."""
        return self._pipeline.requests

    @property
    def client_id(self) -> str:
        """Return the client ID of the client's last requests."""
        return self._pipeline.client_id

    @property
    def last_api(self) -> str:
        """Return the name of the last request's API; empty before there is one."""
        route = self._pipeline.last_route
        return "" if route is None else route.name

    @property
    def idle_ms(self) -> int | None:
        """Return the time since the last request, or None before there is one."""
        if self._pipeline.last_route is None:
            return None
        return (counter_ns() - self._pipeline.last_ns) // 1_000_000

    @property
    def refusals(self) -> int:
        """Return the number of requests that were refused as a whole."""
        return self._pipeline.refusals

    @property
    def pauses(self) -> int:
        """Return the reasons of the present pause, as bits of pipeline.py."""
        return self._pipeline.pauses

    @property
    def apis(self) -> frozenset[int]:
        """Return the APIs that the client has used lately."""
        return self._pipeline.apis

    @property
    def is_stranger(self) -> bool:
        """Return whether the client has not completed a request or a required login yet.

        False during a repeated login.
        """
        gate = self.gate
        return not self._pipeline.requests or (gate is not None and gate.login.earlier is None)

    @property
    def sent_bytes(self) -> int:
        """Return the number of bytes of responses that were written."""
        return self._writer.sent_bytes

    @property
    def is_not_read(self) -> bool:
        """Return whether only unread responses pause the connection."""
        return self._pipeline.pauses == WRITING

    @property
    def frame_is_owned(self) -> bool:
        """Return whether the present frame has its own buffer (see protocol/frame.py)."""
        return self._frames.frame_is_owned

    def writing_waits(self) -> None:
        """Stop handling requests: the peer does not read its responses."""
        self._pipeline.pauses |= WRITING

    def writing_goes_on(self) -> None:
        """Resume: the peer has read enough."""
        self._pipeline.pauses &= ~WRITING
        self.queue_delivery()

    def writing_failed(self, error: OSError) -> None:
        """Close the connection: either the peer has disconnected, or a file cannot be read."""
        if not isinstance(error, ConnectionError):
            self._server.complain(f"connection closed: peer={self.peer} reason={error}")
        self.abort()

    def close(self, reason: str) -> None:
        """Close the connection because of its client; responses that are ready are still sent."""
        if self._pipeline.pauses & CLOSED:
            return
        self._server.complain(f"connection closed: peer={self.peer} {reason}")
        self._disconnect()

    def bug(self, name: str, error: BaseException) -> None:
        """Log an internal error with its traceback and close the connection."""
        logger.error(
            "request failed: peer=%s api=%s error=%r", self.peer, name, error, exc_info=error
        )
        self._disconnect()

    # ------------------------------------------------------------------------- called by others

    def queue_delivery(self) -> None:
        """Call ``deliver`` in this iteration of the loop, or in the next one."""
        if not self._is_queued:
            self._is_queued = True
            self._delivery.add(self)

    def deliver(self) -> None:
        """Write the next responses in order, and resume work that waited for them."""
        self._is_queued = False
        pipeline = self._pipeline
        if pipeline.pauses & CLOSED:
            return
        pipeline.collect()
        if pipeline.out:
            self._write()
        if not pipeline.pauses:
            self._resume()
        elif pipeline.pauses & DRAINING and not pipeline.owes and not self._writer.sends_files:
            self._finish()

    def forget_plans(self) -> None:
        """Clear the cached routes, since the table has changed."""
        self._pipeline.forget_plans()

    def drain(self) -> None:
        """Stop handling requests; responses that are due are still sent."""
        if self._late_close is not None and self._late_close.is_waiting:
            self._transport.close()
            return
        self._intake.stop()
        self._pipeline.drain()
        self.queue_delivery()

    def abort(self) -> None:
        """Close at once; unsent bytes are lost."""
        self._pipeline.pauses |= CLOSED
        self._writer.drop()
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
        if self._pipeline.pauses & CLOSED:
            return
        if self._login_deadline is not None and now >= self._login_deadline:
            self.close(f"reason=no {self._awaited} after {server.login_timeout:g} s")
            return
        if self._intake.peer_has_gone(self._descriptor):
            self.abort()
            return
        pipeline = self._pipeline
        progress = (pipeline.requests, self._writer.unsent_bytes)
        if progress == self._swept:
            self._frames.shrink()
            self._settle()
        if progress != self._swept or pipeline.owes or pipeline.pauses & ~WRITING:
            self._swept = progress
            self.last_active = now
            self._intake.progressed()
            return
        if self._frames.pending_bytes and not pipeline.pauses:
            overdue = self._intake.overdue(now, server.receive_timeout)
            if overdue:
                self.close(f"reason={overdue}")
        elif self._is_silent_for_long(now):
            self._disconnect()

    # --------------------------------------------------------------------------------- private

    def _is_silent_for_long(self, now: float) -> bool:
        """Return whether to close a connection on which no request is pending or incomplete."""
        server = self._server
        silent_s = now - self.last_active
        if silent_s >= server.idle_timeout:
            return True
        is_awaited = now < server.offsets_awaited_until_s
        return is_awaited and has_stale_coordinator(silent_s, self.last_api, self.seen)

    def _process(self) -> None:
        """Handle whole frames until something pauses the connection or its turn ends."""
        pipeline = self._pipeline
        begun_ns = counter_ns()
        left = TURN_REQUESTS
        try:
            while left:
                left = pipeline.process(begun_ns, left)
                if left:
                    self._write()
        except FrameRefused as refused:
            self._refuse_frame(refused)
        except (Malformed, CloseConnection) as error:
            self.close(f"{pipeline.describe_frame()}reason={error}")
        except Exception as error:  # noqa: BLE001  the connection's top frame: a bug ends it
            self.bug(pipeline.describe_frame().removeprefix("api=").strip(), error)
        if pipeline.out:
            self._write()
        self._delivery.spend(counter_ns() - begun_ns)

    def _refuse_frame(self, refused: FrameRefused) -> None:
        if not self.requests and refused.size >> 24 == TLS_HANDSHAKE:
            name = self.listener.name
            self.close(
                f"listener={name} reason=the client speaks TLS, which this listener does not"
            )
        else:
            self.close(f"reason={refused}")

    def _resume(self) -> None:
        """Handle the buffered requests, then resume reading."""
        self._process()
        if self._pipeline.pauses & CLOSED:
            return
        self._settle()
        self._intake.resume()

    def _settle(self) -> None:
        if self._frames.settle() != self._intake.held_bytes:
            self._intake.settle(is_served=not self._pipeline.pauses)

    def _write(self) -> None:
        pipeline = self._pipeline
        out, pipeline.out = pipeline.out, []
        size, pipeline.out_bytes = pipeline.out_bytes, 0
        self._writer.write(out, size)

    def _disconnect(self) -> None:
        pipeline = self._pipeline
        if pipeline.pauses & CLOSED:
            return
        if pipeline.out:
            self._write()
        self._writer.drop()
        pipeline.pauses |= CLOSED
        self._close_deadline = self._server.clock.monotonic() + self._server.receive_timeout
        self._transport.close()

    def _finish(self) -> None:
        """Close after all data is sent; after a failed login wait for the client to close.

        What the client still sends stays in its buffer.
        """
        self._pipeline.pauses |= CLOSED
        if self._late_close is None or not self._late_close.begin(self._transport):
            self._transport.close()
