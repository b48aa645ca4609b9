"""Bytes in, whole frames out: the receive side of one connection, without any I/O.

A frame is a 4-byte big-endian length and that many bytes. Rules of this file:

* **A frame is handed out as a view of the buffer it was received into.** No byte is copied on the
  way, except what is left of an incomplete frame when the buffer's end is near.
* **A view of the ring dies when control returns to the caller's loop**: the next ``writable`` may
  reuse its place. The view of an owned frame (below) lives as long as a reference to it.
* **Rings belong to a pool**, a connection has one only while there are bytes in it. That keeps
  thousands of idle connections cheap and the few rings in use warm in the processor's cache. A ring
  is borrowed when bytes have arrived, not when a transport requests memory. A transport does that
  before it knows that only the end of the stream is left, maybe for two thousand connections at
  once. So ``received`` must follow its ``writable`` before that of another connection is called.
* **A frame larger than the ring** gets a buffer of its own, into which the rest of it is received
  directly, a piece at a time. It is allocated only after ``grant``: the connection that drives this
  buffer decides how much memory all connections together may hold that way. Until then the received
  part of the frame waits in a string of its size.
* A length is checked against the limit before anything is allocated for it.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from barnabas.protocol.buffers import LargeBuffers

RING_BYTES: Final = 256 * 1024
"""Size of a ring: large enough that one ``recv`` empties a socket's usual receive buffer."""

MIN_FRAME_BYTES: Final = 10
"""The shortest request header: key, version, correlation id and a null client id."""

STASH_BYTES: Final = 2048
"""Maximum size of the rest of an incomplete frame that is copied to a string of its own, so that a
client that sends a few bytes at a time occupies no ring. Larger rests would cost more to copy twice
than they save."""

MIN_RECEIVE_BYTES: Final = 32 * 1024
"""Minimum free space at the end of the ring; with less, a short rest is moved to the front."""

PIECE_BYTES: Final = 1024 * 1024
"""Maximum number of bytes received at once into a buffer that belongs to one frame."""

LENGTH_BYTES: Final = 4
_length: Final = Struct(">i").unpack_from
_length_and_key: Final = Struct(">ih").unpack_from
_NOTHING: Final = memoryview(b"")


class FrameRefused(Exception):
    """Invalid length of a frame. The connection cannot be used after it."""

    def __init__(self, size: int, least: int, most: int) -> None:
        self.size = size
        super().__init__(f"a frame of {size} bytes is outside {least} to {most}")


class RingPool:
    """Pool of rings of one size that connections borrow; it keeps ``keep`` unused ones at most."""

    __slots__ = ("_free", "_keep", "borrowed", "capacity", "large")

    def __init__(self, capacity: int = RING_BYTES, keep: int = 32) -> None:
        self.capacity = capacity
        self.borrowed = 0
        self._keep = keep
        self.large = LargeBuffers()
        self._free: list[memoryview] = []

    def peek(self) -> memoryview:
        """Return the ring that the next ``take`` lends: the ring that was returned last."""
        if not self._free:
            self._free.append(memoryview(bytearray(self.capacity)))
        return self._free[-1]

    def take(self) -> memoryview:
        """Lend the ring that ``peek`` shows."""
        ring = self.peek()
        self._free.pop()
        self.borrowed += 1
        return ring

    def give(self, ring: memoryview) -> None:
        """Return a ring to the pool."""
        self.borrowed -= 1
        if len(self._free) < self._keep:
            self._free.append(ring)

    @property
    def crowded(self) -> bool:
        """Return whether many rings are lent, so that memory counts more than copying."""
        return self.borrowed > self._keep

    @property
    def unused(self) -> int:
        """Return the number of free rings."""
        return len(self._free)


