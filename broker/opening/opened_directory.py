"""Data directory opened as a start would, on a scratch copy: the original stays unchanged."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from barnabas.broker.cluster.view import OneBroker
from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.metadata.adoption import ADOPTION_LOG, adopt_if_foreign
from barnabas.broker.metadata.catalogue import Catalogue, new_cluster_id
from barnabas.broker.metadata.identity import read_properties
from barnabas.broker.metadata.restored import advance_counters, is_restored
from barnabas.broker.opening.scratch import CHANGES, DATA, ScratchFileSystem, link_tree
from barnabas.storage.adoption.adoption import is_foreign, refuse_kafkas
from barnabas.storage.errors import StorageError, TakeOverRefused
from barnabas.storage.journal.committer import Committer, Listener
from barnabas.storage.journal.journal import CommitGroup
from barnabas.storage.metastore.interface import MetaStoreError
from barnabas.storage.metastore.sqlite import FILE_NAME, SqliteMetaStore, remove_store
from barnabas.storage.repair.salvage import Salvage
from barnabas.storage.runtime.clock import now_ns
from barnabas.storage.store.log_store import LogStore
from barnabas.storage.store.recovery import RecoveryReport, open_store

_SILENT: Final = logging.getLogger("barnabas.rehearsal")
_SILENT.setLevel(logging.CRITICAL + 1)


@dataclass(frozen=True, slots=True)
class OpenedDirectory:
    """State of a data directory as a start of the broker would load it."""

    store: LogStore
    """All logs, recovered."""
    metastore: SqliteMetaStore
    report: RecoveryReport
    is_kafkas: bool
    """Whether Apache Kafka left it."""


@contextmanager
def scratch_directory() -> Iterator[str]:
    """Yield a directory for the changes of a start."""
    scratch = tempfile.mkdtemp(prefix="barnabas-check-")
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch)


def original(text: str, scratch: str, directory: str) -> str:
    """Name the files of the directory instead of the scratch copies in a text."""
    return text.replace(os.path.join(scratch, DATA), directory) if scratch else text


@contextmanager
def opened(
    directory: str,
    scratch: str,
    config: BrokerConfig,
    *,
    salvage: Salvage | None = None,
    log: logging.Logger = ADOPTION_LOG,
) -> Iterator[OpenedDirectory]:
    """Recover the data in a locked directory; all changes are kept in ``scratch``.

    ``salvage`` records damage, or is None to raise it, as a start does. ``log`` receives the
    messages of the adoption of a Kafka directory.
    """
    root = link_tree(directory, scratch)
    changes = os.path.join(scratch, CHANGES)
    files = ScratchFileSystem(changes)
    os.unlink(changes)  # So that it is deleted with the process, even after a crash.
    refuse_kafkas(files, root)
    is_kafkas = is_foreign(files, root)
    if is_kafkas:
        remove_store(files, root)
    properties = read_properties(files, root)
    metastore = SqliteMetaStore.open(
        files.join(root, FILE_NAME),
        node_id=properties.node_id if properties is not None else config.node_id,
        new_cluster_id=properties.cluster_id if properties is not None else new_cluster_id(),
        accept_damage=salvage is not None,  # Of this copy.
    )
    store = LogStore(files, root, engine=_NoEngine(), now_ms=lambda: 0)
    try:
        if is_restored(files, root):
            advance_counters(metastore, now_ns() // 1_000_000)
        adopt_if_foreign(files, root, metastore, config, log)
        view = OneBroker(metastore.identity.node_id, None, lambda: store.leader_epoch)
        catalogue = Catalogue(metastore, store, view, config)
        report = open_store(
            store,
            catalogue.load(metastore.load()),
            leader_epoch=metastore.boot_epoch + 1,
            removable=catalogue.deleted_directories,
            deleted_ids=catalogue.deleted_partition_ids,
            salvage=salvage,
        )
        yield OpenedDirectory(store, metastore, report, is_kafkas)
    finally:
        store.abandon()
        metastore.close()
        files.close()


def rehearse_take_over(directory: str, config: BrokerConfig) -> None:
    """Adopt a Kafka directory on a scratch copy; raises its errors, usually TakeOverRefused.

    Links replace its files, so that needs no disk space.
    """
    with scratch_directory() as scratch:
        try:
            with opened(directory, scratch, config, log=_SILENT):
                pass
        except (StorageError, MetaStoreError) as error:
            reason = original(str(error), scratch, directory)
            raise TakeOverRefused(directory, reason) from error


class _NoEngine:
    """Engine of a store without appends: recovery does its work by itself."""

    def schedule(self, callback: Callable[[], None]) -> None:
        """Skip the callback, since there is no event loop; see ``Engine``."""

    def call(self, callback: Callable[[], None]) -> None:
        """Skip the callback, since no thread calls; see ``Engine``."""

    def run_aside(self, work: Callable[[], None]) -> None:
        """Skip the work, since there is no checkpoint; see ``Engine``."""

    def start_committer(self, committer: Committer, listener: Listener) -> _NoRunner:
        """Return a runner without a thread; see ``Engine``."""
        del committer, listener
        return _NoRunner()


class _NoRunner:
    """Runner that never gets a commit group."""

    def submit(self, group: CommitGroup) -> None:
        """Raise AssertionError, since nothing is appended; see ``Runner``."""
        raise AssertionError(f"{group} was submitted on a scratch copy")

    def commit_inline(self, group: CommitGroup, meanwhile: Callable[[], None]) -> bool:
        """Raise AssertionError, since nothing is appended; see ``Runner``."""
        del meanwhile
        raise AssertionError(f"{group} was submitted on a scratch copy")

    def stop(self) -> None:
        """Return at once, since no thread runs; see ``Runner``."""
