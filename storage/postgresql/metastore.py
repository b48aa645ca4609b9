"""The metadata store of a cluster, in its PostgreSQL.

Rules of this file:

* All changes, of all brokers, are in one order: each raises the version in the cluster's one row
  first, and holds that row until it is committed. The commit notifies waiters.
* A change is executed once: a store counts its changes in a row of its own. A change without a
  response is sent again with the same number, and finds the result of the first attempt.
* A result of a read is confirmed by the standby before it is returned, like a write (``Primary``).
* A method waits while PostgreSQL is unavailable. ``close``, on another thread, ends that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Self, TypeVar
from uuid import UUID

import psycopg

from barnabas.storage.errors import IndexClosed
from barnabas.storage.metastore.contents import Contents, rows_of
from barnabas.storage.metastore.interface import (
    PRODUCER_ID_BLOCK,
    Identity,
    MetadataImage,
    MetaStoreError,
    MetaStoreRefused,
    Outdated,
    PartitionRow,
    TopicExists,
    TopicNotFound,
    TopicRow,
)
from barnabas.storage.metastore.tables import TABLES, ReplacedTables, Rows, image_of, replacement
from barnabas.storage.postgresql.durability import CONFIRM
from barnabas.storage.postgresql.primary import PATIENCE_S, Primary, Row
from barnabas.storage.postgresql.schema import bring_up_to_date
from barnabas.storage.replicated.log_index import IndexMisused
from barnabas.storage.runtime.chance import random_uuid

Result = TypeVar("Result")
Connection = psycopg.Connection[Row]

_REFUSALS: Final = (Outdated, TopicExists, TopicNotFound)


_FILLED: Final = {"partitions": "topic_partitions"}
"""Tables that have another name than in ``rows_of``."""


def cluster_id_of(primary: Primary, new_cluster_id: str) -> str:
    """Return the cluster's ID, which becomes ``new_cluster_id`` if it has none yet."""
    statement = (
        "INSERT INTO barnabas.cluster (cluster_id) VALUES (%s)"
        " ON CONFLICT (singleton) DO UPDATE SET cluster_id = cluster.cluster_id"
        " RETURNING cluster_id"
    )
    return primary.value(str, statement, new_cluster_id)


