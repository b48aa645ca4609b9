"""The load client: pre-encoded frames out, answers counted, nothing else.

One process, one epoll, non-blocking sockets. After a check of the error code at its fixed
position, a response is skipped by its length. A cheap client is the point: it must not hide the
broker.
"""

import gc
import resource
import select
import socket
import ssl
import struct
import time
from array import array
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from barnabas.protocol.header import RequestHeader, request_frame
from barnabas.protocol.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from tests.bench.frames import Frames
from tests.counterparts.broker_process import HOST
from tests.counterparts.usage import CpuTime

RECEIVE_BYTES = 1 << 20
DRAIN_TIMEOUT_S = 30
_SIZE = struct.Struct(">i")
_ERROR = struct.Struct(">h")


class RequestFailed(Exception):
    """A response of the broker with an error code, or with an unexpected shape."""


class Measurement(NamedTuple):
    """Result of one run; rates per second, times in seconds."""

    rate: float
    p50_s: float
    p99_s: float
    broker_cpu_s: float
    """CPU time of the broker, user and system, per request."""
    client_share: float
    """Share of one core that the load client uses."""


def _introduce(connection: socket.socket) -> None:
    """Name the client whose batches are sent: known software costs a broker less to verify."""
    header = RequestHeader(API_VERSIONS.key, 3, 0, "bench")
    request = ApiVersionsRequest("apache-kafka-java", "4.3.0")
    connection.sendall(b"".join(request_frame(API_VERSIONS, header, request)))
    with connection.makefile("rb") as answer:
        (size,) = _SIZE.unpack(answer.read(_SIZE.size))
        answer.read(size)


