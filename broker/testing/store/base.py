"""Store of a cluster in memory, and the connections of its brokers.

``MemoryStore`` is shared. Each broker has a ``MemoryBase`` of its own: a ``ClusterBase`` whose
connections can all be cut at once, and restored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from barnabas.broker.testing.store.blobs import MemoryBlobStore
from barnabas.broker.testing.store.cluster_index import MemoryClusterIndex
from barnabas.broker.testing.store.index import MemoryIndex
from barnabas.broker.testing.store.log_index import MemoryLogIndex
from barnabas.broker.testing.store.metastore import MemoryMetadata, MemoryMetaStore
from barnabas.broker.testing.store.object_rows import MemoryObjectRows
from barnabas.broker.testing.store.transfer import MemoryTransfer
from barnabas.broker.testing.store.unreliable_calls import Link, Way
from barnabas.storage.errors import IndexClosed
from barnabas.storage.objects.counted_blobs import CountedBlobs, ObjectCounts
from barnabas.storage.objects.object_use import ObjectUse
from barnabas.storage.replicated.log_index import Flush
from barnabas.storage.replicated.object_reading import ObjectReader
from barnabas.storage.runtime.clock import monotonic
from barnabas.storage.runtime.threads import new_lock

if TYPE_CHECKING:
    from barnabas.storage.objects.blob_store import BlobStore

OBJECT_STORE: Final = "memory://objects"
"""Address of the object store of every cluster in memory that has one."""


class MemoryStore:
    """Sessions, logs and metadata of one cluster."""

    def __init__(self, cluster_id: str, clock: Callable[[], float] = monotonic) -> None:
        """``cluster_id`` as in ``Identity``; ``clock`` returns the time of leases, in seconds."""
        self.index = MemoryIndex(clock)
        self.open_objects: Callable[[], BlobStore] | None = None
        """Opens a connection to the object store, or None if the index has all records."""
        self._metadata = MemoryMetadata(cluster_id, self.index)

    def base(
        self,
        on_flush: Callable[[Flush], None] = lambda _flush: None,
        on_put: Callable[[str], None] = lambda _key: None,
    ) -> MemoryBase:
        """Return the base of one more broker.

        ``on_flush`` as in ``MemoryLogIndex``, ``on_put`` as in ``MemoryBlobStore``.
        """
        return MemoryBase(self.index, self._metadata, on_flush, on_put, self.open_objects)

    def close(self) -> None:
        """Drop the metadata; brokers must not use their connections any more."""
        self._metadata.close()


class MemoryBase:
    """``ClusterBase`` of one broker at a ``MemoryStore``; any thread can cut and restore it."""

    warning = None

    def __init__(
        self,
        index: MemoryIndex,
        metadata: MemoryMetadata,
        on_flush: Callable[[Flush], None],
        on_put: Callable[[str], None],
        open_objects: Callable[[], BlobStore] | None,
    ) -> None:
        """Create the base; only ``MemoryStore.base`` calls this."""
        self._index = index
        self._open_objects = open_objects
        self._objects = None if open_objects is None else ObjectReader(self._object_store)
        self.has_object_store = open_objects is not None
        """Whether this broker has an object store beside the index."""
        self.object_use = ObjectUse(None if open_objects is None else OBJECT_STORE)
        """Whether records may be put into it."""
        self.object_counts = ObjectCounts()
        """Counts of calls of the store into which large flushes are uploaded."""
        self._metadata = metadata
        self._on_flush = on_flush
        self._on_put = on_put
        self._link = Link()
        self._lock = new_lock()
        self._ways: list[Way] = []
        self._is_closed = False
        self.has_answered = False
        """Whether a connection was created while the store was reachable."""

    def cut(self) -> None:
        """Block the calls of this broker until ``mend``."""
        self._link.cut()

    def mend(self) -> None:
        """Unblock the calls."""
        self._link.mend()

    @property
    def last_error(self) -> str:
        """Return the reason for an unreachable store, or ""."""
        return "it was cut off" if self._link.is_cut else ""

    def log_index(self) -> MemoryLogIndex:
        """Return a new connection to the durable logs."""
        way = MemoryLogIndex(self._index, self._on_flush, self._link, self._objects)
        self._take(way)
        return way

    def blob_stores(self) -> Sequence[BlobStore]:
        """Return new connections to all stores of the bodies of large flushes."""
        in_rows = MemoryBlobStore(self._index.uploads, self._on_put, self._link)
        self._take(in_rows)
        if self._open_objects is None:
            return [CountedBlobs(in_rows, self.object_counts)]
        return [self._object_store(), in_rows]

    def object_store_of(self, cluster_id: str) -> BlobStore:
        """Return a new connection to the objects, which are of one cluster."""
        del cluster_id
        return self._object_store()

    def _object_store(self) -> BlobStore:
        assert self._open_objects is not None, "the store has objects"
        return CountedBlobs(self._open_objects(), self.object_counts)

    def object_rows(self) -> MemoryObjectRows:
        """Return a new connection to the rows that concern the object store."""
        way = MemoryObjectRows(self._index, self._link)
        self._take(way)
        return way

    def cluster_index(self) -> MemoryClusterIndex:
        """Return a new connection to the members and leaders."""
        way = MemoryClusterIndex(self._index, self._link)
        self._take(way)
        return way

    def metastore(self, node_id: int) -> MemoryMetaStore:
        """Return the metadata for a node."""
        way = MemoryMetaStore(self._metadata, node_id, self._link)
        self._take(way)
        return way

    def transfer(self, node_id: int) -> MemoryTransfer:
        """Return a connection for an import or export, as a node."""
        metastore = MemoryMetaStore(self._metadata, node_id, self._link)
        way = MemoryTransfer(self._index, metastore, self._link)
        self._take(way)
        return way

    def close(self) -> None:
        """Close all connections and end their calls."""
        with self._lock:
            self._is_closed = True
            ways, self._ways = self._ways, []
        if self._objects is not None:
            self._objects.close()
        for way in ways:
            way.close()

    def _take(self, way: Way) -> None:
        """Register a connection, so that ``close`` closes it."""
        with self._lock:
            if self._is_closed:
                raise IndexClosed
            self._ways = [each for each in self._ways if not each.is_closed]
            self._ways.append(way)
            self.has_answered = self.has_answered or not self._link.is_cut
