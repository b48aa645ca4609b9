"""Packing of the logs that are led here into segments in the object store, in the background.

Rules of this file:

1. Packing is beside everything else: a thread and connections of its own. A store that is slow or
   away delays nothing but packing.
2. The packer looks at a log after each snapshot, and once ``pack_ms`` has passed. It packs the
   records before the snapshot if they have ``segment_bytes``, if they are more than ``extents_max``
   extents, or if the log has not been packed for ``pack_ms``
   (``storage/replicated/segment_packing.py``).
3. One segment is packed after the other, so packing has one of them in memory.
4. While the store throttles, nothing is packed: uploads of flushes go first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.cluster.leading.rounds import Rounds, for_each_log, is_here
from barnabas.storage.replicated.log_parts import has_parts
from barnabas.storage.replicated.segment_packing import (
    PackLimits,
    PackNumbers,
    SegmentPacking,
    Unpacked,
    find_unpacked,
)

if TYPE_CHECKING:
    from barnabas.broker.runtime.host import Host
    from barnabas.storage.log.partition_log import PartitionLog
    from barnabas.storage.objects.blob_store import BlobStore
    from barnabas.storage.replicated.log_index import LogIndex
    from barnabas.storage.store.log_store import LogStore


@dataclass(frozen=True, slots=True)
class PackerSettings:
    """Intervals and limits of packing."""

    limits: PackLimits = field(default_factory=PackLimits)
    pack_ms: int = 600_000
    """Time after which all of a log before its snapshot is packed."""
    look_ms: int = 2_000
    """Pause between two rounds over all logs."""
    retry_ms: int = 30_000
    """Pause before a log is tried again that could not be packed."""


@dataclass(slots=True)
class _Packed:
    """State of one log."""

    time_ms: int
    """Time at which the whole log was packed, or at which it was first seen."""
    looked_offset: int = 0
    """Offset of its snapshot at the packer's last round."""
    packed_offset: int = 0
    """Offset up to which nothing is left to be packed."""
    unpacked_bytes: int = 0
    due_ms: int = 0
    """Time of its next attempt after a failed one."""


@dataclass(slots=True)
class PackerCounts:
    """Counts since the start, for metrics."""

    segments: int = 0
    bytes_packed: int = 0
    failures: int = 0
    """Number of segments that could not be packed when they were due."""


class Packer:
    """Packing by one broker; on the loop."""

    def __init__(
        self,
        host: Host,
        logs: LogStore,
        session: Callable[[], int | None],
        snapshot_offset: Callable[[PartitionLog], int],
        open_index: Callable[[], LogIndex],
        open_blobs: Callable[[], BlobStore],
        settings: PackerSettings | None = None,
        may_pack: Callable[[int], bool] = lambda _session: True,
    ) -> None:
        """``session``: the current one or None. ``snapshot_offset``: see ``Upkeep``.

        Both ``open_`` functions may block. They return a new connection, whose ``close`` ends its
        calls. ``may_pack`` returns whether a session may put segments now: once the
        object store is in use, and not while the store throttles.
        """
        self._host = host
        self._logs = logs
        self._session = session
        self._snapshot_offset = snapshot_offset
        self._open_index = open_index
        self._open_blobs = open_blobs
        self._settings = settings or PackerSettings()
        self._may_pack = may_pack
        self._store: tuple[LogIndex, BlobStore] | None = None
        """The connections, once there are any."""
        self._numbers = PackNumbers()
        self._packed: dict[PartitionLog, _Packed] = {}
        self.rounds = Rounds(host, self.run_once, "packer", self._settings.look_ms)
        """Closing the connections after ``stop`` ends the current call."""
        self.counts = PackerCounts()

    @property
    def unpacked_bytes(self) -> int:
        """Unpacked bytes before snapshots, as of the last check of each log."""
        return sum(each.unpacked_bytes for each in self._packed.values())

    @property
    def oldest_unpacked_ms(self) -> int:
        """Time since which the log that was packed longest ago has not been packed, or 0."""
        waiting = [each.time_ms for each in self._packed.values() if each.unpacked_bytes]
        return self._host.clock.now_ms() - min(waiting) if waiting else 0

    async def run_once(self) -> None:
        """Pack all that is due; raises IndexClosed."""
        await for_each_log(self._logs, self._packed, self._pack_if_due)

    async def _pack_if_due(self, log: PartitionLog) -> None:
        now_ms, snapshot_offset = self._host.clock.now_ms(), self._snapshot_offset(log)
        state = self._packed.get(log)
        if state is None:
            state = self._packed[log] = _Packed(now_ms)
        session = self._session()
        if session is None or now_ms < state.due_ms or not has_parts(log):
            return
        if not self._may_pack(session):
            return
        if snapshot_offset <= state.packed_offset:
            state.time_ms = now_ms
            return
        is_old = now_ms - state.time_ms >= self._settings.pack_ms
        if is_old or snapshot_offset != state.looked_offset:
            await self._pack(log, state, session, snapshot_offset, is_old=is_old)

    async def _pack(
        self, log: PartitionLog, state: _Packed, session: int, end: int, *, is_old: bool
    ) -> None:
        index, blobs = await self.rounds.aside(self._connect)
        limits = self._settings.limits
        begin = max(state.packed_offset, log.log_start_offset)
        find = partial(find_unpacked, index, log.partition_id, begin, end, limits.segment_bytes)
        state.looked_offset = end
        packing = SegmentPacking(
            log, session, index, blobs, self.rounds.aside, self._numbers, limits
        )
        left: list[Unpacked] = []
        portions, reached = await self.rounds.aside(find)
        for portion in portions:
            is_due = (
                is_old
                or portion.size_bytes >= limits.segment_bytes
                or portion.extents > limits.extents_max
            )
            if not is_due or not packing.is_worth_it(portion):
                left.append(portion)
            elif not is_here(self._logs, log):
                return
            elif await packing.pack(portion):
                self.counts.segments += 1
                self.counts.bytes_packed += portion.size_bytes
            else:
                self.counts.failures += 1
                state.due_ms = self._host.clock.now_ms() + self._settings.retry_ms
                state.looked_offset = 0
                return
        state.packed_offset = left[0].begin if left else reached
        state.unpacked_bytes = sum(each.size_bytes for each in left)
        if is_old or not left:
            state.time_ms = self._host.clock.now_ms()

    def _connect(self) -> tuple[LogIndex, BlobStore]:
        if self._store is None:
            self._store = self._open_index(), self._open_blobs()
        return self._store
