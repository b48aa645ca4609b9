"""The indexes against Kafka's own files, against plain lists, and against damage."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.records import iterate_batches
from barnabas.storage.log.index import (
    AbortedTransaction,
    CorruptIndex,
    OffsetIndex,
    SegmentIndex,
    TimeEntry,
    TimeIndex,
    TransactionIndex,
)
from tests.storage import golden

# ------------------------------------------------------------------------------------ Kafka's files


@pytest.mark.parametrize("partition", golden.PARTITIONS)
def test_the_same_batches_give_kafkas_own_index_files(partition):
    for base_offset, log in golden.segments(partition):
        index = SegmentIndex(base_offset, golden.index_interval_bytes(partition))
        for position, header in iterate_batches(log):
            index.append(header.last_offset, header.max_timestamp, position)
        index.seal()
        stem = f"{partition}/{base_offset:020}"
        assert index.offsets.encode() == golden.kafka_files()[stem + ".index"]
        assert index.times.encode() == golden.kafka_files()[stem + ".timeindex"]


@pytest.mark.parametrize("partition", golden.PARTITIONS)
def test_kafkas_files_read_back_and_pass_the_check(partition):
    for base_offset, log in golden.segments(partition):
        stem = f"{partition}/{base_offset:020}"
        offset_data = golden.kafka_files()[stem + ".index"]
        time_data = golden.kafka_files()[stem + ".timeindex"]
        transaction_data = golden.kafka_files().get(stem + ".txnindex", b"")
        offsets = OffsetIndex.decode(offset_data, base_offset)
        times = TimeIndex.decode(time_data, base_offset)
        transactions = TransactionIndex.decode(transaction_data, base_offset)
        assert offsets.encode() == offset_data
        assert times.encode() == time_data
        assert transactions.encode() == transaction_data
        end_offset = max(header.next_offset for _, header in iterate_batches(log))
        offsets.check(end_offset, len(log))
        times.check(end_offset)
        transactions.check(end_offset)


def test_every_offset_of_kafkas_log_is_found_from_the_position_looked_up():
    for base_offset, log in golden.segments("segments-0"):
        data = golden.kafka_files()[f"segments-0/{base_offset:020}.index"]
        index = OffsetIndex.decode(data, base_offset)
        batches = dict(iterate_batches(log))
        for position, header in batches.items():
            for offset in (header.base_offset, header.last_offset):
                start = index.lookup(offset)
                assert start in batches, "not the start of a batch"
                assert start <= position
                assert position - start <= 1000 + header.size + 13_000


def test_every_timestamp_of_kafkas_log_is_found_from_the_entry_looked_up():
    """The first batch from the entry's offset on that is young enough is the first of the log."""
    for base_offset, log in golden.segments("segments-0"):
        data = golden.kafka_files()[f"segments-0/{base_offset:020}.timeindex"]
        index = TimeIndex.decode(data, base_offset)
        headers = [header for _, header in iterate_batches(log)]
        youngest = max(header.max_timestamp for header in headers)
        for target in {header.max_timestamp for header in headers} | {0, youngest + 1}:
            expected = next((h for h in headers if h.max_timestamp >= target), None)
            entry = index.lookup(target)
            found = next(
                (h for h in headers if h.last_offset >= entry.offset and h.max_timestamp >= target),
                None,
            )
            assert found == expected


# ------------------------------------------------------------------------------------ offset index

entries = st.lists(st.tuples(st.integers(1, 500), st.integers(1, 5000)), max_size=40)


def offset_index(steps, base_offset=100):
    index, listed = OffsetIndex(base_offset), []
    offset, position = base_offset, 0
    for offset_step, position_step in steps:
        offset, position = offset + offset_step, position + position_step
        index.append(offset, position)
        listed.append((offset, position))
    return index, listed


