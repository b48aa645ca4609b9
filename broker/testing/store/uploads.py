"""Bodies of flushes in memory, put before their flush names them; callable on any thread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from barnabas.broker.testing.store.rows import ENDED, SessionRow
from barnabas.storage.replicated.blob_store import BlobNotFound, UploadKey
from barnabas.storage.replicated.log_index import IndexMisused
from barnabas.storage.runtime.threads import new_lock

if TYPE_CHECKING:
    from barnabas.storage.replicated.log_index import Flush


class MemoryUploads:
    """The objects that no flush has named; see ``BlobStore`` for the methods.

    Once a flush names an object, its bytes belong to the index. Of an object store's objects only
    the keys that flushes have named are here.
    """

    def __init__(self) -> None:
        """Start empty."""
        self._lock = new_lock()
        self._bodies: dict[str, bytes] = {}
        self._named: set[str] = set()
        """Keys of objects that a flush has named."""

    def __iter__(self) -> Iterator[str]:
        """Iterate over the keys, in order."""
        with self._lock:
            return iter(sorted(self._bodies))

    def put(self, key: str, body: bytes) -> None:
        """Store an object."""
        with self._lock:
            if key not in self._named:
                self._bodies.setdefault(key, body)

    def get_range(self, key: str, position: int, length: int) -> bytes:
        """Return bytes of an object."""
        with self._lock:
            if key not in self._bodies:
                raise BlobNotFound(key)
            return self._bodies[key][position : position + length]

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects."""
        with self._lock:
            for key in keys:
                self._bodies.pop(key, None)

    def list(self, prefix: str, after: str, most: int) -> Sequence[str]:
        """Return keys of objects."""
        return [each for each in self if each.startswith(prefix) and each > after][:most]

    def clear(self) -> None:
        """Delete all objects."""
        with self._lock:
            self._bodies.clear()

    def body(self, flush: Flush) -> bytes:
        """Return the bytes of a flush; those of an object belong to the index from here on."""
        if flush.key is None:
            return flush.payload or b""
        with self._lock:
            if flush.size is not None:
                self._named.add(flush.key)
                return b""
            if flush.key not in self._bodies:
                raise IndexMisused(f"{flush.key} is named, and was not put")
            self._named.add(flush.key)
            return self._bodies.pop(flush.key)

    def dead(self, keys: Iterable[str], sessions: Mapping[int, SessionRow]) -> Sequence[str]:
        """Return those of the keys that no flush has named, nor can; see ``LogIndex.dead_keys``."""
        with self._lock:
            return [
                each for each in keys if each not in self._named and _is_unusable(each, sessions)
            ]


def _is_unusable(key: str, sessions: Mapping[int, SessionRow]) -> bool:
    """Return whether the session of a key, or its number, is in the past."""
    parts = UploadKey.parse(key)
    if parts is None or parts.session > max(sessions, default=0):
        return False
    return sessions.get(parts.session, ENDED).is_past(parts.lane, parts.number)
