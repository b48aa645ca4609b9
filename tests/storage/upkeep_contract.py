"""Tests of the upkeep of every log index; see the classes that inherit it.

A subclass has fixtures ``index``, ``assign``, which has a session lead a partition in its next
epoch, and ``remove``, which has a topic's partition deleted.
"""

import itertools
from random import Random
from uuid import uuid4

import pytest

from barnabas.storage.replicated.cluster_index import HandOver
from barnabas.storage.replicated.log_index import (
    Extent,
    ExtentSize,
    Flush,
    FlushAnswer,
    IndexMisused,
    Item,
    Lane,
    LogBeginning,
    LogHead,
    LogPart,
    LogSnapshot,
    LogStart,
    Outcome,
)
from tests.seeds import SEED
from tests.storage.flushes import snapshot_of

COMMITTED = FlushAnswer(Outcome.COMMITTED)
MANY = 10_000
_nodes = itertools.count(500_000)
_partitions = itertools.count(500_000)
STORE = "file:///objects"


def parts_from(index, partition_id, offset, most):
    return index.parts({partition_id: offset}, most=most).get(partition_id, [])


class Leader:
    """A session that leads partitions and flushes bytes to them."""

    def __init__(self, index, assign, store=STORE):
        self.index = index
        self._assign = assign
        self._random = Random(SEED)
        self.session = index.register(uuid4(), next(_nodes), "", 600_000, store)
        assert store is None or index.begin_objects(self.session) == []
        self.flushes = dict.fromkeys(Lane, 0)

    def lead(self, partition_id=None):
        """Lead a partition, or a new one; answers its id."""
        partition_id = next(_partitions) if partition_id is None else partition_id
        self.index.add_partition(partition_id)
        assert self._assign(partition_id, self.session)
        return partition_id

    def epoch(self, partition_id):
        return self.index.partition(partition_id).leader_epoch

    def append(self, *partition_ids, count=2, size=4, key=None):
        """One flush with an extent of ``count`` offsets for each of some partitions."""
        items = [
            Item(each, self.epoch(each), end, end + count, at * size, size)
            for at, each in enumerate(partition_ids)
            for end in [self.index.partition(each).log_end_offset]
        ]
        payload = self._random.randbytes(size * len(items)) if key is None else None
        lane = Lane.INLINE if key is None else Lane.BULK
        assert self._commit(Flush(lane, self.flushes[lane], items, (), payload, key)) == COMMITTED

    def start_at(self, partition_id, offset):
        starts = [LogStart(partition_id, self.epoch(partition_id), offset)]
        assert self._commit(Flush(Lane.INLINE, self.flushes[Lane.INLINE], [], starts)) == COMMITTED

    def _commit(self, flush):
        answer = self.index.commit_flush(self.session, flush)
        self.flushes[flush.lane] += 1
        return answer

    def snapshot(self, partition_id, offset, text=b"", epoch=None, parts=None):
        return self.index.put_snapshot(
            self.session,
            partition_id,
            self.epoch(partition_id) if epoch is None else epoch,
            LogSnapshot(offset, b"producers" + text, b"epochs" + text),
            parts,
        )

    def replace(self, partition_id, *extents, epoch=None, keeps_size=False):
        epoch = self.epoch(partition_id) if epoch is None else epoch
        led = (self.session, partition_id, epoch)
        return self.index.replace_extents(*led, extents, keeps_size=keeps_size)


def bases(index, partition_id):
    return [each.base_offset for each in index.extents(partition_id, 0, most=MANY)]


def collect_all(index):
    return sum(iter(lambda: index.collect_garbage(MANY), 0))


def forget_all(index):
    """Forget the sessions of the tests before."""
    while index.forget(MANY, 0):
        pass


