"""The embedded metadata store: one SQLite file beside the logs.

SQLite does its own I/O (it bypasses ``storage/files/io.py``); in the simulated disk of the tests a
commit is atomic and durable at once. ``journal_mode=WAL, synchronous=FULL`` makes each COMMIT wait
for the write-ahead log's fsync, so that a returned method is durable. The SQL keeps to what
PostgreSQL understands too, except for AUTOINCREMENT, which is the identity column there.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib import resources
from itertools import starmap
from typing import Self, TypeVar

from barnabas.storage.files.file_system import FileSystem
from barnabas.storage.files.io import make_private
from barnabas.storage.metastore.commit_count import SUFFIX, CommitCount
from barnabas.storage.metastore.content_digest import ContentDigest
from barnabas.storage.metastore.contents import Contents, rows_of
from barnabas.storage.metastore.interface import (
    PRODUCER_ID_BLOCK,
    Identity,
    IdentityMismatch,
    MetadataImage,
    MetaStoreError,
    MetaStoreRefused,
    PartitionRow,
    TopicExists,
    TopicNotFound,
    TopicRow,
)
from barnabas.storage.metastore.tables import TABLES, ReplacedTables, Rows, image_of, replacement

Result = TypeVar("Result")

FILE_NAME = "barnabas-metadata.sqlite"
MEMORY = ":memory:"
FORMAT_VERSION = 1
"""Version of the whole data directory: raised with any change that an earlier release cannot read.
"""
LOCK_TIMEOUT_SECONDS = 1.0
"""Maximum wait for another process that holds the file; the event loop waits, too."""

_HARMLESS = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY}

_SCHEMA = "sqlite_schema.sql"
_LATER_TABLES = "sqlite_later_tables.sql"
"""Tables that the schema of the first releases did not have."""


_FILLED = TABLES | {"topics": "topic_id, name"}
"""Columns of each table that another store has, too."""


class _Connection(sqlite3.Connection):
    """A connection with the name of its file, for messages, and the count of its commits."""

    path = ""
    version = 0
    """Number of commits: the version of the resulting content."""
    count: CommitCount | None = None
    digest: ContentDigest | None = None


class SqliteMetaStore(ReplacedTables):
    """A MetaStore in one SQLite file, or in memory for tests (path ``":memory:"``)."""

    def __init__(self, connection: _Connection, identity: Identity) -> None:
        """Take over an opened connection; use ``open`` instead."""
        self._connection = connection
        self._identity = identity
        self.accepted: list[str] = []
        """Tables that differed from the committed content when the store was opened."""

    @classmethod
    def open(
        cls, path: str, *, node_id: int, new_cluster_id: str, accept_damage: bool = False
    ) -> Self:
        """Open the store at ``path``, creating it if it does not exist.

        ``new_cluster_id`` is used only for a new store. Raises IdentityMismatch when the store
        belongs to another node id, MetaStoreError when it cannot be read or has lost commits, or
        when rows have changed that this store did not commit: ``accept_damage`` takes those as they
        are.
        """
        count = None if path == MEMORY else CommitCount(path)
        if count is not None and count.lacks_store:
            raise MetaStoreError(f"metadata store {path}: the file is missing")
        if path != MEMORY:
            try:
                make_private(path)  # It holds what passwords are verified by.
            except OSError as error:
                reason = f"unable to open: {error.strerror}"
                raise MetaStoreError(f"metadata store {path}: {reason}") from error
        with _translated_errors(path):
            connection = sqlite3.connect(
                path,
                timeout=LOCK_TIMEOUT_SECONDS,
                isolation_level=None,
                check_same_thread=False,
                factory=_Connection,
            )
        connection.path = path
        damaged: list[str] = []
        try:
            with _translated_errors(path):
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("PRAGMA foreign_keys = ON")
            with _transaction(connection, counts=False):
                if count is not None:
                    _refuse_lost_commits(connection, count)
                identity = _read_or_create_identity(connection, node_id, new_cluster_id)
                _execute_file(connection, _LATER_TABLES)
                connection.version = _commits(connection)
                if count is not None:
                    digest = ContentDigest(connection)
                    if damaged := digest.compare():
                        _judge_damage(path, damaged, digest, accept_damage=accept_damage)
            # A store in memory ends with its process: it has no earlier content to compare with.
            if count is not None:
                with _translated_errors(path):
                    digest.follow()
                    count.begin()
                connection.digest, connection.count = digest, count
        except BaseException:
            connection.close()
            raise
        store = cls(connection, identity)
        store.accepted = damaged
        return store

    @property
    def identity(self) -> Identity:
        """Return this node's identity."""
        return self._identity

    @property
    def version(self) -> int:
        """Return the number of commits, with the newest through this object among them."""
        return self._connection.version

    def based_on(self, _version: int, change: Callable[[], Result]) -> Result:
        """Make one change: this store has no other writer."""
        return change()

    @property
    def boot_epoch(self) -> int:
        """Return the durable boot epoch."""
        with _translated_errors(self._connection.path):
            return _scalar(self._connection.execute("SELECT boot_epoch FROM cluster"))

    def begin_boot(self) -> int:
        """Raise the boot epoch by one and return it."""
        with _transaction(self._connection) as connection:
            connection.execute("UPDATE cluster SET boot_epoch = boot_epoch + 1")
            return _scalar(connection.execute("SELECT boot_epoch FROM cluster"))

    def raise_boot_epoch(self, at_least: int) -> int:
        """Make the boot epoch at least ``at_least`` and return it."""
        with _transaction(self._connection) as connection:
            connection.execute(
                "UPDATE cluster SET boot_epoch = ? WHERE boot_epoch < ?", (at_least, at_least)
            )
            return _scalar(connection.execute("SELECT boot_epoch FROM cluster"))

    def allocate_producer_ids(self) -> range:
        """Return a block of producer ids that is never returned again (S10)."""
        with _transaction(self._connection) as connection:
            connection.execute(
                "UPDATE cluster SET next_producer_id = next_producer_id + ?", (PRODUCER_ID_BLOCK,)
            )
            end = _scalar(connection.execute("SELECT next_producer_id FROM cluster"))
        return range(end - PRODUCER_ID_BLOCK, end)

    def raise_producer_ids(self, at_least: int) -> None:
        """Raise the next producer ID to ``at_least``."""
        with _transaction(self._connection) as connection:
            connection.execute(
                "UPDATE cluster SET next_producer_id = ? WHERE next_producer_id < ?",
                (at_least, at_least),
            )

    def load(self) -> MetadataImage:
        """Return all topics, tombstones and settings as one consistent picture."""
        with _transaction(self._connection, counts=False) as connection:
            next_id = _scalar(connection.execute("SELECT next_producer_id FROM cluster"))
            return image_of(
                partial(_rows, connection), next_producer_id=next_id, version=_commits(connection)
            )

    def create_topic(
        self, name: str, topic_id: bytes, partition_count: int, configs: Mapping[str, str]
    ) -> TopicRow:
        """Create a topic with its partitions and settings; raise TopicExists."""
        with _transaction(self._connection) as connection:
            taken = connection.execute(
                "SELECT 1 FROM topics WHERE name = ? AND deleted = 0", (name,)
            )
            if taken.fetchone() is not None:
                raise TopicExists(name)
            connection.execute(
                "INSERT INTO topics (topic_id, name) VALUES (?, ?)", (topic_id, name)
            )
            partitions = _insert_partitions(connection, topic_id, range(partition_count))
            _insert_topic_configs(connection, topic_id, configs)
        return TopicRow(topic_id, name, partitions, dict(configs))

    def create_partitions(self, topic_id: bytes, total_count: int) -> tuple[PartitionRow, ...]:
        """Extend a topic to ``total_count`` partitions and return the new ones."""
        with _transaction(self._connection) as connection:
            _require_live_topic(connection, topic_id)
            existing = _scalar(
                connection.execute(
                    "SELECT count(*) FROM partitions WHERE topic_id = ?", (topic_id,)
                )
            )
            return _insert_partitions(connection, topic_id, range(existing, total_count))

    def delete_topic(self, topic_id: bytes) -> None:
        """Hide a topic, free its name and leave a tombstone; raise TopicNotFound."""
        with _transaction(self._connection) as connection:
            _require_live_topic(connection, topic_id)
            connection.execute("UPDATE topics SET deleted = 1 WHERE topic_id = ?", (topic_id,))

    def forget_topic(self, topic_id: bytes) -> None:
        """Remove a tombstone whose directories were removed."""
        with _transaction(self._connection) as connection:
            connection.execute("DELETE FROM topics WHERE topic_id = ? AND deleted = 1", (topic_id,))

    def set_topic_configs(self, topic_id: bytes, configs: Mapping[str, str]) -> None:
        """Replace all settings of a topic; raise TopicNotFound."""
        with _transaction(self._connection) as connection:
            _require_live_topic(connection, topic_id)
            connection.execute("DELETE FROM topic_configs WHERE topic_id = ?", (topic_id,))
            _insert_topic_configs(connection, topic_id, configs)

    def _replace(self, table: str, keys: Rows, rows: Rows) -> None:
        delete, insert = replacement(table, "?")
        with _transaction(self._connection) as connection:
            connection.executemany(delete, keys)
            connection.executemany(insert, rows)

    def keep_secret(self, name: str, new: bytes) -> bytes:
        """Return the secret stored under a name, after storing ``new`` if there was none."""
        with _translated_errors(self._connection.path):
            found = self._connection.execute("SELECT value FROM secrets WHERE name = ?", (name,))
            row = found.fetchone()
        if row is not None:
            return bytes(row[0])
        with _transaction(self._connection) as connection:
            connection.execute("INSERT INTO secrets VALUES (?, ?)", (name, new))
        return new

    def contents(self) -> Contents:
        """Return the content of all tables."""
        image = self.load()
        with _translated_errors(self._connection.path):
            secrets = dict(self._connection.execute("SELECT name, value FROM secrets").fetchall())
            ids = self._connection.execute(
                "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'partitions'"
            )
            last_partition_id = _scalar(ids)
        cluster_id = self._identity.cluster_id
        return Contents(cluster_id, image, secrets, self.boot_epoch, last_partition_id + 1)

    def fill(self, contents: Contents) -> None:
        """Replace the content; the node keeps its identity."""
        image = contents.image
        with _transaction(self._connection) as connection:
            for table in TABLES:
                if table != "cluster":
                    connection.execute(f"DELETE FROM {table}")  # noqa: S608  Our names.
            connection.execute(
                "UPDATE cluster SET cluster_id = ?, boot_epoch = ?, next_producer_id = ?",
                (contents.cluster_id, contents.boot_epoch, image.next_producer_id),
            )
            for table, rows in rows_of(contents).items():
                if rows:
                    places = ", ".join("?" * len(rows[0]))
                    columns = _FILLED[table]
                    connection.executemany(
                        f"INSERT INTO {table} ({columns}) VALUES ({places})",  # noqa: S608
                        rows,
                    )
            connection.execute("DELETE FROM sqlite_sequence WHERE name = 'partitions'")
            connection.execute(
                "INSERT INTO sqlite_sequence (name, seq) VALUES ('partitions', ?)",
                (contents.next_partition_id - 1,),
            )
        self._identity = Identity(contents.cluster_id, self._identity.node_id)

    def close(self) -> None:
        """Release the file; everything committed is already durable."""
        with _translated_errors(self._connection.path):
            self._connection.close()
        if self._connection.count is not None:
            self._connection.count.close()


