"""Requests that are well-formed and make no sense: one value of a good one made an odd one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from barnabas.protocol.generate.schema import Field, Struct
from tests.protocol.random_messages import generated
from tests.protocol.schemas import SCHEMAS

BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


def odd_requests(module: str, version: int, make: Callable[[], Any]) -> Iterator[tuple[str, Any]]:
    """Each odd variant of what ``make`` makes, with the name of what is odd in it.

    And each of the same request when it names nothing, but has every structure that may be null.
    """
    struct = SCHEMAS[module].sections["request"]
    for base in (make, lambda: _emptied(module, struct, version, make())):
        for path, value in _odd_values(module, struct, version, base()):
            odd = base()
            holder = odd
            for step in path[:-1]:
                holder = holder[step] if isinstance(step, int) else getattr(holder, step)
            setattr(holder, path[-1], value)
            yield f"{'.'.join(map(str, path))}={value!r:.60}", odd


def _emptied(module: str, struct: Struct, version: int, message: Any) -> Any:
    for field in struct.fields:
        if version in field.versions and field.is_array:
            setattr(message, field.name, [])
        elif version in field.versions and field.struct is not None:
            setattr(message, field.name, getattr(generated(module), field.struct.name)())
    return message


def _odd_values(
    module: str, struct: Struct, version: int, message: Any, path: tuple = ()
) -> Iterator[tuple[tuple, Any]]:
    for field in struct.fields:
        if version not in field.versions:
            continue
        here = (*path, field.name)
        value = getattr(message, field.name)
        yield from ((here, odd) for odd in _odd(module, field, version, value))
        if field.struct is None or value is None:
            continue
        if field.is_array:
            for index, item in enumerate(value):
                yield from _odd_values(module, field.struct, version, item, (*here, index))
        else:
            yield from _odd_values(module, field.struct, version, value, here)


def _odd(module: str, field: Field, version: int, value: Any) -> Iterator[Any]:
    if field.nullable and version in field.nullable:
        yield None
    if field.is_array:
        yield []
        if value:
            yield value + value  # the same twice
        elif field.struct is not None:
            yield [getattr(generated(module), field.struct.name)()]
    elif field.struct is not None:
        yield getattr(generated(module), field.struct.name)()
    elif field.type in BITS:
        top = 1 << (BITS[field.type] - 1)
        yield from (-1, 0, 2, 99, top - 1, -top)
    elif field.type == "string":
        yield from ("", "ä b/\0\n", "x" * 1000)
    elif field.type == "bytes":
        yield from (b"", b"\xff" * 7)
    elif field.type == "bool":
        yield not value
