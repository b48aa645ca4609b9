"""The sending side of TLS: responses wait as they are, and are encrypted as the socket takes them.

So a response in memory is held once, however slow its reader, and parts of files are read one piece
at a time. The rest of a batch that the socket does not take is left to its transport, whose limits
are zero: it reports at once that it holds something, and when it does no longer.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Iterable
from typing import Any, Final, Protocol

from barnabas.broker.network.framing import Chunks
from barnabas.broker.network.sending import (
    PAGES_WAIT_SECONDS,
    PAGES_WAITS_MAX,
    has_slices,
    send,
)
from barnabas.broker.runtime.clock import SystemClock, Timer
from barnabas.storage.files.io import FileSlice

RECORD_BYTES: Final = 16 * 1024
"""Plain text of a record. OpenSSL is emptied after each: its memory keeps the size it once had."""
JOINED_BYTES: Final = 4 * 1024
"""Pieces of a response that are smaller than this share a record."""
PIECE_BYTES: Final = 64 * 1024
"""Maximum number of bytes read from a file at once."""
BATCH_BYTES: Final = 128 * 1024
"""Maximum size of the data encrypted in a row before the socket gets it, which may accept only a
part."""
TURN_BYTES: Final = 1024 * 1024
"""Maximum number of bytes encrypted for one connection before others have their turn."""
REPLIES_MAX_BYTES: Final = 16 * 1024
"""Maximum size of TLS's own responses during a connection, about 600 of them. Honest clients renew
keys after terabytes; a client that renews them all the time causes work by few bytes."""


class Owner(Protocol):
    """Parts of the connection that its sender uses."""

    def sending_waits(self) -> None:
        """Stop writing for now."""

    def sending_goes_on(self) -> None:
        """Called when all data has been sent."""

    def sending_failed(self, error: OSError) -> None:
        """Close: either the peer has disconnected, or a file cannot be read."""


class TlsSender:
    """Unsent data of one connection."""

    __slots__ = (
        "_descriptor",
        "_high_bytes",
        "_is_full",
        "_loop",
        "_outgoing",
        "_owner",
        "_pages_waits",
        "_queue",
        "_queued_bytes",
        "_raw",
        "_replies_bytes",
        "_ssl",
        "_timer",
        "_waits",
    )

    def __init__(
        self,
        owner: Owner,
        loop: asyncio.AbstractEventLoop,
        raw: asyncio.Transport,
        descriptor: int,
    ) -> None:
        """``raw`` is the socket's transport, which has no other writer."""
        self._owner: Owner | None = owner
        self._loop = loop
        self._raw = raw
        self._descriptor = descriptor
        self._ssl: ssl.SSLObject | None = None
        self._outgoing: ssl.MemoryBIO | None = None
        self._queue: deque[Any] = deque()
        self._queued_bytes = 0
        self._high_bytes = 0
        self._is_full = False
        self._waits = False
        self._timer: Timer | None = None
        self._pages_waits = 0
        self._replies_bytes = 0
        raw.set_write_buffer_limits(high=0)

    def start(self, ssl_object: ssl.SSLObject, outgoing: ssl.MemoryBIO) -> None:
        """Start to encrypt: the handshake is complete."""
        self._ssl = ssl_object
        self._outgoing = outgoing

    def set_limit(self, high_bytes: int) -> None:
        """Set the number of unsent bytes above which the owner's writing is paused."""
        self._high_bytes = high_bytes

    @property
    def is_empty(self) -> bool:
        """Whether all that was written has been encrypted."""
        return not self._queue

    @property
    def unsent_bytes(self) -> int:
        """Number of bytes that were written and have not left."""
        return self._queued_bytes + self._raw.get_write_buffer_size()

    def write(self, chunks: Iterable[Any]) -> None:
        """Send bytes and parts of files."""
        for chunk in chunks:
            if len(chunk):
                self._queue.append(chunk)
                self._queued_bytes += len(chunk)
        if not self._is_full and self._timer is None:
            self._pump()
        if self._queue and not self._waits and self._is_too_much:
            self._waits = True
            if self._owner is not None:
                self._owner.sending_waits()

    def wait(self) -> None:
        """Notify the owner when all written bytes are encrypted."""
        self._waits = True

    def reply(self, data: bytes) -> bool:
        """Send TLS's own messages; return False above the limit."""
        self._replies_bytes += len(data)
        if self._replies_bytes > REPLIES_MAX_BYTES:
            return False
        self._send([data])
        return True

    def filled(self) -> None:
        """Register that the transport has unsent data."""
        self._is_full = True

    def drained(self) -> None:
        """Continue: the transport is empty."""
        self._is_full = False
        if self._timer is None:
            self._continue()

    def end(self) -> None:
        """Stop sending: the connection has ended."""
        if self._timer is not None:
            self._timer.cancel()
        self._owner = None
        self._ssl = self._outgoing = None
        self._descriptor = -1  # The number may belong to another connection soon.
        self.drop()

    def drop(self) -> None:
        """Drop all data that is not encrypted yet."""
        self._queue.clear()
        self._queued_bytes = 0

    # --------------------------------------------------------------------------------- private

    @property
    def _is_too_much(self) -> bool:
        return self.unsent_bytes > self._high_bytes or has_slices(list(self._queue))

    def _continue(self) -> None:
        self._timer = None
        if self._queue and not self._is_full:
            first = self._queue[0]
            if type(first) is FileSlice and self._waits_for_pages(first):
                return
            self._pump()
        if not self._queue and not self._is_full and self._waits:
            self._waits = False
            if self._owner is not None:
                self._owner.sending_goes_on()

    def _waits_for_pages(self, first: FileSlice) -> bool:
        """Load pages on a thread, unless the wait has been too long."""
        if self._pages_waits == PAGES_WAITS_MAX or first.is_cached():
            self._pages_waits = 0
            return False
        first.will_be_needed()
        self._pages_waits += 1
        self._timer = SystemClock().call_later(PAGES_WAIT_SECONDS * 1000, self._continue)
        return True

    def _pump(self) -> None:
        """Encrypt and send until the socket takes no more, or the turn ends."""
        left = TURN_BYTES
        while self._queue and not self._is_full:
            if left <= 0:
                self._timer = self._loop.call_soon(self._continue)
                return
            try:
                sealed, size = self._sealed_batch()
            except OSError as error:  # A file cannot be read; ssl.SSLError is one, too.
                self._failed(error)
                return
            left -= size
            self._queued_bytes -= size
            self._send(sealed)

    def _sealed_batch(self) -> tuple[Chunks, int]:
        """Encrypt the next pieces; return them and the size of their plain text."""
        sealed: Chunks = []
        size = 0
        while self._queue and size < BATCH_BYTES:
            piece = self._next_piece()
            size += len(piece)
            self._seal(piece, sealed)
        return sealed, size

    def _next_piece(self) -> Any:  # noqa: ANN401  any buffer
        queue = self._queue
        first = queue.popleft()
        if type(first) is FileSlice:
            if len(first) > PIECE_BYTES:
                queue.appendleft(first.after(PIECE_BYTES))
                first = first.first(PIECE_BYTES)
            return first.read()
        size = len(first)
        if size > PIECE_BYTES:
            view = memoryview(first)
            queue.appendleft(view[PIECE_BYTES:])
            return view[:PIECE_BYTES]
        if size >= JOINED_BYTES:
            return first
        joined = [first]
        while queue and type(queue[0]) is not FileSlice and len(queue[0]) < JOINED_BYTES:
            if size >= RECORD_BYTES - JOINED_BYTES:
                break
            size += len(queue[0])
            joined.append(queue.popleft())
        return b"".join(joined) if len(joined) > 1 else first

    def _seal(self, piece: Any, sealed: Chunks) -> None:  # noqa: ANN401  any buffer
        assert self._ssl is not None
        assert self._outgoing is not None
        if len(piece) <= RECORD_BYTES:
            self._ssl.write(piece)
            sealed.append(self._outgoing.read())
            return
        view = memoryview(piece)
        for at in range(0, len(view), RECORD_BYTES):
            self._ssl.write(view[at : at + RECORD_BYTES])
            sealed.append(self._outgoing.read())

    def _send(self, sealed: Chunks) -> None:
        if not self._is_full and self._descriptor >= 0:
            try:
                send(self._descriptor, sealed)
            except OSError as error:
                self._failed(error)
                return
        for rest in sealed:
            self._raw.write(rest)

    def _failed(self, error: OSError) -> None:
        self.drop()
        if self._owner is not None:
            self._owner.sending_failed(error)
