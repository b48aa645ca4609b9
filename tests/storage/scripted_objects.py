"""An object store in memory whose calls fail in every way, at random or as a test says.

The ledger fails on a key that is used twice (F7), and on a delete of an object that a flush has
named and in which records still lie (F6).
"""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from unittest.mock import patch

from barnabas.broker.testing.store.base import MemoryStore
from barnabas.broker.testing.store.index import MemoryIndex
from barnabas.storage.errors import IndexClosed, ObjectDamaged
from barnabas.storage.objects.blob_store import (
    BlobNotFound,
    BlobStoreError,
    UploadKey,
    keys_with,
)
from barnabas.storage.objects.guard import GUARD_KEY
from barnabas.storage.replicated.object_reading import ObjectReader
from barnabas.storage.replicated.wal_object import wal_object
from barnabas.storage.runtime.clock import sleep

LATE_S = 1.5
"""Longer than an attempt without a hedge."""
LAGS_MOST = 3
"""Maximum number of listings that do not show a change yet."""


class ScriptedObjects:
    """The objects of a cluster, of which ``live_keys`` returns those that may not be deleted."""

    def __init__(self, live_keys=set):
        self.live_keys = live_keys
        self.bodies = {}
        self.ever = {}
        """The bytes of each key that was ever put."""
        self.ghosts = []
        """Keys and bodies that arrive later."""
        self.deleted = 0
        self._changed_at = {}
        """Number of the listing before which each key was put or deleted."""
        self._listings = 0

    def __iter__(self):
        return iter(sorted(self.bodies))

    def put(self, key, body):
        is_again = key in self.ever and self.ever[key] != body
        assert not is_again or key == GUARD_KEY, f"{key} is used twice"
        self.ever[key] = body
        self.bodies[key] = body
        self._changed_at[key] = self._listings

    def arrive(self, number):
        """Put a late object."""
        if self.ghosts:
            self.put(*self.ghosts.pop(number % len(self.ghosts)))

    def delete(self, keys):
        live = {*keys} & self.live_keys()
        assert not live, f"{live} have records"
        for key in keys:
            if self.bodies.pop(key, None) is not None:
                self.deleted += 1
                self._changed_at[key] = self._listings

    def get_range(self, key, position, length):
        if key not in self.bodies:
            raise BlobNotFound(key)
        return self.bodies[key][position : position + length]

    def list(self, prefix, after, most, lag=0):
        """Return keys; those that changed in the last ``lag`` listings are as they were."""
        self._listings += 1
        seen = self._listings - lag
        shown = {key for key in self.bodies if self._changed_at[key] < seen}
        shown |= {
            key
            for key, at in self._changed_at.items()
            if at >= seen and key not in self.bodies and key in self.ever
        }
        return sorted(key for key in shown if key.startswith(prefix) and key > after)[:most]


class ScriptedBlobs:
    """A connection to them, whose calls fail before or after their effect, or come late."""

    repeats_calls = False
    is_object_store = True

    def __init__(self, objects, random, failures=0.05):
        self.objects = objects
        self.random = random
        self.failures = failures
        self.is_closed = False

    def check(self, name):
        pass

    def put(self, key, body):
        whole = b"".join(body)
        if self._happens():
            self.objects.ghosts.append((key, whole))
            raise BlobStoreError("timeout")
        self._call(self.objects.put, key, whole)

    def get_range(self, key, position, length):
        return self._call(self.objects.get_range, key, position, length)

    def delete(self, keys):
        self._call(self.objects.delete, keys)

    def list(self, prefix, after, most):
        if self._happens():
            self.objects.arrive(self.random.randrange(100))
        return self._call(
            self.objects.list, prefix, after, most, self.random.randrange(LAGS_MOST + 1)
        )

    def close(self):
        self.is_closed = True

    def _happens(self):
        return self.random.random() < self.failures

    def _call(self, work, *arguments):
        if self._happens():
            raise BlobStoreError("503 Slow Down")
        if self._happens():
            sleep(LATE_S)
        if self.is_closed:
            raise IndexClosed
        found = work(*arguments)
        if self._happens():
            raise BlobStoreError("connection reset")
        return found


class ObjectsAtOnce(ObjectReader):
    """Reads of objects on the caller's thread; ``places`` are those that were read."""

    def __init__(self, objects):
        super().__init__(lambda: objects)
        self.objects = objects
        self.places = []

    def read(self, places, within_s=None):
        wanted = [*places]
        self.places += wanted
        return {each: self._read_at(each) for each in wanted}

    def _read_at(self, place):
        try:
            data = self.objects.get_range(place.key, place.position, place.length)
        except BlobNotFound:
            raise ObjectDamaged(f"object {place.key} is missing") from None
        if len(data) < place.length:
            raise ObjectDamaged(f"object {place.key} ends early")
        return data


class IndexWithObjects(MemoryIndex):
    """An index that puts the payloads of two of three flushes into an object store."""

    def __init__(self):
        super().__init__()
        self.objects = ScriptedObjects(lambda: live_keys_of(self))
        self.reader = ObjectsAtOnce(self.objects)

    def commit_flush(self, session, flush):
        if flush.payload and flush.number % 3:
            body = [flush.payload[each.position :][: each.length] for each in flush.items]
            made = wal_object(flush.items, body)
            key = UploadKey(session, flush.lane, flush.number, 1).text
            self.objects.put(key, b"".join(made.body))
            flush = replace(flush, items=made.items, payload=None, key=key, size=made.size)
        return super().commit_flush(session, flush)

    def bodies(self, extents, within_s=None):
        return self.reader.bodies(extents, within_s)

    def headers(self, extents):
        return self.reader.headers(extents)


def live_keys_of(index):
    """Return the keys of objects in which records lie, as the rows of an index in memory say."""
    return {
        key
        for row in index.rows.values()
        for extent in row.extents
        if extent.place is not None
        for key in keys_with(extent.place.key)
    }


def open_scripted(index, seed, failures=0.05):
    """Return the objects of an index, and what opens a connection to them."""
    objects = ScriptedObjects(lambda: live_keys_of(index))
    random = Random(seed)
    return objects, lambda: ScriptedBlobs(objects, random, failures)


@contextlib.contextmanager
def clusters_with_objects(seed: int = 0, failures: float = 0.0) -> Iterator[list[ScriptedObjects]]:
    """Give each cluster in memory an object store; yield those of them that there are."""
    stores: list[ScriptedObjects] = []
    genuine = MemoryStore.__init__

    def begin(store, *arguments):
        genuine(store, *arguments)
        objects, store.open_objects = open_scripted(store.index, seed, failures)
        stores.append(objects)

    with patch.object(MemoryStore, "__init__", begin):
        yield stores
