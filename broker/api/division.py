"""A request as several smaller ones, and their responses as one again.

What is known of a message here is its dataclass: fields with lists in them are its arrays.
"""

from __future__ import annotations

import copy
import typing
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Any, Final, TypeVar

from barnabas.broker.api.driver import response_of
from barnabas.broker.api.waits import Turn

Request = TypeVar("Request")

PART_ELEMENTS: Final = 250
"""Maximum number of elements in a part: a few milliseconds' work, at 5 to 20 us for each."""


@dataclass(frozen=True, slots=True)
class Divide:
    """Division of an API's request along the arrays that ``paths`` name.

    ``("topics", "partitions")`` divides by partitions, of one or several topics, into parts of
    ``elements``.
    """

    paths: tuple[tuple[str, ...], ...]
    elements: int = PART_ELEMENTS

    def is_long(self, request: Any) -> bool:  # noqa: ANN401
        """Return whether a request has more than one part."""
        return any(
            _weights(getattr(request, path[0]) or (), path[1:], self.elements)
            for path in self.paths
        )


def by(*paths: str, elements: int = PART_ELEMENTS) -> Divide:
    """Return a Divide of paths with dots: ``by("topics.partitions")``."""
    return Divide(tuple(tuple(path.split(".")) for path in paths), elements)


def _weights(items: Iterable[Any], path: tuple[str, ...], most: int) -> bool:
    """Return whether items have more than ``most`` elements together."""
    total = 0
    for item in items:
        total += _weight(item, path)
        if total > most:
            return True
    return False


def parts(request: Any, divide: Divide) -> Iterator[tuple[Any, bool]]:  # noqa: ANN401
    """Yield the request in parts of at most ``divide.elements``, at least one.

    Each part comes with a flag: whether its first item continues the last item of the previous
    part.
    """
    path = max(divide.paths, key=lambda path: len(getattr(request, path[0]) or ()))
    continues = False
    for part, is_cut in _parts(request, path, divide.elements):
        yield part, continues
        continues = is_cut


def _parts(message: Any, path: tuple[str, ...], most: int) -> Iterator[tuple[Any, bool]]:  # noqa: ANN401
    """Yield copies of ``message`` with a part of the array each, and whether its last item
    continues in the next part.
    """
    name, rest = path[0], path[1:]
    held: list[Any] = []
    weight = 0
    for item in getattr(message, name) or ():
        pieces = [item]
        if rest and _weight(item, rest) > most:
            pieces = [piece for piece, _ in _parts(item, rest, most)]
        for number, piece in enumerate(pieces, 1):
            cost = _weight(piece, rest)
            if held and weight + cost > most:
                yield _with(message, name, held), number > 1
                held, weight = [], 0
            held.append(piece)
            weight += cost
    if held or not getattr(message, name):
        yield _with(message, name, held), False


def _weight(item: Any, path: tuple[str, ...]) -> int:  # noqa: ANN401
    """Return the number of elements of an item: itself, and its elements along ``path``."""
    if not path:
        return 1
    items = getattr(item, path[0]) or ()
    if len(path) == 1:
        return 1 + len(items)
    return 1 + sum(_weight(each, path[1:]) for each in items)


def _with(message: Any, name: str, items: list[Any]) -> Any:  # noqa: ANN401
    part = copy.copy(message)
    setattr(part, name, items)
    return part


async def in_parts(request: Request, divide: Divide, handle: Callable[[Request], Any]) -> Any:  # noqa: ANN401
    """Return the response to a request; ``handle`` gets a long one in parts.

    Between two parts the loop does other work, and a client may disconnect.
    """
    if not divide.is_long(request):
        return await response_of(handle(request))
    response: Any = None
    for part, continues in parts(request, divide):
        if response is None:
            response = await response_of(handle(part))
        else:
            await Turn()
            join(response, await response_of(handle(part)), continues=continues)
    return response


