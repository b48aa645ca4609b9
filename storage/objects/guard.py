"""The guard: an object that shows that an index was restored to an earlier moment.

Rules of this file:

1. Brokers write the moment of the index into the guard once a minute. Its numbers never fall, so an
   index that is behind the guard was restored, or is another one.
2. Such an index may lack records that were acknowledged. So no broker starts before an operator
   accepts the loss. Keys of objects are not used again in any case (F7): sessions draw their IDs.
3. The guard is read before the index: what another broker writes meanwhile is in the index, too.
4. A guard that is overwritten by an older one only lets a loss of that minute pass.
5. A store without a guard that lacks an object with records is not the cluster's: it has another
   address, or is a directory that is not mounted.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from barnabas.storage.errors import StoreUnusable
from barnabas.storage.objects.blob_store import BlobNotFound, BlobStoreError
from barnabas.storage.objects.object_rows import Moment
from barnabas.storage.runtime.clock import sleep

if TYPE_CHECKING:
    from barnabas.storage.objects.blob_store import BlobStore
    from barnabas.storage.objects.object_rows import ObjectRows

GUARD_KEY: Final = "guard/moment"
_ATTEMPTS: Final = 10
_PAUSE_S: Final = 0.5
_BYTES_MAX: Final = 16 * 1024 * 1024


def write_guard(rows: ObjectRows, blobs: BlobStore) -> None:
    """Write the moment of the index into the guard; raises BlobStoreError, IndexClosed."""
    blobs.put(GUARD_KEY, [json.dumps(rows.moment()._asdict()).encode()])


def read_guard(blobs: BlobStore) -> Moment | None:
    """Return the moment in the guard, or None without one.

    Raises BlobStoreError, IndexClosed, and StoreUnusable for an object that is no guard.
    """
    try:
        return _decoded(blobs.get_range(GUARD_KEY, 0, _BYTES_MAX))
    except BlobNotFound:
        return None


def _decoded(data: bytes) -> Moment:
    """Return the moment that ``write_guard`` has encoded; raises StoreUnusable."""
    try:
        moment = Moment(**json.loads(data))
        numbers = [moment.session, moment.version, *moment.flushes.values()]
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        reason = str(error)
    else:
        if all(type(each) is int for each in numbers):
            return moment
        reason = "a number is missing"
    raise StoreUnusable(
        f"object {GUARD_KEY} of the object store is no guard of a cluster ({reason}): delete it if "
        "PostgreSQL was not restored, and start again"
    )


def check_guard(rows: ObjectRows, blobs: BlobStore) -> None:
    """Raise StoreUnusable if the index was restored to an earlier moment, or is not of this store.

    A failed read of the guard is repeated for some seconds. Raises StoreUnusable after that, and
    IndexClosed.
    """
    guard = _read_patiently(blobs)
    if guard is None:
        _require_named(rows, blobs)
        return
    lost = lost_since(guard, rows.moment())
    if lost:
        raise StoreUnusable(
            f"PostgreSQL was restored to an earlier moment than the object store knows ({lost}): "
            "run 'barnabas check --cluster', and accept the loss by 'barnabas cluster reopen "
            "--restored'"
        )


def _require_named(rows: ObjectRows, blobs: BlobStore) -> None:
    for each in rows.named_objects(0, 1):
        try:
            blobs.get_range(each.key, 0, 1)
        except BlobStoreError:
            return  # Not known to be missing: its readers wait for the store.
        except BlobNotFound:
            raise StoreUnusable(
                f"the object store has neither a guard nor object {each.key}, which has records of "
                "the cluster: correct barnabas.storage, or accept the loss by 'barnabas cluster "
                "reopen --restored'"
            ) from None


def _read_patiently(blobs: BlobStore) -> Moment | None:
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return read_guard(blobs)
        except BlobStoreError as error:
            if attempt == _ATTEMPTS:
                raise StoreUnusable(f"guard of the object store cannot be read: {error}") from None
        sleep(_PAUSE_S)
    raise AssertionError("the last attempt returns or raises")


def accept_loss(rows: ObjectRows, blobs: BlobStore) -> None:
    """Accept an index that was restored; raises BlobStoreError, IndexClosed.

    Later sessions get IDs above those of the guard.
    """
    guard = read_guard(blobs)
    if guard is not None:
        rows.raise_sessions(guard.session)
    write_guard(rows, blobs)


def lost_since(guard: Moment, now: Moment) -> str:
    """Return the first number of the guard that the index has not reached, in words, or ""."""
    if now.session < guard.session:
        return f"session {guard.session}, of which it has {now.session}"
    if now.version < guard.version:
        return f"version {guard.version} of the cluster, it has {now.version}"
    for lane, number in guard.flushes.items():
        found = now.flushes.get(lane, number)
        if found < number:
            return f"flush {number - 1} of session and lane {lane}, it has {found} flushes"
    return ""
