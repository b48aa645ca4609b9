"""Metadata of the brokers of a process, in memory: one store, with a connection for each node.

Created and deleted partitions appear in the ``MemoryIndex`` of the cluster at once, as if both were
one database.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ParamSpec, TypeVar

from barnabas.broker.testing.store.index import MemoryIndex
from barnabas.broker.testing.store.unreliable_calls import Link, Way
from barnabas.storage.errors import IndexClosed
from barnabas.storage.metastore.contents import Contents
from barnabas.storage.metastore.interface import (
    Identity,
    MetadataImage,
    MetaStoreError,
    Outdated,
    PartitionRow,
    TopicRow,
)
from barnabas.storage.metastore.sqlite import MEMORY, SqliteMetaStore
from barnabas.storage.metastore.tables import ReplacedTables, Rows
from barnabas.storage.runtime.threads import new_rlock

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")


class MemoryMetadata:
    """Metadata that all brokers share."""

    def __init__(self, cluster_id: str, index: MemoryIndex) -> None:
        """Create the metadata of a cluster without topics; ``index`` gets their partitions."""
        self.store = SqliteMetaStore.open(MEMORY, node_id=0, new_cluster_id=cluster_id)
        self.index = index
        self.lock = new_rlock()

    def close(self) -> None:
        """Drop the metadata."""
        with self.lock:
            self.store.close()


class MemoryMetaStore(Way, ReplacedTables):
    """MetaStore of one broker. A call waits while the connection is cut; ``close`` ends it."""

    def __init__(self, shared: MemoryMetadata, node_id: int, link: Link | None = None) -> None:
        """``link``: see ``Way``."""
        super().__init__(link)
        self._shared = shared
        self._store = shared.store
        self._identity = Identity(shared.store.identity.cluster_id, node_id)
        self._version = 0

    @property
    def identity(self) -> Identity:
        """Return this node's identity."""
        return self._identity

    @property
    def version(self) -> int:
        """Return the newest version that this object has written or read."""
        return self._version

    def based_on(self, version: int, change: Callable[[], Result]) -> Result:
        """Run one change, which is a call of this object; raise Outdated if others were first."""

        def compared() -> Result:
            if self._store.version > version:
                raise Outdated
            return change()

        return self._locked(compared)

    @property
    def boot_epoch(self) -> int:
        """Return the boot epoch."""
        return self._locked(lambda: self._store.boot_epoch)

    def begin_boot(self) -> int:
        """Raise the boot epoch by one and return it."""
        return self._change(self._store.begin_boot)

    def raise_boot_epoch(self, at_least: int) -> int:
        """Make the boot epoch at least ``at_least`` and return it."""
        return self._change(self._store.raise_boot_epoch, at_least)

    def allocate_producer_ids(self) -> range:
        """Return a block of producer ids that is never returned again (S10)."""
        return self._change(self._store.allocate_producer_ids)

    def raise_producer_ids(self, at_least: int) -> None:
        """Raise the next producer ID to ``at_least``."""
        self._change(self._store.raise_producer_ids, at_least)

    def load(self) -> MetadataImage:
        """Return all topics, tombstones and settings as one consistent picture."""
        image = self._locked(self._store.load)
        self._version = image.version
        return image

    def create_topic(
        self, name: str, topic_id: bytes, partition_count: int, configs: Mapping[str, str]
    ) -> TopicRow:
        """Create a topic with its partitions and settings; raise TopicExists."""
        return self._change(self._create_topic, name, topic_id, partition_count, configs)

    def create_partitions(self, topic_id: bytes, total_count: int) -> tuple[PartitionRow, ...]:
        """Extend a topic to ``total_count`` partitions and return the new ones."""
        return self._change(self._create_partitions, topic_id, total_count)

    def delete_topic(self, topic_id: bytes) -> None:
        """Hide a topic and leave a tombstone; its partitions have no leader any more."""
        self._change(self._delete_topic, topic_id)

    def forget_topic(self, topic_id: bytes) -> None:
        """Remove a tombstone."""
        self._change(self._store.forget_topic, topic_id)

    def set_topic_configs(self, topic_id: bytes, configs: Mapping[str, str]) -> None:
        """Replace all settings of a topic; raise TopicNotFound."""
        self._change(self._store.set_topic_configs, topic_id, configs)

    def keep_secret(self, name: str, new: bytes) -> bytes:
        """Return the secret stored under a name; if there is none, store ``new``."""
        return self._locked(self._store.keep_secret, name, new)

    def contents(self) -> Contents:
        """Return all contents."""
        return self._locked(self._store.contents)

    def fill(self, contents: Contents) -> None:
        """Replace all contents; open this store again to get the cluster's new ID."""
        self._change(self._store.fill, contents)
        self._identity = Identity(contents.cluster_id, self._identity.node_id)

    # -- changes -----------------------------------------------------------------------------------

    def _replace(self, table: str, keys: Rows, rows: Rows) -> None:
        self._change(self._store._replace, table, keys, rows)

    def _create_topic(
        self, name: str, topic_id: bytes, partition_count: int, configs: Mapping[str, str]
    ) -> TopicRow:
        topic = self._store.create_topic(name, topic_id, partition_count, configs)
        self._add_partitions(topic.partitions)
        return topic

    def _create_partitions(self, topic_id: bytes, total_count: int) -> tuple[PartitionRow, ...]:
        added = self._store.create_partitions(topic_id, total_count)
        self._add_partitions(added)
        return added

    def _add_partitions(self, rows: Sequence[PartitionRow]) -> None:
        for row in rows:
            self._shared.index.add_partition(row.partition_id)

    def _delete_topic(self, topic_id: bytes) -> None:
        topics = {topic.topic_id: topic for topic in self._store.load().topics}
        self._store.delete_topic(topic_id)
        removed = [row.partition_id for row in topics[topic_id].partitions]
        self._shared.index.remove_partitions(removed)

    def _change(
        self,
        change: Callable[Arguments, Result],
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> Result:
        def changed() -> Result:
            result = change(*arguments, **named)
            self._version = self._store.version
            self._shared.index.metadata_changed(self._version)
            return result

        return self._locked(changed)

    def _locked(
        self,
        call: Callable[Arguments, Result],
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> Result:
        """Call once: calls of the local store are not repeated."""
        try:
            self._wait_until_reachable()
        except IndexClosed as error:
            raise MetaStoreError("the metadata store was closed") from error
        with self._shared.lock:
            return call(*arguments, **named)
