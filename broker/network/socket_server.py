"""Listening sockets, and the connections that came in through them.

Everything that is counted or limited over all connections is here; what one connection does is in
broker/network/connection.py. Nothing here knows of topics or logs.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import resource
import socket
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, cast

from barnabas.broker.api.dispatch import Peer, Route, Routes
from barnabas.broker.cluster.peers.sessions import PeerSessions
from barnabas.broker.config.addresses import address_text, without_zone
from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.config.connection_limits import address_limits
from barnabas.broker.config.types import INT_MAX
from barnabas.broker.network.connection import Connection
from barnabas.broker.network.connection_rate import HELD_MAX, ConnectionRates, Doorman
from barnabas.broker.network.flow import Backlog, Delivery
from barnabas.broker.network.frame_budget import JUDGE_SECONDS, FrameBudget
from barnabas.broker.network.large import LargeRequests
from barnabas.broker.network.tls import TlsHost, TlsTransport
from barnabas.broker.runtime.clock import Clock, Timer
from barnabas.broker.runtime.simulated import simulated_host
from barnabas.broker.security.acls.access import Generation
from barnabas.broker.security.audit import AuditLog
from barnabas.broker.security.listeners.listeners import OPEN_LISTENER, ListenerSecurity
from barnabas.broker.security.quotas.quotas import Quotas
from barnabas.broker.security.sasl.failed_logins import FailedLogins
from barnabas.protocol.frame import RingPool

if TYPE_CHECKING:
    from barnabas.broker.api.driver import Run
    from barnabas.broker.security.listeners.tls import ListenerTls
    from barnabas.broker.security.session import Session

logger = logging.getLogger("barnabas.broker.network.socket_server")

ANY_HOST = ("", "0.0.0.0", "::")  # noqa: S104  what users write for "every interface"
NO_SUCH_FAMILY = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT)
RESERVED_FILES = 256
"""File descriptors kept from connections, for the log, the journal and the rest of the process."""

SWEEP_INTERVAL_MS = 5000
BROKERS_REMEMBERED_S = 900
"""Maximum time for which clients may remember a broker that has left: ``metadata.max.age.ms``."""
COMPLAINTS_PER_SECOND = 10


class ListenError(Exception):
    """A listener cannot be opened; the text is one line for the user."""

    key = "listeners"
    """Name of the setting with the address."""
    is_taken = False
    """Whether another process listens there."""


@dataclass(slots=True)
class Listener:
    """One configured listener; ``bound`` is where it can be reached once it is open."""

    name: str
    host: str
    port: int
    advertised: tuple[str, int] | None
    bound: tuple[str, int] = ("", 0)
    sockets: list[socket.socket] = field(default_factory=list)
    """Bound, and not yet listening."""
    servers: list[asyncio.Server] = field(default_factory=list)
    security: ListenerSecurity = OPEN_LISTENER


class Complaints:
    """Warnings about clients: the first few of each second, and the number of the others."""

    __slots__ = ("_clock", "_second", "_suppressed", "_written")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._second = -1
        self._written = 0
        self._suppressed = 0

    def write(self, text: str) -> None:
        """Log a line within the limit per second."""
        second = int(self._clock.monotonic())
        if second != self._second:
            if self._suppressed:
                logger.warning("%d more warnings about clients left out", self._suppressed)
            self._second = second
            self._written = self._suppressed = 0
        if self._written >= COMPLAINTS_PER_SECOND:
            self._suppressed += 1
            return
        self._written += 1
        logger.warning("%s", text)


class SocketServer:
    """All listeners and connections of one broker."""

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        routes: Routes,
        security: Mapping[str, ListenerSecurity] | None = None,
        generation: Generation | None = None,
        quotas: Quotas | None = None,
        audit: AuditLog | None = None,
    ) -> None:
        """``security`` has the rules of listeners by name; a listener without an entry needs no
        login.

        ``generation`` counts the changes of permissions.
        """
        self.clock = clock
        self.generation = generation or Generation()
        self.quotas = quotas or Quotas(clock, self.generation)
        self.audit = audit or AuditLog(clock, lambda _line: None)
        self.routes = routes
        self.loop = asyncio.get_running_loop()
        self.delivery = Delivery(self.loop)
        self.ring_pool = RingPool()
        self.max_frame_bytes = config.socket_request_max_bytes
        self.large = LargeRequests(self.loop, config)
        self.frame_budget = FrameBudget(
            bytes_or_unlimited(config.queued_max_request_bytes), clock.monotonic, self._judge_later
        )
        self.pipeline_limit = config.connection_pipeline_max_requests
        self.write_buffer_bytes = config.connection_write_buffer_bytes
        self.receive_timeout = config.request_receive_timeout_ms / 1000
        idle_ms = config.connections_max_idle_ms
        self.idle_timeout = idle_ms / 1000 if idle_ms >= 0 else float("inf")
        self.offsets_awaited_until_s = -inf
        """Time until which clients may wait for a broker that has left: see ``Connection``."""
        self.login_timeout = config.login_timeout_ms / 1000
        self.failed_logins = FailedLogins(
            clock,
            per_address=config.login_failures_per_address_max,
            held_back=config.login_failures_delayed_max,
            delay_ms=config.connection_failed_authentication_delay_ms,
        )
        self.listeners = [Listener(e.name, e.host, e.port, e.advertised) for e in config.endpoints]
        for listener in self.listeners:
            listener.security = (security or {}).get(listener.name, OPEN_LISTENER)
        self.tls: TlsHost | None = None
        if self.tls_listeners:
            self.tls = TlsHost(self.loop, lambda: self._config.tls_handshakes_max)
        self.peer_sessions = PeerSessions()
        self.connections: dict[Connection, None] = {}
        """Open connections, in order of arrival."""
        # In the order in which they came; some are no strangers any more.
        self._newcomers: dict[Connection, None] = {}
        self.backlog = Backlog()
        self.connections_accepted = 0
        self.connections_refused = 0
        self.closed_received_bytes = 0
        self.closed_sent_bytes = 0
        self._config = config
        self._complaints = Complaints(clock)
        self._max_connections = min(config.max_connections, files_for_connections())
        self._per_host: Counter[str] = Counter()
        self._per_listener: Counter[str] = Counter()
        self._host_limits = address_limits(config.max_connections_per_ip_overrides)
        self._listener_limits = _listener_limits(config)
        self._rates = ConnectionRates(clock, self.quotas, config)
        self._held: dict[Doorman, None] = {}
        self.at_work: set[Run[Any]] = set()
        """The runs of requests that wait for work that other state depends on."""
        self._sweeper: Timer | None = None
        self._judge: Timer | None = None
        self._stopping = False
        self._all_gone = asyncio.Event()
        self._all_gone.set()

    # ------------------------------------------------------------------------------- lifecycle

    def bind(self) -> None:
        """Reserve the addresses; raise ListenError, with none left reserved, if one is taken.

        A client cannot connect yet. So a taken port is noticed before anything else starts.
        """
        try:
            for listener in self.listeners:
                listener.sockets += bind(listener, self._config)
        except BaseException:
            self.close_listeners()
            raise

    async def start(self) -> None:
        """Open every listener; raise ListenError, with none left open, if one cannot be."""
        try:
            for listener in self.listeners:
                await self._open(listener)
        except BaseException:
            self.close_listeners()
            raise
        self._sweep()

    async def stop(self, timeout_ms: float) -> None:
        """Stop accepting and reading, send the responses in flight, close.

        Connections with unsent responses after ``timeout_ms`` are cut off.
        """
        self._stopping = True
        self.close_listeners()
        if self._sweeper is not None:
            self._sweeper.cancel()
        self._close_held()
        for connection in list(self.connections):
            connection.drain()
        self.delivery.flush()
        try:
            async with self.clock.timeout(timeout_ms / 1000):
                await self._all_gone.wait()
        except TimeoutError:
            logger.warning("connections cut off at shutdown: count=%d", len(self.connections))
        await self.abort()

    async def abort(self) -> None:
        """Close everything at once, without responses."""
        self.cut_off()
        for run in list(self.at_work):
            run.cancel()
        await self._all_gone.wait()
        while self.at_work:
            await asyncio.wait([run.future for run in self.at_work if run.future is not None])

    def cut_off(self) -> None:
        """Start to close everything at once, without further handling or responses."""
        self._stopping = True
        self.delivery.end()
        self.large.close()
        if self.tls is not None:
            self.tls.handshakes.close()
        self.close_listeners()
        for timer in (self._sweeper, self._judge):
            if timer is not None:
                timer.cancel()
        self._close_held()
        for connection in list(self.connections):
            connection.abort()

    @property
    def tls_listeners(self) -> list[ListenerTls]:
        """Return the TLS settings of listeners with TLS."""
        return [each.security.tls for each in self.listeners if each.security.tls is not None]

    @property
    def is_listening(self) -> bool:
        """Return whether every listener is open."""
        return all(listener.servers for listener in self.listeners)

    # ------------------------------------------------------------------- called by connections

    @property
    def received_bytes(self) -> int:
        """Number of bytes received from clients, including closed connections."""
        received = sum(connection.received_bytes for connection in self.connections)
        return received + self.closed_received_bytes

    @property
    def sent_bytes(self) -> int:
        """Number of bytes sent to clients, including closed connections."""
        sent = sum(connection.sent_bytes for connection in self.connections)
        return sent + self.closed_sent_bytes

    def admit(self, connection: Connection) -> str | None:
        """Admit a new connection, or return the reason for a refusal.

        If all places are taken, the connection gets the place of the oldest stranger: a connection
        that never completed a request, or has not logged in.
        """
        refused = self._refusal_of(connection)
        if refused is not None:
            self.connections_refused += 1
            return refused
        self.connections[connection] = None
        self._newcomers[connection] = None
        self.connections_accepted += 1
        connection.number = self.connections_accepted
        self._per_host[connection.peer_host] += 1
        self._per_listener[connection.listener.name] += 1
        self._all_gone.clear()
        return None

    def _refusal_of(self, connection: Connection) -> str | None:
        if self._stopping:
            return "the broker is stopping"
        host = connection.peer_host
        of_host = self._host_limits.get(without_zone(host), self._config.max_connections_per_ip)
        if self._per_host[host] >= of_host:
            return f"max.connections.per.ip of {of_host} reached"
        needs_login = connection.listener.security.needs_login
        if needs_login and not self.failed_logins.may_try(connection.network):
            return "too many failed logins from this address"
        reached = f"max.connections of {self._max_connections} reached"
        if len(self.connections) >= self._max_connections and not self._make_room(reached):
            return reached
        name = connection.listener.name
        limit = self._listener_limits.get(name, INT_MAX)
        reached = f"max.connections of {limit} of listener {name} reached"
        if self._per_listener[name] >= limit and not self._make_room(reached, name):
            return reached
        return None

    def _make_room(self, reached: str, listener: str | None = None) -> bool:
        """Close the oldest stranger's connection, if there is one."""
        served, oldest = [], None
        for connection in self._newcomers:
            if not connection.is_stranger:
                served.append(connection)
            elif listener in {None, connection.listener.name}:
                oldest = connection
                break
        for connection in served:
            del self._newcomers[connection]
        if oldest is None:
            return False
        del self._newcomers[oldest]
        self.connections_refused += 1
        what = "not logged in" if oldest.requests else "no request yet"
        self.complain(f"connection closed: peer={oldest.peer} reason={reached}, {what}")
        oldest.abort()
        return True

    def forget(self, connection: Connection) -> None:
        """Forget a connection that is closed."""
        if connection not in self.connections:
            return
        del self.connections[connection]
        self._newcomers.pop(connection, None)
        self._per_listener[connection.listener.name] -= 1
        self.closed_received_bytes += connection.received_bytes
        self.closed_sent_bytes += connection.sent_bytes
        host = connection.peer_host
        self._per_host[host] -= 1
        if not self._per_host[host]:
            del self._per_host[host]
        if not self.connections:
            self._all_gone.set()

    def close_sessions(self, ended: Callable[[Session], bool], asker: Peer | None = None) -> None:
        """Close the connections of ended sessions.

        That of ``asker``, which has requested it, gets its response before.
        """
        for connection in list(self.connections):
            if not ended(connection.session):
                continue
            if connection is asker:
                connection.drain()
            else:
                connection.close("reason=the login does not hold any more")

    def complain(self, text: str) -> None:
        """Log an event of a client, within limits."""
        self._complaints.write(text)

    # ----------------------------------------------------------------------- called by doormen

    def held(self, doorman: Doorman) -> bool:
        """Add a waiting connection; return False if too many wait."""
        if len(self._held) >= HELD_MAX:
            return False
        self._held[doorman] = None
        return True

    def released(self, doorman: Doorman) -> None:
        """Forget a connection that waited."""
        self._held.pop(doorman, None)

    def refused(self, text: str) -> None:
        """Count and log a connection that is not served."""
        self.connections_refused += 1
        self.complain(text)

    def _close_held(self) -> None:
        for doorman in list(self._held):
            doorman.abort()

    # ------------------------------------------------------------------------ called by the rest

    def configure(self, config: BrokerConfig) -> None:
        """Use the limits of ``config`` for new connections."""
        self._config = config
        self._max_connections = min(config.max_connections, files_for_connections())
        self._host_limits = address_limits(config.max_connections_per_ip_overrides)
        self._listener_limits = _listener_limits(config)
        self._rates.configure(config)

    def brokers_changed(self) -> None:
        """Register that a broker of the cluster joined or left, this one included."""
        self.offsets_awaited_until_s = self.clock.monotonic() + BROKERS_REMEMBERED_S

    def replace_route(self, route: Route) -> None:
        """Serve one API by another route from now on."""
        self.routes.replace(route)
        for connection in self.connections:
            connection.forget_plans()

    # --------------------------------------------------------------------------------- private

    async def _open(self, listener: Listener) -> None:
        if not listener.sockets:
            listener.sockets += bind(listener, self._config)
        while listener.sockets:
            try:
                server = await self.loop.create_server(
                    lambda: self._protocol_of_next(listener),
                    sock=listener.sockets[0],
                    backlog=self._config.socket_listen_backlog_size,
                )
            except OSError as error:  # Another process was as quick.
                raise _listen_error(listener, error) from error
            del listener.sockets[0]
            listener.servers.append(server)

    def _protocol_of_next(self, listener: Listener) -> asyncio.BaseProtocol:
        if not self._rates:
            return self._new_protocol(listener)
        return Doorman(
            self,
            self.clock,
            partial(self._rates.judge, listener.name),
            partial(self._new_protocol, listener),
        )

    def _new_protocol(self, listener: Listener) -> asyncio.BufferedProtocol:
        """Return the protocol of the next connection of a listener."""
        connection, tls = Connection(self, listener), listener.security.tls
        if self.tls is None or tls is None:
            return connection
        return TlsTransport(self.tls, tls, connection)

    def close_listeners(self) -> None:
        """Close the listeners; connections stay."""
        for listener in self.listeners:
            for server in listener.servers:
                server.close()
            listener.servers.clear()
            for sock in listener.sockets:
                sock.close()
            listener.sockets.clear()

    def _judge_later(self) -> None:
        """Schedule a check of the claims that hold memory for which others wait."""
        self._judge = self.clock.call_later(JUDGE_SECONDS * 1000, self._judge_claims)

    def _judge_claims(self) -> None:
        if self.frame_budget.judge():
            self._judge_later()

    def _sweep(self) -> None:
        now = self.clock.monotonic()
        for connection in list(self.connections):
            connection.sweep(now)
        timeout = min(self.receive_timeout, self.idle_timeout, self.login_timeout)
        interval_ms = min(SWEEP_INTERVAL_MS, timeout * 1000 / 4)
        self._sweeper = self.clock.call_later(max(interval_ms, 1), self._sweep)


