"""The tables and functions in PostgreSQL, brought to this release's form by numbered files.

A released file of ``migrations`` never changes: a later file changes the schema. All missing files
are applied in one transaction, by one broker at a time.
"""

from __future__ import annotations

from importlib import resources
from typing import Any, Final, NamedTuple

import psycopg

from barnabas.storage.errors import StoreUnusable

_LOCK: Final = 0x6261726E6162
"""The advisory lock of the migrating broker: "barnab"."""

_HOUSE: Final = """
CREATE SCHEMA IF NOT EXISTS barnabas;
CREATE TABLE IF NOT EXISTS barnabas.migrations (
    number integer PRIMARY KEY,
    name text NOT NULL,
    applied timestamptz NOT NULL DEFAULT clock_timestamp()
)
"""


class SchemaTooNew(StoreUnusable):
    """A newer release has changed the schema, which this release does not understand."""


class Migration(NamedTuple):
    """One file of statements."""

    number: int
    name: str
    statements: str


def migrations() -> list[Migration]:
    """Return the migrations of this release, in order of their numbers."""
    folder = resources.files(__package__) / "migrations"
    found = []
    for file in sorted(folder.iterdir(), key=lambda each: each.name):
        if file.name.endswith(".sql"):
            number, _, name = file.name.removesuffix(".sql").partition("_")
            found.append(Migration(int(number), name, file.read_text(encoding="utf-8")))
    numbers = [each.number for each in found]
    assert sorted({*numbers}) == numbers, numbers
    return found


def bring_up_to_date(connection: psycopg.Connection[Any]) -> None:
    """Bring the schema to this release's form; raises SchemaTooNew."""
    migrate(connection, migrations())


def migrate(connection: psycopg.Connection[Any], wanted: list[Migration]) -> list[Migration]:
    """Apply the missing migrations, each completely, and return them.

    Raises SchemaTooNew, and the driver's error with a note that names the migration.
    """
    if _is_made(connection) and not _missing(connection, wanted):
        return []
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        connection.execute(_HOUSE)
        missing = _missing(connection, wanted)
        for each in missing:
            try:
                connection.execute(each.statements.encode())
            except psycopg.Error as error:
                error.add_note(f"migration {each.number:04}_{each.name}")
                raise
            connection.execute(
                "INSERT INTO barnabas.migrations (number, name) VALUES (%s, %s)",
                (each.number, each.name),
            )
    return missing


def _is_made(connection: psycopg.Connection[Any]) -> bool:
    row = connection.execute("SELECT to_regclass('barnabas.migrations') IS NOT NULL").fetchone()
    return row == (True,)


def _missing(connection: psycopg.Connection[Any], wanted: list[Migration]) -> list[Migration]:
    row = connection.execute("SELECT coalesce(max(number), 0) FROM barnabas.migrations").fetchone()
    (newest,) = row or (0,)
    known = wanted[-1].number
    if newest > known:
        raise SchemaTooNew(
            f"the database has version {newest} of the schema, this release knows {known}"
        )
    return [each for each in wanted if each.number > newest]
