"""The rules of one partition: what is refused, where batches go, what readers see."""

from random import Random

import pytest
from crc32c import crc32c

from barnabas.protocol.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD
from barnabas.protocol.record_decoding import read_marker
from barnabas.protocol.records import control_batch, iterate_batches, read_header
from barnabas.storage.compaction.retention import apply_retention
from barnabas.storage.errors import (
    CorruptMessage,
    InvalidProducerEpoch,
    InvalidRecord,
    InvalidTimestamp,
    InvalidTransactionState,
    LogClosed,
    OffsetOutOfRange,
    OutOfOrderSequence,
    RecordTooLarge,
    TransactionCoordinatorFenced,
)
from barnabas.storage.journal.journal import WhenDurable
from barnabas.storage.log.config import COMPACT, DELETE, LOG_APPEND_TIME, LONG_MAX, LogConfig
from barnabas.storage.log.readable_log import READ_COMMITTED, READ_UNCOMMITTED
from barnabas.storage.log.segment_read import FileSpan, read_waiting
from barnabas.storage.log.time_lookup import offset_for_timestamp, offset_of_max_timestamp, run
from barnabas.storage.log.transaction_marker import TransactionMarker
from tests.storage.stores import NOW_MS, Host, batch, from_producer, read_all

CODECS = (NONE, GZIP, SNAPPY, LZ4, ZSTD)


def booted(**config):
    host = Host(LogConfig(**config))
    host.boot()
    return host


def unchanged(host, data, error):
    """Appending ``data`` is refused and leaves no trace (S5)."""
    log = host.log
    before = (log.next_offset, log.active.size_bytes, log.producers.producers(), len(log.unflushed))
    with pytest.raises(error):
        log.append(data)
    after = (log.next_offset, log.active.size_bytes, log.producers.producers(), len(log.unflushed))
    assert before == after


# ---------------------------------------------------------------------------------- what is refused


def test_a_batch_of_max_message_bytes_is_taken_and_one_byte_more_is_not():
    data = batch(value=b"v" * 100)
    host = booted(max_message_bytes=len(data))
    unchanged(host, batch(value=b"v" * 101), RecordTooLarge)
    assert host.append(data) == [0]


def test_damaged_batches_are_refused():
    host = booted()
    for position in (16, 17, 30, 61, 80):
        data = batch()
        data[position] ^= 0x55
        unchanged(host, data, (CorruptMessage, InvalidRecord))
    unchanged(host, batch()[:-1], CorruptMessage)


def test_clients_write_no_control_batches():
    marker = control_batch(7, 0, commit=True, coordinator_epoch=0, timestamp=NOW_MS)
    unchanged(booted(), memoryview(bytearray(marker)), InvalidRecord)


@pytest.mark.parametrize("codec", CODECS)
def test_a_compacted_topic_wants_keys(codec):
    host = booted(cleanup_policy=frozenset((COMPACT,)))
    unchanged(host, batch(3, key=None, compression=codec), InvalidRecord)
    assert host.append(batch(3, compression=codec)) == [0]
    assert booted(cleanup_policy=frozenset((DELETE,))).append(batch(key=None)) == [0]


@pytest.mark.parametrize("codec", CODECS)
def test_timestamps_stay_within_bounds_of_the_clock(codec):
    host = booted(timestamp_before_max_ms=1000, timestamp_after_max_ms=500)
    for offset_ms, fits in ((-1001, False), (-1000, True), (0, True), (500, True), (501, False)):
        data = batch(timestamp=NOW_MS + offset_ms, compression=codec)
        if fits:
            host.append(data)
        else:
            unchanged(host, data, InvalidTimestamp)
    # The oldest record counts, wherever it is.
    unchanged(host, batch(3, timestamp=NOW_MS - 1001, step_ms=1000), InvalidTimestamp)


def test_log_append_time_is_stamped_and_summed():
    host = booted(timestamp_type=LOG_APPEND_TIME, timestamp_before_max_ms=0)
    appended = host.log.append(batch(3, timestamp=5))
    host.step()
    assert appended.log_append_time_ms == NOW_MS
    ((header, data),) = read_all(host.log)
    assert (header.max_timestamp, header.timestamp_type) == (NOW_MS, 1)
    assert crc32c(data[21:]) == header.crc