class PostgreSqlMetaStore(ReplacedTables):
    """A MetaStore on one connection; see the rules at the head of this file."""

    def __init__(self, primary: Primary, identity: Identity, warning: str | None) -> None:
        """Use a started connection; call ``open`` to create the object."""
        self._primary = primary
        self._identity = identity
        self.warning = warning
        """Warning for the operator about the server's durability, or None."""
        self._token = random_uuid()
        self._changes = 0
        self._version = 0
        self._based_on: int | None = None
        """The version that the change under way was computed from, if from any."""

    @classmethod
    def open(
        cls, address: str, *, node_id: int, new_cluster_id: str, patience_s: float = PATIENCE_S
    ) -> Self:
        """Connect, migrate the schema to this release, and join the existing cluster.

        ``new_cluster_id`` is used only for a new cluster. Waits for a server that takes writes.
        Raises NotDurable, SchemaTooNew.
        """
        primary = Primary(address, patience_s=patience_s)
        try:
            return cls.begin(primary, node_id=node_id, new_cluster_id=new_cluster_id)
        except BaseException:
            primary.close()
            raise

    @classmethod
    def begin(cls, primary: Primary, *, node_id: int, new_cluster_id: str) -> Self:
        """Open like ``open`` on the caller's connection, which the caller closes after an error."""
        warning = primary.start(bring_up_to_date)
        store = cls(primary, Identity(cluster_id_of(primary, new_cluster_id), node_id), warning)
        store._begin()
        return store

    @property
    def identity(self) -> Identity:
        """Return this node's identity."""
        return self._identity

    @property
    def version(self) -> int:
        """Return the newest version that this object has made or seen."""
        return self._version

    def based_on(self, version: int, change: Callable[[], Result]) -> Result:
        """Make one change by a call of this object; raises Outdated after a change by another."""
        self._based_on = version
        try:
            return change()
        finally:
            self._based_on = None

    @property
    def boot_epoch(self) -> int:
        """Return the durable boot epoch."""
        return self._read(lambda connection: _cluster(connection, "boot_epoch"))

    def begin_boot(self) -> int:
        """Raise the boot epoch by one and return it."""
        return self._raise("boot_epoch", "boot_epoch + 1", ())

    def raise_boot_epoch(self, at_least: int) -> int:
        """Make the boot epoch at least ``at_least`` and return it."""
        return self._raise("boot_epoch", "greatest(boot_epoch, %s)", (at_least,))

    def allocate_producer_ids(self) -> range:
        """Return a block of producer ids that is never returned again (S10)."""
        end = self._raise("next_producer_id", "next_producer_id + %s", (PRODUCER_ID_BLOCK,))
        return range(end - PRODUCER_ID_BLOCK, end)

    def raise_producer_ids(self, at_least: int) -> None:
        """Raise the next producer ID to ``at_least``."""
        self._raise("next_producer_id", "greatest(next_producer_id, %s)", (at_least,))

    def load(self) -> MetadataImage:
        """Return all topics, tombstones and settings as one consistent picture."""
        image = self._read(_image)
        self._seen(image.version)
        return image

    def create_topic(
        self, name: str, topic_id: bytes, partition_count: int, configs: Mapping[str, str]
    ) -> TopicRow:
        """Create a topic with its partitions and settings; raise TopicExists."""

        def change(connection: Connection) -> list[int]:
            taken = "SELECT 1 FROM barnabas.topics WHERE name = %s AND NOT deleted"
            if connection.execute(taken, (name,)).fetchone() is not None:
                raise TopicExists(name)
            statement = "INSERT INTO barnabas.topics (topic_id, name) VALUES (%s, %s)"
            connection.execute(statement, (topic_id, name))
            _insert_topic_configs(connection, topic_id, configs)
            return [_insert_partitions(connection, topic_id, 0, partition_count)]

        (first,) = self._change(change)
        partitions = tuple(PartitionRow(first + index, index) for index in range(partition_count))
        return TopicRow(topic_id, name, partitions, dict(configs))

    def create_partitions(self, topic_id: bytes, total_count: int) -> tuple[PartitionRow, ...]:
        """Extend a topic to ``total_count`` partitions and return the new ones."""

        def change(connection: Connection) -> list[int]:
            _require_live_topic(connection, topic_id)
            statement = "SELECT count(*) FROM barnabas.topic_partitions WHERE topic_id = %s"
            ((start,),) = connection.execute(statement, (topic_id,)).fetchall()
            return [start, _insert_partitions(connection, topic_id, start, total_count)]

        start, first = self._change(change)
        return tuple(PartitionRow(first + each - start, each) for each in range(start, total_count))

    def delete_topic(self, topic_id: bytes) -> None:
        """Hide a topic and leave a tombstone; its partitions lose their leaders."""

        def change(connection: Connection) -> list[int]:
            _require_live_topic(connection, topic_id)
            statement = "UPDATE barnabas.topics SET deleted = true WHERE topic_id = %s"
            connection.execute(statement, (topic_id,))
            connection.execute(
                "SELECT barnabas.remove_partitions(array_agg(partition_id))"
                " FROM barnabas.topic_partitions WHERE topic_id = %s",
                (topic_id,),
            )
            return []

        self._change(change)

    def forget_topic(self, topic_id: bytes) -> None:
        """Remove a tombstone."""
        self._execute("DELETE FROM barnabas.topics WHERE topic_id = %s AND deleted", (topic_id,))

    def set_topic_configs(self, topic_id: bytes, configs: Mapping[str, str]) -> None:
        """Replace all settings of a topic; raise TopicNotFound."""

        def change(connection: Connection) -> list[int]:
            _require_live_topic(connection, topic_id)
            connection.execute(
                "DELETE FROM barnabas.topic_configs WHERE topic_id = %s", (topic_id,)
            )
            _insert_topic_configs(connection, topic_id, configs)
            return []

        self._change(change)

    def keep_secret(self, name: str, new: bytes) -> bytes:
        """Return the secret stored under a name, after storing ``new`` if there was none."""
        statement = (
            "INSERT INTO barnabas.secrets VALUES (%s, %s)"
            " ON CONFLICT (name) DO UPDATE SET value = secrets.value RETURNING value"
        )
        ((value,),) = self._guard(lambda: self._primary.execute(statement, (name, new)))
        return bytes(value)

    def contents(self) -> Contents:
        """Return all that is here."""

        def read(connection: Connection) -> Contents:
            secrets = connection.execute("SELECT name, value FROM barnabas.secrets").fetchall()
            return Contents(
                self._identity.cluster_id,
                _image(connection),
                {name: bytes(value) for name, value in secrets},
                _cluster(connection, "boot_epoch"),
                _cluster(connection, "next_partition_id"),
            )

        return self._read(read)

    def fill(self, contents: Contents, importer: UUID) -> bool:
        """Replace all content by ``contents``; return False if another import replaced this one."""
        numbers = (contents.cluster_id, contents.boot_epoch, contents.next_partition_id)

        def change(connection: Connection) -> list[int]:
            going_on = connection.execute("SELECT barnabas.lock_import(%s)", (importer,))
            if going_on.fetchone() != (True,):
                return [0]
            connection.execute(
                "UPDATE barnabas.cluster SET cluster_id = %s, boot_epoch = %s,"
                " next_partition_id = %s, next_producer_id = %s",
                (*numbers, contents.image.next_producer_id),
            )
            tables = {_FILLED.get(name, name): rows for name, rows in rows_of(contents).items()}
            for table in reversed(tables):
                connection.execute(f"DELETE FROM barnabas.{table}".encode())  # noqa: S608
            for table, rows in tables.items():
                places = ", ".join(["%s"] * len(rows[0])) if rows else ""
                statement = f"INSERT INTO barnabas.{table} VALUES ({places})"  # noqa: S608
                connection.cursor().executemany(statement.encode(), rows)
            return [1]

        (is_filled,) = self._change(change)
        if is_filled:
            self._identity = Identity(contents.cluster_id, self._identity.node_id)
        return bool(is_filled)

    def close(self) -> None:
        """End every wait, and release the connection."""
        self._primary.close()

    # -- how changes are made ----------------------------------------------------------------------

    def _begin(self) -> None:
        """Create the row in which changes are counted."""
        self._primary.execute(
            "INSERT INTO barnabas.metastores (token, version)"
            " SELECT %s, version FROM barnabas.cluster"
            " ON CONFLICT (token) DO UPDATE SET version = excluded.version RETURNING version",
            (self._token,),
        )
        self._version = self.load().version

    def _raise(self, column: str, to: str, arguments: Sequence[object]) -> int:
        """Change a number of the cluster's, and return it."""
        statement = f"UPDATE barnabas.cluster SET {column} = {to} RETURNING {column}"  # noqa: S608

        def change(connection: Connection) -> list[int]:
            ((value,),) = connection.execute(statement.encode(), arguments).fetchall()
            return [value]

        (value,) = self._change(change)
        return value

    def _replace(self, table: str, keys: Rows, rows: Rows) -> None:
        delete, insert = replacement(table, "%s", "barnabas.")

        def change(connection: Connection) -> list[int]:
            cursor = connection.cursor()
            cursor.executemany(delete.encode(), keys)
            cursor.executemany(insert.encode(), rows)
            return []

        self._change(change)

    def _execute(self, statement: str, arguments: Sequence[object]) -> None:
        def change(connection: Connection) -> list[int]:
            connection.execute(statement.encode(), arguments)
            return []

        self._change(change)

    def _change(self, change: Callable[[Connection], list[int]]) -> list[int]:
        """Make one change, which may be tried several times and takes effect once; return its
        result.

        A change that is refused by one of _REFUSALS leaves no trace.
        """

        def attempt(connection: Connection) -> tuple[list[int], int] | Exception:
            try:
                with connection.transaction():
                    return self._once(connection, change)
            except _REFUSALS as refusal:
                # A replaced primary that still runs may refuse a change that is valid by now.
                connection.execute(CONFIRM)
                return refusal

        answer = self._guard(lambda: self._primary.attempt(attempt))
        if not isinstance(answer, tuple):
            raise answer
        result, version = answer
        self._seen(version)
        self._changes += 1
        return result

    def _seen(self, version: int) -> None:
        """Register a version that is durable."""
        self._version = max(self._version, version)
        self._primary.witness.metadata_seen(version)

    def _once(
        self, connection: Connection, change: Callable[[Connection], list[int]]
    ) -> tuple[list[int], int]:
        """Make the change, unless an earlier attempt did; return its result and its version."""
        # Written, changed or not: then the response is durable. A store without a change for long
        # has no row any more.
        statement = (
            "INSERT INTO barnabas.metastores (token, next_change) VALUES (%s, %s)"
            " ON CONFLICT (token) DO UPDATE SET used = clock_timestamp()"
            " RETURNING next_change, result, version"
        )
        ((made, result, version),) = connection.execute(
            statement, (self._token, self._changes)
        ).fetchall()
        if made > self._changes:
            return result, version
        statement = (
            "UPDATE barnabas.cluster SET version = version + 1"
            " RETURNING version, pg_notify('barnabas', '')"
        )
        ((version, _),) = connection.execute(statement).fetchall()
        if self._based_on is not None and version > self._based_on + 1:
            raise Outdated
        result = change(connection)
        connection.execute(
            "UPDATE barnabas.metastores SET next_change = %s, result = %s::bigint[], version = %s"
            " WHERE token = %s",
            (self._changes + 1, result, version, self._token),
        )
        return result, version

    def _read(self, read: Callable[[Connection], Result]) -> Result:
        """Return a result from one consistent snapshot, once that is durable."""

        def attempt(connection: Connection) -> Result:
            with connection.transaction():
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                result = read(connection)
                connection.execute(CONFIRM)
            return result

        return self._guard(lambda: self._primary.attempt(attempt))

    def _guard(self, call: Callable[[], Result]) -> Result:
        try:
            return call()
        except IndexMisused as error:
            raise MetaStoreRefused(f"metadata store: {error}") from error
        except IndexClosed as error:
            raise MetaStoreError("the metadata store was closed") from error


