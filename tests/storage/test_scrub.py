"""Damage of every kind at every place of sealed segments: found, kept from readers, nothing else.

Run one seed of the random test again with ``BARNABAS_SCRUB_SEED=<seed>``.
"""

import os
from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest

from barnabas.protocol.record_decoding import iterate_records
from barnabas.storage.errors import Corrupt, OffsetOffline
from barnabas.storage.log.config import LogConfig
from barnabas.storage.log.damage import (
    DamagedRange,
    first_at_or_after,
    from_offset,
    last_before,
    with_findings,
)
from barnabas.storage.log.readable_log import READ_COMMITTED, READ_UNCOMMITTED
from barnabas.storage.log.segment_read import FileSpan, read_waiting
from barnabas.storage.log.time_lookup import offset_for_timestamp, run
from barnabas.storage.repair.scrub import (
    CHUNK_BYTES,
    check_segment,
    is_complete,
    plan_check,
    take_findings,
)
from tests.seeds import SEED
from tests.storage.cleaning import COMPACTED, compact
from tests.storage.stores import NOW_MS, Host, batch, from_producer, read_all
from tests.storage.test_cleaner_random import Reader

ROLLING = LogConfig(segment_bytes=2000, index_interval_bytes=300)
SEEDS = (
    [int(os.environ["BARNABAS_SCRUB_SEED"])] if "BARNABAS_SCRUB_SEED" in os.environ else range(40)
)
INDEX_SUFFIXES = (".index", ".timeindex", ".txnindex")


def no_pace(_size):
    """Never pause."""


def scrub(host, log=None, pace=no_pace):
    """Verify every complete segment, update the log, and return the verdicts."""
    log = log or host.log
    verdicts = []
    for segment in list(log.segments):
        if is_complete(segment):
            plan = plan_check(log, segment)
            verdict = check_segment(host.disk, plan, pace)
            take_findings(log, plan, verdict)
            verdicts.append(verdict)
    return verdicts


def busy(host, rounds=20):
    """Plain, transactional and compressed batches in some sealed segments; some are aborted."""
    for number in range(rounds):
        host.append(
            from_producer(7, 2 * number, 2, timestamp=NOW_MS + number),
            from_producer(9, number, transactional=True, timestamp=NOW_MS + number),
            batch(3, value=b"%d" % number * 30, compression=number % 5, timestamp=NOW_MS + number),
        )
        if number % 3 == 2:
            host.marker(9, commit=number % 2 == 0)
    host.checkpoint()
    assert len(host.log.segments) > 3


@pytest.fixture
def host():
    host = Host(ROLLING)
    host.boot()
    busy(host)
    return host


def places(segment):
    """(position, base offset, next offset) of each batch, and what ends the last."""
    found = [(at, header.base_offset, header.next_offset) for at, header, _ in segment.scan(0)]
    return [*found, (segment.size_bytes, segment.end_offset, segment.end_offset)]


def put(host, path, position, data):
    host.disk.open(path).pwritev([data], position)


def readable(log, before):
    """Read from every offset there is: what was written, or OffsetOffline. Answers the offsets."""
    found = set()
    for offset in range(log.log_start_offset, log.next_offset):
        for isolation in (READ_UNCOMMITTED, READ_COMMITTED):
            for max_bytes in (1, 700, 1 << 20):
                try:
                    plan = log.plan_read(offset, max_bytes, isolation)
                except OffsetOffline:
                    continue
                if plan is None:
                    continue
                if isinstance(plan, FileSpan):
                    data = bytes(plan.load(read_waiting).data)
                else:
                    data = b"".join(plan.chunks)
                first = next(
                    i for i, (header, _) in enumerate(before) if header.next_offset > offset
                )
                expected = b"".join(each for _, each in before[first:])
                assert data, f"a reader at {offset} would wait for ever"
                assert expected.startswith(data), f"a reader at {offset} gets what nobody wrote"
                if before[first][0].base_offset <= offset:
                    found.add(offset)
    return found


# ---------------------------------------------------------------------------------- single bytes


def test_sound_segments_have_no_findings(host):
    verdicts = scrub(host)
    assert len(verdicts) == len(host.log.segments) - 1
    assert [each.wrong_files for each in verdicts] == [()] * len(verdicts)
    assert host.log.damaged == []
    assert sum(each.batches for each in verdicts) == sum(
        1 for segment in host.log.segments[:-1] for _ in segment.scan(0)
    )
    for segment, verdict in zip(host.log.segments, verdicts, strict=False):
        assert verdict.index_checksum == segment.index_checksum
        assert verdict.index.offsets.encode() == segment.index.offsets.encode()
        assert verdict.index.times.encode() == segment.index.times.encode()