def test_a_closed_log_takes_nothing():
    host = booted()
    log = host.log
    host.append(batch())
    log.close()
    for attempt in (
        lambda: log.append(batch()),
        lambda: log.append_marker(TransactionMarker(7, 0, coordinator_epoch=0, commit=True)),
        lambda: log.delete_records(1),
    ):
        with pytest.raises(LogClosed):
            attempt()


# ---------------------------------------------------------------------------------------- producers


def test_sequences_through_append():
    host = booted()
    assert host.append(from_producer(7, 0, 2), from_producer(7, 2, 1)) == [0, 2]
    unchanged(host, from_producer(7, 4), OutOfOrderSequence)
    assert host.append(from_producer(7, 3)) == [3], "after 45 the missing one is taken (S6)"
    assert host.append(from_producer(7, 0, epoch=1)) == [4]
    unchanged(host, from_producer(7, 4, epoch=0), InvalidProducerEpoch)


def test_a_duplicate_waits_for_its_original_while_that_is_on_its_way():
    host = booted()
    log = host.log
    first = log.append(from_producer(7, 0))
    again = log.append(from_producer(7, 0))
    assert again.base_offset == first.base_offset == 0
    assert again.group is not None
    answers = []
    again.group.add_waiter(WhenDurable(lambda: answers.append(log.high_watermark)))
    assert answers == []
    host.step()
    assert answers == [1]
    assert log.append(from_producer(7, 0)).group is None


def test_the_last_five_batches_are_answered_and_the_sixth_is_not():
    host = booted()
    host.append(*(from_producer(7, number) for number in range(6)))
    for number in range(1, 6):
        assert host.log.append(from_producer(7, number)).base_offset == number
    unchanged(host, from_producer(7, 0), OutOfOrderSequence)


def test_plain_batches_of_a_producer_with_an_open_transaction_are_refused():
    host = booted()
    host.append(from_producer(7, 0, transactional=True))
    unchanged(host, from_producer(7, 1), InvalidTransactionState)


def test_markers_of_an_older_coordinator_are_refused():
    host = booted()
    host.log.append_marker(TransactionMarker(7, 0, coordinator_epoch=5, commit=True))
    with pytest.raises(TransactionCoordinatorFenced):
        host.log.append_marker(TransactionMarker(7, 0, coordinator_epoch=4, commit=True))
    assert host.log.next_offset == 1


# ------------------------------------------------------------------------------------------ rolling


def bases(host):
    return [segment.base_offset for segment in host.log.segments]


def test_segments_roll_by_size():
    size = len(batch())
    host = booted(segment_bytes=2 * size)
    host.append(*(batch() for _ in range(5)))
    assert bases(host) == [0, 2, 4]


def test_a_batch_larger_than_a_segment_gets_one_of_its_own():
    host = booted(segment_bytes=100)
    host.append(batch(value=b"v" * 500), batch(value=b"v" * 500))
    assert bases(host) == [0, 1]


def test_segments_roll_by_the_time_of_their_batches():
    host = booted(segment_ms=1000)
    host.append(batch(timestamp=NOW_MS), batch(timestamp=NOW_MS + 1000))
    host.append(batch(timestamp=NOW_MS + 1001))
    assert bases(host) == [0, 2]


def test_segments_roll_earlier_by_a_part_of_the_jitter():
    config = LogConfig(segment_ms=1000, segment_jitter_ms=400)
    ages_ms = [config.roll_after_ms(partition_id, 0) for partition_id in range(500)]
    assert len(set(ages_ms)) > 250
    assert all(600 < age_ms <= 1000 for age_ms in ages_ms)
    assert ages_ms == [config.roll_after_ms(partition_id, 0) for partition_id in range(500)]
    assert len({config.roll_after_ms(1, base_offset) for base_offset in range(500)}) > 250
    most = LogConfig(segment_ms=1000, segment_jitter_ms=LONG_MAX)
    assert min(most.roll_after_ms(1, base_offset) for base_offset in range(500)) >= 0
    assert LogConfig(segment_ms=1000).roll_after_ms(1, 0) == 1000


def test_segment_with_jitter_rolls_at_its_own_age():
    host = booted(segment_ms=1000, segment_jitter_ms=1000)
    age_ms = host.log.config.roll_after_ms(host.log.partition_id, 0)
    assert 0 < age_ms < 1000
    host.append(batch(timestamp=NOW_MS), batch(timestamp=NOW_MS + age_ms))
    assert bases(host) == [0]
    host.append(batch(timestamp=NOW_MS + age_ms + 1))
    assert bases(host) == [0, 2]


