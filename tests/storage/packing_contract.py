"""Tests of packing by every log index; see the classes that inherit it.

A subclass has the fixtures of ``UpkeepContract``.
"""

import pytest

from barnabas.storage.replicated.log_index import PackedExtents
from tests.storage.upkeep_contract import MANY, Leader, bases, collect_all

SIZE = 40
NOTHING = PackedExtents(0, 0)


def pack_all(index):
    """Pack until no payload is sparse; return the number of extents and bytes."""
    calls = list(iter(lambda: index.pack_extents(MANY, MANY**2, 0), NOTHING))
    return sum(each.extents for each in calls), sum(each.size_bytes for each in calls)


def read_all(index, partition_ids):
    """Return the results of all reads of some partitions."""
    return [
        (
            index.partition(each),
            index.extents(each, 0, most=MANY),
            index.extent_sizes(each, 0, most=MANY),
            index.beginnings([each], most=MANY, most_bytes=MANY**2),
        )
        for each in partition_ids
    ]


class PackingContract:
    """The tests."""

    @pytest.fixture
    def leader(self, index, assign):
        collect_all(index)  # Of the tests before.
        pack_all(index)
        leader = Leader(index, assign)
        self.pinned_before = index.space(0).pinned_bytes
        return leader

    def pinned(self, index):
        """Return the pinned bytes of this test."""
        return index.space(0).pinned_bytes - self.pinned_before

    def delete(self, leader, partition_id):
        """Delete all records of a partition."""
        end = leader.index.partition(partition_id).log_end_offset
        leader.snapshot(partition_id, end)
        leader.start_at(partition_id, end)
        collect_all(leader.index)

    def test_living_extent_leaves_a_sparse_payload_f12(self, index, leader):
        one, other = leader.lead(), leader.lead()
        leader.append(one, other, size=SIZE)
        before = read_all(index, [other])
        self.delete(leader, one)
        assert self.pinned(index) == index.space(0).backlog_bytes == SIZE
        assert index.pack_extents(MANY, MANY, 0) == PackedExtents(1, SIZE)
        assert (self.pinned(index), index.space(0).backlog_bytes) == (0, 0)
        assert read_all(index, [other]) == before
        assert index.pack_extents(MANY, MANY, 0) == NOTHING

    def test_payload_is_packed_once_a_quarter_is_dead(self, index, leader):
        partitions = [leader.lead() for _ in range(4)]
        leader.append(*partitions, size=SIZE)
        leader.append(partitions[1], size=SIZE)  # It is not in the sparse payload.
        self.delete(leader, partitions[0])
        assert self.pinned(index) == SIZE
        assert index.space(0).backlog_bytes == 0
        assert index.pack_extents(MANY, MANY, 0) == NOTHING
        self.delete(leader, partitions[3])
        assert self.pinned(index) == index.space(0).backlog_bytes == 2 * SIZE
        assert pack_all(index) == (2, 2 * SIZE)
        assert self.pinned(index) == 0

    def test_payload_is_packed_after_a_rest(self, index, leader):
        one, other = leader.lead(), leader.lead()
        leader.append(one, other, size=SIZE)
        self.delete(leader, one)
        assert index.pack_extents(MANY, MANY, 600_000) == NOTHING
        assert index.space(600_000).backlog_bytes == 0
        assert index.space(0).backlog_bytes == self.pinned(index) == SIZE
        assert index.pack_extents(MANY, MANY, 0) == PackedExtents(1, SIZE)

    def test_packing_ends_at_its_limits(self, index, leader):
        one, other, third = (leader.lead() for _ in range(3))
        for _ in range(5):
            leader.append(one, other, third, size=SIZE)
        self.delete(leader, one)
        assert index.pack_extents(1, MANY, 0) == PackedExtents(2, 2 * SIZE), "one payload"
        assert index.pack_extents(MANY, 1, 0) == PackedExtents(2, 2 * SIZE), "one payload"
        assert index.pack_extents(5, MANY, 0) == PackedExtents(4, 4 * SIZE)
        assert index.pack_extents(MANY, 3 * SIZE, 0) == PackedExtents(2, 2 * SIZE)
        assert pack_all(index) == (0, 0)
        assert self.pinned(index) == 0

    def test_packed_extents_of_a_partition_are_freed_together(self, index, leader):
        one, other, third = (leader.lead() for _ in range(3))
        for _ in range(10):
            leader.append(one, other, third, size=SIZE)
        self.delete(leader, one)
        before = read_all(index, [other, third])
        assert pack_all(index) == (20, 20 * SIZE)
        assert read_all(index, [other, third]) == before
        for each in (other, third):
            self.delete(leader, each)
            assert self.pinned(index) == 0
        assert pack_all(index) == (0, 0)

    def test_packed_payload_is_limited(self, index, leader):
        one, other = leader.lead(), leader.lead()
        size = 400 * 1024
        for _ in range(4):
            leader.append(one, other, size=size)
        before = read_all(index, [other])
        self.delete(leader, one)
        assert pack_all(index) == (4, 4 * size)
        assert read_all(index, [other]) == before
        leader.snapshot(other, 8)
        leader.start_at(other, 6)
        collect_all(index)
        assert self.pinned(index) == 0, "three extents were a payload"

    def test_packed_payload_is_packed_again_once_it_is_sparse(self, index, leader):
        one, other = leader.lead(), leader.lead()
        for _ in range(10):
            leader.append(one, other, size=SIZE)
        self.delete(leader, one)
        pack_all(index)
        leader.snapshot(other, 20)
        for start, pinned, packed in ((4, 2, 0), (5, 2, 0), (6, 3, 7)):
            leader.start_at(other, start)
            collect_all(index)
            assert self.pinned(index) == pinned * SIZE
            assert pack_all(index) == (packed, packed * SIZE)
        assert self.pinned(index) == 0
        assert bases(index, other) == list(range(6, 20, 2))

    def test_extent_larger_than_a_packed_payload_is_packed_alone(self, index, leader):
        one, other = leader.lead(), leader.lead()
        size = 1500
        large = 1024 * 1024 + 256
        for each in (size, large, size):
            leader.append(one, other, size=each)
        before = read_all(index, [other])
        self.delete(leader, one)
        assert index.pack_extents(MANY, 1, 0) == PackedExtents(1, size)
        assert index.pack_extents(MANY, 1, 0) == PackedExtents(1, large)
        assert index.pack_extents(MANY, 1, 0) == PackedExtents(1, size)
        assert read_all(index, [other]) == before

    @pytest.mark.parametrize("how", ["moved", "fenced"])
    def test_packing_needs_no_leader(self, index, leader, assign, how):
        one, other = leader.lead(), leader.lead()
        leader.append(one, other, size=SIZE)
        self.delete(leader, one)
        if how == "moved":
            Leader(index, assign).lead(other)
        else:
            index.fence(leader.session)
        before = read_all(index, [other])
        assert pack_all(index) == (1, SIZE)
        assert read_all(index, [other]) == before

    def test_replacement_after_packing_covers_the_same_extents(self, index, leader):
        """A walk of compaction does not notice that extents were packed meanwhile."""
        one, other = leader.lead(), leader.lead()
        for _ in range(6):
            leader.append(one, other, size=SIZE)
        leader.snapshot(other, 12)
        new = index.extents(other, 4, most=2)
        self.delete(leader, one)
        pack_all(index)
        joined = new[0]._replace(next_offset=new[1].next_offset, data=b"less")
        assert leader.replace(other, joined)
        assert bases(index, other) == [0, 2, 4, 8, 10]
        assert self.pinned(index) == 2 * SIZE

    def test_packed_extents_of_a_deleted_partition_are_garbage(self, index, leader, remove):
        one, other, third = (leader.lead() for _ in range(3))
        leader.append(one, other, third, size=SIZE)
        self.delete(leader, one)
        remove(other)
        before = read_all(index, [third])
        assert pack_all(index) == (2, 2 * SIZE)
        collect_all(index)
        assert bases(index, other) == []
        assert self.pinned(index) == 0
        assert read_all(index, [third]) == before
