"""Bytes that the next leaders of a broker's logs have to read: few, however large the logs are."""

import asyncio
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.storage.log.config import COMPACT, LogConfig
from barnabas.storage.replicated.log_parts import covering_parts, unstored_bytes
from barnabas.storage.replicated.log_reading import head_of, recent_from
from barnabas.storage.store.flush_start import open_cache
from barnabas.storage.store.store_parts import PartitionSpec
from tests.broker.test_upkeep import SETTINGS, Upkept
from tests.storage.flushes import assign
from tests.storage.leading import Broker
from tests.storage.remote import Cold, RemoteBroker
from tests.storage.stores import batch
from tests.worlds import world

__all__ = ["world"]

LOGS = 5
COMPACTED = LogConfig(cleanup_policy=frozenset([COMPACT]))
LIMIT_BYTES = 4000
RANDOM = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None
)
APPENDS = st.lists(
    st.lists(
        st.tuples(st.integers(1, LOGS), st.integers(1, 3 * LIMIT_BYTES // 2)), max_size=2 * LOGS
    ),
    max_size=6,
)


class Leader(Broker):
    """A broker that leads some logs, the last one compacted."""

    def open(self, spec):
        specs = [spec]
        for number in range(2, LOGS + 1):
            epoch = assign(self.index, number, self.session)
            config = COMPACTED if number == LOGS else LogConfig()
            specs.append(PartitionSpec(number, f"t{number}", 0, bytes(16), config, epoch))
        open_cache(self.store, self.way, self.session, specs)


def limited(kind=Leader):
    made = Upkept(LogConfig(), kind)
    made.upkeep._settings = replace(
        SETTINGS, snapshot_bytes=1 << 40, snapshot_ms=1 << 40, unread_bytes=LIMIT_BYTES
    )
    return made


async def end(upkept):
    upkept.upkeep.stop()
    upkept.way.close()
    await asyncio.gather(*upkept.tasks)
    upkept.broker.store.abandon()


def bytes_to_read(index):
    """Return the bytes of the records that a takeover of all logs with parts reads."""
    heads = [head_of(index, number) for number in range(1, LOGS)]
    read = 0
    for head in heads:
        if head.snapshot is None:
            read += sum(each.size_bytes for each in index.extents(head.partition_id, 0, most=1000))
        else:
            assert covering_parts(index, [head])[head.partition_id]
            read += sum(each.size_bytes for each in recent_from(index, head))
    return read


@RANDOM
@given(appends=APPENDS)
async def test_takeover_reads_at_most_the_limit_of_all_logs(appends):
    upkept = limited()
    await upkept.upkeep.run_once()
    for some in appends:
        for number, size in some:
            upkept.broker.store.get(number).append(batch(key=b"k", value=bytes(size)))
            upkept.broker.engine.settle()
        await upkept.upkeep.run_once()
        assert bytes_to_read(upkept.index) <= LIMIT_BYTES
    await end(upkept)


@pytest.fixture
async def upkept():
    made = limited()
    await made.upkeep.run_once()
    yield made
    await end(made)


async def test_logs_with_the_most_unread_bytes_get_a_snapshot(upkept):
    logs = upkept.broker.store.logs
    for number, size in ((1, 1000), (2, 2500), (3, 1200), (LOGS, 9 * LIMIT_BYTES)):
        logs[number].append(batch(key=b"k", value=bytes(size)))
    upkept.broker.engine.settle()
    await upkept.upkeep.run_once()
    assert upkept.counts.snapshots == 1
    assert head_of(upkept.index, 2).snapshot is not None
    await upkept.upkeep.run_once()
    assert upkept.counts.snapshots == 1, "few bytes are unread"


async def test_bytes_that_a_leader_has_loaded_count_as_unread():
    upkept = limited(Broker)
    log = upkept.broker.log
    log.append(batch(value=bytes(100)))
    upkept.broker.engine.settle()
    await upkept.upkeep.run_once()
    kept = upkept.upkeep._kept[log]
    assert await upkept.upkeep._keep_snapshot(log, kept)
    log.append(batch(value=bytes(LIMIT_BYTES)))
    upkept.broker.engine.settle()
    cold = Cold(upkept.index)
    successor = RemoteBroker(upkept.index, LogConfig(), 1, cold)
    assert LIMIT_BYTES < unstored_bytes(successor.log) < LIMIT_BYTES + 200
    upkept.upkeep._logs, upkept.session = successor.store, successor.session
    await upkept.upkeep.run_once()
    assert upkept.counts.snapshots == 2
    head = head_of(upkept.index, 1)
    assert head.snapshot.next_offset == head.state.log_end_offset
    cold.store.close()
    await end(upkept)
