"""When a broker packs its logs, and when not."""

import asyncio
from types import SimpleNamespace

import pytest

from barnabas.broker.cluster.leading.packer import Packer, PackerSettings
from barnabas.broker.runtime.clock import ManualClock
from barnabas.broker.testing.store.index import MemoryIndex
from barnabas.broker.testing.store.log_index import MemoryLogIndex
from barnabas.storage.log.config import LogConfig
from barnabas.storage.replicated.segment_packing import PackLimits
from tests.storage.flushes import assign, register
from tests.storage.leading import Broker
from tests.storage.packing import FailingOnce, packed_extents
from tests.storage.remote import keep_parts
from tests.storage.stores import NOW_MS, batch
from tests.waiting import until
from tests.worlds import world

__all__ = ["world"]

LIMITS = PackLimits(segment_bytes=1000, object_bytes_min=200, extents_max=8)
SETTINGS = PackerSettings(LIMITS)
SIZE = len(batch(value=b"v" * 20))


class Packed:
    """A broker with its packer."""

    def __init__(self):
        self.index = MemoryIndex()
        self.broker = Broker(self.index, LogConfig(), 0)
        self.clock = ManualClock(NOW_MS)
        self.tasks = []
        self.session = self.broker.session
        self.blobs = FailingOnce(self.index)
        self.way = MemoryLogIndex(self.index)
        self.snapshot_offset = 0
        self.is_throttled = False
        host = SimpleNamespace(clock=self.clock, loop=asyncio.get_running_loop(), spawn=self._spawn)
        self.packer = Packer(
            host,
            self.broker.store,
            lambda: self.session,
            lambda _log: self.snapshot_offset,
            lambda: self.way,
            lambda: self.blobs,
            SETTINGS,
            lambda _session: not self.is_throttled,
        )

    def _spawn(self, coroutine, name):
        self.tasks.append(asyncio.create_task(coroutine, name=name))

    def write(self, count):
        """Write some extents, and a snapshot behind them."""
        for _ in range(count):
            self.broker.append(batch(value=b"v" * 20))
        self.snapshot_offset = keep_parts(self.broker, self.snapshot_offset)

    async def look(self, *, seconds=0):
        self.clock.advance(seconds=seconds)
        await self.packer.run_once()
        return [each[:2] for each in packed_extents(self.index)]


@pytest.fixture
async def packed():
    made = Packed()
    yield made
    made.packer.rounds.stop()
    made.way.close()
    await asyncio.gather(*made.tasks)
    made.broker.store.abandon()


async def test_log_is_packed_once_it_has_enough_bytes(packed):
    packed.write(1)
    assert await packed.look() == []
    assert packed.packer.unpacked_bytes == SIZE
    packed.write(7)
    assert await packed.look() == []
    packed.write(-(-LIMITS.segment_bytes // SIZE) - 8)
    assert await packed.look() == [(0, packed.snapshot_offset)]
    assert packed.packer.unpacked_bytes == 0
    assert packed.packer.counts.bytes_packed >= LIMITS.segment_bytes


async def test_throttled_store_gets_no_packed_segments(packed):
    packed.is_throttled = True
    packed.write(-(-LIMITS.segment_bytes // SIZE))
    assert await packed.look(seconds=3600) == []
    packed.is_throttled = False
    assert await packed.look() == [(0, packed.snapshot_offset)]


async def test_log_is_packed_once_it_has_many_extents(packed):
    packed.write(LIMITS.extents_max)
    assert await packed.look() == []
    packed.write(1)
    assert await packed.look() == [(0, LIMITS.extents_max + 1)]


async def test_log_is_packed_after_a_time(packed):
    await packed.look()
    packed.write(4)
    assert await packed.look(seconds=599) == []
    assert packed.packer.oldest_unpacked_ms == 599_000
    assert await packed.look(seconds=1) == [(0, 4)]
    assert packed.packer.oldest_unpacked_ms == 0
    packed.write(4)
    assert await packed.look(seconds=599) == [(0, 4)]
    assert await packed.look(seconds=1) == [(0, 4), (4, 8)]


async def test_few_small_extents_stay_as_they_are(packed):
    packed.write(1)
    for _ in range(3):
        assert await packed.look(seconds=600) == []
    assert packed.packer.counts.segments == 0
    packed.write(2)
    assert await packed.look(seconds=600) == [(0, 3)]


async def test_log_is_not_looked_at_again_without_a_snapshot(packed, monkeypatch):
    packed.write(1)
    await packed.look()
    monkeypatch.setattr(packed.index, "extent_sizes", None)
    packed.clock.advance(seconds=100)
    await packed.packer.run_once()


async def test_failed_packing_is_tried_again_later(packed):
    packed.write(9)
    packed.blobs.fates = ["before"]
    assert await packed.look() == []
    assert packed.packer.counts.failures == 1
    assert await packed.look(seconds=29) == []
    assert await packed.look(seconds=1) == [(0, 9)]


@pytest.mark.parametrize("how", ["no session", "another's", "fenced"])
async def test_only_the_leader_packs(packed, how):
    packed.write(9)
    if how == "no session":
        packed.session = None
    elif how == "another's":
        assign(packed.index, 1, register(packed.index, 2))
    else:
        packed.index.fence(packed.session)
    assert await packed.look() == []


async def test_packing_runs_periodically_until_stopped(packed):
    packed.packer.rounds.start()
    packed.write(9)
    packed.clock.advance(seconds=3)
    await until(lambda: packed.packer.counts.segments == 1)
    await asyncio.gather(*packed.tasks)
    packed.write(9)
    packed.clock.advance(seconds=3)
    await until(lambda: packed.packer.counts.segments == 2)


async def test_end_of_the_connections_ends_what_is_under_way(packed):
    packed.write(9)
    packed.way.cut()
    packed.packer.rounds.start()
    packed.clock.advance(seconds=3)
    await until(lambda: bool(packed.tasks))
    packed.packer.rounds.stop()
    packed.way.close()
    await asyncio.gather(*packed.tasks)
    assert packed.packer.counts.segments == 0


async def test_state_of_a_released_log_is_dropped(packed):
    packed.write(1)
    await packed.look()
    packed.broker.store.release(1)
    await packed.look()
    assert packed.packer.unpacked_bytes == 0
