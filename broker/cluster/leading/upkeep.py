"""Upkeep of the store's copy of the logs, in the background: snapshots, compaction, garbage.

Rules of this file:

1. The event loop checks its logs and decides. Calls of the store run on one thread, one after the
   other. No other call waits for them.
2. A snapshot covers all appended records, and is stored once they are durable. It is due after
   ``snapshot_bytes``, or after ``snapshot_ms`` if the log has grown. It is also due for garbage
   before a log start that the last snapshot does not cover, for segments that were compacted here,
   and once for a long log that was loaded whole. With it go the parts of the log before it
   (``storage/replicated/log_parts.py``). The logs with the most bytes after their snapshots get one
   earlier, so that all logs together have at most ``unread_bytes`` of them, which their next
   leaders have to read (F14). Compacted logs are not counted: they are read whole.
3. After a compaction here, the same is done in the store
   (``storage/replicated/stored_compaction.py``).
4. The segments on the disk have at most the bytes of the cache. When they have more, the oldest
   sealed ones leave of which the store has all records, before a snapshot
   (``storage/replicated/offloading.py``). If that is not enough, the logs with the most bytes get a
   new active segment and a snapshot, so that all of their records can leave. Compaction waits
   while it has written much that the store has not followed (``broker/upkeep/cleaning.py``).
5. Any broker may collect the garbage of all, so each does, in portions; the same holds for the data
   of sessions that ended long ago. Objects have an upkeep of their own (``object_upkeep.py``).
6. Any broker may pack (F12): the store copies the living extents of its sparse payloads, and none
   of their bytes passes a broker. One round packs a limited amount. So snapshots and garbage do
   not wait for a long backlog, and the store has time for flushes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from barnabas.broker.cluster.leading.rounds import LOGS_PER_TURN, Rounds, for_each_log, is_here
from barnabas.broker.runtime.settled import Settled
from barnabas.broker.runtime.turns import next_turn
from barnabas.storage.errors import Corrupt, StoreDamaged
from barnabas.storage.replicated.log_index import NO_SPACE, StoredSpace
from barnabas.storage.replicated.log_parts import (
    NewParts,
    has_parts,
    is_local,
    new_parts,
    unstored_bytes,
)
from barnabas.storage.replicated.log_snapshot import take_snapshot
from barnabas.storage.replicated.offloading import (
    Leaving,
    LogBytes,
    can_leave,
    excess,
    facts_of,
    largest,
    leaving_of,
    local_of,
    offload,
)
from barnabas.storage.replicated.stored_compaction import StoredCompaction

if TYPE_CHECKING:
    from barnabas.broker.runtime.host import Host
    from barnabas.storage.log.partition_log import PartitionLog
    from barnabas.storage.replicated.cold_store import ColdStore
    from barnabas.storage.replicated.log_index import LogIndex
    from barnabas.storage.store.log_store import LogStore

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

EXTENTS_AT_ONCE: Final = 64
"""Maximum number of extents deleted in one transaction of the store, so that it ends before its
caller times out. The transaction that deletes the last extent of an object also deletes the object,
which has some megabytes under load."""
PACKED_EXTENTS_AT_ONCE: Final = 4096
PACKED_BYTES_AT_ONCE: Final = 4 * 1024 * 1024
"""Maximum number and total size of the extents that one transaction of the store packs. It packs a
single payload of any size. A flush has as many bytes."""
PACKS_PER_ROUND: Final = 4
"""Maximum number of packing transactions in one round."""
SESSIONS_AT_ONCE: Final = 100
"""Maximum number of sessions deleted in one transaction of the store."""


@dataclass(frozen=True, slots=True)
class UpkeepSettings:
    """Intervals and limits of the upkeep."""

    look_ms: int = 2_000
    """Pause between two rounds over all logs."""
    garbage_ms: int = 20_000
    """Interval between deletions of garbage, and between packings unless some is left to pack."""
    pack_rest_ms: int = 300_000
    """Time after which a sparse payload is packed: until then more of it may be deleted."""
    snapshot_bytes: int = 64 * 1024 * 1024
    """Bytes appended to a log after which a snapshot is due."""
    snapshot_ms: int = 60_000
    unread_bytes: int = 512 * 1024 * 1024
    """Maximum size of the records after the snapshots of all logs. Two brokers that take over these
    logs read them within 5 s if the store gives each of them 50 MB/s. A thousand logs that get
    16 MB/s together stay below it by snapshots after ``snapshot_ms``; with 100 MB/s they need about
    100 snapshots a second."""
    retry_ms: int = 30_000
    """Pause before an unfinished compaction of a log in the store is tried again."""
    forget_ms: int = 600_000
    """Interval between deletions of old sessions."""
    session_kept_ms: int = 7 * 24 * 3_600_000
    """Time after the end of its lease for which a session is kept, so that a broker that was paused
    for less learns the result of its flush."""


@dataclass(slots=True)
class _Kept:
    """State of one log in the store."""

    time_ms: int
    appended_bytes: int
    """Number of bytes appended when the snapshot was taken."""
    inherited_bytes: int = 0
    """Size of the records after the snapshot when the log was loaded, until the next snapshot."""
    snapshot_offset: int = 0
    swaps: int = 0
    """Number of swaps of segments that the store has followed."""
    compaction_due_ms: int = 0
    """Time at which an unfinished compaction in the store may be tried again."""


@dataclass(slots=True)
class UpkeepCounts:
    """Counts since the start, for metrics."""

    snapshots: int = 0
    bytes_compacted: int = 0
    """Bytes by which compaction has shrunk the store's copy of the logs led here."""
    extents_deleted: int = 0
    extents_packed: int = 0
    bytes_packed: int = 0
    """Number and size of the extents of any log that were copied out of sparse payloads."""
    space: StoredSpace = NO_SPACE
    """Space of deleted extents in the store, of all logs, at the last round that packed."""
    segments_offloaded: int = 0
    """Number of segments of which only the store has the records since."""
    looked_ms: int = 0
    """Time of the end of the last round, or of the start before the first one."""
    sessions_forgotten: int = 0
    """Number of deleted sessions, with their metadata connections."""


