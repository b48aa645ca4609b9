"""When a broker keeps snapshots, compacts in the store and collects garbage, and when not."""

import asyncio
from types import SimpleNamespace
from uuid import UUID

import pytest

from barnabas.broker.cluster.leading import upkeep
from barnabas.broker.cluster.leading.upkeep import (
    EXTENTS_AT_ONCE,
    PACKS_PER_ROUND,
    Upkeep,
    UpkeepSettings,
)
from barnabas.broker.runtime.clock import ManualClock
from barnabas.broker.testing.store.index import MemoryIndex
from barnabas.broker.testing.store.log_index import MemoryLogIndex
from barnabas.storage.errors import StoreDamaged
from barnabas.storage.log.config import LogConfig
from barnabas.storage.replicated.log_index import NO_SPACE, StoredSpace
from barnabas.storage.runtime.clock import monotonic
from tests.storage.cleaning import COMPACTED
from tests.storage.flushes import assign, register, snapshot_of
from tests.storage.leading import MANY, Broker, committed
from tests.storage.stores import NOW_MS, batch, from_producer
from tests.storage.upkeep_contract import Leader
from tests.waiting import until
from tests.worlds import world

__all__ = ["world"]

SETTINGS = UpkeepSettings(snapshot_bytes=1000)
MINUTE_S = 60


class Upkept:
    """A broker with its upkeep."""

    def __init__(self, config=None, kind=Broker):
        self.index = MemoryIndex()
        self.broker = kind(self.index, config or LogConfig(), 0)
        self.clock = ManualClock(NOW_MS)
        self.tasks = []
        self.session = self.broker.session
        self.way = MemoryLogIndex(self.index)
        loop = asyncio.get_running_loop()
        host = SimpleNamespace(clock=self.clock, loop=loop, spawn=self._spawn)
        self.upkeep = Upkeep(host, self.broker.store, self.way, lambda: self.session, SETTINGS)

    def _spawn(self, coroutine, name):
        self.tasks.append(asyncio.create_task(coroutine, name=name))

    @property
    def counts(self):
        return self.upkeep.counts

    def pass_time(self, seconds):
        self.clock.advance(seconds=seconds)
        self.broker.now_ms += 1000 * seconds

    @property
    def snapshot_offset(self):
        found = snapshot_of(self.index, 1)
        return None if found is None else found.next_offset


@pytest.fixture
async def upkept():
    made = Upkept()
    yield made
    await end(made)


@pytest.fixture
async def compacted():
    made = Upkept(COMPACTED)
    yield made
    await end(made)


async def end(upkept):
    upkept.upkeep.stop()
    upkept.way.close()
    await asyncio.gather(*upkept.tasks)
    upkept.broker.store.abandon()


async def test_sessions_that_ended_long_ago_are_forgotten_now_and_then(upkept):
    index, look = upkept.index, upkept.upkeep.run_once
    ended = register(index, 2)
    index.fence(ended)
    await look()
    later = monotonic() + SETTINGS.session_kept_ms / 1000 + MINUTE_S
    index._clock = lambda: later
    await look()
    assert upkept.counts.sessions_forgotten == 0, "it was looked for them just now"
    upkept.pass_time(11 * MINUTE_S)
    await look()
    assert upkept.counts.sessions_forgotten == 1
    assert index.register(UUID(int=9), 2, "", 0) > ended


async def test_a_snapshot_is_due_after_bytes_or_time(upkept):
    broker, look = upkept.broker, upkept.upkeep.run_once
    await look()
    assert upkept.snapshot_offset is None, "nothing was appended"
    broker.append(batch(value=b"v" * 1000))
    await look()
    assert upkept.snapshot_offset == 1
    broker.append(from_producer(7, 0))
    await look()
    assert upkept.snapshot_offset == 1, "it is little, and not long ago"
    upkept.pass_time(MINUTE_S)
    await look()
    assert upkept.snapshot_offset == 2
    upkept.pass_time(MINUTE_S)
    await look()
    assert upkept.counts.snapshots == 2, "nothing came since"


