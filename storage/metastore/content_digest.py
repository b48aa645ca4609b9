"""A digest of what a metadata store holds, so that bytes which changed on the disk are noticed.

SQLite checks the structure of its pages, not their content: one flipped bit is another name, or a
producer id that was given out before. The digest of a table is the sum of the checksums of its
rows: a change of a row takes the old one off and adds the new one, in the same commit, without
looking at any other row.

It is stored with the number of commits for which it holds: a release without digests leaves an
older number there, and then the digest is computed again.
"""

import sqlite3
from collections import defaultdict
from typing import Final

from crc32c import crc32c

from barnabas.storage.metastore.tables import TABLES

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS digests (
    name TEXT PRIMARY KEY NOT NULL,
    number INTEGER NOT NULL
)"""

_NUMBERS: Final = {
    "commits": "SELECT number FROM commits",
    "partition ids": "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'partitions'",
}
"""Values that are compared directly: the number of commits of the digests, the last allocated
id."""


class ContentDigest:
    """The digests of the store behind a connection; for one transaction at a time."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._changes: defaultdict[str, int] = defaultdict(int)

    def compare(self) -> list[str]:
        """Return the tables that differ from the committed content, at a store's opening."""
        connection = self._connection
        connection.create_function("row_checksum", -1, _row_checksum, deterministic=True)
        connection.create_function("note_change", -1, self._note)
        connection.execute(_SCHEMA)
        noted = dict(connection.execute("SELECT name, number FROM digests").fetchall())
        actual = self._actual()
        if noted.get("commits") != actual["commits"]:
            self._write(actual)
            return []
        # A table that an earlier release did not have is empty.
        for name in actual.keys() - noted.keys():
            connection.execute("INSERT INTO digests VALUES (?, 0)", (name,))
        return [name for name, number in actual.items() if noted.get(name, 0) != number]

    def accept(self) -> None:
        """Accept the present content as the committed content."""
        self._write(self._actual())

    def follow(self) -> None:
        """Include every later change of a row."""
        for table, columns in TABLES.items():
            new, old = (
                ", ".join(f"{row}.{name}" for name in columns.split(", ")) for row in ("NEW", "OLD")
            )
            add = f"SELECT note_change('{table}', 1, {new});"
            take = f"SELECT note_change('{table}', -1, {old});"
            for event, work in (("INSERT", add), ("DELETE", take), ("UPDATE", take + add)):
                self._connection.execute(
                    f"CREATE TEMP TRIGGER digest_{table}_{event} AFTER {event} ON main.{table}"
                    f" BEGIN {work} END"
                )

    def begin(self) -> None:
        """Discard the changes of a transaction that was rolled back."""
        self._changes.clear()

    def commit(self) -> None:
        """Store the changes of the transaction as part of it; the transaction is counted
        already.
        """
        connection = self._connection
        for table, change in self._changes.items():
            connection.execute(
                "UPDATE digests SET number = number + ? WHERE name = ?", (change, table)
            )
        for name, query in _NUMBERS.items():
            ((number,),) = connection.execute(query)
            connection.execute("UPDATE digests SET number = ? WHERE name = ?", (number, name))

    def _actual(self) -> dict[str, int]:
        queries = _NUMBERS | {
            table: f"SELECT coalesce(sum(row_checksum({columns})), 0) FROM {table}"  # noqa: S608  Our names.
            for table, columns in TABLES.items()
        }
        return {
            name: self._connection.execute(query).fetchone()[0] for name, query in queries.items()
        }

    def _write(self, numbers: dict[str, int]) -> None:
        self._connection.executemany(
            "INSERT OR REPLACE INTO digests VALUES (?, ?)", list(numbers.items())
        )

    def _note(self, table: str, sign: int, *values: object) -> None:
        self._changes[table] += sign * _row_checksum(*values)


def _row_checksum(*values: object) -> int:
    """Return the CRC32C of a row's values."""
    return crc32c(repr(values).encode())
