"""A cluster's store in the memory of one process, and how each of its brokers gets at it.

``MemoryStore`` is what all share. Each broker has a ``MemoryBase`` of its own: a ``ClusterBase``
all of whose ways can be cut at once, and mended.
"""

from __future__ import annotations

from collections.abc import Callable

from barnabas.broker.testing.store.cluster_index import MemoryClusterIndex
from barnabas.broker.testing.store.index import MemoryIndex, MemoryLogIndex
from barnabas.broker.testing.store.metastore import MemoryMetadata, MemoryMetaStore
from barnabas.broker.testing.store.transfer import MemoryTransfer
from barnabas.broker.testing.store.unreliable_calls import Link, Way
from barnabas.storage.replicated.log_index import Flush, IndexClosed
from barnabas.storage.runtime.clock import monotonic
from barnabas.storage.runtime.threads import new_lock


class MemoryStore:
    """Sessions, logs and metadata of one cluster."""

    def __init__(self, cluster_id: str, clock: Callable[[], float] = monotonic) -> None:
        """``cluster_id`` as in ``Identity``; ``clock`` says when leases end, in seconds."""
        self.index = MemoryIndex(clock)
        self._metadata = MemoryMetadata(cluster_id, self.index)

    def base(self, on_flush: Callable[[Flush], None] = lambda _flush: None) -> MemoryBase:
        """Return one more broker's way here; ``on_flush`` as in ``MemoryLogIndex``."""
        return MemoryBase(self.index, self._metadata, on_flush)

    def close(self) -> None:
        """Forget the metadata; who still has a way there does not use it any more."""
        self._metadata.close()


class MemoryBase:
    """A ``ClusterBase``: how one broker gets at a ``MemoryStore``. Any thread may cut and mend."""

    warning = None

    def __init__(
        self, index: MemoryIndex, metadata: MemoryMetadata, on_flush: Callable[[Flush], None]
    ) -> None:
        """Made by ``MemoryStore.base``."""
        self._index = index
        self._metadata = metadata
        self._on_flush = on_flush
        self._link = Link()
        self._lock = new_lock()
        self._ways: list[Way] = []
        self._is_closed = False
        self.has_answered = False
        """Whether anything was made while nothing was cut."""

    def cut(self) -> None:
        """Let nothing of this broker through until ``mend``: calls wait, and are not answered."""
        self._link.cut()

    def mend(self) -> None:
        """Let everything through again."""
        self._link.mend()

    @property
    def last_error(self) -> str:
        """Return why the store does not answer now; empty: it does."""
        return "it was cut off" if self._link.is_cut else ""

    def log_index(self) -> MemoryLogIndex:
        """Return a new way to what is durable."""
        way = MemoryLogIndex(self._index, self._on_flush, self._link)
        self._take(way)
        return way

    def cluster_index(self) -> MemoryClusterIndex:
        """Return a new way to who is there and leads."""
        way = MemoryClusterIndex(self._index, self._link)
        self._take(way)
        return way

    def metastore(self, node_id: int) -> MemoryMetaStore:
        """Return the metadata as a node has it."""
        way = MemoryMetaStore(self._metadata, node_id, self._link)
        self._take(way)
        return way

    def transfer(self, node_id: int) -> MemoryTransfer:
        """Return a way to fill the cluster, or to have it written out, as a node."""
        metastore = MemoryMetaStore(self._metadata, node_id, self._link)
        way = MemoryTransfer(self._index, metastore, self._link)
        self._take(way)
        return way

    def close(self) -> None:
        """Close everything that was made here, and end whatever waits."""
        with self._lock:
            self._is_closed = True
            ways, self._ways = self._ways, []
        for way in ways:
            way.close()

    def _take(self, way: Way) -> None:
        """Have a way be closed with all others."""
        with self._lock:
            if self._is_closed:
                raise IndexClosed
            self._ways = [each for each in self._ways if not each.is_closed]
            self._ways.append(way)
            self.has_answered = self.has_answered or not self._link.is_cut
