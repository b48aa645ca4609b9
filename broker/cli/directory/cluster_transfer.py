"""``barnabas cluster import``, ``export``, ``reopen``: data directories into clusters, and back.

Rules of this file:

1. Only one side continues the data. Brokers of the cluster start once it has all of the data, not
   earlier; before that the directory is marked, so that no single broker starts in it.
2. An interrupted import is repeated from the beginning.
3. Changes that a start would make are made in a scratch copy: only the mark is written to the
   directory.
4. An interrupted export leaves a directory with another name and a mark: no broker starts with a
   part of the data.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from barnabas.broker.cli import configuration
from barnabas.broker.cli.commands.backup import UNFINISHED
from barnabas.broker.cli.directory.directory_copy import sync_name
from barnabas.broker.cli.directory.repair import checkpoint
from barnabas.broker.cli.directory.store_waits import StoreWaits
from barnabas.broker.cli.errors import OK, USAGE, CommandError
from barnabas.broker.cli.output import Progress, count_text
from barnabas.broker.cli.printing import print_text
from barnabas.broker.cluster.start.postgresql import base_of
from barnabas.broker.cluster.view import OneBroker
from barnabas.broker.config.cluster import METADATA, without_password
from barnabas.broker.config.types import ConfigError
from barnabas.broker.metadata.catalogue import Catalogue
from barnabas.broker.metadata.identity import (
    mark_exporting,
    mark_imported,
    refuse_backup,
    refuse_cache,
    refuse_exporting,
    settle_identity,
    unmark_exporting,
)
from barnabas.broker.metadata.restored import counters_after_restore
from barnabas.broker.opening.opened_directory import opened, original, scratch_directory
from barnabas.broker.opening.store import new_store
from barnabas.broker.runtime.clock import SystemClock
from barnabas.broker.runtime.engine import LoopEngine
from barnabas.broker.runtime.simulated import run_coroutine
from barnabas.storage.adoption.adoption import is_foreign
from barnabas.storage.errors import Corrupt, StorageError
from barnabas.storage.files.file_system import AlreadyLocked
from barnabas.storage.files.io import LocalFileSystem, make_private_directory
from barnabas.storage.metastore.interface import MetaStoreError
from barnabas.storage.metastore.sqlite import FILE_NAME, SqliteMetaStore
from barnabas.storage.objects.blob_store import BlobStoreError
from barnabas.storage.objects.guard import accept_loss
from barnabas.storage.replicated.log_export import export_log, highest_epoch
from barnabas.storage.replicated.log_import import ImportProgress, import_logs
from barnabas.storage.replicated.log_index import IndexMisused
from barnabas.storage.runtime.chance import random_uuid
from barnabas.storage.runtime.clock import now_ns
from barnabas.storage.store.log_store import LOCK_NAME, LogStore
from barnabas.storage.store.recovery import lock_directory, open_store
from barnabas.storage.store.store_parts import StoreCallbacks

if TYPE_CHECKING:
    from barnabas.broker.cluster.membership.base import TransferBase
    from barnabas.broker.config.broker_config import BrokerConfig
    from barnabas.broker.opening.opened_directory import OpenedDirectory
    from barnabas.storage.objects.blob_store import BlobStore
    from barnabas.storage.replicated.cluster_transfer import ClusterTransfer
    from barnabas.storage.replicated.log_index import LogIndex

PATIENCE_S: Final = 60.0
"""Timeout for one response of the store, which writes all metadata at once."""
CLOSED: Final = (
    "barnabas: not exported, and no broker of the cluster starts until it is, or until"
    " 'barnabas cluster reopen'"
)


def _add_import(parser: argparse.ArgumentParser) -> None:
    parser.usage = "barnabas cluster import DIRECTORY [server.properties] [options]"
    parser.epilog = (
        "No broker may use the directory; the cluster must have no topics or brokers. Without "
        "--into: barnabas.metadata. Afterwards no broker starts alone in it. Repeat an interrupted "
        "import; until then no broker starts. Temporary files need the journal's size."
    )
    parser.add_argument("directory", metavar="DIRECTORY", help=argparse.SUPPRESS)
    configuration.add_arguments(parser)
    _add_address(parser, "--into")


def _add_address(parser: argparse.ArgumentParser, option: str) -> None:
    parser.add_argument(
        option,
        dest="address",
        metavar="ADDRESS",
        help="postgresql://... of the cluster; with a password only in the configuration",
    )


def _add_export(parser: argparse.ArgumentParser) -> None:
    parser.usage = "barnabas cluster export DIRECTORY [server.properties] [options]"
    parser.epilog = (
        "No broker may serve the cluster. DIRECTORY must not be there yet; 'barnabas serve' starts "
        "from it. Afterwards no broker of the cluster starts, until 'barnabas cluster reopen'. "
        "Without --from the address is barnabas.metadata of the configuration."
    )
    parser.add_argument("directory", metavar="DIRECTORY", help=argparse.SUPPRESS)
    configuration.add_arguments(parser)
    _add_address(parser, "--from")


def _add_reopen(parser: argparse.ArgumentParser) -> None:
    parser.usage = "barnabas cluster reopen [server.properties] [options]"
    parser.epilog = (
        "What a broker has done since in the exported directory is not in the cluster, which "
        "begins new producer ids and leader epochs. No broker may serve the cluster."
    )
    configuration.add_arguments(parser)
    parser.add_argument(
        "--restored",
        action="store_true",
        help="PostgreSQL was restored to an older moment: begin new producer ids and leader "
        "epochs, although the cluster was not exported",
    )
    _add_address(parser, "--at")


VERBS: Final = {
    "import": ("Have a cluster go on with the data directory of a broker", _add_import),
    "export": ("Have a broker that is alone go on with what a cluster has", _add_export),
    "reopen": ("Let brokers serve a cluster again that was exported", _add_reopen),
}


def run(arguments: argparse.Namespace) -> int:
    """Run the verb."""
    if arguments.address is not None:
        arguments.override = [*arguments.override, f"{METADATA}={arguments.address}"]
    config = configuration.cluster_config(arguments)
    try:
        base = base_of(config, PATIENCE_S)
    except ConfigError as error:
        raise CommandError(str(error), USAGE) from None
    assert config.metadata is not None
    name = without_password(config.metadata)
    with contextlib.closing(base), StoreWaits(base, name):
        if arguments.verb == "reopen":
            was_closed = _reopen(base, config, is_restored=arguments.restored)
            new = ", with new producer ids and leader epochs" if arguments.restored else ""
            print_text(f"{name}: {'open again' if was_closed or new else 'was not exported'}{new}")
            return OK
        act = import_directory if arguments.verb == "import" else export_directory
        progress = act(arguments.directory, base, config)
        pins = pins_of(base) if arguments.verb == "export" else 0
    partitions = count_text(progress.partitions, "partition")
    size = count_text(progress.size_bytes, "byte")
    done = f"{arguments.verb}ed"
    print_text(f"{name}: {partitions} with {size} {done}")
    if pins:
        left = count_text(pins, "partition")
        print_text(f"pins of {left} left behind: one broker leads all, and nothing is pinned there")
    return OK


def pins_of(base: TransferBase) -> int:
    """Return the number of partitions of a cluster that are pinned to brokers."""
    with _translated("", scratch=""), contextlib.closing(base.cluster_index()) as index:
        return sum(each.pinned_node is not None for each in index.snapshot(0).led)


def _reopen(base: TransferBase, config: BrokerConfig, *, is_restored: bool) -> bool:
    """Open a cluster that was exported; its directory may have used the next ids and epochs."""
    with _translated("", scratch=""):
        transfer = base.transfer(config.node_id)
        if is_restored or transfer.is_exported():
            contents = transfer.contents()
            now_ms = now_ns() // 1_000_000
            used = contents.image.next_producer_id, contents.boot_epoch
            transfer.advance(*counters_after_restore(*used, now_ms))
            _accept_loss(base, config)
        return transfer.reopen()


def _accept_loss(base: TransferBase, config: BrokerConfig) -> None:
    """Accept that the object store knows a later moment of the cluster."""
    if config.storage is None:
        return
    blobs, *others = base.blob_stores()
    with contextlib.ExitStack() as stack:
        for each in (blobs, *others):
            stack.callback(each.close)
        with contextlib.closing(base.object_rows()) as rows:
            accept_loss(rows, blobs)


def import_directory(directory: str, base: TransferBase, config: BrokerConfig) -> ImportProgress:
    """Import a data directory into the cluster of ``base``; raises CommandError.

    ``config`` has the default settings of topics in the directory.
    """
    files = LocalFileSystem()
    if not os.path.exists(os.path.join(directory, FILE_NAME)):
        raise CommandError(f"{directory}: not the data directory of a broker", USAGE)
    with _translated(directory, scratch=""):
        refuse_backup(files, directory)
        refuse_cache(files, directory)
        refuse_exporting(files, directory)
        if is_foreign(files, directory):
            raise CommandError(f"{directory}: let a broker start and stop in it before")
    with (
        _held(files, directory),
        scratch_directory() as scratch,
        _translated(directory, scratch),
        opened(directory, scratch, config) as found,
    ):
        return _import(found, files, directory, base)


def _import(
    found: OpenedDirectory, files: LocalFileSystem, directory: str, base: TransferBase
) -> ImportProgress:
    contents = found.metastore.contents()
    transfer = base.transfer(found.metastore.identity.node_id)
    token = random_uuid()
    address = base.object_use.address
    session = transfer.begin_import(token, found.metastore.identity.node_id, address)
    logs = sorted(found.store.logs.values(), key=lambda log: log.partition_id)
    epoch = found.store.leader_epoch
    with (
        Progress(output_waits=True) as shown,
        _objects_of(base, contents.cluster_id, session) as blobs,
    ):
        progress = import_logs(
            logs,
            transfer,
            base.log_index(),
            session,
            epoch,
            lambda done: shown.show(_described(done)) if shown.is_due else None,
            blobs,
        )
        transfer.fill(token, contents)
        mark_imported(files, directory, contents.cluster_id)
        transfer.end_import(token)
    return progress


@contextlib.contextmanager
def _objects_of(base: TransferBase, cluster_id: str, session: int) -> Iterator[BlobStore | None]:
    """Yield a connection to the object store of a new cluster, or None; raises StoreUnusable."""
    if not base.has_object_store:
        yield None
        return
    with contextlib.closing(base.object_store_of(cluster_id)) as blobs:
        blobs.check(str(session))
        yield blobs


def export_directory(directory: str, base: TransferBase, config: BrokerConfig) -> ImportProgress:
    """Write the data of a cluster to a new data directory; raises CommandError.

    ``config`` is that of the broker that will start in it.
    """
    directory = directory.rstrip("/")
    if os.path.lexists(directory):
        raise CommandError(f"{directory}: exists already", USAGE)
    unfinished = directory + UNFINISHED
    shutil.rmtree(unfinished, ignore_errors=True)
    with _translated(directory, scratch=""):
        transfer = base.transfer(config.node_id)
        files = LocalFileSystem()
        # Before the cluster is closed to brokers, in case the directory cannot be created.
        make_private_directory(unfinished)
        is_closed = False
        try:
            mark_exporting(files, unfinished)
            transfer.begin_export(random_uuid())
            is_closed = True
            config = replace(config, log_dirs=(unfinished,))
            progress = run_coroutine(_export(transfer, base, config))
            unmark_exporting(files, unfinished)
            os.rename(unfinished, directory)
            sync_name(directory)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            if is_closed:
                print_text(CLOSED, file=sys.stderr, flush=True)
            raise
    return progress


async def _export(
    transfer: ClusterTransfer, base: TransferBase, config: BrokerConfig
) -> ImportProgress:
    files, directory = LocalFileSystem(), config.data_directory
    loop = asyncio.get_running_loop()
    failed: asyncio.Future[None] = loop.create_future()
    engine = LoopEngine(loop, lambda: None)
    clock = SystemClock()
    callbacks = StoreCallbacks(on_fatal=failed.set_exception)
    store = new_store(config, files, engine, clock, callbacks)
    lock_directory(store)
    contents, index = transfer.contents(), base.log_index()
    ids = [row.partition_id for topic in contents.image.topics for row in topic.partitions]
    boot_epoch = max(contents.boot_epoch, highest_epoch(index, ids))
    metastore = SqliteMetaStore.open(
        files.join(directory, FILE_NAME),
        node_id=config.node_id,
        new_cluster_id=contents.cluster_id,
    )
    try:
        metastore.fill(replace(contents, boot_epoch=boot_epoch))
        settle_identity(files, config, metastore, None)
        view = OneBroker(metastore.identity.node_id, None, lambda: store.leader_epoch)
        specs = Catalogue(metastore, store, view, config).load(metastore.load())
        open_store(store, specs, leader_epoch=metastore.begin_boot())
        progress = _export_logs(store, index)
        for clean in (False, True):
            await checkpoint(store, failed, clean=clean)
        store.close()
    finally:
        store.abandon()
        metastore.close()
        engine.close()
    return progress


def _export_logs(store: LogStore, index: LogIndex) -> ImportProgress:
    progress = ImportProgress(len(store.logs))
    with Progress(output_waits=True) as shown:

        def read(size_bytes: int) -> None:
            progress.size_bytes += size_bytes
            shown.show(_described(progress))

        for log in store.logs.values():
            export_log(log, index, read)
            progress.done += 1
    return progress


def _described(progress: ImportProgress) -> str:
    partitions = f"{progress.done:,} of {count_text(progress.partitions, 'partition')}"
    return f"{partitions}, {count_text(progress.size_bytes, 'byte')}"


@contextlib.contextmanager
def _held(files: LocalFileSystem, directory: str) -> Iterator[None]:
    """Keep brokers away; raises CommandError if one is connected."""
    try:
        lock = files.lock(os.path.join(directory, LOCK_NAME))
    except AlreadyLocked:
        raise CommandError(f"{directory}: a broker is using it: stop it first") from None
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def _translated(directory: str, scratch: str) -> Iterator[None]:
    """Raise CommandError for errors that an operator can correct."""
    try:
        yield
    except Corrupt as error:
        text = original(str(error), scratch, directory)
        raise CommandError(f"{text} (run 'barnabas check')") from None
    except (ConfigError, StorageError, MetaStoreError, IndexMisused, BlobStoreError) as error:
        raise CommandError(original(str(error), scratch, directory)) from None