def remove_store(file_system: FileSystem, directory: str) -> None:
    """Remove a store that nothing relies on, closed and in a directory that is locked."""
    # The count first: beside no file it would mean that one was lost.
    for suffix in (SUFFIX, "-wal", "-shm", ""):
        path = file_system.join(directory, FILE_NAME + suffix)
        if file_system.exists(path):
            file_system.unlink(path)


@contextmanager
def _translated_errors(path: str) -> Iterator[None]:
    """Turn SQLite's errors into MetaStoreErrors; after some of them the store stays usable."""
    try:
        yield
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", None) in _HARMLESS:
            raise MetaStoreRefused(f"metadata store {path}: {error}") from error
        raise MetaStoreError(f"metadata store {path}: {error}") from error
    except OSError as error:
        raise MetaStoreError(f"metadata store {path}{SUFFIX}: {error.strerror}") from error


@contextmanager
def _transaction(connection: _Connection, *, counts: bool = True) -> Iterator[sqlite3.Connection]:
    """Run one transaction: COMMIT at the end, ROLLBACK when anything is raised.

    With ``counts`` the transaction may change rows, and must never be lost.
    """
    with _translated_errors(connection.path):
        connection.execute("BEGIN IMMEDIATE")
        if connection.digest is not None:
            connection.digest.begin()
        try:
            yield connection
            if counts:
                connection.execute("UPDATE commits SET number = number + 1")
                number = _commits(connection)
                if connection.digest is not None:
                    connection.digest.commit()
            connection.execute("COMMIT")
            if counts:
                connection.version = number
                if connection.count is not None:
                    connection.count.advance(number)
        except BaseException:
            # SQLite itself has rolled back after some errors (a full disk is one).
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def _execute_file(connection: sqlite3.Connection, name: str) -> None:
    """Execute the statements of a file beside this module, in the transaction that is open."""
    text = (resources.files(__package__) / name).read_text(encoding="utf-8")
    for statement in text.split(";"):
        connection.execute(statement)


