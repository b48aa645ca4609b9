"""A client's end of TLS that need not keep to it."""

from __future__ import annotations

import contextlib
import socket
import ssl
import tempfile

from tests.attack.peer import PIECE_BYTES, Peer, Wire
from tests.attack.records import RENEGOTIATION_SUITE, Sealer12, Sealer13, logged_secrets

_SERVER_RANDOM = slice(11, 43)
"""In the first bytes of a server: behind the heads of record and message, and the version."""


def trusting() -> ssl.SSLContext:
    """Return the context of a client that believes every broker."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def hello() -> bytes:
    """Return the first message of a client, as OpenSSL makes it."""
    outgoing = ssl.MemoryBIO()
    tls = trusting().wrap_bio(ssl.MemoryBIO(), outgoing)
    with contextlib.suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


class SecureWire(Wire):
    """A connection that speaks the protocol over TLS; ``shake`` comes first."""

    def __init__(self, sock: socket.socket, client_id: str = "wire") -> None:
        super().__init__(sock, client_id)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls: ssl.SSLObject
        self._server_random = b""

    async def shake(self, context: ssl.SSLContext | None = None) -> None:
        """Do the handshake; raises ConnectionError or ssl.SSLError."""
        self._tls = (context or trusting()).wrap_bio(self._incoming, self._outgoing)
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self.send_sealed(self._outgoing.read())
                data = await super().receive()
                self._server_random = self._server_random or data[_SERVER_RANDOM]
                if not data:
                    raise ConnectionError("hung up in the middle of the handshake") from None
                self._incoming.write(data)
            else:
                break
        await self.send_sealed(self._outgoing.read())

    async def sealer(self, version: ssl.TLSVersion) -> Sealer12 | Sealer13:
        """Complete the handshake, and return the sealer of the client's later records."""
        context = trusting()
        context.minimum_version = context.maximum_version = version
        if version is ssl.TLSVersion.TLSv1_2:
            context.set_ciphers(RENEGOTIATION_SUITE)
        with tempfile.NamedTemporaryFile(mode="r", encoding="ascii") as log:
            context.keylog_filename = log.name
            await self.shake(context)
            secrets = logged_secrets(log.read())
        if version is ssl.TLSVersion.TLSv1_2:
            client_random, master = secrets["CLIENT_RANDOM"]
            return Sealer12(client_random, self._server_random, master)
        return Sealer13(secrets["CLIENT_TRAFFIC_SECRET_0"][1])

    async def send(self, data: bytes) -> None:
        if data:
            self._tls.write(data)
            await self.send_sealed(self._outgoing.read())

    async def send_sealed(self, records: bytes) -> None:
        """Send bytes past TLS."""
        await super().send(records)

    async def hung_up_sealed(self, patience_s: float) -> tuple[bool, int]:
        """Read past TLS until the broker closes, as ``hung_up`` does."""
        raw = Peer(self.socket)
        return await raw.hung_up(patience_s)

    async def receive(self, size: int = PIECE_BYTES) -> bytes:
        while True:
            try:
                return self._tls.read(size)
            except ssl.SSLWantReadError:
                data = await super().receive()
                if data:
                    self._incoming.write(data)
                else:
                    self._incoming.write_eof()
            except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
                return b""