def test_a_flipped_byte_anywhere_takes_its_batch_offline_and_nothing_else(host):
    segment = host.log.segments[1]
    marks = places(segment)
    for (position, base, _), (following, next_base, _) in pairwise(marks):
        # Every byte of the header, and some of the records.
        for at in [*range(position, position + 61), *range(position + 61, following, 13)]:
            host.flip(segment.log_path, at)
            scrub(host)
            (found,) = host.log.damaged
            assert (found.base_offset, found.end_offset) == (base, next_base), (at, found)
            assert (found.segment, found.position, found.end_position) == (
                segment.base_offset,
                position,
                following,
            )
            host.flip(segment.log_path, at)
    scrub(host)
    assert host.log.damaged == [], "what was mended is served again"


@pytest.mark.parametrize("size", [1, 61, 200, 700, 100_000])
def test_zeros_over_many_batches(host, size):
    before = read_all(host.log)
    segment = host.log.segments[1]
    marks = places(segment)
    for position in range(0, segment.size_bytes, 97):
        content = host.disk.read_file(segment.log_path)
        end = min(position + size, segment.size_bytes)
        put(host, segment.log_path, position, bytes(end - position))
        after = host.disk.read_file(segment.log_path)
        hurt = [
            (base, next_offset)
            for (at, base, next_offset), (following, _, _) in pairwise(marks)
            if content[at:following] != after[at:following]
        ]
        scrub(host)
        if hurt:
            (found,) = host.log.damaged
            assert (found.base_offset, found.end_offset) == (hurt[0][0], hurt[-1][1])
        else:
            assert host.log.damaged == []
        offline = set(range(hurt[0][0], hurt[-1][1])) if hurt else set()
        if position % 3 == 0:
            assert readable(host.log, before) == set(range(host.log.next_offset)) - offline
        put(host, segment.log_path, 0, content)


def test_missing_or_shortened_log_file_is_damage(host):
    first, second = host.log.segments[:2]
    host.disk.unlink(first.log_path)
    marks = places(second)
    host.disk.open(second.log_path).truncate(marks[2][0] + 5)
    scrub(host)
    gone, shorter = host.log.damaged
    assert (gone.base_offset, gone.end_offset) == (0, first.end_offset)
    assert gone.reason == "the file is missing"
    assert (shorter.base_offset, shorter.end_offset) == (marks[2][1], second.end_offset)


def test_pages_that_the_disk_does_not_give(host, monkeypatch):
    segment = host.log.segments[1]
    monkeypatch.setattr("barnabas.storage.repair.scrub.PAGE_BYTES", 256)
    marks = places(segment)

    def fail(operation):
        if operation.name == "pread" and operation.path == segment.log_path:
            start = operation.position
            if start < 512 and start + operation.size > 256:
                raise OSError(5, "Input/output error")

    host.disk.before = fail
    scrub(host)
    host.disk.before = None
    (found,) = host.log.damaged
    hurt = [base for (at, base, _), (end, _, _) in pairwise(marks) if at < 512 and end > 256]
    assert found.base_offset == hurt[0]
    assert found.end_offset <= hurt[-1] + 5
    assert found.reason == "it cannot be read: [Errno 5] Input/output error"


def test_a_batch_larger_than_what_is_read_at_once():
    host = Host(LogConfig(segment_bytes=4 << 20, max_message_bytes=3 << 20))
    host.boot()
    host.append(batch(), batch(value=Random(SEED).randbytes(CHUNK_BYTES * 5 + 7)), batch())
    host.log.roll(host.store.journal.group_for(0))
    host.append(batch())
    seen = []
    (verdict,) = scrub(host, pace=seen.append)
    assert verdict.batches == 3
    assert max(seen) <= CHUNK_BYTES
    position = places(host.log.segments[0])[1][0]
    host.flip(host.log.segments[0].log_path, position + CHUNK_BYTES * 4)
    scrub(host)
    assert [(each.base_offset, each.end_offset) for each in host.log.damaged] == [(1, 2)]


