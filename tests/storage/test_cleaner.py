"""Compaction, rule by rule, on a store that is compacted, killed and started again."""

from dataclasses import replace

import pytest

from barnabas.protocol.compression import NAMES, NONE, ZSTD
from barnabas.protocol.record_decoding import iterate_records
from barnabas.protocol.records import HEADER_BYTES, Record, encode_batch, read_header
from barnabas.protocol.records import seal as sealed
from barnabas.storage.compaction.cleanable import survey
from barnabas.storage.compaction.retention import apply_retention
from barnabas.storage.errors import Corrupt
from barnabas.storage.log.config import COMPACT, DELETE, LOG_APPEND_TIME, LONG_MAX
from barnabas.storage.log.readable_log import READ_COMMITTED
from barnabas.storage.log.segment_swap import take_over
from barnabas.storage.log.time_lookup import offset_for_timestamp, offset_of_max_timestamp, run
from barnabas.storage.log.transaction_marker import TransactionMarker
from barnabas.storage.repair.check import verify
from tests.storage.cleaning import COMPACTED, clean_groups, compact
from tests.storage.stores import NOW_MS, Host, read_all

FILLER = b"f" * 900


@pytest.fixture
def host():
    host = Host(COMPACTED)
    host.boot()
    return host


def keyed(*pairs, first_timestamp=NOW_MS, compression=0, **producer):
    """One batch of (key, value) pairs; a value of None is a tombstone."""
    records = [
        Record(at, first_timestamp + at, key, value, ()) for at, (key, value) in enumerate(pairs)
    ]
    return memoryview(bytearray(encode_batch(records, compression=compression, **producer)))


def transactional(producer_id, sequence, *pairs, epoch=0, **more):
    return keyed(
        *pairs,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=True,
        **more,
    )


def idempotent(producer_id, sequence, *pairs, epoch=0):
    return keyed(*pairs, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)


def seal(host):
    """End the active segment, so that all before it can be cleaned."""
    host.log.roll(host.store.journal.group_for(0))
    host.step()
    host.append(keyed((b"filler", b"active")))


def run_pass(host, *, after_ms=0):
    """One pass, put in place by a checkpoint; the log must be in order after it."""
    host.now_ms += after_ms
    compact(host.log, host.now_ms)
    assert verify(host.log) == []
    host.checkpoint()
    host.checkpoint()
    assert verify(host.log) == []
    assert host.failures == []


def restart(host):
    host.kill()
    host.boot()
    assert verify(host.log) == []


def records_of(log, isolation=0):
    """(offset, key, value) of every data record of the log, below the active segment."""
    return [
        (record.offset, record.key, record.value)
        for header, data in read_all(log, isolation=isolation)
        if not header.is_control
        for record in iterate_records(data, limit_bytes=1 << 20)
        if record.key != b"filler"
    ]


def batches_of(log):
    return [header for header, _ in read_all(log) if header.next_offset <= log.active.base_offset]


def shape(log):
    """Base offset, last offset and record count of every batch below the active segment."""
    return [(each.base_offset, each.last_offset, each.record_count) for each in batches_of(log)]


# ------------------------------------------------------------------------------ keys and tombstones


@pytest.mark.parametrize("compression", range(len(NAMES)), ids=NAMES)
def test_the_latest_record_of_every_key_stays_where_it_was(host, compression):
    host.append(
        keyed((b"a", b"1"), (b"b", b"1"), (b"a", b"2"), compression=compression),
        keyed((b"c", b"1"), compression=compression),
        keyed((b"b", b"2"), (b"c", b"2"), compression=compression),
    )
    seal(host)
    run_pass(host)
    expected = [(2, b"a", b"2"), (4, b"b", b"2"), (5, b"c", b"2")]
    assert records_of(host.log) == expected
    assert shape(host.log) == [(0, 2, 1), (4, 5, 2)]
    restart(host)
    assert records_of(host.log) == expected


