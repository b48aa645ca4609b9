"""Partitions among the directories of a data directory, and the treatment of the others."""

import pytest

from barnabas.broker.testing.disk.simulated import SimulatedFileSystem
from barnabas.storage.errors import Corrupt, NotACache, StrayDirectory
from barnabas.storage.files.directory_names import has_suffix, is_kafkas_own, partition_of
from barnabas.storage.store.flush_start import CACHE_MARK, wipe
from tests.storage.stores import ROOT, Host, batch, read_all

UNIQUE = "0123456789abcdef0123456789abcdef"
SEGMENT = f"{0:020}.log"
OF_FILE_SYSTEMS = ["lost+found", ".snapshot", ".Trash-0", ".Trash-1000", ".snapshots-1"]
OF_NOBODY = ["@eaDir", "#recycle", "System Volume Information", "notes", "do-not-delete", "a-b"]
OF_KAFKA = [f"topic-0.{UNIQUE}-stray", f"a.b-12.{UNIQUE}-future"]


class Guarded(SimulatedFileSystem):
    """A disk with directories of another user: only their names can be read."""

    guarded = frozenset(f"{ROOT}/{name}" for name in OF_FILE_SYSTEMS + OF_KAFKA + OF_NOBODY)

    def list_directory(self, path):
        if path in self.guarded:
            raise PermissionError(13, "Permission denied", path)
        return super().list_directory(path)


def guarded_disk(names):
    disk = Guarded()
    for name in names:
        disk.make_directory(f"{ROOT}/{name}")
    return disk


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("orders-0", ("orders", 0)),
        ("one-two-17", ("one-two", 17)),
        ("a.b_c-3", ("a.b_c", 3)),
        ("orders-0.x-1", ("orders-0.x", 1)),
        ("orders", None),
        ("orders-", None),
        ("-0", None),
        ("orders-x", None),
        ("orders-²", None),
        ("lost+found", None),
        ("__cluster_metadata-0", None),
        ("two words-0", None),
        (f"{'t' * 250}-0", None),
        (f"orders-0.{UNIQUE}-delete", None),
    ],
)
def test_partition_of_a_directory_name(name, expected):
    assert partition_of(name) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (f"orders-0.{UNIQUE}-delete", True),
        (f"one-two-17.{UNIQUE}-delete", True),
        ("orders-0-delete", False),
        ("do-not-delete", False),
        ("-delete", False),
        (f"orders-0.{UNIQUE}-stray", False),
    ],
)
def test_only_a_partition_put_aside_has_the_delete_suffix(name, expected):
    assert has_suffix(name, "-delete") is expected


def test_names_of_kafkas_own_directories():
    assert all(map(is_kafkas_own, OF_KAFKA))
    assert not any(map(is_kafkas_own, [*OF_FILE_SYSTEMS, *OF_NOBODY, "orders-0", "a-stray"]))


@pytest.mark.parametrize("name", OF_FILE_SYSTEMS + OF_NOBODY + OF_KAFKA)
def test_start_passes_over_a_directory_that_is_no_partition_unread(name):
    host = Host(disk=guarded_disk([name]))
    host.boot()
    host.append(batch())
    assert host.report.passed_over == (name,)
    host.shut_down()
    host.boot()
    assert host.report.passed_over == (name,)
    assert len(read_all(host.log)) == 1
    assert name in host.disk.list_directory(ROOT)


def test_start_refuses_a_stray_partition_before_it_removes_a_deleted_one():
    host = Host()
    host.boot()
    host.shut_down()
    host.disk.make_directory(f"{ROOT}/a-0.{UNIQUE}-delete")
    host.disk.make_directory(f"{ROOT}/orders-0")
    before = host.disk.list_directory(ROOT)
    with pytest.raises(StrayDirectory, match="/data/orders-0: no topic owns it"):
        host.boot(removable=())
    assert host.disk.list_directory(ROOT) == before


def test_hidden_partition_directory_with_data_is_a_stray_one():
    host = Host()
    host.boot()
    host.shut_down()
    host.disk.make_directory(f"{ROOT}/.topic-0")
    for name in ("partition.metadata", SEGMENT):
        host.disk.open(f"{ROOT}/.topic-0/{name}", create=True).close()
    with pytest.raises(StrayDirectory, match=r"/data/\.topic-0"):
        host.boot(removable=())


def test_start_empties_a_delete_directory_only_of_partition_files():
    host = Host()
    host.boot()
    host.shut_down()
    deleted, other = f"a-0.{UNIQUE}-delete", f"b-0.{UNIQUE}-delete"
    for path in (f"{deleted}/{SEGMENT}.deleted", f"{other}/{SEGMENT}", f"{other}/thesis.tex"):
        host.disk.make_directory(f"{ROOT}/{path.rpartition('/')[0]}", exist_ok=True)
        host.disk.open(f"{ROOT}/{path}", create=True).close()
    host.boot()
    assert host.report.directories_removed == 1
    assert host.report.passed_over == (other,)
    assert deleted not in host.disk.list_directory(ROOT)
    assert host.disk.list_directory(f"{ROOT}/{other}") == [SEGMENT, "thesis.tex"]


@pytest.mark.parametrize("name", OF_FILE_SYSTEMS)
def test_root_of_a_file_system_becomes_a_cache(name):
    disk = guarded_disk([name])
    wipe(disk, ROOT)
    wipe(disk, ROOT)
    assert set(disk.list_directory(ROOT)) == {CACHE_MARK, name}


@pytest.mark.parametrize("name", ["notes", "orders-0", f"orders-0.{UNIQUE}-stray"])
def test_directory_with_another_directory_becomes_no_cache(name):
    disk = SimulatedFileSystem()
    disk.make_directory(f"{ROOT}/{name}")
    with pytest.raises(NotACache, match=name):
        wipe(disk, ROOT)


@pytest.mark.parametrize("file_name", [None, f"{1:020}.log"])
def test_start_refuses_what_another_program_wrote_after_a_clean_stop(file_name):
    """Apache Kafka, killed in a directory that was taken over, leaves no mark of having run."""
    host = Host()
    host.boot()
    host.append(batch(value=b"ours"))
    host.shut_down()
    path = f"{ROOT}/topic-0/{file_name or SEGMENT}"
    file = host.disk.open(path, create=True)
    size_bytes = file.size()
    file.pwritev([bytes(batch(value=b"theirs"))], size_bytes)
    before = file.pread(1 << 20, 0)
    with pytest.raises(Corrupt, match=f"{path} is corrupt at byte {size_bytes}: another program"):
        host.boot()
    assert host.disk.open(path).pread(1 << 20, 0) == before
