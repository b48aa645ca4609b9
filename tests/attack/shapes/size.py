"""Number of the shapes, and size of the requests whose cost grows with the number of their entries.

`make attack` sends every shape, `make test` a part that has each row of a table and each kind of
shape at least once, drawn from SEED.

`make attack` sends the requests as large as the limits of the broker allow, `make test` a share of
that. The limits of a request in part are in proportion (`measure.Limits`): what takes twice the
allowed time for all entries takes more than is allowed for a quarter of them, too.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from tests.seeds import SEED

if TYPE_CHECKING:
    from tests.attack.shapes.shape import Shape

FULL = "full"
SIZE_VARIABLE = "SHAPES"
IN_PART = 0.25
SHARE = 1.0 if os.environ.get(SIZE_VARIABLE) == FULL else IN_PART


def part(count: int) -> int:
    """Return the share of a number of entries that is sent."""
    return round(count * SHARE)


def drawn(table: Mapping[str, Iterable[Shape]]) -> list[tuple[str, Shape]]:
    """Return the shapes of a table that are sent, each with its row, in the order of the table.

    All of them if the requests are sent whole, otherwise as few as have each row and each kind of
    shape. The kind is the last part of the name, without its numbers.
    """
    every = [(key, shape) for key, row in table.items() for shape in row]
    if SHARE == 1:
        return every
    order = list(range(len(every)))
    random.Random(SEED).shuffle(order)
    chosen, seen = [], set[tuple[str, str]]()
    for at in order:
        key, shape = every[at]
        kind = re.sub(r"\d[\d,]* ", "", shape.name)
        new = {("row", key), ("kind", re.split("[,:] ", kind)[-1])} - seen
        if new:
            seen |= new
            chosen.append(at)
    return [every[at] for at in sorted(chosen)]
