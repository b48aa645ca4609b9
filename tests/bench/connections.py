"""Memory of a connection, with TLS and without: `python -m tests.bench.connections`."""

from __future__ import annotations

import socket
import ssl
import struct
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import NamedTuple

from barnabas.protocol.header import RequestHeader, request_frame
from barnabas.protocol.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic
from tests.attack.run import allow_many_files
from tests.certificates import Authority
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.broker_process import HOST

COUNT = 1000
LARGE_BYTES = 200_000
"""About what a request has that asks for many names."""


class Cost(NamedTuple):
    """Resident memory of the broker for each connection, in bytes."""

    idle_bytes: float
    """Memory after one small request."""
    used_bytes: float
    """Memory after another request of 200 KB."""


def measure(count: int, *, tls: bool) -> Cost:
    """Measure with a broker of its own."""
    allow_many_files()
    with BarnabasProcess().serve_tls(Authority().issue()) as broker, ExitStack() as stack:
        port = broker.more_ports["SSL"] if tls else broker.port
        for _ in range(10):  # What is imported and allocated once.
            with dial(port, tls=tls) as first:
                ask(first, large())
        before = broker.resident_bytes()
        connections = [stack.enter_context(dial(port, tls=tls)) for _ in range(count)]
        for each in connections:
            ask(each, small())
        idle = broker.resident_bytes()
        for each in connections:
            ask(each, large())
        used = broker.resident_bytes()
    return Cost((idle - before) / count, (used - before) / count)


def dial(port: int, *, tls: bool) -> socket.socket:
    """Connect."""
    plain = socket.create_connection((HOST, port), 60)
    if not tls:
        return plain
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context.wrap_socket(plain)


def small() -> bytes:
    """A request of some bytes."""
    header = RequestHeader(API_VERSIONS.key, 3, 1, "bench")
    return b"".join(request_frame(API_VERSIONS, header, ApiVersionsRequest("bench", "1")))


def large() -> bytes:
    """Return a Metadata request of 200 KB, about topics that do not exist."""
    names = [f"{number:0200}" for number in range(LARGE_BYTES // 200)]
    asked = MetadataRequest([MetadataRequestTopic(name=name) for name in names])
    asked.allow_auto_topic_creation = False
    header = RequestHeader(METADATA.key, 9, 2, "bench")
    return b"".join(request_frame(METADATA, header, asked))


def ask(connection: socket.socket, request: bytes) -> None:
    """Send a request, and read its answer."""
    connection.sendall(request)
    (left,) = struct.unpack(">i", b"".join(pieces(connection, 4)))
    for _ in pieces(connection, left):
        pass


def pieces(connection: socket.socket, size: int) -> Iterator[bytes]:
    """Read so many bytes."""
    while size:
        piece = connection.recv(size)
        if not piece:
            raise ConnectionError("the broker hung up")
        size -= len(piece)
        yield piece


def main() -> None:
    """Print a table."""
    print(f"memory of a connection in KB, {COUNT:,} connections; python {sys.version.split()[0]}")
    print("| | idle | after a request of 200 KB |")
    print("|---|---|---|")
    for name, tls in (("plain", False), ("TLS", True)):
        cost = measure(COUNT, tls=tls)
        print(f"| {name} | {cost.idle_bytes / 1000:.1f} | {cost.used_bytes / 1000:.1f} |")


if __name__ == "__main__":
    main()
