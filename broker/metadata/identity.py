"""Identity of a data directory: Kafka's ``meta.properties`` beside the metadata store.

The file is for people and for Apache Kafka; the store is authoritative. Both must agree with each
other and with the configuration, or the broker does not start: a directory mounted in the wrong
place must not be written to.
"""

from __future__ import annotations

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.config.cluster import METADATA
from barnabas.storage.errors import Corrupt
from barnabas.storage.files.file_system import FileSystem
from barnabas.storage.log.checkpoint import (
    CorruptFile,
    MetaProperties,
    decode_meta_properties,
    encode_meta_properties,
)
from barnabas.storage.metastore.interface import IdentityMismatch, MetaStore
from barnabas.storage.runtime.chance import random_bytes
from barnabas.storage.store.flush_start import CACHE_MARK

META_PROPERTIES = "meta.properties"
BACKUP_MANIFEST = "barnabas-backup.json"
"""File that marks a directory as a backup, which may share files with the original directory."""

IMPORTED_MARK = "barnabas-imported"
"""File that marks a directory whose data a cluster has taken over."""

EXPORTING_MARK = "barnabas-exporting"
"""File that marks a directory with an incomplete export of a cluster."""


def refuse_backup(file_system: FileSystem, directory: str) -> None:
    """Raise IdentityMismatch if the directory is a backup, which a broker would change."""
    if file_system.exists(file_system.join(directory, BACKUP_MANIFEST)):
        raise IdentityMismatch(
            f"{directory} is a backup: 'barnabas restore {directory} DIRECTORY' makes a data "
            "directory of it"
        )


def refuse_cache(file_system: FileSystem, directory: str) -> None:
    """Raise IdentityMismatch if the directory is a cache, in which a standalone broker would lose
    data.

    Its next start as a member of a cluster would remove them.
    """
    if file_system.exists(file_system.join(directory, CACHE_MARK)):
        raise IdentityMismatch(
            f"{directory} is the cache of a broker of a cluster: what is durable is in the store"
            " that barnabas.metadata names"
        )


def refuse_imported(file_system: FileSystem, directory: str) -> None:
    """Raise IdentityMismatch if a cluster has taken over the directory's data."""
    mark = file_system.join(directory, IMPORTED_MARK)
    if file_system.exists(mark):
        raise IdentityMismatch(
            f"{directory} was imported into a cluster, whose brokers continue it; remove {mark} "
            "only if they never will"
        )


def mark_imported(file_system: FileSystem, directory: str, cluster_id: str) -> None:
    """Prevent standalone brokers from starting in a directory that a cluster has taken over."""
    text = f"Imported into cluster {cluster_id}, whose brokers go on with what was here.\n"
    mark = file_system.join(directory, IMPORTED_MARK)
    file_system.write_file_atomically(mark, text.encode())


def mark_exporting(file_system: FileSystem, directory: str) -> None:
    """Prevent starts in a directory until ``unmark_exporting``."""
    text = b"Not everything is in here: the export of a cluster has not come to its end.\n"
    file_system.write_file_atomically(file_system.join(directory, EXPORTING_MARK), text)


def unmark_exporting(file_system: FileSystem, directory: str) -> None:
    """Allow starts in a directory with a complete export, durably."""
    file_system.unlink(file_system.join(directory, EXPORTING_MARK))
    file_system.sync_directory(directory)


def refuse_exporting(file_system: FileSystem, directory: str) -> None:
    """Raise IdentityMismatch if the directory has an incomplete export of a cluster."""
    if file_system.exists(file_system.join(directory, EXPORTING_MARK)):
        raise IdentityMismatch(
            f"{directory} has only a part of what a cluster has, whose export was cut short: do it"
            " again"
        )


def refuse_other_node(
    config: BrokerConfig, directory: str, properties: MetaProperties | None
) -> None:
    """Raise IdentityMismatch if a new metadata store would belong to another node than the
    directory.

    A store created for the configured node would otherwise stay in the directory of another node.
    """
    if properties is not None and properties.node_id != config.node_id:
        raise IdentityMismatch(
            f"{directory}/{META_PROPERTIES} is of node {properties.node_id}, the configuration says"
            f" node.id={config.node_id}"
        )
    if properties is not None and config.cluster_id not in {None, properties.cluster_id}:
        raise IdentityMismatch(
            f"{directory} belongs to cluster {properties.cluster_id}, "
            f"the configuration says {config.cluster_id}"
        )


def read_properties(file_system: FileSystem, directory: str) -> MetaProperties | None:
    """Return the content of ``meta.properties``, or None; raises Corrupt if it cannot be read."""
    path = file_system.join(directory, META_PROPERTIES)
    if not file_system.exists(path):
        return None
    try:
        return decode_meta_properties(file_system.read_file(path))
    except CorruptFile as error:
        raise Corrupt(path, 0, str(error)) from error


def settle_identity(
    file_system: FileSystem,
    config: BrokerConfig,
    metastore: MetaStore,
    properties: MetaProperties | None,
) -> None:
    """Check that directory, store and configuration belong to one broker; write a missing file.

    Raises IdentityMismatch.
    """
    directory = config.data_directory
    ours = metastore.identity
    if config.cluster_id not in {None, ours.cluster_id}:
        what = f"the database of {METADATA}" if config.is_of_cluster else directory
        raise IdentityMismatch(
            f"{what} belongs to cluster {ours.cluster_id}, "
            f"the configuration says {config.cluster_id}"
        )
    if properties is None:
        new = MetaProperties(ours.cluster_id, ours.node_id, random_bytes(16))
        path = file_system.join(directory, META_PROPERTIES)
        file_system.write_file_atomically(path, encode_meta_properties(new))
    elif (properties.cluster_id, properties.node_id) != (ours.cluster_id, ours.node_id):
        if config.is_of_cluster:
            raise IdentityMismatch(
                f"{directory} is the cache of node {properties.node_id} in cluster "
                f"{properties.cluster_id}, and this is node {ours.node_id} in cluster "
                f"{ours.cluster_id}: give it another directory, or empty that one"
            )
        raise IdentityMismatch(
            f"{directory}/{META_PROPERTIES} is of cluster {properties.cluster_id} node "
            f"{properties.node_id}, its metadata of cluster {ours.cluster_id} node {ours.node_id}"
        )
