"""Store of a cluster, as one of its brokers connects to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from barnabas.storage.metastore.interface import MetaStore
    from barnabas.storage.objects.blob_store import BlobStore
    from barnabas.storage.objects.counted_blobs import ObjectCounts
    from barnabas.storage.objects.object_rows import ObjectRows
    from barnabas.storage.objects.object_use import ObjectUse
    from barnabas.storage.replicated.cluster_index import ClusterIndex
    from barnabas.storage.replicated.cluster_transfer import ClusterTransfer
    from barnabas.storage.replicated.log_index import LogIndex


class ClusterBase(Protocol):
    """Factory of a broker's connections to its cluster's store, each for one caller at a time.

    Call its methods on threads: they wait while the store is unavailable. ``log_index``,
    ``blob_stores``, ``cluster_index`` and ``metastore`` raise ``IndexClosed`` once this is closed,
    and the store's error if it cannot be used at all.
    """

    @property
    def last_error(self) -> str:
        """Return the error of the store's last call, or "" if it succeeded; for any thread."""

    @property
    def has_answered(self) -> bool:
        """Whether the store has responded, and passed its checks, since this object was created."""

    @property
    def warning(self) -> str | None:
        """Return a warning for operators about the store's durability, once it is open, or None."""

    @property
    def has_object_store(self) -> bool:
        """Whether this broker has an object store beside the index."""

    @property
    def object_use(self) -> ObjectUse:
        """Return whether records may be put into the object store."""

    @property
    def object_counts(self) -> ObjectCounts:
        """Return the counts of calls of the store into which large flushes are uploaded."""

    def log_index(self) -> LogIndex:
        """Return a new connection to the durable logs."""

    def blob_stores(self) -> Sequence[BlobStore]:
        """Return new connections to all stores of the bodies of large flushes.

        New bodies go into the first one.
        """

    def object_rows(self) -> ObjectRows:
        """Return a new connection to the rows that concern the object store."""

    def cluster_index(self) -> ClusterIndex:
        """Return a new connection to the members and leaders."""

    def metastore(self, node_id: int) -> MetaStore:
        """Return the cluster's metadata for a node, created if it does not exist."""

    def close(self) -> None:
        """Close all connections and end their calls."""


def open_blob_store(base: ClusterBase) -> BlobStore:
    """Return a new connection to the store of new objects; as ``ClusterBase.blob_stores``."""
    store, *others = base.blob_stores()
    for each in others:
        each.close()
    return store


class TransferBase(ClusterBase, Protocol):
    """Store that can be filled from a data directory, and exported to one."""

    def transfer(self, node_id: int) -> ClusterTransfer:
        """Return a connection for an import or export, as a node."""

    def object_store_of(self, cluster_id: str) -> BlobStore:
        """Return a new connection to the objects of a cluster that an import gives this ID.

        Only with ``has_object_store``.
        """