def test_timestamps_and_headers_of_what_stays(host):
    records = [
        Record(0, NOW_MS + 7, b"a", b"old", ()),
        Record(1, NOW_MS + 3, b"b", b"kept", (("h", b"x"), ("h", None))),
        Record(2, NOW_MS + 9, b"a", b"old", ()),
    ]
    host.append(memoryview(bytearray(encode_batch(records))), keyed((b"a", b"new")))
    seal(host)
    run_pass(host)
    ((header, data), *_) = read_all(host.log)
    (record,) = iterate_records(data, limit_bytes=1000)
    assert record == records[1]
    assert header.max_timestamp == NOW_MS + 3
    assert header.last_offset == 2


def test_the_active_segment_is_not_touched(host):
    host.append(keyed((b"a", b"1")), keyed((b"a", b"2")))
    run_pass(host)
    assert len(records_of(host.log)) == 2
    seal(host)
    host.append(keyed((b"a", b"3")))
    run_pass(host)
    assert records_of(host.log) == [(1, b"a", b"2"), (3, b"a", b"3")]


def test_a_tombstone_goes_after_its_retention(host):
    host.append(keyed((b"a", b"1"), (b"b", b"1")), keyed((b"a", None), (b"c", b"1")))
    seal(host)
    run_pass(host)
    assert records_of(host.log) == [(1, b"b", b"1"), (2, b"a", None), (3, b"c", b"1")]
    with_tombstone = batches_of(host.log)[1]
    assert with_tombstone.attributes & 0x40
    assert with_tombstone.base_timestamp == NOW_MS + COMPACTED.delete_retention_ms
    seal(host)
    run_pass(host, after_ms=COMPACTED.delete_retention_ms - 1)
    assert (2, b"a", None) in records_of(host.log)
    assert batches_of(host.log)[1].base_timestamp == with_tombstone.base_timestamp
    seal(host)
    run_pass(host, after_ms=1)
    assert records_of(host.log) == [(1, b"b", b"1"), (3, b"c", b"1")]
    restart(host)
    assert records_of(host.log) == [(1, b"b", b"1"), (3, b"c", b"1")]


def test_timestamps_survive_a_delete_horizon(host):
    host.append(keyed((b"a", None), (b"b", b"1"), first_timestamp=NOW_MS + 5))
    seal(host)
    run_pass(host)
    (header, data) = read_all(host.log)[0]
    stored = [record.timestamp for record in iterate_records(data, limit_bytes=1000)]
    assert stored == [NOW_MS + 5, NOW_MS + 6]
    assert header.max_timestamp == NOW_MS + 6


def test_a_key_that_is_written_again_needs_no_tombstone(host):
    host.append(keyed((b"a", b"1")), keyed((b"a", None)), keyed((b"a", b"2")))
    seal(host)
    run_pass(host)
    assert records_of(host.log) == [(2, b"a", b"2")]


def test_a_record_without_a_key_goes(host):
    host.log.configure(replace(COMPACTED, cleanup_policy=frozenset((DELETE,))))
    host.append(keyed((None, b"1"), (b"a", b"1")))
    host.log.configure(COMPACTED)
    seal(host)
    run_pass(host)
    assert records_of(host.log) == [(1, b"a", b"1")]


def test_long_keys_and_short_ones(host):
    keys = [bytes([number]) * size for number in range(3) for size in (1, 14, 15, 16, 17, 300)]
    for value in (b"1", b"2"):
        host.append(*(keyed((key, value)) for key in keys))
    seal(host)
    run_pass(host)
    assert [key for _, key, value in records_of(host.log) if value == b"2"] == keys
    assert len(records_of(host.log)) == len(keys)


def test_log_append_time_stays(host):
    host.log.configure(replace(COMPACTED, timestamp_type=LOG_APPEND_TIME))
    host.append(keyed((b"a", b"1"), (b"b", b"1"), first_timestamp=5), keyed((b"a", b"2")))
    seal(host)
    host.now_ms += 100
    run_pass(host)
    header = batches_of(host.log)[0]
    assert (header.record_count, header.max_timestamp) == (1, NOW_MS)


# ----------------------------------------------------------------------------- segments and offsets


