"""Takeovers of logs whose old records stay in PostgreSQL, and reads of those records.

Sizes and numbers of reads are asserted; times are printed (`pytest -s`).
"""

from __future__ import annotations

import contextlib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from time import perf_counter, process_time
from uuid import uuid4

import pytest

from barnabas.broker.cluster.membership.base import open_blob_store
from barnabas.broker.cluster.membership.durable_logs import StoredLogs
from barnabas.broker.testing.disk.simulated import SimulatedFileSystem
from barnabas.protocol.records import place_batch
from barnabas.storage.files.io import LocalFileSystem
from barnabas.storage.log.config import LogConfig
from barnabas.storage.log.segment_read import read_waiting
from barnabas.storage.postgresql.base import PostgreSqlBase
from barnabas.storage.replicated.block_cache import BlockCache
from barnabas.storage.replicated.cluster_index import Assignment
from barnabas.storage.replicated.cold_store import ColdStore
from barnabas.storage.replicated.log_index import Flush, Item, Lane, Outcome
from barnabas.storage.store.log_store import LogStore
from barnabas.storage.store.store_parts import PartitionSpec
from tests.postgresql.old_logs import MIB, part_up_to, snapshot_at, write_shared
from tests.products import case
from tests.storage.flushes import FlushEngine
from tests.storage.stores import NOW_MS, ROOT, batch

EXTENTS = 100
"""Old extents of each partition, of 1 MiB and 1,000 records each, which share their bytes."""
RECORDS = 1000
SNAPSHOT = EXTENTS * RECORDS
THREADS = 64
LOG_MIB, CACHE_MIB = 48, 8


@pytest.fixture
def base(server):
    opened = PostgreSqlBase(server.url, new_cluster_id="c")
    yield opened
    opened.close()


class Leader:
    """A session that leads partitions with the ids from ``first`` on."""

    def __init__(self, base, first, count):
        self.partitions = range(first, first + count)
        cluster = base.cluster_index()
        self.index = base.log_index()
        use = base.object_use
        self.session = cluster.register(uuid4(), first, "", 600_000, use.address)
        assert use.may_put(self.session) or not cluster.begin_objects(self.session)
        for each in self.partitions:
            self.index.add_partition(each)
        led = cluster.assign([Assignment(each, self.session, -1) for each in self.partitions])
        assert led == set(self.partitions)
        self.flushes = 0

    def flush(self, next_offsets, data_of):
        """Flush one batch to each partition."""
        items, payload = [], b""
        for each in self.partitions:
            data = data_of(next_offsets)
            end = next_offsets + 1
            items.append(Item(each, 0, next_offsets, end, len(payload), len(data)))
            payload += data
        flush = Flush(Lane.INLINE, self.flushes, items, payload=payload)
        assert self.index.commit_flush(self.session, flush).outcome is Outcome.COMMITTED
        self.flushes += 1


class CountedBase:
    """A base whose connections count their queries for logs, by the method called."""

    def __init__(self, base):
        self.queries = Counter()
        self._base = base

    def log_index(self):
        return CountedIndex(self._base.log_index(), self.queries)

    def __getattr__(self, name):
        return getattr(self._base, name)


class CountedIndex:
    """A connection that counts."""

    def __init__(self, index, queries):
        self._index = index
        self._queries = queries

    def __getattr__(self, name):
        if name in ("recent_beginnings", "beginnings", "extents", "parts", "partition"):
            self._queries[name] += 1
        return getattr(self._index, name)


def placed(offset, value):
    data = bytearray(batch(value=value))
    place_batch(data, 0, len(data), offset, 0)
    return bytes(data)


def write_sparse(server, leader):
    """Give each partition its old extents, all of which lie in the same bytes."""
    write_shared(server.execute, leader.session, leader.partitions, EXTENTS, RECORDS)
    for each in leader.partitions:
        parts = [part_up_to(SNAPSHOT, EXTENTS * MIB)]
        snapshot = snapshot_at(SNAPSHOT)
        assert leader.index.put_snapshot(leader.session, each, 0, snapshot, parts)


