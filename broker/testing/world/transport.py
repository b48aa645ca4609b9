"""Transport of a simulation: connects a protocol of an event loop to an end of a connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Final

from barnabas.broker.testing.world.network import SOCKET_BUFFER_BYTES, End

_HIGH_BYTES: Final = 1 << 16


class _NoSocket:
    """Substitute for the socket of a transport."""

    def __init__(self, end: End) -> None:
        self._end = end

    def fileno(self) -> int:
        """Return -1, because there is no descriptor."""
        return -1

    def getsockname(self) -> tuple[str, int]:
        """Return this end's address."""
        return self._end.local

    def getpeername(self) -> tuple[str, int]:
        """Return the other end's address."""
        return self._end.remote

    def setsockopt(self, *_: object) -> None:
        """Ignore a socket option."""


class SimulatedTransport(asyncio.Transport):
    """Transport that passes the events of one end of a connection to a protocol."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, end: End, protocol: asyncio.BaseProtocol
    ) -> None:
        super().__init__({"peername": end.remote, "sockname": end.local, "socket": _NoSocket(end)})
        self._loop = loop
        self._end = end
        self._protocol = protocol
        self._high_bytes, self._low_bytes = _HIGH_BYTES, _HIGH_BYTES // 4
        self._is_paused = False
        self._has_paused_protocol = False
        self._is_closing = False
        self._has_lost = False
        self._has_told_end = False
        self._is_scheduled = False
        end.reader = self
        loop.call_soon(self._begin)

    # ------------------------------------------------------------------------------ notifications

    def is_readable(self) -> None:
        """Schedule the delivery of arrived bytes to the protocol."""
        if not self._is_scheduled:
            self._is_scheduled = True
            self._call_soon(self._deliver)

    def is_writable(self) -> None:
        """Schedule a check whether the protocol can write again, or the transport can close."""
        if self._has_paused_protocol or self._is_closing:
            self._call_soon(self._see_room)

    # ---------------------------------------------------------------------------------- reading

    def is_reading(self) -> bool:
        """Return whether the protocol receives bytes."""
        return not self._is_paused and not self._is_closing

    def pause_reading(self) -> None:
        """Pause the delivery of arrived bytes."""
        self._is_paused = True

    def resume_reading(self) -> None:
        """Resume the delivery of arrived bytes."""
        self._is_paused = False
        self.is_readable()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Set the protocol that receives bytes from now on."""
        self._protocol = protocol
        self.is_readable()

    def get_protocol(self) -> asyncio.BaseProtocol:
        """Return the protocol."""
        return self._protocol

    # ---------------------------------------------------------------------------------- writing

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send bytes to the other end."""
        if self._has_lost or not data:
            return
        self._end.send(bytes(data))
        if self.get_write_buffer_size() > self._high_bytes and not self._has_paused_protocol:
            self._has_paused_protocol = True
            self._protocol.pause_writing()

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        """Send several byte strings as one."""
        self.write(b"".join(list_of_data))

    def write_eof(self) -> None:
        """End the stream to the other end."""
        self._end.end()

    def can_write_eof(self) -> bool:
        """Return True, because an end can end its stream."""
        return True

    def get_write_buffer_size(self) -> int:
        """Return the number of bytes that do not fit in the simulated socket buffers."""
        return max(0, self._end.other.unread_bytes - SOCKET_BUFFER_BYTES)

    def get_write_buffer_limits(self) -> tuple[int, int]:
        """Return the low and the high limit of the write buffer, in bytes."""
        return self._low_bytes, self._high_bytes

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Set the high and the low limit of the write buffer, in bytes."""
        if high is None:
            high = _HIGH_BYTES if low is None else 4 * low
        self._high_bytes = high
        self._low_bytes = high // 4 if low is None else low

    # ---------------------------------------------------------------------------------- closing

    def is_closing(self) -> bool:
        """Return whether the transport is closed or closing."""
        return self._is_closing

    def close(self) -> None:
        """Close the transport after the other end has received all written bytes."""
        if not self._is_closing:
            self._is_closing = True
            self._see_room()

    def abort(self) -> None:
        """Close the transport immediately.

        As with TCP, what was sent still arrives, unless received bytes are unread: then the
        connection is reset.
        """
        self._is_closing = True
        if not self._has_lost:
            if self._end.received:
                self._end.reset()
            else:
                self._end.close()
            self._lose(None)

    def get_extra_info(self, name: str, default: Any = None) -> Any:  # noqa: ANN401
        """Return an address, the substitute socket, or ``default``."""
        return self._extra.get(name, default)  # type: ignore[attr-defined]

    # ---------------------------------------------------------------------------------- private

    def _call_soon(self, callback: Callable[..., object], *args: object) -> None:
        """Schedule a callback, unless the loop is closed because its broker has crashed."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(callback, *args)

    def _begin(self) -> None:
        self._protocol.connection_made(self)
        self.is_readable()

    def _deliver(self) -> None:
        self._is_scheduled = False
        end, protocol = self._end, self._protocol
        if self._has_lost:
            return
        while end.received and self.is_reading():
            protocol = self._protocol
            if isinstance(protocol, asyncio.BufferedProtocol):
                buffer = memoryview(protocol.get_buffer(len(end.received)))
                data = end.take(len(buffer))
                buffer[: len(data)] = data
                protocol.buffer_updated(len(data))
            elif isinstance(protocol, asyncio.Protocol):
                protocol.data_received(end.take(1 << 16))
        if end.is_reset:
            self._is_closing = True
            end.close()
            self._lose(ConnectionResetError("Connection reset by peer"))
        elif end.has_ended and not end.received and self.is_reading() and not self._has_told_end:
            self._has_told_end = True
            assert isinstance(protocol, asyncio.BufferedProtocol | asyncio.Protocol)
            if not protocol.eof_received():
                self.close()

    def _see_room(self) -> None:
        left = self.get_write_buffer_size()
        if self._is_closing:
            if not left and not self._has_lost:
                self._end.close()
                self._lose(None)
        elif self._has_paused_protocol and left <= self._low_bytes:
            self._has_paused_protocol = False
            self._protocol.resume_writing()

    def _lose(self, error: Exception | None) -> None:
        if not self._has_lost:
            self._has_lost = True
            self._call_soon(self._protocol.connection_lost, error)
            self._protocol = asyncio.BaseProtocol()  # No cycle stays, as with asyncio's transports.