def fill(host, rounds=10, keys=5):
    """Several sealed segments over which the same keys are written again and again."""
    for number in range(rounds):
        for key in range(keys):
            host.append(keyed((b"key %d" % key, b"%d " % number + b"v" * 60)))
    seal(host)


def test_segments_grow_together(host):
    fill(host)
    before = len(host.log.segments)
    end = host.log.next_offset
    run_pass(host)
    run_pass(host)  # Only now are they known to be small.
    assert before > 5
    assert len(host.log.segments) < before / 2
    assert host.log.segments[0].base_offset == 0
    assert host.log.next_offset == end
    assert [value[:2] for _, _, value in records_of(host.log)] == [b"9 "] * 5
    names = [segment.stem for segment in host.log.segments]
    assert [path.rpartition("/")[2] for path in host.files(".log")] == [f"{n}.log" for n in names]
    restart(host)
    assert len(records_of(host.log)) == 5


def test_a_fetch_in_a_gap_gets_what_follows(host):
    fill(host)
    run_pass(host)
    for again in range(2):
        kept = sorted(header.last_offset for header, _ in read_all(host.log))
        for offset in range(host.log.next_offset):
            header, _ = read_all(host.log, offset, max_bytes=1)[0]
            assert header.last_offset == min(end for end in kept if end >= offset)
        if not again:
            restart(host)


def test_segments_that_lose_everything_still_touch(host):
    host.append(*(keyed((b"a", b"%d" % number * 200)) for number in range(20)))
    host.append(keyed((b"a", b"last" * 300)))
    seal(host)
    run_pass(host)
    assert [key for _, key, _ in records_of(host.log)] == [b"a"]
    ends = [segment.end_offset for segment in host.log.segments[:-1]]
    assert ends == [segment.base_offset for segment in host.log.segments[1:]]
    assert ends == [segment.data_end_offset for segment in host.log.segments[:-1]]
    restart(host)
    assert ends == [segment.data_end_offset for segment in host.log.segments[:-1]]


def test_a_second_pass_changes_nothing(host):
    fill(host)
    for _ in range(4):
        run_pass(host)
    before = read_all(host.log)
    paths = host.files(".log")
    inodes = [id(host.disk.open(path)._inode) for path in paths]
    compact(host.log, host.now_ms)
    assert host.log.cleaning.swaps_under_way == 0
    assert read_all(host.log) == before
    assert [id(host.disk.open(path)._inode) for path in paths] == inodes
    assert host.files(".cleaned") == []


def test_many_passes_when_the_keys_do_not_fit(host):
    fill(host)
    passes = 0
    while host.log.cleaning.clean_offset < host.log.active.base_offset:
        before = host.log.cleaning.clean_offset
        compact(host.log, host.now_ms, map_bytes=3 * 192)
        host.checkpoint()
        assert host.log.cleaning.clean_offset > before
        assert verify(host.log) == []
        passes += 1
    assert passes > 3
    assert [value[:2] for _, _, value in records_of(host.log)] == [b"9 "] * 5


def test_offsets_by_time(host):
    fill(host)
    run_pass(host)
    youngest = run(offset_of_max_timestamp(host.log))
    assert youngest.offset in {header.last_offset for header, _ in read_all(host.log)}
    found = run(offset_for_timestamp(host.log, NOW_MS))
    assert found.offset == records_of(host.log)[0][0]


def test_max_timestamp_ignores_compacted_records(host):
    host.append(keyed((b"a", b"1"), first_timestamp=NOW_MS + 500), keyed((b"a", b"2")))
    seal(host)
    run_pass(host)
    assert run(offset_of_max_timestamp(host.log)).timestamp_ms == NOW_MS
    restart(host)
    assert run(offset_of_max_timestamp(host.log)).timestamp_ms == NOW_MS


def test_deleted_records_stay_deleted(host):
    fill(host)
    host.log.delete_records(7)
    host.step()
    run_pass(host)
    assert host.log.log_start_offset == 7
    restart(host)
    assert host.log.log_start_offset == 7
    host.log.delete_records(host.log.segments[0].end_offset)
    host.step()
    host.checkpoint()
    restart(host)
    assert host.log.segments[0].base_offset > 0