def join(response: Any, more: Any, *, continues: bool) -> None:  # noqa: ANN401
    """Append the response of the next part; the first top-level error is kept.

    With ``continues``, the last item of one part and the first of the next are one item if they
    have the same name.
    """
    for name in array_names(type(response)):
        ours, theirs = getattr(response, name), getattr(more, name)
        if not theirs:
            continue
        if not ours:
            setattr(response, name, list(theirs))
            continue
        if continues and _named_alike(ours[-1], theirs[0]):
            join(ours[-1], theirs[0], continues=True)
            theirs = theirs[1:]
        ours += theirs
    if not getattr(response, "error_code", 1):
        response.error_code = more.error_code


def _named_alike(ours: Any, theirs: Any) -> bool:  # noqa: ANN401
    """Return whether two items have arrays and differ in these only."""
    if not is_dataclass(ours) or not array_names(type(ours)):
        return False
    arrays = array_names(type(ours))
    return all(
        getattr(ours, field.name) == getattr(theirs, field.name)
        for field in fields(ours)
        if field.name not in arrays
    )


def count_elements(message: Any) -> int:  # noqa: ANN401
    """Return the total number of elements in all arrays of a message."""
    total = 0
    for name in array_names(type(message)):
        items = getattr(message, name)
        if items:
            total += len(items)
            if array_names(type(items[0])):
                total += sum(map(count_elements, items))
    return total


def is_long(message: Any, most: int) -> bool:  # noqa: ANN401
    """Return whether a message's arrays and those of their items have more elements than ``most``.

    Deeper levels count arrays of structures only. Stops at the limit, since nearly every response
    is checked.
    """
    total = 0
    for name in array_names(type(message)):
        items = getattr(message, name)
        if items:
            total += len(items)
            if total > most:
                return True
            inner = array_names(type(items[0]))
            if inner:
                kind: Any = type(items[0])
                deep = deep_array_names(kind)
                for item in items:
                    for name_inside in inner:
                        inside = getattr(item, name_inside)
                        if inside:
                            total += len(inside)
                            if name_inside in deep:
                                total += sum(map(_count_structures, inside))
                                if total > most:
                                    return True
                if total > most:
                    return True
    return False


def _count_structures(message: Any) -> int:  # noqa: ANN401
    """Return the total number of structures in the arrays of a message."""
    total = 0
    kind: Any = type(message)
    deep = deep_array_names(kind)
    for name in structure_array_names(kind):
        items = getattr(message, name)
        if items:
            total += len(items)
            if name in deep:
                total += sum(map(_count_structures, items))
    return total


_array_names: dict[Any, tuple[str, ...]] = {}


def array_names(message_class: Any) -> tuple[str, ...]:  # noqa: ANN401
    """Return the names of a class's fields that are arrays."""
    names = _array_names.get(message_class)
    if names is None:
        names = ()
        if is_dataclass(message_class):
            hints = typing.get_type_hints(message_class)
            names = tuple(each.name for each in fields(message_class) if _is_list(hints[each.name]))
        _array_names[message_class] = names
    return names


@cache
def structure_array_names(message_class: Any) -> frozenset[str]:  # noqa: ANN401
    """Return the names of a class's fields that are arrays of structures."""
    return frozenset(_structure_arrays(message_class))


@cache
def deep_array_names(message_class: Any) -> frozenset[str]:  # noqa: ANN401
    """Return the names of those arrays whose structures have such arrays, too."""
    arrays = _structure_arrays(message_class)
    return frozenset(name for name, inner in arrays.items() if _structure_arrays(inner))


def _structure_arrays(message_class: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the class of the items of each array of structures, by the field's name."""
    if not array_names(message_class):
        return {}
    hints = typing.get_type_hints(message_class)
    found = {name: _item_class(hints[name]) for name in array_names(message_class)}
    return {name: item for name, item in found.items() if is_dataclass(item)}


def _item_class(hint: Any) -> Any:  # noqa: ANN401
    if typing.get_origin(hint) is list:
        return typing.get_args(hint)[0]
    return next(filter(None, map(_item_class, typing.get_args(hint))), None)


def _is_list(hint: Any) -> bool:  # noqa: ANN401
    return typing.get_origin(hint) is list or any(map(_is_list, typing.get_args(hint)))
