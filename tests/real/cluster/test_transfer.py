"""A data directory goes into a cluster in memory: all of it, or nothing that is served."""

from __future__ import annotations

import contextlib
from pathlib import Path
from uuid import uuid4

import pytest

from barnabas.broker.cli.directory.cluster_transfer import (
    CLOSED,
    export_directory,
    import_directory,
)
from barnabas.broker.cli.directory.store_waits import StoreWaits
from barnabas.broker.cli.errors import CommandError
from barnabas.broker.config.loading.loader import load_config
from barnabas.broker.metadata.identity import BACKUP_MANIFEST, mark_imported
from barnabas.broker.testing.store.base import MemoryStore
from barnabas.broker.testing.store.transfer import MemoryTransfer
from barnabas.storage.errors import StoreUnusable
from barnabas.storage.replicated.cluster_transfer import IN_USE, NOT_EMPTY, NOT_WHOLE
from barnabas.storage.runtime.threads import new_event
from barnabas.testing import Broker
from tests.broker.cli.inline import Shell
from tests.broker.data_plane import Named, Wire, batch
from tests.cluster.watched import WatchedCluster
from tests.waiting import WAIT_S

CLUSTER_ID = "oKlTPFF2TkSvFtAbxy0nMg"
CONFIG = load_config().config
GONE = 77
"""The node id of a broker that there is no more."""


@pytest.fixture
def store():
    with contextlib.closing(MemoryStore(CLUSTER_ID)) as made:
        yield made


def broker_of(directory):
    return Broker(storage=directory)


@pytest.mark.parametrize("call", ["contents", "beginnings"])
def test_an_export_that_was_cut_short_is_done_again_or_taken_back(call, directory, store, tmp_path):
    import_directory(directory, store.base(), CONFIG)
    exported = str(tmp_path / "exported")
    with pytest.raises(CutShort):
        export_directory(exported, ShortBase(store.base(), call), CONFIG)
    register = store.base().cluster_index().register
    with pytest.raises(StoreUnusable, match="cluster reopen"):
        register(uuid4(), 5, "", 1000)
    assert store.base().transfer(1).reopen()
    assert not store.base().transfer(1).reopen()
    session = register(uuid4(), 5, "", 60_000)
    with pytest.raises(CommandError, match=IN_USE[:20]):
        export_directory(exported, store.base(), CONFIG)
    store.base().cluster_index().fence(session)
    export_directory(exported, store.base(), CONFIG)
    with pytest.raises(CommandError, match="exists already"):
        export_directory(exported, store.base(), CONFIG)
    with broker_of(exported) as broker:
        assert [each.value for each in broker.records("t").result] == [b"v"]


def test_incomplete_import_is_not_exported(directory, store, tmp_path):
    with pytest.raises(CutShort):
        import_directory(directory, ShortBase(store.base(), "end_import"), CONFIG)
    with pytest.raises(CommandError, match=NOT_WHOLE):
        export_directory(str(tmp_path / "exported"), store.base(), CONFIG)


@pytest.fixture
def directory(tmp_path):
    """One with a topic of one record's."""
    made = tmp_path / "small"
    with broker_of(made) as broker:
        broker.create_topic("t")
        with Wire(broker.address) as wire:
            assert wire.produce(Named("t"), batch(b"v")).error_code == 0
    return str(made)


@pytest.fixture
def transfer(monkeypatch):
    """Runs a command on a base."""

    def run(base, *words):
        made = "barnabas.broker.cli.directory.cluster_transfer.base_of"
        monkeypatch.setattr(made, lambda _config, _patience_s: base)
        address = "-Xbarnabas.metadata=postgresql://nowhere/cluster"
        return Shell(monkeypatch, "")("cluster", *words, address, server=False)

    return run