def test_a_pass_that_began_when_the_last_swap_was_still_in_the_checkpoint(host):
    fill(host)
    compact(host.log, host.now_ms)
    host.checkpoint()  # It names the swaps; their files have their names by now.
    before = read_all(host.log)
    next(clean_groups(host.log, host.now_ms))
    restart(host)
    assert read_all(host.log) == before


def test_records_deleted_between_a_pass_and_its_checkpoint(host):
    fill(host)
    compact(host.log, host.now_ms)
    host.log.delete_records(host.log.segments[-1].base_offset)
    host.step()
    host.checkpoint()
    host.checkpoint()
    restart(host)
    assert len(host.files(".log")) == 1
    assert host.files(".cleaned") == []


def test_compact_and_delete(host):
    host.log.configure(
        replace(COMPACTED, cleanup_policy=frozenset((COMPACT, DELETE)), retention_ms=10_000)
    )
    fill(host)
    run_pass(host)
    host.now_ms += 20_000
    apply_retention(host.log, host.store.journal, host.now_ms)
    host.step()
    assert host.log.log_start_offset == host.log.next_offset
    run_pass(host)
    restart(host)
    assert records_of(host.log) == []


def test_readers_keep_the_old_file(host):
    fill(host)
    span = host.log.plan_read(0, 1 << 20)
    before = bytes(span.load(lambda file, size, at: file.pread(size, at)).data)
    run_pass(host)
    assert bytes(span.load(lambda file, size, at: file.pread(size, at)).data) == before


# --------------------------------------------------------------------------------- when it is time


def test_only_when_enough_is_dirty(host):
    host.log.configure(replace(COMPACTED, min_cleanable_dirty_ratio=0.5))
    fill(host)
    assert survey(host.log, host.now_ms).is_due(0.5)
    run_pass(host)
    clean = survey(host.log, host.now_ms)
    assert (clean.dirty_bytes, clean.is_due(0.0)) == (0, False)
    host.append(keyed((b"x", b"y")))
    seal(host)
    barely = survey(host.log, host.now_ms)
    assert 0 < barely.dirty_ratio < 0.5
    assert not barely.is_due(0.5)


def test_the_maximum_lag():
    host = Host(replace(COMPACTED, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=1000))
    host.boot()
    fill(host)
    assert not survey(host.log, NOW_MS + 1000).is_due(1.0)
    assert survey(host.log, NOW_MS + 1001).is_due(1.0)
    restart(host)
    assert survey(host.log, NOW_MS + 1001).is_due(1.0)


def test_segments_roll_within_the_maximum_lag(host):
    host.log.configure(replace(COMPACTED, max_compaction_lag_ms=1000))
    host.append(keyed((b"a", b"1")), keyed((b"a", b"2"), first_timestamp=NOW_MS + 1001))
    assert len(host.log.segments) == 2
    assert replace(COMPACTED, max_compaction_lag_ms=LONG_MAX).roll_ms == COMPACTED.segment_ms


def test_the_minimum_lag(host):
    host.log.configure(replace(COMPACTED, min_compaction_lag_ms=1000))
    fill(host)
    first_end = host.log.segments[0].end_offset
    assert survey(host.log, NOW_MS + 900).segments == 0
    late = keyed((b"key 0", b"late"), first_timestamp=NOW_MS + 2000)
    host.append(late)
    seal(host)
    run_pass(host, after_ms=1500)
    assert host.log.cleaning.clean_offset >= first_end
    assert (b"key 0", b"late") in [(key, value) for _, key, value in records_of(host.log)]
    assert host.log.cleaning.clean_offset < host.log.active.base_offset


def test_survey_skips_a_log_during_a_scan(host):
    fill(host)
    host.log.cleaning.scans = 1
    assert survey(host.log, host.now_ms) is None
    host.log.cleaning.scans = 0
    assert survey(host.log, host.now_ms) is not None


