"""Rows of the type ``barnabas.placed_beginning`` (``migrations``), as what they say of logs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from barnabas.storage.replicated.log_index import (
    Extent,
    LogBeginning,
    LogHead,
    LogSnapshot,
    ObjectPlace,
    ObjectSize,
    PartitionState,
)
from barnabas.storage.replicated.log_reading import BYTES_AT_ONCE

if TYPE_CHECKING:
    from barnabas.storage.postgresql.primary import Row

_EXTENT: Final = slice(8, 12)
"""Columns of an extent in ``barnabas.placed_beginning``, without its place."""
_PLACE_COLUMNS: Final = 5
"""Columns of its place, the last ones."""
_IS_RECENT: Final = 12
_RECENT_COLUMNS: Final = 18
"""Columns of ``barnabas.recent_placed_beginning``; ``barnabas.placed_beginning`` has one fewer."""
HALVINGS_MOST: Final = BYTES_AT_ONCE.bit_length() - 1
"""Halvings until one byte is left, which is one extent: more would only have to be undone."""


def beginnings_of(rows: Iterable[Row]) -> list[LogBeginning]:
    """Return the logs of rows that are in order; each log has one row or more."""
    heads: dict[int, LogHead] = {}
    extents: dict[int, list[Extent]] = {}
    recent: set[int] = set()
    for row in rows:
        partition_id = row[0]
        if partition_id not in heads:
            snapshot = None if row[5] is None else LogSnapshot(*row[5:8])
            heads[partition_id] = LogHead(partition_id, PartitionState(*row[1:5]), snapshot)
            extents[partition_id] = []
        if row[8] is not None:
            extents[partition_id].append(extent_of(*row[_EXTENT], *row[-_PLACE_COLUMNS:]))
        if len(row) == _RECENT_COLUMNS and row[_IS_RECENT]:
            recent.add(partition_id)
    return [LogBeginning(head, extents[each], each in recent) for each, head in heads.items()]


def extent_of(
    base_offset: int,
    next_offset: int,
    leader_epoch: int,
    data: bytes | None,
    key: str | None,
    position: int,
    length: int,
    footer_at: int,
    size_bytes: int,
) -> Extent:
    """Return the extent of some columns, in the order of ``barnabas.read_placed_extents``."""
    place = None
    if key is not None:
        place = ObjectPlace(key, position, length, ObjectSize(footer_at, size_bytes))
    return Extent(base_offset, next_offset, leader_epoch, data or b"", place)


def fewer(most: int, most_bytes: int, silences: int) -> tuple[int, int]:
    """Return the number of extents and bytes to request after ``silences`` timeouts in a row.

    Half as many each time, down to one extent, to which the server does respond in the end.
    """
    if not silences:
        return most, most_bytes
    return _halved(most, silences), _halved(min(most_bytes, BYTES_AT_ONCE), silences)


def _halved(most: int, times: int) -> int:
    return max(min(most, 1), most >> times)
