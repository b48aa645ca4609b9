"""Bodies of flushes in memory, put before their flush names them; callable on any thread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from barnabas.broker.testing.store.rows import ENDED, SessionRow
from barnabas.storage.objects.blob_store import PACKING_LANE, BlobNotFound, Claim, claim_of
from barnabas.storage.replicated.log_index import IndexMisused
from barnabas.storage.runtime.threads import new_lock

if TYPE_CHECKING:
    from barnabas.storage.replicated.log_index import Flush, SegmentExtent


class MemoryUploads:
    """The objects that no flush has named; see ``BlobStore`` for the methods.

    Once a flush names an object, its bytes belong to the index. Those of a packed segment can be
    read here as long as a log has it. Of an object store's objects only the keys that flushes have
    named are here.
    """

    def __init__(self) -> None:
        """Start empty."""
        self._lock = new_lock()
        self._bodies: dict[str, bytes] = {}
        self._named: set[str] = set()
        """Keys of objects that a flush or a log has named."""
        self._segments: dict[str, bytes] = {}
        """Packed segments that logs have."""

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
            body = self._segments.get(key, self._bodies.get(key))
        if body is None:
            raise BlobNotFound(key)
        return body[position : position + length]

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
            self._segments.clear()

    def body(self, flush: Flush) -> bytes:
        """Return the bytes of a flush; an object's bytes belong to the index afterwards."""
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

    def name_segment(self, segment: SegmentExtent) -> bytes:
        """Make an object a packed segment of a log; return its bytes, if they are here."""
        key = segment.key
        with self._lock:
            if segment.in_object_store:
                self._segments[key] = b""
            elif len(self._bodies.get(key, b"")) != segment.length:
                raise IndexMisused(f"{key} is named, and {segment.length} bytes were not put")
            else:
                self._segments[key] = self._bodies.pop(key)
            self._named.add(key)
            return self._segments[key]

    def has_segment(self, key: str) -> bool:
        """Return whether a log has a packed segment."""
        with self._lock:
            return key in self._segments

    def drop_segment(self, key: str) -> None:
        """Delete a packed segment that no log has any more."""
        with self._lock:
            del self._segments[key]

    def dead(self, keys: Iterable[str], sessions: Mapping[int, SessionRow]) -> Sequence[str]:
        """Return the keys that no flush has named and none can name later; see
        ``LogIndex.dead_keys``.
        """
        with self._lock:
            return [each for each in keys if self._is_dead(claim_of(each), sessions)]

    def _is_dead(self, claim: Claim | None, sessions: Mapping[int, SessionRow]) -> bool:
        """Return whether no log has an object, and none can get it later; the lock is held."""
        if claim is None or claim.session > max(sessions, default=0):
            return False
        is_named = claim.name in (self._segments if claim.lane == PACKING_LANE else self._named)
        is_past = sessions.get(claim.session, ENDED).is_past(claim.lane, claim.number)
        return is_past and not is_named
