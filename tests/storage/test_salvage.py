"""Logs that a start refuses: a repair brings them to where one starts, and all that is sound stays.

As ``barnabas check --repair`` does it (``broker/cli/directory/repair.py``), on the simulated disk.
"""

import pytest

from barnabas.protocol.records import iterate_batches
from barnabas.storage.errors import Corrupt
from barnabas.storage.log.config import LogConfig
from barnabas.storage.log.readable_log import READ_COMMITTED
from barnabas.storage.repair.check import verify
from barnabas.storage.repair.repair import cut_out, find_damage, is_hole
from barnabas.storage.repair.salvage import Salvage
from tests.crash.crashes import Keep
from tests.storage.stores import Host, batch, from_producer, read_all
from tests.storage.test_repair import no_pace, sound, without_holes

ROLLING = LogConfig(segment_bytes=2000, index_interval_bytes=200)
WIDE = LogConfig(segment_bytes=1 << 20, index_interval_bytes=200)


def salvaged(host):
    """Boot where a start refuses; answers what was found, and cuts it out."""
    image = host.disk.crash(Keep())
    with pytest.raises(Corrupt) as refused:
        host.boot()
    host.disk = image
    salvage = Salvage()
    log = host.boot(salvage)
    assert str(refused.value) in [reason for _, reason in salvage.refusals]
    found = list(find_damage(log, no_pace))
    if any(each.segment == log.active.base_offset for each in found):
        log.roll(host.store.journal.group_for(0))
    host.checkpoint()
    list(cut_out(log, found))
    host.step()
    host.checkpoint()
    host.checkpoint()
    return salvage, found


def assert_starts(host, before, found):
    """Check that all undamaged records are served, also after a kill, and that appends work."""
    end = before[-1][0].next_offset
    for _ in range(2):
        assert without_markers(without_holes(read_all(host.log))) == without_markers(
            sound(before, found)
        )
        assert list(find_damage(host.log, no_pace)) == []
        assert verify(host.log) == []
        assert host.log.next_offset == end
        host.kill()
        host.boot()
    assert host.append(batch()) == [end]


def without_markers(batches):
    return [each for each in batches if not each[0].is_control]


def filled(config):
    """A killed host: half of what the log has is in the checkpoint, half in the journal alone."""
    host = Host(config)
    host.boot()
    for number in range(30):
        host.append(from_producer(7, number), batch(2, value=b"%d" % number * 20))
        if number == 14:
            host.checkpoint()
    return host, read_all(host.log)


@pytest.mark.parametrize("place", [17, 70, 700, 1500])
def test_a_flipped_byte_in_the_active_segment(place):
    host, before = filled(WIDE)
    path = host.log.active.log_path
    host.kill()
    host.flip(path, place)
    _, found = salvaged(host)
    assert len(found) == 1
    assert found[0].end_offset - found[0].base_offset <= 3
    assert_starts(host, before, found)


@pytest.mark.parametrize("left", [None, 0, 700])
def test_an_active_segment_that_is_missing_or_short(left):
    host, before = filled(WIDE)
    path = host.log.active.log_path
    host.kill()
    if left is None:
        host.disk.unlink(path)
    else:
        host.disk.open(path).truncate(left)
    _, found = salvaged(host)
    assert [each.base_offset for each in found] == [0 if not left else found[0].base_offset]
    assert found[0].end_offset < before[-1][0].next_offset, "what the journal has is still there"
    assert_starts(host, before, found)


def test_several_places_of_the_active_segment():
    host, before = filled(WIDE)
    path = host.log.active.log_path
    marks = [at for at, _, _ in host.log.active.scan(0)]
    host.kill()
    for mark in (marks[2], marks[9], marks[20]):
        host.flip(path, mark + 65)
    _, found = salvaged(host)
    assert len(found) == 3
    assert_starts(host, before, found)


def test_a_crash_before_the_cut_leaves_a_log_that_starts():
    host, before = filled(WIDE)
    host.kill()
    host.flip(f"/data/topic-0/{0:020d}.log", 70)
    log = host.boot(Salvage())
    found = list(find_damage(log, no_pace))
    log.roll(host.store.journal.group_for(0))
    host.checkpoint()
    host.kill()
    log = host.boot()
    assert list(find_damage(log, no_pace)) == found
    assert log.next_offset == before[-1][0].next_offset


