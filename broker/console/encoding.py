"""Shapes as JSON: exact numbers, and long lists piece by piece.

JavaScript reads a number as a float, which has no more than 53 bits: what is larger is a string.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from itertools import chain
from typing import Any, Final, TypeAlias, TypeVar

JsonValue: TypeAlias = "str | int | float | bool | list[JsonValue] | dict[str, JsonValue] | None"
T = TypeVar("T")

LARGEST_EXACT: Final = 2**53
ROWS_PER_PIECE: Final = 50
"""Rows of a list that are written in one turn of the loop."""
NUMBERS_PER_PIECE: Final = 1000
"""Numbers of a list that are."""

OBJECT_BYTES: Final = 56
"""Approximate memory of a number, and of a text or list besides its contents."""
ROWS_WEIGHED: Final = 8
"""Rows of a list by which its size is judged."""

OLD_NAMES: Final = {
    "blocked_by": "holder",
    "blocked_offsets": "held_back",
    "blocked_partitions": "held_back",
    "blocking_transaction": "behind",
    "lag_blocked": "lag_held_back",
}
"""Former names of fields, which programs of users may read: a response has both."""

_fields: dict[type, tuple[str, ...]] = {}
_keys: dict[type, tuple[tuple[str, str], ...]] = {}


def as_json(value: object) -> JsonValue:
    """Convert a shape, or a part of one, for ``json``."""
    if value is None or isinstance(value, str | bool | float):
        return value
    if isinstance(value, int):
        return value if -LARGEST_EXACT <= value <= LARGEST_EXACT else str(value)
    if isinstance(value, tuple):
        return [as_json(each) for each in value]
    if isinstance(value, Mapping):
        return {name: as_json(each) for name, each in value.items()}
    return {key: as_json(getattr(value, name)) for key, name in keys_of(type(value))}


def keys_of(shape: type) -> tuple[tuple[str, str], ...]:
    """Return the keys of a shape in JSON, each with its field; an old name follows the present."""
    keys = _keys.get(shape)
    if keys is None:
        pairs = ((name, (name, OLD_NAMES.get(name))) for name in fields_of(shape))
        keys = _keys[shape] = tuple((key, name) for name, both in pairs for key in both if key)
    return keys


def fields_of(shape: type) -> tuple[str, ...]:
    """Return the names of a shape's fields."""
    names = _fields.get(shape)
    if names is None:
        names = _fields[shape] = tuple(each.name for each in fields(shape))
    return names


def values_of(shape: Any) -> tuple[Any, ...]:  # noqa: ANN401  Of another shape with the same fields.
    """Return the values of a shape's fields, in their order."""
    return tuple(getattr(shape, name) for name in fields_of(type(shape)))


def made_of(shape: Callable[..., T], *values: Any) -> T:  # noqa: ANN401  As values_of has them.
    """Return a shape with these values and the values of another shape."""
    return shape(*values)


def body_of(answer: object) -> tuple[str, ...] | Iterator[str]:
    """Return a response in JSON, a long one in pieces."""
    if _is_long(answer):
        return chain(_pieces(answer), "\n")
    return (text_of(answer) + "\n",)


def text_of(shape: object) -> str:
    """Return a shape in JSON, without blanks."""
    return _text(as_json(shape))


def size_of(value: object) -> int:
    """Return the approximate memory of a shape in bytes, from samples of its lists."""
    if isinstance(value, str):
        return OBJECT_BYTES + len(value)
    if isinstance(value, tuple):
        some = value[:: max(1, len(value) // ROWS_WEIGHED)]
        return OBJECT_BYTES + sum(map(size_of, some)) * len(value) // max(1, len(some))
    if isinstance(value, Mapping):
        return OBJECT_BYTES + sum(size_of(name) + size_of(value[name]) for name in value)
    if is_dataclass(value):
        return OBJECT_BYTES + sum(size_of(getattr(value, n)) for n in fields_of(type(value)))
    return OBJECT_BYTES


def _is_long(value: object) -> bool:
    """Return whether it has a list that is written in pieces."""
    if isinstance(value, tuple):
        most = NUMBERS_PER_PIECE if value and isinstance(value[0], int | float) else ROWS_PER_PIECE
        return len(value) > most or any(map(_is_long, value[:ROWS_PER_PIECE]))
    return is_dataclass(value) and any(_is_long(getattr(value, n)) for n in fields_of(type(value)))


def _pieces(value: object) -> Iterator[str]:
    if not _is_long(value):
        yield text_of(value)
    elif isinstance(value, tuple):
        yield from _pieces_of_list(value)
    else:
        before = "{"
        for key, name in keys_of(type(value)):
            yield f"{before}{_text(key)}:"
            yield from _pieces(getattr(value, name))
            before = ","
        yield "}"


def _pieces_of_list(value: tuple[object, ...]) -> Iterator[str]:
    size = NUMBERS_PER_PIECE if isinstance(value[0], int | float) else ROWS_PER_PIECE
    before = "["
    for start in range(0, len(value), size):
        rows = value[start : start + size]
        if any(map(_is_long, rows)):
            for row in rows:
                yield before
                yield from _pieces(row)
                before = ","
        else:
            yield before + text_of(rows)[1:-1]
            before = ","
    yield "]"


def _text(value: JsonValue) -> str:
    return json.dumps(value, separators=(",", ":"))
