"""Records of Kafka's own metadata log about topics, settings, users, ACLs and quotas (KRaft).

A record's value starts with three unsigned varints: the version of this framing (1), the kind of
record, the version of its layout; the fields follow in the compact encoding. Other kinds are
skipped.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from barnabas.protocol.errors import Malformed
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import read_varint

FRAME_VERSION: Final = 1
TOPIC: Final = 2
CONFIG: Final = 4
REMOVE_TOPIC: Final = 9
SCRAM_CREDENTIAL: Final = 11
CLIENT_QUOTA: Final = 14
PRODUCER_IDS: Final = 15
ACL: Final = 18
REMOVE_ACL: Final = 19
REMOVE_SCRAM_CREDENTIAL: Final = 22


@dataclass(frozen=True, slots=True)
class TopicAdded:
    """A topic and its 16-byte id."""

    name: str
    topic_id: bytes


@dataclass(frozen=True, slots=True)
class TopicRemoved:
    """A topic was deleted, and its settings with it."""

    topic_id: bytes


@dataclass(frozen=True, slots=True)
class ConfigSet:
    """A setting of a resource (2 topic, 4 broker); ``value`` None removes it."""

    resource_type: int
    resource_name: str
    key: str
    value: str | None


@dataclass(frozen=True, slots=True)
class ProducerIdsTaken:
    """Producer ids below this one may have been given out."""

    next_producer_id: int


@dataclass(frozen=True, slots=True)
class ScramCredentialSet:
    """The stored credential of a user for a mechanism, by its number."""

    user: str
    mechanism: int
    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int


@dataclass(frozen=True, slots=True)
class ScramCredentialRemoved:
    """Deletion of a user's credential of a mechanism."""

    user: str
    mechanism: int


@dataclass(frozen=True, slots=True)
class AclAdded:
    """A rule of access control, and the 16-byte id that it is removed by."""

    acl_id: bytes
    resource_type: int
    name: str
    pattern: int
    principal: str
    host: str
    operation: int
    permission: int


@dataclass(frozen=True, slots=True)
class AclRemoved:
    """A rule was deleted."""

    acl_id: bytes


@dataclass(frozen=True, slots=True)
class QuotaSet:
    """A limit of an entity: types and names, None for the default; ``value`` None removes it."""

    entity: tuple[tuple[str, str | None], ...]
    key: str
    value: float | None


KraftRecord: TypeAlias = (
    TopicAdded
    | TopicRemoved
    | ConfigSet
    | ProducerIdsTaken
    | ScramCredentialSet
    | ScramCredentialRemoved
    | AclAdded
    | AclRemoved
    | QuotaSet
)


def decode_kraft_record(value: bytes) -> KraftRecord | None:
    """Decode a record's value; return None for an ignored kind. Raises Malformed."""
    view = memoryview(value)
    try:
        frame_version, position = read_varint(view, 0)
        kind, position = read_varint(view, position)
        layout, position = read_varint(view, position)
        if frame_version != FRAME_VERSION:
            raise Malformed(f"metadata record of framing {frame_version}")
        decode = _DECODERS.get(kind)
        if decode is None:
            return None
        if layout != 0:
            raise Malformed(f"metadata record of kind {kind} in unknown layout {layout}")
        reader = Reader(view, position, flexible=True, bounded=False)
        record = decode(reader)
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise Malformed(f"metadata record: {error}") from error
    if reader.position > len(view):
        raise Malformed(f"metadata record ends {reader.position - len(view)} bytes too early")
    return record


def _topic(reader: Reader) -> KraftRecord:
    return TopicAdded(reader.string(), reader.uuid())


def _topic_removed(reader: Reader) -> KraftRecord:
    return TopicRemoved(reader.uuid())


def _config(reader: Reader) -> KraftRecord:
    return ConfigSet(reader.int8(), reader.string(), reader.string(), reader.optional_string())


def _producer_ids(reader: Reader) -> KraftRecord:
    reader.int32()  # The broker's id.
    reader.int64()  # The broker's epoch.
    return ProducerIdsTaken(reader.int64())


def _scram_credential(reader: Reader) -> KraftRecord:
    return ScramCredentialSet(
        reader.string(),
        reader.int8(),
        reader.blob(),
        reader.blob(),
        reader.blob(),
        reader.int32(),
    )


def _scram_credential_removed(reader: Reader) -> KraftRecord:
    return ScramCredentialRemoved(reader.string(), reader.int8())


def _acl(reader: Reader) -> KraftRecord:
    return AclAdded(
        reader.uuid(),
        reader.int8(),
        reader.string(),
        reader.int8(),
        reader.string(),
        reader.string(),
        reader.int8(),
        reader.int8(),
    )


def _acl_removed(reader: Reader) -> KraftRecord:
    return AclRemoved(reader.uuid())


def _entity(reader: Reader, _version: int) -> tuple[str, str | None]:
    entity = reader.string(), reader.optional_string()
    if reader.tags():
        raise Malformed("metadata record with unknown tags")
    return entity


def _quota(reader: Reader) -> KraftRecord:
    entity = reader.array(_entity, 0, least_bytes=3)
    key = reader.string()
    value = reader.float64()
    return QuotaSet(tuple(entity), key, None if reader.int8() else value)


_DECODERS: Final[Mapping[int, Callable[[Reader], KraftRecord]]] = {
    TOPIC: _topic,
    CONFIG: _config,
    REMOVE_TOPIC: _topic_removed,
    SCRAM_CREDENTIAL: _scram_credential,
    CLIENT_QUOTA: _quota,
    PRODUCER_IDS: _producer_ids,
    ACL: _acl,
    REMOVE_ACL: _acl_removed,
    REMOVE_SCRAM_CREDENTIAL: _scram_credential_removed,
}
