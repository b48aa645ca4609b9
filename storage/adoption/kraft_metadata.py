"""Contents of Kafka's metadata log in a data directory: topics, settings, users, ACLs, quotas.

``__cluster_metadata-0`` holds snapshots (``<offset>-<epoch>.checkpoint``) and the log; the newest
snapshot stands for everything before its offset. Both are record batches. A single node's log has
no records that are not committed.
"""

from dataclasses import dataclass, field
from typing import Final, TypeAlias

from barnabas.protocol.errors import Malformed
from barnabas.protocol.kraft_records import (
    AclAdded,
    AclRemoved,
    ConfigSet,
    KraftRecord,
    ProducerIdsTaken,
    QuotaSet,
    ScramCredentialRemoved,
    ScramCredentialSet,
    TopicAdded,
    TopicRemoved,
    decode_kraft_record,
)
from barnabas.protocol.record_decoding import iterate_records
from barnabas.protocol.records import CorruptBatch, InvalidBatch, iterate_batches, verify_batch
from barnabas.storage.errors import Corrupt
from barnabas.storage.files.directory_names import KRAFT_DIRECTORY
from barnabas.storage.files.file_system import FileSystem
from barnabas.storage.log.segment_names import LOG_SUFFIX
from barnabas.storage.metastore.interface import AclRow

SNAPSHOT_SUFFIX: Final = ".checkpoint"
BATCH_BYTES_MAX: Final = 64 * 1024 * 1024

TOPIC_RESOURCE: Final = 2
BROKER_RESOURCE: Final = 4

QuotaEntity: TypeAlias = tuple[tuple[str, str | None], ...]

_OFFSET_DIGITS: Final = 20


@dataclass(slots=True)
class KraftMetadata:
    """Topics by id, settings by topic name and by broker ("" is every broker).

    Users' SCRAM credentials by name and mechanism, quotas by entity and key.
    """

    topics: dict[bytes, str] = field(default_factory=dict)
    topic_configs: dict[str, dict[str, str]] = field(default_factory=dict)
    broker_configs: dict[str, dict[str, str]] = field(default_factory=dict)
    next_producer_id: int = 0
    acls: dict[bytes, AclRow] = field(default_factory=dict)
    scram_credentials: dict[tuple[str, int], ScramCredentialSet] = field(default_factory=dict)
    quotas: dict[tuple[QuotaEntity, str], float] = field(default_factory=dict)

    def apply(self, record: KraftRecord) -> None:
        """Apply one record."""
        match record:
            case TopicAdded(name, topic_id):
                self.topics[topic_id] = name
            case TopicRemoved(topic_id):
                name = self.topics.pop(topic_id, "")
                self.topic_configs.pop(name, None)
            case ProducerIdsTaken(next_producer_id):
                self.next_producer_id = next_producer_id
            case ConfigSet():
                self._configure(record)
            case _:
                self._protect(record)

    def _protect(self, record: KraftRecord) -> None:
        match record:
            case AclAdded():
                self.acls[record.acl_id] = AclRow(
                    record.resource_type,
                    record.name,
                    record.pattern,
                    record.principal,
                    record.host,
                    record.operation,
                    record.permission,
                )
            case AclRemoved(acl_id):
                self.acls.pop(acl_id, None)
            case ScramCredentialSet(user, mechanism):
                self.scram_credentials[user, mechanism] = record
            case ScramCredentialRemoved(user, mechanism):
                self.scram_credentials.pop((user, mechanism), None)
            case QuotaSet(entity, key, None):
                self.quotas.pop((entity, key), None)
            case QuotaSet(entity, key, value):
                assert value is not None
                self.quotas[entity, key] = value

    def _configure(self, record: ConfigSet) -> None:
        settings = {
            TOPIC_RESOURCE: self.topic_configs,
            BROKER_RESOURCE: self.broker_configs,
        }.get(record.resource_type)
        if settings is None:
            return
        configs = settings.setdefault(record.resource_name, {})
        if record.value is None:
            configs.pop(record.key, None)
        else:
            configs[record.key] = record.value


def read_kraft_metadata(file_system: FileSystem, root: str) -> KraftMetadata | None:
    """Read the metadata log of a data directory, or return None without one. Raises Corrupt."""
    directory = file_system.join(root, KRAFT_DIRECTORY)
    if not file_system.is_directory(directory):
        return None
    names = file_system.list_directory(directory)
    metadata = KraftMetadata()
    start = 0
    snapshots = [name for name in names if name.endswith(SNAPSHOT_SUFFIX)]
    if snapshots:
        newest = max(snapshots)
        start = int(newest[:_OFFSET_DIGITS])
        _apply_file(file_system, file_system.join(directory, newest), metadata, 0)
    for name in names:
        if name.endswith(LOG_SUFFIX):
            _apply_file(file_system, file_system.join(directory, name), metadata, start)
    return metadata


def _apply_file(
    file_system: FileSystem, path: str, metadata: KraftMetadata, start_offset: int
) -> None:
    """Apply every record of a file from ``start_offset`` on."""
    view = memoryview(file_system.read_file(path))
    position = 0
    try:
        for position, header in iterate_batches(view):
            batch = view[position : position + header.size]
            verify_batch(batch)
            if header.is_control or header.last_offset < start_offset:
                continue
            for record in iterate_records(batch, limit_bytes=BATCH_BYTES_MAX):
                if record.offset < start_offset or record.value is None:
                    continue
                decoded = decode_kraft_record(bytes(record.value))
                if decoded is not None:
                    metadata.apply(decoded)
    except (CorruptBatch, InvalidBatch, Malformed) as error:
        raise Corrupt(path, position, str(error)) from error