def test_other_topics_are_left_alone(host):
    fill(host)
    host.log.configure(replace(COMPACTED, cleanup_policy=frozenset((DELETE,))))
    assert survey(host.log, host.now_ms) is None


# ------------------------------------------------------------------------------------ transactions


def abort(host, producer_id, epoch=0):
    host.marker(producer_id, commit=False, epoch=epoch)


def commit(host, producer_id, epoch=0):
    host.marker(producer_id, commit=True, epoch=epoch)


def controls(log):
    return [
        (header.base_offset, header.record_count) for header in batches_of(log) if header[5] & 32
    ]


def test_aborted_data_goes_and_hides_nothing(host):
    host.append(keyed((b"a", b"committed")))
    host.append(transactional(7, 0, (b"a", b"aborted"), (b"z", b"aborted")))
    abort(host, 7)
    seal(host)
    run_pass(host)
    assert records_of(host.log) == [(0, b"a", b"committed")]
    assert records_of(host.log, READ_COMMITTED) == [(0, b"a", b"committed")]
    restart(host)
    assert records_of(host.log) == [(0, b"a", b"committed")]


def test_committed_data_is_compacted_like_any_other(host):
    host.append(keyed((b"a", b"1")), transactional(7, 0, (b"a", b"2"), (b"b", b"1")))
    commit(host, 7)
    host.append(keyed((b"b", b"2")))
    seal(host)
    run_pass(host)
    assert records_of(host.log, READ_COMMITTED) == [(1, b"a", b"2"), (4, b"b", b"2")]
    assert controls(host.log) == [(3, 1)]


@pytest.mark.parametrize("is_commit", [True, False], ids=["commit", "abort"])
def test_a_marker_goes_after_its_data_and_its_retention(host, is_commit):
    host.append(transactional(7, 0, (b"a", b"1")), transactional(8, 0, (b"b", b"1")))
    host.marker(7, commit=is_commit)
    commit(host, 8)
    host.append(keyed((b"a", b"2")), transactional(7, 1, (b"later", b"1")))
    commit(host, 7)
    seal(host)
    run_pass(host)
    assert controls(host.log)[0] == (2, 1)
    marker = next(header for header in batches_of(host.log) if header.is_control)
    # A pass that still met aborted data does not start the clock, committed data was overtaken.
    assert not marker.attributes & 0x40
    seal(host)
    run_pass(host)
    marker = next(header for header in batches_of(host.log) if header.is_control)
    assert marker.attributes & 0x40
    assert marker.base_timestamp == host.now_ms + COMPACTED.delete_retention_ms
    assert host.log.aborted_transactions(0, 100) == []
    seal(host)
    run_pass(host, after_ms=COMPACTED.delete_retention_ms - 1)
    assert controls(host.log)[0] == (2, 1)
    seal(host)
    run_pass(host, after_ms=1)
    assert [offset for offset, _ in controls(host.log)] == [3, 6]
    restart(host)
    assert (5, b"later", b"1") in records_of(host.log, READ_COMMITTED)


def test_the_index_keeps_what_still_has_data(host):
    host.append(transactional(7, 0, (b"a", b"1")))
    abort(host, 7)
    host.append(transactional(7, 1, (b"a", b"2")))
    commit(host, 7)
    seal(host)
    run_pass(host)
    # This pass removed the data; a reader of an earlier fetch still needs the entry.
    assert [entry.first_offset for entry in host.log.aborted_transactions(0, 100)] == [0]
    restart(host)
    assert [entry.first_offset for entry in host.log.aborted_transactions(0, 100)] == [0]
    seal(host)
    run_pass(host)
    assert host.log.aborted_transactions(0, 100) == []
    restart(host)
    assert host.log.aborted_transactions(0, 100) == []
    assert records_of(host.log, READ_COMMITTED) == [(2, b"a", b"2")]


