"""Durable data of a broker, and how a start opens it.

A standalone broker has its own directory (``OwnDirectory``), a member of a cluster the shared store
(``broker/cluster/start/cluster_directory.py``). The server opens both by the same two steps,
``open_metadata`` and ``open_logs``.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from barnabas.broker.metadata.adoption import adopt_if_foreign
from barnabas.broker.metadata.catalogue import new_cluster_id
from barnabas.broker.metadata.identity import (
    read_properties,
    refuse_backup,
    refuse_cache,
    refuse_exporting,
    refuse_imported,
    refuse_other_node,
    settle_identity,
)
from barnabas.broker.metadata.restored import advance_counters, is_restored, unmark_restored
from barnabas.broker.opening.opened_directory import rehearse_take_over
from barnabas.storage.adoption.adoption import is_foreign, refuse_kafkas
from barnabas.storage.files.directory_names import KRAFT_DIRECTORY, is_kafkas_own
from barnabas.storage.metastore.sqlite import FILE_NAME, SqliteMetaStore, remove_store
from barnabas.storage.store.recovery import (
    RecoveryProgress,
    RecoveryReport,
    lock_directory,
    open_store,
    refuse_partitions,
)

if TYPE_CHECKING:
    from barnabas.broker.config.broker_config import BrokerConfig
    from barnabas.broker.metadata.catalogue import Catalogue
    from barnabas.broker.runtime.clock import Clock
    from barnabas.storage.files.file_system import FileSystem
    from barnabas.storage.metastore.interface import MetaStore
    from barnabas.storage.store.log_store import LogStore
    from barnabas.storage.store.store_parts import PartitionSpec

logger = logging.getLogger("barnabas.broker.server")

PROGRESS_LOGGED_EVERY_S: Final = 5
"""Interval, in seconds, between log lines about the progress of a recovery."""


class GivenUp(Exception):
    """Stop request before the broker had started."""


class Opened(NamedTuple):
    """State of the data at a start."""

    clean: bool
    """Whether the directory can be as the previous process left it."""
    words: str
    """State as a text."""
    fields: str
    """State as fields of a log line."""


class Progress(Protocol):
    """Progress of a start."""

    def describe(self) -> str:
        """Return the progress as a text."""


class Home(Protocol):
    """Opens the durable data, on a thread except for ``give_up``."""

    @property
    def progress(self) -> Progress | None:
        """Return the progress, or None before there is any."""

    def open_metadata(self, logs: LogStore) -> MetaStore:
        """Lock the directory of ``logs``, and open the MetaStore, which ``close`` closes."""

    def open_logs(
        self, logs: LogStore, catalogue: Catalogue, specs: Sequence[PartitionSpec]
    ) -> Opened:
        """Recover the logs of ``specs`` and open ``logs`` for appends."""

    def give_up(self) -> None:
        """Make the current call raise GivenUp soon; for the event loop."""

    def close(self) -> None:
        """Close the opened data."""


class OwnDirectory:
    """Directory of a standalone broker."""

    def __init__(
        self,
        config: BrokerConfig,
        file_system: FileSystem,
        clock: Clock,
        metastore: MetaStore | None = None,
    ) -> None:
        """``metastore`` replaces the directory's, or is None; its owner closes it."""
        self.progress: RecoveryProgress | None = None
        self._config = config
        self._file_system = file_system
        self._clock = clock
        self._given = metastore
        self._metastore: MetaStore
        self._own: SqliteMetaStore | None = None
        self._progress_logged_s = 0.0
        self._gives_up = False
        self._is_adopted = False
        self._is_restored = False

    def open_metadata(self, logs: LogStore) -> MetaStore:
        """Lock the directory, and open its MetaStore, or create it from a Kafka's."""
        refuse_backup(self._file_system, self._config.data_directory)
        refuse_cache(self._file_system, self._config.data_directory)
        refuse_imported(self._file_system, self._config.data_directory)
        refuse_exporting(self._file_system, self._config.data_directory)
        refuse_kafkas(self._file_system, self._config.data_directory)
        if self._given is None:
            self._refuse_before_first_write()
        lock_directory(logs)
        self._progress_logged_s = self._clock.monotonic()
        config, file_system = self._config, self._file_system
        directory = config.data_directory
        properties = read_properties(file_system, directory)
        metastore = self._given
        if metastore is None:
            if is_foreign(file_system, directory):
                remove_store(file_system, directory)  # Of a take-over that was cut short.
            metastore = self._own = SqliteMetaStore.open(
                file_system.join(directory, FILE_NAME),
                node_id=config.node_id,
                new_cluster_id=properties.cluster_id
                if properties is not None
                else config.cluster_id or new_cluster_id(),
            )
        self._metastore = metastore
        self._is_restored = is_restored(file_system, directory)
        if self._is_restored:
            self._begin_restored(metastore)
        settle_identity(file_system, config, self._metastore, properties)
        self._is_adopted = adopt_if_foreign(file_system, directory, self._metastore, config)
        return self._metastore

    def _begin_restored(self, metastore: MetaStore) -> None:
        """Raise the counters that the original of a restored directory may have used since."""
        advance_counters(metastore, self._clock.now_ms())
        unmark_restored(self._file_system, self._config.data_directory)
        logger.info(
            "restored directory opened first_producer_id=%d boot_epoch=%d",
            metastore.load().next_producer_id,
            metastore.boot_epoch,
        )

    def _refuse_before_first_write(self) -> None:
        """Raise the errors of a start in a directory of Kafka, or one without a MetaStore,
        beforehand.
        """
        file_system, directory = self._file_system, self._config.data_directory
        if not file_system.is_directory(directory):
            return
        is_kafkas = is_foreign(file_system, directory)
        if is_kafkas or not file_system.exists(file_system.join(directory, FILE_NAME)):
            properties = read_properties(file_system, directory)
            refuse_other_node(self._config, directory, properties)
            if not is_kafkas:
                refuse_partitions(file_system, directory)
        if is_kafkas:
            rehearse_take_over(directory, self._config)

    def open_logs(
        self, logs: LogStore, catalogue: Catalogue, specs: Sequence[PartitionSpec]
    ) -> Opened:
        """Recover all logs."""
        report = open_store(
            logs,
            specs,
            leader_epoch=self._metastore.begin_boot(),
            removable=catalogue.deleted_directories,
            deleted_ids=catalogue.deleted_partition_ids,
            on_progress=self._recovered,
        )
        self._metastore.raise_boot_epoch(logs.leader_epoch)
        _log_passed_over(report.passed_over)
        return Opened(
            report.clean,
            f"{self._found(report)}: {report.partitions} partitions,"
            f" {report.batches_replayed} batches replayed",
            f"{self._state(report)} partitions={report.partitions}"
            f" batches_replayed={report.batches_replayed}",
        )

    def _found(self, report: RecoveryReport) -> str:
        """Describe how the previous process ended, for the console."""
        if self._is_adopted:
            return "from Apache Kafka"
        is_copy = self._is_restored and not report.clean
        return "from a backup" if is_copy else report.found

    def _state(self, report: RecoveryReport) -> str:
        """Return the same as a field of the log line; a crash alone is ``clean=false``."""
        if report.is_first:
            return "empty=true"
        if self._is_adopted:
            return "taken_over=true"
        if self._is_restored and not report.clean:
            return "restored=true"
        return f"clean={str(report.clean).lower()}"

    def give_up(self) -> None:
        """Make recovery end at its next step; see ``Home``."""
        self._gives_up = True

    def close(self) -> None:
        """Close the MetaStore unless it was given."""
        own, self._own = self._own, None
        if own is not None:
            own.close()

    def _recovered(self, progress: RecoveryProgress) -> None:
        self.progress = progress
        if self._gives_up:
            raise GivenUp
        now_s = self._clock.monotonic()
        if now_s - self._progress_logged_s >= PROGRESS_LOGGED_EVERY_S:
            self._progress_logged_s = now_s
            logger.info("recovering %s", progress.describe())


def _log_passed_over(names: Sequence[str]) -> None:
    """Log the directories that are no partition's: Kafka's, which hold records, as a warning."""
    kafkas = [name for name in names if is_kafkas_own(name)]
    if kafkas:
        logger.warning(
            'directories passed over reason="Kafka has put them aside" names=%s', ",".join(kafkas)
        )
    others = [name for name in names if not is_kafkas_own(name) and name != KRAFT_DIRECTORY]
    if others:
        logger.info('directories passed over reason="no partitions" names=%s', ",".join(others))
