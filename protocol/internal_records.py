"""The meaning of the internal topics' records, as plain data: for people who read logs."""

from __future__ import annotations

import base64
import importlib
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, cast

from barnabas.protocol.api import AnyRecordType, prefix
from barnabas.protocol.errors import KafkaError, Malformed
from barnabas.protocol.kraft_records import decode_kraft_record
from barnabas.protocol.messages.registry import RECORDS

_UUID_BYTES = 16
_METADATA_TOPIC = "__cluster_metadata"


def decode_internal(topic: str, key: bytes | None, value: bytes | None) -> dict[str, Any] | None:
    """Return kind, key and value of a record of an internal topic, or None for other topics.

    For an unknown or unreadable record, key and value are a text with the reason.
    """
    if topic == _METADATA_TOPIC:
        return _metadata_record(value)
    modules = RECORDS.get(topic)
    if modules is None or key is None:
        return None
    try:
        module = modules.get(prefix(key))
        if module is None:
            return {"kind": f"unknown record type {prefix(key)}"}
        kind = _record_type(module)
        return {
            "kind": kind.name,
            "key": plain(kind.decode_key(key)),
            "value": None if value is None else plain(kind.decode_value(value)),
        }
    except (Malformed, KafkaError) as error:
        return {"kind": f"unreadable: {error}"}


def _metadata_record(value: bytes | None) -> dict[str, Any] | None:
    try:
        record = decode_kraft_record(value or b"")
    except Malformed as error:
        return {"kind": f"unreadable: {error}"}
    return None if record is None else {"kind": type(record).__name__, "value": plain(record)}


@cache
def _record_type(module: str) -> AnyRecordType:
    found = importlib.import_module(f"barnabas.protocol.messages.{module}")
    return cast("AnyRecordType", getattr(found, module.upper()))


def uuid_text(identifier: bytes) -> str:
    """Return an ID of 16 bytes in Kafka's text form."""
    return base64.urlsafe_b64encode(identifier).rstrip(b"=").decode()


def bytes_as_json(data: bytes | None) -> str | dict[str, str] | None:
    """Return bytes as text, or as ``{"base64": ...}`` where they are not UTF-8."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def plain(value: object, name: str = "") -> Any:  # noqa: ANN401  Any value of JSON.
    """Convert a message for JSON."""
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain(getattr(value, each.name), each.name) for each in fields(value)}
    if isinstance(value, list | tuple):
        return [plain(each, name) for each in value]
    if isinstance(value, bytes | memoryview):
        data = bytes(value)
        is_id = name.endswith("_id") and len(data) == _UUID_BYTES
        return uuid_text(data) if is_id else bytes_as_json(data)
    return value
