"""Periodic work: checkpoints, retention, compaction, checks of the disk space."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol

from barnabas.broker.runtime.clock import Timer
from barnabas.broker.runtime.host import Host
from barnabas.broker.runtime.turns import run_in_turns
from barnabas.broker.security.listeners.certificate_reload import LOOK_INTERVAL_MS
from barnabas.storage.compaction.retention import apply_retention

if TYPE_CHECKING:
    from barnabas.broker.coordination.groups import Groups
    from barnabas.broker.coordination.transactions import Transactions
    from barnabas.broker.metadata.catalogue import Catalogue
    from barnabas.broker.runtime.events import EventRing
    from barnabas.broker.security.listeners.certificate_reload import CertificateReload
    from barnabas.broker.upkeep.cleaning import LogCleaner
    from barnabas.broker.upkeep.scrubbing import LogScrubber
    from barnabas.storage.log.partition_log import PartitionLog
    from barnabas.storage.store.log_store import LogStore

logger = logging.getLogger(__name__)

SPACE_INTERVAL_MS = 1000
TOMBSTONES_INTERVAL_MS = 300_000


class KeptBroker(Host, Protocol):
    """Parts of the broker that its periodic work uses."""

    catalogue: Catalogue
    certificates: CertificateReload
    cleaner: LogCleaner
    events: EventRing
    groups: Groups
    logs: LogStore
    scrubber: LogScrubber
    transactions: Transactions


class Housekeeping:
    """Timers of one broker. They use its clock, so a test can make them due."""

    def __init__(self, broker: KeptBroker) -> None:
        self._host = broker
        self._on_event = broker.events.add
        self._logs = broker.logs
        self._catalogue = broker.catalogue
        self.cleaner = broker.cleaner
        self._groups = broker.groups
        self._transactions = broker.transactions
        self._scrubber = broker.scrubber
        self._certificates = broker.certificates
        self._timers: dict[str, Timer] = {}
        self._stopped = False
        self._reported_full = False

    def start(self) -> None:
        """Check the disk space, and start every timer."""
        config = self._host.config
        self._check_space()
        self._every("space", lambda: SPACE_INTERVAL_MS, self._check_space)
        self._every("checkpoint", lambda: config.checkpoint_interval_ms, self._checkpoint)
        self._every(
            "retention", lambda: self._host.config.log_retention_check_interval_ms, self._retain
        )
        self._every(
            "producers",
            lambda: self._host.config.producer_id_expiration_check_interval_ms,
            self._forget_idle_producers,
        )
        self._every(
            "offsets",
            lambda: self._host.config.offsets_retention_check_interval_ms,
            self._groups.expire_offsets,
        )
        self._every(
            "transactional ids",
            lambda: self._host.config.transaction_remove_expired_transaction_cleanup_interval_ms,
            self._transactions.expire_ids,
        )
        if self._catalogue.tombstones is not None:
            self._every("tombstones", lambda: TOMBSTONES_INTERVAL_MS, self._remove_tombstones)
        if self._certificates.listeners:
            self._every("certificates", lambda: LOOK_INTERVAL_MS, self._certificates.reload_changed)
        self.cleaner.start()
        self._scrubber.start()

    def stop(self) -> None:
        """Stop every timer."""
        self._stopped = True
        self.cleaner.stop()
        self._scrubber.stop()
        for timer in self._timers.values():
            timer.cancel()

    def _every(self, name: str, interval_ms: Callable[[], int], work: Callable[[], None]) -> None:
        def run() -> None:
            if not self._stopped:
                schedule()
                work()

        def schedule() -> None:
            self._timers[name] = self._host.clock.call_later(interval_ms(), run)

        schedule()

    def _check_space(self) -> None:
        logs = self._logs
        logs.check_space()
        if logs.full != self._reported_full:
            self._reported_full = logs.full
            if logs.full:
                logger.warning(
                    "disk full, appends are refused directory=%s (%s)",
                    logs.root,
                    logs.describe_space(),
                )
            else:
                logger.info("disk has room again directory=%s", logs.root)
            kind = "disk_full" if logs.full else "disk_has_room"
            self._on_event(kind, logs.describe_space())
        if logs.wants_checkpoint:
            self._checkpoint()

    def _checkpoint(self) -> None:
        self._logs.checkpoint(self._catalogue.forget_deleted)

    def _remove_tombstones(self) -> None:
        assert self._catalogue.tombstones is not None
        looking = self._catalogue.tombstones.remove_old(self._host.clock.monotonic())
        self._host.spawn(looking, "look at tombstones")

    def _forget_idle_producers(self) -> None:
        """Drop the sequences of producers that have been idle too long, log by log."""
        expiration_ms = self._host.config.producer_id_expiration_ms

        def expire(log: PartitionLog) -> None:
            log.producers.expire(self._host.clock.now_ms(), expiration_ms)

        run_in_turns(self._host.loop, self._for_each_log(expire))

    def _retain(self) -> None:
        """Delete segments beyond the retention limits, log by log."""
        logs = self._logs

        def retain(log: PartitionLog) -> None:
            if logs.logs.get(log.partition_id) is log and not log.closed:
                apply_retention(log, logs.journal, self._host.clock.now_ms())

        run_in_turns(self._host.loop, self._for_each_log(retain))

    def _for_each_log(self, work: Callable[[PartitionLog], None]) -> Iterator[None]:
        for log in list(self._logs.logs.values()):
            if self._stopped:
                return
            work(log)
            yield
