"""Tests of SQLite only: pragmas, formats, a full disk, a file that is no database."""

import errno
import shutil
import sqlite3
from contextlib import closing

import pytest

from barnabas.storage.files.io import LocalFile
from barnabas.storage.metastore.commit_count import CommitCount
from barnabas.storage.metastore.interface import (
    AclRow,
    MetaStoreError,
    MetaStoreRefused,
    TopicExists,
)
from barnabas.storage.metastore.sqlite import FILE_NAME, MEMORY, SqliteMetaStore


def open_store(path) -> SqliteMetaStore:
    return SqliteMetaStore.open(str(path), node_id=1, new_cluster_id="oKlTPFF2TkSvFtAbxy0nMg")


def test_commits_wait_for_the_disk_d1(tmp_path):
    store = open_store(tmp_path / FILE_NAME)
    connection = store._connection
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
    store.close()


def test_every_file_has_the_prefix_that_kafka_ignores(tmp_path):
    store = open_store(tmp_path / FILE_NAME)
    store.begin_boot()
    assert all(path.name.startswith("barnabas-") for path in tmp_path.iterdir())
    store.close()


def test_a_full_disk_refuses_the_change_and_nothing_else():
    store = open_store(MEMORY)
    store.create_topic("kept", bytes(16), 1, {})
    pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
    store._connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(MetaStoreRefused):
        store.create_topic("big", bytes([1] * 16), 1, {"key": "x" * 100_000})
    assert [topic.name for topic in store.load().topics] == ["kept"]
    store._connection.execute("PRAGMA max_page_count = 1000000")
    store.create_topic("big", bytes([1] * 16), 1, {"key": "x" * 100_000})
    assert len(store.load().topics) == 2
    store.close()


def test_a_file_held_by_another_process_refuses_the_change_and_nothing_else(tmp_path):
    store = open_store(tmp_path / FILE_NAME)
    other = sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(MetaStoreRefused, match="locked"):
        store.create_topic("t", bytes(16), 1, {})
    other.execute("ROLLBACK")
    other.close()
    store.create_topic("t", bytes(16), 1, {})
    store.close()


def test_a_store_from_before_groups_had_settings(tmp_path):
    open_store(tmp_path / FILE_NAME).close()
    connection = sqlite3.connect(tmp_path / FILE_NAME)
    connection.execute("DROP TABLE group_configs")
    connection.commit()
    connection.close()
    store = open_store(tmp_path / FILE_NAME)
    assert store.load().group_configs == {}
    store.set_group_configs("g", {"x": "1"})
    store.close()


def test_a_store_from_before_access_control(tmp_path):
    open_store(tmp_path / FILE_NAME).close()
    connection = sqlite3.connect(tmp_path / FILE_NAME)
    for table in ("acls", "scram_credentials", "quotas"):
        connection.execute(f"DROP TABLE {table}")
        connection.execute("DELETE FROM digests WHERE name = ?", (table,))
    connection.commit()
    connection.close()
    store = open_store(tmp_path / FILE_NAME)
    store.change_acls([AclRow(2, "t", 3, "User:a", "*", 3, 3)], [])
    store.close()
    store = open_store(tmp_path / FILE_NAME)
    assert len(store.load().acls) == 1
    store.close()


def test_the_file_is_for_its_owner_alone(tmp_path):
    store = open_store(tmp_path / FILE_NAME)
    store.change_acls([], [])
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes[FILE_NAME] == modes[f"{FILE_NAME}-wal"] == 0o600
    store.close()


def test_a_newer_format_is_refused(tmp_path):
    open_store(tmp_path / FILE_NAME).close()
    connection = sqlite3.connect(tmp_path / FILE_NAME)
    connection.execute("UPDATE cluster SET format_version = 99")
    connection.commit()
    connection.close()
    with pytest.raises(MetaStoreError, match="format 99"):
        open_store(tmp_path / FILE_NAME)


def test_a_file_that_is_no_database_is_refused(tmp_path):
    (tmp_path / FILE_NAME).write_bytes(b"not a database" * 1000)
    with pytest.raises(MetaStoreError, match="not a database"):
        open_store(tmp_path / FILE_NAME)