def test_pins_stay_in_the_cluster_that_they_are_of(directory, store, tmp_path, transfer):
    def shell(*words):
        return transfer(store.base(), *words).lines

    def pins():
        return [each.pinned_node for each in store.index.snapshot(0).led]

    (said,) = shell("import", directory)
    assert said.startswith("postgresql://nowhere/cluster: 1 partition with")
    assert pins() == [None]
    (led,) = store.index.snapshot(0).led
    store.index.want({led.partition_id: GONE}, pins=True)
    exported = str(tmp_path / "exported")
    done, said = shell("export", exported)
    assert done.endswith("exported")
    assert said.startswith("pins of 1 partition left behind")
    with contextlib.closing(MemoryStore(CLUSTER_ID)) as another:
        import_directory(exported, another.base(), CONFIG)
        assert [each.pinned_node for each in another.index.snapshot(0).led] == [None]
        with WatchedCluster(1, store=another) as cluster:
            cluster.settle("t")
    assert shell("reopen") == ["postgresql://nowhere/cluster: open again"]
    assert pins() == [GONE]
    with WatchedCluster(1, store=store) as cluster:
        cluster.settle("t")
        assert pins() == [GONE], "it comes back to whom it is pinned to"


def test_reopened_cluster_uses_no_id_and_no_epoch_of_the_exported_directory(
    directory, store, tmp_path, transfer
):
    import_directory(directory, store.base(), CONFIG)
    exported = str(tmp_path / "exported")
    export_directory(exported, store.base(), CONFIG)
    with broker_of(exported) as broker:
        ids = broker.server.catalogue.producer_ids
        given = broker.call(ids.peek)
        epoch = broker.server.logs.leader_epoch
    assert transfer(store.base(), "reopen").lines == ["postgresql://nowhere/cluster: open again"]
    with WatchedCluster(1, store=store) as cluster:
        cluster.settle("t")
        partition = cluster.brokers[0].server.catalogue.topics["t"].partitions[0]
        assert partition.log.leader_epoch > epoch
        assert store.base().metastore(1).load().next_producer_id > given + (1 << 24)
        # Again only for a database that was restored, and not while brokers serve it.
        assert IN_USE[:20] in transfer(store.base(), "reopen", "--restored").error
        cluster.stop(0)
    before = store.index.rows[partition.partition_id].leader_epoch
    assert transfer(store.base(), "reopen").lines == [
        "postgresql://nowhere/cluster: was not exported"
    ]
    assert store.index.rows[partition.partition_id].leader_epoch == before
    (line,) = transfer(store.base(), "reopen", "--restored").lines
    assert line.endswith("open again, with new producer ids and leader epochs")
    assert store.index.rows[partition.partition_id].leader_epoch > before


def test_an_export_to_where_nothing_can_be_leaves_the_cluster_as_it_is(
    store, transfer, directory, tmp_path, capsys
):
    import_directory(directory, store.base(), CONFIG)
    nowhere = str(tmp_path / "nowhere" / "exported")
    said = transfer(store.base(), "export", nowhere).error
    assert said == f"{nowhere}.unfinished: No such file or directory"
    assert not store.base().transfer(1).reopen(), "it was not closed"
    exported = str(tmp_path / "exported")
    with pytest.raises(CutShort):
        export_directory(exported, ShortBase(store.base(), "beginnings"), CONFIG)
    assert capsys.readouterr().err.splitlines() == [CLOSED]
    assert store.base().transfer(1).reopen()


@pytest.fixture
def no_patience(monkeypatch):
    """Report problems of the store at once."""
    monkeypatch.setattr("barnabas.broker.cli.directory.store_waits.PATIENCE_S", 0.0)


@pytest.mark.usefixtures("no_patience")
def test_a_store_that_has_never_answered_is_given_up(store, transfer, directory, tmp_path):
    for words in (("import", directory), ("export", str(tmp_path / "exported")), ("reopen",)):
        base = store.base()
        base.cut()
        ended = transfer(base, *words)
        assert ended.error == "postgresql://nowhere/cluster does not answer: it was cut off"


