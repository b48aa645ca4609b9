"""Tests of packed segments by every log index; see the classes that inherit it.

A subclass has the fixtures of ``UpkeepContract``, and ``blobs``, a connection to the objects.
"""

import pytest

from barnabas.storage.objects.blob_store import BlobNotFound, SegmentKey
from barnabas.storage.replicated.log_index import ExtentSize, IndexMisused, SegmentExtent
from tests.storage.upkeep_contract import MANY, Leader, collect_all, forget_all

SIZE = 4


class Segments:
    """The segments of one leader."""

    def __init__(self, leader, blobs):
        self.leader = leader
        self.blobs = blobs
        self.index = leader.index
        self.number = 0

    def put(self, partition_id, begin, end, *, size=None):
        """Put the bytes of some extents, and return the segment and the number."""
        extents = self.index.extents(partition_id, begin, most=MANY)
        data = b"".join(each.data for each in extents if each.next_offset <= end)
        key = SegmentKey(partition_id, begin, self.leader.session, self.number)
        self.blobs.put(key.text, [data])
        self.blobs.put(key.sidecar, [b"sidecar"])
        epoch = extents[0].leader_epoch
        length = len(data) if size is None else size
        is_object_store = self.blobs.is_object_store
        return SegmentExtent(begin, end, epoch, length, key.text, is_object_store)

    def replace(self, partition_id, segment, number=None, epoch=None):
        number = self.number if number is None else number
        epoch = self.leader.epoch(partition_id) if epoch is None else epoch
        session = self.leader.session
        is_done = self.index.replace_by_segment(session, partition_id, epoch, number, segment)
        if is_done:
            self.number = number + 1
        return is_done

    def skip(self):
        self.index.skip_number(self.leader.session, self.number)
        self.number += 1


def bytes_of(index, partition_id):
    extents = index.bodies(index.extents(partition_id, 0, most=MANY))
    return b"".join(each.data for each in extents)


def both(segment):
    key = SegmentKey.parse(segment.key)
    return [key.text, key.sidecar]


