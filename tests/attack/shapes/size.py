"""Size of the requests whose cost grows with the number of their entries.

`make attack` sends them as large as the limits of the broker allow, `make test` a share of that.
The limits of a request in part are in proportion (`measure.Limits`): what takes twice the allowed
time for all entries takes more than is allowed for a quarter of them, too.
"""

from __future__ import annotations

import os

FULL = "full"
SIZE_VARIABLE = "SHAPES"
IN_PART = 0.25
SHARE = 1.0 if os.environ.get(SIZE_VARIABLE) == FULL else IN_PART


def part(count: int) -> int:
    """Return the share of a number of entries that is sent."""
    return round(count * SHARE)
