"""A data directory goes into a cluster in memory: all of it, or nothing that is served."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from kafka import KafkaProducer

from barnabas.broker.cli.check import problems_of
from barnabas.broker.cli.cluster_transfer import CLOSED, export_directory, import_directory
from barnabas.broker.cli.errors import CommandError
from barnabas.broker.cli.store_waits import StoreWaits
from barnabas.broker.config.loader import load_config
from barnabas.broker.topics.identity import BACKUP_MANIFEST, IMPORTED_MARK, mark_imported
from barnabas.storage.cluster_transfer import IN_USE, NOT_EMPTY, NOT_WHOLE
from barnabas.storage.errors import StoreUnusable
from barnabas.storage.memory_base import MemoryStore
from barnabas.storage.memory_transfer import MemoryTransfer
from barnabas.storage.metastore.interface import IdentityMismatch
from barnabas.testing import Broker
from tests.broker.cli.inline import Shell
from tests.broker.cluster.carried import (
    SETTINGS,
    Carried,
    contents_of,
    inspect_directory,
    make_store,
    same_metadata,
    see_that_the_store_has,
)
from tests.broker.cluster.members import CLUSTER_ID, MemberBroker, all_served, everything_served
from tests.broker.held_markers import Markers
from tests.waiting import WAIT_S

CONFIG = load_config().config
GONE = 77
"""The node id of a broker that there is no more."""
TWO_PHASES = {"transaction.two.phase.commit.enable": "true"}


@pytest.fixture
def store():
    with contextlib.closing(MemoryStore(CLUSTER_ID)) as made:
        yield made


def broker_of(directory, **config):
    return Broker(storage=directory, config=SETTINGS | config)


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
    with MemberBroker(store, **TWO_PHASES) as broker:
        everything_served(broker)
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
    with pytest.raises(CommandError, match="there already"):
        export_directory(exported, store.base(), CONFIG)
    with broker_of(exported) as broker:
        assert [each.value for each in broker.records("t").result] == [b"v"]


def test_what_is_not_whole_is_not_exported(directory, store, tmp_path):
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
        with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
            producer.send("t", b"v").get(60)
    return str(made)


@pytest.fixture
def transfer(monkeypatch):
    """Runs a command on a base."""

    def run(base, *words):
        made = "barnabas.broker.cli.cluster_transfer.base_of"
        monkeypatch.setattr(made, lambda _config, _patience_s: base)
        address = "-Xbarnabas.metadata=postgresql://nowhere/cluster"
        return Shell(monkeypatch, "")("cluster", *words, address, server=False)

    return run


def test_pins_stay_in_the_cluster_that_they_are_of(directory, store, tmp_path, transfer):
    def shell(*words):
        return transfer(store.base(), *words).lines

    def pins():
        return [each.pinned_node for each in store.index.picture(0).led]

    (said,) = shell("import", directory)
    assert said.startswith("postgresql://nowhere/cluster: 1 partition with")
    assert pins() == [None]
    (led,) = store.index.picture(0).led
    store.index.want({led.partition_id: GONE}, pins=True)
    exported = str(tmp_path / "exported")
    done, said = shell("export", exported)
    assert done.endswith("exported")
    assert said.startswith("pins of 1 partition left behind")
    with contextlib.closing(MemoryStore(CLUSTER_ID)) as another:
        import_directory(exported, another.base(), CONFIG)
        assert [each.pinned_node for each in another.index.picture(0).led] == [None]
        with MemberBroker(another) as broker:
            all_served([broker], "t", 1)
    assert shell("reopen") == ["postgresql://nowhere/cluster: open again"]
    assert pins() == [GONE]
    with MemberBroker(store) as broker:
        all_served([broker], "t", 1)
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
    with MemberBroker(store) as broker:
        all_served([broker], "t", 1)
        partition = broker.server.catalogue.topics["t"].partitions[0]
        assert partition.log.leader_epoch > epoch
        assert store.base().metastore(1).load().next_producer_id > given + (1 << 24)
        # Again only for a database that was restored, and not while brokers serve it.
        assert IN_USE[:20] in transfer(store.base(), "reopen", "--restored").error
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
    """Trouble is told of at once."""
    monkeypatch.setattr("barnabas.broker.cli.store_waits.PATIENCE_S", 0.0)


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

    def say(waits, what):
        say_it(waits, what)
        (looked.set if base.trouble == "" else base.mend)()

    say_it = StoreWaits._say
    monkeypatch.setattr(StoreWaits, "_say", say)
    monkeypatch.setattr("barnabas.broker.cli.cluster_transfer.mark_imported", mark)
    looked = threading.Event()
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


def test_errors_are_told_as_they_are(transfer, store, tmp_path):
    said = "the role may do nothing in the database of such data"

    class Refusing(ShortBase):
        def _end(self, *_arguments):
            raise StoreUnusable(said)

    def refusing(call):
        base = Refusing(store.base(), call)
        base.close, base.trouble = base.base.close, ""
        return base

    assert transfer(refusing("reopen"), "reopen").error == said
    exported = str(tmp_path / "exported")
    assert transfer(refusing("begin_export"), "export", exported).error == said


class CutShort(Exception):
    """The importing process ends."""


class ShortBase:
    """A ``TransferBase`` at which an import is cut short by one of its calls."""

    def __init__(self, base, call: str) -> None:
        self.base = base
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
def test_what_was_cut_short_is_not_served_and_is_begun_anew(call, directory, store):
    with pytest.raises(CutShort):
        import_directory(directory, ShortBase(store.base(), call), CONFIG)
    with pytest.raises(StoreUnusable, match="was not completed"):
        store.base().cluster_index().register(uuid4(), 5, "", 1000)
    import_directory(directory, store.base(), CONFIG)
    with MemberBroker(store) as broker:
        all_served([broker], "t", 1)
        assert [each.value for each in broker.records("t").result] == [b"v"]


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
    assert store.base().cluster_index().picture(0).members == []


def test_a_damaged_directory_is_not_taken(directory, store):
    (log,) = Path(directory, "t-0").glob("*.log")
    data = bytearray(log.read_bytes())
    data[len(data) - 1] ^= 1
    log.write_bytes(data)
    with pytest.raises(CommandError, match="barnabas check"):
        import_directory(directory, store.base(), CONFIG)
    with pytest.raises(StoreUnusable, match="was not completed"):
        store.base().cluster_index().register(uuid4(), 5, "", 1000)