class SegmentContract:
    """The tests."""

    @pytest.fixture
    def leader(self, index, assign):
        collect_all(index)  # Of the tests before.
        return Leader(index, assign)

    @pytest.fixture
    def segments(self, leader, blobs):
        return Segments(leader, blobs)

    @pytest.fixture
    def partition(self, leader):
        """One with ten extents of two offsets each, of which eight are before the snapshot."""
        partition_id = leader.lead()
        for _ in range(10):
            leader.append(partition_id, size=SIZE)
        leader.snapshot(partition_id, 16)
        return partition_id

    def test_segment_is_one_extent_with_the_same_bytes_f12(self, index, segments, partition):
        before = bytes_of(index, partition)
        segment = segments.put(partition, 4, 10)
        assert segments.replace(partition, segment)
        assert bytes_of(index, partition) == before
        sizes = index.extent_sizes(partition, 2, most=3)
        assert sizes == [
            ExtentSize(2, 4, SIZE),
            ExtentSize(4, 10, 3 * SIZE, segment.key),
            ExtentSize(10, 12, SIZE),
        ]
        assert segments.blobs.get_range(segment.key, 5, 4) == before[2 * SIZE + 5 :][:4]

    def test_segment_is_named_once_however_often_it_is_called_f3(self, index, segments, partition):
        segment = segments.put(partition, 0, 4)
        assert segments.replace(partition, segment)
        later = segments.put(partition, 4, 8)
        assert segments.replace(partition, segment, number=0)
        assert segments.replace(partition, later, number=1)
        assert segments.replace(partition, segment, number=0)
        keys = [each.key for each in index.extent_sizes(partition, 0, most=3)]
        assert keys == [segment.key, later.key, None]

    def test_numbers_come_in_order_f2(self, segments, partition):
        segment = segments.put(partition, 0, 4)
        with pytest.raises(IndexMisused):
            segments.replace(partition, segment, number=1)

    def test_segment_behind_the_snapshot_is_a_bug_f4(self, segments, partition):
        segment = segments.put(partition, 12, 18)
        with pytest.raises(IndexMisused):
            segments.replace(partition, segment)

    @pytest.mark.parametrize(("begin", "end"), [(1, 4), (0, 3), (3, 5)])
    def test_segment_that_splits_extents_is_a_bug(self, segments, partition, begin, end):
        segment = segments.put(partition, begin, end, size=SIZE)
        with pytest.raises(IndexMisused):
            segments.replace(partition, segment)

    def test_segment_of_other_bytes_is_refused(self, index, segments, partition):
        before = index.extent_sizes(partition, 0, most=MANY)
        segment = segments.put(partition, 0, 4)
        wrong = segment._replace(length=segment.length - 1)
        assert not segments.replace(partition, wrong)
        assert index.extent_sizes(partition, 0, most=MANY) == before

    def test_only_the_leader_packs_f1(self, index, segments, partition, assign):
        before = index.extent_sizes(partition, 0, most=MANY)
        segment = segments.put(partition, 0, 4)
        epoch = segments.leader.epoch(partition)
        Leader(index, assign).lead(partition)
        assert not segments.replace(partition, segment, epoch=epoch)
        assert not segments.replace(partition, segment)
        index.fence(segments.leader.session)
        assert not segments.replace(partition, segment, epoch=epoch)
        assert index.extent_sizes(partition, 0, most=MANY) == before

    def test_log_that_starts_later_is_not_packed(self, index, segments, partition):
        segment = segments.put(partition, 0, 4)
        segments.leader.start_at(partition, 1)
        assert not segments.replace(partition, segment)

    def test_deleted_partition_is_not_packed(self, segments, partition, remove):
        segment = segments.put(partition, 0, 4)
        epoch = segments.leader.epoch(partition)
        remove(partition)
        assert not segments.replace(partition, segment, epoch=epoch)

    def test_keys_of_a_number_that_was_given_up_are_dead_f9(self, index, segments, partition):
        segment = segments.put(partition, 0, 4)
        segments.skip()
        assert sorted(index.dead_keys(both(segment))) == sorted(both(segment))
        assert not segments.replace(partition, segment, number=0)
        again = segments.put(partition, 0, 4)
        assert segments.replace(partition, again)
        segments.index.skip_number(segments.leader.session, 0)
        assert index.dead_keys(both(again)) == []
        segments.blobs.delete(both(segment))

    def test_keys_of_an_ended_session_are_dead_f9(self, index, segments, partition):
        named, left = segments.put(partition, 0, 4), None
        assert segments.replace(partition, named)
        left = segments.put(partition, 4, 8)
        index.fence(segments.leader.session)
        assert sorted(index.dead_keys([*both(named), *both(left)])) == sorted(both(left))
        forget_all(index)
        assert sorted(index.dead_keys([*both(named), *both(left)])) == sorted(both(left))
        segments.index.skip_number(segments.leader.session, 9)
        segments.blobs.delete(both(left))

    def test_small_extents_of_other_partitions_are_freed(self, index, segments, partition):
        other = segments.leader.lead()
        for _ in range(4):
            segments.leader.append(partition, other, size=SIZE)
        segments.leader.snapshot(partition, 28)
        pinned = index.space(0).pinned_bytes
        segment = segments.put(partition, 20, 28)
        assert segments.replace(partition, segment)
        assert index.space(0).pinned_bytes == pinned + 4 * SIZE
        assert index.pack_extents(MANY, MANY**2, 0).extents == 4
        assert index.space(0).pinned_bytes == pinned