def test_records_that_look_like_a_batch_are_not_taken_for_one(host):
    """The scrubber checks the batch after a damaged one before the damaged one's content."""
    host = Host(LogConfig(segment_bytes=1 << 20))
    host.boot()
    inner = bytearray(batch(2))
    inner[:8] = (2).to_bytes(8, "big")
    host.append(batch(), batch(5, value=bytes(inner)), batch())
    host.log.roll(host.store.journal.group_for(0))
    host.append(batch())
    segment = host.log.segments[0]
    position = places(segment)[1][0]
    host.flip(segment.log_path, position + 40)
    scrub(host)
    assert [(each.base_offset, each.end_offset) for each in host.log.damaged] == [(1, 6)]


# ------------------------------------------------------------------------------- everything random


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("compacted", [False, True])
def test_any_damage_anywhere(seed, compacted):
    random = Random(seed)
    host = Host(COMPACTED if compacted else ROLLING)
    host.boot()
    for number in range(60):
        host.append(
            batch(
                random.randrange(1, 4),
                key=b"%d" % random.randrange(12),
                value=random.randbytes(random.randrange(200)),
                timestamp=NOW_MS + number,
            )
        )
    if compacted:
        compact(host.log, NOW_MS + 10_000_000)
    host.checkpoint()
    host.checkpoint()
    log = host.log
    before = read_all(log)
    intact = {segment: host.disk.read_file(segment.log_path) for segment in log.segments[:-1]}
    for _ in range(random.randrange(1, 6)):
        segment = random.choice(log.segments[:-1])
        if segment.size_bytes:
            start = random.randrange(segment.size_bytes)
            size = min(random.choice([1, 1, 7, 100, 4096]), segment.size_bytes - start)
            data = random.choice([bytes(size), random.randbytes(size), b"\2" * size])
            put(host, segment.log_path, start, data)
    verdicts = scrub(host)
    offline = {
        offset for each in log.damaged for offset in range(each.base_offset, each.end_offset)
    }
    hurt = set()
    for segment, content in intact.items():
        after = host.disk.read_file(segment.log_path)
        hurt |= {
            offset
            for header, data in before
            if segment.base_offset <= header.base_offset < segment.end_offset
            for at in [content.index(data)]
            if after[at : at + len(data)] != data
            for offset in range(header.base_offset, header.next_offset)
        }
    assert hurt <= offline
    there = {
        offset for header, _ in before for offset in range(header.base_offset, header.next_offset)
    }
    served = readable(log, before)
    assert served == there - offline
    if not compacted:
        # Of two damaged places close to each other, what lies between may be given up.
        assert len(offline - hurt) <= 4 * 6
    wrong = [verdict.wrong_files for verdict in verdicts]
    assert wrong == [()] * len(verdicts), "damage of the log is none of its indexes"


# ------------------------------------------------------------------------------------- the indexes


@pytest.mark.parametrize("suffix", INDEX_SUFFIXES)
def test_an_index_with_a_flipped_byte_is_found_or_says_the_same(host, suffix):
    log = host.log
    segment = next(each for each in log.segments if len(each.transactions))
    path = segment.log_path.replace(".log", suffix)
    size = len(host.disk.read_file(path))
    assert size
    found = 0
    for position in range(size):
        host.flip(path, position)
        plan = plan_check(log, segment)
        verdict = check_segment(host.disk, plan, no_pace)
        assert verdict.damaged == ()
        found += verdict.wrong_files == (suffix,)
        if not verdict.wrong_files:
            # An entry may name another offset of its batch and mean the same.
            assert suffix in {".timeindex", ".index"}
        host.flip(path, position)
    assert found > size * 0.8


@pytest.mark.parametrize("suffix", INDEX_SUFFIXES)
def test_truncated_index_file_is_wrong(host, suffix):
    log = host.log
    segment = next(each for each in log.segments if len(each.transactions))
    path = segment.log_path.replace(".log", suffix)
    content = host.disk.read_file(path)
    step = {".index": 8, ".timeindex": 12, ".txnindex": 34}[suffix]
    host.disk.open(path).truncate(len(content) - 1)
    assert check_segment(host.disk, plan_check(log, segment), no_pace).wrong_files == (suffix,)
    host.disk.open(path).truncate(len(content) - step)
    wrong = check_segment(host.disk, plan_check(log, segment), no_pace).wrong_files
    assert wrong == (() if suffix == ".index" else (suffix,)), (
        "an offset entry less costs time only"
    )


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_no_answer_from_index_files_that_have_changed(host, suffix):
    """A running broker compares a file that it opens again with the file that it has written."""
    log = host.log
    before = read_all(log)
    timestamps = [header.max_timestamp for header, _ in before]
    expected = [run(offset_for_timestamp(log, each)) for each in timestamps]
    for segment in log.segments[:-1]:
        path = segment.log_path.replace(".log", suffix)
        for position in range(len(host.disk.read_file(path))):
            host.flip(path, position)
            segment.release_file()
            assert read_all(log, segment.base_offset) == [
                each for each in before if each[0].next_offset > segment.base_offset
            ]
            assert [run(offset_for_timestamp(log, each)) for each in timestamps] == expected
            host.flip(path, position)
            segment._indexes_written = True