@given(entries, st.integers(0, 21_000), st.integers(0, 210_000))
def test_an_offset_index_looks_up_like_a_list(steps, offset, position):
    index, listed = offset_index(steps)
    assert index.lookup(offset) == max((p for o, p in listed if o <= offset), default=0)
    assert index.floor(position) == max(
        ((o, p) for o, p in listed if p <= position), default=(100, 0)
    )
    assert len(index) == len(listed)
    assert (index.last_offset, index.last_position) == (listed[-1] if listed else (100, 0))


@given(entries, st.integers(0, 40))
def test_an_offset_index_reads_back_and_appends_the_same_bytes(steps, first):
    index, listed = offset_index(steps)
    first = min(first, len(listed))
    assert index.encode() == b"".join(
        (offset - 100).to_bytes(4) + position.to_bytes(4) for offset, position in listed
    )
    assert index.encode(first) == index.encode()[8 * first :]
    again = OffsetIndex.decode(index.encode(), 100)
    assert again.encode() == index.encode()


@given(entries, st.integers(0, 21_000))
def test_a_truncated_offset_index_has_the_entries_before_the_offset(steps, offset):
    index, listed = offset_index(steps)
    index.truncate_to(offset)
    expected, _ = [(o, p) for o, p in listed if o < offset], None
    assert len(index) == len(expected)
    assert index.last_position == (expected[-1][1] if expected else 0)


def test_truncation_drops_the_entry_of_the_offset_itself():
    for cut, kept in ((9, 0), (10, 0), (11, 1), (20, 1), (21, 2)):
        index = SegmentIndex(0, 100)
        for number in range(1, 3):
            index.append(number * 10, number, number * 101)
        assert (len(index.offsets), len(index.times)) == (2, 2)
        index.truncate_to(cut)
        assert (len(index.offsets), len(index.times)) == (kept, kept)
        assert index.max_timestamp == (kept or -1)


def test_offset_entries_must_increase():
    index = OffsetIndex(0)
    index.append(5, 100)
    with pytest.raises(AssertionError, match="offsets"):
        index.append(5, 200)
    with pytest.raises(AssertionError, match="positions"):
        index.append(6, 100)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\0" * 7, "7 bytes"),
        (b"\0" * 16, "offsets do not increase"),  # zeros of a preallocated file
        (b"\0\0\0\5\0\0\0\1" + b"\0\0\0\4\0\0\0\2", "offsets"),
        (b"\0\0\0\5\0\0\0\2" + b"\0\0\0\6\0\0\0\1", "positions"),
        (b"\xff\0\0\5\0\0\0\2", "offsets"),
        (b"\0\0\0\5\xff\0\0\2", "positions"),
    ],
)
def test_a_damaged_offset_index_is_noticed(data, reason):
    with pytest.raises(CorruptIndex, match=reason):
        OffsetIndex.decode(data, 0)


@pytest.mark.parametrize(("end_offset", "log_bytes"), [(10, 1000), (11, 500), (11, 499)])
def test_an_offset_index_of_a_longer_log_is_noticed(end_offset, log_bytes):
    index = OffsetIndex(0)
    index.append(10, 500)
    index.check(11, 501)
    with pytest.raises(CorruptIndex, match="past"):
        index.check(end_offset, log_bytes)


@pytest.mark.parametrize("byteorder", ["little", "big"])
def test_the_file_is_big_endian_on_every_machine(monkeypatch, byteorder):
    index, _ = offset_index([(1, 2)], 0)
    native = index.encode()
    monkeypatch.setattr(sys, "byteorder", byteorder)
    expected = native if byteorder == "little" else bytes([1, 0, 0, 0, 2, 0, 0, 0])
    assert index.encode() == expected  # what a big-endian machine would not have to swap


def test_an_empty_offset_index_fits_an_empty_log():
    OffsetIndex(7).check(7, 0)


# -------------------------------------------------------------------------------------- time index

times = st.lists(st.tuples(st.integers(-5, 1000), st.integers(0, 500)), max_size=40)


