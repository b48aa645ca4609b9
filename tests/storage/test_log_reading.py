"""Takeovers of a log with parts deleted from the store, or below its start."""

import contextlib

import pytest

from barnabas.broker.testing.store.index import MemoryIndex
from barnabas.protocol.records import read_header
from barnabas.storage.errors import Corrupt, OffsetOutOfRange
from barnabas.storage.log.config import LogConfig
from barnabas.storage.log.leader_epochs import end_of_epoch, epochs_from
from barnabas.storage.log.readable_log import READ_COMMITTED
from barnabas.storage.repair.check import verify
from barnabas.storage.replicated.log_reading import read_log
from barnabas.storage.replicated.log_snapshot import read_snapshot
from tests.storage.leading import MANY, Broker, committed, producers_of
from tests.storage.stores import batch, from_producer, read_all

CONFIG = LogConfig(segment_bytes=400)


@pytest.fixture
def index():
    return MemoryIndex()


@pytest.fixture
def leader(index):
    return Broker(index, CONFIG, 0)


def taken_over(former, life=1):
    """The log at the next leader."""
    log = Broker(former.index, CONFIG, life).log
    assert verify(log) == []
    bounds = ("log_start_offset", "high_watermark", "last_stable_offset", "next_offset")
    assert [getattr(log, each) for each in bounds] == [getattr(former.log, each) for each in bounds]
    return log


def bases(index):
    return [each.base_offset for each in index.extents(1, 0, most=MANY)]


def test_producer_state_survives_deleted_batches(index, leader):
    leader.append(from_producer(7, 0), from_producer(7, 1))
    for _ in range(3):
        leader.append(batch())
    leader.delete_records(4)
    leader.keep_snapshot()
    assert index.collect_garbage(MANY) == 3
    assert bases(index) == [4]
    log = taken_over(leader)
    assert producers_of(log) == producers_of(leader.log)
    assert log.append(from_producer(7, 1)).base_offset == 1, "a duplicate (S4)"
    assert [segment.base_offset for segment in log.segments] == [4]


def test_as_long_as_there_is_no_snapshot_what_is_below_the_start_is_read_for_its_producers(
    index, leader
):
    leader.append(from_producer(7, 0))
    for _ in range(3):
        leader.append(batch())
    leader.delete_records(3)
    assert index.collect_garbage(MANY) == 0
    assert read_log(index, 1).base_offset == 0
    assert producers_of(taken_over(leader)) == producers_of(leader.log) != {}


def test_read_skips_extents_below_start_and_snapshot(index, leader):
    for _ in range(5):
        leader.append(batch())
    leader.delete_records(3)
    leader.keep_snapshot()
    assert (read_log(index, 1).base_offset, len(read_log(index, 1).batches)) == (3, 2)
    index.collect_garbage(MANY)
    assert (read_log(index, 1).base_offset, len(read_log(index, 1).batches)) == (3, 2)
    taken_over(leader)


def test_a_log_may_start_within_an_extent(index, leader):
    leader.append(*(batch(3) for _ in range(4)))
    leader.delete_records(7)
    leader.keep_snapshot()
    assert index.collect_garbage(MANY) == 0
    log = taken_over(leader)
    assert [header.base_offset for header, _ in read_all(log, 7)] == [6, 9]
    with pytest.raises(OffsetOutOfRange):
        log.plan_read(6, 1000)


def test_emptied_log_continues_at_its_end_offset(index, leader):
    leader.append(from_producer(7, 0), batch())
    leader.delete_records(2)
    leader.keep_snapshot()
    assert index.collect_garbage(MANY) == 1
    log = taken_over(leader)
    assert producers_of(log) == producers_of(leader.log)
    assert log.append(batch()).base_offset == 2


@pytest.mark.parametrize("snapshot_after", range(5))
def test_a_transaction_that_began_below_the_start_is_still_open(index, leader, snapshot_after):
    """Whether the snapshot comes before, within or behind what is left of it."""
    for number in range(5):
        in_transaction = number % 2 == 0
        sent = from_producer(7, number // 2, transactional=True) if in_transaction else batch()
        leader.append(sent)
        if number == snapshot_after:
            leader.keep_snapshot()
    leader.delete_records(2)
    index.collect_garbage(MANY)
    log = taken_over(leader)
    assert producers_of(log) == producers_of(leader.log)
    assert log.last_stable_offset == 2, "of what can be read nothing is stable"
    assert log.plan_read(2, 1000, READ_COMMITTED) is None


@pytest.mark.parametrize("snapshot_after", range(6))
@pytest.mark.parametrize("commit", [True, False])
def test_how_a_transaction_ended_that_began_below_the_start(index, leader, snapshot_after, commit):
    values = [b"0", None, b"1", None, b"2"]
    for number, value in enumerate([*values, "marker"]):
        if value == "marker":
            leader.marker(7, commit=commit)
        elif value is None:
            leader.append(batch(key=b"plain", value=b"plain"))
        else:
            sequence = int(value)
            leader.append(
                from_producer(7, sequence, transactional=True, key=b"k" + value, value=value)
            )
        if number == snapshot_after:
            leader.keep_snapshot()
    leader.delete_records(2)
    index.collect_garbage(MANY)
    log = taken_over(leader)
    for start in range(2, log.next_offset):
        found = committed(log, start).values
        assert found == committed(leader.log, start).values
        assert (b"2" in found) == (commit and start <= 4)


def test_epochs_of_deleted_batches_end_at_the_log_start(index):
    for life in range(4):
        leader = Broker(index, CONFIG, life)
        leader.append(batch())
        leader.append(batch())
    assert leader.log.leader_epochs == [(0, 0), (1, 2), (2, 4), (3, 6)]
    leader.delete_records(5)
    leader.keep_snapshot()
    index.collect_garbage(MANY)
    log = taken_over(leader, life=4)
    assert log.leader_epochs == [(2, 5), (3, 6)]
    assert [log.end_offset_for_epoch(epoch) for epoch in range(5)] == [
        (0, 5),
        (1, 5),
        (2, 6),
        (3, 8),
        (4, 8),
    ]


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (0, [(1, 0), (3, 4), (7, 9)]),
        (3, [(1, 3), (3, 4), (7, 9)]),
        (4, [(3, 4), (7, 9)]),
        (20, [(7, 20)]),
    ],
)
def test_the_first_epoch_begins_where_the_log_does(start, expected):
    found = epochs_from([(1, 0), (3, 4), (7, 9)], start)
    assert found == expected
    assert end_of_epoch(found, 3, 30)[1] >= start
    assert epochs_from([], start) == []


