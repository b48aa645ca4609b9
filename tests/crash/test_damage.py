"""Damage on disk: what is derived is rebuilt, what is not is named and refused (D7)."""

from dataclasses import replace
from random import Random

import pytest

from barnabas.storage.errors import Corrupt
from barnabas.storage.journal.journal_files import JournalFiles
from barnabas.storage.journal.journal_format import BLOCK_BYTES, MAGIC, padded
from barnabas.storage.log.config import LogConfig
from barnabas.storage.log.producer_snapshot import CorruptSnapshot, decode_snapshot
from barnabas.storage.repair.check import verify
from tests.crash.checker import digest
from tests.crash.crashes import Keep
from tests.storage.golden import unmarked_files
from tests.storage.stores import ROOT, Host, batch, from_producer, read_all

JOURNAL = f"{ROOT}/barnabas-journal-0000"
MARK = f"{ROOT}/barnabas-commit-mark"
CHECKPOINTS = [f"{ROOT}/barnabas-checkpoint-{number}" for number in range(2)]
ROLLING = LogConfig(segment_bytes=1000, index_interval_bytes=100)


def groups(host, path=JOURNAL):
    """Positions of the groups in a journal file."""
    data = host.disk.read_file(path)
    return [at for at in range(0, len(data), BLOCK_BYTES) if data.startswith(MAGIC, at)]


@pytest.fixture
def host():
    host = Host(ROLLING)
    host.boot()
    return host


def busy(host):
    """A log with sealed segments, aborted transactions and two producers; then more of it."""
    for round_number in range(20):
        host.append(
            from_producer(7, 2 * round_number, 2),
            from_producer(9, round_number, transactional=True),
        )
        if round_number % 3 == 2:
            host.marker(9, commit=round_number % 2 == 0)
    assert len(host.log.segments) > 3


# ------------------------------------------------------------------------------- the journal


def lose_marks(disk):
    """Erase the marks as a power loss may: no file states how far the journal had come."""
    disk.open(MARK).pwritev([bytes(8192)], 32768)


def test_a_torn_last_group_is_cut(host):
    host.append(batch())
    host.append(batch())
    host.flip(JOURNAL, groups(host)[1] + 100)
    host.kill()
    lose_marks(host.disk)
    assert host.boot().next_offset == 1


def test_a_damaged_last_group_that_was_durable_refuses_to_start(host):
    host.append(batch())
    host.append(batch())
    position = groups(host)[1]
    host.flip(JOURNAL, position + 100)
    host.kill()
    with pytest.raises(Corrupt) as caught:
        host.boot()
    assert (caught.value.path, caught.value.position) == (JOURNAL, position)


@pytest.mark.parametrize("part", [0, 20, 30, 60, 100, 150])
def test_damage_before_a_good_group_refuses_to_start(host, part):
    for _ in range(3):
        host.append(batch())
    position = groups(host)[1]
    host.flip(JOURNAL, position + part)
    host.kill()
    with pytest.raises(Corrupt) as caught:
        host.boot()
    assert caught.value.path == JOURNAL
    assert caught.value.position == position


def test_the_guard_of_torn_versus_corrupt_is_what_refuses(host, monkeypatch):
    monkeypatch.setattr(JournalFiles, "_refuse_later_groups", lambda *_: None)
    for _ in range(3):
        host.append(batch())
    host.flip(JOURNAL, groups(host)[1] + 60)
    host.kill()
    lose_marks(host.disk)
    assert host.boot().next_offset == 1, "without the guard two appends are silently lost"


def test_damage_in_the_first_group_of_a_later_file_refuses_to_start(host):
    for _ in range(12):
        host.append(batch(value=b"v" * 60_000))
    second = f"{ROOT}/barnabas-journal-0001"
    host.flip(second, 0)
    host.kill()
    with pytest.raises(Corrupt):
        host.boot()


