"""Request a broker's Metadata over a raw socket, independently of any client or codec."""

import contextlib
import itertools
import random
import socket
import struct
from collections.abc import Iterator

METADATA_KEY = 3
HOST = "127.0.0.1"
PORTS_EACH = 250
BLOCKS = range(12_000, 27_000, PORTS_EACH)
"""The first port of each block. `barnabas prove` takes ports above the last block."""
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

    It lies below those that the system gives to clients, and in a block of this process.
    """
    for port in itertools.islice(_PORTS, PORTS_EACH):
        with socket.socket() as listener, contextlib.suppress(OSError):
            listener.bind((HOST, port))
            return port
    raise OSError(f"no port of {PORTS_EACH} is free")


def ports_of_a_block() -> Iterator[int]:
    """Yield the ports of a block again and again; until this process ends no other gets the block.

    Its first port stays bound as the lock: the port of a broker that is down must not go to another
    worker, nor to a worker of another target of `make` that runs at once.
    """
    for first in random.sample(BLOCKS, len(BLOCKS)):
        with socket.socket() as guard:
            try:
                guard.bind((HOST, first))
            except OSError:
                continue
            yield from itertools.cycle(range(first + 1, first + PORTS_EACH))
    raise OSError(f"{len(BLOCKS)} processes of tests have all blocks of ports")


_PORTS = ports_of_a_block()