async def test_a_log_start_awaits_a_snapshot_and_then_garbage_goes(upkept):
    broker, look = upkept.broker, upkept.upkeep.run_once
    for _ in range(4):
        broker.append(batch())
    await look()
    broker.delete_records(3)
    await look()
    assert upkept.snapshot_offset == 4
    assert len(upkept.index.extents(1, 0, most=MANY)) == 4, "garbage is not looked for so often"
    upkept.pass_time(MINUTE_S)
    await look()
    assert len(upkept.index.extents(1, 0, most=MANY)) == 1
    assert upkept.counts.extents_deleted == 3


async def test_garbage_goes_in_portions_until_there_is_none(upkept):
    count = 2 * EXTENTS_AT_ONCE + 1
    for _ in range(count):
        upkept.broker.log.append(batch())
        upkept.broker.engine.settle()
    upkept.broker.delete_records(count)
    await upkept.upkeep.run_once()
    assert upkept.counts.extents_deleted == count


async def test_a_snapshot_is_kept_when_what_it_is_of_is_durable(upkept):
    broker = upkept.broker

    async def at_once(work):
        return work()

    upkept.upkeep._rounds.aside = at_once  # No thread may come too late to find it.
    await upkept.upkeep.run_once()
    broker.log.append(batch(value=b"v" * 1000))
    looking = asyncio.create_task(upkept.upkeep.run_once())
    for _ in range(5):
        await asyncio.sleep(0)
    assert not looking.done()
    broker.engine.settle()
    await looking
    assert upkept.snapshot_offset == 1


async def test_a_snapshot_of_what_was_refused_is_dropped(upkept):
    broker = upkept.broker
    await upkept.upkeep.run_once()
    broker.log.append(batch(value=b"v" * 1000))
    looking = asyncio.create_task(upkept.upkeep.run_once())
    await asyncio.sleep(0)
    assign(upkept.index, 1, register(upkept.index, 2))
    broker.engine.settle()
    await looking
    assert upkept.snapshot_offset is None
    assert not broker.store.logs


@pytest.mark.parametrize("how", ["no session", "another's", "fenced"])
async def test_upkeep_stores_no_snapshot_without_leadership(upkept, how):
    upkept.broker.append(batch(value=b"v" * 1000))
    if how == "no session":
        upkept.session = None
    elif how == "another's":
        assign(upkept.index, 1, register(upkept.index, 2))
    else:
        upkept.index.fence(upkept.session)
    upkept.broker.delete_records(1)
    await upkept.upkeep.run_once()
    assert upkept.snapshot_offset is None
    assert upkept.counts.snapshots == 0


async def test_local_compaction_is_followed_by_store_compaction(compacted):
    broker, look = compacted.broker, compacted.upkeep.run_once
    for number in range(60):
        broker.append(batch(key=b"k%d" % (number % 3), value=b"%d" % number * 20))
    await look()
    before = len(compacted.index.extents(1, 0, most=MANY))
    assert broker.compact()
    await look()
    assert len(compacted.index.extents(1, 0, most=MANY)) < before / 3
    assert compacted.counts.bytes_compacted > 0
    snapshots = compacted.counts.snapshots
    await look()
    assert compacted.counts.snapshots == snapshots, "it is through"
    wanted = committed(broker.log, 0).state
    assert committed(Broker(compacted.index, COMPACTED, 1).log, 0).state == wanted


async def test_a_walk_that_does_not_get_through_begins_again_later(compacted, monkeypatch):
    broker, look = compacted.broker, compacted.upkeep.run_once
    for number in range(60):
        broker.append(batch(key=b"k%d" % (number % 3), value=b"%d" % number * 20))
    await look()
    assert broker.compact()
    with monkeypatch.context() as patched:
        patched.setattr(compacted.index, "replace_extents", lambda *_, **_named: False)
        await look()
    await look()
    assert compacted.counts.bytes_compacted == 0
    compacted.pass_time(MINUTE_S)
    await look()
    assert compacted.counts.bytes_compacted > 0