def test_every_byte_of_a_group_is_checked(host):
    """A flipped byte anywhere in the only group is a torn group; in the padding it is nothing."""
    host.append(from_producer(7, 0, 2))
    (start,) = groups(host)
    end = len(host.disk.read_file(JOURNAL)[start : start + BLOCK_BYTES].rstrip(b"\0"))
    for position in range(end):
        again = Host(ROLLING, disk=host.disk.crash(Keep()))
        again.boots = host.boots
        again.flip(JOURNAL, start + position)
        lose_marks(again.disk)
        assert again.boot().next_offset == 0, f"byte {position} of a group is not checked"


def test_groups_of_a_recycled_file_never_come_back(host):
    """The file's old groups are whole and lie right behind the new ones."""
    for number in range(40):
        host.append(batch(value=b"%d" % number))
    for number in range(8):
        # More than fits: the journal goes round into the first file.
        host.append(batch(value=bytes([number]) * 60_000))
        host.checkpoint()
    host.append(batch(value=b"new"))
    before = read_all(host.log)
    host.kill()
    host.boot()
    assert read_all(host.log) == before
    assert verify(host.log) == []


def test_a_journal_file_that_is_missing_leaves_its_number_unused(host):
    for _ in range(12):
        host.append(batch(value=b"v" * 60_000))
    host.checkpoint()
    host.shut_down()
    host.disk.unlink(JOURNAL)
    host.boot()
    for _ in range(24):
        host.append(batch(value=b"v" * 60_000))
    assert host.log.next_offset == 36
    names = host.files("barnabas-journal", "")
    assert len(names) == len(set(names)) > 2
    host.kill()
    host.boot()
    assert host.log.next_offset == 36


# ------------------------------------------------------------------- which files there must be


def over_several_files(host):
    """Records over three journal files and a spare one, all needed by the next start."""
    for _ in range(12):
        host.append(batch(value=b"v" * 60_000))
    return host.files("barnabas-journal-", "")


def lose_power(host):
    """The machine goes at once: what is synced has to be enough."""
    host.disk = host.disk.crash(Random(7))


@pytest.mark.parametrize("end", [Host.kill, lose_power])
@pytest.mark.parametrize("number", range(4))
def test_a_missing_journal_file_refuses_to_start_by_name(host, number, end):
    paths = over_several_files(host)
    assert len(paths) == 4, "three with groups and the spare one"
    end(host)
    host.disk.unlink(paths[number])
    with pytest.raises(Corrupt, match="the file is missing") as caught:
        host.boot()
    assert caught.value.path == paths[number]


@pytest.mark.parametrize("end", [Host.kill, lose_power])
@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("left", [0.0, 0.5, 0.999])
def test_a_journal_file_that_is_too_short_refuses_to_start_by_name(host, number, left, end):
    path = over_several_files(host)[number]
    end(host)
    file = host.disk.open(path)
    size = int(file.size() * left)
    file.truncate(size)
    with pytest.raises(Corrupt, match="the file ends here") as caught:
        host.boot()
    assert (caught.value.path, caught.value.position) == (path, size)


def test_an_older_copy_of_the_newest_journal_file_refuses_to_start(host):
    older = host.disk.read_file(JOURNAL)
    for _ in range(3):
        host.append(batch())
        copies = [older, host.disk.read_file(JOURNAL)]
    host.append(batch())
    host.kill()
    for copy in copies:
        again = Host(ROLLING, disk=host.disk.crash(Keep()))
        again.disk.open(JOURNAL).pwritev([copy], 0)
        with pytest.raises(Corrupt, match="was durable"):
            again.boot()


def test_journal_files_with_swapped_names_are_still_read(host):
    paths = over_several_files(host)
    before = read_all(host.log)
    host.kill()
    first, second = (host.disk.read_file(path) for path in paths[:2])
    host.disk.open(paths[0]).pwritev([second], 0)
    host.disk.open(paths[1]).pwritev([first + bytes(5000)], 0)
    host.boot()
    assert read_all(host.log) == before