def test_nothing_above_the_last_stable_offset(host):
    host.append(keyed((b"a", b"1")), keyed((b"a", b"2" * 900)))
    host.append(transactional(7, 0, (b"a", b"open")))
    host.append(keyed((b"a", b"3")), keyed((b"a", b"4" * 900)))
    seal(host)
    before = read_all(host.log)
    run_pass(host)
    stable = host.log.last_stable_offset
    assert stable == 2
    assert host.log.cleaning.clean_offset <= stable
    after = read_all(host.log)
    assert after[-4:] == before[-4:]
    commit(host, 7)
    seal(host)
    run_pass(host)
    assert [value[:1] for _, _, value in records_of(host.log)] == [b"4"]


def test_a_transaction_that_a_later_segment_ends(host):
    """The marker is above the cleanable end, the data below, and only the index has both."""
    host.append(keyed((b"a", b"1")), transactional(7, 0, (b"a", b"aborted"), (b"b", FILLER)))
    host.append(transactional(8, 0, (b"c", b"open")))
    abort(host, 7)
    seal(host)
    host.log.roll(host.store.journal.group_for(0))
    run_pass(host)
    assert host.log.last_stable_offset == 3
    assert records_of(host.log)[0] == (0, b"a", b"1")
    commit(host, 8)
    seal(host)
    run_pass(host)
    assert records_of(host.log, READ_COMMITTED) == [(0, b"a", b"1"), (3, b"c", b"open")]


# --------------------------------------------------------------------------------------- producers


def test_the_last_sequence_of_a_producer_survives(host):
    host.append(*(idempotent(7, number, (b"a", b"%d" % number)) for number in range(3)))
    host.append(keyed((b"a", b"other")))
    seal(host)
    run_pass(host)
    kept = [header for header in batches_of(host.log) if header.producer_id == 7]
    assert [(each.base_sequence, each.record_count) for each in kept] == [(2, 0)]
    for path in host.files(".snapshot"):
        host.disk.unlink(path)
    restart(host)
    assert host.log.producers.entry(7).last_sequence == 2
    assert host.append(idempotent(7, 2, (b"a", b"2"))) == [2]
    host.append(idempotent(7, 3, (b"a", b"3")))


def test_an_empty_batch_goes_once_the_producer_has_written_on(host):
    host.append(idempotent(7, 0, (b"a", b"1")), keyed((b"a", b"2")))
    seal(host)
    run_pass(host)
    assert (0, 0, 0) in shape(host.log)
    host.append(idempotent(7, 1, (b"b", b"1")))
    seal(host)
    run_pass(host)
    assert (0, 0, 0) not in shape(host.log)


def test_a_marker_is_kept_empty_for_its_producers_epoch(host):
    host.append(transactional(7, 0, (b"a", b"1")), keyed((b"a", b"2")))
    host.log.append_marker(
        TransactionMarker(7, 1, coordinator_epoch=1, commit=True, transaction_version=2)
    )
    host.step()
    for wait_ms in (0, 0, COMPACTED.delete_retention_ms + 1, 0):
        seal(host)
        run_pass(host, after_ms=wait_ms)
    assert controls(host.log) == [(2, 0)]
    restart(host)
    assert records_of(host.log, READ_COMMITTED) == [(1, b"a", b"2")]


# ------------------------------------------------------------------------------------------ damage


def test_damage_ends_a_pass_and_is_not_written_again(host):
    fill(host)
    path = host.files(".log")[2]
    content = host.disk.read_file(path)
    host.flip(path, 70)
    before = host.disk.read_file(path)
    with pytest.raises(Corrupt, match="checksum"):
        compact(host.log, host.now_ms)
    assert host.disk.read_file(path) == before != content
    assert host.files(".cleaned") == []


def test_a_missing_segment_is_found(host):
    host.append(*(keyed((b"%d" % number, b"v" * 300)) for number in range(20)))
    seal(host)
    run_pass(host)
    assert len(host.log.segments) > 3
    host.kill()
    host.disk.unlink(host.files(".log")[1])
    with pytest.raises(Corrupt, match="sealed segments hold"):
        host.boot()


