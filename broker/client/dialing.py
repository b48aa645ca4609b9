"""Connections of the blocking client. A simulation can replace the real network."""

from __future__ import annotations

import select
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Dial = Callable[[tuple[str, int], float | None], socket.socket | None]

_dial: Dial = lambda _address, _timeout_seconds: None  # noqa: E731  Replaced by dialing().


def connect(address: tuple[str, int], timeout_seconds: float | None = None) -> socket.socket:
    """Return a socket that is connected to ``address``; raises OSError.

    ``timeout_seconds`` is the timeout of the connection attempt and of all calls of the socket, or
    None for no timeout.
    """
    dialed = _dial(address, timeout_seconds)
    return socket.create_connection(address, timeout_seconds) if dialed is None else dialed


def is_readable(connected: socket.socket, timeout_seconds: float) -> bool:
    """Wait until the socket can receive; return False after ``timeout_seconds``."""
    simulated: Callable[[float], bool] | None = getattr(connected, "has_received", None)
    if simulated is not None:
        return simulated(timeout_seconds)
    readable, _, _ = select.select([connected], [], [], timeout_seconds)
    return bool(readable)


@contextmanager
def dialing(dial: Dial) -> Iterator[None]:
    """Open connections with ``dial`` inside the ``with`` block.

    If ``dial`` returns None, ``connect`` uses the real network.
    """
    global _dial  # noqa: PLW0603  Process-wide.
    before, _dial = _dial, dial
    try:
        yield
    finally:
        _dial = before
