"""Keeps the store's copy of the logs small: snapshots, compaction and garbage, beside the loop.

Rules of this file:

1. The loop looks at its logs and decides; what asks the store waits on one thread, one thing after
   the other. Nothing else waits for any of this.
2. A snapshot is taken of what is placed, and kept once that is durable. It is due when a log has
   grown by so much, or at all for so long; and when something waits for it: garbage below a log
   start that it does not reach, or segments that were compacted here.
3. What was compacted here is compacted in the store after that
   (``storage/replicated/stored_compaction.py``).
4. Any broker may collect the garbage of all, so each does, in portions; so with what the store has
   of sessions that have been over for long.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from barnabas.broker.runtime.settled import Settled
from barnabas.broker.runtime.threads import Pool
from barnabas.broker.runtime.turns import next_turn
from barnabas.storage.replicated.log_index import IndexClosed
from barnabas.storage.replicated.log_snapshot import take_snapshot
from barnabas.storage.replicated.stored_compaction import StoredCompaction

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from barnabas.broker.runtime.clock import Timer
    from barnabas.broker.runtime.host import Host
    from barnabas.storage.log.partition_log import PartitionLog
    from barnabas.storage.replicated.log_index import LogIndex
    from barnabas.storage.store.log_store import LogStore

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

LOGS_PER_TURN: Final = 64
"""Logs looked at before the loop gets a turn."""
EXTENTS_AT_ONCE: Final = 64
"""Deleted in one transaction of the store, which is to end before a caller loses patience. With the
last extent in it an object goes, of some megabytes where the load is high."""
SESSIONS_AT_ONCE: Final = 100
"""Forgotten in one transaction of the store."""


@dataclass(frozen=True, slots=True)
class UpkeepSettings:
    """When it is time for what."""

    look_ms: int = 2_000
    """Between the end of one look at everything and the next."""
    garbage_ms: int = 20_000
    snapshot_bytes: int = 64 * 1024 * 1024
    """Appended to a log after which a snapshot is due."""
    snapshot_ms: int = 60_000
    retry_ms: int = 30_000
    """Until a walk over a compacted log begins again that did not get through."""
    forget_ms: int = 600_000
    """Between two looks for sessions that are to be forgotten."""
    session_kept_ms: int = 7 * 24 * 3_600_000
    """From the end of its lease on: whoever was paused for less is told what came of its flush."""


@dataclass(slots=True)
class _Kept:
    """What the store has of one log."""

    time_ms: int
    appended_bytes: int
    """How much had been appended when the snapshot was taken."""
    snapshot_offset: int = 0
    swaps: int = 0
    """How many swaps of segments it has taken part in."""
    compaction_due_ms: int = 0
    """When what was compacted here may be walked over again: the last walk did not get through."""


@dataclass(slots=True)
class UpkeepCounts:
    """What has been done since the start, for metrics."""

    snapshots: int = 0
    bytes_compacted: int = 0
    """By how much less the store has of the logs led here."""
    extents_deleted: int = 0
    looked_ms: int = 0
    """When the last look at everything ended; before that, when the first one was put off."""
    sessions_forgotten: int = 0
    """And ways to the metadata."""


class Upkeep:
    """The upkeep that one broker does."""

    def __init__(
        self,
        host: Host,
        logs: LogStore,
        index: LogIndex,
        session: Callable[[], int | None],
        settings: UpkeepSettings | None = None,
    ) -> None:
        """``index`` is its own; who closes it ends what waits. ``session`` is this broker's now."""
        self._host = host
        self._logs = logs
        self._index = index
        self._session = session
        self._settings = settings or UpkeepSettings()
        self._kept: dict[PartitionLog, _Kept] = {}
        self._thread = Pool("upkeep", loop=host.loop)
        self._timer: Timer | None = None
        self._is_stopped = False
        self._garbage_due_ms = 0
        self._forget_due_ms = 0
        self.counts = UpkeepCounts(looked_ms=host.clock.now_ms())

    def start(self) -> None:
        """Begin; the first look comes after ``look_ms``."""
        self.counts.looked_ms = self._host.clock.now_ms()
        self._rest()

    def stop(self) -> None:
        """Begin nothing more. Close the index then: that ends what is under way."""
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
        self._thread.close()

    def _rest(self) -> None:
        if not self._is_stopped:
            look_ms = self._settings.look_ms
            self._timer = self._host.clock.call_later(look_ms, self._begin)

    def _begin(self) -> None:
        self._host.spawn(self._look_and_rest(), "upkeep of the store")

    async def _look_and_rest(self) -> None:
        try:
            await self.look()
        except IndexClosed:
            return
        self._rest()

    async def look(self) -> None:
        """Do all that is due; raises IndexClosed."""
        logs = self._logs.logs
        for log in [log for log in self._kept if logs.get(log.partition_id) is not log]:
            del self._kept[log]
        for number, log in enumerate([*logs.values()], start=1):
            if number % LOGS_PER_TURN == 0:
                await next_turn()
            await self._look_at(log)
        await self._collect_garbage()
        await self._forget_sessions()
        self.counts.looked_ms = self._host.clock.now_ms()

    async def _look_at(self, log: PartitionLog) -> None:
        now_ms = self._host.clock.now_ms()
        kept = self._kept.get(log)
        if kept is None:
            kept = self._kept[log] = _Kept(now_ms, log.appended_bytes)
        awaits_compaction = kept.swaps != log.cleaning.swaps and now_ms >= kept.compaction_due_ms
        if awaits_compaction or self._is_due(log, kept, now_ms):
            is_kept = await self._keep_snapshot(log, kept)
            if is_kept and awaits_compaction:
                await self._compact(log, kept)

    def _is_due(self, log: PartitionLog, kept: _Kept, now_ms: int) -> bool:
        grown_bytes = log.appended_bytes - kept.appended_bytes
        return (
            log.log_start_offset > kept.snapshot_offset
            or grown_bytes >= self._settings.snapshot_bytes
            or (grown_bytes > 0 and now_ms - kept.time_ms >= self._settings.snapshot_ms)
        )

    async def _keep_snapshot(self, log: PartitionLog, kept: _Kept) -> bool:
        """Keep a snapshot of all that is placed; False: the log is no more led here."""
        snapshot = take_snapshot(log)
        appended_bytes, now_ms = log.appended_bytes, self._host.clock.now_ms()
        await self._durable(log)
        session = self._session()
        if session is None or not self._is_here(log):
            return False
        led = (session, log.partition_id, log.leader_epoch)
        if not await self._aside(partial(self._index.put_snapshot, *led, snapshot)):
            return False
        kept.time_ms, kept.appended_bytes = now_ms, appended_bytes
        kept.snapshot_offset = snapshot.next_offset
        self.counts.snapshots += 1
        return True

    async def _durable(self, log: PartitionLog) -> None:
        """Wait until it is decided what becomes of all that is placed."""
        group = self._logs.journal.newest_group()
        if group is not None and log.high_watermark < log.next_offset:
            settled = asyncio.Event()
            group.add_waiter(Settled(settled.set))
            await settled.wait()

    async def _compact(self, log: PartitionLog, kept: _Kept) -> None:
        session = self._session()
        if session is None or not self._is_here(log):
            return
        swaps = log.cleaning.swaps
        walk = StoredCompaction(log, self._index, session, self._aside)
        if not await walk.run(kept.snapshot_offset):
            kept.compaction_due_ms = self._host.clock.now_ms() + self._settings.retry_ms
            return
        kept.swaps = swaps
        if walk.bytes_before:
            self.counts.bytes_compacted += walk.bytes_before - walk.bytes_after
            words = "compacted in the store topic=%s partition=%d bytes_before=%d bytes_after=%d"
            logger.info(words, log.topic, log.partition, walk.bytes_before, walk.bytes_after)

    async def _collect_garbage(self) -> None:
        now_ms = self._host.clock.now_ms()
        if now_ms < self._garbage_due_ms:
            return
        deleted = EXTENTS_AT_ONCE
        while deleted == EXTENTS_AT_ONCE:
            deleted = await self._aside(partial(self._index.collect_garbage, EXTENTS_AT_ONCE))
            self.counts.extents_deleted += deleted
        self._garbage_due_ms = now_ms + self._settings.garbage_ms

    async def _forget_sessions(self) -> None:
        now_ms = self._host.clock.now_ms()
        if now_ms < self._forget_due_ms:
            return
        forget = partial(self._index.forget, SESSIONS_AT_ONCE, self._settings.session_kept_ms)
        forgotten = SESSIONS_AT_ONCE
        while forgotten >= SESSIONS_AT_ONCE:
            forgotten = await self._aside(forget)
            self.counts.sessions_forgotten += forgotten
        self._forget_due_ms = now_ms + self._settings.forget_ms

    def _is_here(self, log: PartitionLog) -> bool:
        return self._logs.logs.get(log.partition_id) is log

    def _aside(self, work: Callable[[], Result]) -> Awaitable[Result]:
        if self._is_stopped:
            raise IndexClosed
        return self._thread.run(work)
