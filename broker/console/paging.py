"""Pages of long lists: the first rows that match, in some order, and a cursor.

Nothing is sorted as a whole, and nothing is kept between two pages: a cursor has the place of the
last row in the order. Rows whose place has changed meanwhile can appear twice or not at all; rows
ordered by name appear once.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import AsyncIterator
from operator import itemgetter
from typing import Any, Final, Generic, TypeAlias, TypeVar

from barnabas.broker.console.pacing import ROW_UNITS, Pace
from barnabas.protocol.errors import ErrorCode, KafkaError

T = TypeVar("T")

LIMIT_MOST: Final = 1000
"""Rows of one page."""
LIMIT_DEFAULT: Final = 100

Place: TypeAlias = tuple[int | float | str, ...]
"""Place of a row in an order: its sort value, then its unique name."""


def packed(values: list[Any]) -> str:
    """Return the cursor that encodes some values."""
    text = json.dumps(values, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def unpacked(cursor: str) -> list[Any]:
    """Return the values of a cursor, or none if the text is no cursor."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        found = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError):
        return []
    return found if isinstance(found, list) else []


def bad_cursor() -> KafkaError:
    """Return the error for a cursor of another list or order."""
    return KafkaError(
        ErrorCode.INVALID_REQUEST, "after: not the next value of a response with this order"
    )


class Order:
    """One order of a list: by ``sort``; the cursor has values of the given types."""

    def __init__(self, sort: str, kinds: tuple[type, ...]) -> None:
        """A ``sort`` that begins with "-" is from the largest to the smallest."""
        self.sort = sort
        self.is_descending = sort.startswith("-")
        self.kinds = kinds

    def cursor(self, place: Place) -> str:
        """Return the cursor of a place."""
        return packed([self.sort, *place])

    def place(self, cursor: str) -> Place:
        """Return the place that a cursor encodes; raises KafkaError."""
        found = unpacked(cursor)
        if found[:1] != [self.sort] or tuple(type(each) for each in found[1:]) != self.kinds:
            raise bad_cursor()
        return tuple(found[1:])


class Selection(Generic[T]):
    """The first rows of an order that come after a cursor, of all that are offered."""

    def __init__(self, order: Order, limit: int, after: str | None) -> None:
        self._order = order
        self._limit = limit
        self._after = None if after is None else order.place(after)
        self._kept: list[tuple[Place, T]] = []
        self.total = 0
        """Rows that were offered, those before the cursor included."""
        self._last: Place | None = None
        """Last place that is certainly kept; later places can be dropped."""

    @property
    def sort(self) -> str:
        """Name of the order, without the sign of its direction."""
        return self._order.sort.removeprefix("-")

    def offer(self, row: T, *place: float | str) -> None:
        """Add a row and its place."""
        self.total += 1
        if self._after is not None and not self._precedes(self._after, place):
            return
        if self._last is not None and self._precedes(self._last, place):
            return
        self._kept.append((place, row))
        if len(self._kept) >= 2 * (self._limit + 1):
            self._prune()

    def offer_by(self, values: object, row: T, *name: float | str) -> None:
        """Add a row by the attribute of ``values`` that the order names, then by its name."""
        if len(name) == len(self._order.kinds):
            self.offer(row, *name)
        else:
            self.offer(row, getattr(values, self.sort), *name)

    def page(self) -> list[T]:
        """Return the rows of the page, in order."""
        self._prune()
        return [row for _, row in self._kept[: self._limit]]

    async def rows(self, pace: Pace, units: int = ROW_UNITS) -> AsyncIterator[T]:
        """Yield the rows of the page, in order, with ``units`` of work for each."""
        for row in self.page():
            await pace.spend(units)
            yield row

    @property
    def following(self) -> str | None:
        """Cursor of the next page, or None if this is the last one."""
        self._prune()
        if len(self._kept) <= self._limit:
            return None
        return self._order.cursor(self._kept[self._limit - 1][0])

    def _precedes(self, one: Place, other: Place) -> bool:
        return one > other if self._order.is_descending else one < other

    def _prune(self) -> None:
        # Half of it is in order already, which makes this four times as quick as a heap.
        self._kept.sort(key=itemgetter(0), reverse=self._order.is_descending)
        del self._kept[self._limit + 1 :]
        if len(self._kept) > self._limit:
            self._last = self._kept[-1][0]
