"""Request a broker's Metadata over a raw socket, independently of any client or codec."""

import contextlib
import itertools
import os
import random
import socket
import struct
from collections.abc import Iterator

METADATA_KEY = 3
FIRST_PORT = 12_000
PORTS_EACH = 1_250
WORKERS = 16
# Version 1 with an empty topic list: "no topics", understood by every broker since 0.10.
_METADATA_REQUEST = struct.pack(">hhih5si", METADATA_KEY, 1, 1, 5, b"probe", 0)


def answers_metadata(host: str, port: int, *, timeout_s: float = 1.0) -> bool:
    """Return whether a broker listens there and names at least one broker in its Metadata."""
    try:
        with socket.create_connection((host, port), timeout=timeout_s) as connection:
            connection.sendall(struct.pack(">i", len(_METADATA_REQUEST)) + _METADATA_REQUEST)
            with connection.makefile("rb") as stream:
                header = stream.read(12)
                if len(header) < 12:
                    return False
                correlation_id, brokers = struct.unpack(">ii", header[4:])
                return bool(correlation_id == 1 and brokers >= 1)
    except OSError:
        return False


def accepts_connections(host: str, port: int, *, timeout_s: float = 1.0) -> bool:
    """Return whether a process listens there."""
    try:
        socket.create_connection((host, port), timeout=timeout_s).close()
    except OSError:
        return False
    return True


def free_port() -> int:
    """Return an unused loopback port that no client is given while its broker is down.

    It lies below those that the system gives to clients, and each worker of pytest has its own.
    """
    for port in itertools.islice(_PORTS, PORTS_EACH):
        with socket.socket() as listener, contextlib.suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port
    raise OSError("no port is free")


def _my_ports() -> Iterator[int]:
    """Yield the ports from a random start: other runs of the tests on this machine do so, too."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % WORKERS
    first = FIRST_PORT + worker * PORTS_EACH
    start = random.randrange(PORTS_EACH)
    return (first + (start + each) % PORTS_EACH for each in itertools.count())


_PORTS = _my_ports()
