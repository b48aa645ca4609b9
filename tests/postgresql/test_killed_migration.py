"""An import or export is killed wherever it is: nothing is half there, and it is done again.

The process is a fork of this one that kills itself, as ``kill -9`` does: nothing is cleaned up.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from pathlib import Path
from uuid import uuid4

import pytest
from kafka import KafkaProducer

from barnabas.broker.cli.directory import cluster_transfer
from barnabas.broker.cli.directory.cluster_transfer import export_directory, import_directory
from barnabas.broker.cli.errors import CommandError
from barnabas.broker.config.loading.loader import load_config
from barnabas.broker.metadata.identity import EXPORTING_MARK, IMPORTED_MARK
from barnabas.storage.errors import StoreUnusable
from barnabas.storage.metastore.interface import IdentityMismatch
from barnabas.storage.postgresql.base import PostgreSqlBase
from barnabas.storage.postgresql.postgresql_log_index import PostgreSqlLogIndex
from barnabas.storage.postgresql.postgresql_transfer import PostgreSqlTransfer
from barnabas.storage.replicated import log_import
from barnabas.storage.replicated.cluster_transfer import (
    EXPORTED,
    NOT_COMPLETED,
    NOT_EMPTY,
    TransferRefused,
)
from barnabas.testing import Broker
from tests.counterparts.postgresql_servers import Server
from tests.products import for_the_night

CONFIG = load_config().config
TOPIC = "t"
PARTITIONS = 3
RECORDS = 9

# Where it ends: before or after a call of something, at its how manieth.
IMPORTS = [
    (PostgreSqlTransfer, "begin_import", "after", 1),
    (PostgreSqlTransfer, "import_logs", "after", 1),
    (PostgreSqlLogIndex, "commit_flush", "before", 1),
    (PostgreSqlLogIndex, "commit_flush", "after", 2),
    (PostgreSqlLogIndex, "put_snapshot", "after", 2),
    (PostgreSqlTransfer, "fill", "after", 1),
    (cluster_transfer, "mark_imported", "after", 1),
    (PostgreSqlTransfer, "end_import", "after", 1),
]
EXPORTS = [
    (cluster_transfer, "mark_exporting", "after", 1),
    (PostgreSqlTransfer, "begin_export", "after", 1),
    (cluster_transfer, "open_store", "after", 1),
    (cluster_transfer, "export_log", "after", 2),
    (cluster_transfer, "checkpoint", "before", 1),
    (cluster_transfer, "checkpoint", "before", 2),
    (cluster_transfer, "unmark_exporting", "before", 1),
    (cluster_transfer, "unmark_exporting", "after", 1),
    (os, "rename", "after", 1),
]


def killed(act, address: str, directory: Path, where, name: str, side: str, count: int) -> None:
    """Run an act on a directory in a process that is killed at one of its calls."""

    def run() -> None:
        real, calls = getattr(where, name), 0

        def ended(*given, **named):
            nonlocal calls
            is_mine = name != "rename" or str(given[1]) == str(directory)
            calls += is_mine
            if is_mine and calls == count and side == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            result = real(*given, **named)
            if is_mine and calls == count:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        setattr(where, name, ended)
        log_import.FLUSH_BYTES = 1  # A flush for each batch.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        with contextlib.closing(base_at(address)) as base:
            act(str(directory), base, CONFIG)

    process = multiprocessing.get_context("fork").Process(target=run)
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL, (name, side, count)


def base_at(address: str) -> PostgreSqlBase:
    return PostgreSqlBase(address, new_cluster_id="b3V0c2lkZS1hLWNsdXN0ZQ", patience_s=60)


def refused_because(address: str) -> str:
    """Return the refusal to start a broker of the cluster, or an empty string if one started."""
    with contextlib.closing(base_at(address)) as base:
        index = base.cluster_index()
        try:
            index.fence(index.register(uuid4(), 5, "", 1000))
        except StoreUnusable as refusal:
            return str(refusal)
        return ""


def values_in(directory: Path) -> set[bytes | None]:
    with Broker(storage=directory) as broker:
        return {each.value for each in broker.records(TOPIC).result}


def begin_new_counters(base: PostgreSqlBase) -> None:
    """Set the first producer id and leader epoch far above those of an exported directory."""
    transfer = base.transfer(1)
    assert transfer.is_exported()
    for epoch in (1 << 24, (1 << 24) + 1):  # No epoch stays as it is when that is done again.
        transfer.advance(1 << 40, 1 << 24)
        assert {each.epoch for each in base.cluster_index().snapshot(0).led} == {epoch}
    contents = transfer.contents()
    assert contents.image.next_producer_id == 1 << 40
    assert contents.boot_epoch == 1 << 24


@for_the_night(beside="tests/postgresql/test_migration.py::test_a_directory_goes_into_a_cluster")
def test_killed_migration_leaves_no_partial_result_and_is_repeated(tmp_path):
    source, exported = tmp_path / "source", tmp_path / "exported"
    with Broker(storage=source) as broker:
        broker.create_topic(TOPIC, PARTITIONS)
        with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
            for number in range(RECORDS):
                producer.send(TOPIC, b"%d" % number, partition=number % PARTITIONS).get(60)
    expected = {b"%d" % number for number in range(RECORDS)}
    with Server() as server:
        address = server.url
        for point in IMPORTS:
            killed(import_directory, address, source, *point)
            is_over = point == IMPORTS[-1]
            assert refused_because(address) == ("" if is_over else NOT_COMPLETED), point
            assert (source / IMPORTED_MARK).exists() == (point in IMPORTS[-2:]), point
        with pytest.raises(IdentityMismatch, match="was imported"):
            values_in(source)
        with contextlib.closing(base_at(address)) as base:
            with pytest.raises(CommandError, match=NOT_EMPTY):
                import_directory(str(source), base, CONFIG)
            for point in EXPORTS:
                killed(export_directory, address, exported, *point)
                assert refused_because(address) == ("" if point == EXPORTS[0] else EXPORTED), point
                assert exported.exists() == (point == EXPORTS[-1]), point
                is_marked = (tmp_path / "exported.unfinished" / EXPORTING_MARK).exists()
                assert is_marked == (point in EXPORTS[:-2]), point
                if is_marked:
                    with pytest.raises(IdentityMismatch, match="was cut short: do it again"):
                        values_in(tmp_path / "exported.unfinished")
                    with pytest.raises(CommandError, match=r"cut short|not the data directory"):
                        import_directory(str(tmp_path / "exported.unfinished"), base, CONFIG)
            with pytest.raises(CommandError, match="exists already"):
                export_directory(str(exported), base, CONFIG)
            assert values_in(exported) == expected
            begin_new_counters(base)
            assert base.transfer(1).reopen()
            assert not base.transfer(1).is_exported()
            session = base.cluster_index().register(uuid4(), 5, "", 60_000)
            with pytest.raises(TransferRefused, match="brokers serve this cluster"):
                base.transfer(1).advance(1 << 41, 1 << 25)
            base.cluster_index().fence(session)
            export_directory(str(tmp_path / "again"), base, CONFIG)
            assert values_in(tmp_path / "again") == expected
