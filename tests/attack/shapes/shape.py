"""A shape is data: what an ordinary user sends, and what is done with the responses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.attack.shapes.world import World

ORDINARY = "ordinary"
"""READ and WRITE on a few topics, READ on its groups, WRITE on its transactional ids."""
STRANGER = ""
"""Does not log in."""

Make = Callable[["World"], Iterable[bytes]]


@dataclass(frozen=True, slots=True)
class Shape:
    """One row of a table."""

    name: str
    make: Make
    """Makes the requests, other ones at each call: what a cache holds costs nothing."""
    user: str = ORDINARY
    is_read: bool = True
    """Whether each response is read before the next request; without it none is ever read."""
    is_part: bool = False
    """Whether the request has a share of its entries (`size.SHARE`) and limits in proportion."""
