"""What is SQLite's own: pragmas, formats, a full disk, a file that is no database."""

import sqlite3

import pytest

from storage.metastore.interface import MetaStoreError, MetaStoreRefused
from storage.metastore.sqlite import FILE_NAME, MEMORY, SqliteMetaStore


def open_store(path) -> SqliteMetaStore:
    return SqliteMetaStore.open(str(path), node_id=1, new_cluster_id="oKlTPFF2TkSvFtAbxy0nMg")


def test_commits_wait_for_the_disk_d1(tmp_path):
    store = open_store(tmp_path / FILE_NAME)
    connection = store._connection
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
    store.close()


def test_every_file_is_named_ours_so_that_kafka_ignores_it(tmp_path):
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
