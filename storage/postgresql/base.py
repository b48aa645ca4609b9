"""One broker's ways to a cluster's PostgreSQL."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from barnabas.storage.errors import IndexClosed
from barnabas.storage.metastore.interface import MetaStoreError
from barnabas.storage.objects.counted_blobs import CountedBlobs, ObjectCounts
from barnabas.storage.objects.object_use import ObjectUse
from barnabas.storage.postgresql.failover_check import Witness
from barnabas.storage.postgresql.metastore import PostgreSqlMetaStore, cluster_id_of
from barnabas.storage.postgresql.postgresql_blob_store import PostgreSqlBlobStore
from barnabas.storage.postgresql.postgresql_cluster_index import PostgreSqlClusterIndex
from barnabas.storage.postgresql.postgresql_log_index import PostgreSqlLogIndex
from barnabas.storage.postgresql.postgresql_object_rows import PostgreSqlObjectRows
from barnabas.storage.postgresql.postgresql_transfer import PostgreSqlTransfer
from barnabas.storage.postgresql.primary import PATIENCE_S, Primary
from barnabas.storage.postgresql.schema import bring_up_to_date
from barnabas.storage.replicated.object_reading import ObjectReader
from barnabas.storage.runtime.threads import new_lock

if TYPE_CHECKING:
    from barnabas.storage.objects.blob_store import BlobStore

Opened = TypeVar(
    "Opened",
    PostgreSqlBlobStore,
    PostgreSqlLogIndex,
    PostgreSqlClusterIndex,
    PostgreSqlMetaStore,
    PostgreSqlObjectRows,
)


class PostgreSqlBase:
    """A ``ClusterBase`` on an address. Each object that it creates has connections of its own.

    These objects wait for a server that takes writes, and the first one migrates the schema to this
    release. Only the first one raises NotDurable and SchemaTooNew: a running broker continues while
    a newer one migrates, and waits for a server that is unsuitable. Each object raises
    StoreUnusable once the server has lost data that it had confirmed.
    """

    def __init__(
        self,
        address: str,
        *,
        new_cluster_id: str,
        patience_s: float = PATIENCE_S,
        open_objects: Callable[[str], BlobStore] | None = None,
        object_store: str | None = None,
    ) -> None:
        """``address`` as for ``Primary``; ``new_cluster_id`` is used only for a new cluster.

        ``open_objects`` returns a connection to the objects of a cluster by its ID, or is None if
        all records are kept in PostgreSQL. ``object_store`` is its address, the same for all
        brokers; None with ``open_objects`` is that of a tool, which registers no session.
        """
        self._address = address
        self._open_objects = open_objects
        self._cluster_id: str | None = None
        self._objects = None if open_objects is None else ObjectReader(self._object_store)
        self.has_object_store = open_objects is not None
        """Whether this broker has an object store beside the index."""
        self.object_use = ObjectUse(object_store)
        """Whether records may be put into it."""
        self.object_counts = ObjectCounts()
        """Counts of calls of the store into which large flushes are uploaded."""
        self._new_cluster_id = new_cluster_id
        self._patience_s = patience_s
        self._lock = new_lock()
        self._witness = Witness()
        self._primaries: list[Primary] = []
        self._is_closed = False
        self.has_answered = False
        """Whether the server was found suitable once."""
        self.warning: str | None = None
        """Warning for the operator about the server's durability, set with the first object, or
        None."""

    @property
    def last_error(self) -> str:
        """Return the reason why the server does not respond now, or ""."""
        with self._lock:
            troubles = [each.last_error for each in self._primaries if not each.is_closed]
        return next(filter(None, troubles), "")

    def log_index(self) -> PostgreSqlLogIndex:
        """Return a new index of the durable logs."""
        return self._open(partial(PostgreSqlLogIndex.begin, objects=self._objects), self._primary())

    def blob_stores(self) -> Sequence[BlobStore]:
        """Return new connections to all stores of the bodies of large flushes.

        New bodies go into the first one.
        """
        elsewhere = [] if self._open_objects is None else [self._object_store()]
        in_rows = self._open(PostgreSqlBlobStore.begin, self._primary())
        return [*elsewhere, in_rows] if elsewhere else [CountedBlobs(in_rows, self.object_counts)]

    def object_store_of(self, cluster_id: str) -> BlobStore:
        """Return a new connection to the objects of a cluster that an import gives this ID."""
        with self._lock:
            self._cluster_id = cluster_id
        return self._object_store()

    def _object_store(self) -> BlobStore:
        assert self._open_objects is not None, "an object store is configured"
        with self._lock:
            cluster_id = self._cluster_id
        if cluster_id is None:
            with contextlib.closing(self._primary()) as primary:
                primary.start(bring_up_to_date)
                cluster_id = cluster_id_of(primary, self._new_cluster_id)
        with self._lock:
            self._cluster_id = cluster_id
        return CountedBlobs(self._open_objects(cluster_id), self.object_counts)

    def cluster_index(self) -> PostgreSqlClusterIndex:
        """Return a new index of the cluster's brokers and leaders."""
        return self._open(PostgreSqlClusterIndex.begin, self._primary(), self._primary())

    def object_rows(self) -> PostgreSqlObjectRows:
        """Return a way to the rows that name objects."""
        return self._open(PostgreSqlObjectRows.begin, self._primary())

    def transfer(self, node_id: int) -> PostgreSqlTransfer:
        """Return the calls by which ``node_id`` imports into the cluster or exports it."""
        metastore = self.metastore(node_id)
        return PostgreSqlTransfer(self._primary(), metastore)

    def metastore(self, node_id: int) -> PostgreSqlMetaStore:
        """Return the metadata of the cluster, opened by ``node_id``."""

        def begin(primary: Primary) -> PostgreSqlMetaStore:
            try:
                return PostgreSqlMetaStore.begin(
                    primary, node_id=node_id, new_cluster_id=self._new_cluster_id
                )
            except MetaStoreError:
                if primary.is_closed:
                    raise IndexClosed from None
                raise

        return self._open(begin, self._primary())

    def close(self) -> None:
        """Close every object created here, and end its waits."""
        with self._lock:
            self._is_closed = True
            primaries, self._primaries = self._primaries, []
        if self._objects is not None:
            self._objects.close()
        for primary in primaries:
            primary.close()

    def _primary(self) -> Primary:
        """Return a connection that is closed with all others."""
        primary = Primary(
            self._address,
            patience_s=self._patience_s,
            is_known=self.has_answered,
            witness=self._witness,
        )
        with self._lock:
            if self._is_closed:
                raise IndexClosed
            self._primaries = [each for each in self._primaries if not each.is_closed]
            self._primaries.append(primary)
        return primary

    def _open(self, begin: Callable[..., Opened], *primaries: Primary) -> Opened:
        try:
            opened = begin(*primaries)
        except BaseException:
            for primary in primaries:
                primary.close()
            raise
        self.warning = opened.warning
        self.has_answered = True
        return opened