class Upkeep:
    """Upkeep of the store by one broker."""

    def __init__(
        self,
        host: Host,
        logs: LogStore,
        index: LogIndex,
        session: Callable[[], int | None],
        settings: UpkeepSettings | None = None,
        *,
        cold: ColdStore | None = None,
        packs: bool = False,
    ) -> None:
        """``index`` is for this object alone; closing it ends calls.

        ``session``: the current one or None. ``cold`` reads records that the store alone has;
        without it all segments stay on the disk. ``packs``: whether logs are packed, which needs a
        snapshot of each.
        """
        self._host = host
        self._logs = logs
        self._index = index
        self._session = session
        self._cold = cold
        self._packs = packs
        self._settings = settings or UpkeepSettings()
        self._kept: dict[PartitionLog, _Kept] = {}
        self._rounds = Rounds(host, self.run_once, "upkeep", self._settings.look_ms)
        self._garbage_due_ms = 0
        self._pack_due_ms = 0
        self._forget_due_ms = 0
        self.counts = UpkeepCounts(looked_ms=host.clock.now_ms())

    def snapshot_offset(self, log: PartitionLog) -> int:
        """Return the offset of the log's last snapshot since this broker leads it, or 0."""
        kept = self._kept.get(log)
        return 0 if kept is None else kept.snapshot_offset

    def start(self) -> None:
        """Start the upkeep; the first round comes after ``look_ms``."""
        self.counts.looked_ms = self._host.clock.now_ms()
        self._rounds.start()

    def stop(self) -> None:
        """Stop the upkeep; closing the index afterwards ends the current call."""
        self._rounds.stop()

    async def run_once(self) -> None:
        """Run one round of all that is due; raises IndexClosed."""
        await for_each_log(self._logs, self._kept, self._maintain)
        await self._limit_unread()
        await self._offload()
        await self._collect_garbage()
        await self._pack()
        await self._forget_sessions()
        self.counts.looked_ms = self._host.clock.now_ms()

    async def _maintain(self, log: PartitionLog) -> None:
        now_ms = self._host.clock.now_ms()
        kept = self._kept.get(log)
        if kept is None:
            inherited_bytes = unstored_bytes(log)
            kept = self._kept[log] = _Kept(now_ms, log.appended_bytes, inherited_bytes)
        awaits_compaction = kept.swaps != log.cleaning.swaps and now_ms >= kept.compaction_due_ms
        if awaits_compaction or self._is_due(log, kept, now_ms):
            is_kept = await self._keep_snapshot(log, kept)
            if is_kept and awaits_compaction:
                await self._compact(log, kept)

    async def _limit_unread(self) -> None:
        """Keep snapshots of the logs with the most bytes after theirs, above the limit of all."""
        unread: list[LogBytes] = []

        async def measure(log: PartitionLog) -> None:
            kept = self._kept.get(log)
            if kept is not None and has_parts(log):
                grown_bytes = log.appended_bytes - kept.appended_bytes
                unread.append(LogBytes(kept.inherited_bytes + grown_bytes, log))

        await for_each_log(self._logs, self._kept, measure)
        excess_bytes = sum(each.size_bytes for each in unread) - self._settings.unread_bytes
        for log in largest(unread, excess_bytes):
            if is_here(self._logs, log):
                await self._keep_snapshot(log, self._kept[log])

    def _is_due(self, log: PartitionLog, kept: _Kept, now_ms: int) -> bool:
        grown_bytes = log.appended_bytes - kept.appended_bytes
        return (
            log.log_start_offset > kept.snapshot_offset
            or grown_bytes >= self._settings.snapshot_bytes
            or (
                (grown_bytes > 0 or _may_lack_parts(log, kept) or self._may_be_unpacked(log, kept))
                and now_ms - kept.time_ms >= self._settings.snapshot_ms
            )
        )

    def _may_be_unpacked(self, log: PartitionLog, kept: _Kept) -> bool:
        """Whether a log with records has no snapshot since this broker leads it."""
        has_records = log.high_watermark > log.log_start_offset
        return self._packs and has_records and not kept.snapshot_offset and has_parts(log)

    async def _keep_snapshot(self, log: PartitionLog, kept: _Kept) -> bool:
        """Store a snapshot of all appended records; return False if the log is not led here any
        more.
        """
        snapshot, found = take_snapshot(log), new_parts(log, kept.snapshot_offset)
        appended_bytes, now_ms = log.appended_bytes, self._host.clock.now_ms()
        await self._durable(log)
        session = self._session()
        if session is None or not is_here(self._logs, log):
            return False
        if not isinstance(found, NewParts):
            parts = found
        else:
            parts = await self._read(log, found.encode)
            if parts is None or self._session() != session:
                return False
        led = (session, log.partition_id, log.leader_epoch)
        if not await self._rounds.aside(partial(self._index.put_snapshot, *led, snapshot, parts)):
            return False
        kept.time_ms, kept.appended_bytes, kept.inherited_bytes = now_ms, appended_bytes, 0
        kept.snapshot_offset = snapshot.next_offset
        if isinstance(found, NewParts):
            found.note_stored()
        self.counts.snapshots += 1
        return True

    async def _durable(self, log: PartitionLog) -> None:
        """Wait until all appended records are durable or lost."""
        group = self._logs.journal.newest_group()
        if group is not None and log.high_watermark < log.next_offset:
            settled = asyncio.Event()
            group.add_waiter(Settled(settled.set))
            await settled.wait()

    async def _compact(self, log: PartitionLog, kept: _Kept) -> None:
        session = self._session()
        if session is None or not is_here(self._logs, log):
            return
        swaps = log.cleaning.swaps
        walk = StoredCompaction(log, self._index, session, self._rounds.aside)
        if not await walk.run(kept.snapshot_offset):
            if log.cleaning.swaps == swaps:  # Otherwise it has to follow a later pass, too.
                kept.compaction_due_ms = self._host.clock.now_ms() + self._settings.retry_ms
            return
        kept.swaps = swaps
        if walk.bytes_before:
            self.counts.bytes_compacted += max(0, walk.bytes_before - walk.bytes_after)
            words = "compacted in the store topic=%s partition=%d bytes_before=%d bytes_after=%d"
            logger.info(words, log.topic, log.partition, walk.bytes_before, walk.bytes_after)

    async def _offload(self) -> None:
        """Remove segments from the disk, beyond the size of the cache, and as many bytes as the
        disk lacks after the cache has shrunk.
        """
        cold = self._cold
        if cold is None:
            return
        try:
            left_bytes = await self._rounds.aside(cold.cache.fit)
        except OSError as error:
            logger.warning("free space unknown, the cache keeps its size error=%s", error)
            return
        leaving: list[Leaving] = []
        later: list[LogBytes] = []
        kept_bytes = cold.cache.max_bytes
        looked_at = 0
        for log, kept in [*self._kept.items()]:
            looked_at += len(log.segments)
            if looked_at > LOGS_PER_TURN:
                looked_at = len(log.segments)
                await next_turn()
            if is_here(self._logs, log):
                local = local_of(log, kept.snapshot_offset)
                leaving += local.leaving
                later.append(local.later)
                kept_bytes -= local.later.size_bytes + local.stuck_bytes
        most = partial(excess, leaving, kept_bytes, left_bytes)
        oldest = await self._rounds.aside(most)
        for each in oldest:
            await self._leave(each, cold)
        gone_bytes = sum(each.segment.disk_bytes for each in oldest)
        kept_bytes -= sum(each.segment.disk_bytes for each in leaving) - gone_bytes
        for log in largest(later, -min(kept_bytes, left_bytes + gone_bytes)):
            await self._leave_whole(log, cold)
        if self._logs.wants_checkpoint:
            self._logs.checkpoint()  # It removes the files.

    async def _leave(self, leaving: Leaving, cold: ColdStore) -> None:
        """Remove a segment from the disk, unless its indexes cannot be read."""
        facts = await self._read(leaving.log, partial(facts_of, leaving))
        await next_turn()
        if facts is not None and is_here(self._logs, leaving.log):
            self.counts.segments_offloaded += offload(leaving, facts, cold)

    async def _leave_whole(self, log: PartitionLog, cold: ColdStore) -> None:
        """Remove all segments of a log from the disk, the active one included.

        A write to them that waits for room on a full disk ends by that.
        """
        kept = self._kept.get(log)
        if kept is None or log.closed or not can_leave(log) or not is_here(self._logs, log):
            return
        if log.active.size_bytes:
            log.roll(self._logs.journal.group_for(0))
        if await self._keep_snapshot(log, kept):
            for each in [*leaving_of(log, kept.snapshot_offset)]:
                await self._leave(each, cold)

    async def _read(self, log: PartitionLog, read: Callable[[], Result]) -> Result | None:
        """Return the result of ``read``, or None if the files of the log cannot be read."""
        try:
            return await self._rounds.aside(read)
        except (Corrupt, OSError) as damage:
            if is_here(self._logs, log):
                log.suspect(log.log_start_offset, damage)
            return None

    async def _collect_garbage(self) -> None:
        now_ms = self._host.clock.now_ms()
        if now_ms < self._garbage_due_ms:
            return
        deleted = EXTENTS_AT_ONCE
        while deleted == EXTENTS_AT_ONCE:
            deleted = await self._rounds.aside(
                partial(self._index.collect_garbage, EXTENTS_AT_ONCE)
            )
            self.counts.extents_deleted += deleted
        self._garbage_due_ms = now_ms + self._settings.garbage_ms

    async def _pack(self) -> None:
        now_ms = self._host.clock.now_ms()
        if now_ms < self._pack_due_ms:
            return
        index, rest_ms = self._index, self._settings.pack_rest_ms
        limits = (PACKED_EXTENTS_AT_ONCE, PACKED_BYTES_AT_ONCE, rest_ms)
        try:
            for _ in range(PACKS_PER_ROUND):
                packed = await self._rounds.aside(partial(index.pack_extents, *limits))
                self.counts.extents_packed += packed.extents
                self.counts.bytes_packed += packed.size_bytes
                if not packed.extents:
                    self._pack_due_ms = now_ms + self._settings.garbage_ms
                    break
            self.counts.space = await self._rounds.aside(partial(index.space, rest_ms))
        except StoreDamaged as damage:
            self._pack_due_ms = now_ms + self._settings.retry_ms
            logger.warning("store not packed, it is tried again reason=%s", damage)

    async def _forget_sessions(self) -> None:
        now_ms = self._host.clock.now_ms()
        if now_ms < self._forget_due_ms:
            return
        forget = partial(self._index.forget, SESSIONS_AT_ONCE, self._settings.session_kept_ms)
        forgotten = SESSIONS_AT_ONCE
        while forgotten >= SESSIONS_AT_ONCE:
            forgotten = await self._rounds.aside(forget)
            self.counts.sessions_forgotten += forgotten
        self._forget_due_ms = now_ms + self._settings.forget_ms


def _may_lack_parts(log: PartitionLog, kept: _Kept) -> bool:
    """Return whether a log is long enough to need parts for a takeover, and has none."""
    is_long = len(log.segments) > 1 and is_local(log) and not log.config.is_compacted
    return is_long and not kept.snapshot_offset
