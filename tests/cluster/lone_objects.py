"""An object store in memory that single brokers of a cluster cannot reach."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

from barnabas.broker.testing.store.base import MemoryBase, MemoryStore
from barnabas.storage.objects.blob_store import BlobStoreError
from tests.storage.scripted_objects import clusters_with_objects

CALLS = ("put", "get_range", "list", "delete")


class Reach:
    """Brokers that cannot reach the store, by their bases."""

    def __init__(self) -> None:
        self._cut: set[MemoryBase] = set()

    def cut(self, cluster: Any, *numbers: int) -> None:
        """Make each call of the object store fail at some brokers, and work at all others."""
        self._cut = {cluster.brokers[each]._base for each in numbers}

    def reaches(self, base: MemoryBase) -> bool:
        return base not in self._cut


class LinkedBlobs:
    """A connection of one broker, whose calls fail while the broker is cut off."""

    def __init__(self, blobs: Any, base: MemoryBase, reach: Reach) -> None:
        self._blobs = blobs
        self._base = base
        self._reach = reach

    def __getattr__(self, name: str) -> Any:
        if name in CALLS and not self._reach.reaches(self._base):
            return self._refuse
        return getattr(self._blobs, name)

    def _refuse(self, *_arguments: object) -> None:
        raise BlobStoreError("connection refused")


@contextlib.contextmanager
def clusters_with_links_to_objects(seed: int = 0) -> Iterator[Reach]:
    """Give each cluster in memory an object store, which each broker reaches by a link."""
    reach, genuine = Reach(), MemoryStore.base

    def base(store: MemoryStore, *arguments: Any) -> MemoryBase:
        made = genuine(store, *arguments)
        opened = made._open_objects
        assert opened is not None
        made._open_objects = lambda: LinkedBlobs(opened(), made, reach)  # type: ignore[assignment]
        return made

    with clusters_with_objects(seed), patch.object(MemoryStore, "base", base):
        yield reach