def test_a_missing_directory_is_refused(tmp_path):
    with pytest.raises(MetaStoreError, match="unable to open"):
        open_store(tmp_path / "nowhere" / FILE_NAME)


# -------------------------------------------------------------------------------- commits that were


def killed(tmp_path, *, between=lambda _path: None):
    """The files of a store as a kill leaves them: the newest commits are in its write-ahead log."""
    directory = tmp_path / "store"
    directory.mkdir()
    path = directory / FILE_NAME
    store = open_store(path)
    store.begin_boot()
    store.close()
    store = open_store(path)
    store.allocate_producer_ids()
    between(path)
    store.create_topic("t", bytes(16), 1, {})
    left = tmp_path / "left"
    shutil.copytree(directory, left)
    store.close()
    return left / FILE_NAME


def beside(path, suffix):
    return path.with_name(path.name + suffix)


def test_a_killed_store_has_all_its_commits(tmp_path):
    path = killed(tmp_path)
    store = open_store(path)
    assert store.allocate_producer_ids() == range(1000, 2000)
    store.close()
    for suffix in ("-wal", "-shm"):
        assert not beside(path, suffix).exists()
    assert [topic.name for topic in open_store(path).load().topics] == ["t"]


@pytest.mark.parametrize("left_bytes", [None, 0, 5000])
def test_a_write_ahead_log_that_is_missing_or_cut_is_refused(tmp_path, left_bytes):
    path = killed(tmp_path)
    log = beside(path, "-wal")
    data = log.read_bytes()
    log.unlink()
    if left_bytes is not None:
        log.write_bytes(data[:left_bytes])
    for _ in range(2):
        with pytest.raises(MetaStoreError, match=rf"{path}: 1 of 3 commits are present"):
            open_store(path)


def test_a_flipped_bit_in_the_write_ahead_log_is_refused(tmp_path):
    path = killed(tmp_path)
    log = beside(path, "-wal")
    data = bytearray(log.read_bytes())
    data[-3000] ^= 1
    log.write_bytes(data)
    with pytest.raises(MetaStoreError, match="2 of 3 commits are present"):
        open_store(path)


def test_an_older_copy_of_the_store_is_refused(tmp_path):
    older = tmp_path / "older"

    def copy(path):
        shutil.copytree(path.parent, older)

    path = killed(tmp_path, between=copy)
    for suffix in ("", "-wal", "-shm"):
        shutil.copyfile(beside(older / FILE_NAME, suffix), beside(path, suffix))
    with pytest.raises(MetaStoreError, match="2 of 3 commits are present"):
        open_store(path)


def test_missing_store_with_known_commits_is_refused(tmp_path):
    path = killed(tmp_path)
    path.unlink()
    with pytest.raises(MetaStoreError, match="the file is missing"):
        open_store(path)
    assert not path.exists()
    path.write_bytes(b"")
    beside(path, "-wal").unlink()
    with pytest.raises(MetaStoreError, match="0 of 3 commits are present"):
        open_store(path)


def test_a_store_of_a_release_that_did_not_count_still_opens(tmp_path):
    path = killed(tmp_path)
    store = open_store(path)
    store._connection.execute("DROP TABLE commits")
    store.close()
    beside(path, "-mark").unlink()
    store = open_store(path)
    assert store.allocate_producer_ids() == range(1000, 2000)
    store.close()
    assert CommitCount(str(path)).number == 1


def test_a_full_disk_leaves_the_count_behind(tmp_path, monkeypatch):
    store = open_store(tmp_path / FILE_NAME)
    store.begin_boot()

    def full(_file, _buffers, _position):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(LocalFile, "pwritev", full)
        store.begin_boot()
    assert CommitCount(str(tmp_path / FILE_NAME)).number == 1
    store.close()
    assert open_store(tmp_path / FILE_NAME).boot_epoch == 2