class Connection:
    """One socket that keeps a fixed number of requests in flight."""

    __slots__ = (
        "error_position",
        "frame_bytes",
        "kept",
        "period",
        "position",
        "skip",
        "socket",
        "started",
        "stream",
        "unsent",
    )

    def __init__(self, port: int, frames: Frames, in_flight: int) -> None:
        self.socket = self._connected(port)
        _introduce(self.socket)
        self.socket.setblocking(False)
        self.frame_bytes = len(frames.requests[0])
        assert all(len(request) == self.frame_bytes for request in frames.requests)
        joined = b"".join(frames.requests)
        self.period = len(joined)
        # Enough behind the period that a full window can be sent from any place in one piece.
        self.stream = memoryview(joined * (1 + -(-in_flight // len(frames.requests))))
        self.error_position = frames.error_position
        self.position = 0
        self.unsent = 0
        self.skip = 0
        self.kept = b""
        self.started: deque[float] = deque()

    def _connected(self, port: int) -> socket.socket:
        connected = socket.create_connection((HOST, port))
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connected

    def send(self, count: int, now: float) -> bool:
        """Queue `count` more requests and send what fits; return whether all of it went out."""
        self.started.extend([now] * count)
        self.unsent += count * self.frame_bytes
        return self.flush()

    def flush(self) -> bool:
        """Send the queued bytes; return whether all of them were sent."""
        while self.unsent:
            position = self.position
            size = min(self.unsent, len(self.stream) - position)
            try:
                sent = self.socket.send(self.stream[position : position + size])
            except BlockingIOError:
                return False
            self.unsent -= sent
            self.position = (position + sent) % self.period
        return True

    def receive(self, buffer: bytearray, view: memoryview) -> int:
        """Read into the shared buffer; return the number of complete responses."""
        kept = len(self.kept)
        if kept:
            buffer[:kept] = self.kept
            self.kept = b""
        received = self.socket.recv_into(view[kept:])
        if not received:
            raise RequestFailed("the broker closed the connection")
        return self._count(view, kept + received)

    def _count(self, view: memoryview, end: int) -> int:
        position = completed = 0
        needed = self.error_position + 2
        while True:
            if self.skip:
                step = min(self.skip, end - position)
                position += step
                self.skip -= step
                if self.skip:
                    return completed
                completed += 1
            if end - position < needed:
                self.kept = bytes(view[position:end])
                return completed
            (size,) = _SIZE.unpack_from(view, position)
            (error,) = _ERROR.unpack_from(view, position + self.error_position)
            if error or size + 4 < needed:
                raise RequestFailed(f"error code {error} in an answer of {size} bytes")
            self.skip = size + 4


class TlsConnection(Connection):
    """The same over TLS. Whose certificate it is does not matter here."""

    __slots__ = ()

    def _connected(self, port: int) -> socket.socket:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context.wrap_socket(super()._connected(port))

    def flush(self) -> bool:
        """Send the queued bytes; return whether all of them were sent."""
        try:
            return super().flush()
        except ssl.SSLWantWriteError:
            return False

    def receive(self, buffer: bytearray, view: memoryview) -> int:
        """Read all that has come, which may be many records."""
        completed = 0
        try:
            while True:
                completed += super().receive(buffer, view)
        except ssl.SSLWantReadError:
            return completed


class ClosedLoop:
    """Connections that each keep `in_flight` requests outstanding: against one broker, or several.

    ``port`` is every connection's, or a port for each of them.
    """

    def __init__(
        self,
        port: int | Sequence[int],
        frames: Sequence[Frames],
        in_flight: int,
        *,
        tls: bool = False,
    ) -> None:
        kind = TlsConnection if tls else Connection
        ports = [port] * len(frames) if isinstance(port, int) else port
        self._connections = [
            kind(to, each, in_flight) for to, each in zip(ports, frames, strict=True)
        ]
        self._in_flight = in_flight
        self._poll = select.epoll()
        self._by_descriptor = {c.socket.fileno(): c for c in self._connections}
        for descriptor in self._by_descriptor:
            self._poll.register(descriptor, select.EPOLLIN)
        self._buffer = bytearray(RECEIVE_BYTES)
        self._view = memoryview(self._buffer)

    def run(
        self, warm_up_s: float, duration_s: float, broker_cpu: Callable[[], CpuTime]
    ) -> Measurement:
        """Load the broker, measure after the warm-up, wait for the last answers, disconnect."""
        latencies = array("d")
        gc.disable()
        try:
            now = time.perf_counter()
            for connection in self._connections:
                self._send(connection, self._in_flight, now)
            self._turn_until(now + warm_up_s, array("d"))
            cpu_before, own_before = broker_cpu().total_s, _own_cpu_s()
            started = time.perf_counter()
            ended = self._turn_until(started + duration_s, latencies)
            cpu_s, own_s = broker_cpu().total_s - cpu_before, _own_cpu_s() - own_before
            self._drain()
        finally:
            gc.enable()
            self.close()
        return summarise(latencies, ended - started, cpu_s, own_s)

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections:
            connection.socket.close()
        self._poll.close()

    def _turn_until(self, deadline: float, latencies: "array[float]") -> float:
        """Send a request for each response until the deadline; return the time of the end."""
        now = time.perf_counter()
        while now < deadline:
            for descriptor, event in self._poll.poll(1.0):
                connection = self._by_descriptor[descriptor]
                if event & select.EPOLLOUT and connection.flush():
                    self._poll.modify(descriptor, select.EPOLLIN)
                if event & ~select.EPOLLOUT:
                    completed = connection.receive(self._buffer, self._view)
                    now = time.perf_counter()
                    for _ in range(completed):
                        latencies.append(now - connection.started.popleft())
                    if completed:
                        self._send(connection, completed, now)
            now = time.perf_counter()
        return now

    def _send(self, connection: Connection, count: int, now: float) -> None:
        if not connection.send(count, now):
            self._poll.modify(connection.socket.fileno(), select.EPOLLIN | select.EPOLLOUT)

    def _drain(self) -> None:
        """Take the outstanding answers, so that nothing of this run is left in the next one."""
        deadline = time.perf_counter() + DRAIN_TIMEOUT_S
        waiting = set(self._connections)
        while waiting:
            if time.perf_counter() > deadline:
                raise RequestFailed("the last answers did not come")
            for descriptor, event in self._poll.poll(1.0):
                connection = self._by_descriptor[descriptor]
                if event & select.EPOLLOUT and connection.flush():
                    self._poll.modify(descriptor, select.EPOLLIN)
                if event & ~select.EPOLLOUT:
                    for _ in range(connection.receive(self._buffer, self._view)):
                        connection.started.popleft()
                if not connection.started:
                    waiting.discard(connection)


def summarise(
    latencies: "array[float]", elapsed_s: float, broker_cpu_s: float, own_cpu_s: float
) -> Measurement:
    """Return the measurement of a run from its raw numbers."""
    if not latencies:
        raise RequestFailed("no answer came during the measurement")
    ordered = sorted(latencies)
    count = len(ordered)
    return Measurement(
        count / elapsed_s,
        ordered[count // 2],
        ordered[min(count - 1, count * 99 // 100)],
        broker_cpu_s / count,
        own_cpu_s / elapsed_s,
    )


def _own_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
