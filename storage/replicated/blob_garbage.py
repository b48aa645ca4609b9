"""Deletion of objects that hold no records, nor ever will.

Rules of this file:

1. A key is dead once the session that put it has ended, or once its number is used up: a number is
   committed once, and names one key. The sidecar of a packed segment is dead if the segment is. So
   no order of events makes a dead key live again (F9), and deletes need no clock and no fence.
2. A key is not dead because it was merely seen without a name: the index confirms with a durable
   write that it is dead (``LogIndex.dead_keys``), before anything is deleted (F10).
3. A listing may lack objects, and an object may appear late: the next round deletes it.
4. The object store keeps an object for a time after its last record was deleted: the index may be
   restored to a moment when it had some of them. Its key is forgotten after its object is deleted,
   so a failed call is repeated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.storage.objects.blob_store import SEGMENTS_PREFIX, UPLOADS_PREFIX

if TYPE_CHECKING:
    from barnabas.storage.objects.blob_store import BlobStore
    from barnabas.storage.replicated.log_index import LogIndex

ROWS_AT_ONCE: Final = 64
"""Maximum number of objects in the index that are deleted by one call, each of some megabytes."""
KEYS_AT_ONCE: Final = 1000
"""Maximum number of objects that one call lists or deletes, equal to S3's limit. Each listing is
also a commit of the index, and other upkeep waits for all of them."""


def delete_dead_objects(index: LogIndex, blobs: BlobStore, most: int | None = None) -> int:
    """Delete all objects whose keys are dead, and return their number.

    Looks at ``most`` keys at a time, None for as many as fit the store. Any broker may call it.
    Blocks; raises BlobStoreError, IndexClosed.
    """
    deleted = 0
    if most is None:
        most = KEYS_AT_ONCE if blobs.is_object_store else ROWS_AT_ONCE
    for prefix in (SEGMENTS_PREFIX, UPLOADS_PREFIX):
        after = ""
        while keys := blobs.list(prefix, after, most):
            after = keys[-1]
            dead = index.dead_keys(keys)
            if dead:
                blobs.delete(dead)
                deleted += len(dead)
    return deleted


def delete_dereferenced_objects(
    index: LogIndex, blobs: BlobStore, delay_ms: int, most: int = KEYS_AT_ONCE
) -> int:
    """Delete all objects of the object store whose records were deleted ``delay_ms`` ago.

    Returns their number. Any broker may call it. Blocks; raises BlobStoreError, IndexClosed.
    """
    deleted = 0
    while blobs.is_object_store and (keys := index.dereferenced_keys(most, delay_ms)):
        blobs.delete(keys)
        index.forget_keys(keys)
        deleted += len(keys)
    return deleted