def _cluster(connection: Connection, column: str) -> int:
    row = connection.execute(f"SELECT {column} FROM barnabas.cluster".encode()).fetchone()  # noqa: S608
    assert row is not None
    value: int = row[0]
    return value


def _require_live_topic(connection: Connection, topic_id: bytes) -> None:
    """Raise TopicNotFound unless a topic of this id exists and is not deleted."""
    statement = "SELECT 1 FROM barnabas.topics WHERE topic_id = %s AND NOT deleted"
    if connection.execute(statement, (topic_id,)).fetchone() is None:
        raise TopicNotFound(topic_id)


def _insert_partitions(connection: Connection, topic_id: bytes, start: int, stop: int) -> int:
    """Add partitions of these indexes without leaders; return the id of the first."""
    count = max(stop - start, 0)
    statement = (
        "UPDATE barnabas.cluster SET next_partition_id = next_partition_id + %s"
        " RETURNING next_partition_id"
    )
    ((end,),) = connection.execute(statement, (count,)).fetchall()
    first: int = end - count
    numbers = (first, topic_id, start, count)
    connection.execute(
        "INSERT INTO barnabas.topic_partitions (partition_id, topic_id, partition_index)"
        " SELECT %s::bigint + each, %s, %s::integer + each"
        " FROM generate_series(0, %s::integer - 1) AS each",
        numbers,
    )
    if count:
        connection.execute("SELECT barnabas.add_partitions(%s, %s, 0)", (first, count))
    return first


def _insert_topic_configs(
    connection: Connection, topic_id: bytes, configs: Mapping[str, str]
) -> None:
    """Add settings of a topic that has none."""
    connection.cursor().executemany(
        "INSERT INTO barnabas.topic_configs VALUES (%s, %s, %s)",
        [(topic_id, *each) for each in configs.items()],
    )


def _image(connection: Connection) -> MetadataImage:
    """Return all topics, tombstones and settings."""

    def rows(table: str) -> list[Row]:
        name = _FILLED.get(table, table)
        statement = f"SELECT {TABLES[table]} FROM barnabas.{name}"  # noqa: S608
        return connection.execute(statement.encode()).fetchall()

    return image_of(
        rows,
        next_producer_id=_cluster(connection, "next_producer_id"),
        version=_cluster(connection, "version"),
    )
