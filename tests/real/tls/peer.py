"""A client without a socket: it decides byte by byte what the other end gets."""

from __future__ import annotations

import socket
import ssl

from tests.broker.tls.listener import trusting_context


class TlsPeer:
    """TLS over a blocking socket, with the records in the hands of the test."""

    def __init__(self, address, context: ssl.SSLContext | None = None) -> None:
        self.socket = socket.create_connection(address, 20)
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = (context or trusting_context()).wrap_bio(self.incoming, self.outgoing)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def take(self) -> bytes:
        """Return the bytes that TLS sends."""
        return self.outgoing.read()

    def receive(self) -> bytes:
        """Receive something, and hand it to TLS; b"" at the end."""
        try:
            data = self.socket.recv(1 << 16)
        except ConnectionResetError:
            data = b""
        self.incoming.write(data) if data else self.incoming.write_eof()
        return data

    def step(self) -> bool:
        """Continue the handshake as far as possible; return whether it is done."""
        try:
            self.tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True

    def shake(self, send=None):
        """Do the whole handshake; ``send`` sends bytes in its own way."""
        send = send or self.socket.sendall
        while not self.step():
            if data := self.take():
                send(data)
            if not self.receive():
                raise ConnectionError("closed in the middle of the handshake")
        if data := self.take():
            send(data)
        return self

    def seal(self, data: bytes) -> bytes:
        """Encrypt."""
        view = memoryview(data)
        while view:
            view = view[self.tls.write(view) :]
        return self.take()

    def read(self, size: int) -> bytes:
        """Read exactly so much plain text; less at the end."""
        result = b""
        while len(result) < size:
            try:
                data = self.tls.read(size - len(result))
            except ssl.SSLWantReadError:
                self.receive()
                continue
            except ssl.SSLEOFError:
                break
            if not data:
                break
            result += data
        return result

    @property
    def is_closed(self) -> bool:
        """Whether the other end has closed the connection, with or without a TLS alert."""
        return self.read(1) == b""
