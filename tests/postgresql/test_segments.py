"""A log in PostgreSQL is packed into segments by its leader while clients read all of it (F12).

Sizes and numbers of reads are asserted; times are printed (`pytest -s`).
"""

from __future__ import annotations

import contextlib
import threading
from functools import partial
from time import perf_counter, process_time

import pytest

from barnabas.broker.cluster.membership.base import open_blob_store
from barnabas.broker.cluster.membership.durable_logs import StoredLogs
from barnabas.protocol.records import iterate_batches, verify_batch
from barnabas.storage.files.io import LocalFileSystem
from barnabas.storage.log.index import SegmentIndex, TransactionIndex
from barnabas.storage.log.segment_read import read_waiting
from barnabas.storage.objects.blob_store import SegmentKey
from barnabas.storage.objects.object_blob_store import Address, ObjectBlobStore
from barnabas.storage.postgresql.base import PostgreSqlBase
from barnabas.storage.replicated.blob_garbage import (
    delete_dead_objects,
    delete_dereferenced_objects,
)
from barnabas.storage.replicated.block_cache import BlockCache
from barnabas.storage.replicated.cold_store import ColdStore
from barnabas.storage.replicated.log_index import Flush, Lane, LogStart, Outcome
from barnabas.storage.replicated.log_parts import PartFacts, encode_part
from barnabas.storage.replicated.segment_packing import (
    PackLimits,
    PackNumbers,
    SegmentPacking,
    find_unpacked,
)
from tests.postgresql.test_old_records import Leader, new_store, placed, snapshot_at, spec_of
from tests.storage.leading import MANY, Now, run
from tests.storage.stores import NOW_MS

MIB = 1024 * 1024
LOG_MIB, SEGMENT_MIB, CACHE_MIB = 32, 8, 6
VALUE = b"v" * (MIB // 8 - 200)


@pytest.fixture(params=["rows", "objects"])
def base(request, server, tmp_path_factory):
    address = Address(f"file://{tmp_path_factory.mktemp('objects')}")

    def open_objects(cluster_id):
        return ObjectBlobStore.open(address.below(cluster_id))

    objects = open_objects if request.param == "objects" else None
    name = None if objects is None else "file:///objects"
    opened = PostgreSqlBase(server.url, new_cluster_id="c", open_objects=objects, object_store=name)
    index = opened.cluster_index()
    for each in index.snapshot(0).members:
        index.fence(each.session)
    yield opened
    opened.close()


class Taken:
    """A log of which its new leader has nothing on its disk."""

    def __init__(self, base, partition_id, root):
        self.partition_id = partition_id
        self.leader = Leader(base, partition_id, 1)
        self.index = self.leader.index
        offset, size = 0, 0
        while size < LOG_MIB * MIB:
            self.leader.flush(offset, lambda at: placed(at, VALUE))
            offset, size = offset + 1, size + len(placed(0, VALUE))
        self.end, self.size = offset, size
        facts = PartFacts(size, SegmentIndex(0, MIB), TransactionIndex())
        parts = [encode_part(0, offset, facts)]
        kept = (self.leader.session, partition_id, 0, snapshot_at(offset), parts)
        assert self.index.put_snapshot(*kept)
        disk = LocalFileSystem()
        self.cold = ColdStore(
            base.log_index,
            partial(open_blob_store, base),
            BlockCache(disk, root, CACHE_MIB * MIB),
            lambda: NOW_MS,
        )
        self.logs, store = StoredLogs(base, self.cold), new_store(disk, root)
        self.logs.begin(self.leader.session)
        with (
            contextlib.ExitStack() as memory,
            self.logs.reading(partition_id, 0, memory) as durable,
        ):
            self.log, _ = store.filled(spec_of(partition_id), durable)
        self.blobs = open_blob_store(base)

    def scan(self, offset=0):
        """Read the log, and return the number of bytes; each batch follows the one before."""
        total = 0
        while (plan := self.log.plan_read(offset, MIB)) is not None:
            loaded = plan.load(read_waiting)
            for at, header in iterate_batches(loaded.data):
                verify_batch(loaded.data[at : at + header.size])
                assert header.base_offset == offset
                offset = header.next_offset
            total += len(loaded.data)
        return total

    def pack(self):
        """Pack all, and return the number of segments."""
        limits = PackLimits(SEGMENT_MIB * MIB)
        portions, reached = find_unpacked(
            self.index, self.partition_id, 0, self.end, limits.segment_bytes
        )
        assert reached == self.end
        numbers = PackNumbers()
        packing = SegmentPacking(
            self.log, self.leader.session, self.index, self.blobs, Now, numbers, limits
        )
        assert all(run(packing.pack(each)) for each in portions)
        return len(portions)

    def close(self):
        self.logs.close()
        self.cold.close()


@pytest.fixture
def taken(base, tmp_path):
    made = Taken(base, 60_000 + base.has_object_store, str(tmp_path))
    yield made
    made.close()


def test_log_is_packed_while_it_is_read_f12(taken):
    stopped = threading.Event()
    scans = []

    def read():
        while not stopped.is_set():
            scans.append(taken.scan())

    readers = [threading.Thread(target=read) for _ in range(2)]
    for each in readers:
        each.start()
    begun, begun_cpu = perf_counter(), process_time()
    count = taken.pack()
    print(
        f"\n{taken.size / MIB:.0f} MiB packed in {perf_counter() - begun:.2f} s beside two readers,"
        f" {process_time() - begun_cpu:.2f} s of this process's CPU"
    )
    stopped.set()
    for each in readers:
        each.join()
    assert {*scans} == {taken.size}
    assert count == LOG_MIB // SEGMENT_MIB
    sizes = taken.index.extent_sizes(taken.partition_id, 0, most=MANY)
    assert [each.length for each in sizes if each.is_segment] == [each.length for each in sizes]
    assert len(sizes) == count
    keys = taken.blobs.list(f"seg/{taken.partition_id:x}/", "", MANY)
    assert sum(each.endswith(".idx") for each in keys) == count
    assert sum(each.endswith(".log") for each in keys) == count * taken.blobs.is_object_store
    begun, begun_cpu = perf_counter(), process_time()
    assert taken.scan() == taken.size
    print(
        f"{taken.size / MIB:.0f} MiB read from segments in {perf_counter() - begun:.2f} s,"
        f" {process_time() - begun_cpu:.2f} s of this process's CPU"
    )
    first, *rest = sizes
    leader = taken.leader
    start = LogStart(taken.partition_id, 0, first.next_offset)
    flush = Flush(Lane.INLINE, leader.flushes, [], [start])
    assert taken.index.commit_flush(leader.session, flush).outcome is Outcome.COMMITTED
    assert taken.index.collect_garbage(MANY) == 1
    delete_dead_objects(taken.index, taken.blobs)
    if taken.blobs.is_object_store:
        assert taken.blobs.list(f"seg/{taken.partition_id:x}/", "", MANY) == keys
        assert delete_dereferenced_objects(taken.index, taken.blobs, 60_000) == 0
        assert delete_dereferenced_objects(taken.index, taken.blobs, 0) == 2
    key = SegmentKey.parse(first.key)
    gone = {key.text, key.sidecar}
    assert taken.blobs.list(f"seg/{taken.partition_id:x}/", "", MANY) == sorted({*keys} - gone)
    assert taken.index.extent_sizes(taken.partition_id, 0, most=MANY) == rest
    assert taken.scan(first.next_offset) == taken.size - first.length