def sizes_of_answers(index, monkeypatch):
    """Return a list that gets the bytes of each answer to come."""
    came = []
    extents = index.extents

    def noted(partition_id, from_offset, **limits):
        found = extents(partition_id, from_offset, **limits)
        came.append(sum(len(each.data) for each in found))
        return found

    monkeypatch.setattr(index, "extents", noted)
    return came


def test_large_extents_are_read_few_at_a_time(index, leader, monkeypatch):
    for _ in range(40):
        leader.append(batch())
    came = sizes_of_answers(index, monkeypatch)
    monkeypatch.setattr("barnabas.storage.replicated.log_reading.BYTES_AT_ONCE", 300)
    batches = read_log(index, 1).batches
    assert [read_header(each).base_offset for each in batches] == [*range(40)]
    size = len(batches[0])
    first = sum(
        len(each.data) for each in index.beginnings([1], most=40, most_bytes=300)[0].extents
    )
    assert max(came) < 300 + size
    assert first + sum(came) == 40 * size, "nor once more at the end"
    assert all(came)


def test_large_extents_behind_many_small_ones_are_read_few_at_a_time(index, leader, monkeypatch):
    """The sizes of those that came say nothing of those that will come."""
    small, large = [batch() for _ in range(70)], [batch(value=b"v" * 4000) for _ in range(30)]
    for each in (*small, *large):
        leader.append(each)
    came = sizes_of_answers(index, monkeypatch)
    monkeypatch.setattr("barnabas.storage.replicated.log_reading.BYTES_AT_ONCE", 16_000)
    assert len(read_log(index, 1).batches) == 100
    assert max(came) < 16_000 + len(large[0])


# ---------------------------------------------------------------------------------------- damage


@pytest.fixture
def two_epochs(index):
    """A log of several extents, one of them of several batches, of two leaders."""
    for life in range(2):
        leader = Broker(index, CONFIG, life)
        leader.append(from_producer(7, 2 * life), batch(2))
        leader.append(from_producer(7, 2 * life + 1))
    return leader


def test_no_bit_of_what_is_stored_is_another_one_unseen(index, two_epochs):
    extents = index.rows[1].extents
    as_it_was = [bytes(each) for each in read_log(index, 1).batches]
    assert len(as_it_was) == 6
    unseen = []
    for at, extent in enumerate(extents):
        for bit in range(8 * len(extent.data)):
            data = bytearray(extent.data)
            data[bit // 8] ^= 1 << bit % 8
            extents[at] = extent._replace(data=bytes(data))
            with contextlib.suppress(Corrupt):
                unseen += map(bytes, read_log(index, 1).batches)
        extents[at] = extent
    assert unseen == []
    assert [bytes(each) for each in read_log(index, 1).batches] == as_it_was


def test_batches_are_older_than_their_extent_only_where_a_log_was_imported(index, two_epochs):
    """A snapshot lies behind all that was."""
    row = index.rows[1]
    row.extents[0] = row.extents[0]._replace(leader_epoch=1)
    with pytest.raises(Corrupt, match=r"the batch has epoch 0, after epoch -1, in an extent of 1"):
        read_log(index, 1)
    two_epochs.keep_snapshot()
    assert len(read_log(index, 1).batches) == 6
    two_epochs.append(batch())
    row.extents[-1] = row.extents[-1]._replace(leader_epoch=2)
    row.leader_epoch = 2
    with pytest.raises(Corrupt, match=r"the batch has epoch 1, after epoch 1, in an extent of 2"):
        read_log(index, 1)


@pytest.mark.parametrize("missing", [slice(0, 1), slice(1, 2), slice(-1, None), slice(None)])
def test_no_extent_is_missing_unseen(index, two_epochs, missing):
    del index.rows[1].extents[missing]
    with pytest.raises(Corrupt):
        read_log(index, 1)


def test_no_bit_of_a_snapshot_is_another_one_unseen(index, two_epochs):
    two_epochs.keep_snapshot()
    row = index.rows[1]
    whole = row.snapshot
    read_snapshot(1, whole, append_time_ms=0)
    for field in ("producers", "leader_epochs"):
        for bit in range(8 * len(getattr(whole, field))):
            data = bytearray(getattr(whole, field))
            data[bit // 8] ^= 1 << bit % 8
            row.snapshot = whole._replace(**{field: bytes(data)})
            with pytest.raises(Corrupt, match=r"partition 1 in the store, its snapshot of 8,"):
                read_snapshot(1, row.snapshot, append_time_ms=0)
    with pytest.raises(Corrupt, match="its snapshot"):
        Broker(index, CONFIG, 2)
    row.snapshot = whole
    taken_over(two_epochs, life=3)