def aborting(host):
    """Producer 9 aborts, then commits; answers where its first marker and its data are."""
    host.append(from_producer(9, 0, transactional=True, value=b"aborted" * 40))
    host.append(batch())
    host.marker(9, commit=False)
    host.append(from_producer(9, 1, transactional=True, value=b"committed" * 40))
    host.marker(9, commit=True)
    host.append(batch())


def committed_values(host):
    """Return the values that a `read_committed` consumer delivers, by markers and the list."""
    log = host.log
    aborted = sorted(log.aborted_transactions(0, log.next_offset), key=lambda each: each[1])
    ignored, offsets = set(), []
    for header, data in read_all(log, isolation=READ_COMMITTED):
        while aborted and aborted[0].first_offset <= header.last_offset:
            ignored.add(aborted.pop(0).producer_id)
        if header.is_control:
            ignored.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in ignored):
            offsets += [header.base_offset] * bool(header.record_count)
            assert list(iterate_batches(memoryview(data)))
    return offsets


@pytest.mark.parametrize("sealed", [False, True])
def test_the_marker_of_an_aborted_transaction(sealed):
    """The repair cuts the marker out: the transaction stays hidden, the next one is visible."""
    host = Host(WIDE)
    host.boot()
    aborting(host)
    assert committed_values(host) == [1, 3, 5]
    if sealed:
        host.log.roll(host.store.journal.group_for(0))
    host.checkpoint()
    (mark,) = [at for at, each, _ in host.log.segments[0].scan(0) if each.base_offset == 2]
    path = host.log.segments[0].log_path
    host.kill()
    host.flip(path, mark + 65)
    if sealed:
        log = host.boot()
        found = list(find_damage(log, no_pace))
        list(cut_out(log, found))
        host.step()
        host.checkpoint()
    else:
        salvage, found = salvaged(host)
        ((_, abandoned),) = salvage.abandoned
        assert abandoned[:2] == (9, 0)
    assert [each[:2] for each in found] == [(2, 3)]
    for _ in range(2):
        assert committed_values(host) == [1, 3, 5]
        assert host.log.last_stable_offset == host.log.next_offset
        host.kill()
        host.boot()


def test_a_batch_that_is_no_marker_ends_no_transaction():
    host = Host(WIDE)
    host.boot()
    host.append(from_producer(9, 0, transactional=True, value=b"first" * 40))
    host.append(batch(value=b"damaged" * 40))
    host.marker(9, commit=True)
    host.checkpoint()
    (mark,) = [at for at, each, _ in host.log.active.scan(0) if each.base_offset == 1]
    path = host.log.active.log_path
    host.kill()
    host.flip(path, mark + 100)
    salvage, found = salvaged(host)
    assert [each[:2] for each in found] == [(1, 2)]
    assert salvage.abandoned == []
    assert committed_values(host) == [0]


def rolled():
    """A killed host with many sealed segments in its checkpoint."""
    host = Host(ROLLING)
    host.boot()
    for number in range(40):
        host.append(from_producer(7, number), batch(2, value=b"%d" % number * 20))
    host.checkpoint()
    assert len(host.log.segments) > 4
    return host, read_all(host.log)


@pytest.mark.parametrize("which", [0, 1, -2])
@pytest.mark.parametrize("left", [None, 0.0, 0.5])
@pytest.mark.parametrize("indexes", [True, False])
def test_a_sealed_segment_that_is_missing_or_short(which, left, indexes):
    host, before = rolled()
    segment = host.log.segments[which]
    host.kill()
    if left is None:
        host.disk.unlink(segment.log_path)
    else:
        host.disk.open(segment.log_path).truncate(int(segment.size_bytes * left))
    if not indexes:
        for suffix in (".index", ".timeindex"):
            host.disk.unlink(segment.log_path.replace(".log", suffix))
    _, found = salvaged(host)
    assert found[-1].end_offset == segment.end_offset
    assert found[0].base_offset >= segment.base_offset
    if not left:
        assert (found[0].base_offset, found[0].end_offset) == (
            segment.base_offset,
            segment.end_offset,
        )
    assert_starts(host, before, found)


