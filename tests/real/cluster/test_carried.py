"""A data directory with everything a broker can hold goes into a cluster, and out of it."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from uuid import uuid4

import pytest

from barnabas.broker.cli.commands.check import problems_of
from barnabas.broker.cli.directory.cluster_transfer import export_directory, import_directory
from barnabas.broker.config.loading.loader import load_config
from barnabas.broker.metadata.identity import IMPORTED_MARK
from barnabas.broker.testing.store.base import MemoryStore
from barnabas.storage.errors import StoreUnusable
from barnabas.storage.metastore.interface import IdentityMismatch
from barnabas.storage.replicated import log_import
from barnabas.testing import Broker
from tests.broker.held_markers import Markers
from tests.cluster.watched import WatchedCluster
from tests.real.cluster.carried import (
    SETTINGS,
    Carried,
    contents_of,
    inspect_directory,
    make_store,
    same_metadata,
    see_that_the_store_has,
)
from tests.seeds import SEED
from tests.storage.scripted_objects import clusters_with_objects

CONFIG = load_config().config


@pytest.fixture(params=["rows", "objects"])
def store(request, monkeypatch):
    """A cluster whose records are in rows, or in an object store that fails now and then."""
    with contextlib.ExitStack() as stack:
        if request.param == "objects":
            objects = stack.enter_context(clusters_with_objects(SEED, failures=0.02))
            monkeypatch.setattr(log_import, "OBJECT_BYTES_MIN", 1)
            monkeypatch.setattr(log_import, "FLUSH_BYTES", 20_000)
        yield stack.enter_context(contextlib.closing(MemoryStore("oKlTPFF2TkSvFtAbxy0nMg")))
        if request.param == "objects":
            kinds = {key.partition("/")[0] for each in objects for key in each.ever}
            assert {"seg", "wal"} <= kinds, "segments, and flushes of compacted logs"


def broker_of(directory):
    return Broker(storage=directory, config=SETTINGS)


@pytest.fixture(params=["stopped", "crashed"])
def source(request, tmp_path, monkeypatch):
    """A directory with all that can be in one, and what is in it."""
    directory = tmp_path / "source"
    make_store(directory)
    markers = Markers(monkeypatch)
    with broker_of(directory) as broker:
        carried = Carried(broker, markers)
        if request.param == "crashed":
            broker.crash()
    markers.go_on()
    return directory, carried


def files_of(directory):
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file() and not path.name.endswith(("-wal", "-shm"))
    }


def test_all_of_a_directory_is_served_by_the_cluster(source, store):
    directory, carried = source
    before = files_of(directory)
    inspected = inspect_directory(directory)
    import_directory(str(directory), store.base(), CONFIG)
    after = files_of(directory)
    assert after.pop(IMPORTED_MARK)
    assert after == before
    same_metadata(store.base().transfer(1).contents(), contents_of(directory))
    see_that_the_store_has(store.base().log_index(), inspected)
    with WatchedCluster(1, store=store, config=SETTINGS) as cluster:
        cluster.settle_all()
        (broker,) = cluster.brokers
        carried.check(broker)
        carried.check_decided(broker)
        carried.go_on(broker)
        with pytest.raises(IdentityMismatch, match="was imported"), broker_of(directory):
            pass


def test_all_of_a_cluster_is_served_from_a_directory(source, store, tmp_path):
    imported, carried = source
    import_directory(str(imported), store.base(), CONFIG)
    directory = tmp_path / "exported"
    export_directory(f"{directory}/", store.base(), CONFIG)
    same_metadata(
        replace(contents_of(directory), boot_epoch=0), replace(contents_of(imported), boot_epoch=0)
    )
    assert problems_of(str(directory), CONFIG) == []
    assert inspect_directory(directory) == inspect_directory(imported)
    with pytest.raises(StoreUnusable, match="cluster reopen"):
        store.base().cluster_index().register(uuid4(), 5, "", 1000)
    with broker_of(directory) as broker:
        carried.check(broker)
        carried.check_decided(broker)
        carried.go_on(broker)
        carried.note(broker)
        broker.crash()
        broker.restart()
        carried.check_records(broker)
