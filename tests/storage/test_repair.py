"""Cutting damage out: the rest stays, the bytes are kept, a crash leaves one or the other."""

from random import Random

import pytest

from barnabas.protocol.record_decoding import iterate_records
from barnabas.protocol.records import read_header
from barnabas.storage.log.config import LogConfig
from barnabas.storage.log.readable_log import READ_COMMITTED
from barnabas.storage.log.segment_names import SEGMENT_SUFFIXES
from barnabas.storage.repair.check import verify
from barnabas.storage.repair.repair import cut_out, find_damage, is_hole
from tests.crash.crashes import Keep
from tests.storage.stores import Host, batch, from_producer, read_all

ROLLING = LogConfig(segment_bytes=1500, index_interval_bytes=200)


def no_pace(_size):
    """Never pause."""


@pytest.fixture
def host():
    host = Host(ROLLING)
    host.boot()
    for number in range(20):
        host.append(
            from_producer(7, 2 * number, 2),
            from_producer(9, number, transactional=True),
            batch(3, value=b"%d" % number * 30, compression=number % 5),
        )
        if number % 3 == 2:
            host.marker(9, commit=number % 2 == 0)
    host.checkpoint()
    return host


def damage(host):
    """Two places in one segment, one in another; answers all ranges."""
    first, second = host.log.segments[1], host.log.segments[3]
    marks = [at for at, _, _ in first.scan(0)]
    host.flip(first.log_path, marks[1] + 70)
    host.flip(first.log_path, marks[4] + 2)
    host.disk.open(second.log_path).pwritev([bytes(300)], second.size_bytes - 300)
    for segment in (first, second):
        host.disk.open(segment.log_path).fdatasync()
    found = list(find_damage(host.log, no_pace))
    assert len(found) == 3
    return found


def repair(host, found):
    kept = list(cut_out(host.log, found))
    host.step()
    host.checkpoint()
    host.checkpoint()
    return kept


def sound(before, found):
    """Return the batches that are not damaged."""
    return [
        each
        for each in before
        if not any(
            damaged.base_offset <= each[0].base_offset < damaged.end_offset for damaged in found
        )
    ]


def without_holes(batches):
    return [each for each in batches if not is_hole(each[0])]


def test_everything_else_stays(host):
    before = read_all(host.log)
    committed = read_all(host.log, isolation=READ_COMMITTED)
    aborted = host.log.aborted_transactions(0, host.log.next_offset)
    end = host.log.next_offset
    found = damage(host)
    contents = [
        host.disk.read_file(f"/data/topic-0/{each.segment:020d}.log")[
            each.position : each.end_position
        ]
        for each in found
    ]
    kept = repair(host, found)
    assert [host.disk.read_file(path) for path in kept] == contents
    for _ in range(2):
        log = host.log
        assert list(find_damage(log, no_pace)) == []
        assert verify(log) == []
        after = read_all(log)
        assert without_holes(after) == sound(before, found)
        holes = [header for header, _ in after if is_hole(header)]
        assert [(each.base_offset, each.next_offset) for each in holes] == [
            (each.base_offset, each.end_offset) for each in found
        ]
        assert without_holes(read_all(log, isolation=READ_COMMITTED)) == sound(committed, found)
        assert log.aborted_transactions(0, log.next_offset) == aborted
        assert log.next_offset == end
        for offset in range(end):
            assert read_all(log, offset, max_bytes=1) == [
                each for each in after if each[0].next_offset > offset
            ]
        host.shut_down()
        host.kill()
        host.boot()
    assert host.append(batch()) == [end]


def test_a_hole_is_a_batch_that_clients_know(host):
    found = damage(host)
    repair(host, found)
    (header, data), *_ = [each for each in read_all(host.log) if is_hole(each[0])]
    assert read_header(data) == header
    assert list(iterate_records(data, limit_bytes=1 << 20)) == []


def test_a_segment_of_which_nothing_is_left(host):
    before = read_all(host.log)
    segment = host.log.segments[2]
    host.disk.open(segment.log_path).pwritev([bytes(segment.size_bytes)], 0)
    (found,) = find_damage(host.log, no_pace)
    repair(host, [found])
    host.kill()
    host.boot()
    after = without_holes(read_all(host.log))
    markers = [
        each for each in after if found.base_offset <= each[0].base_offset < found.end_offset
    ]
    assert [each for each in after if each not in markers] == sound(before, [found])
    lost = [each for each, _ in before if each.is_control and each not in [h for h, _ in after]]
    assert {each[0].base_offset for each in markers} <= {each.base_offset for each in lost}
    assert all(each[0].is_control for each in markers)
    assert verify(host.log) == []


@pytest.mark.parametrize("loss", ["kill", "power"])
def test_a_crash_at_any_operation(host, loss):
    before = read_all(host.log)
    found = damage(host)
    host.store.lock.release()
    images = []

    def after(operation):
        draw = Keep(operation.number) if loss == "kill" else Random(operation.number)
        images.append(host.disk.crash(draw))

    host.disk.after = after
    repair(host, found)
    host.disk.after = None
    assert len(images) > 30
    old = new = 0
    for image in images:
        again = Host(ROLLING, disk=image)
        again.boots = host.boots
        names = set(image.list_directory("/data/topic-0"))
        again.boot()
        left = list(find_damage(again.log, no_pace))
        assert without_holes(sound(read_until_damage(again.log, left), found)) == sound(
            before, found
        )
        if left:
            assert left == found
            old += 1
        else:
            assert len([name for name in names if name.endswith(".damaged")]) == len(found)
            new += 1
    assert old
    assert new


def read_until_damage(log, damaged):
    """Every batch that is sound, around what is damaged."""
    log.damaged = list(damaged)
    offset, batches = log.log_start_offset, []
    for each in [*damaged, None]:
        while offset < (each.base_offset if each else log.next_offset):
            batches += (read := read_some(log, offset))
            offset = read[-1][0].next_offset
        offset = each.end_offset if each else offset
    log.damaged = []
    return batches


def read_some(log, offset):
    class Limited:
        """The log up to what one read gives."""

        log_start_offset = log.log_start_offset
        reads = 0

        def plan_read(self, at, max_bytes, isolation):
            self.reads += 1
            return log.plan_read(at, max_bytes, isolation) if self.reads == 1 else None

    return read_all(Limited(), offset)


def test_names_of_what_is_kept_are_no_segments():
    assert not any(".damaged".endswith(suffix) for suffix in SEGMENT_SUFFIXES)