@pytest.mark.parametrize("left", [None, 0.0, 0.5])
def test_the_refusal_names_the_segment(left):
    host, _ = rolled()
    segment = host.log.segments[1]
    host.kill()
    if left is None:
        host.disk.unlink(segment.log_path)
    else:
        host.disk.open(segment.log_path).truncate(int(segment.size_bytes * left))
    with pytest.raises(Corrupt) as refused:
        host.boot()
    assert refused.value.path == segment.log_path
    assert "missing" in refused.value.reason or "ends here" in refused.value.reason


def test_a_hole_is_all_that_is_left_of_a_missing_segment():
    host, _ = rolled()
    segment = host.log.segments[2]
    host.kill()
    host.disk.unlink(segment.log_path)
    salvaged(host)
    holes = [header for header, _ in read_all(host.log) if is_hole(header)]
    assert [(each.base_offset, each.next_offset) for each in holes] == [
        (segment.base_offset, segment.end_offset)
    ]


# ------------------------------------------------------------------------------------- the journal


def written_in_two_topics():
    """A killed host; each turn is one group with a batch for each topic."""
    host = Host(WIDE, topics=("first", "second"))
    host.boot()
    for number in range(200):
        for log in host.store.logs.values():
            log.append(from_producer(7, number, value=b"%d" % number * 1000))
        host.step()
        if number == 49:
            host.checkpoint()
    ends = [log.next_offset for log in host.store.logs.values()]
    assert ends == [200, 200]
    host.kill()
    return host


JOURNAL_DAMAGE = ("missing", "short", "zeros", "flipped", "as before")


def lose_journal(host, how):
    """Do something to the newest file of the journal that is used."""
    paths = host.files("barnabas-journal-", directory="")
    path = max(paths, key=lambda path: host.disk.read_file(path).rstrip(b"\0")[16:24][::-1])
    file = host.disk.open(path)
    if how == "missing":
        host.disk.unlink(path)
    elif how == "short":
        file.truncate(8192)
    elif how == "zeros":
        file.pwritev([bytes(file.size())], 0)
    elif how == "flipped":
        host.flip(path, 8192 + 4)
    else:
        for each in paths:
            other = host.disk.open(each)
            other.pwritev([bytes(other.size())], 0)


@pytest.mark.parametrize("how", JOURNAL_DAMAGE)
def test_a_lost_end_of_the_journal(how):
    host = written_in_two_topics()
    lose_journal(host, how)
    image = host.disk.crash(Keep())
    with pytest.raises(Corrupt):
        host.boot()
    host.disk = image
    salvage = Salvage()
    host.boot(salvage)
    loss = salvage.journal_loss
    assert loss is not None
    assert loss.is_known
    assert loss.last_sequence >= loss.first_sequence
    first, second = host.store.logs.values()
    assert first.next_offset == second.next_offset, "one moment of both"
    end = first.next_offset
    assert 50 <= end < 200
    lost = [(log, base, reach) for log, base, reach in salvage.lost_offsets()]
    assert lost == [(first, end, 200), (second, end, 200)]
    # The producers are as they were then: what is sent again is taken, once.
    for number in range(end, 210):
        for log in host.store.logs.values():
            assert log.append(from_producer(7, number)).base_offset == number
        host.step()
    for _ in range(2):
        for log in host.store.logs.values():
            assert log.next_offset == 210
            assert verify(log) == []
            assert [each.base_offset for each, _ in read_all(log)] == list(range(210))
        host.kill()
        host.boot()


def test_a_mark_that_is_missing():
    host = written_in_two_topics()
    host.disk.unlink("/data/barnabas-commit-mark")
    with pytest.raises(Corrupt):
        host.boot()
    host.kill()
    salvage = Salvage()
    assert host.boot(salvage).next_offset == 200
    assert salvage.journal_loss is not None
    assert not salvage.journal_loss.is_known
    assert list(salvage.lost_offsets()) == []
    host.kill()
    assert host.boot().next_offset == 200