@given(times, st.integers(-10, 1100), st.integers(0, 21_000))
def test_a_time_index_looks_up_like_a_list(steps, target, cut):
    index, listed, offset = TimeIndex(100), [], 100
    for timestamp, step in steps:
        offset += step
        grows = timestamp > (listed[-1][0] if listed else -1)
        assert index.maybe_append(timestamp, offset) == grows
        if grows:
            listed.append(TimeEntry(timestamp, offset))
    none = TimeEntry(-1, 100)
    assert index.lookup(target) == max((e for e in listed if e.timestamp <= target), default=none)
    assert index.last == (listed[-1] if listed else none)
    assert index.last_timestamp == index.last.timestamp
    assert len(index) == len(listed)
    again = TimeIndex.decode(index.encode(), 100)
    assert again.encode() == index.encode()
    assert index.encode(1) == index.encode()[12:]
    index.truncate_to(cut)
    assert index.last == max((e for e in listed if e.offset < cut), default=none)


def test_time_entries_must_not_go_back_in_offset():
    index = TimeIndex(0)
    index.maybe_append(5, 10)
    with pytest.raises(AssertionError, match="go back"):
        index.maybe_append(6, 9)


def entry(timestamp, relative):
    return timestamp.to_bytes(8, signed=True) + relative.to_bytes(4, signed=True)


@pytest.mark.parametrize(
    "data",
    [
        b"\0" * 11,
        b"\0" * 24,
        entry(5, 1) + entry(5, 2),
        entry(5, 2) + entry(6, 1),
        entry(-1, 1),
        entry(5, -1),
    ],
)
def test_a_damaged_time_index_is_noticed(data):
    with pytest.raises(CorruptIndex):
        TimeIndex.decode(data, 0)


def test_a_time_index_of_a_longer_log_is_noticed():
    index = TimeIndex(0)
    index.check(0)
    index.maybe_append(5, 10)
    index.check(11)
    with pytest.raises(CorruptIndex, match="past"):
        index.check(10)


# ------------------------------------------------------------------------------- transaction index


def aborted(*entries):
    index = TransactionIndex()
    for fields in entries:
        index.append(AbortedTransaction(*fields))
    return index


def test_transactions_are_found_by_overlap():
    first, second, third = (1, 0, 10, 5), (2, 5, 20, 21), (1, 25, 30, 31)
    index = aborted(first, second, third)
    assert index.collect(0, 100) == ([first, second, third], False)
    assert index.collect(10, 12) == ([first, second], True)
    assert index.collect(11, 22) == ([second], True)
    assert index.collect(11, 21) == ([second], True)
    assert index.collect(21, 25) == ([], True)
    assert index.collect(31, 100) == ([], False)
    assert index.collect(0, 5) == ([first], True)
    assert index.collect(0, 4) == ([first], True)
    assert aborted(first, second).collect(11, 21) == ([second], True)
    assert aborted(first, second).collect(11, 22) == ([second], False)


@given(st.data())
def test_a_query_misses_no_overlapping_transaction(data):
    """L10, over histories of interleaved transactions as a partition can have them."""
    open_since: dict[int, int] = {}
    index, all_aborted, offset = TransactionIndex(), [], 0
    for producer, ends in data.draw(
        st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=60)
    ):
        if ends and producer in open_since:
            first = open_since.pop(producer)
            stable = min(open_since.values(), default=offset + 1)
            all_aborted.append(AbortedTransaction(producer, first, offset, stable))
            index.append(all_aborted[-1])
        else:
            open_since.setdefault(producer, offset)
        offset += 1
    stable = min(open_since.values(), default=offset)
    upper = data.draw(st.integers(0, stable))
    fetch = data.draw(st.integers(0, upper))
    found, complete = index.collect(fetch, upper)
    needed = [e for e in all_aborted if e.last_offset >= fetch and e.first_offset < upper]
    assert set(needed) == set(found)
    if complete:
        later = [e for e in all_aborted if e.last_offset > found[-1].last_offset] if found else []
        assert not [e for e in later if e.first_offset < upper]