def test_segments_roll_by_the_size_of_their_index():
    host = booted(index_interval_bytes=1, index_size_max_bytes=3 * 8)
    host.append(*(batch() for _ in range(10)))
    assert len(bases(host)) > 2
    assert all(len(segment.index.offsets) <= 3 for segment in host.log.segments)


# ------------------------------------------------------------------------------------------ reading


def a_busy_log(seed):
    """A log with several segments; its second half is in memory only, the last part not durable."""
    random = Random(seed)
    host = booted(segment_bytes=3000, index_interval_bytes=200)
    for number in range(60):
        host.log.append(batch(random.choice((1, 2, 7)), value=b"v" * random.randrange(200)))
        if number % 4 == 0:
            host.step()
    host.step()
    written = host.log.next_offset
    # Durable, but the segment thread has not come round yet.
    submitted = []
    host.store._runner.submit = submitted.append
    for _ in range(10):
        host.log.append(batch(random.choice((1, 3)), value=b"v" * random.randrange(200)))
        host.step()
    for group in submitted:
        host.store._runner._committer.commit([group])
    for _ in range(3):
        host.log.append(batch())
    return host, written


def test_a_long_read_knows_how_far_the_written_ones_go_though_the_index_is_ahead():
    """Else all of it would be copied instead of sent from the page cache."""
    host, written = a_busy_log(1)
    last = next(each for each in host.log.segments if each.end_offset >= written)
    assert last.index.offsets.last_position >= last.written_bytes
    plan = host.log.plan_read(last.base_offset, 1 << 20)
    assert plan.position < plan.boundary < plan.end_position
    assert plan.boundary == last.index.offsets.floor(last.written_bytes - 1)[1]


@pytest.mark.parametrize("seed", range(3))
def test_reads_at_every_offset_give_whole_batches_below_the_high_watermark(seed):
    host, written = a_busy_log(seed)
    log = host.log
    assert written < log.high_watermark < log.next_offset
    every = read_all(log)
    assert [header.base_offset for header, _ in every] == sorted({h.base_offset for h, _ in every})
    assert every[-1][0].next_offset == log.high_watermark
    from_file = 0
    for offset in range(log.high_watermark):
        expected = [item for item in every if item[0].next_offset > offset]
        for max_bytes in (0, 1, 150, 1000, 100_000):
            plan = log.plan_read(offset, max_bytes)
            if isinstance(plan, FileSpan):
                from_file += 1
                loaded = plan.load(read_waiting)
                data, upper = bytes(loaded.data), loaded.upper_offset
            else:
                data, upper = b"".join(plan.chunks), plan.upper_offset
                assert plan.size_bytes == len(data)
            got = [(header, data[at : at + header.size]) for at, header in iterate_batches(data)]
            assert got, "at least one batch"
            assert got == expected[: len(got)]
            assert sum(len(each) for _, each in got) == len(data), "no part of a batch"
            assert len(data) <= max(max_bytes, got[0][0].size)
            assert upper >= got[-1][0].next_offset
    assert 0 < from_file < 5 * log.high_watermark
    for offset in range(log.high_watermark, log.next_offset + 1):
        assert log.plan_read(offset, 1000) is None
    for offset in (-1, log.next_offset + 1):
        with pytest.raises(OffsetOutOfRange):
            log.plan_read(offset, 1000)


def test_batch_that_is_durable_but_not_written_is_read_from_memory_l8():
    host = booted()
    groups = []
    host.store._runner.submit = groups.append
    host.append(batch(value=b"first"))
    host.append(batch(value=b"second"))
    committer = host.store._runner._committer
    committer.commit(groups[:1])
    committer.write_segments()
    committer.commit(groups[1:])
    assert host.log.high_watermark == 2
    assert [header.base_offset for header, _ in read_all(host.log)] == [0, 1]
    assert b"second" in bytes(host.log.plan_read(1, 1000).chunks[0])


@pytest.mark.parametrize("timestamp_ms", [NOW_MS - 100_000, NOW_MS + 100_000])
def test_producers_expire_by_the_brokers_clock_t2(timestamp_ms):
    host = booted()
    host.append(from_producer(7, 0, timestamp=timestamp_ms))
    assert host.log.producers.expire(NOW_MS + 999, 1000) == 0
    assert host.log.producers.expire(NOW_MS + 1000, 1000) == 1


