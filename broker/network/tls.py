"""TLS between a socket's transport and a Connection: a protocol to one, a transport to the other.

Rules of this file:

* **No TLS before bytes have come.** A silent client costs what an idle connection does, and one
  that sends a handshake byte by byte what it has sent: OpenSSL gets whole records only.
* **Handshakes are computed on threads** (handshakes.py); until a step has come back the loop leaves
  the SSLObject alone. Afterwards it is the loop's.
* **Memory stays small.** All connections receive into one buffer, and OpenSSL is fed in slices,
  since its memory keeps the size it once had. A connection that does not receive holds the rest of
  one arrival. What is decrypted goes where the Connection wants it.
* **Nothing is decrypted inside of a call from the Connection**, only in a callback of the loop.
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast

from barnabas.broker.network.connection import TLS_HANDSHAKE, Connection
from barnabas.broker.network.handshakes import Handshakes
from barnabas.broker.network.tls_sending import RECORD_BYTES, TlsSender

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from barnabas.broker.security.listeners.tls import ListenerTls

RECEIVE_BYTES: Final = 64 * 1024
"""Maximum number of bytes received at once."""
FED_BYTES: Final = 32 * 1024
"""Maximum size of the data that OpenSSL gets at once: a request of 16 KB with its TLS records."""
HELD_MAX_BYTES: Final = 64 * 1024
"""Maximum size of received bytes that wait while a step of the handshake is under way."""
HANDSHAKE_MAX_BYTES: Final = 256 * 1024
"""Maximum size of a client's handshake; OpenSSL limits its certificates to 100 KB."""

_RECORD_HEAD_BYTES: Final = 5
_RECORD_MAX_BYTES: Final = RECORD_BYTES + 2048
_ALERT: Final = b"\x15\x03\x03\x00\x02\x02\x50"
"""Apache Kafka's response to plain text: internal error."""

NEW, SHAKING, OPEN, CLOSING, CLOSED = range(5)

_REASONS: Final = {
    "NO_SHARED_CIPHER": "there is no cipher suite that both have",
    "UNSUPPORTED_PROTOCOL": "there is no version of TLS that both have",
    "NO_SHARED_SIGNATURE_ALGORITHMS": "there is no signature algorithm that both have",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the client has sent no certificate",
}


class TlsHost:
    """State that connections with TLS share: the memory they receive into, and handshakes."""

    def __init__(self, loop: asyncio.AbstractEventLoop, limit: Callable[[], int]) -> None:
        """``limit`` returns the maximum number of handshakes at a time."""
        self.loop = loop
        self.scratch = memoryview(bytearray(RECEIVE_BYTES))
        self.handshakes = Handshakes(loop, limit)


