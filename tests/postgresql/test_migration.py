"""The data directory of a broker that was alone goes into a cluster on PostgreSQL."""

from __future__ import annotations

import contextlib
from uuid import uuid4

import pytest

from barnabas.storage.errors import StoreUnusable
from barnabas.storage.postgresql.base import PostgreSqlBase
from barnabas.storage.replicated.cluster_transfer import (
    IN_USE,
    NOT_EMPTY,
    SUPERSEDED,
    TransferRefused,
)
from barnabas.testing import Broker
from tests.broker.held_markers import Markers
from tests.cluster.watched import WatchedCluster
from tests.counterparts.postgresql_servers import Server
from tests.real.cli.command import barnabas
from tests.real.cluster.carried import (
    SETTINGS,
    Carried,
    contents_of,
    inspect_directory,
    make_store,
    same_metadata,
    see_that_the_store_has,
)


class Store:
    """Stands where ``MemoryStore`` does for brokers in this process."""

    def __init__(self, address: str) -> None:
        self.address = address

    def base(self, *_: object) -> PostgreSqlBase:
        return PostgreSqlBase(self.address, new_cluster_id="unused-unused-unused-u")


@pytest.mark.slow
def test_a_directory_goes_into_a_cluster(tmp_path, monkeypatch):
    directory = tmp_path / "source"
    make_store(directory)
    markers = Markers(monkeypatch)
    with Broker(storage=directory, config=SETTINGS) as broker:
        carried = Carried(broker, markers)
        broker.crash()
    markers.go_on()
    inspected = inspect_directory(directory)
    with Server() as server:
        store = Store(server.url)
        begun = uuid4()
        with contextlib.closing(store.base()) as base:
            index = base.cluster_index()
            running = index.register(uuid4(), 9, "", 60_000)
            with pytest.raises(TransferRefused, match=IN_USE[:20]):
                base.transfer(7).begin_import(uuid4(), 7)
            index.fence(running)
            # An interrupted import: no broker starts, and the next import starts from scratch.
            transfer = base.transfer(7)
            session = transfer.begin_import(begun, 7)
            assert transfer.begin_import(begun, 7) == session
            transfer.import_logs(session, 3, {1: 0, 900: 5})
            transfer.fill(begun, contents_of(directory))
            with pytest.raises(StoreUnusable, match=r"was not completed: import it again$"):
                base.cluster_index().register(uuid4(), 2, "", 1000)
            done = barnabas("cluster", "import", directory, "--into", server.url, cwd=tmp_path)
            assert (done.returncode, done.stderr) == (0, "")
            for late in (
                lambda: transfer.import_logs(session, 3, {901: 0}),
                lambda: transfer.fill(begun, contents_of(directory)),
                lambda: transfer.end_import(begun),
            ):
                with pytest.raises(TransferRefused, match=SUPERSEDED):
                    late()
            with pytest.raises(TransferRefused, match=NOT_EMPTY):
                transfer.begin_import(uuid4(), 7)
            same_metadata(transfer.contents(), contents_of(directory))
            assert base.log_index().partition(900) is None
            see_that_the_store_has(base.log_index(), inspected)
        with WatchedCluster(1, store=store, config=SETTINGS) as cluster:
            cluster.settle_all()
            (broker,) = cluster.brokers
            carried.check(broker)
            carried.check_decided(broker)
            carried.go_on(broker)
            with contextlib.closing(store.base()) as base:
                transfer = base.transfer(7)
                with pytest.raises(TransferRefused) as refused:
                    transfer.begin_import(uuid4(), 7)
                assert str(refused.value) == IN_USE
                with pytest.raises(TransferRefused) as refused:
                    transfer.begin_export(uuid4())
                assert str(refused.value) == IN_USE
            carried.note(broker)
            cluster.stop(0)
        exported = tmp_path / "exported"
        done = barnabas("cluster", "export", exported, "--from", server.url, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        done = barnabas("check", "-d", exported, cwd=tmp_path)
        assert done.returncode == 0, done.stdout
        with Broker(storage=exported, config=SETTINGS) as broker:
            carried.check_records(broker)
        with contextlib.closing(store.base()) as base:
            index = base.cluster_index()
            with pytest.raises(StoreUnusable, match="'barnabas cluster reopen'"):
                index.register(uuid4(), 2, "", 1000)
            done = barnabas("cluster", "reopen", "--at", server.url, cwd=tmp_path)
            assert done.stdout.endswith(": open again\n")
            assert index.register(uuid4(), 2, "", 1000)