def client_sees(data, aborted):
    """Return the base offsets of a Fetch that a `read_committed` consumer delivers."""
    pending = sorted(aborted, key=lambda entry: entry.first_offset)
    active = set()
    seen = []
    for at, header in iterate_batches(data):
        while pending and pending[0].first_offset <= header.last_offset:
            active.add(pending.pop(0).producer_id)
        if header.is_control:
            if not read_marker(data[at : at + header.size]).commit:
                active.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in active):
            seen.append(header.base_offset)
    return seen


@pytest.mark.parametrize("seed", range(6))
def test_a_committed_reader_sees_exactly_what_is_committed(seed):
    """L1 to L6 for every start and several sizes, with the client's own algorithm."""
    random = Random(seed)
    host = booted(segment_bytes=1500, index_interval_bytes=150)
    log = host.log
    sequences = dict.fromkeys((11, 12, 13), 0)
    open_batches: dict[int, list[int]] = {}
    decided: dict[int, bool] = {}
    for _ in range(150):
        producer = random.choice((11, 12, 13))
        action = random.random()
        if action < 0.5:
            data = from_producer(producer, sequences[producer], transactional=True)
            sequences[producer] += 1
            open_batches.setdefault(producer, []).append(log.append(data).base_offset)
        elif action < 0.7:
            decided[log.append(batch()).base_offset] = True
        elif producer in open_batches:
            commit = random.random() < 0.5
            log.append_marker(TransactionMarker(producer, 0, coordinator_epoch=1, commit=commit))
            decided.update(dict.fromkeys(open_batches.pop(producer), commit))
        if random.random() < 0.5:
            host.step()
        stable = log.last_stable_offset
        first_open = min((each[0] for each in open_batches.values()), default=log.next_offset)
        assert log.log_start_offset <= stable <= min(log.high_watermark, first_open)
    host.step()
    stable = log.last_stable_offset
    assert stable == min((each[0] for each in open_batches.values()), default=log.high_watermark)
    for start in range(stable + 1):
        for max_bytes in (1, 400, 100_000):
            check_committed_read(log, start, max_bytes, stable, decided)


def test_decided_transactions_are_forgotten_without_reads():
    """The state must not grow with the traffic, although no reader gets the last stable offset."""
    host = booted()

    def remembered():
        return len(host.log.producers._decided)

    for sequence in range(50):
        host.log.append(from_producer(7, sequence, transactional=True))
        host.marker(7, commit=True)
        assert remembered() <= 1
    host.kill()
    host.boot()
    assert remembered() == 0, "recovery replayed all of them"


def test_of_what_is_decided_and_not_durable_only_what_holds_readers_back_is_kept():
    host = booted()
    for producer in range(50):
        host.log.append(from_producer(producer, 0, transactional=True))
    for producer in reversed(range(50)):
        host.log.append_marker(TransactionMarker(producer, 0, coordinator_epoch=1, commit=True))
    assert len(host.log.producers._decided) == 1
    assert host.log.last_stable_offset == 0
    host.step()
    assert host.log.last_stable_offset == 100


def check_committed_read(log, start, max_bytes, stable, decided):
    position, seen = start, []
    while (plan := log.plan_read(position, max_bytes, READ_COMMITTED)) is not None:
        loaded = plan.load(read_waiting)
        aborted = log.aborted_transactions(position, loaded.upper_offset)
        seen += client_sees(loaded.data, aborted)
        *_, (_, last) = iterate_batches(loaded.data)
        assert position < last.next_offset <= stable
        position = last.next_offset
    assert position == stable
    assert seen == [
        offset
        for offset, committed in sorted(decided.items())
        if committed and start <= offset < stable
    ]


def test_leader_epochs_and_their_ends():
    host = Host()
    for count in (3, 0, 2):
        host.boot()
        for _ in range(count):
            host.append(batch())
        host.shut_down()
    log = host.boot()
    assert log.leader_epochs == [(1, 0), (3, 3)]
    assert log.end_offset_for_epoch(1) == (1, 3)
    assert log.end_offset_for_epoch(2) == (1, 3)
    assert log.end_offset_for_epoch(3) == (3, 5)
    assert log.end_offset_for_epoch(4) == (4, 5)
    assert [log.epoch_at(offset) for offset in (0, 2, 3, 4)] == [1, 1, 3, 3]
    assert {read_header(data).partition_leader_epoch for _, data in read_all(log)} == {1, 3}


# --------------------------------------------------------------------------------- look-ups by time


def brute_force(records, timestamp_ms):
    return next(((at, offset) for offset, at in records if at >= timestamp_ms), None)


