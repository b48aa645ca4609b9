"""A data directory opened as a start would, on a scratch copy: nothing of it is changed."""

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
    """What a start would have found."""

    store: LogStore
    """All logs, recovered."""
    metastore: SqliteMetaStore
    report: RecoveryReport
    is_kafkas: bool
    """Whether Apache Kafka left it."""


@contextmanager
def scratch_directory() -> Iterator[str]:
    """A directory for what a start would change, while it is needed."""
    scratch = tempfile.mkdtemp(prefix="barnabas-check-")
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch)


def original(text: str, scratch: str, directory: str) -> str:
    """Name the files of the directory, not those that stood for them, if any did."""
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
    """Recover what is in a directory that is locked; all changes are kept in ``scratch``.

    ``salvage``: what is damaged is noted there; None: it is raised, as a start does.
    ``log`` receives what a take-over of a Kafka directory has to say.
    """
    root = link_tree(directory, scratch)
    changes = os.path.join(scratch, CHANGES)
    files = ScratchFileSystem(changes)
    os.unlink(changes)  # So that it goes with the process, however that ends.
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
    """Take a Kafka directory over on a scratch copy; raises what ends that, TakeOverRefused mostly.

    Links stand for its files, so that takes no room.
    """
    with scratch_directory() as scratch:
        try:
            with opened(directory, scratch, config, log=_SILENT):
                pass
        except (StorageError, MetaStoreError) as error:
            reason = original(str(error), scratch, directory)
            raise TakeOverRefused(directory, reason) from error


class _NoEngine:
    """The store's engine where nothing is appended: recovery does its work by itself."""

    def schedule(self, callback: Callable[[], None]) -> None:
        """See ``Engine``: there is no next turn of a loop."""

    def call(self, callback: Callable[[], None]) -> None:
        """See ``Engine``: no thread has anything to say."""

    def run_aside(self, work: Callable[[], None]) -> None:
        """See ``Engine``: there is no checkpoint."""

    def start_committer(self, committer: Committer, listener: Listener) -> _NoRunner:
        """See ``Engine``."""
        del committer, listener
        return _NoRunner()


class _NoRunner:
    """Commits nothing."""

    def submit(self, group: CommitGroup) -> None:
        """See ``Runner``: nothing is appended, so nothing comes."""
        raise AssertionError(f"{group} was submitted on a scratch copy")

    def commit_inline(self, group: CommitGroup, meanwhile: Callable[[], None]) -> bool:
        """See ``Runner``: nothing is appended, so nothing comes."""
        del meanwhile
        raise AssertionError(f"{group} was submitted on a scratch copy")

    def stop(self) -> None:
        """See ``Runner``: nothing runs."""
