"""Committed offsets: commit, fetch, delete, expire."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from coordinator.groups.family import Family


class OffsetTable:
    """Every committed offset of a shard, by group, topic and partition."""

    def group_ids(self) -> Iterable[str]:
        """The groups that have offsets."""
        return ()


OFFSETS: Final = Family()