class SegmentsInRowsContract(SegmentContract):
    """The tests of an index that is the store of objects itself."""

    def test_segment_that_was_never_put_is_a_bug_f6(self, segments, partition):
        segment = segments.put(partition, 0, 4)
        absent = segment._replace(key=SegmentKey(partition, 0, segments.leader.session, 7).text)
        with pytest.raises(IndexMisused):
            segments.replace(partition, absent)

    def test_keys_of_a_segment_live_as_long_as_it_f9(self, index, segments, partition):
        segment = segments.put(partition, 0, 4)
        assert index.dead_keys(both(segment)) == []
        assert segments.replace(partition, segment)
        assert index.dead_keys(both(segment)) == []
        assert sorted(segments.blobs.list("seg/", "", MANY)) == [both(segment)[1]]
        segments.blobs.delete([segment.key])
        assert segments.blobs.get_range(segment.key, 0, 1), "it is named"
        segments.leader.start_at(partition, 4)
        assert index.dead_keys(both(segment)) == []
        assert index.collect_garbage(MANY) == 1
        assert sorted(index.dead_keys(both(segment))) == sorted(both(segment))
        with pytest.raises(BlobNotFound):
            segments.blobs.get_range(segment.key, 0, 1)
        segments.blobs.delete(both(segment))
        assert segments.blobs.list("seg/", "", MANY) == []

    def test_segment_is_replaced_by_rows_after_compaction(self, index, segments, partition):
        segment = segments.put(partition, 0, 8)
        assert segments.replace(partition, segment)
        (whole, *_) = index.extents(partition, 0, most=1)
        assert segments.leader.replace(partition, whole._replace(data=b"less"))
        assert index.extents(partition, 0, most=1) == [whole._replace(data=b"less")]
        assert index.extent_sizes(partition, 0, most=1) == [ExtentSize(0, 8, 4)]
        assert sorted(index.dead_keys(both(segment))) == sorted(both(segment))
        segments.blobs.delete(both(segment))


class SegmentsInObjectsContract(SegmentContract):
    """The tests of an index beside an object store."""

    def test_keys_of_a_segment_wait_for_their_delay_f9(self, index, segments, partition):
        segment = segments.put(partition, 0, 4)
        assert index.dead_keys(both(segment)) == []
        assert segments.replace(partition, segment)
        segments.leader.start_at(partition, 4)
        assert not {*both(segment)} & {*index.dereferenced_keys(MANY, 0)}
        assert index.collect_garbage(MANY) == 1
        assert index.dead_keys(both(segment)) == [], "they wait for their delay"
        assert index.dereferenced_keys(MANY, 600_000) == []
        assert {*both(segment)} <= {*index.dereferenced_keys(MANY, 0)}
        index.forget_keys(both(segment))
        assert sorted(index.dead_keys(both(segment))) == sorted(both(segment))

    def test_segment_gives_way_to_rows_after_compaction(self, index, segments, partition):
        segment = segments.put(partition, 0, 8)
        assert segments.replace(partition, segment)
        (found, *_) = index.extents(partition, 0, most=1)
        less = found._replace(data=b"less", place=None)
        assert segments.leader.replace(partition, less)
        assert index.extents(partition, 0, most=1) == [less]
        assert index.extent_sizes(partition, 0, most=1) == [ExtentSize(0, 8, 4)]
        assert {*both(segment)} <= {*index.dereferenced_keys(MANY, 0)}
        index.forget_keys(both(segment))

    def test_import_appends_a_segment_once_at_the_end_of_its_log_f3(
        self, index, segments, partition
    ):
        leader, body = segments.leader, b"12345678"
        key = SegmentKey(partition, 20, leader.session, 0)
        segments.blobs.put(key.text, [body])
        segment = SegmentExtent(20, 30, 0, len(body), key.text, in_object_store=True)
        led = (leader.session, partition, leader.epoch(partition))
        before = bytes_of(index, partition)
        for misused in (segment._replace(base_offset=18), segment._replace(base_offset=22)):
            with pytest.raises(IndexMisused):
                index.append_segment(*led, 0, misused)
        with pytest.raises(IndexMisused):
            index.append_segment(*led, 1, segment)
        for _ in range(3):
            assert index.append_segment(*led, 0, segment)
        assert bytes_of(index, partition) == before + body
        assert index.partition(partition).log_end_offset == 30
        leader.append(partition)
        sizes = index.extent_sizes(partition, 20, most=3)
        assert sizes == [ExtentSize(20, 30, len(body), key.text), ExtentSize(30, 32, SIZE)]

    def test_segment_of_another_leader_is_not_appended_f1(self, index, segments, partition):
        leader = segments.leader
        key = SegmentKey(partition, 20, leader.session, 0)
        segment = SegmentExtent(20, 30, 0, 8, key.text, in_object_store=True)
        epoch = leader.epoch(partition) - 1
        assert not index.append_segment(leader.session, partition, epoch, 0, segment)
        assert index.partition(partition).log_end_offset == 20
