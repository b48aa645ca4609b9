"""Rows of the type ``barnabas.beginning`` (``migrations``), as what they say of logs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from barnabas.storage.log_index import Extent, LogBeginning, LogHead, LogSnapshot, PartitionState

if TYPE_CHECKING:
    from barnabas.storage.postgresql.primary import Row


def beginnings_of(rows: Iterable[Row]) -> list[LogBeginning]:
    """Return the logs of rows that are in order; each log has one row or more."""
    heads: dict[int, LogHead] = {}
    extents: dict[int, list[Extent]] = {}
    for row in rows:
        partition_id = row[0]
        if partition_id not in heads:
            snapshot = None if row[5] is None else LogSnapshot(*row[5:8])
            heads[partition_id] = LogHead(partition_id, PartitionState(*row[1:5]), snapshot)
            extents[partition_id] = []
        if row[8] is not None:
            extents[partition_id].append(Extent(*row[8:]))
    return [LogBeginning(head, extents[each]) for each, head in heads.items()]
