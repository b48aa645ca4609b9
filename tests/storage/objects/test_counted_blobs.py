"""Calls of an object store, as they are counted."""

import pytest

from barnabas.broker.testing.store.blobs import MemoryBlobStore
from barnabas.broker.testing.store.uploads import MemoryUploads
from barnabas.storage.objects.blob_store import BlobStoreError, BlobThrottled
from barnabas.storage.objects.counted_blobs import THROTTLED_S, CountedBlobs, ObjectCounts
from barnabas.storage.runtime.clock import sleep
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
