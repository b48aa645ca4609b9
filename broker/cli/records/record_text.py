"""Records as the commands print and read them: JSON, one object a line, or text by a template.

What ``consume --format json`` prints, ``produce --input json`` reads.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from barnabas.broker.cli.output import time_text
from barnabas.broker.client.topic_reader import ReceivedRecord
from barnabas.protocol.internal_records import bytes_as_json

Headers = tuple[tuple[str, bytes | None], ...]

_FIELDS = frozenset({"key", "value", "headers", "partition", "timestamp", "topic", "offset"})
_ESCAPES = {"\\n": "\n", "\\t": "\t", "\\r": "\r", "\\0": "\0", "\\\\": "\\"}
_LONG_MAX = 2**63 - 1


class BadRecord(Exception):
    """A line that is no record; the message says why."""


class NewRecord(NamedTuple):
    """A record to write: ``partition`` None leaves the choice, ``timestamp`` None means now."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    partition: int | None = None
    timestamp: int | None = None


def unescape(text: str) -> str:
    r"""Replace the escapes of a text typed in a shell: newline, tab, return, NUL, backslash."""
    return re.sub(r"\\[ntr0\\]", lambda found: _ESCAPES[found[0]], text)


# ------------------------------------------------------------------------------------------- JSON


def record_as_json(record: ReceivedRecord, *, json_values: bool = False) -> str:
    """Return a record as a line of JSON; bytes that are not UTF-8 are ``{"base64": ...}``.

    ``json_values``: write a value that is JSON unchanged, not as a JSON string.
    """
    return json.dumps(
        {
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp": record.timestamp,
            "key": bytes_as_json(record.key),
            "value": _embedded(record.value) if json_values else bytes_as_json(record.value),
            "headers": [
                {"key": name, "value": bytes_as_json(value)} for name, value in record.headers
            ],
        },
        ensure_ascii=False,
    )


def _embedded(value: bytes | None) -> Any:  # noqa: ANN401
    """Return a value parsed as JSON, or as ``bytes_as_json`` if it is not JSON."""
    try:
        return None if value is None else json.loads(value)
    except (ValueError, RecursionError):
        return bytes_as_json(value)


def record_from_json(line: bytes, *, json_values: bool = False) -> NewRecord:
    """Parse the output of ``record_as_json``; topic and offset are ignored. Raises BadRecord.

    With ``json_values`` the value is any JSON, and its text becomes the record's value; null means
    no value.
    """
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        raise BadRecord("the line is not valid JSON") from None
    if not isinstance(fields, dict):
        raise BadRecord("the line is not a JSON object")
    unknown = sorted(fields.keys() - _FIELDS)
    if unknown:
        raise BadRecord(f"unknown field {unknown[0]}")
    return NewRecord(
        _bytes_from_json("key", fields.get("key")),
        _value_from_json(fields.get("value"))
        if json_values
        else _bytes_from_json("value", fields.get("value")),
        _headers_from_json(fields.get("headers", [])),
        _number_from_json("partition", fields.get("partition"), 0),
        _number_from_json("timestamp", fields.get("timestamp"), -1),
    )


def _value_from_json(value: object) -> bytes | None:
    if value is None:
        return None
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        raise BadRecord("the value is not valid Unicode text") from None


def _bytes_from_json(name: str, value: object) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, str):
        try:
            return value.encode()
        except UnicodeEncodeError:
            raise BadRecord(f"{name} is not text") from None
    if isinstance(value, dict) and value.keys() == {"base64"} and isinstance(value["base64"], str):
        try:
            return base64.b64decode(value["base64"], validate=True)
        except (binascii.Error, ValueError):
            raise BadRecord(f"{name} is not base64") from None
    raise BadRecord(f'{name} must be text, null or {{"base64": "..."}}')


def _headers_from_json(value: object) -> Headers:
    if not isinstance(value, list):
        raise BadRecord("headers must be a list")
    headers = []
    for each in value:
        if not isinstance(each, dict) or not isinstance(each.get("key"), str):
            raise BadRecord('a header must be {"key": "...", "value": ...}')
        name = _bytes_from_json("a header's key", each["key"]) or b""
        headers.append((name.decode(), _bytes_from_json("a header's value", each.get("value"))))
    return tuple(headers)


def _number_from_json(name: str, value: object, least: int) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _LONG_MAX:
        raise BadRecord(f"{name} must be a whole number")
    return value


# ------------------------------------------------------------------------------------------- text

Part = Callable[[ReceivedRecord], bytes]

_PARTS: Mapping[str, Part] = {
    "%": lambda _: b"%",
    "t": lambda record: record.topic.encode(),
    "p": lambda record: b"%d" % record.partition,
    "o": lambda record: b"%d" % record.offset,
    "k": lambda record: record.key or b"",
    "v": lambda record: record.value or b"",
    "K": lambda record: b"%d" % _length(record.key),
    "V": lambda record: b"%d" % _length(record.value),
    "T": lambda record: b"%d" % record.timestamp,
    "D": lambda record: (time_text(record.timestamp) or "-").encode(),
    "h": lambda record: b",".join(
        name.encode() + b"=" + (value or b"") for name, value in record.headers
    ),
}
"""Field for each letter after % in a template."""


def _length(data: bytes | None) -> int:
    return -1 if data is None else len(data)


class Template:
    r"""A text such as ``%p@%o %k=%v\n``, filled in for each record. Raises BadRecord."""

    def __init__(self, text: str) -> None:
        self._parts: list[tuple[bytes, Part | None]] = []
        position = 0
        for found in re.finditer("%(.?)", text, re.DOTALL):
            part = _PARTS.get(found[1])
            if part is None:
                raise BadRecord(f"%{found[1]} means nothing in a template")
            self._parts.append((unescape(text[position : found.start()]).encode(), part))
            position = found.end()
        self._parts.append((unescape(text[position:]).encode(), None))

    def fill(self, record: ReceivedRecord) -> bytes:
        """Return the text for one record."""
        return b"".join(text if part is None else text + part(record) for text, part in self._parts)


def record_as_text(key_separator: str | None) -> Part:
    """Return the writer of a record's value in one line, after its key if there is a separator."""
    template = Template("%v\n")
    if key_separator is None:
        return template.fill
    between = unescape(key_separator).encode()
    return lambda record: (record.key or b"") + between + template.fill(record)
