"""The records of Kafka's own metadata log that say what a directory holds, and for whom (KRaft).

A record's value starts with three unsigned varints: the version of this framing (1), the kind of
record, the version of its layout; the fields follow in the compact encoding. Kinds that are not
about names and settings are passed over.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from barnabas.protocol.errors import Malformed
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

_INT32: Final = struct.Struct(">i")
_INT64: Final = struct.Struct(">q")
_FLOAT64: Final = struct.Struct(">d")
_UUID_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class TopicAdded:
    """A topic and its 16-byte id."""

    name: str
    topic_id: bytes


@dataclass(frozen=True, slots=True)
class TopicRemoved:
    """A topic is gone, and its settings with it."""

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
    """What a user's password is verified by, for a mechanism by its number."""

    user: str
    mechanism: int
    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int


@dataclass(frozen=True, slots=True)
class ScramCredentialRemoved:
    """A user cannot log in by this mechanism any more."""

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
    """A rule is gone."""

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
    """Decode a record's value; None for a kind that does not matter here. Raises Malformed."""
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
        return decode(_Fields(view, position))
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise Malformed(f"metadata record: {error}") from error


class _Fields:
    """The fields of a record, one after the other."""

    def __init__(self, view: memoryview, position: int) -> None:
        self._view = view
        self._position = position

    def text(self) -> str:
        text = self.text_or_none()
        if text is None:
            raise Malformed("metadata record without a name")
        return text

    def text_or_none(self) -> str | None:
        size = self._varint()
        return None if size == 0 else self.take(size - 1).decode()

    def data(self) -> bytes:
        return self.take(max(0, self._varint() - 1))

    def uuid(self) -> bytes:
        return self.take(_UUID_BYTES)

    def int8(self) -> int:
        return self.take(1)[0]

    def number(self, kind: struct.Struct) -> int | float:
        found: int | float = kind.unpack(self.take(kind.size))[0]
        return found

    def count(self) -> int:
        return max(0, self._varint() - 1)

    def skip_tags(self) -> None:
        if self._varint():
            raise Malformed("metadata record with unknown tags")

    def take(self, size: int) -> bytes:
        start, end = self._position, self._position + size
        if end > len(self._view):
            raise Malformed(f"metadata record ends {end - len(self._view)} bytes too early")
        self._position = end
        return bytes(self._view[start:end])

    def _varint(self) -> int:
        value, self._position = read_varint(self._view, self._position)
        return value


def _topic(fields: _Fields) -> KraftRecord:
    return TopicAdded(fields.text(), fields.uuid())


def _topic_removed(fields: _Fields) -> KraftRecord:
    return TopicRemoved(fields.uuid())


def _config(fields: _Fields) -> KraftRecord:
    return ConfigSet(fields.int8(), fields.text(), fields.text(), fields.text_or_none())


def _producer_ids(fields: _Fields) -> KraftRecord:
    fields.take(_INT32.size + _INT64.size)  # The broker's id and epoch.
    return ProducerIdsTaken(int(fields.number(_INT64)))


def _scram_credential(fields: _Fields) -> KraftRecord:
    return ScramCredentialSet(
        fields.text(),
        fields.int8(),
        fields.data(),
        fields.data(),
        fields.data(),
        int(fields.number(_INT32)),
    )


def _scram_credential_removed(fields: _Fields) -> KraftRecord:
    return ScramCredentialRemoved(fields.text(), fields.int8())


def _acl(fields: _Fields) -> KraftRecord:
    return AclAdded(
        fields.uuid(),
        fields.int8(),
        fields.text(),
        fields.int8(),
        fields.text(),
        fields.text(),
        fields.int8(),
        fields.int8(),
    )


def _acl_removed(fields: _Fields) -> KraftRecord:
    return AclRemoved(fields.uuid())


def _quota(fields: _Fields) -> KraftRecord:
    entity = []
    for _ in range(fields.count()):
        entity.append((fields.text(), fields.text_or_none()))
        fields.skip_tags()
    key = fields.text()
    value = fields.number(_FLOAT64)
    return QuotaSet(tuple(entity), key, None if fields.int8() else value)


_DECODERS: Final[Mapping[int, Callable[[_Fields], KraftRecord]]] = {
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
