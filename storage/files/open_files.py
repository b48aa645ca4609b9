"""A limit on open segment files: thousands of sealed segments share few descriptors.

A segment opens its file when it is used. When there are too many, the segment that opened its file
first releases it, and its indexes if those can be read again. Nothing is closed during a read: a
descriptor is closed when the last user of the file has released it.
"""

from collections import OrderedDict
from typing import Protocol

from barnabas.storage.runtime.threads import new_lock


class Holder(Protocol):
    """The owner of an open file that can be opened again."""

    def release_file(self) -> None:
        """Release the file. Called on any thread."""


class OpenFiles:
    """The holders of open files, at most ``limit``."""

    def __init__(self, limit: int) -> None:
        """``limit`` counts files."""
        self._limit = limit
        self._lock = new_lock()
        self._holders: OrderedDict[Holder, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._holders)

    def opened(self, holder: Holder) -> None:
        """Note that ``holder`` has just opened its file. Called on any thread."""
        too_many: list[Holder] = []
        with self._lock:
            self._holders[holder] = None
            self._holders.move_to_end(holder)
            while len(self._holders) > self._limit:
                too_many.append(self._holders.popitem(last=False)[0])
        for former in too_many:
            former.release_file()

    def closed(self, holder: Holder) -> None:
        """Forget ``holder``, whose file was closed."""
        with self._lock:
            self._holders.pop(holder, None)