def test_an_error_of_the_count_is_one_of_the_store(tmp_path, monkeypatch):
    store = open_store(tmp_path / FILE_NAME)

    def broken(_file, _buffers, _position):
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(LocalFile, "pwritev", broken)
        with pytest.raises(MetaStoreError, match="-mark: Input/output error"):
            store.begin_boot()
    store.close()


# -------------------------------------------------------------------- what changed without a commit


def eventful(path):
    """A store that has seen every kind of change, and some that were refused."""
    store = open_store(path)
    store.begin_boot()
    kept, gone, doomed = (bytes([number] * 16) for number in (1, 2, 3))
    store.create_topic("kept-topic", kept, 3, {"retention.ms": "12345", "segment.bytes": "1048576"})
    store.create_topic("gone-topic", gone, 5, {"cleanup.policy": "compact"})
    store.create_partitions(kept, 6)
    with pytest.raises(TopicExists):
        store.create_topic("kept-topic", doomed, 2, {})
    store.set_topic_configs(kept, {"retention.ms": "54321"})
    store.delete_topic(gone)
    store.create_topic("gone-topic", doomed, 1, {})
    store.forget_topic(gone)
    store.set_broker_configs("", {"log.retention.ms": "777"})
    store.set_broker_configs("", {"log.retention.ms": "778"})
    store.set_group_configs("readers", {"consumer.session.timeout.ms": "45000"})
    store.allocate_producer_ids()
    store.raise_producer_ids(70_000)
    store.raise_boot_epoch(17)
    return store


def test_the_digest_follows_every_change(tmp_path):
    path = tmp_path / FILE_NAME
    for _ in range(3):
        store = eventful(path) if not path.exists() else open_store(path)
        store.begin_boot()
        digest = store._connection.digest
        noted = dict(store._connection.execute("SELECT name, number FROM digests").fetchall())
        assert noted == digest._actual()
        store.close()


def places_of(data, needle):
    place = data.find(needle)
    while place >= 0:
        yield place
        place = data.find(needle, place + 1)


@pytest.mark.parametrize(
    ("needle", "table"),
    [
        (b"kept-topic", "topics"),
        (b"54321", "topic_configs"),
        (b"778", "broker_configs"),
        (b"45000", "group_configs"),
        ((71_000).to_bytes(3, "big"), "cluster"),
        (b"oKlTPFF2TkSvFtAbxy0nMg", "cluster"),
    ],
)
def test_a_flipped_bit_that_leaves_the_structure_whole(tmp_path, needle, table):
    path = tmp_path / FILE_NAME
    store = eventful(path)
    store.raise_producer_ids(71_000)
    store.close()
    data = path.read_bytes()
    told = 0
    for place in places_of(data, needle):
        flipped = bytearray(data)
        flipped[place + len(needle) - 1] ^= 1
        path.write_bytes(flipped)
        try:
            open_store(path).close()
        except MetaStoreError as error:
            assert str(path) in str(error)  # noqa: PT017  Some copies are an index, or old.
            told += f"the content of {table} is not what was committed" in str(error)
    assert told >= 1


def test_damage_that_is_accepted(tmp_path):
    path = tmp_path / FILE_NAME
    eventful(path).close()
    path.write_bytes(path.read_bytes().replace(b"54321", b"54320"))
    with pytest.raises(MetaStoreError, match="the content of topic_configs is not"):
        open_store(path)
    store = SqliteMetaStore.open(
        str(path), node_id=1, new_cluster_id="oKlTPFF2TkSvFtAbxy0nMg", accept_damage=True
    )
    assert store.accepted == ["topic_configs"]
    store.close()
    store = open_store(path)
    (kept,) = [topic for topic in store.load().topics if topic.name == "kept-topic"]
    assert kept.configs == {"retention.ms": "54320"}
    store.close()


def test_commits_of_a_release_without_digests(tmp_path):
    path = tmp_path / FILE_NAME
    eventful(path).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("UPDATE cluster SET next_producer_id = 99000")
        other.execute("UPDATE commits SET number = number + 1")
    store = open_store(path)
    assert store.allocate_producer_ids() == range(99_000, 100_000)
    store.close()
    open_store(path).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("DROP TABLE digests")
    open_store(path).close()
