"""The interface of a store of objects: bodies of large flushes, and packed segments.

Rules of this interface:

* An object is durable when ``put`` returns, and never changes. Only after that a flush names its
  key (F6).
* A key is used once (F7): each attempt of an upload has its own. A failed call may still take
  effect, at any later time. The object is garbage then (``storage/replicated/blob_garbage.py``).
* Each connection has one caller at a time. Calls block, and are never made on the event loop.
  ``close``, on any thread, ends them with ``IndexClosed``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from barnabas.storage.files.file_system import Buffer

UPLOADS_PREFIX: Final = "wal/"
"""Prefix of the keys of all flushes."""
SEGMENTS_PREFIX: Final = "seg/"
"""Prefix of the keys of all packed segments."""
PACKING_LANE: Final = 2
"""The lane that numbers packed segments."""
_LOG_SUFFIX: Final = ".log"
_SIDECAR_SUFFIX: Final = ".idx"


class BlobStoreError(Exception):
    """A call without a confirmation: it may have taken effect, or may take effect later."""


class BlobRefused(BlobStoreError):
    """A call that the store refuses as long as nothing changes there.

    The object is archived, for example, or the credentials do not hold.
    """


class BlobThrottled(BlobStoreError):
    """A call that the store rejects because it gets more calls than it serves."""


class BlobNotFound(Exception):
    """The store has no object under the key."""


class UploadKey(NamedTuple):
    """Parts of the key of an attempt to upload a flush."""

    session: int
    lane: int
    number: int
    """Number of the flush in its lane of its session."""
    attempt: int

    @property
    def text(self) -> str:
        """Return the key."""
        prefix = f"{UPLOADS_PREFIX}{self.session}/{self.lane}"
        return f"{prefix}-{self.number:016x}-{self.attempt:x}"

    @classmethod
    def parse(cls, key: str) -> UploadKey | None:
        """Return the parts of a key, or None if it is not the key of an upload."""
        session, _, rest = key.removeprefix(UPLOADS_PREFIX).partition("/")
        try:
            lane, number, attempt = rest.split("-")
            found = cls(int(session), int(lane), int(number, 16), int(attempt, 16))
        except ValueError:
            return None
        return found if found.text == key else None


class SegmentKey(NamedTuple):
    """Parts of the key of an attempt to pack a part of a log."""

    partition_id: int
    base_offset: int
    session: int
    number: int
    """Number in the packing lane of its session; each attempt has its own."""

    @property
    def text(self) -> str:
        """Return the key of the batches."""
        return self._stem + _LOG_SUFFIX

    @property
    def sidecar(self) -> str:
        """Return the key of the indexes."""
        return self._stem + _SIDECAR_SUFFIX

    @property
    def _stem(self) -> str:
        name = f"{self.base_offset:020}-{self.session}-{self.number:016x}"
        return f"{SEGMENTS_PREFIX}{self.partition_id:x}/{name}"

    @classmethod
    def parse(cls, key: str) -> SegmentKey | None:
        """Return the parts of a key of batches or indexes, or None if it is not one."""
        partition_id, _, rest = key.removeprefix(SEGMENTS_PREFIX).partition("/")
        try:
            base_offset, session, number = rest[: -len(_LOG_SUFFIX)].split("-")
            found = cls(int(partition_id, 16), int(base_offset), int(session), int(number, 16))
        except ValueError:
            return None
        return found if key in (found.text, found.sidecar) else None


class Claim(NamedTuple):
    """The number by which an object lives: once it is used up without its name, it is dead."""

    session: int
    lane: int
    number: int
    name: str
    """The key that the index names: of a sidecar that of its batches."""


def claim_of(key: str) -> Claim | None:
    """Return the claim of an object, or None if its key has no known form."""
    upload = UploadKey.parse(key)
    if upload is not None:
        return Claim(upload.session, upload.lane, upload.number, key)
    segment = SegmentKey.parse(key)
    if segment is not None:
        return Claim(segment.session, PACKING_LANE, segment.number, segment.text)
    return None


def keys_with(key: str) -> Sequence[str]:
    """Return the keys of all objects that go with the one under a key that the index named."""
    segment = SegmentKey.parse(key)
    return [key] if segment is None else [segment.text, segment.sidecar]


class BlobStore(Protocol):
    """One connection to the objects; see the rules at the head of this module."""

    @property
    def repeats_calls(self) -> bool:
        """Whether ``put`` repeats its call until it is confirmed, so that it needs no hedge."""

    @property
    def is_object_store(self) -> bool:
        """Whether objects keep their keys once flushes have named them.

        If not, their bytes belong to the index then, which deletes them.
        """

    def check(self, name: str) -> None:
        """Raise StoreUnusable unless the store does what this interface says.

        ``name`` is of this check alone. Called when a broker starts.
        """

    def put(self, key: str, body: Sequence[Buffer]) -> None:
        """Store an object whose bytes are ``body``.

        Raises BlobThrottled, BlobStoreError, IndexClosed.
        """

    def get_range(self, key: str, position: int, length: int) -> bytes:
        """Return up to ``length`` bytes from ``position`` on.

        Fewer only at the object's end. Raises BlobNotFound, BlobRefused, BlobStoreError,
        IndexClosed.
        """

    def delete(self, keys: Sequence[str]) -> None:
        """Delete objects; keys without one are ignored. Raises BlobStoreError, IndexClosed."""

    def list(self, prefix: str, after: str, most: int) -> Sequence[str]:
        """Return up to ``most`` keys with ``prefix`` that sort after ``after``, in order.

        New objects may be missing, and deleted ones included. So may those that a flush has named,
        if the store is the index itself. Raises BlobStoreError, IndexClosed.
        """

    def close(self) -> None:
        """End the call that waits, on any thread."""
