"""An object store in memory for the brokers of a cluster, of which a test says what fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from barnabas.broker.testing.store.base import MemoryStore
from barnabas.broker.testing.store.blobs import MemoryBlobStore
from barnabas.broker.testing.store.uploads import MemoryUploads
from barnabas.storage.files.file_system import Buffer

INIT = MemoryStore.__init__


class Bucket(MemoryUploads):
    """The objects. ``on_put`` is called with a key and what puts it."""

    def __init__(self) -> None:
        super().__init__()
        self.on_put: Callable[[str, Callable[[], None]], None] = lambda _key, put: put()


class ObjectsInMemory(MemoryBlobStore):
    """One connection to a bucket."""

    repeats_calls = False
    is_object_store = True

    def __init__(self, bucket: Bucket) -> None:
        super().__init__(bucket)
        self._bucket = bucket

    def put(self, key: str, body: Sequence[Buffer]) -> None:
        self._bucket.on_put(key, lambda: super(ObjectsInMemory, self).put(key, body))


def give_clusters_a_bucket(monkeypatch: pytest.MonkeyPatch) -> Bucket:
    """Give the clusters of a test an object store, and return its objects."""
    bucket = Bucket()

    def init(store: MemoryStore, *arguments: object) -> None:
        INIT(store, *arguments)
        store.open_objects = lambda: ObjectsInMemory(bucket)

    monkeypatch.setattr(MemoryStore, "__init__", init)
    return bucket
