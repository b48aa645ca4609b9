"""Where a broker keeps what is durable, and how that is opened at a start.

A broker that is alone has a directory of its own (``OwnDirectory``), one of a cluster the store
that it shares with the others (``broker/opening/cluster_home.py``). The server opens either by the
same two steps, ``open_metadata`` and ``open_logs``.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from barnabas.broker.topics.adoption import adopt_if_foreign
from barnabas.broker.topics.catalogue import new_cluster_id
from barnabas.broker.topics.identity import (
    read_properties,
    refuse_backup,
    refuse_cache,
    refuse_exporting,
    refuse_imported,
    settle_identity,
)
from barnabas.storage.metastore.sqlite import FILE_NAME, SqliteMetaStore
from barnabas.storage.recovery import RecoveryProgress, lock_directory, open_store

if TYPE_CHECKING:
    from barnabas.broker.config.broker_config import BrokerConfig
    from barnabas.broker.runtime.clock import Clock
    from barnabas.broker.topics.catalogue import Catalogue
    from barnabas.storage.file_system import FileSystem
    from barnabas.storage.log_store import LogStore, PartitionSpec
    from barnabas.storage.metastore.interface import MetaStore

logger = logging.getLogger("barnabas.broker.server")

PROGRESS_LOGGED_EVERY_S: Final = 5
"""How often the log says how far a recovery has come."""


class GivenUp(Exception):
    """The broker was told to stop before it had started."""


class Opened(NamedTuple):
    """What was found at a start."""

    clean: bool
    """Whether what is in the directory can be what was left there."""
    words: str
    """For people."""
    fields: str
    """The same, for the log."""


class Progress(Protocol):
    """How far a start has come."""

    def describe(self) -> str:
        """Say it for people."""


class Home(Protocol):
    """Opens what is durable. On a thread, but for ``give_up``."""

    @property
    def progress(self) -> Progress | None:
        """How far that has come, once there is something to say."""

    def open_metadata(self, logs: LogStore) -> MetaStore:
        """Lock the directory of ``logs``, and open the MetaStore, which ``close`` closes."""

    def open_logs(
        self, logs: LogStore, catalogue: Catalogue, specs: Sequence[PartitionSpec]
    ) -> Opened:
        """Let ``logs`` take batches, with what is durable of ``specs`` in them."""

    def give_up(self) -> None:
        """Have what is under way raise GivenUp soon. On the loop."""

    def close(self) -> None:
        """Close what was opened here."""


class OwnDirectory:
    """The directory of a broker that is alone."""

    def __init__(
        self,
        config: BrokerConfig,
        file_system: FileSystem,
        clock: Clock,
        metastore: MetaStore | None = None,
    ) -> None:
        """``metastore`` in place of the directory's; whoever passes it closes it."""
        self.progress: RecoveryProgress | None = None
        self._config = config
        self._file_system = file_system
        self._clock = clock
        self._given = metastore
        self._metastore: MetaStore
        self._own: SqliteMetaStore | None = None
        self._progress_logged_s = 0.0
        self._gives_up = False

    def open_metadata(self, logs: LogStore) -> MetaStore:
        """Lock the directory, and open its MetaStore, or make it of a Kafka's."""
        refuse_backup(self._file_system, self._config.data_directory)
        refuse_cache(self._file_system, self._config.data_directory)
        refuse_imported(self._file_system, self._config.data_directory)
        refuse_exporting(self._file_system, self._config.data_directory)
        lock_directory(logs)
        self._progress_logged_s = self._clock.monotonic()
        config, file_system = self._config, self._file_system
        directory = config.data_directory
        properties = read_properties(file_system, directory)
        metastore = self._given
        if metastore is None:
            metastore = self._own = SqliteMetaStore.open(
                file_system.join(directory, FILE_NAME),
                node_id=config.node_id,
                new_cluster_id=properties.cluster_id
                if properties is not None
                else config.cluster_id or new_cluster_id(),
            )
        self._metastore = metastore
        settle_identity(file_system, config, self._metastore, properties)
        adopt_if_foreign(file_system, directory, self._metastore, config)
        return self._metastore

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
        return Opened(
            report.clean,
            f"{report.found}: {report.partitions} partitions,"
            f" {report.batches_replayed} batches replayed",
            f"clean={str(report.clean).lower()} partitions={report.partitions}"
            f" batches_replayed={report.batches_replayed}",
        )

    def give_up(self) -> None:
        """Have recovery end at its next step; see ``Home``."""
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