def new_store(file_system, root):
    engine = FlushEngine()
    return LogStore(file_system, root, engine=engine, now_ms=lambda: NOW_MS)


def spec_of(partition_id):
    return PartitionSpec(partition_id, f"t{partition_id}", 0, bytes(16), LogConfig(), 0)


@pytest.mark.parametrize(("count", "first"), [(50, 10_000), case(1000, 20_000, in_test=False)])
def test_takeover_reads_what_follows_the_snapshots(server, base, count, first):
    leader = Leader(base, first, count)
    write_sparse(server, leader)
    for at in range(3):
        leader.flush(SNAPSHOT + at, lambda offset: placed(offset, b"v" * 1000))
    counted = CountedBase(base)
    disk = SimulatedFileSystem()
    disk.make_directory(ROOT, exist_ok=True)
    cold = ColdStore(
        counted.log_index,
        partial(open_blob_store, base),
        BlockCache(disk, ROOT, CACHE_MIB * MIB),
        lambda: NOW_MS,
    )
    logs, store = StoredLogs(counted, cold), new_store(disk, ROOT)
    logs.begin(leader.session)

    def load(partition_id):
        with (
            contextlib.ExitStack() as memory,
            logs.reading(partition_id, 0, memory) as durable,
        ):
            return store.filled(spec_of(partition_id), durable)[0]

    begun, begun_cpu = perf_counter(), process_time()
    with ThreadPoolExecutor(THREADS) as threads:
        loaded = [*threads.map(load, leader.partitions)]
    size = sum(log.size_bytes for log in loaded)
    print(
        f"\n{count} logs with {size / 2**30:.1f} GiB taken over in {perf_counter() - begun:.2f} s,"
        f" {process_time() - begun_cpu:.2f} s of this process's CPU, {dict(counted.queries)}"
    )
    assert counted.queries.total() < count
    assert size > count * EXTENTS * MIB
    assert {log.high_watermark for log in loaded} == {SNAPSHOT + 3}
    local = sum(each.size_bytes for log in loaded for each in log.local_segments)
    assert local < count * 5000
    logs.close()
    cold.close()


def test_scan_of_a_log_larger_than_the_cache(base, tmp_path):
    leader = Leader(base, 30_000, 1)
    value = b"v" * (MIB // 4 - 200)
    offset = 0
    while offset * len(value) < LOG_MIB * MIB:
        leader.flush(offset, lambda at: placed(at, value))
        offset += 1
    size = offset * len(placed(0, value))
    parts = [part_up_to(offset, size)]
    assert leader.index.put_snapshot(leader.session, 30_000, 0, snapshot_at(offset), parts)
    disk = LocalFileSystem()
    cache = BlockCache(disk, str(tmp_path), CACHE_MIB * MIB)
    cold = ColdStore(base.log_index, partial(open_blob_store, base), cache, lambda: NOW_MS)
    logs, store = StoredLogs(base, cold), new_store(disk, str(tmp_path))
    logs.begin(leader.session)
    with contextlib.ExitStack() as memory, logs.reading(30_000, 0, memory) as durable:
        log, _ = store.filled(spec_of(30_000), durable)

    def scan(offset=0):
        total = 0
        while (plan := log.plan_read(offset, MIB)) is not None:
            loaded = plan.load(read_waiting)
            total += len(loaded.data)
            offset = loaded.upper_offset
        return total

    for _ in range(2):
        begun, begun_cpu = perf_counter(), process_time()
        assert scan() == size
        print(
            f"\n{size / MIB:.0f} MiB read in {perf_counter() - begun:.2f} s,"
            f" {process_time() - begun_cpu:.2f} s of this process's CPU"
        )
    assert cache.used_bytes <= CACHE_MIB * MIB
    assert (tmp_path / "barnabas-blocks").stat().st_size <= CACHE_MIB * MIB
    logs.close()
    cold.close()