@pytest.mark.parametrize("number", [1, 4, 5], ids=["middle", "next file", "last"])
def test_a_group_of_a_copy_that_went_on_apart_refuses_to_start(host, number):
    """The group is whole, its number and offsets are right, but it followed another group (D7)."""
    host.append(batch())
    host.kill()
    one, other = (Host(ROLLING, disk=host.disk.crash(Keep())) for _ in range(2))
    for copy, size in ((one, 60_000), (other, 59_999)):
        copy.boots = host.boots
        copy.boot()
        for _ in range(6):
            copy.append(batch(value=b"v" * size))
    paths = one.files("barnabas-journal-", "")
    places = [(path, position) for path in paths for position in groups(one, path)]
    assert places == [(path, at) for path in paths for at in groups(other, path)]
    assert len(places) == 6
    path, position = places[number]
    foreign = other.disk.open(path).pread(padded(60_000), position)
    one.kill()
    one.disk.open(path).pwritev([foreign], position)
    with pytest.raises(Corrupt) as caught:
        one.boot()
    assert (caught.value.path, caught.value.position) == (path, position)


def test_a_refused_start_changes_nothing(host):
    """Segments that a later start would rebuild stay, too: they may be all that is left."""
    busy(host)
    path = host.files("barnabas-journal-", "")[-1]
    host.kill()
    data = host.disk.read_file(path)
    host.disk.unlink(path)
    with pytest.raises(Corrupt):
        host.boot()
    names = host.disk.list_directory(ROOT)
    for name in [each for each in names if host.disk.is_directory(f"{ROOT}/{each}")]:
        assert host.disk.operations == 1, "only the removal above"
        assert host.files("", name)
    host.disk.open(path, create=True).pwritev([data], 0)
    host.kill()
    assert verify(host.boot()) == []


def test_a_missing_mark_refuses_to_start_after_a_kill_and_is_made_again_after_a_stop(host):
    host.append(batch())
    host.kill()
    mark = host.disk.read_file(MARK)
    host.disk.unlink(MARK)
    with pytest.raises(Corrupt, match="it is missing") as caught:
        host.boot()
    assert caught.value.path == MARK
    host.kill()
    host.disk.open(MARK, create=True).pwritev([mark], 0)
    host.boot()
    host.shut_down()
    host.disk.unlink(MARK)
    host.boot()
    host.append(batch())
    host.kill()
    assert host.boot().next_offset == 2


def test_a_directory_of_a_release_without_a_mark_still_opens():
    host = Host(LogConfig(segment_bytes=20_000, index_interval_bytes=500))
    host.disk.make_directory(f"{ROOT}/topic-0")
    for name, data in unmarked_files().items():
        host.disk.open(f"{ROOT}/{name}", create=True).pwritev([data], 0)
    assert not host.disk.exists(MARK)
    assert host.boot().next_offset == 52
    assert host.report.journal_groups == 4
    assert verify(host.log) == []
    host.append(from_producer(7, 24, 2))
    before = read_all(host.log)
    host.kill()
    host.boot()
    assert read_all(host.log) == before
    host.kill()
    host.disk.unlink(MARK)
    with pytest.raises(Corrupt, match="it is missing"):
        host.boot()


# --------------------------------------------------------------------------- the checkpoints


@pytest.mark.parametrize("damaged", CHECKPOINTS)
def test_one_damaged_checkpoint_falls_back_to_the_other(host, damaged):
    host.checkpoint()
    host.append(batch(3))
    host.flip(damaged, 40)
    host.kill()
    assert host.boot().next_offset == 3


@pytest.mark.parametrize("damaged", CHECKPOINTS)
def test_a_clean_stop_is_no_end_when_the_checkpoint_after_it_is_damaged(host, damaged):
    host.append(batch(3))
    host.shut_down()
    host.boot()
    host.append(batch(2))
    host.kill()
    host.flip(damaged, 40)
    assert host.boot().next_offset == 5
    assert verify(host.log) == []


