"""The check of an object store when a broker starts: it has what exactly-once writing needs of it.

An object is put, read as a whole and in part, listed, protected from another one under its key, and
deleted. All of it is below ``probe/``, under a key of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.storage.errors import StoreUnusable
from barnabas.storage.objects.blob_store import BlobNotFound, BlobRefused, BlobStoreError
from barnabas.storage.runtime.clock import sleep

if TYPE_CHECKING:
    from collections.abc import Sequence

    from barnabas.storage.objects.object_blob_store import ObjectBlobStore

PROBE_PREFIX: Final = "probe/"
_BODY: Final = bytes(range(256)) * 16
_PART: Final = slice(1000, 1100)
_LISTED_MOST: Final = 1000
_ATTEMPTS: Final = 10
_PAUSE_S: Final = 0.5


def probe(blobs: ObjectBlobStore, name: str) -> None:
    """Raise StoreUnusable, with one sentence, unless the store can be used.

    ``name`` has not been used before. A step that fails is tried again for some seconds, unless the
    store refuses it: brokers that start together are a burst, too. Blocks.
    """
    keys = []
    for attempt in range(1, _ATTEMPTS + 1):
        keys.append(f"{PROBE_PREFIX}{name}-{attempt}")
        try:
            _probe_once(blobs, keys)
        except _StepFailed as failed:
            if attempt == _ATTEMPTS or isinstance(failed.error, BlobRefused):
                raise StoreUnusable(f"{failed.step} failed: {failed.error}") from None
        else:
            return
        sleep(_PAUSE_S)


class _StepFailed(Exception):
    """A step of the check without a result."""

    def __init__(self, step: str, error: BlobStoreError) -> None:
        super().__init__(step)
        self.step = step
        self.error = error


def _probe_once(blobs: ObjectBlobStore, keys: Sequence[str]) -> None:
    """Check the store once, under the last key; raises StoreUnusable, _StepFailed."""
    step, key = "PUT", keys[-1]
    try:
        blobs.put(key, [_BODY[:1000], _BODY[1000:]])
        step = "GET"
        _require(blobs.get_range(key, 0, len(_BODY)) == _BODY, "an object is not read as written")
        step = "GET of a range"
        found = blobs.get_range(key, _PART.start, _PART.stop - _PART.start)
        _require(found == _BODY[_PART], "a range of an object is not read as written")
        step = "LIST"
        after = key[:-1]
        _require(key in blobs.list(PROBE_PREFIX, after, _LISTED_MOST), "a new object is not listed")
        step = "conditional PUT"
        is_refused = not blobs.put_new(key, _BODY[1:])
        _require(is_refused, "a PUT on the condition that no object exists has replaced one")
        step = "DELETE"
        blobs.delete(keys)
        step = "GET of a deleted object"
        _require(_is_missing(blobs, key), "a deleted object is still read")
    except BlobNotFound:
        raise StoreUnusable(f"a new object is not found by {step}") from None
    except BlobStoreError as error:
        raise _StepFailed(step, error) from None


def _require(holds: bool, problem: str) -> None:  # noqa: FBT001 - a condition
    if not holds:
        raise StoreUnusable(problem)


def _is_missing(blobs: ObjectBlobStore, key: str) -> bool:
    try:
        blobs.get_range(key, 0, 1)
    except BlobNotFound:
        return True
    return False
