"""Groups and offsets of one partition of ``__consumer_offsets``, for all decisions about them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from barnabas.coordinator.groups.config import GroupConfig
from barnabas.coordinator.groups.group import Group
from barnabas.coordinator.groups.offset_table import OffsetTable


class GroupTable:
    """Groups and offsets whose group id falls to one partition."""

    def __init__(self, config: GroupConfig) -> None:
        """Start empty, before the partition's records are applied."""
        self.config = config
        self.groups: dict[str, Group] = {}
        """Groups with members, or with a record of their own. One that only has offsets (a "simple"
        group, of consumers that assign themselves) is not among them."""
        self.offsets = OffsetTable()
        self.on_generation: Callable[[str, int], None] = _ignored
        """Called with each new generation (or epoch) of a group, those of a replay included."""

    def end_transaction(self, producer_id: int, *, commit: bool) -> Iterator[None] | None:
        """Apply the marker that ends a producer's transaction on this partition.

        Returns the steps that are left, as ``OffsetTable.end_transaction`` does.
        """
        return self.offsets.end_transaction(producer_id, commit=commit)

    def keys(self) -> list[str]:
        """Return every group, including those with offsets only."""
        return list(dict.fromkeys([*self.groups, *self.offsets.group_ids()]))


def _ignored(_group_id: str, _generation: int) -> None:
    """Ignore a new generation."""