@pytest.mark.parametrize("age", range(1, 5))
def test_older_copies_of_the_checkpoints_lose_nothing_in_silence(host, age):
    copies = []
    for number in range(6):
        for _ in range(3):
            host.append(batch(value=b"%d" % number * 60_000))
        host.checkpoint()
        copies.append({path: host.disk.read_file(path) for path in CHECKPOINTS})
    host.append(batch())
    before = read_all(host.log)
    host.kill()
    for path, data in copies[-1 - age].items():
        host.disk.unlink(path)
        host.disk.open(path, create=True).pwritev([data], 0)
    try:
        host.boot()
    except Corrupt:
        assert age > 1, "the journal still has all that follows the one before the last"
    else:
        assert read_all(host.log) == before


@pytest.mark.parametrize("clean", [True, False])
def test_start_without_any_checkpoint_is_refused(host, clean):
    host.append(batch(3))
    if clean:
        host.shut_down()
    host.kill()
    kept = {path: host.disk.read_file(path) for path in CHECKPOINTS if host.disk.exists(path)}
    for path in kept:
        host.disk.unlink(path)
    with pytest.raises(Corrupt, match="both checkpoint files are missing"):
        host.boot()
    host.kill()
    for path, data in kept.items():
        host.disk.open(path, create=True).pwritev([data], 0)
    assert host.boot().next_offset == 3


def test_two_damaged_checkpoints_refuse_to_start(host):
    host.checkpoint()
    for path in CHECKPOINTS:
        host.flip(path, 40)
    host.kill()
    with pytest.raises(Corrupt) as caught:
        host.boot()
    assert caught.value.path in CHECKPOINTS


# ------------------------------------------------------------------------------ derived files


def damaged(data):
    return bytes([data[0] ^ 0xFF, *data[1:]]) if data else b"x"


DERIVED = [".index", ".timeindex", ".txnindex", ".snapshot", "leader-epoch-checkpoint"]


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("suffix", DERIVED)
@pytest.mark.parametrize("loss", ["missing", "flipped", "zeros", "short", "empty"])
def test_derived_files_are_rebuilt(host, suffix, loss, clean):
    busy(host)
    host.checkpoint()
    host.append(from_producer(7, 40, 2))
    if clean:
        host.shut_down()
    before = digest(host.store)
    host.kill()
    paths = host.files(suffix)
    assert paths
    for path in paths:
        data = host.disk.read_file(path)
        if loss == "missing" and suffix != ".txnindex":
            host.disk.unlink(path)
            continue
        changes = {
            "missing": b"",
            "flipped": damaged(data),
            "zeros": bytes(len(data)),
            "short": data[:-3],
            "empty": b"",
        }
        file = host.disk.open(path)
        file.truncate(0)
        file.pwritev([changes[loss]], 0)
    host.boot()
    assert digest(host.store) == before
    assert verify(host.log) == []


def test_the_checksum_of_a_snapshot_is_what_protects_it(host, monkeypatch):
    """The mutation gate's own check of that guard: without it the state is another one."""
    host.append(*(from_producer(7, number) for number in range(5)))
    host.shut_down()
    before = digest(host.store)
    host.kill()
    (path,) = host.files(".snapshot")
    file = host.disk.open(path)
    data = bytearray(file.pread(file.size(), 0))
    data[-1] ^= 0x55
    with pytest.raises(CorruptSnapshot):
        decode_snapshot(bytes(data), append_time_ms=0)
    file.pwritev([data], 0)
    image = host.disk.crash(Keep())
    host.boot()
    assert digest(host.store) == before
    host.disk = image
    monkeypatch.setattr(
        "barnabas.storage.log.producer_snapshot.crc32c", lambda *_: int.from_bytes(data[2:6], "big")
    )
    host.boot()
    assert digest(host.store) != before


# --------------------------------------------------------------------------------- the logs


def test_damage_in_the_active_segment_is_found_after_a_crash(host):
    host.append(*(batch(value=b"%d" % number) for number in range(5)))
    host.checkpoint()
    (path,) = host.files(".log")
    size = host.log.active.size_bytes // 5
    host.kill()
    host.flip(path, 3 * size + 65)
    with pytest.raises(Corrupt) as caught:
        host.boot()
    assert (caught.value.path, caught.value.position) == (path, 3 * size)


