"""An object store in memory for the brokers of a cluster, of which a test says what fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import pytest

from barnabas.broker.cluster.leading import object_upkeep, upkeep
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


def keep_up_all_the_time(monkeypatch: pytest.MonkeyPatch, **more: int) -> None:
    """Make brokers delete unused data at once; ``more`` are settings of upkeep."""
    settings = partial(upkeep.UpkeepSettings, look_ms=100, garbage_ms=100, forget_ms=100, **more)
    monkeypatch.setattr(upkeep, "UpkeepSettings", settings)
    of_objects = partial(object_upkeep.ObjectUpkeepSettings, first_ms=100, delete_ms=100)
    monkeypatch.setattr(object_upkeep, "ObjectUpkeepSettings", of_objects)


def give_clusters_a_bucket(monkeypatch: pytest.MonkeyPatch) -> Bucket:
    """Give the clusters of a test an object store, and return its objects."""
    bucket = Bucket()

    def init(store: MemoryStore, *arguments: object) -> None:
        INIT(store, *arguments)
        store.open_objects = lambda: ObjectsInMemory(bucket)

    monkeypatch.setattr(MemoryStore, "__init__", init)
    return bucket
