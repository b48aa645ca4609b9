"""Memory limit that many reading threads share.

Rules of this file:

* A thread that needs more bytes waits, without a timeout, until other threads release some.
* Threads do not wait in a circle. The oldest share that still grows waits only for shares that do
  not grow any more, and those are released without waiting. So a share larger than the limit also
  succeeds, once all others are released; later ones wait for it.
"""

from __future__ import annotations

from barnabas.storage.errors import IndexClosed
from barnabas.storage.runtime.threads import new_condition


class HeldBytes:
    """Limit of the bytes held at once; a single growing share can exceed it."""

    def __init__(self, most: int) -> None:
        """Start with no bytes held."""
        self._most = most
        self._changed = new_condition()
        self._held = 0
        self._growing: list[Share] = []
        """Shares that can still grow, the oldest first."""
        self._is_closed = False

    @property
    def held(self) -> int:
        """Return the number of bytes held now."""
        with self._changed:
            return self._held

    def begin(self) -> Share:
        """Return an empty share that can grow."""
        share = Share(self)
        with self._changed:
            self._growing.append(share)
        return share

    def hold(self, size: int) -> Share:
        """Return a share of ``size`` bytes that are in memory already; it cannot grow."""
        share = Share(self)
        with self._changed:
            share.size = size
            self._held += size
        return share

    def close(self) -> None:
        """End all waits with IndexClosed."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def grow(self, share: Share, size: int) -> None:
        """Grow a share; see ``Share.grow``."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._has_room(share, size))
            if self._is_closed:
                raise IndexClosed
            share.size += size
            self._held += size

    def settle(self, share: Share) -> None:
        """End the growth of a share; see ``Share.settle``."""
        with self._changed:
            self._end_growth(share)

    def give_back(self, share: Share) -> None:
        """Release a share; see ``Share.close``."""
        with self._changed:
            self._end_growth(share)
            self._held -= share.size
            share.size = 0

    def _has_room(self, share: Share, size: int) -> bool:
        if self._held + size <= self._most:
            return True
        return self._growing[0] is share and self._held == sum(each.size for each in self._growing)

    def _end_growth(self, share: Share) -> None:
        if share in self._growing:
            self._growing.remove(share)
        self._changed.notify_all()


class Share:
    """Bytes that one reader holds; any thread can release them."""

    __slots__ = ("_of", "size")

    def __init__(self, of: HeldBytes) -> None:
        """Create an empty share; only ``HeldBytes`` calls this."""
        self._of = of
        self.size = 0

    def grow(self, size: int) -> None:
        """Hold ``size`` more bytes, waiting for room if needed; raises IndexClosed."""
        self._of.grow(self, size)

    def settle(self) -> None:
        """Stop growing: the bytes will be released without waiting for other shares."""
        self._of.settle(self)

    def close(self) -> None:
        """Release all bytes."""
        self._of.give_back(self)
