"""Where a broker of a cluster keeps what is durable: in the store that it shares with the others.

Rules of this file:

* The directory is a cache, and worth nothing (``storage/store/flush_start.py``), but for who this
  broker is: a container that is started again on it comes back under its node id, and so ends the
  session that it had itself, instead of being waited for until its lease is over.
* Nothing is registered before the directory is locked and known to be of this cluster: what has
  been mounted in the wrong place ends nobody's session. Nor does a release that does not support
  the levels of features in force.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from barnabas.broker.config.features import FEATURES_ENTITY, check_supported
from barnabas.broker.metadata.identity import read_properties, refuse_backup, settle_identity
from barnabas.broker.opening.local_directory import GivenUp, Opened
from barnabas.storage.errors import StoreUnusable
from barnabas.storage.metastore.interface import MetaStoreError
from barnabas.storage.replicated.log_index import IndexClosed, IndexMisused
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
    """What a start waits for, in the words of ``/readyz``."""

    def describe(self) -> str:
        """Say it; why is for the log only, everybody may ask here."""
        return "waits for the store of the cluster"


class ClusterHome:
    """A cache, and the store behind it; see ``Home``."""

    def __init__(self, config: BrokerConfig, file_system: FileSystem, base: ClusterBase) -> None:
        """``close`` closes ``base``."""
        self.progress = WaitingForStore()
        self.committer: FlushCommitter | None = None
        """Once logs are open: what has to know when a session ends and another one begins."""
        self.session: int
        """Of this broker: set before the logs are opened."""
        self._config = config
        self._file_system = file_system
        self._base = base
        self._metastore: MetaStore
        self._gives_up = False

    def enter(self, logs: LogStore) -> int:
        """Take the directory, and return the node id of this broker.

        That is the one of the configuration, or the one that the directory had before, or a new
        one. Raises AlreadyLocked, NotACache, IdentityMismatch, Corrupt, GivenUp, StoreUnusable.
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
            check_supported(self._metastore.load().broker_configs.get(FEATURES_ENTITY, {}))
        return node_id

    def open_metadata(self, logs: LogStore) -> MetaStore:
        """Return what ``enter`` has opened; see ``Home``."""
        del logs
        return self._metastore

    def open_logs(
        self, logs: LogStore, catalogue: Catalogue, specs: Sequence[PartitionSpec]
    ) -> Opened:
        """Begin to commit to the store; logs come with what this broker is to lead."""
        del catalogue
        assert not specs, "logs come with their leadership"
        with self.until_given_up():
            self.committer = open_cache(logs, self._base.log_index(), self.session)
        ours = self._metastore.identity
        words, cluster_id = f"broker {ours.node_id}", ours.cluster_id
        return Opened(
            clean=True,
            words=f"{words} of cluster {cluster_id}",
            fields=f"cluster={cluster_id} node_id={ours.node_id} session={self.session}",
        )

    def close_metadata(self) -> None:
        """End whatever waits for the MetaStore; may block."""
        self._metastore.close()

    def give_up(self) -> None:
        """End whatever waits for the store; see ``Home``."""
        self._gives_up = True
        self._base.close()

    def close(self) -> None:
        """Close all ways to the store."""
        self._base.close()

    def _new_node_id(self) -> int:
        index = self._base.cluster_index()
        try:
            return index.new_node_id()
        finally:
            index.close()

    @contextlib.contextmanager
    def until_given_up(self) -> Iterator[None]:
        """Raise GivenUp in place of what ``give_up`` has ended, StoreUnusable for a bad address."""
        try:
            yield
        except IndexMisused as error:
            raise StoreUnusable(f"the store of the cluster: {error}") from error
        except (IndexClosed, MetaStoreError) as error:
            if self._gives_up:
                raise GivenUp from error
            raise
