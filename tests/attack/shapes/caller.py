"""Clients that send whole requests as bytes and care little about the responses."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Iterable
from typing import Self

from barnabas.protocol.messages.sasl_authenticate import SASL_AUTHENTICATE, SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SASL_HANDSHAKE, SaslHandshakeRequest
from tests.attack.peer import RESET_ON_CLOSE, frame
from tests.broker.security.access_users import PASSWORD
from tests.counterparts.broker_process import HOST

PATIENCE_S = 120.0
"""A bound that ends a hang: the broker responds or closes long before."""
PIECE_BYTES = 1 << 20
BLOCKED_S = 0.3
"""A broker that has read nothing for this long does not read on."""
SMALL_BUFFER_BYTES = 4096
_LENGTH = struct.Struct(">i")


class NoResponse(Exception):
    """The broker neither responded nor closed the connection."""


class Caller:
    """One blocking connection."""

    def __init__(self, port: int, *, receive_buffer_bytes: int = 0) -> None:
        self._socket = socket.socket()
        if receive_buffer_bytes:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        self._socket.settimeout(PATIENCE_S)
        self._socket.connect((HOST, port))

    def log_in(self, user: str) -> Self:
        """Log in by PLAIN."""
        token = f"\0{user}\0{PASSWORD}".encode()
        for request in (
            frame(SASL_HANDSHAKE, 1, SaslHandshakeRequest("PLAIN")),
            frame(SASL_AUTHENTICATE, 1, SaslAuthenticateRequest(token)),
        ):
            if not self.ask(request):
                raise ConnectionError(f"the broker did not let {user} log in")
        return self

    def ask(self, request: bytes) -> int:
        """Send a frame and read the response; return its length, or 0 if the broker closed."""
        return self._whole(request, self._read_frame)

    def ask_http(self, request: bytes) -> int:
        """Send a request that closes the connection; return the length of the response."""
        return self._whole(request, self._read_all)

    def send_unread(self, requests: Iterable[bytes]) -> None:
        """Send requests for as long as the broker reads them, and read nothing."""
        self._socket.settimeout(BLOCKED_S)
        with contextlib.suppress(OSError):
            for request in requests:
                self._socket.sendall(request)
        self._socket.settimeout(PATIENCE_S)

    def reset(self) -> None:
        """Close with a reset."""
        with contextlib.suppress(OSError):
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        self.close()

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def _whole(self, request: bytes, read: object) -> int:
        try:
            with contextlib.suppress(ConnectionError):
                self._socket.sendall(request)
            return read()  # type: ignore[operator]
        except ConnectionError:
            return 0
        except TimeoutError as error:
            raise NoResponse(f"no response within {PATIENCE_S:.0f} s") from error

    def _read_frame(self) -> int:
        head = b""
        while len(head) < _LENGTH.size:
            piece = self._socket.recv(_LENGTH.size - len(head))
            if not piece:
                return 0
            head += piece
        left = size = _LENGTH.unpack(head)[0]
        while left:
            piece = self._socket.recv(min(left, PIECE_BYTES))
            if not piece:
                return 0
            left -= len(piece)
        return size

    def _read_all(self) -> int:
        until_s = time.monotonic() + PATIENCE_S
        size = 0
        while piece := self._socket.recv(PIECE_BYTES):
            size += len(piece)
            if time.monotonic() > until_s:
                raise TimeoutError
        return size
