"""Logs whose records before the snapshot stay in the store until a client reads them (F11)."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.broker.testing.store.index import MemoryIndex
from barnabas.storage.errors import Corrupt
from barnabas.storage.log.config import COMPACT, LogConfig
from barnabas.storage.log.readable_log import READ_COMMITTED, READ_UNCOMMITTED
from barnabas.storage.log.time_lookup import offset_for_timestamp, offset_of_max_timestamp, run
from barnabas.storage.replicated.log_parts import covering_parts, new_parts
from barnabas.storage.replicated.log_reading import head_of
from barnabas.storage.replicated.offloading import excess, facts_of, leaving_of, offload
from barnabas.storage.replicated.remote_segment import RemoteSegment
from tests.storage.leading import MANY, Broker, committed, producers_of
from tests.storage.remote import Cold, RemoteBroker, keep_parts, parts_of
from tests.storage.scripted_objects import IndexWithObjects
from tests.storage.stores import NOW_MS, ROOT, batch, from_producer, read_all

CONFIG = LogConfig(segment_bytes=500, index_interval_bytes=100)
PRODUCERS = (7, 8, 9)


def offload_all(log, snapshot_offset, kept_bytes, cold):
    """Take segments off the disk beyond ``kept_bytes``; return their number."""
    leaving = excess(leaving_of(log, snapshot_offset), kept_bytes)
    return sum(offload(each, facts_of(each), cold.store) for each in leaving)


class History:
    """One log, its leaders one after the other, and what its producers are about."""

    def __init__(self, index):
        self.index = index
        self.life = 0
        self.leader = Broker(self.index, CONFIG, 0)
        self.cold = Cold(self.index)
        self.kept_offset = 0
        self.sequences = dict.fromkeys(PRODUCERS, 0)
        self.open = set()
        self.times = set()

    def take_over(self, cold=None):
        self.life += 1
        if cold is None:
            return Broker(self.index, CONFIG, self.life)
        return RemoteBroker(self.index, CONFIG, self.life, cold)

    def step(self, name, number, amount):
        producer_id = PRODUCERS[number % len(PRODUCERS)]
        timestamp = NOW_MS + amount * 100 - 5000
        if name == "plain":
            self.times.add(timestamp)
            self.leader.append(batch(1 + number, timestamp=timestamp, step_ms=7))
        elif name in ("data", "flush"):
            count = 3 if name == "flush" else 1
            batches = []
            for _ in range(count):
                sequence = self.sequences[producer_id]
                batches.append(from_producer(producer_id, sequence, transactional=True))
                self.sequences[producer_id] += 1
            self.open.add(producer_id)
            self.leader.append(*batches)
        elif name == "end" and producer_id in self.open:
            self.open.remove(producer_id)
            self.leader.marker(producer_id, commit=amount % 2 == 0)
        elif name == "delete":
            log = self.leader.log
            reach = log.high_watermark - log.log_start_offset
            self.leader.delete_records(log.log_start_offset + reach * amount // 400)
        elif name == "collect":
            self.index.collect_garbage(MANY)
        elif name == "keep":
            self.kept_offset = keep_parts(self.leader, self.kept_offset)
        elif name == "offload":
            offload_all(self.leader.log, self.kept_offset, amount * 10, self.cold)
            self.leader.checkpoint()
        elif name == "roll":
            self.leader.roll()
        elif name == "within":  # The snapshot is of an offset inside an extent.
            self.times.add(timestamp)
            self.leader.log.append(batch(timestamp=timestamp))
            after = [batch(2, timestamp=timestamp + 9)]
            self.kept_offset = keep_parts(self.leader, self.kept_offset, before=after)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "plain",
                "plain",
                "data",
                "data",
                "flush",
                "end",
                "end",
                "delete",
                "collect",
                "keep",
                "within",
                "roll",
                "offload",
            ]
        ),
        st.integers(0, 4),
        st.integers(0, 100),
    ),
    max_size=40,
)
RANDOM = settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None
)


def assert_same(remote, whole, times):
    """Everything that clients and the broker ask of a log has one answer."""
    bounds = ("log_start_offset", "high_watermark", "last_stable_offset", "next_offset")
    assert [getattr(remote, each) for each in bounds] == [getattr(whole, each) for each in bounds]
    assert producers_of(remote) == producers_of(whole)
    assert remote.leader_epochs == whole.leader_epochs
    start = whole.log_start_offset
    for isolation in (READ_UNCOMMITTED, READ_COMMITTED):
        assert read_visible(remote, start, isolation) == read_visible(whole, start, isolation)
        assert run(offset_of_max_timestamp(remote, isolation)) == run(
            offset_of_max_timestamp(whole, isolation)
        )
        for time in sorted(times):
            for about in (time - 1, time, time + 1):
                assert run(offset_for_timestamp(remote, about, isolation)) == run(
                    offset_for_timestamp(whole, about, isolation)
                )
    assert committed(remote, start).values == committed(whole, start).values
    if not start:  # Otherwise the whole log may begin in the middle of a transaction.
        assert remote.size_bytes == whole.size_bytes
        end = whole.next_offset
        for offset in range(end):
            assert aborted(remote, offset, end) == aborted(whole, offset, end)


def assert_readable(log):
    """Assert that all records can be read, whether they are on the disk or not."""
    start = log.log_start_offset
    if start < log.high_watermark:
        found = read_visible(log, start, READ_UNCOMMITTED)
        assert found[0][0].base_offset <= start
        assert found[-1][0].next_offset == log.high_watermark
        assert all(a.next_offset == b.base_offset for (a, _), (b, _) in pairwise(found))


def read_visible(log, start, isolation):
    found = read_all(log, start, isolation, max_bytes=300)
    return [(header, data) for header, data in found if header.next_offset > start]


def aborted(log, offset, end):
    """Return the ones that a reader from an offset on needs; a log may name more (L10)."""
    found = log.aborted_transactions(offset, end)
    return [each for each in found if each.last_offset >= offset]


@pytest.fixture
def index():
    return MemoryIndex()


@pytest.fixture
def leader(index):
    leader = Broker(index, CONFIG, 0)
    leader.append(*[batch() for _ in range(20)])
    return leader


def parts_found(index):
    return [part.base_offset for part, _ in covering_parts(index, [head_of(index, 1)])[1]]


def test_parts_are_the_segments_of_the_leader(index, leader):
    end = keep_parts(leader)
    bases = [segment.base_offset for segment in leader.log.segments]
    assert len(bases) > 2
    assert parts_found(index) == bases
    leader.append(*[batch() for _ in range(10)])
    later = [each.base_offset for each in leader.log.segments if each.end_offset > end]
    keep_parts(leader, end)
    assert parts_found(index) == sorted({*bases, *later})


@pytest.mark.parametrize(
    "spoil",
    [
        lambda parts: parts[1:],
        lambda parts: parts[:-1],
        lambda parts: [parts[0], *parts[2:]],
        lambda parts: [*parts[:-1], parts[-1]._replace(facts=parts[-1].facts[:-1])],
        lambda parts: [*parts[:-1], parts[-1]._replace(facts=b"")],
        lambda parts: [],
    ],
    ids=["no first", "no last", "a gap", "cut off", "empty", "none"],
)
def test_parts_that_do_not_cover_the_log_are_not_used_f11(index, leader, spoil):
    keep_parts(leader)
    row = index.rows[1]
    row.parts = spoil(row.parts)
    assert parts_found(index) == []


def test_snapshot_of_an_earlier_release_leaves_parts_unused_f11(index, leader):
    keep_parts(leader)
    leader.append(batch())
    leader.keep_snapshot()
    assert parts_found(index) == []
    keep_parts(leader)
    assert parts_found(index)


def test_segments_leave_the_disk_once_the_store_has_them(index, leader):
    cold = Cold(index)
    log, before = leader.log, read_all(leader.log)
    sizes = [segment.size_bytes for segment in log.segments]
    assert [*leaving_of(log, 0)] == []
    end = keep_parts(leader)
    assert offload_all(log, end, sum(sizes[1:-1]), cold) == 1
    kinds = [isinstance(segment, RemoteSegment) for segment in log.segments]
    assert kinds == [True] + [False] * (len(sizes) - 1)
    assert offload_all(log, end, 0, cold) == len(sizes) - 2
    leader.checkpoint()
    disk = leader.store.file_system
    (directory,) = [each for each in disk.list_directory(ROOT) if each.startswith("t1-")]
    names = disk.list_directory(disk.join(ROOT, directory))
    assert [each for each in names if each.endswith(".log")] == [log.active.log_name]
    assert read_all(log) == before
    assert [segment.size_bytes for segment in log.segments] == sizes
    leader.append(*[batch() for _ in range(20)])
    keep_parts(leader, end)
    assert parts_found(index) == [segment.base_offset for segment in log.segments]


def in_pieces(leader, cold, count, **more):
    """Take ``count`` segments of one batch each off the disk, one after the other."""
    kept_offset = 0
    for number in range(count):
        leader.append(batch(timestamp=NOW_MS + number, **more))
        leader.roll()
        kept_offset = keep_parts(leader, kept_offset)
        assert offload_all(leader.log, kept_offset, 0, cold) == 1
    leader.checkpoint()


def test_small_segments_that_leave_the_disk_become_one(index):
    leader, cold = Broker(index, CONFIG, 0), Cold(index)
    in_pieces(leader, cold, 20)
    size = leader.log.size_bytes // 20
    *remote, _ = leader.log.segments
    assert [each.size_bytes for each in remote[:-1]] == [CONFIG.segment_bytes // size * size] * (
        len(remote) - 1
    )
    keep_parts(leader, leader.log.next_offset)
    assert parts_found(index) == [segment.base_offset for segment in remote]
    assert len(read_all(leader.log)) == 20
    assert_same(
        RemoteBroker(index, CONFIG, 1, cold).log,
        Broker(index, CONFIG, 2).log,
        {NOW_MS, NOW_MS + 7, NOW_MS + 19},
    )


@pytest.mark.parametrize("config", [{"segment_ms": 0}, {"segment_bytes": 100}])
def test_segments_that_one_could_not_have_held_stay_apart(index, config):
    config = replace(CONFIG, **config)
    leader, cold = Broker(index, config, 0), Cold(index)
    in_pieces(leader, cold, 3)
    assert len(leader.log.segments) == 4


def test_indexes_of_the_last_segment_are_read_aside_once_it_is_sealed(index, leader, monkeypatch):
    leader.roll()
    leader.checkpoint()
    *_, last, active = leader.log.segments
    assert active is leader.log.active
    last.release_file()
    with monkeypatch.context() as patched:
        patched.setattr(last.directory, "read_file", None)
        found = new_parts(leader.log, last.end_offset)
    (part,) = found.encode()
    assert part[:2] == (last.base_offset, last.end_offset)


def test_oldest_segments_leave_a_disk_that_lacks_space(index, leader):
    leaving = [*leaving_of(leader.log, keep_parts(leader))]
    sizes = [each.segment.size_bytes for each in leaving]
    kept_bytes = sum(sizes)
    assert excess(leaving, kept_bytes, left_bytes=1) == []
    assert excess(leaving, kept_bytes, left_bytes=-1) == leaving[:1]
    assert excess(leaving, kept_bytes, left_bytes=-sizes[0] - 1) == leaving[:2]
    assert excess(leaving, kept_bytes - 1, left_bytes=1) == leaving[:1]


def test_log_with_gaps_has_no_parts(index):
    leader = Broker(index, replace(CONFIG, cleanup_policy=frozenset((COMPACT,))), 0)
    leader.append(*[batch() for _ in range(20)])
    assert parts_of(leader.log, 0) == []
    leader.log.configure(CONFIG)
    assert parts_of(leader.log, 0) != []
    leader.log.configure(replace(CONFIG, cleanup_policy=frozenset((COMPACT,))))
    leader.compact()
    leader.log.configure(CONFIG)
    assert parts_of(leader.log, 0) == [], "compaction has left gaps"


@pytest.mark.parametrize("kind", [MemoryIndex, IndexWithObjects])
@settings(RANDOM)
@given(before=STEPS, after=STEPS, moves=st.booleans())
def test_log_without_its_data_is_the_log_from_all_its_bytes_f11(kind, before, after, moves):
    history = History(kind())
    for step in before:
        history.step(*step)
    history.step("within", 0, 0)
    if moves:
        history.leader = history.take_over(Cold(history.index))
        history.kept_offset = 0
    for step in after:
        if moves or step[0] not in ("keep", "within"):
            history.step(*step)
    assert_readable(history.leader.log)
    whole = history.take_over()
    if whole.log.log_start_offset >= history.index.rows[1].snapshot.next_offset:
        return  # Nothing before the snapshot is read any more.
    remote = history.take_over(Cold(history.index))
    assert_same(remote.log, whole.log, history.times)


def test_log_whose_records_are_objects_is_loaded_from_their_headers_f11():
    """The takeover reads no body; the next snapshot has the facts of all segments."""
    history = History(IndexWithObjects())
    for step in [("plain", 1, 9), ("keep", 0, 0), *[("flush", each, 0) for each in range(8)]]:
        history.step(*step)
    history.step("end", 0, 1)
    history.step("end", 1, 0)
    reader, end = history.index.reader, history.leader.log.next_offset
    reader.places.clear()
    taken = history.take_over(Cold(history.index))
    assert reader.places
    assert all(place.position == place.size.footer_at for place in reader.places)
    assert [segment.end_offset for segment in taken.log.segments] == [2, end, end]
    assert not any(each.size_bytes for each in taken.log.local_segments)
    assert len(taken.log.aborted_transactions(0, end)) == 1
    assert_same(taken.log, history.take_over().log, history.times)
    history.leader, history.kept_offset = history.take_over(Cold(history.index)), 0
    history.step("plain", 1, 5)
    history.step("keep", 0, 0)
    assert parts_found(history.index) == [0, 2, end], "the parts cover the log again"


def test_footer_that_is_not_that_of_the_flush_is_damage_f11():
    history = History(IndexWithObjects())
    for step in [("plain", 1, 9), ("keep", 0, 0), ("flush", 1, 0), ("flush", 1, 0)]:
        history.step(*step)
    objects = history.index.objects.bodies
    key = max(objects)
    objects[key] = objects[key][:-20] + bytes(20)
    with pytest.raises(Corrupt, match="footer"):
        history.take_over(Cold(history.index))
    del objects[key]
    history.index.reader._footers.clear()
    with pytest.raises(Corrupt, match="is missing"):
        history.take_over(Cold(history.index))


@pytest.mark.parametrize("at", [8, 16, 50], ids=["length", "magic", "producer"])
def test_row_between_objects_is_checked_before_its_headers_count_f11(at):
    history = History(IndexWithObjects())
    for step in [("plain", 1, 9), ("keep", 0, 0), *[("flush", each, 0) for each in range(4)]]:
        history.step(*step)
    extents = history.index.rows[1].extents
    (number,) = [
        number for number, each in enumerate(extents) if each.data and each.base_offset >= 2
    ]
    history.take_over(Cold(history.index))
    data = bytearray(extents[number].data)
    data[at] ^= 64
    extents[number] = extents[number]._replace(data=bytes(data))
    with pytest.raises(Corrupt, match=f"the extent of offset {extents[number].base_offset},"):
        history.take_over(Cold(history.index))
