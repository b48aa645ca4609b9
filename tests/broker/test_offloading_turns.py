"""Turns of the loop in which a leader of many partitions takes segments off its disk."""

import asyncio
from collections import Counter

import pytest

from barnabas.broker.cluster.leading import upkeep
from barnabas.broker.cluster.leading.rounds import LOGS_PER_TURN
from barnabas.broker.runtime import turns
from barnabas.storage.errors import Corrupt
from barnabas.storage.log.config import LogConfig
from barnabas.storage.replicated.remote_segment import RemoteSegment
from barnabas.storage.runtime.threads import thread_id
from barnabas.storage.store.flush_start import open_cache
from barnabas.storage.store.store_parts import PartitionSpec
from tests.broker.test_upkeep import MINUTE_S, Upkept
from tests.storage.flushes import assign
from tests.storage.leading import Broker
from tests.storage.remote import Cold
from tests.storage.stores import batch, read_all

PARTITIONS = 3 * LOGS_PER_TURN
SEGMENTS = 3
CONFIG = LogConfig(segment_bytes=100, index_interval_bytes=50)
"""Each batch fills a segment."""


class Leader(Broker):
    """A broker that leads many partitions."""

    def open(self, spec):
        specs = [spec]
        for number in range(2, PARTITIONS + 1):
            epoch = assign(self.index, number, self.session)
            specs.append(PartitionSpec(number, f"t{number}", 0, bytes(16), CONFIG, epoch))
        open_cache(self.store, self.way, self.session, specs)


class Turns:
    """Counts of what the loop did in each of its turns."""

    def __init__(self):
        self.number = 0
        self.looked_at = Counter()
        self.left = Counter()
        self.read_by = set()
        self._task = asyncio.create_task(self._count())

    async def _count(self):
        while True:
            self.number += 1
            await asyncio.sleep(0)

    async def end(self):
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


@pytest.fixture
async def upkept(monkeypatch):
    monkeypatch.setattr(turns, "SLICE_SECONDS", 0)
    made = Upkept(CONFIG, Leader)
    made.upkeep._cold = Cold(made.index, max_bytes=0).store
    await made.upkeep.run_once()
    for log in made.broker.store.logs.values():
        for _ in range(SEGMENTS):
            log.append(batch())
    made.broker.engine.settle()
    made.broker.checkpoint()
    active = [log.active.disk_bytes for log in made.broker.store.logs.values()]
    made.upkeep._cold.cache.max_bytes = sum(active)
    yield made
    made.upkeep.stop()
    made.upkeep._cold.close()


@pytest.fixture
async def counted(upkept, monkeypatch):
    made = Turns()
    local_of, offload, part_of = upkeep.local_of, upkeep.offload, upkeep.facts_of

    def looking(log, snapshot_offset):
        made.looked_at[made.number] += len(log.segments)
        return local_of(log, snapshot_offset)

    def leaving(*found):
        made.left[made.number] += 1
        return offload(*found)

    def reading(each):
        made.read_by.add(thread_id())
        return part_of(each)

    monkeypatch.setattr(upkeep, "local_of", looking)
    monkeypatch.setattr(upkeep, "offload", leaving)
    monkeypatch.setattr(upkeep, "facts_of", reading)
    yield made
    await made.end()


async def test_leader_of_many_partitions_offloads_in_short_turns(upkept, counted):
    upkept.pass_time(2 * MINUTE_S)
    await upkept.upkeep.run_once()
    sealed = PARTITIONS * (SEGMENTS - 1)
    assert upkept.counts.segments_offloaded == sealed
    assert sum(counted.looked_at.values()) == PARTITIONS * SEGMENTS
    assert max(counted.looked_at.values()) <= LOGS_PER_TURN
    assert max(counted.left.values()) == 1
    assert counted.read_by.isdisjoint({thread_id()}), "indexes are read on the loop"


async def test_segment_whose_index_cannot_be_read_stays(upkept, monkeypatch):
    facts_of = upkeep.facts_of
    suspected = []
    monkeypatch.setattr(
        upkept.broker.store.callbacks, "on_suspected", lambda *found: suspected.append(found)
    )

    def damaged(each):
        if each.partition_id == 2:
            raise Corrupt(each.segment.log_path, 0, "no batch starts here")
        return facts_of(each)

    monkeypatch.setattr(upkeep, "facts_of", damaged)
    upkept.pass_time(2 * MINUTE_S)
    await upkept.upkeep.run_once()
    log = upkept.broker.store.get(2)
    assert upkept.counts.segments_offloaded == (PARTITIONS - 1) * (SEGMENTS - 1)
    assert not any(isinstance(segment, RemoteSegment) for segment in log.segments)
    assert suspected
    assert len(read_all(log)) == SEGMENTS