@pytest.mark.parametrize("seed", range(4))
def test_look_ups_by_time_against_brute_force(seed):
    random = Random(seed)
    host = booted(segment_bytes=1500, index_interval_bytes=150)
    log = host.log
    records = []
    for _ in range(60):
        start, step = NOW_MS + random.randrange(-1000, 1000), random.choice((-3, 0, 4))
        count = random.choice((1, 3))
        base = log.append(
            batch(count, timestamp=start, step_ms=step, compression=random.choice(CODECS))
        ).base_offset
        records += [(base + at, start + at * step) for at in range(count)]
    host.step()
    log.delete_records(random.randrange(40))
    host.step()
    visible = [item for item in records if item[0] >= log.log_start_offset]
    log.append(batch(timestamp=NOW_MS + 5000))  # Not visible yet.
    for timestamp_ms in range(NOW_MS - 1010, NOW_MS + 1010, 7):
        found = run(offset_for_timestamp(log, timestamp_ms))
        assert (found and found[:2]) == brute_force(visible, timestamp_ms)
    largest = max(at for _, at in visible)
    found = run(offset_of_max_timestamp(log))
    assert found[:2] == (largest, next(offset for offset, at in visible if at == largest))


def test_look_ups_by_time_stop_at_the_isolation_levels_end():
    host = booted()
    host.append(batch(timestamp=NOW_MS), from_producer(7, 0, transactional=True))
    host.append(batch(timestamp=NOW_MS + 10))
    assert run(offset_for_timestamp(host.log, NOW_MS + 5, READ_UNCOMMITTED)).offset == 2
    assert run(offset_for_timestamp(host.log, NOW_MS + 5, READ_COMMITTED)) is None
    assert run(offset_for_timestamp(booted().log, 0)) is None
    assert run(offset_of_max_timestamp(booted().log)) is None


# ----------------------------------------------------------------------------- log start, retention


def test_deleting_records_is_bounded_by_the_high_watermark_and_durable_first():
    host = booted(segment_bytes=300)
    host.append(*(batch() for _ in range(12)))
    log = host.log
    log.append(batch())
    for offset in (-2, log.high_watermark + 1):
        with pytest.raises(OffsetOutOfRange):
            log.delete_records(offset)
    group = log.delete_records(7)
    assert log.log_start_offset == 0
    host.step()
    assert group.durable
    assert log.log_start_offset == 7
    assert log.delete_records(7) is None
    with pytest.raises(OffsetOutOfRange):
        log.plan_read(6, 100)
    files = len(host.files(".log"))
    host.checkpoint()
    host.step()
    assert len(host.files(".log")) < files
    log.delete_records(-1)
    host.step()
    assert log.log_start_offset == log.high_watermark == 13


def test_a_roll_drops_segments_whose_records_are_all_deleted():
    host = booted(segment_bytes=300)
    while host.log.active.base_offset == 0:
        host.log.delete_records(-1)
        host.step()
        host.append(batch())
    assert host.log.segments == [host.log.active]


def test_retention_by_time_and_size_stops_at_the_last_stable_offset():
    size = len(batch())
    for config in ({"retention_ms": 1000}, {"retention_bytes": 2 * size, "retention_ms": -1}):
        host = booted(segment_bytes=2 * size, **config)
        host.append(*(batch() for _ in range(4)))
        host.append(from_producer(7, 0, transactional=True))
        host.append(*(batch() for _ in range(6)))
        host.now_ms += 10_000
        apply_retention(host.log, host.store.journal, host.now_ms)
        host.step()
        assert host.log.log_start_offset == 4, "K5: the open transaction stays"
        host.marker(7, commit=True)
        apply_retention(host.log, host.store.journal, host.now_ms)
        host.step()
        assert host.log.log_start_offset > 6


def test_retention_spares_what_is_young_or_small_enough():
    size = len(batch())
    host = booted(segment_bytes=2 * size, retention_ms=1000, retention_bytes=100 * size)
    host.append(*(batch() for _ in range(8)))
    assert apply_retention(host.log, host.store.journal, NOW_MS + 1000) is None
    host.append(*(batch(timestamp=NOW_MS + 900) for _ in range(2)))
    apply_retention(host.log, host.store.journal, NOW_MS + 1001)
    host.step()
    assert host.log.log_start_offset == 8
    assert (
        apply_retention(
            booted(cleanup_policy=frozenset((COMPACT,)), retention_ms=0).log,
            host.store.journal,
            10**15,
        )
        is None
    )
