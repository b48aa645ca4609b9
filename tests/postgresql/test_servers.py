"""The servers that the other tests use do what these rely on."""

from contextlib import contextmanager

import psycopg
import pytest
from psycopg.pq import PGconn

from tests.counterparts.postgresql_servers import PostgreSqlFailed, Server
from tests.products import for_the_night

WAITING = "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


def numbers(server):
    return [number for (number,) in server.execute("SELECT number FROM numbers ORDER BY number")]


def insert(server, number):
    server.execute("INSERT INTO numbers VALUES (%s)", number)


@contextmanager
def inserting(server, number):
    """Yield a client whose INSERT has no response yet."""
    client = PGconn.connect(server.url.encode())
    try:
        client.send_query(f"INSERT INTO numbers VALUES ({number})".encode())
        server.wait_for(WAITING)
        yield
    finally:
        client.finish()


@for_the_night(beside="tests/postgresql/test_servers.py::test_the_standby_confirms_and_takes_over")
def test_committed_rows_survive_a_crash():
    with Server() as server:
        server.execute("CREATE TABLE numbers (number int)")
        insert(server, 1)
        server.crash()
        with pytest.raises(psycopg.OperationalError):
            server.connect()
        server.start()
        assert numbers(server) == [1]


def test_the_standby_confirms_and_takes_over(pair):
    pair.primary.execute("CREATE TABLE numbers (number int)")
    insert(pair.primary, 1)
    assert pair.primary.execute("SELECT sync_state FROM pg_stat_replication") == [("sync",)]
    for number in (2, 3):
        pair.fail_over()
        insert(pair.primary, number)
    assert numbers(pair.primary) == [1, 2, 3]
    with psycopg.connect(pair.url) as connection:
        assert connection.info.port == pair.primary.port


@for_the_night(beside="tests/postgresql/test_servers.py::test_the_standby_confirms_and_takes_over")
def test_commit_waits_for_a_stopped_standby(pair):
    pair.primary.execute("CREATE TABLE numbers (number int)")
    pair.standby.stop()
    with inserting(pair.primary, 1):
        assert numbers(pair.primary) == []
        pair.primary.terminate_waiting()
        pair.primary.wait_for("SELECT count(*) = 1 FROM numbers")


@for_the_night(beside="tests/postgresql/test_servers.py::test_the_standby_confirms_and_takes_over")
def test_old_primary_has_rows_that_were_never_acknowledged(pair):
    pair.primary.execute("CREATE TABLE numbers (number int)")
    pair.cut()
    with inserting(pair.primary, 1):
        old = pair.split()
        old.terminate_waiting()
        old.wait_for("SELECT count(*) = 1 FROM numbers")
    assert numbers(pair.primary) == []
    pair.follow()
    insert(pair.primary, 2)
    pair.fail_over()
    assert numbers(pair.primary) == [2]


def test_a_server_that_does_not_start_says_why():
    server = Server(shared_buffers="nonsense")
    with pytest.raises(PostgreSqlFailed, match="nonsense"), server:
        pass
    assert not server.directory.exists()