def _commits(connection: sqlite3.Connection) -> int:
    """Return the number of commits."""
    return _scalar(connection.execute("SELECT number FROM commits"))


def _scalar(cursor: sqlite3.Cursor) -> int:
    """Return the integer that a query returns; the query must return exactly one."""
    row = cursor.fetchone()
    assert row is not None, "the query must have one row"
    value = row[0]
    assert isinstance(value, int)
    return value


def _refuse_lost_commits(connection: _Connection, count: CommitCount) -> None:
    """Raise MetaStoreError if the store has fewer commits than the count beside it."""
    known = connection.execute(
        "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'commits'"
    ).fetchone()
    found = _commits(connection) if known else 0
    if found < count.number:
        raise MetaStoreError(
            f"metadata store {connection.path}: {found} of {count.number} commits are "
            "present; the file or its -wal file is older, missing or damaged"
        )


def _judge_damage(
    path: str, tables: list[str], digest: ContentDigest, *, accept_damage: bool
) -> None:
    """Raise MetaStoreError for damage, or accept the present content."""
    if not accept_damage:
        raise MetaStoreError(
            f"metadata store {path}: {describe_damage(tables)}; the file is damaged"
        )
    digest.accept()


def describe_damage(tables: list[str]) -> str:
    """Return a sentence that names the tables whose content was not committed."""
    return f"the content of {', '.join(tables)} is not what was committed"


