"""Durable data of a broker in a cluster: the shared store, with a local directory as a cache.

Rules of this file:

* The directory is a cache without lasting value (``storage/store/flush_start.py``), except for the
  broker's node ID. A container that restarts on the same directory keeps its node ID, and so ends
  its own previous session at once, instead of waiting for that lease to expire.
* Before registration the directory is locked and checked to belong to this cluster, so that a
  wrongly mounted one ends no session. The release must also support the feature levels in force.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.cluster.membership.base import open_blob_store
from barnabas.broker.config.features import FEATURES_ENTITY, check_supported
from barnabas.broker.metadata.identity import read_properties, refuse_backup, settle_identity
from barnabas.broker.opening.local_directory import GivenUp, Opened
from barnabas.storage.errors import IndexClosed, StoreUnusable
from barnabas.storage.metastore.interface import MetaStoreError
from barnabas.storage.objects.guard import check_guard
from barnabas.storage.replicated.flush_uploads import Uploads, UploadSettings, UploadThreads
from barnabas.storage.replicated.log_index import IndexMisused
from barnabas.storage.store.flush_start import open_cache, wipe
from barnabas.storage.store.recovery import lock_directory

if TYPE_CHECKING:
    from barnabas.broker.cluster.membership.base import ClusterBase
    from barnabas.broker.config.broker_config import BrokerConfig
    from barnabas.broker.metadata.catalogue import Catalogue
    from barnabas.storage.files.file_system import FileSystem
    from barnabas.storage.metastore.interface import MetaStore
    from barnabas.storage.replicated.flush_committer import FlushCommitter
    from barnabas.storage.store.log_store import LogStore
    from barnabas.storage.store.store_parts import PartitionSpec

logger = logging.getLogger("barnabas.broker.server")


class WaitingForStore:
    """State of a start that waits for the store, for ``/readyz``."""

    def describe(self) -> str:
        """Return the state without the reason, which only the log shows: any user can read this."""
        return "waits for the store of the cluster"


class ClusterHome:
    """``Home`` of a cluster member: a cache and the store behind it."""

    def __init__(self, config: BrokerConfig, file_system: FileSystem, base: ClusterBase) -> None:
        """``close`` also closes ``base``."""
        self.progress = WaitingForStore()
        self.committer: FlushCommitter | None = None
        """Committer, once the logs are open; it tracks the end and start of sessions."""
        self.session: int
        """Session of this broker, set before the logs are opened."""
        self._config = config
        self._file_system = file_system
        self._base = base
        self._metastore: MetaStore
        self._gives_up = False

    def enter(self, logs: LogStore) -> int:
        """Take the directory, and return this broker's node ID.

        That is the configured one, otherwise the one stored in the directory, otherwise a new one.
        Raises AlreadyLocked, NotACache, IdentityMismatch, Corrupt, GivenUp, StoreUnusable.
        """
        file_system, directory = self._file_system, self._config.data_directory
        refuse_backup(file_system, directory)
        lock_directory(logs)
        wipe(file_system, directory)
        properties = read_properties(file_system, directory)
        with self.until_given_up():
            if "node.id" in self._config.settings:
                node_id = self._config.node_id
            elif properties is not None:
                node_id = properties.node_id
            else:
                node_id = self._new_node_id()
            self._metastore = self._base.metastore(node_id)
            settle_identity(file_system, self._config, self._metastore, properties)
            self._check_guard()
            check_supported(self._metastore.load().broker_configs.get(FEATURES_ENTITY, {}))
        return node_id

    def open_metadata(self, logs: LogStore) -> MetaStore:
        """Return the MetaStore that ``enter`` has opened; see ``Home``."""
        del logs
        return self._metastore

    def open_logs(
        self, logs: LogStore, catalogue: Catalogue, specs: Sequence[PartitionSpec]
    ) -> Opened:
        """Start committing to the store; logs are opened later, as this broker becomes their
        leader.
        """
        del catalogue
        assert not specs, "logs come with their leadership"
        with self.until_given_up():
            self.committer = open_cache(
                logs, self._base.log_index(), self.session, uploads=self._new_uploads(logs)
            )
        identity = self._metastore.identity
        words, cluster_id = f"broker {identity.node_id}", identity.cluster_id
        return Opened(
            clean=True,
            words=f"{words} of cluster {cluster_id}",
            fields=f"cluster={cluster_id} node_id={identity.node_id} session={self.session}",
        )

    def close_metadata(self) -> None:
        """End all calls of the MetaStore; may block."""
        self._metastore.close()

    def give_up(self) -> None:
        """End all calls of the store; see ``Home``."""
        self._gives_up = True
        self._base.close()

    def close(self) -> None:
        """Close all connections to the store."""
        self._base.close()

    def _new_uploads(self, logs: LogStore) -> Uploads | None:
        """Return the uploads of large flushes, or None if the configuration has none."""
        config = self._config
        with contextlib.closing(open_blob_store(self._base)) as blobs:
            blobs.check(str(self.session))  # Without uploads, too, it gets packed segments.
        if not config.objects_uploads_max:
            return None
        settings = UploadSettings(config.flush_object_min_bytes, most=config.objects_uploads_max)
        if self._base.has_object_store:
            settings = replace(
                settings,
                bytes_max=config.flush_max_bytes,
                in_object_store=True,
                window_s=config.flush_ms / 1000,
            )
        uploads = UploadThreads(partial(open_blob_store, self._base), logs.failed, settings)
        uploads.may_begin = self._base.object_use.may_put
        return uploads

    def _check_guard(self) -> None:
        """Raise StoreUnusable if index and object store do not belong together."""
        if not self._base.has_object_store:
            return
        with (
            contextlib.closing(open_blob_store(self._base)) as blobs,
            contextlib.closing(self._base.object_rows()) as rows,
        ):
            check_guard(rows, blobs)

    def _new_node_id(self) -> int:
        index = self._base.cluster_index()
        try:
            return index.new_node_id()
        finally:
            index.close()

    @contextlib.contextmanager
    def until_given_up(self) -> Iterator[None]:
        """Raise GivenUp after ``give_up`` has ended a call, and StoreUnusable for a bad address."""
        try:
            yield
        except IndexMisused as error:
            raise StoreUnusable(f"the store of the cluster: {error}") from error
        except (IndexClosed, MetaStoreError) as error:
            if self._gives_up:
                raise GivenUp from error
            raise