def _listener_limits(config: BrokerConfig) -> dict[str, int]:
    """Return the ``max.connections`` that listeners have for themselves."""
    limits = {}
    for endpoint in config.endpoints:
        listener = config.for_listener(endpoint.name)
        if listener.name_of("max.connections") is not None:
            limits[endpoint.name] = cast("int", listener.value("max.connections"))
    return limits


def bytes_or_unlimited(size: int) -> int:
    """Return a limit in bytes; -1 (no limit) becomes a number that is never reached."""
    return size if size >= 0 else 1 << 62


def files_for_connections() -> int:
    """Return the number of connections that the limit on open files allows."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit == resource.RLIM_INFINITY:
        return 1 << 30
    return max(limit - RESERVED_FILES, limit // 2)


def bind(listener: Listener, config: BrokerConfig) -> list[socket.socket]:
    """Return the sockets of one listener, IPv4 and IPv6 where both exist, all on one port.

    Sets ``listener.bound``. Raises ListenError.
    """
    try:
        addresses = resolve(listener.host)
    except OSError as error:
        raise _listen_error(listener, error) from error
    for attempts_left in reversed(range(16)):
        try:
            sockets = bind_all(addresses, listener.port, config)
        except OSError as error:
            # With port 0 the one port that the first family got may be taken in the other.
            if listener.port == 0 and error.errno == errno.EADDRINUSE and attempts_left:
                continue
            raise _listen_error(listener, error) from error
        host = "localhost" if listener.host in ANY_HOST else listener.host
        listener.bound = (host, sockets[0].getsockname()[1])
        return sockets
    raise AssertionError("unreachable")


def _listen_error(listener: Listener, error: OSError) -> ListenError:
    address = f"{listener.name}://{address_text(listener.host, listener.port)}"
    found = ListenError(f"cannot listen on {address}: {error.strerror or error}")
    found.is_taken = error.errno == errno.EADDRINUSE
    return found


def resolve(host: str) -> list[tuple[socket.AddressFamily, str]]:
    """Return the addresses of a listener's host, IPv4 first."""
    if host in ANY_HOST:
        return [(socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")]  # noqa: S104
    if host == "localhost":  # Both, even if the machine's hosts file lacks one (RFC 6761)
        return [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    addresses = {(info[0], str(info[4][0])) for info in found}
    return sorted(addresses, key=lambda address: (address[0] != socket.AF_INET, address[1]))


def bind_all(
    addresses: list[tuple[socket.AddressFamily, str]], port: int, config: BrokerConfig
) -> list[socket.socket]:
    """Bind one socket per address to one port; a family this machine lacks is left out."""
    sockets: list[socket.socket] = []
    try:
        for number, (family, address) in enumerate(addresses):
            try:
                sock = bound_socket(family, address, port, config)
            except OSError as error:
                last_chance = not sockets and number == len(addresses) - 1
                if error.errno not in NO_SUCH_FAMILY or last_chance:
                    raise
                continue
            sockets.append(sock)
            port = sock.getsockname()[1]
    except BaseException:
        for sock in sockets:
            sock.close()
        raise
    return sockets


def bound_socket(
    family: socket.AddressFamily, address: str, port: int, config: BrokerConfig
) -> socket.socket:
    """Return one bound socket, with the options that accepted connections inherit."""
    host = simulated_host()
    if host is not None:
        return host.bind(address, port)
    # asyncio sets TCP_NODELAY on what is accepted only if the protocol is named.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        if config.socket_send_buffer_bytes > 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, config.socket_send_buffer_bytes)
        if config.socket_receive_buffer_bytes > 0:
            size = config.socket_receive_buffer_bytes
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)
        sock.bind((address, port))
        sock.setblocking(False)
    except BaseException:
        sock.close()
        raise
    return sock
