"""Memory for what many threads read at once: a number of bytes that they share.

Rules of this file:

* Who wants more waits until others have given some back, for as long as that takes.
* Nobody waits for somebody who waits as well: who came first of those that grow waits only for what
  has been read already, which goes by itself. So one that is larger than all there is comes in,
  too, once nothing else is held; those behind it wait.
"""

from __future__ import annotations

from barnabas.storage.replicated.log_index import IndexClosed
from barnabas.storage.runtime.threads import new_condition


class HeldBytes:
    """So many bytes, at most, but for the last one that grows."""

    def __init__(self, most: int) -> None:
        """Nobody holds any yet."""
        self._most = most
        self._changed = new_condition()
        self._held = 0
        self._growing: list[Share] = []
        """In the order in which they came."""
        self._is_closed = False

    @property
    def held(self) -> int:
        """Return how many are held now."""
        with self._changed:
            return self._held

    def begin(self) -> Share:
        """Return a share that grows, of nothing yet."""
        share = Share(self)
        with self._changed:
            self._growing.append(share)
        return share

    def hold(self, size: int) -> Share:
        """Return a share of bytes that are there already, which grows no more."""
        share = Share(self)
        with self._changed:
            share.size = size
            self._held += size
        return share

    def close(self) -> None:
        """Let nobody wait any more."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def grow(self, share: Share, size: int) -> None:
        """See ``Share``."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._has_room(share, size))
            if self._is_closed:
                raise IndexClosed
            share.size += size
            self._held += size

    def settle(self, share: Share) -> None:
        """See ``Share``."""
        with self._changed:
            self._end_growth(share)

    def give_back(self, share: Share) -> None:
        """See ``Share.close``."""
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
    """What one holds of them; any thread may give it back."""

    __slots__ = ("_of", "size")

    def __init__(self, of: HeldBytes) -> None:
        """Be made by ``HeldBytes`` alone."""
        self._of = of
        self.size = 0

    def grow(self, size: int) -> None:
        """Hold so many more, once there are; raises IndexClosed."""
        self._of.grow(self, size)

    def settle(self) -> None:
        """Grow no more: what is held is on its way to be given back, whatever others wait for."""
        self._of.settle(self)

    def close(self) -> None:
        """Give all of it back."""
        self._of.give_back(self)