def test_an_index_that_leads_astray_is_noticed_by_the_reader():
    """A reader notices it after compaction, too, where missing offsets prevent a count."""
    host = Host(replace(COMPACTED, segment_bytes=4000, index_interval_bytes=200))
    host.boot()
    for number in range(80):
        host.append(batch(key=b"%d" % (number // 2 * (number % 2)), value=b"x" * 60))
    compact(host.log, NOW_MS + 10_000_000)
    host.checkpoint()
    host.checkpoint()
    log = host.log
    before = read_all(log)
    segment = log.segments[0]
    assert segment.base_offset < log.cleaning.compacted_offset
    path = segment.log_path.replace(".log", ".index")
    content = host.disk.read_file(path)
    noticed = 0
    for entry in range(0, len(content) - 8, 8):
        # The entry's position is right, its offset is too small.
        relative = int.from_bytes(content[entry : entry + 4], "big") - 3
        put(host, path, entry, relative.to_bytes(4, "big"))
        segment.index_checksum = None  # As after a crash: nothing is known of the file.
        segment.release_file()
        for offset in range(segment.base_offset, segment.end_offset):
            wanted = [each for each in before if each[0].next_offset > offset]
            try:
                assert read_all(log, offset, max_bytes=1) == wanted
            except Corrupt:
                noticed += 1
        put(host, path, 0, content)
    assert noticed


# --------------------------------------------------------------------- what others make of it


def test_a_time_in_a_damaged_range_is_not_answered_with_a_later_one(host):
    log = host.log
    segment = log.segments[1]
    marks = places(segment)
    headers = [header for header, _ in read_all(log)]
    position, _, _ = marks[3]
    host.flip(segment.log_path, position + 70)
    scrub(host)
    damaged = log.damaged[0]
    answered = 0
    for header in headers:
        try:
            found = run(offset_for_timestamp(log, header.max_timestamp))
        except OffsetOffline:
            continue
        assert found.timestamp_ms >= header.max_timestamp
        first = next(each for each in headers if each.max_timestamp >= header.max_timestamp)
        if not damaged.base_offset <= first.base_offset < damaged.end_offset:
            assert first.base_offset <= found.offset < first.next_offset
            answered += 1
    assert answered > len(headers) // 2


def test_deleting_what_is_damaged_heals(host):
    log = host.log
    before = read_all(log)
    segment = log.segments[1]
    position, base, next_offset = places(segment)[2]
    host.flip(segment.log_path, position + 70)
    scrub(host)
    log.delete_records(base + 1)
    host.step()
    assert [(each.base_offset, each.end_offset) for each in log.damaged] == [
        (base + 1, next_offset)
    ]
    log.delete_records(next_offset)
    host.step()
    assert log.damaged == []
    assert read_all(log) == [each for each in before if each[0].base_offset >= next_offset]


def test_compaction_stops_in_front_of_what_is_damaged():
    host = Host(COMPACTED)
    host.boot()
    for number in range(100):
        host.append(batch(key=b"%d" % (number % 4), value=b"x" * 60))
    host.checkpoint()
    log = host.log
    hurt = log.segments[5]
    content = host.disk.read_file(hurt.log_path)
    host.flip(hurt.log_path, 80)
    scrub(host)
    after = [segment.base_offset for segment in log.segments[5:]]
    compact(log, NOW_MS + 10_000_000)
    assert log.segments[0].end_offset <= hurt.base_offset
    assert [
        segment.base_offset for segment in log.segments if segment.base_offset >= hurt.base_offset
    ] == after
    assert log.cleaning.compacted_offset == hurt.base_offset
    put(host, hurt.log_path, 0, content)
    host.checkpoint()
    host.checkpoint()
    scrub(host)
    assert log.damaged == []
    compact(log, NOW_MS + 10_000_000)
    assert log.cleaning.compacted_offset > hurt.end_offset


def test_compaction_does_not_copy_a_batch_with_a_wrong_offset():
    """The checksum does not cover the offset."""
    host = Host(COMPACTED)
    host.boot()
    for number in range(60):
        host.append(batch(key=b"%d" % (number % 4), value=b"x" * 60))
    host.checkpoint()
    segment = host.log.segments[2]
    host.flip(segment.log_path, places(segment)[2][0] + 7)
    with pytest.raises(Corrupt, match="a batch of offset"):
        compact(host.log, NOW_MS + 10_000_000)


# ------------------------------------------------------------------------ transactions and restarts


def with_transactions(host):
    """Two producers whose transactions overlap and end in turns; answers the committed values."""
    committed, open_values = set(), {8: [], 9: []}
    sequences = {8: 0, 9: 0}
    for number in range(60):
        producer = 8 + number % 2
        value = b"%d of %d" % (number, producer)
        host.append(
            from_producer(producer, sequences[producer], transactional=True, value=value),
            batch(value=b"plain %d" % number),
        )
        committed.add(b"plain %d" % number)
        sequences[producer] += 1
        open_values[producer].append(value)
        if number % 7 == 6:
            commit = number % 3 > 0
            host.marker(producer, commit=commit)
            if commit:
                committed |= set(open_values[producer])
            open_values[producer] = []
    for producer in (8, 9):
        host.marker(producer, commit=False)
    host.checkpoint()
    return committed


def committed_around(log, start, max_bytes):
    """Read committed records from ``start`` on, seek past damage, and return the reader."""
    reader = Reader()
    reader.position = start
    while True:
        try:
            if not reader.read(log, max_bytes):
                return set(reader.values)
        except OffsetOffline:
            reader.position = first_at_or_after(log.damaged, reader.position).end_offset


@pytest.mark.parametrize("max_bytes", [1, 1500])
def test_readers_of_committed_records_around_what_is_damaged(max_bytes):
    """Data and markers of transactions may be in it: what was aborted is never shown."""
    host = Host(ROLLING)
    host.boot()
    committed = with_transactions(host)
    log = host.log
    everything = read_all(log)
    assert committed_around(log, 0, max_bytes) == committed
    for segment in log.segments[:-1]:
        for at, _, next_offset in places(segment)[:-1]:
            host.flip(segment.log_path, at + 63)
            scrub(host)
            (damaged,) = log.damaged
            readable = {
                record.value
                for header, data in everything
                if header.base_offset != damaged.base_offset and not header.is_control
                for record in iterate_records(data, limit_bytes=1 << 20)
            }
            assert committed_around(log, 0, max_bytes) == committed & readable
            assert committed_around(log, next_offset, max_bytes) <= committed
            host.flip(segment.log_path, at + 63)


def test_a_list_of_aborted_transactions_is_not_made_of_damage():
    """Either it is what it was, or it comes from batches that are sound, or there is no start."""
    host = Host(ROLLING)
    host.boot()
    with_transactions(host)
    log = host.log
    aborted = log.aborted_transactions(0, log.next_offset)
    segment = next(each for each in log.segments if len(each.transactions))
    index = segment.log_path.replace(".log", ".txnindex")
    marker = next(at for at, header, _ in segment.scan(0) if header.is_control)
    host.shut_down()
    host.kill()
    host.flip(index, 12)
    log = host.boot()
    assert log.aborted_transactions(0, log.next_offset) == aborted
    host.shut_down()
    host.kill()
    host.flip(index, 12)
    host.flip(index, 13)
    host.flip(segment.log_path, marker + 66)
    with pytest.raises(Corrupt) as caught:
        host.boot()
    assert (caught.value.path, caught.value.position) == (segment.log_path, marker)


# --------------------------------------------------------------------- lists of ranges


def ranges(*pairs):
    return [DamagedRange(base, end, 0, base, end, "") for base, end in pairs]


def test_lists_of_ranges():
    known = ranges((10, 20), (30, 40))
    assert first_at_or_after(known, 0) == known[0]
    assert first_at_or_after(known, 19) == known[0]
    assert first_at_or_after(known, 20) == known[1]
    assert first_at_or_after(known, 40) is None
    assert last_before(known, 19) is None
    assert last_before(known, 20) == known[0]
    assert last_before(known, 40) == known[1]
    assert with_findings(known, 0, 25, ranges((5, 6))) == ranges((5, 6), (30, 40))
    assert with_findings(known, 20, 30, ()) == known
    assert [each[:2] for each in from_offset(known, 15)] == [(15, 20), (30, 40)]
    assert from_offset(known, 40) == []
