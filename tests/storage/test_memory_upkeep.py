"""Upkeep of the log index in memory."""

import pytest

from barnabas.broker.testing.store.blobs import MemoryBlobStore
from barnabas.broker.testing.store.index import MemoryIndex
from barnabas.storage.replicated.cluster_index import Assignment
from barnabas.storage.replicated.object_reading import ObjectReader
from tests.cluster.objects import Bucket, ObjectsInMemory
from tests.storage.packing_contract import PackingContract
from tests.storage.segment_contract import SegmentsInObjectsContract, SegmentsInRowsContract
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


class TestMemorySegments(Memory, SegmentsInRowsContract):
    @pytest.fixture
    def blobs(self, index):
        return MemoryBlobStore(index.uploads)


class TestMemorySegmentsInObjects(Memory, SegmentsInObjectsContract):
    @pytest.fixture
    def bucket(self):
        return Bucket()

    @pytest.fixture
    def index(self, bucket):
        memory = MemoryIndex()
        reader = ObjectReader(lambda: ObjectsInMemory(bucket))
        memory.bodies = reader.bodies
        yield memory
        reader.close()

    @pytest.fixture
    def blobs(self, bucket):
        return ObjectsInMemory(bucket)
