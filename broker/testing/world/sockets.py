"""Blocking socket of a simulation, for tests and for the blocking client."""

from __future__ import annotations

import errno
import io
import os
import socket
import struct
from typing import Any, Self

from barnabas.broker.testing.world.network import SOCKET_BUFFER_BYTES, Address, End
from barnabas.broker.testing.world.scheduler import Scheduler, SimulatedThread


class _Reader(io.RawIOBase):
    """Reader of a socket, which stays open until the reader is closed."""

    def __init__(self, connected: BlockingSocket) -> None:
        self._connected = connected

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401  Whatever has the buffer protocol.
        """Receive into a buffer; return the number of bytes."""
        return self._connected.recv_into(memoryview(buffer).cast("B"))

    def close(self) -> None:
        """Close the socket, if only this reader keeps it open."""
        if not self.closed:
            super().close()
            self._connected.forget_reader()


class BlockingSocket:
    """End of a connection, with the methods of ``socket.socket`` that clients use."""

    def __init__(self, scheduler: Scheduler, end: End, timeout_seconds: float | None) -> None:
        self._scheduler = scheduler
        self.end = end
        self._timeout_seconds = timeout_seconds
        self._waiting: list[SimulatedThread] = []
        """One thread may send while another receives."""
        self._resets_at_close = False
        self._readers = 0
        self._is_closing = False
        end.reader = self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -------------------------------------------------------------------------- notifications

    def is_readable(self) -> None:
        """Wake the waiting threads."""
        for thread in self._waiting:
            self._scheduler.wake(thread)

    def is_writable(self) -> None:
        """Wake the waiting threads."""
        self.is_readable()

    # ------------------------------------------------------------------------------ socket.socket

    def sendall(self, data: bytes | bytearray | memoryview) -> None:
        """Send all bytes; raises OSError and TimeoutError."""
        left = memoryview(data).cast("B")
        while left:
            self._check_open()
            if self.end.is_reset:
                raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
            room = SOCKET_BUFFER_BYTES - self.end.other.unread_bytes
            if room > 0:
                self.end.send(bytes(left[:room]))
                left = left[room:]
            elif not self._wait("free space in the send buffer", self._timeout_seconds):
                raise TimeoutError(f"sending timed out after {self._timeout_seconds} s")

    def send(self, data: bytes | bytearray | memoryview) -> int:
        """Send all bytes; return their number."""
        self.sendall(data)
        return len(data)

    def recv(self, count: int, flags: int = 0) -> bytes:
        """Return up to ``count`` bytes, or no bytes at the end of the stream.

        Raises OSError and TimeoutError.
        """
        if not count:
            return b""
        if not self.has_received(self._timeout_seconds):
            if self._timeout_seconds == 0:
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
            raise TimeoutError(f"receiving timed out after {self._timeout_seconds} s")
        if self.end.is_reset and not self.end.received:
            raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
        if flags & socket.MSG_PEEK:
            return bytes(self.end.received[:count])
        return self.end.take(count)

    def recv_into(self, buffer: bytearray | memoryview, count: int = 0) -> int:
        """Receive into a buffer; return the number of bytes."""
        data = self.recv(count or len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def has_received(self, timeout_seconds: float | None) -> bool:
        """Wait until ``recv`` can return; return False after ``timeout_seconds``."""

        def can_return() -> bool:
            self._check_open()
            return bool(self.end.received) or self.end.has_ended or self.end.is_reset

        waits_for = f"bytes from {self.end.remote[1]}"
        return self._scheduler.wait_until(
            can_return, lambda left: self._wait(waits_for, left), timeout_seconds
        )

    def settimeout(self, seconds: float | None) -> None:
        """Set the timeout of blocking calls, or no timeout if ``seconds`` is None."""
        self._timeout_seconds = seconds

    def gettimeout(self) -> float | None:
        """Return the timeout of blocking calls in seconds, or None if they have no timeout."""
        return self._timeout_seconds

    def setblocking(self, flag: bool) -> None:  # noqa: FBT001  Signature of socket.socket.
        """Set whether calls block."""
        self._timeout_seconds = None if flag else 0

    def setsockopt(self, level: int, option: int, value: Any) -> None:  # noqa: ANN401
        """Make ``close`` reset the connection for SO_LINGER of 0 s; ignore other options."""
        if (level, option) == (socket.SOL_SOCKET, socket.SO_LINGER) and isinstance(value, bytes):
            self._resets_at_close = struct.unpack("ii", value) == (1, 0)

    def shutdown(self, direction: int) -> None:
        """End the stream to the other end, unless ``direction`` is SHUT_RD."""
        self._check_open()
        if direction != socket.SHUT_RD:
            self.end.end()

    def makefile(self, mode: str = "rb") -> io.BufferedReader:
        """Return a file that reads the stream, and stays open after ``close``, as with a real
        socket.
        """
        if mode != "rb":
            raise NotImplementedError(f"a simulated socket has no file with mode {mode!r}")
        self._readers += 1
        return io.BufferedReader(_Reader(self))

    def forget_reader(self) -> None:
        """Close this end if ``close`` was called and only this reader kept it open."""
        self._readers -= 1
        if self._is_closing:
            self.close()

    def close(self) -> None:
        """Close this end of the connection once all its files are closed."""
        self._is_closing = True
        if self._readers:
            return
        if self._resets_at_close:
            self.end.reset()
        else:
            self.end.close()
        self.is_readable()

    def fileno(self) -> int:
        """Return 0 for an open socket, or -1 for a closed one; neither is a real descriptor."""
        return -1 if self.end.is_closed else 0

    def getsockname(self) -> Address:
        """Return this end's address."""
        return self.end.local

    def getpeername(self) -> Address:
        """Return the other end's address."""
        return self.end.remote

    # ---------------------------------------------------------------------------------- private

    def _check_open(self) -> None:
        if self.end.is_closed:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    def _wait(self, waits_for: str, seconds: float | None) -> bool:
        thread = self._scheduler.running
        self._waiting.append(thread)
        try:
            return self._scheduler.wait(waits_for, seconds)
        finally:
            self._waiting.remove(thread)
