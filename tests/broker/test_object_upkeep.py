"""When a broker deletes objects and writes the guard, and what waits for the object store."""

import asyncio
from functools import partial
from types import SimpleNamespace

import pytest

from barnabas.broker.cluster.leading.object_upkeep import ObjectUpkeep
from barnabas.broker.runtime.clock import ManualClock
from barnabas.broker.testing.store.blobs import MemoryBlobStore
from barnabas.broker.testing.store.index import MemoryIndex
from barnabas.broker.testing.store.log_index import MemoryLogIndex
from barnabas.broker.testing.store.object_rows import MemoryObjectRows
from barnabas.storage.objects.blob_store import BlobStoreError, UploadKey
from barnabas.storage.objects.counted_blobs import ObjectCounts
from barnabas.storage.objects.guard import GUARD_KEY
from barnabas.storage.runtime.threads import new_event
from tests.cluster.objects import Bucket, ObjectsInMemory
from tests.storage.flushes import register
from tests.storage.stores import NOW_MS
from tests.waiting import until
from tests.worlds import world

__all__ = ["world"]

MINUTE_S = 60


class Upkept:
    """The upkeep of objects of one broker; ``opened`` are the connections of its next round."""

    def __init__(self):
        self.index, self.bucket = MemoryIndex(), Bucket()
        self.clock = ManualClock(NOW_MS)
        self.tasks = []
        self.session = register(self.index, 1)
        self.opened = None
        config = SimpleNamespace(objects_delete_delay_ms=0)
        loop = asyncio.get_running_loop()
        host = SimpleNamespace(clock=self.clock, loop=loop, spawn=self._spawn, config=config)
        rows = partial(MemoryObjectRows, self.index)
        self.counts = ObjectCounts()
        self.upkeep = ObjectUpkeep(
            host, lambda: MemoryLogIndex(self.index), self._open, rows, self.counts.by_operation
        )

    def _open(self):
        if self.opened is not None:
            return self.opened
        return [ObjectsInMemory(self.bucket), MemoryBlobStore(self.index.uploads)]

    def _spawn(self, coroutine, name):
        self.tasks.append(asyncio.create_task(coroutine, name=name))


@pytest.fixture
async def upkept():
    made = Upkept()
    yield made
    made.upkeep.stop()
    await asyncio.gather(*made.tasks)


async def test_failing_object_store_leaves_no_connection_open(upkept):
    class Failing(MemoryBlobStore):
        def list(self, prefix, after, most):
            raise BlobStoreError("503 Slow Down")

    uploads = upkept.index.uploads
    upkept.opened = [Failing(uploads), MemoryBlobStore(uploads)]
    looked_ms = upkept.upkeep.counts.looked_ms
    upkept.clock.advance(seconds=1)
    await upkept.upkeep.delete_once()
    assert [each.is_closed for each in upkept.opened] == [True, True]
    assert upkept.upkeep.counts.looked_ms == looked_ms, "the round is not complete"


async def test_objects_that_no_flush_will_name_are_deleted(upkept):
    ended = register(upkept.index, 7)
    upkept.index.fence(ended)
    for session in (ended, upkept.session):
        for number in range(100):
            upkept.index.uploads.put(UploadKey(session, 0, number + 5, 1).text, b"body")
    await upkept.upkeep.delete_once()
    kept = [UploadKey.parse(each) for each in upkept.index.uploads]
    assert [each.session for each in kept] == [upkept.session] * 100
    upkept.index.fence(upkept.session)
    upkept.clock.advance(seconds=10 * MINUTE_S)
    await upkept.upkeep.delete_once()
    assert [*upkept.index.uploads] == []
    assert upkept.upkeep.counts.deleted == 200
    assert upkept.upkeep.counts.looked_ms == upkept.clock.now_ms()


async def test_guard_is_written_each_minute_while_deletes_hang(upkept):
    held, guards, listed = new_event(), [], []

    class Hanging(ObjectsInMemory):
        def list(self, prefix, after, most):
            listed.append(prefix)
            held.wait(60)
            return super().list(prefix, after, most)

        def put(self, key, body):
            guards.append(key)

    upkept._open = lambda: [Hanging(upkept.bucket)]
    upkept.upkeep._open_blobs = upkept._open
    upkept.upkeep.start()
    for number in range(1, 4):
        upkept.clock.advance(seconds=MINUTE_S)
        await until(lambda number=number: len(guards) == number)
        rounds = [each for each in upkept.tasks if "guard" in each.get_name()]
        await asyncio.gather(*rounds)
    assert guards == [GUARD_KEY] * 3
    assert listed == ["seg/"], "the deletes hang"
    held.set()


async def test_requests_of_each_broker_are_added_once(upkept):
    upkept.counts.count("put", "ok", 0)
    upkept.counts.add_bytes("put", 7)
    upkept.counts.count("put", "failed", 0)
    await upkept.upkeep.guard_once()
    await upkept.upkeep.guard_once()
    assert upkept.index.object_requests == {"put": (2, 7)}
    upkept.counts.count("get", "missing", 0)
    upkept.counts.count("put", "ok", 0)
    await upkept.upkeep.guard_once()
    assert upkept.index.object_requests == {"put": (3, 7), "get": (1, 0)}