class TlsTransport(asyncio.Transport, asyncio.BufferedProtocol):
    """One connection's TLS; see the rules at the head of this file."""

    __slots__ = (
        "_connection",
        "_fed_bytes",
        "_held",
        "_host",
        "_incoming",
        "_is_stepping",
        "_outgoing",
        "_paused",
        "_raw",
        "_sender",
        "_ssl",
        "_state",
        "_tls",
        "source",
    )

    def __init__(self, host: TlsHost, tls: ListenerTls, connection: Connection) -> None:
        self._host = host
        self._tls = tls
        self._connection: Connection | None = connection
        self._raw: asyncio.Transport
        self._sender: TlsSender
        self._state = NEW
        self._ssl: ssl.SSLObject | None = None
        self._incoming: ssl.MemoryBIO | None = None
        self._outgoing: ssl.MemoryBIO | None = None
        self._held = bytearray()
        self._fed_bytes = 0
        self._is_stepping = False
        self._paused = False
        self.source = ""
        """Key of this connection's share of the handshakes."""

    # ---------------------------------------------------------------- a protocol to the socket's

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Admit the connection, before any TLS."""
        assert self._connection is not None
        self._raw = cast("asyncio.Transport", transport)
        descriptor = transport.get_extra_info("socket").fileno()
        self._sender = TlsSender(self, self._host.loop, self._raw, descriptor)
        self._connection.connection_made(self)
        self.source = self._connection.network

    def connection_lost(self, error: Exception | None) -> None:
        """Drop everything."""
        connection = self._connection
        self._state = CLOSED
        self._end_handshake()
        self._sender.end()
        self._held.clear()
        if not self._is_stepping:
            self._ssl = self._incoming = self._outgoing = None
        self._connection = None
        if connection is not None:
            connection.connection_lost(error)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        """Return the memory for the socket's transport to receive into."""
        return self._host.scratch

    def buffer_updated(self, nbytes: int) -> None:
        """Decrypt the received bytes, or continue the handshake."""
        received = self._host.scratch[:nbytes]
        if self._state == OPEN and not self._paused and not self._held:
            self._feed(received)
        elif self._state <= OPEN:
            self._held += received
            if self._state == OPEN:
                self._pause_raw()
            else:
                self._shake()

    def eof_received(self) -> bool:
        """Close, as a Connection does, after sending written data."""
        self.close()
        return True

    def pause_writing(self) -> None:
        """Pause sending: the socket is full."""
        self._sender.filled()

    def resume_writing(self) -> None:
        """Resume sending."""
        self._sender.drained()

    # ------------------------------------------------------------- a transport to the Connection

    def get_extra_info(self, name: str, default: Any = None) -> Any:  # noqa: ANN401
        """Return information about the socket, and about its TLS."""
        return self._ssl if name == "ssl_object" else self._raw.get_extra_info(name, default)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:  # noqa: ARG002
        """Set the number of bytes that may wait before the connection's writing is paused."""
        self._sender.set_limit(high or 0)

    def get_write_buffer_size(self) -> int:
        """Return the number of bytes that wait, encrypted or not."""
        return self._sender.unsent_bytes

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send ``data``."""
        self.writelines([data])

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        """Send bytes and slices of files, in order."""
        if self._state == OPEN:
            self._sender.write(list_of_data)

    def is_closing(self) -> bool:
        """Return whether the connection is closing."""
        return self._state >= CLOSING or self._raw.is_closing()

    def pause_reading(self) -> None:
        """Stop delivering for now."""
        self._paused = True
        self._pause_raw()

    def resume_reading(self) -> None:
        """Resume delivery, first of buffered data."""
        self._paused = False
        if self._state == OPEN and self._has_data:
            self._host.loop.call_soon(self._resume)
        elif not self._is_stepping:
            self._resume_raw()

    def close(self) -> None:
        """Close the connection after all written data has been sent."""
        if self._state >= CLOSING:
            return
        is_open = self._state == OPEN
        self._state = CLOSING
        self._end_handshake()
        self._held.clear()
        if not is_open:
            self._raw.close()
        elif self._sender.is_empty:
            self._close_tls()
        else:
            self._sender.wait()

    def abort(self) -> None:
        """Close at once."""
        self._state = CLOSED
        self._end_handshake()
        self._raw.abort()

    # ------------------------------------------------------------------------ an Owner of a sender

    def sending_waits(self) -> None:
        """Pause the connection's writing."""
        if self._connection is not None:
            self._connection.pause_writing()

    def sending_goes_on(self) -> None:
        """Resume the connection's writing, or end."""
        if self._state == CLOSING:
            self._close_tls()
        elif self._connection is not None:
            self._connection.resume_writing()

    def sending_failed(self, error: OSError) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.writing_failed(error)

    # --------------------------------------------------------------------------------- handshake

    def _shake(self) -> None:
        """Pass complete records to OpenSSL, unless a step is running."""
        held = self._held
        if self._is_stepping:
            if len(held) > HELD_MAX_BYTES:
                self._pause_raw()
            return
        if self._state == NEW:
            if held[0] != TLS_HANDSHAKE:
                self._raw.write(_ALERT)
                self._refuse("the client does not speak TLS, which this listener wants")
                return
            self._state = SHAKING
            self._host.handshakes.begin(self)
        size = whole_records(held)
        if not size:
            return
        self._fed_bytes += size
        if self._fed_bytes > HANDSHAKE_MAX_BYTES:
            self._refuse(f"a handshake of more than {HANDSHAKE_MAX_BYTES} bytes")
            return
        records = bytes(held[:size])
        del held[:size]
        self._is_stepping = True
        self._host.handshakes.run(
            self, lambda: self._step(records), self._stepped, is_first=self._ssl is None
        )

    def _step(self, records: bytes) -> bool:
        """Continue the handshake, on a thread; return whether it is complete."""
        ssl_object, incoming = self._ssl, self._incoming
        if ssl_object is None or incoming is None:
            incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            self._incoming = incoming
            ssl_object = self._tls.context.wrap_bio(incoming, self._outgoing, server_side=True)
            self._ssl = ssl_object
        incoming.write(records)
        try:
            ssl_object.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True

    def _stepped(self, step: asyncio.Future[bool]) -> None:
        """Send the output of the step, and continue or end."""
        self._is_stepping = False
        if step.cancelled():
            return
        error = step.exception()
        if self._state != SHAKING:
            if self._connection is None:
                self._ssl = self._incoming = self._outgoing = None
            return
        outgoing = self._outgoing
        if outgoing is not None and outgoing.pending:
            self._raw.write(outgoing.read())
        if error is not None:
            self._host.handshakes.failed += 1
            self._refuse(f"TLS handshake failed: {describe(error)}")
        elif step.result():
            self._opened()
        else:
            self._shake_on()

    def _shake_on(self) -> None:
        if self._held:
            self._shake()
        if self._state == SHAKING and not self._paused and len(self._held) <= HELD_MAX_BYTES:
            self._resume_raw()

    def _opened(self) -> None:
        """Start the connection after the complete handshake."""
        assert self._ssl is not None
        assert self._outgoing is not None
        assert self._connection is not None
        self._state = OPEN
        self._end_handshake()
        self._host.handshakes.completed += 1
        self._sender.start(self._ssl, self._outgoing)
        self._connection.secured(self._ssl.getpeercert(binary_form=True))
        self._resume()

    def _end_handshake(self) -> None:
        if self._host.handshakes.end(self):
            self._is_stepping = False

    def displaced(self) -> None:
        """Refuse this handshake in favour of a later one."""
        self._refuse("more handshakes than barnabas.tls.handshakes.max")

    def _refuse(self, reason: str) -> None:
        if self._connection is not None:
            self._connection.close(f"listener={self._tls.name} reason={reason}")

    # --------------------------------------------------------------------------------- receiving

    def _feed(self, received: memoryview) -> None:
        """Decrypt in slices; keep data that the connection does not read yet."""
        incoming = self._incoming
        assert incoming is not None
        position, size = 0, len(received)
        while position < size and self._state == OPEN and not self._paused:
            end = position + FED_BYTES
            incoming.write(received[position:end])
            position = end
            self._deliver()
        if position < size and self._state == OPEN:
            self._held += received[position:]

    def _deliver(self) -> None:
        """Decrypt OpenSSL's data into the connection's buffer."""
        connection, incoming = self._connection, self._incoming
        # Its type stubs declare bytes as the result, for any argument.
        ssl_object: Any = self._ssl
        assert connection is not None
        assert ssl_object is not None
        assert incoming is not None
        while self._state == OPEN and not self._paused:
            buffer = connection.get_buffer(-1)
            room = len(buffer)
            assert room, "a connection without room does not receive"
            filled = 0
            ended = False
            try:
                while filled < room and (incoming.pending or ssl_object.pending()):
                    rest = buffer[filled:] if filled else buffer
                    count: int = ssl_object.read(room - filled, rest)
                    if not count:  # close_notify
                        ended = True
                        break
                    filled += count
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLError as error:
                self._broken(error)
                return
            if self._outgoing is not None and self._outgoing.pending:
                self._reply()
            if filled:
                connection.buffer_updated(filled)
            if ended:
                self.close()
            if filled < room:
                return

    @property
    def _has_data(self) -> bool:
        """Return whether data waits for the connection."""
        incoming, ssl_object = self._incoming, self._ssl
        if self._held or incoming is None or ssl_object is None:
            return bool(self._held)
        return bool(incoming.pending or ssl_object.pending())

    def _resume(self) -> None:
        """Deliver the buffered data, then receive."""
        if self._state != OPEN or self._paused:
            return
        self._deliver()
        if self._held and self._state == OPEN and not self._paused:
            held, self._held = self._held, bytearray()
            self._feed(memoryview(held))
        if self._state == OPEN and not self._paused:
            self._resume_raw()

    def _reply(self) -> None:
        """Send TLS's own messages."""
        assert self._outgoing is not None
        if not self._sender.reply(self._outgoing.read()):
            self._refuse("the client renews keys or handshakes without end")
            self.abort()

    def _broken(self, error: ssl.SSLError) -> None:
        """Close the connection with OpenSSL's alert: the received bytes are not those that were
        sent.
        """
        self._sender.drop()
        self._refuse(f"TLS failed: {describe(error)}")

    def _close_tls(self) -> None:
        """Send TLS's closing message, and close."""
        self._state = CLOSED
        ssl_object, outgoing = self._ssl, self._outgoing
        if ssl_object is not None and outgoing is not None:
            with suppress(ssl.SSLError):  # The peer's closing message is not awaited.
                ssl_object.unwrap()
            if outgoing.pending:
                self._raw.write(outgoing.read())
        self._raw.close()

    def _pause_raw(self) -> None:
        # A closing transport reads nothing more, and uvloop's raises when told so.
        if self._raw.is_reading() and not self._raw.is_closing():
            self._raw.pause_reading()

    def _resume_raw(self) -> None:
        if not self._raw.is_reading() and not self._raw.is_closing():
            self._raw.resume_reading()


def whole_records(data: bytearray) -> int:
    """Return the number of bytes of ``data`` in whole records; all, if it is not TLS."""
    position = 0
    while len(data) - position >= _RECORD_HEAD_BYTES:
        length = data[position + 3] << 8 | data[position + 4]
        if length > _RECORD_MAX_BYTES:
            return len(data)  # OpenSSL finds the right words.
        if len(data) - position < _RECORD_HEAD_BYTES + length:
            break
        position += _RECORD_HEAD_BYTES + length
    return position


def describe(error: BaseException) -> str:
    """Return a short description of the error."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the client's certificate: {error.verify_message}"
    reason = getattr(error, "reason", None)
    if not isinstance(reason, str):
        return str(error)
    if "_ALERT_" in reason:
        return f"the client refused: {reason.rpartition('_ALERT_')[2].lower().replace('_', ' ')}"
    return _REASONS.get(reason, reason.lower().replace("_", " "))