def test_a_lost_list_of_aborted_transactions_is_found_again(host):
    host.append(keyed((b"a", b"1")))
    host.append(transactional(7, 0, (b"b", FILLER)))
    abort(host, 7)
    seal(host)
    run_pass(host)
    host.kill()
    for path in host.files(".txnindex"):
        host.disk.unlink(path)
    host.boot()
    assert verify(host.log) == []
    assert records_of(host.log, READ_COMMITTED) == [(0, b"a", b"1")]


def test_gaps_where_nothing_was_compacted_are_damage(host):
    fill(host)
    run_pass(host)
    host.log.cleaning.compacted_offset = 0
    assert any("expected" in problem for problem in verify(host.log))
    with pytest.raises(Corrupt, match="not where it should be"):
        read_all(host.log)


def test_leftovers_of_an_interrupted_pass_go(host):
    fill(host)
    before = read_all(host.log)
    next(clean_groups(host.log, host.now_ms))
    assert host.files(".cleaned")
    restart(host)
    assert host.files(".cleaned") == []
    assert read_all(host.log) == before
    run_pass(host)


GARBAGE = {
    "noise": lambda good: reseal(good, bytes(range(7, 60))),
    "the last record": lambda good: reseal(good, bytes(good[HEADER_BYTES:-1]) + b"\7"),
    "offsets of others": lambda good: reseal(
        good, bytes(good[HEADER_BYTES:]).replace(b"\0\2\2\2", b"\0\2\x7e\2")
    ),
    "no such frame": lambda good: reseal(good, b"(\xb5/\xfd nothing", compression=ZSTD),
}


def reseal(good, body, *, compression=NONE):
    header = read_header(good)
    return memoryview(sealed(header._replace(attributes=compression), body))


@pytest.mark.parametrize("kind", GARBAGE)
def test_garbage_under_a_valid_checksum_is_kept_and_the_rest_compacted(host, kind):
    good = keyed((b"a", b"garbage"), (b"b", b"garbage"), (b"c", b"garbage"))
    garbage = GARBAGE[kind](good)
    for value in (b"1", b"2"):
        host.append(keyed((b"a", value), (b"b", value)))
    host.log.append_records(garbage)  # As without a scan of clients' batches.
    host.step()
    host.append(keyed((b"c", b"3")))
    seal(host)
    groups = list(clean_groups(host.log, host.now_ms))
    for group in groups:
        assert take_over(host.log, group)
    found = [group.unreadable for group in groups if group.unreadable is not None]
    assert [(each.first_offset, each.batches) for each in found] == [(4, 1)]
    host.checkpoint()
    host.checkpoint()
    assert verify(host.log) == []
    restart(host)
    kept = batches_below_the_active(host.log)
    assert [bytes(batch)[21:] for batch in kept if batch[61:] == garbage[61:]] == [
        bytes(garbage)[21:]
    ]
    readable = [
        record[:4]
        for batch in kept
        if batch[61:] != garbage[61:]
        for record in iterate_records(batch, limit_bytes=1 << 20)
    ]
    assert [(record[0], record[2], record[3]) for record in readable] == [
        (2, b"a", b"2"),
        (3, b"b", b"2"),
        (7, b"c", b"3"),
    ]


def batches_below_the_active(log):
    return [
        bytes(batch)
        for segment in log.segments[:-1]
        for _, header, batch in segment.scan(0)
        if header.record_count
    ]


@pytest.mark.parametrize("kind", GARBAGE)
def test_times_are_looked_up_over_garbage(host, kind):
    host.append(keyed((b"a", b"1"), first_timestamp=1000))
    good = keyed((b"a", b"g"), (b"b", b"g"), (b"c", b"g"), first_timestamp=2000)
    host.log.append_records(GARBAGE[kind](good))
    host.step()
    host.append(keyed((b"a", b"3"), first_timestamp=3000))
    seal(host)
    host.step()
    assert run(offset_for_timestamp(host.log, 1000)).offset == 0
    assert run(offset_for_timestamp(host.log, 2000)).offset == 1
    assert run(offset_for_timestamp(host.log, 2500)).offset == 4
    assert run(offset_of_max_timestamp(host.log)).offset == 5