def test_a_transaction_index_reads_back_and_truncates():
    index = aborted((1, 0, 10, 11), (2, 12, 20, 21))
    data = index.encode()
    assert len(data) == 68
    assert data[:2] == b"\0\0"
    assert TransactionIndex.decode(data, 0).encode() == data
    assert index.encode(1) == data[34:]
    index.check(21)
    with pytest.raises(CorruptIndex, match="past"):
        index.check(20)
    index.truncate_to(20)
    assert index.encode() == data[:34]
    assert len(index) == 1
    assert index.last_offset == 10
    assert TransactionIndex().last_offset == -1
    TransactionIndex().check(0)


def test_markers_come_in_order():
    with pytest.raises(AssertionError, match="order"):
        aborted((1, 0, 10, 11), (2, 5, 10, 21))


@pytest.mark.parametrize(
    "data",
    [
        b"\0" * 33,
        b"\0\1" + aborted((1, 0, 10, 11)).encode()[2:],
        aborted((1, 0, 10, 11)).encode() * 2,
        aborted((1, 11, 10, 11)).encode(),
        aborted((1, 0, 4, 5)).encode(),
    ],
)
def test_a_damaged_transaction_index_is_noticed(data):
    with pytest.raises(CorruptIndex):
        TransactionIndex.decode(data, 5)


# ----------------------------------------------------------------------------------- segment index

batches = st.lists(
    st.tuples(st.integers(1, 20), st.integers(-1, 1000), st.integers(61, 3000)), max_size=60
)


def feed(index, steps, start=0):
    offset, position = index.offsets.base_offset, 0
    for count, timestamp, size in steps:
        if position >= start:
            index.append(offset + count - 1, timestamp, position)
        offset, position = offset + count, position + size
    return offset


@given(batches, st.sampled_from([0, 61, 1000, 4096]))
def test_an_entry_stands_before_each_interval(steps, interval):
    index = SegmentIndex(50, interval)
    feed(index, steps)
    expected, since, offset, position = [], 0, 50, 0
    for count, _, size in steps:
        if since > interval:
            expected.append((offset + count - 1, position))
            since = 0
        since += size
        offset, position = offset + count, position + size
    found = OffsetIndex.decode(index.offsets.encode(), 50)
    assert [found.floor(position) for _, position in expected] == expected
    assert len(found) == len(expected)
    assert index.max_timestamp == max((t for _, t, _ in steps), default=-1)


def test_of_equal_timestamps_the_first_offset_is_kept():
    index = SegmentIndex(0, 100)
    for offset in range(5):
        index.append(offset, 7, offset * 61)
    index.seal()
    assert index.times.last == TimeEntry(7, 0)


@given(batches, st.data())
def test_resumed_index_equals_the_uninterrupted_one(steps, data):
    """D4: cut the files anywhere, read them back, feed the rest: the same index."""
    whole = SegmentIndex(50, 1000)
    feed(whole, steps)
    part = SegmentIndex(50, 1000)
    end = feed(part, steps[: data.draw(st.integers(0, len(steps)))])
    if data.draw(st.booleans()):
        part.truncate_to(data.draw(st.integers(50, end)))
    resumed = SegmentIndex(50, 1000)
    resumed.resume(
        OffsetIndex.decode(part.offsets.encode(), 50), TimeIndex.decode(part.times.encode(), 50)
    )
    feed(resumed, steps, start=resumed.offsets.last_position)
    assert resumed.offsets.encode() == whole.offsets.encode()
    assert resumed.times.encode() == whole.times.encode()
    assert resumed.max_timestamp == whole.max_timestamp
    assert resumed.seal() == whole.seal()
    assert resumed.times.encode() == whole.times.encode()
