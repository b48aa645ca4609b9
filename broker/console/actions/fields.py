"""Fields of an action's body: those of its form, and their accepted values."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from barnabas.broker.console.lengths import (
    ENTRIES_MOST,
    ENTRY_NAME_MOST,
    ENTRY_VALUE_MOST,
    LENGTHS,
    check_length,
)
from barnabas.broker.http.messages.answer import JSON
from barnabas.broker.http.messages.json_body import read_json
from barnabas.broker.http.messages.request import BadRequest
from barnabas.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.http.messages.request import Request

TEXT: Final = "text"
LONG: Final = "long"
"""A text of several lines."""
INTEGER: Final = "integer"
HIDDEN: Final = "password"
"""A text that is not shown."""
MAP: Final = "map"
"""Names and values, which are texts or null."""

ONCE: Final = "once"
"""A text that a form generates and does not show, the same for all its requests."""

TEXTS: Final = frozenset((TEXT, LONG, HIDDEN, ONCE))
"""Kinds whose values are one text."""

HEADERS: Final = "headers"
"""Headers of a record, in their order, as `barnabas produce --input json` has them."""

Headers: TypeAlias = "tuple[tuple[str, bytes | None], ...]"
FieldValue: TypeAlias = "str | int | dict[str, str | None] | Headers"

CONFIRM: Final = "confirm"
BASED_ON: Final = "based_on"
_CHECKED_LATER: Final = (CONFIRM, BASED_ON)
"""Texts of a body that no action declares as fields."""
_INT64_MOST: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Field:
    """One field."""

    name: str
    kind: str
    doc: str
    required: bool = False
    choices: tuple[str, ...] = ()
    default: str | None = None
    """Initial value in the form."""
    label: str = ""
    """The field's title in a form, or "" for its name with a capital."""
    length_most: int = field(init=False)
    """Characters of a text."""

    @property
    def title(self) -> str:
        """Return the field's title in a form."""
        return self.label or self.name.replace("_", " ").capitalize()

    def __post_init__(self) -> None:
        """Find the limit of its text; raises KeyError where lengths.py has none."""
        most = 0
        if self.choices:
            most = max(map(len, self.choices))
        elif self.kind in TEXTS:
            most = LENGTHS[self.name]
        object.__setattr__(self, "length_most", most)

    def read(self, value: object) -> FieldValue:
        """Return the parsed value; raises KafkaError."""
        if self.kind in TEXTS and isinstance(value, str):
            return self._text(value)
        if self.kind == INTEGER:
            return self._integer(value)
        if self.kind == MAP and isinstance(value, dict):
            return self._map(value)
        if self.kind == HEADERS and isinstance(value, list):
            return self._headers(value)
        raise self._refused(f"a {self.kind}")

    def _text(self, value: str) -> str:
        if self.choices and value not in self.choices:
            raise self._refused("any of " + ", ".join(self.choices))
        check_length(self.name, value, self.length_most)
        if self.kind == ONCE and not value:
            raise self._refused(f"a {self.kind}")
        return value

    def _integer(self, value: object) -> int:
        if isinstance(value, str) and value.removeprefix("-").isdecimal() and len(value) <= 20:
            value = int(value)  # JavaScript sends what it would round as a text.
        if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _INT64_MOST:
            raise self._refused("a whole number of 64 bits")
        return value

    def _map(self, value: dict[str, object]) -> dict[str, str | None]:
        if len(value) > ENTRIES_MOST:
            raise self._refused(f"at most {ENTRIES_MOST} entries")
        found: dict[str, str | None] = {}
        for name, each in value.items():
            check_length(f"{self.name}: name", name, ENTRY_NAME_MOST)
            if each is not None and not isinstance(each, str):
                raise self._refused(f"{name[:80]} is to have a text, or null")
            check_length(f"{self.name}: {name[:80]}", each or "", ENTRY_VALUE_MOST)
            found[name] = each
        return found

    def _headers(self, value: list[object]) -> Headers:
        if len(value) > ENTRIES_MOST:
            raise self._refused(f"at most {ENTRIES_MOST} entries")
        return tuple(map(self._header, value))

    def _header(self, each: object) -> tuple[str, bytes | None]:
        if not isinstance(each, dict) or not {"key"} <= each.keys() <= {"key", "value"}:
            raise self._refused('an object like {"key": ..., "value": ...}')
        name, value = each["key"], each.get("value")
        if not isinstance(name, str):
            raise self._refused("a text as the key")
        check_length(f"{self.name}: key", name, ENTRY_NAME_MOST)
        if isinstance(value, dict) and value.keys() == {"base64"}:
            return name, self._from_base64(value["base64"])
        if value is not None and not isinstance(value, str):
            raise self._refused('a text as value, null or {"base64": ...}')
        return name, None if value is None else value.encode()

    def _from_base64(self, value: object) -> bytes:
        try:
            return base64.b64decode(value if isinstance(value, str) else "*", validate=True)
        except (binascii.Error, ValueError):
            raise self._refused("valid Base64 text with padding") from None

    def _refused(self, expected: str) -> KafkaError:
        return KafkaError(ErrorCode.INVALID_REQUEST, f"{self.name}: expected {expected}")


class Refused(Exception):
    """The body is not JSON; ``status`` is the HTTP status for that."""

    def __init__(self, status: int, words: str) -> None:
        self.status = status
        super().__init__(words)


def read_body(request: Request) -> dict[str, object]:
    """Return the object that a request carries; raises Refused, KafkaError."""
    if request.media_type != JSON:
        raise Refused(415, "the body must be application/json")
    try:
        body = read_json(request.body or b"{}")
    except BadRequest as bad:
        raise Refused(bad.status, str(bad)) from None
    if not isinstance(body, dict):
        raise Refused(400, "the body must be a JSON object")
    return body


def read_fields(fields: Iterable[Field], body: Mapping[str, object]) -> dict[str, FieldValue]:
    """Return the parsed fields of a body; raises KafkaError."""
    known = {each.name: each for each in fields}
    for name in body:
        if name not in known and name not in _CHECKED_LATER:
            there = ", ".join(known) or "none"
            words = f"{name[:80]}: no such field here; there are: {there}"
            raise KafkaError(ErrorCode.INVALID_REQUEST, words)
    for name in _CHECKED_LATER:
        given = body.get(name)
        check_length(name, given if isinstance(given, str) else "", LENGTHS[name])
    for each in known.values():
        if each.required and body.get(each.name) is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{each.name}: missing")
    return {name: known[name].read(body[name]) for name in known if body.get(name) is not None}