@pytest.mark.usefixtures("no_patience")
def test_a_store_that_has_answered_is_waited_for(store, transfer, directory, monkeypatch):
    base = store.base()

    def mark(*arguments):
        base.cut()
        mark_imported(*arguments)

    def report(waits, what):
        original(waits, what)
        (looked.set if base.last_error == "" else base.mend)()

    original = StoreWaits._report
    monkeypatch.setattr(StoreWaits, "_report", report)
    monkeypatch.setattr("barnabas.broker.cli.directory.cluster_transfer.mark_imported", mark)
    looked = new_event()
    end = MemoryTransfer.end_import

    def end_import(*given):
        end(*given)
        assert looked.wait(WAIT_S), "nobody has looked whether it answers again"

    monkeypatch.setattr(MemoryTransfer, "end_import", end_import)
    ended = transfer(base, "import", directory)
    assert ended.exit_code == 0
    assert ended.stderr.splitlines() == [
        "barnabas: postgresql://nowhere/cluster does not answer, and is waited for: it was cut off",
        "barnabas: postgresql://nowhere/cluster answers again",
    ]


def test_store_errors_are_reported_unchanged(transfer, store, tmp_path):
    said = "the role may do nothing in the database of such data"

    class Refusing(ShortBase):
        def _end(self, *_arguments):
            raise StoreUnusable(said)

    def refusing(call):
        base = Refusing(store.base(), call)
        base.close, base.last_error = base.base.close, ""
        return base

    assert transfer(refusing("reopen"), "reopen").error == said
    exported = str(tmp_path / "exported")
    assert transfer(refusing("begin_export"), "export", exported).error == said


class CutShort(Exception):
    """The importing process ends."""


class ShortBase:
    """A ``TransferBase`` at which an import is cut short by one of its calls."""

    has_object_store = False

    def __init__(self, base, call: str) -> None:
        self.base = base
        self.object_use = base.object_use
        self.call = call

    def transfer(self, node_id):
        return self._short(self.base.transfer(node_id))

    def log_index(self):
        return self._short(self.base.log_index())

    def _short(self, way):
        if hasattr(way, self.call):
            setattr(way, self.call, self._end)
        return way

    def _end(self, *_arguments, **_named):
        raise CutShort


@pytest.mark.parametrize(
    "call", ["import_logs", "commit_flush", "put_snapshot", "fill", "end_import"]
)
def test_interrupted_import_is_not_served_and_starts_again(call, directory, store):
    with pytest.raises(CutShort):
        import_directory(directory, ShortBase(store.base(), call), CONFIG)
    with pytest.raises(StoreUnusable, match="was not completed"):
        store.base().cluster_index().register(uuid4(), 5, "", 1000)
    import_directory(directory, store.base(), CONFIG)
    with WatchedCluster(1, store=store) as cluster:
        assert [each.value for each in cluster.records("t").result] == [b"v"]


def test_only_an_empty_cluster_takes_a_directory(directory, store):
    index = store.base().cluster_index()
    session = index.register(uuid4(), 5, "", 60_000)
    with pytest.raises(CommandError, match=IN_USE[:20]):
        import_directory(directory, store.base(), CONFIG)
    index.fence(session)
    import_directory(directory, store.base(), CONFIG)
    with pytest.raises(CommandError, match=NOT_EMPTY):
        import_directory(directory, store.base(), CONFIG)


def test_only_the_directory_of_a_broker_that_has_ended_is_taken(tmp_path, store):
    with pytest.raises(CommandError, match="not the data directory"):
        import_directory(str(tmp_path), store.base(), CONFIG)
    directory = tmp_path / "running"
    with broker_of(directory), pytest.raises(CommandError, match="a broker is using it"):
        import_directory(str(directory), store.base(), CONFIG)
    (directory / BACKUP_MANIFEST).write_text("{}")
    with pytest.raises(CommandError, match="is a backup"):
        import_directory(str(directory), store.base(), CONFIG)
    assert store.base().cluster_index().snapshot(0).members == []


def test_a_damaged_directory_is_not_taken(directory, store):
    (log,) = Path(directory, "t-0").glob("*.log")
    data = bytearray(log.read_bytes())
    data[len(data) - 1] ^= 1
    log.write_bytes(data)
    with pytest.raises(CommandError, match="barnabas check"):
        import_directory(directory, store.base(), CONFIG)
    with pytest.raises(StoreUnusable, match="was not completed"):
        store.base().cluster_index().register(uuid4(), 5, "", 1000)
