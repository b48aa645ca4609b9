"""Upkeep of the log index in memory."""

import pytest

from barnabas.broker.testing.store.blobs import MemoryBlobStore
from barnabas.broker.testing.store.index import MemoryIndex
from barnabas.storage.replicated.cluster_index import Assignment
from tests.storage.packing_contract import PackingContract
from tests.storage.segment_contract import SegmentContract
from tests.storage.upkeep_contract import UpkeepContract


class Memory:
    @pytest.fixture
    def index(self):
        return MemoryIndex()

    @pytest.fixture
    def assign(self, index):
        def assign_next(partition_id, session):
            epoch = index.partition(partition_id).leader_epoch
            return bool(index.assign([Assignment(partition_id, session, epoch)]))

        return assign_next

    @pytest.fixture
    def remove(self, index):
        return lambda partition_id: index.remove_partitions([partition_id])


class TestMemoryIndex(Memory, UpkeepContract):
    pass


class TestMemoryPacking(Memory, PackingContract):
    pass


class TestMemorySegments(Memory, SegmentContract):
    @pytest.fixture
    def blobs(self, index):
        return MemoryBlobStore(index.uploads)
