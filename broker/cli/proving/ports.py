"""Free ports of the loopback interface."""

from __future__ import annotations

import contextlib
import socket
from typing import Final

from barnabas.storage.runtime.chance import random_below

_FIRST: Final = 12_000
_COUNT: Final = 18_000
"""Ports below those that systems give to clients: none of them takes the port of a dead broker."""
_ATTEMPTS: Final = 200


def free_port(host: str) -> int:
    """Return a port on which nothing listens; raises OSError."""
    for _ in range(_ATTEMPTS):
        port = _FIRST + random_below(_COUNT)
        with socket.socket() as listener, contextlib.suppress(OSError):
            listener.bind((host, port))
            return port
    raise OSError(f"{host}: no free port in {_ATTEMPTS} attempts")
