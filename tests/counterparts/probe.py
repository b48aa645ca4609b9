"""Ask a broker for its Metadata from a raw socket, independently of any client or codec."""

import socket
import struct

METADATA_KEY = 3
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


def free_port() -> int:
    """Return a loopback port that nobody listens on at this moment."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