class UpkeepContract:
    """The tests."""

    @pytest.fixture
    def leader(self, index, assign):
        collect_all(index)  # Of the tests before.
        return Leader(index, assign)

    @pytest.fixture
    def partition(self, leader):
        """One with ten extents of two offsets each."""
        partition_id = leader.lead()
        for _ in range(10):
            leader.append(partition_id)
        return partition_id

    # -------------------------------------------------------------------------------- parts

    def test_parts_replace_those_with_the_same_offsets(self, index, leader, partition):
        first = [LogPart(0, 6, b"a"), LogPart(6, 8, b"b\x00")]
        assert leader.snapshot(partition, 8, parts=first)
        later = [LogPart(6, 12, b"c"), LogPart(12, 14, b"d")]
        assert leader.snapshot(partition, 14, parts=later)
        assert parts_from(index, partition, 0, MANY) == [first[0], *later]
        assert parts_from(index, partition, 6, 1) == [later[0]]
        assert parts_from(index, partition, 14, MANY) == []

    def test_parts_of_several_partitions_are_read_in_one_call(self, index, leader, partition):
        other, empty = leader.lead(), leader.lead()
        leader.append(other)
        parts = [LogPart(0, 4, b"a"), LogPart(4, 8, b"b")]
        assert leader.snapshot(partition, 8, parts=parts)
        assert leader.snapshot(other, 2, parts=[LogPart(0, 2, b"c")])
        wanted = {partition: 4, other: 0, empty: 0}
        found = index.parts(wanted, most=MANY)
        assert {key: found.get(key, []) for key in wanted} == {
            partition: [parts[1]],
            other: [LogPart(0, 2, b"c")],
            empty: [],
        }
        found = index.parts({partition: 0, other: 0}, most=1)
        assert [found[key][0].facts for key in (partition, other)] == [b"a", b"c"]
        assert all(len(each) == 1 for each in found.values())

    def test_parts_behind_a_gap_replace_all_parts(self, index, leader, partition):
        assert leader.snapshot(partition, 4, parts=[LogPart(0, 4, b"a")])
        assert leader.snapshot(partition, 6)
        assert leader.snapshot(partition, 8, parts=[LogPart(6, 8, b"b")])
        assert parts_from(index, partition, 0, MANY) == [LogPart(6, 8, b"b")]

    def test_parts_stay_with_an_older_snapshot_and_without_parts(self, index, leader, partition):
        kept = [LogPart(0, 8, b"a")]
        assert leader.snapshot(partition, 8, parts=kept)
        assert leader.snapshot(partition, 6, parts=[LogPart(0, 6, b"b")])
        assert leader.snapshot(partition, 10)
        assert parts_from(index, partition, 0, MANY) == kept

    def test_no_parts_delete_all_parts(self, index, leader, partition):
        assert leader.snapshot(partition, 8, parts=[LogPart(0, 8, b"a")])
        assert leader.snapshot(partition, 8, parts=[])
        assert parts_from(index, partition, 0, MANY) == []

    def test_parts_below_the_log_start_are_deleted(self, index, leader, partition):
        parts = [LogPart(0, 4, b"a"), LogPart(4, 8, b"b")]
        assert leader.snapshot(partition, 8, parts=parts)
        leader.start_at(partition, 4)
        assert leader.snapshot(partition, 10, parts=[LogPart(8, 10, b"c")])
        assert parts_from(index, partition, 0, MANY) == [parts[1], LogPart(8, 10, b"c")]

    @pytest.mark.parametrize(
        "parts",
        [[LogPart(0, 4, b"a")], [LogPart(0, 4, b"a"), LogPart(6, 8, b"b")]],
        ids=["ends before the snapshot", "has a gap"],
    )
    def test_parts_that_do_not_reach_the_snapshot_are_refused(self, leader, partition, parts):
        with pytest.raises(IndexMisused):
            leader.snapshot(partition, 8, parts=parts)

    def test_parts_of_another_leader_change_nothing(self, index, leader, partition):
        epoch = leader.epoch(partition)
        assert not leader.snapshot(partition, 8, epoch=epoch - 1, parts=[LogPart(0, 8, b"a")])
        assert parts_from(index, partition, 0, MANY) == []

    def test_recent_beginnings_begin_at_a_snapshot_that_parts_reach(self, index, leader, partition):
        def begin():
            (whole,) = index.beginnings([partition], most=MANY, most_bytes=MANY)
            (found,) = index.recent_beginnings([partition], most=MANY, most_bytes=MANY)
            assert found.head == whole.head
            assert found.is_recent or found == whole
            return found.is_recent, found.first_offset, [each.base_offset for each in found.extents]

        every = list(range(0, 20, 2))
        assert begin() == (False, 0, every)
        assert leader.snapshot(partition, 15)
        assert begin() == (False, 0, every)
        assert leader.snapshot(partition, 15, parts=[LogPart(0, 15, b"a")])
        assert begin() == (True, 15, [14, 16, 18])
        assert leader.snapshot(partition, 17)
        assert begin() == (False, 0, every)
        assert leader.snapshot(partition, 20, parts=[LogPart(15, 20, b"b")])
        assert begin() == (True, 20, [])
        leader.start_at(partition, 20)
        assert begin() == (False, 20, [])

    def test_parts_go_with_their_partition(self, index, leader, partition, remove):
        assert leader.snapshot(partition, 8, parts=[LogPart(0, 8, b"a")])
        remove(partition)
        collect_all(index)
        assert parts_from(index, partition, 0, MANY) == []

    # -------------------------------------------------------------------------------- sessions

    def test_sessions_that_ended_are_forgotten_a_few_at_a_time(self, index):
        forget_all(index)
        sessions = [index.register(uuid4(), next(_nodes), "", 0, STORE) for _ in range(5)]
        for session in sessions[:3]:
            index.fence(session)
        assert index.forget(MANY, 600_000) == 0, "they have just ended"
        assert [index.forget(2, 0) for _ in range(3)] == [2, 1, 0]
        assert [index.heartbeat(each, 1000) for each in sessions] == [False] * 3 + [True] * 2

    def test_a_session_that_is_forgotten_stays_ended(self, index, assign, leader):
        forget_all(index)
        token, node = uuid4(), next(_nodes)
        ended = Leader(index, assign)
        session = ended.session = index.register(token, node, "", 0, STORE)
        partition = ended.lead()
        ended.append(partition)
        index.fence(session)
        assert index.forget(MANY, 0) == 0, "it is named as a leader yet"
        leader.lead(partition)
        assert index.forget(MANY, 0) == 1
        item = Item(partition, 0, 2, 4, 0, 4)
        for number in (0, 1, 7):
            flush = Flush(Lane.INLINE, number, [item], payload=b"late")
            assert index.commit_flush(session, flush) == FlushAnswer(Outcome.FENCED)
        assert not ended.snapshot(partition, 2, epoch=0)
        assert not ended.replace(partition, Extent(0, 2, 0, b"late"), epoch=0)
        assert not assign(partition, session)
        assert not index.control(session)
        assert not index.heartbeat(session, 1000)
        index.drain(session)
        index.fence(session)
        index.hand_over(leader.session, [HandOver(partition, leader.epoch(partition), session)])
        assert index.partition(partition).leader_session is None
        assert bases(index, partition) == [0]
        assert session not in {each.session for each in index.snapshot(0).members}
        assert index.register(token, node, "", 0, STORE) > session

    # --------------------------------------------------------------------- several logs at a time

    def test_extents_come_until_there_are_so_many_bytes(self, index, leader, partition):
        everything = index.extents(partition, 0, most=MANY)
        assert len(everything) > 2
        for most_bytes in range(1, sum(len(each.data) for each in everything) + 2):
            expected, bytes_before = [], 0
            for each in everything:
                if bytes_before < most_bytes:
                    expected.append(each)
                bytes_before += len(each.data)
            found = index.extents(partition, 0, most=MANY, most_bytes=most_bytes)
            assert found == expected
            assert index.extents(partition, 0, most=2, most_bytes=most_bytes) == expected[:2]

    def test_the_beginnings_are_those_of_each_log(self, index, leader, partition):
        """The result is right for any limit of extents and of bytes."""
        empty, other, late = leader.lead(), leader.lead(), leader.lead()
        for number in range(3):
            leader.append(other, late, size=8 + number)
        leader.snapshot(late, 4)
        leader.snapshot(other, 2, b"with more")
        leader.start_at(late, 3)
        ids = sorted([empty, partition, other, late])
        snapshots = {each: snapshot_of(index, each) for each in ids}
        sizes = {each: known.size_bytes if known else 0 for each, known in snapshots.items()}
        assert sizes == dict.fromkeys(ids, 0) | {late: 15, other: 33}
        heads = [LogHead(each, index.partition(each), snapshots[each]) for each in ids]
        offsets = {each.partition_id: each.needless_offset for each in heads}
        assert offsets == dict.fromkeys(ids, 0) | {late: 3}
        assert index.beginnings([], most=MANY, most_bytes=MANY) == []
        for most in (0, 1, 2, MANY):
            logs = {each: index.extents(each, offsets[each], most=most) for each in ids}
            all_bytes = sum(sizes.values())
            all_bytes += sum(len(each.data) for log in logs.values() for each in log)
            for most_bytes in range(0, all_bytes + 3, 3):
                fitting = [
                    each
                    for at, each in enumerate(ids)
                    if at == 0 or sum(sizes[before] for before in ids[: at + 1]) <= most_bytes
                ]
                bytes_before = sum(sizes[each] for each in fitting)
                expected = {each: [] for each in fitting}
                order = [(each, extent) for each in fitting for extent in logs[each]]
                for number, (each, extent) in enumerate(order):
                    is_first = number == 0 and most_bytes > 0
                    if is_first or bytes_before < most_bytes:
                        expected[each].append(extent)
                    bytes_before += len(extent.data)
                found = index.beginnings([*ids, MANY**3], most=most, most_bytes=most_bytes)
                assert found == [
                    LogBeginning(head, expected[head.partition_id])
                    for head in heads
                    if head.partition_id in expected
                ]

    def test_a_snapshot_that_is_larger_than_all_that_is_asked_for_comes_alone(self, index, leader):
        large, small, last = ids = [leader.lead() for _ in range(3)]
        for each in ids:
            leader.append(each)
            leader.snapshot(each, 0, bytes(100) if each == large else b"")
        size = snapshot_of(index, small).size_bytes

        def found(*named, most_bytes):
            beginnings = index.beginnings(named, most=MANY, most_bytes=most_bytes)
            return [each.head.partition_id for each in beginnings]

        assert found(*ids, most_bytes=50) == [large]
        assert found(small, last, most_bytes=2 * size - 1) == [small]
        assert found(small, last, most_bytes=2 * size) == [small, last]
        assert found(last, most_bytes=0) == [last]

    # ------------------------------------------------------------------------------- snapshots

    def test_the_newest_snapshot_is_kept(self, index, leader, partition):
        assert snapshot_of(index, partition) is None
        for offset, text, kept in ((4, b"a", b"a"), (6, b"b", b"b"), (4, b"c", b"b")):
            assert leader.snapshot(partition, offset, text)
            assert snapshot_of(index, partition).producers == b"producers" + kept
        assert snapshot_of(index, partition) == LogSnapshot(6, b"producersb", b"epochsb")

    def test_a_snapshot_of_what_is_not_durable_is_a_bug(self, index, leader, partition):
        assert leader.snapshot(partition, 20)
        with pytest.raises(IndexMisused, match="behind"):
            leader.snapshot(partition, 21)
        assert snapshot_of(index, partition).next_offset == 20

    @pytest.mark.parametrize("how", ["moved", "epoch", "fenced", "deleted"])
    def test_session_without_leadership_changes_nothing(
        self, index, leader, partition, assign, remove, how
    ):
        leader.snapshot(partition, 4)
        epoch = leader.epoch(partition)
        if how == "moved":
            Leader(index, assign).lead(partition)
        elif how == "epoch":
            leader.lead(partition)
        elif how == "fenced":
            index.fence(leader.session)
        else:
            remove(partition)
        before = index.extents(partition, 0, most=MANY)
        assert not leader.snapshot(partition, 8, epoch=epoch)
        assert not leader.replace(partition, Extent(0, 4, 0, b"x"), epoch=epoch)
        assert snapshot_of(index, partition).next_offset == 4
        assert index.extents(partition, 0, most=MANY) == before

    # --------------------------------------------------------------------------------- garbage

    @pytest.mark.parametrize(
        ("start", "snapshot", "first"),
        [(0, 20, 0), (7, None, 0), (7, 3, 2), (7, 20, 6), (6, 20, 6), (20, 20, None), (19, 20, 18)],
    )
    def test_extents_below_start_and_snapshot_are_garbage(
        self, index, leader, partition, start, snapshot, first
    ):
        leader.start_at(partition, start)
        if snapshot is not None:
            leader.snapshot(partition, snapshot)
        wanted = list(range(first, 20, 2)) if first is not None else []
        assert index.collect_garbage(MANY) == 10 - len(wanted)
        assert bases(index, partition) == wanted
        assert index.collect_garbage(MANY) == 0
        assert index.partition(partition)[2:] == (start, 20)
        leader.append(partition)
        assert bases(index, partition) == [*wanted, 20]

    def test_garbage_is_collected_in_portions(self, index, leader, partition):
        other = leader.lead()
        for _ in range(3):
            leader.append(other)
        for each in (partition, other):
            end = index.partition(each).log_end_offset
            leader.snapshot(each, end)
            leader.start_at(each, end - 2)
        assert [index.collect_garbage(4) for _ in range(5)] == [4, 4, 3, 0, 0]
        assert (bases(index, partition), bases(index, other)) == ([18], [4])

    def test_deleted_partition_is_garbage_and_refuses_flushes(
        self, index, leader, partition, assign, remove
    ):
        kept = leader.lead()
        leader.append(partition, kept)
        epoch = leader.epoch(partition)
        remove(partition)
        assert not assign(partition, leader.session)
        item = Item(partition, epoch, 22, 24, 0, 1)
        answer = index.commit_flush(
            leader.session, Flush(Lane.INLINE, leader.flushes[Lane.INLINE], [item], (), b"x")
        )
        assert answer == FlushAnswer(Outcome.REFUSED, frozenset({partition}))
        assert [index.collect_garbage(8) for _ in range(3)] == [8, 3, 0]
        assert bases(index, partition) == []
        assert snapshot_of(index, partition) is None
        assert not leader.snapshot(partition, 0, epoch=epoch)
        assert len(bases(index, kept)) == 1

    # ------------------------------------------------------------------------------ compaction

    def test_sizes_are_those_of_the_extents(self, index, leader, partition):
        leader.append(partition, count=5, size=9)
        assert index.extent_sizes(partition, 17, most=2) == [
            ExtentSize(16, 18, 4),
            ExtentSize(18, 20, 4),
        ]
        assert index.extent_sizes(partition, 21, most=9) == [ExtentSize(20, 25, 9)]
        assert index.extent_sizes(partition, 25, most=9) == []

    def test_extents_take_the_place_of_others(self, index, leader, partition):
        leader.snapshot(partition, 10)
        new = [Extent(4, 7, 0, b"abc"), Extent(7, 10, 1, b"defg")]
        before = index.extents(partition, 0, most=MANY)
        for _ in range(2):
            assert leader.replace(partition, *new)
            found = index.extents(partition, 0, most=MANY)
            assert found == [*before[:2], *new, *before[5:]]
        leader.start_at(partition, 9)
        assert index.collect_garbage(MANY) == 3
        assert index.extents(partition, 0, most=1) == [new[1]]
        leader.append(partition)
        assert bases(index, partition)[-1] == 20

    @pytest.mark.parametrize(
        ("new", "snapshot"),
        [
            ([(4, 9)], 20),
            ([(3, 8)], 20),
            ([(4, 22)], 20),
            ([(20, 22)], 20),
            ([(4, 6), (7, 10)], 20),
            ([(4, 10)], 9),
            ([(4, 10)], None),
        ],
    )
    def test_inconsistent_extents_are_index_misused_without_a_change(
        self, index, leader, partition, new, snapshot
    ):
        if snapshot is not None:
            leader.snapshot(partition, snapshot)
        before = index.extents(partition, 0, most=MANY)
        with pytest.raises(IndexMisused):
            leader.replace(partition, *(Extent(*each, 0, b"x") for each in new))
        assert index.extents(partition, 0, most=MANY) == before

    def test_extents_of_another_size_are_not_replaced_if_it_is_kept(self, index, leader, partition):
        leader.snapshot(partition, 20)
        before = index.extents(partition, 0, most=MANY)
        size = sum(each.size_bytes for each in before[1:4])
        for wrong in (size - 1, size + 1):
            assert not leader.replace(partition, Extent(2, 8, 0, bytes(wrong)), keeps_size=True)
            assert index.extents(partition, 0, most=MANY) == before
        assert leader.replace(partition, Extent(2, 8, 0, bytes(size)), keeps_size=True)
        assert bases(index, partition)[:3] == [0, 2, 8]

    def test_extents_before_a_later_log_start_are_not_replaced(self, index, leader, partition):
        leader.snapshot(partition, 20)
        leader.start_at(partition, 5)
        for collected in (2, 0):
            before = index.extents(partition, 0, most=MANY)
            assert not leader.replace(partition, Extent(2, 8, 0, b"x"))
            assert index.extents(partition, 0, most=MANY) == before
            assert index.collect_garbage(MANY) == collected
        assert leader.replace(partition, Extent(6, 10, 0, b"x"))
        assert bases(index, partition) == [4, 6, 10, 12, 14, 16, 18]

    # ---------------------------------------------------------------------------------- at random

    @pytest.mark.parametrize("number", range(2))
    def test_readable_extents_exist_after_random_upkeep(self, index, leader, remove, number):
        """Seeds are printed; what each partition must hold is kept beside it."""
        print("seed", SEED + number)
        random = Random(SEED + number)
        logs = {leader.lead(): [] for _ in range(4)}
        snapshots = dict.fromkeys(logs, 0)
        actions = ("append", "append", "snapshot", "start", "replace", "collect", "pack")
        for _ in range(55):
            partition_id = random.choice(list(logs))
            _, _, start, end = index.partition(partition_id)
            action = random.choice(actions)
            if action == "append":
                chosen = random.sample(sorted(logs), random.randint(1, len(logs)))
                leader.append(*chosen, count=random.randint(1, 5), size=random.randint(1, 9))
                for each in chosen:
                    logs[each].append(index.extents(each, 0, most=MANY)[-1])
            elif action == "snapshot":
                snapshots[partition_id] = max(random.randint(0, end), snapshots[partition_id])
                leader.snapshot(partition_id, snapshots[partition_id])
            elif action == "start":
                leader.start_at(partition_id, random.randint(start, end))
            elif action == "collect":
                index.collect_garbage(random.choice((1, 3, MANY)))
            elif action == "pack":
                index.pack_extents(random.choice((1, 3, MANY)), random.choice((1, MANY)), 0)
            else:
                there = index.extents(partition_id, 0, most=MANY)
                old = [each for each in there if each.next_offset <= snapshots[partition_id]]
                if old:
                    part = old[random.randrange(len(old)) :]
                    new = Extent(part[0].base_offset, part[-1].next_offset, 0, b"new")
                    is_replaced = leader.replace(partition_id, new)
                    assert is_replaced == (start <= new.base_offset)
                    if not is_replaced:
                        continue
                    at = logs[partition_id].index(part[0])
                    logs[partition_id][at : at + len(part)] = [new]
        collect_all(index)
        for partition_id, extents in logs.items():
            needless = min(index.partition(partition_id).log_start_offset, snapshots[partition_id])
            wanted = [each for each in extents if each.next_offset > needless]
            assert index.extents(partition_id, 0, most=MANY) == wanted
            assert extents == [] or extents[-1].next_offset == index.partition(partition_id)[3]
            remove(partition_id)
        collect_all(index)
        assert [index.extents(each, 0, most=1) for each in logs] == [[]] * 4