def _read_or_create_identity(
    connection: sqlite3.Connection, node_id: int, new_cluster_id: str
) -> Identity:
    """Return the stored identity; an empty file gets the schema and a new identity."""
    known = connection.execute(
        "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'cluster'"
    ).fetchone()
    if known is None:
        _execute_file(connection, _SCHEMA)
        connection.execute(
            "INSERT INTO cluster VALUES (1, ?, ?, ?, 0, 0)",
            (FORMAT_VERSION, new_cluster_id, node_id),
        )
    format_version, cluster_id, stored_node_id = connection.execute(
        "SELECT format_version, cluster_id, node_id FROM cluster"
    ).fetchone()
    if not 1 <= format_version <= FORMAT_VERSION:
        raise MetaStoreError(
            f"the data directory has format {format_version}, which a later release has written; "
            f"this one reads up to {FORMAT_VERSION}"
        )
    if stored_node_id != node_id:
        raise IdentityMismatch(
            f"metadata store belongs to node {stored_node_id}, the configuration says {node_id}"
        )
    return Identity(cluster_id, node_id)


def _rows(connection: sqlite3.Connection, table: str) -> sqlite3.Cursor:
    """Return the rows of one of our tables."""
    return connection.execute(f"SELECT {TABLES[table]} FROM {table}")  # noqa: S608


def _require_live_topic(connection: sqlite3.Connection, topic_id: bytes) -> None:
    """Raise TopicNotFound unless a topic of this id exists and is not deleted."""
    row = connection.execute(
        "SELECT 1 FROM topics WHERE topic_id = ? AND deleted = 0", (topic_id,)
    ).fetchone()
    if row is None:
        raise TopicNotFound(topic_id)


def _insert_partitions(
    connection: sqlite3.Connection, topic_id: bytes, indexes: range
) -> tuple[PartitionRow, ...]:
    """Add partitions of these indexes with ids never used before."""
    if not indexes:
        return ()
    # One statement: the loop waits for this, and ten thousand of them take twice as long.
    connection.execute(
        "WITH RECURSIVE added (position) AS (SELECT ? UNION ALL"
        " SELECT position + 1 FROM added WHERE position + 1 < ?)"
        " INSERT INTO partitions (topic_id, partition_index) SELECT ?, position FROM added",
        (indexes.start, indexes.stop, topic_id),
    )
    found = connection.execute(
        "SELECT partition_id, partition_index FROM partitions"
        " WHERE topic_id = ? AND partition_index >= ? ORDER BY partition_index",
        (topic_id, indexes.start),
    )
    return tuple(starmap(PartitionRow, found))


def _insert_topic_configs(
    connection: sqlite3.Connection, topic_id: bytes, configs: Mapping[str, str]
) -> None:
    """Add settings of a topic that has none."""
    for name, value in configs.items():
        connection.execute(
            "INSERT INTO topic_configs (topic_id, name, value) VALUES (?, ?, ?)",
            (topic_id, name, value),
        )