def leave_sparse_payloads(upkept, count):
    """Write payloads of two partitions as another broker, and delete the records of one.

    Returns the other partition.
    """
    index = upkept.index
    index._clock = lambda: upkept.clock.now_ms() / 1000
    leader = Leader(index, lambda *led: assign(index, *led) is not None, store=None)
    one, other = leader.lead(), leader.lead()
    for _ in range(count):
        leader.append(one, other, size=100)
    leader.snapshot(one, 2 * count)
    leader.start_at(one, 2 * count)
    return other


async def test_sparse_payloads_are_packed_after_their_rest(upkept):
    look, index = upkept.upkeep.run_once, upkept.index
    other = leave_sparse_payloads(upkept, 3)
    before = index.extents(other, 0, most=MANY)
    await look()
    assert upkept.counts.space == StoredSpace(300, 0), "they rest"
    for minutes, packed in ((4, 0), (1, 3), (1, 3)):
        upkept.pass_time(minutes * MINUTE_S)
        await look()
        assert upkept.counts.extents_packed == packed
    assert upkept.counts.bytes_packed == 300
    assert upkept.counts.space == NO_SPACE
    assert index.extents(other, 0, most=MANY) == before


async def test_long_backlog_is_packed_in_several_rounds(upkept, monkeypatch):
    look = upkept.upkeep.run_once
    monkeypatch.setattr(upkeep, "PACKED_EXTENTS_AT_ONCE", 2)
    leave_sparse_payloads(upkept, 9 * PACKS_PER_ROUND // 2)
    await look()
    upkept.pass_time(5 * MINUTE_S)
    packed = []
    for _ in range(4):
        await look()
        packed.append(upkept.counts.extents_packed)
    assert packed == [8, 16, 18, 18]
    assert upkept.counts.space == NO_SPACE


async def test_unreadable_table_stops_no_other_upkeep(upkept, monkeypatch, caplog):
    look = upkept.upkeep.run_once
    leave_sparse_payloads(upkept, 1)
    await look()
    upkept.pass_time(5 * MINUTE_S)

    def fail(*_limits):
        raise StoreDamaged("invalid page")

    with monkeypatch.context() as patched:
        patched.setattr(upkept.index, "pack_extents", fail)
        for _ in range(2):
            await look()
    assert [each.message for each in caplog.records].count(
        "store not packed, it is tried again reason=invalid page"
    ) == 1
    looked_ms = upkept.counts.looked_ms
    upkept.pass_time(MINUTE_S)
    await look()
    assert upkept.counts.looked_ms > looked_ms
    assert upkept.counts.extents_packed == 1


async def test_upkeep_runs_periodically_until_stopped(upkept):
    upkept.upkeep.start()
    upkept.broker.append(batch())
    upkept.broker.delete_records(1)
    upkept.pass_time(3)
    await until(lambda: upkept.counts.snapshots == 1)
    await asyncio.gather(*upkept.tasks)
    upkept.broker.append(batch(value=b"v" * 1000))
    upkept.pass_time(3)
    await until(lambda: upkept.counts.snapshots == 2)


async def test_the_end_of_the_index_ends_what_is_under_way(upkept):
    upkept.way.cut()
    upkept.broker.append(batch())
    upkept.broker.delete_records(1)
    upkept.upkeep.start()
    upkept.pass_time(3)
    await until(lambda: bool(upkept.tasks))
    upkept.upkeep.stop()
    upkept.way.close()
    await asyncio.gather(*upkept.tasks)
    assert upkept.counts.snapshots == 0


async def test_upkeep_drops_state_of_released_log(upkept):
    await upkept.upkeep.run_once()
    assert list(upkept.upkeep._kept) == [upkept.broker.log]
    upkept.broker.store.release(1)
    await upkept.upkeep.run_once()
    assert not upkept.upkeep._kept