@pytest.mark.parametrize("field", [7, 8, 16, 26])
def test_damage_in_a_header_of_the_active_segment_is_found_after_a_crash(host, field):
    host.append(*(batch(value=b"%d" % number) for number in range(5)))
    host.checkpoint()
    (path,) = host.files(".log")
    host.kill()
    host.flip(path, 2 * host.log.active.size_bytes // 5 + field)
    with pytest.raises(Corrupt) as caught:
        host.boot()
    assert caught.value.path == path


def test_an_active_segment_that_is_too_short_refuses_to_start(host):
    host.append(batch(5))
    host.checkpoint()
    (path,) = host.files(".log")
    host.kill()
    host.disk.open(path).truncate(50)
    with pytest.raises(Corrupt) as caught:
        host.boot()
    assert (caught.value.path, caught.value.position) == (path, 50)


def test_a_partition_whose_directory_lost_its_id_refuses_to_start(host):
    host.append(batch(5))
    host.checkpoint()
    host.kill()
    host.disk.unlink(f"{ROOT}/topic-0/partition.metadata")
    with pytest.raises(Corrupt) as caught:
        host.boot()
    assert caught.value.path == f"{ROOT}/topic-0"


@pytest.mark.parametrize("clean", [True, False])
def test_a_partition_that_has_another_id_than_it_had_is_not_emptied(host, clean):
    host.append(batch(5))
    host.checkpoint()
    if clean:
        host.shut_down()
    host.kill()
    right, host.specs = host.specs, [replace(spec, partition_id=65) for spec in host.specs]
    with pytest.raises(Corrupt) as caught:
        host.boot()
    assert caught.value.path == f"{ROOT}/topic-0"
    host.kill()
    host.specs = right
    assert host.boot().next_offset == 5
    assert verify(host.log) == []


@pytest.mark.parametrize("field", [6, 7, 8, 9, 10, 16])
def test_a_read_over_a_damaged_header_in_a_sealed_segment_fails(host, field):
    """A read never skips records silently: base offset, length and magic have no checksum."""
    busy(host)
    segment = host.log.segments[1]
    before = read_all(host.log)
    positions = [at for at, _, _ in segment.scan(0)]
    host.flip(segment.log_path, positions[2] + field)

    def read_from_every_offset():
        for offset in range(segment.base_offset, segment.end_offset):
            got = read_all(host.log, offset, max_bytes=1)
            assert got == [item for item in before if item[0].next_offset > offset]

    with pytest.raises(Corrupt) as caught:
        read_from_every_offset()
    assert caught.value.path == segment.log_path


def test_a_missing_sealed_segment_refuses_to_start(host):
    busy(host)
    host.checkpoint()
    path = host.log.segments[1].log_path
    host.kill()
    host.disk.unlink(path)
    with pytest.raises(Corrupt) as caught:
        host.boot()
    assert caught.value.path == path


def test_a_sealed_segment_that_is_cut_short_refuses_to_start(host):
    busy(host)
    host.checkpoint()
    segment = host.log.segments[1]
    host.kill()
    host.disk.open(segment.log_path).truncate(segment.size_bytes - 1)
    with pytest.raises(Corrupt) as caught:
        host.boot()
    assert caught.value.path == segment.log_path


def test_producers_are_not_made_of_batches_that_are_damaged(host):
    """The state comes from the log if no snapshot exists; all checksums are verified."""
    busy(host)
    host.shut_down()
    host.kill()
    for path in host.files(".snapshot"):
        host.disk.unlink(path)
    path = host.files(".log")[0]
    host.flip(path, 52)  # The epoch of a producer.
    with pytest.raises(Corrupt, match="the checksum of the batch at offset 0 is wrong") as caught:
        host.boot()
    assert caught.value.path == path
