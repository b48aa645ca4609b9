"""Requests with one array filled up, for every array of every API; made from the schemas."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

from barnabas.broker.api.division import count_elements
from barnabas.protocol.generate.schema import Field, Struct
from tests.protocol.random_messages import generated
from tests.protocol.schemas import SCHEMAS
from tests.seeds import SEED


class Large(NamedTuple):
    """A request of many entries; ``what`` names the array and whether its entries are all alike."""

    what: str
    request: Any


class Filling(NamedTuple):
    """An array of a request, and whether it is filled with items that are all alike."""

    path: tuple[str, ...]
    is_alike: bool


def fillings(module: str, version: int) -> list[Filling]:
    """Return every way to fill up one array of a request."""
    paths = _array_paths(SCHEMAS[module].sections["request"], version)
    return [Filling(path, alike) for path in paths for alike in (True, False)]


def one_drawn(module: str, version: int) -> list[Filling]:
    """Return one of the fillings, drawn from SEED, if the request has an array."""
    found = fillings(module, version)
    return [random.Random(f"{SEED} {module}").choice(found)] if found else []


def large_requests(
    module: str,
    version: int,
    make: Callable[[], Any],
    count: int,
    chosen: Collection[Filling] | None = None,
) -> Iterator[Large]:
    """Yield requests of ``make`` with one array filled, with equal items or with different ones.

    All arrays have ``count`` elements together, at most. ``chosen`` are the requests to build,
    or `None` for all.
    """
    struct = SCHEMAS[module].sections["request"]
    for path, alike in fillings(module, version) if chosen is None else chosen:
        request = make()
        holder, within = request, struct
        for name in path[:-1]:
            step = _field(within, name)
            assert step.struct is not None
            value = getattr(holder, name)
            if step.is_array:
                if not value:
                    value = [_default(module, step)]
                    setattr(holder, name, value)
                del value[1:]
                value = value[0]
            elif value is None:
                value = _default(module, step)
                setattr(holder, name, value)
            holder, within = value, step.struct
        field = _field(within, path[-1])
        items = getattr(holder, path[-1])
        first = items[0] if items else _default(module, field)
        setattr(holder, path[-1], [first])
        items_most = (count - count_elements(request)) // (1 + count_elements(first))
        setattr(
            holder,
            path[-1],
            [first] * items_most
            if alike
            else [_numbered(first, n, _tagged(field)) for n in range(items_most)],
        )
        yield Large(f"{'.'.join(path)} {'alike' if alike else 'different'}", request)


def _array_paths(struct: Struct, version: int, path: tuple = ()) -> Iterator[tuple[str, ...]]:
    for field in struct.fields:
        if version not in field.versions:
            continue
        if field.is_array:
            yield (*path, field.name)
        if field.struct is not None:
            yield from _array_paths(field.struct, version, (*path, field.name))


def _field(struct: Struct, name: str) -> Field:
    return next(field for field in struct.fields if field.name == name)


def _default(module: str, field: Field) -> Any:
    if field.struct is not None:
        return getattr(generated(module), field.struct.name)()
    return {"string": "", "uuid": bytes(16), "bytes": b""}.get(field.type, 0)


def _tagged(field: Field) -> set[str]:
    """The fields of an array's items that would be tags: each of those is an element, too."""
    if field.struct is None:
        return set()
    return {each.name for each in field.struct.fields if each.tag is not None}


def _numbered(item: Any, number: int, left_out: set[str]) -> Any:
    """``item`` under another name: each of its own fields that may name it gets ``number``."""
    if isinstance(item, str):
        return f"{item}{number}"
    if isinstance(item, int):
        return number % 128  # It may be an int8.
    if isinstance(item, bytes):
        return number.to_bytes(16, "big")
    numbered = copy.copy(item)
    for name in set(item.__slots__) - left_out:
        value = getattr(item, name)
        if isinstance(value, str):
            setattr(numbered, name, f"{value}{number}")
        elif isinstance(value, bytes) and len(value) == 16:
            setattr(numbered, name, number.to_bytes(16, "big"))
        elif name in {"partition", "partition_index", "index"}:
            setattr(numbered, name, number)
    return numbered
