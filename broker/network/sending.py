"""Sending without the transport: at once as much as the socket takes, parts of files without a
copy.

uvloop has no ``sendfile``, and watches no socket that a transport of its own has. Bytes that a
socket does not take are left to the transport, unless they lie in a file. Then a ``Remainder``
waits for the socket under a descriptor of its own, so that a slow reader of much costs neither
memory nor copies.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from barnabas.broker.network.framing import Chunks
from barnabas.broker.runtime.clock import SystemClock, Timer
from barnabas.storage.files.io import IOV_MAX, FileSlice

PAGES_WAIT_SECONDS: Final = 0.01
PAGES_WAITS_MAX: Final = 100
"""Maximum number of waits for pages that left the cache. After that the loop itself reads the pages
from the disk."""


def send_unpaced(descriptor: int) -> None:
    """Set Reno as the congestion control of a connection within this machine.

    BBR paces by timers, also within the machine: a slice of 1 MB then costs two to three times the
    CPU. Every kernel offers Reno to every user. If it is rejected, nothing changes.
    """
    same = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, fileno=descriptor)
    try:
        with suppress(OSError, AttributeError):  # AttributeError: not a system with such an option
            same.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
    finally:
        same.detach()


def send(descriptor: int, chunks: Chunks) -> None:
    """Send as much as a socket takes now; ``chunks`` keeps the rest. OSError if it is broken."""
    try:
        while chunks:
            first = chunks[0]
            if type(first) is FileSlice:
                _drop(chunks, first.send(descriptor))
            else:
                _drop(chunks, os.writev(descriptor, _until_slice(chunks)))
    except BlockingIOError:
        return


def _until_slice(chunks: Chunks) -> Chunks:
    end = min(len(chunks), IOV_MAX)
    for at in range(1, end):
        if type(chunks[at]) is FileSlice:
            return chunks[:at]
    return chunks if end == len(chunks) else chunks[:end]


def _drop(chunks: Chunks, sent: int) -> None:
    """Take the first ``sent`` bytes out of ``chunks``."""
    whole = 0
    while whole < len(chunks) and sent >= len(chunks[whole]):
        sent -= len(chunks[whole])
        whole += 1
    del chunks[:whole]
    if sent:
        first = chunks[0]
        chunks[0] = first.after(sent) if type(first) is FileSlice else memoryview(first)[sent:]


def has_slices(chunks: Chunks) -> bool:
    """Return whether any of the pieces is in a file."""
    return any(type(chunk) is FileSlice for chunk in chunks)


def in_memory(chunks: Chunks) -> Chunks:
    """Return the same pieces, those in files read. OSError if one cannot be."""
    return [chunk.read() if type(chunk) is FileSlice else chunk for chunk in chunks]


class Remainder:
    """Answers that a socket did not take, sent as it takes more until no part of a file is left."""

    __slots__ = ("_chunks", "_descriptor", "_done", "_failed", "_loop", "_timer", "_waits")

    def __init__(
        self,
        descriptor: int,
        chunks: Chunks,
        done: Callable[[Chunks], None],
        failed: Callable[[OSError], None],
    ) -> None:
        """``done`` gets the chunks that are left for the transport, which are all in memory.

        Raises OSError if no descriptor is free.
        """
        self._loop = asyncio.get_running_loop()
        self._descriptor = os.dup(descriptor)
        self._chunks = chunks
        self._done = done
        self._failed = failed
        self._waits = 0
        self._timer: Timer | None = None
        self._loop.add_writer(self._descriptor, self._send_next)

    @property
    def size_bytes(self) -> int:
        """Number of bytes still to be sent."""
        return sum(map(len, self._chunks))

    def add(self, chunks: Chunks) -> None:
        """Send these chunks after the present ones."""
        self._chunks += chunks

    def cancel(self) -> None:
        """Stop sending."""
        if self._timer is not None:
            self._timer.cancel()
        else:
            self._loop.remove_writer(self._descriptor)
        os.close(self._descriptor)
        self._chunks = []

    def _send_next(self) -> None:
        chunks = self._chunks
        first = chunks[0]
        if type(first) is FileSlice and self._waits < PAGES_WAITS_MAX and not first.is_cached():
            self._wait_for_pages(first)
            return
        self._waits = 0
        try:
            send(self._descriptor, chunks)
        except OSError as error:
            self.cancel()
            self._failed(error)
            return
        if not has_slices(chunks):
            self.cancel()
            self._done(chunks)

    def _wait_for_pages(self, first: FileSlice) -> None:
        first.will_be_needed()
        self._waits += 1
        self._loop.remove_writer(self._descriptor)
        # The disk takes its time, however a test moves the broker's clock.
        wait_ms = PAGES_WAIT_SECONDS * 1000
        self._timer = SystemClock().call_later(wait_ms, self._pages_may_be_there)

    def _pages_may_be_there(self) -> None:
        self._timer = None
        self._loop.add_writer(self._descriptor, self._send_next)