class FrameBuffer:
    """Incoming bytes of one connection: receive into ``writable``, take frames with ``next_frame``.

    The cycle is ``writable`` -> receive -> ``received`` -> ``next_frame`` until it answers None
    -> ``settle``. When ``wanted_bytes`` is not 0 after a None, the frame at hand needs a buffer
    of that size and nothing more can be received before ``grant`` was called.
    """

    __slots__ = (
        "_capacity",
        "_head",
        "_owned",
        "_owned_filled",
        "_pool",
        "_ring",
        "_stash",
        "_tail",
        "frame_is_owned",
        "max_frame_bytes",
        "min_frame_bytes",
        "wanted_bytes",
    )

    def __init__(self, pool: RingPool, max_frame_bytes: int) -> None:
        self._pool = pool
        self._capacity = pool.capacity
        self.max_frame_bytes = max_frame_bytes
        self.min_frame_bytes = MIN_FRAME_BYTES
        self._ring: memoryview = _NOTHING
        self._head = 0
        self._tail = 0
        self._stash = b""
        self._owned: memoryview | None = None
        self._owned_filled = 0
        self.wanted_bytes = 0
        self.frame_is_owned = False

    # ------------------------------------------------------------------------------ receiving

    def writable(self) -> memoryview:
        """Return the memory for the next bytes, at least one byte unless ``full``."""
        if self._owned is not None:
            filled = self._owned_filled
            return self._owned[filled : filled + PIECE_BYTES]
        ring = self._ring
        if not ring:
            ring = self._pool.peek()
            start = len(self._stash)
            if start:
                ring[:start] = self._stash
            return ring[start:]
        if self._capacity - self._tail < MIN_RECEIVE_BYTES:
            self._make_room()
        return ring[self._tail :]

    def received(self, size: int) -> None:
        """Register that ``size`` bytes were received into the memory that ``writable`` returned."""
        if self._owned is not None:
            self._owned_filled += size
        elif self._ring:
            self._tail += size
        else:
            self._ring = self._pool.take()
            self._tail = len(self._stash) + size
            self._stash = b""

    @property
    def full(self) -> bool:
        """Return whether receiving must pause: no space, or a large frame without grant."""
        if self._owned is not None:
            return self._owned_filled == len(self._owned)
        if self.wanted_bytes:
            return True
        if not self._ring:
            return len(self._stash) == self._capacity
        if self._tail < self._capacity:
            return False
        self._make_room()
        return self._tail == self._capacity

    @property
    def pending_bytes(self) -> int:
        """Return the number of received bytes that are not taken as frames yet."""
        if self._owned is not None:
            return self._owned_filled
        return len(self._stash) or self._tail - self._head

    @property
    def is_large(self) -> bool:
        """Return whether a frame too large for the ring is being received."""
        return self._owned is not None or self.wanted_bytes > 0

    @property
    def missing_bytes(self) -> int:
        """Return the number of bytes until the next frame is whole; 0 if it is."""
        if self._owned is not None:
            return len(self._owned) - self._owned_filled
        if self._stash:
            source: bytes | memoryview = self._stash
            head, tail = 0, len(self._stash)
        else:
            source, head, tail = self._ring, self._head, self._tail
        if tail - head < LENGTH_BYTES:
            return LENGTH_BYTES - tail + head
        size: int = _length(source, head)[0]
        return max(0, head + LENGTH_BYTES + size - tail)

    @property
    def held_bytes(self) -> int:
        """Return the number of bytes in memory that only this buffer uses.

        Those in a ring do not count, as there are few rings that are lent for longer; nor those of
        a stash so short that every connection may have one.
        """
        if self._owned is not None:
            return self._owned_filled
        size = len(self._stash)
        return size if size > STASH_BYTES or self.wanted_bytes else 0

    # -------------------------------------------------------------------------------- parsing

    def next_frame(self) -> memoryview | None:
        """Return the next complete frame without its length, or None.

        Raises FrameRefused for a length below the shortest header or above the limit.
        """
        if not self._ring and not self._restore():
            return self._take_owned()
        head = self._head
        start = head + LENGTH_BYTES
        if start > self._tail:
            return None
        size = _length(self._ring, head)[0]
        if not self.min_frame_bytes <= size <= self.max_frame_bytes:
            raise FrameRefused(size, self.min_frame_bytes, self.max_frame_bytes)
        end: int = start + size
        if end <= self._tail:
            self._head = end
            self.frame_is_owned = False
            return self._ring[start:end]
        if size > self._capacity - LENGTH_BYTES:
            self.wanted_bytes = size
        return None

    def pending(self) -> memoryview:
        """Return the received bytes from the length of the next frame on.

        Empty while that frame has its own buffer. The view is invalid as soon as a view of the
        frame is.
        """
        if not self._ring and not self._restore():
            return _NOTHING
        return self._ring[self._head : self._tail]

    def skip(self, size: int) -> None:
        """Remove the first ``size`` bytes of ``pending``, which are complete frames."""
        self._head += size
        self.frame_is_owned = False

    def next_key(self) -> int | None:
        """Return the API key of the next request, known from its first 6 bytes on."""
        if self._stash:
            source: bytes | memoryview = self._stash
            head, tail = 0, len(self._stash)
        else:
            source, head, tail = self._ring, self._head, self._tail
        if tail - head < LENGTH_BYTES + 2:
            return None
        key: int = _length_and_key(source, head)[1]
        return key

    def grant(self) -> None:
        """Allocate the buffer of ``wanted_bytes`` and move the received part of the frame there.

        Raises OSError where there is no memory.
        """
        self._owned = self._pool.large.take(self.wanted_bytes)
        self.wanted_bytes = 0
        self._restore()
        start = self._head + LENGTH_BYTES
        self._owned_filled = self._tail - start
        self._owned[: self._owned_filled] = self._ring[start : self._tail]
        self._give_back()

    def settle(self) -> int:
        """Return the ring if it is empty, nearly empty, waiting, or one of too many.

        Call it when parsing has ended. Returns ``held_bytes``.
        """
        if self._ring:
            left = self._tail - self._head
            if left > STASH_BYTES and not self._pool.crowded and not self.wanted_bytes:
                return 0
            if left:
                self._stash = bytes(self._ring[self._head : self._tail])
            self._give_back()
            if left <= STASH_BYTES and not self.wanted_bytes:
                return 0
        return self.held_bytes

    def shrink(self) -> None:
        """Copy the received bytes to a string of exactly their size and give the ring back."""
        if self._ring:
            self._stash = bytes(self._ring[self._head : self._tail])
            self._give_back()

    def release(self) -> None:
        """Drop everything: the connection has ended."""
        self._stash = b""
        self._owned = None
        self.wanted_bytes = 0
        if self._ring:
            self._give_back()

    # -------------------------------------------------------------------------------- private

    def _borrow(self) -> memoryview:
        ring = self._ring = self._pool.take()
        self._head = 0
        self._tail = len(self._stash)
        if self._stash:
            ring[: self._tail] = self._stash
            self._stash = b""
        return ring

    def _restore(self) -> bool:
        """Move stashed bytes back into a ring; return whether bytes are left to parse."""
        if self._ring:
            return True
        if not self._stash:
            return False
        self._borrow()
        return True

    def _give_back(self) -> None:
        ring, self._ring = self._ring, _NOTHING
        self._head = self._tail = 0
        self._pool.give(ring)

    def _make_room(self) -> None:
        """Move the unparsed rest to the front if that is cheap.

        Whole frames that wait for a muted connection may fill the ring; moving them for a few
        bytes of room again and again would cost more than reading later.
        """
        head, tail = self._head, self._tail
        left = tail - head
        if left <= head:
            self._ring[:left] = self._ring[head:tail]
            self._head, self._tail = 0, left
        elif tail == self._capacity and head:
            size = _length(self._ring, head)[0]
            if head + LENGTH_BYTES + size > self._capacity:  # it cannot complete where it is
                self._ring[:left] = self._ring[head:tail]
                self._head, self._tail = 0, left

    def _take_owned(self) -> memoryview | None:
        owned = self._owned
        if owned is None or self._owned_filled < len(owned):
            return None
        self._owned = None
        self.frame_is_owned = True
        return owned
