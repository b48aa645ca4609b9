"""Shapes that many rows have in common, and requests as bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from barnabas.broker import handlers
from barnabas.broker.api.dispatch import ROUTES, Route
from tests.attack.peer import frame
from tests.attack.scenarios.arrays import Place, enormous, places
from tests.attack.shapes.shape import Shape
from tests.attack.shapes.size import part
from tests.attack.shapes.world import TRANSACTION, WIDE, World
from tests.broker.sample_requests import SAMPLES, identify

assert handlers, "importing the package registers the routes"

ELEMENTS = 99_000
UNDIVIDED_ELEMENTS = 39_000
"""Just below what a request may have that the broker cannot divide."""
NAMES_MOST = 10_000
"""Number of groups or ids that the broker describes for one request."""
BYTES_MOST = (16 << 20) - 4096
"""Just below `barnabas.request.max.bytes`."""
TEXT_BYTES = 32_000
"""Just below what a string has before the flexible versions."""
REGEX = "x{0,1000}"
PLACES = places()

Message = Callable[[World], Any]
Row = Iterable[Shape]


def route_of(api: str) -> Route:
    """Return the route of an API."""
    return next(each for each in ROUTES if each.name == api)


def one(name: str, api: str, message: Message, version: int | None = None, **more: Any) -> Shape:
    """Return a shape of one request, in the newest version if none is given."""
    route = route_of(api)

    def make(world: World) -> Iterable[bytes]:
        yield frame(route.api, version or route.max_version, message(world))

    return Shape(name, make, **more)


def unread(name: str, api: str, message: Message, count: int, version: int | None = None) -> Shape:
    """Return a shape of the same request many times, whose responses are never read."""
    route = route_of(api)

    def make(world: World) -> Iterable[bytes]:
        return [frame(route.api, version or route.max_version, message(world))] * count

    return Shape(name, make, is_read=False)


def sample(api: str) -> Message:
    """Return a function that makes the sample request of an API, about things that exist."""

    def message(world: World) -> Any:
        request = SAMPLES[api](WIDE, world.ids[WIDE], "gone", bytes(16))
        producer_id, producer_epoch = world.producer
        identify(
            request,
            transactional_id=TRANSACTION,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
        )
        return request

    return message


def arrays(api: str, message: Message | None = None) -> list[Shape]:
    """Return shapes that fill each array of a request: by new names, and by one that exists."""
    make = message or sample(api)
    newest = route_of(api).max_version
    found = [place for place in PLACES if (place.api, place.version) == (api, newest)]
    return [_array(place, make, is_named=is_named) for place in found for is_named in (True, False)]


def tagged(api: str) -> list[Shape]:
    """Return a shape of very many tagged fields that no version knows; none before these exist."""
    route = route_of(api)
    if route.max_version < route.api.flexible_from:
        return []

    def make(world: World) -> Iterable[bytes]:
        payload = frame(route.api, route.max_version, sample(api)(world))[4:-1] + tagged_fields()
        yield len(payload).to_bytes(4, "big") + payload

    return [Shape("tagged fields", make)]


@cache
def tagged_fields(count: int = 500_000) -> bytes:
    """Return that many empty tagged fields, in the order of their numbers."""
    numbers = range(1 << 21, (1 << 21) + count)
    return _unsigned(count) + b"".join([_unsigned(number) + b"\0" for number in numbers])


def _unsigned(value: int) -> bytes:
    data = bytearray()
    while value >= 0x80:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*data, value])


def _array(place: Place, message: Message, *, is_named: bool) -> Shape:
    route = route_of(place.api)
    is_whole = not route.in_slices
    count = part(UNDIVIDED_ELEMENTS if is_whole else ELEMENTS)

    def make(world: World) -> Iterable[bytes]:
        data = enormous(place, count, lambda: message(world), is_named=is_named)
        assert data is not None, f"{place} has no array of equal entries"
        yield data

    # The user may do nothing to the new names; the one entry names things that exist.
    what = "new names" if is_named else "one entry"
    return Shape(f"{count:,} {place.path}, {what}", make, is_part=True)
