"""A leader of many partitions whose log.dirs has little room: active segments leave it, too."""

import asyncio

import pytest

from barnabas.storage.log.config import COMPACT, LogConfig
from barnabas.storage.replicated.log_parts import covering_parts
from barnabas.storage.replicated.log_reading import head_of
from barnabas.storage.store.flush_start import open_cache
from barnabas.storage.store.store_parts import PartitionSpec
from tests.broker.test_upkeep import Upkept
from tests.storage.flushes import assign
from tests.storage.leading import Broker
from tests.storage.remote import Cold
from tests.storage.stores import batch, read_all
from tests.worlds import world

__all__ = ["world"]

KIB = 1024
PARTITIONS = 1000
VALUE = bytes(2 * KIB)
CONFIG = LogConfig(segment_bytes=1024 * KIB * KIB)
COMPACTED = LogConfig(cleanup_policy=frozenset([COMPACT]))
CACHE_BYTES = 1024 * KIB
TURNS = 4
"""Turns in which each partition gets a record: eight times as many bytes as the limit."""


class Leader(Broker):
    """A broker that leads many partitions with segments of 1 GiB, the last one compacted."""

    count = PARTITIONS

    def open(self, spec):
        specs = [spec]
        for number in range(2, self.count + 1):
            epoch = assign(self.index, number, self.session)
            config = COMPACTED if number == self.count else CONFIG
            specs.append(PartitionSpec(number, f"t{number}", 0, bytes(16), config, epoch))
        open_cache(self.store, self.way, self.session, specs)


class FewLeader(Leader):
    """The same with few partitions."""

    count = 4


@pytest.fixture(params=[Leader])
async def upkept(request):
    made = Upkept(CONFIG, request.param)
    made.upkeep._cold = Cold(made.index, max_bytes=CACHE_BYTES).store
    yield made
    made.upkeep.stop()
    made.way.close()
    made.upkeep._cold.close()
    await asyncio.gather(*made.tasks)
    made.broker.store.abandon()


async def look(upkept):
    """Run rounds of upkeep until the segments that left are removed."""
    for _ in range(2):
        upkept.pass_time(2)
        await upkept.upkeep.run_once()
        upkept.broker.engine.settle()


def append(upkept, value=VALUE):
    for log in upkept.broker.store.logs.values():
        log.append(batch(value=value))
    upkept.broker.engine.settle()


def local_bytes(upkept):
    logs = upkept.broker.store.logs.values()
    return sum(each.disk_bytes for log in logs for each in log.local_segments)


async def test_thousand_partitions_with_large_segments_fit_a_small_disk(upkept):
    disk = upkept.broker.store.file_system
    disk.capacity_bytes = disk.used_bytes + 4 * CACHE_BYTES
    await look(upkept)
    for _ in range(TURNS):
        append(upkept)
        assert not upkept.broker.store.exhausted, "a write found no room"
        await look(upkept)
        assert local_bytes(upkept) <= CACHE_BYTES
    logs = upkept.broker.store.logs
    assert all(len(read_all(logs[number])) == TURNS for number in (1, 2, PARTITIONS))
    assert max(len(log.segments) for log in logs.values()) <= 2, "pieces that left are joined"


@pytest.mark.parametrize("upkept", [FewLeader], indirect=True)
async def test_logs_with_the_most_bytes_leave_the_disk_first(upkept):
    await look(upkept)
    logs = upkept.broker.store.logs
    sizes = {1: 700 * KIB, 2: 300 * KIB, 3: 100 * KIB}
    for number, size in sizes.items():
        logs[number].append(batch(value=bytes(size)))
    upkept.broker.engine.settle()
    await look(upkept)
    local = {number: logs[number].active.base_offset == 0 for number in sizes}
    assert local == {1: False, 2: True, 3: True}
    assert covering_parts(upkept.index, [head_of(upkept.index, 1)])[1]
    logs[1].append(batch())
    upkept.broker.engine.settle()
    await look(upkept)
    assert len(logs[1].segments) == 2, "a log below the limit is left alone"
    assert len(read_all(logs[1])) == 2


@pytest.mark.parametrize("upkept", [FewLeader], indirect=True)
async def test_active_segments_leave_a_disk_that_lacks_space(upkept):
    cache = upkept.upkeep._cold.cache
    await look(upkept)
    append(upkept)
    await look(upkept)
    assert local_bytes(upkept) > 0
    cache._free_bytes_min = cache._left_bytes() + 1
    await look(upkept)
    log = upkept.broker.store.get(1)
    assert local_bytes(upkept) < 3 * len(VALUE)
    assert len(read_all(log)) == 1
