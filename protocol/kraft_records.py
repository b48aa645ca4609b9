"""The few records of Kafka's own metadata log that say what a directory's topics are (KRaft).

A record's value starts with three unsigned varints: the version of this framing (1), the kind of
record, the version of its layout; the fields follow in the compact encoding. Kinds that are not
about names and settings are passed over.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final, TypeAlias

from barnabas.protocol.errors import Malformed
from barnabas.protocol.wire import read_varint

FRAME_VERSION: Final = 1
TOPIC: Final = 2
CONFIG: Final = 4
REMOVE_TOPIC: Final = 9
PRODUCER_IDS: Final = 15

_INT64: Final = struct.Struct(">q")
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


KraftRecord: TypeAlias = TopicAdded | TopicRemoved | ConfigSet | ProducerIdsTaken


def decode_kraft_record(value: bytes) -> KraftRecord | None:
    """Decode a record's value; None for a kind that does not matter here. Raises Malformed."""
    view = memoryview(value)
    try:
        frame_version, position = read_varint(view, 0)
        kind, position = read_varint(view, position)
        layout, position = read_varint(view, position)
        if frame_version != FRAME_VERSION:
            raise Malformed(f"metadata record of framing {frame_version}")
        if kind not in {TOPIC, CONFIG, REMOVE_TOPIC, PRODUCER_IDS}:
            return None
        if layout != 0:
            raise Malformed(f"metadata record of kind {kind} in unknown layout {layout}")
        return _decode_body(view, position, kind)
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise Malformed(f"metadata record: {error}") from error


def _decode_body(view: memoryview, position: int, kind: int) -> KraftRecord:
    if kind == TOPIC:
        name, position = _read_string(view, position)
        topic_id, _ = _read_bytes(view, position, _UUID_BYTES)
        return TopicAdded(_present(name), topic_id)
    if kind == REMOVE_TOPIC:
        topic_id, _ = _read_bytes(view, position, _UUID_BYTES)
        return TopicRemoved(topic_id)
    if kind == PRODUCER_IDS:
        # An int32 broker id and an int64 broker epoch come first.
        return ProducerIdsTaken(_INT64.unpack_from(view, position + 12)[0])
    resource_type = int(view[position])
    resource_name, position = _read_string(view, position + 1)
    key, position = _read_string(view, position)
    value, _ = _read_string(view, position)
    return ConfigSet(resource_type, _present(resource_name), _present(key), value)


def _read_string(view: memoryview, position: int) -> tuple[str | None, int]:
    size, position = read_varint(view, position)
    if size == 0:
        return None, position
    data, position = _read_bytes(view, position, size - 1)
    return data.decode(), position


def _read_bytes(view: memoryview, position: int, size: int) -> tuple[bytes, int]:
    end = position + size
    if end > len(view):
        raise Malformed(f"metadata record ends {end - len(view)} bytes too early")
    return bytes(view[position:end]), end


def _present(text: str | None) -> str:
    if text is None:
        raise Malformed("metadata record without a name")
    return text
