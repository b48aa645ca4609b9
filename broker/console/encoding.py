"""Shapes as JSON: exact numbers, and long lists piece by piece.

JavaScript reads a number as a float, which has no more than 53 bits: what is larger is a string.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Final, TypeAlias

JsonValue: TypeAlias = "str | int | float | bool | list[JsonValue] | dict[str, JsonValue] | None"

LARGEST_EXACT: Final = 2**53
ROWS_PER_PIECE: Final = 50
"""Rows of a list that are written in one turn of the loop."""

_fields: dict[type, tuple[str, ...]] = {}


def as_json(value: object) -> JsonValue:
    """Return a shape, or a part of one, as what ``json`` writes."""
    if value is None or isinstance(value, str | bool | float):
        return value
    if isinstance(value, int):
        return value if -LARGEST_EXACT <= value <= LARGEST_EXACT else str(value)
    if isinstance(value, tuple):
        return [as_json(each) for each in value]
    if isinstance(value, Mapping):
        return {name: as_json(each) for name, each in value.items()}
    return {name: as_json(getattr(value, name)) for name in fields_of(type(value))}


def fields_of(shape: type) -> tuple[str, ...]:
    """Return the names of a shape's fields."""
    names = _fields.get(shape)
    if names is None:
        names = _fields[shape] = tuple(each.name for each in fields(shape))
    return names


def body_of(answer: object) -> tuple[str, ...] | Iterator[str]:
    """Return an answer in JSON: whole if it is short, else piece by piece."""
    values = (getattr(answer, name) for name in fields_of(type(answer)))
    if any(isinstance(each, tuple) and len(each) > ROWS_PER_PIECE for each in values):
        return _pieces(answer)
    return (_text(as_json(answer)) + "\n",)


def _pieces(answer: object) -> Iterator[str]:
    before = "{"
    for name in fields_of(type(answer)):
        value = getattr(answer, name)
        text = f"{before}{_text(name)}:"
        before = ","
        if not isinstance(value, tuple) or len(value) <= ROWS_PER_PIECE:
            yield text + _text(as_json(value))
            continue
        for start in range(0, len(value), ROWS_PER_PIECE):
            rows = _text(as_json(value[start : start + ROWS_PER_PIECE]))
            yield text + ("," if start else "[") + rows[1:-1]
            text = ""
        yield "]"
    yield "}\n"


def _text(value: JsonValue) -> str:
    return json.dumps(value, separators=(",", ":"))
