"""The schema is updated once, by the first broker, and never downgraded."""

from concurrent.futures import ThreadPoolExecutor
from itertools import count

import psycopg
import pytest

from barnabas.storage.postgresql.postgresql_log_index import PostgreSqlLogIndex
from barnabas.storage.postgresql.primary import Primary
from barnabas.storage.postgresql.schema import Migration, SchemaTooNew, migrate, migrations
from barnabas.storage.replicated.log_index import IndexMisused

SECOND = Migration(2, "second", "CREATE TABLE barnabas.second (i int)")
WRONG = Migration(3, "wrong", "CREATE TABLE barnabas.third (i int); SELECT nonsense")
DATABASES = count()


@pytest.fixture
def address(server):
    name = f"empty_{next(DATABASES)}"
    server.execute(f"CREATE DATABASE {name}")
    return server.url.removesuffix("postgres") + name


@pytest.fixture
def connection(address):
    with psycopg.connect(address, autocommit=True) as connected:
        yield connected


def applied(connection):
    return connection.execute("SELECT number, name FROM barnabas.migrations ORDER BY 1").fetchall()


def test_missing_migrations_are_applied(connection):
    first = migrations()[:1]
    assert migrate(connection, first) == first
    assert migrate(connection, first) == []
    assert migrate(connection, [*first, SECOND]) == [SECOND]
    assert migrate(connection, [*first, SECOND]) == []
    assert applied(connection) == [(1, "flushes"), (2, "second")]


def test_a_newer_schema_is_refused(address, connection):
    newer = Migration(migrations()[-1].number + 1, "newer", "SELECT 1")
    migrate(connection, [*migrations(), newer])
    with pytest.raises(SchemaTooNew, match=f"has version {newer.number} .*, this release knows"):
        PostgreSqlLogIndex.open(address)


def test_nothing_of_a_migration_that_fails_is_there(connection):
    first = migrations()[:1]
    migrate(connection, first)
    with pytest.raises(psycopg.errors.UndefinedColumn):
        migrate(connection, [*first, SECOND, WRONG])
    assert applied(connection) == [(1, "flushes")]
    assert connection.execute("SELECT to_regclass('barnabas.second')").fetchone() == (None,)


@pytest.mark.parametrize(
    ("statements", "code"),
    [
        ("DO $$ BEGIN ASSERT false, 'it is not what this changes'; END $$", "P0004"),
        ("DO $$ BEGIN RAISE 'it is not what this changes'; END $$", "P0001"),
    ],
)
def test_start_ends_with_the_name_of_a_migration_that_fails(address, statements, code):
    primary = Primary(address)
    wrong = [*migrations(), Migration(99, "wrong", statements)]
    words = rf"migration 0099_wrong: it is not what this changes \(error {code}\)"
    with pytest.raises(IndexMisused, match=words):
        primary.start(lambda connection: migrate(connection, wrong))
    primary.close()


def test_a_long_migration_is_waited_for(address):
    """A migration with a timeout would be repeated forever."""
    long = Migration(1, "long", "SELECT pg_sleep(0.5)")
    primary = Primary(address, patience_s=0.1)
    assert "one server" in primary.start(lambda connection: migrate(connection, [long]))
    primary.close()


def test_concurrent_migrations_wait_for_each_other(address):
    def open_and_close(_):
        PostgreSqlLogIndex.open(address).close()

    with ThreadPoolExecutor(4) as brokers:
        list(brokers.map(open_and_close, range(8)))
    with psycopg.connect(address, autocommit=True) as connection:
        assert applied(connection) == [(each.number, each.name) for each in migrations()]
