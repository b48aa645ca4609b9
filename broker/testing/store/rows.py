"""Rows of the index in memory: partitions with their extents, sessions, and the last transfer."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final
from uuid import UUID

from barnabas.storage.replicated.cluster_index import FENCED_MAX, Member
from barnabas.storage.replicated.log_index import (
    Extent,
    IndexMisused,
    Item,
    LogBeginning,
    LogHead,
    LogPart,
    LogSnapshot,
    PartitionState,
)

_next_offset = attrgetter("next_offset")


@dataclass(slots=True)
class PartitionRow:
    """Partition with its leader and its durable data."""

    leader_epoch: int
    leader_session: int | None = None
    extents: list[Extent] = field(default_factory=list)
    log_start_offset: int = 0
    log_end_offset: int = 0
    """Offset at which the next extent must begin."""
    wanted_node: int | None = None
    pinned_node: int | None = None
    is_deleted: bool = False
    changed_in: int = 0
    """Version of the snapshot in which its leader or wanted leader changed last."""
    led_in: int = 0
    """Version of the snapshot in which it got its leader."""
    snapshot: LogSnapshot | None = None
    parts: list[LogPart] = field(default_factory=list)

    def parts_from(self, offset: int, most: int) -> list[LogPart]:
        """Return up to ``most`` parts that reach beyond an offset."""
        return [each for each in self.parts if each.next_offset > offset][:most]

    @property
    def needless_offset(self) -> int:
        """Return the offset up to which extents are garbage."""
        if self.is_deleted:
            return self.log_end_offset
        return min(self.log_start_offset, self.snapshot.next_offset) if self.snapshot else 0

    @property
    def state(self) -> PartitionState:
        """Return the leader of the partition and the bounds of its log."""
        return PartitionState(
            self.leader_session, self.leader_epoch, self.log_start_offset, self.log_end_offset
        )

    def head(self, partition_id: int) -> LogHead:
        """Return the state and the snapshot of the partition."""
        return LogHead(partition_id, self.state, self.snapshot)

    def append(self, item: Item, extent: Extent) -> None:
        """Append the records of a flush to the log; raise IndexMisused if they do not fit."""
        fits = item.base_offset == self.log_end_offset < item.next_offset
        if not (fits and extent.size_bytes == item.length > 0):
            raise IndexMisused(f"{item} does not continue at {self.log_end_offset} in bytes")
        self.extents.append(extent)
        self.log_end_offset = item.next_offset

    @property
    def has_parts(self) -> bool:
        """Return whether parts reach the snapshot."""
        end = self.parts[-1].next_offset if self.parts else -1
        known = self.snapshot
        return known is not None and self.log_start_offset < known.next_offset == end

    def put_snapshot(self, snapshot: LogSnapshot, parts: Sequence[LogPart] | None) -> None:
        """Keep a snapshot unless it is older, and its parts; see ``LogIndex``."""
        if snapshot.next_offset > self.log_end_offset:
            raise IndexMisused(f"a snapshot behind the end, {self.log_end_offset}")
        if self.snapshot is None or self.snapshot.next_offset < snapshot.next_offset:
            self.snapshot = snapshot
        if parts is None or self.snapshot.next_offset != snapshot.next_offset:
            return
        ends = [*(each.base_offset for each in parts), snapshot.next_offset]
        if parts and [each.next_offset for each in parts] != ends[1:]:
            raise IndexMisused(f"parts do not end at the snapshot, {snapshot.next_offset}")
        self._put_parts(parts)

    def _put_parts(self, parts: Sequence[LogPart]) -> None:
        """Replace the parts with the same offsets, and those before which a part is missing."""
        begin = parts[0].base_offset if parts else 0
        kept = [each for each in self.parts if each.next_offset <= begin]
        if kept and kept[-1].next_offset != begin:
            kept = []
        self.parts = [each for each in kept if each.next_offset > self.log_start_offset]
        self.parts += parts

    def extents_from(self, offset: int, most: int) -> list[Extent]:
        """Return at most ``most`` extents, from the one that has ``offset`` on."""
        first = bisect_right(self.extents, offset, key=_next_offset)
        return self.extents[first : first + most]


@dataclass(slots=True)
class SessionRow:
    """Session of a broker."""

    token: UUID
    node_id: int
    endpoints: str
    lease_until: float
    is_live: bool = True
    is_draining: bool = False
    object_store: str | None = None
    has_failing_objects: bool = False
    """Whether its broker reports that the object store fails."""
    stored_s: float = -math.inf
    """Time of its last object that was stored, as reported."""
    next_flushes: dict[int, int] = field(default_factory=dict)
    """Number of the next flush by lane; a missing lane has had none."""

    def is_past(self, lane: int, number: int) -> bool:
        """Return whether no flush with this number can be committed any more."""
        return not self.is_live or self.next_flushes.get(lane, 0) > number

    @property
    def takes_partitions(self) -> bool:
        """Whether the session takes partitions."""
        return self.is_live and not self.is_draining


ENDED: Final = SessionRow(UUID(int=0), -1, "", 0.0, is_live=False)
"""Session in the place of every deleted one."""


@dataclass(slots=True)
class Transfer:
    """Import or export that is in progress, or was the last one."""

    token: UUID
    is_import: bool
    is_done: bool = False


def beginnings_of(
    rows: Mapping[int, PartitionRow],
    partition_ids: Iterable[int],
    most: int,
    most_bytes: int,
    *,
    recent: bool = False,
) -> list[LogBeginning]:
    """Return the snapshots and first extents of some partitions; see ``LogIndex``."""
    heads: list[LogHead] = []
    known_bytes = 0
    for each in sorted(rows.keys() & set(partition_ids)):
        head = rows[each].head(each)
        if heads and known_bytes + head.snapshot_bytes > most_bytes:
            break
        known_bytes += head.snapshot_bytes
        heads.append(head)
    bytes_left = max(most_bytes - known_bytes, min(most_bytes, 1))
    found: list[LogBeginning] = []
    for head in heads:
        extents: list[Extent] = []
        row = rows[head.partition_id]
        found.append(LogBeginning(head, extents, recent and row.has_parts))
        for extent in row.extents_from(found[-1].first_offset, most):
            if bytes_left <= 0:
                break
            bytes_left -= extent.size_bytes
            extents.append(extent)
    return found


def fenced_members(sessions: Mapping[int, SessionRow]) -> list[Member]:
    """Return the last session of each broker that has none now, by node."""
    last: dict[int, Member] = {}
    for number, session in sessions.items():
        if session.endpoints:  # An import has a session without any.
            last[session.node_id] = Member(number, session.node_id, session.endpoints, False)
    fenced = sorted(each for each in last.values() if not sessions[each.session].is_live)
    return sorted(fenced[-FENCED_MAX:], key=lambda each: each.node_id)


def touch(before: Extent, after: Extent) -> bool:
    """Return whether an extent begins where the one before it ends."""
    return before.next_offset == after.base_offset
