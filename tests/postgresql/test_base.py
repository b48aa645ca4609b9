"""A running broker continues with the state of its start, regardless of other changes to the
server."""

from __future__ import annotations

import threading
from contextlib import closing

import pytest

from barnabas.storage.postgresql.base import PostgreSqlBase
from barnabas.storage.postgresql.durability import NotDurable
from barnabas.storage.postgresql.schema import SchemaTooNew
from tests.waiting import wait_until


def new_base(server):
    return closing(PostgreSqlBase(server.url, new_cluster_id="c", patience_s=1))


def open_all(base):
    base.log_index()
    base.cluster_index()
    base.metastore(1)


def test_a_newer_release_migrates_while_an_older_one_runs(server):
    with new_base(server) as old, new_base(server) as late:
        open_all(old)
        server.execute("INSERT INTO barnabas.migrations (number, name) VALUES (99, 'later')")
        try:
            open_all(old)
            for each in (late.log_index, late.cluster_index, lambda: late.metastore(2)):
                with pytest.raises(SchemaTooNew):
                    each()
        finally:
            server.execute("DELETE FROM barnabas.migrations WHERE number = 99")
        open_all(late)


def test_a_server_that_is_found_lacking_later_is_waited_for(server):
    with new_base(server) as old, new_base(server) as late:
        open_all(old)
        server.set(synchronous_commit="local")
        opened = threading.Event()
        thread = threading.Thread(target=lambda: (open_all(old), opened.set()))
        try:
            with pytest.raises(NotDurable):
                late.log_index()
            thread.start()
            wait_until(lambda: "synchronous_commit = local" in old.last_error)
            assert not opened.is_set()
        finally:
            server.set(synchronous_commit="on")
        thread.join(60)
        assert opened.is_set()
        assert old.last_error == ""
