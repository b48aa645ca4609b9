"""Calls of an object store, as they are counted."""

import contextlib

import pytest

from barnabas.broker.testing.store.blobs import MemoryBlobStore
from barnabas.broker.testing.store.uploads import MemoryUploads
from barnabas.storage.objects.blob_store import BlobStoreError, BlobThrottled
from barnabas.storage.objects.counted_blobs import THROTTLED_S, CountedBlobs, ObjectCounts
from barnabas.storage.runtime.clock import counter_ns, sleep
from tests.worlds import world

__all__ = ["world"]


@pytest.mark.parametrize(("error", "is_throttled"), [(BlobStoreError, 0), (BlobThrottled, 1)])
def test_store_throttles_for_some_seconds_after_it_has_said_so(world, error, is_throttled):
    class Failing(MemoryBlobStore):
        def get_range(self, key, position, length):
            raise error("503")

    counts = ObjectCounts()
    assert not counts.is_throttled
    with pytest.raises(error):
        CountedBlobs(Failing(MemoryUploads()), counts).get_range("a", 0, 1)
    assert counts.is_throttled == is_throttled
    sleep(THROTTLED_S)
    assert not counts.is_throttled


def test_failures_of_puts_begin_with_the_first_one_after_a_success(world):
    class Failing(MemoryBlobStore):
        seconds = 0.0

        def put(self, key, body):
            sleep(self.seconds)
            if self.seconds:
                raise BlobStoreError("timeout")
            super().put(key, body)

    blobs, counts = Failing(MemoryUploads()), ObjectCounts()
    counted = CountedBlobs(blobs, counts)

    def put(seconds):
        blobs.seconds = seconds
        with contextlib.suppress(BlobStoreError):
            counted.put("a", [b"x"])
        return tuple(each if each is None else round(each) for each in counts.puts())

    assert counts.puts() == (None, None)
    assert put(30) == (30, None), "from its start"
    sleep(10)
    assert put(5) == (45, None)
    assert put(0) == (None, 0)
    sleep(10)
    assert put(5) == (5, 15)
    counted.get_range("a", 0, 1)
    assert counts.puts().failing_s > 1, "reads do not count"
    assert put(0) == (None, 0)


def test_put_that_began_before_a_success_fails_from_that_on(world):
    counts = ObjectCounts()
    began_ns = counter_ns()
    sleep(20)
    counts.count("put", "ok", counter_ns())
    sleep(10)
    counts.count("put", "failed", began_ns, "timeout")
    assert [round(each) for each in counts.puts()] == [10, 10]
