"""What has to happen from time to time: checkpoints, retention, compaction, a look at the space."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.broker.runtime.clock import Timer
from barnabas.broker.topics.cleaning import LogCleaner
from barnabas.storage.retention import apply_retention

if TYPE_CHECKING:
    from barnabas.broker.server import BrokerServer

logger = logging.getLogger(__name__)

SPACE_INTERVAL_MS = 1000
LOGS_PER_TURN = 64
"""Logs looked at for retention before the loop gets a turn."""


class Housekeeping:
    """The timers of one broker. They go through its clock, so a test can make them due."""

    def __init__(self, server: BrokerServer) -> None:
        self._server = server
        self._timers: dict[str, Timer] = {}
        self._stopped = False
        self._told_full = False
        self.cleaner = LogCleaner(server)

    def start(self) -> None:
        """Look at the space, and start every timer."""
        config = self._server.config
        self._look_at_space()
        self._every("space", lambda: SPACE_INTERVAL_MS, self._look_at_space)
        self._every("checkpoint", lambda: config.checkpoint_interval_ms, self._checkpoint)
        self._every(
            "retention", lambda: self._server.config.log_retention_check_interval_ms, self._retain
        )
        self._every(
            "producers",
            lambda: self._server.config.producer_id_expiration_check_interval_ms,
            self._forget_idle_producers,
        )
        self._every(
            "offsets",
            lambda: self._server.config.offsets_retention_check_interval_ms,
            self._server.groups.expire_offsets,
        )
        self._every(
            "transactional ids",
            lambda: self._server.config.transaction_remove_expired_transaction_cleanup_interval_ms,
            self._server.transactions.expire_ids,
        )
        self.cleaner.start()
        self._server.scrubber.start()

    def stop(self) -> None:
        """Stop every timer."""
        self._stopped = True
        self.cleaner.stop()
        self._server.scrubber.stop()
        for timer in self._timers.values():
            timer.cancel()

    def _every(self, name: str, interval_ms: Callable[[], int], work: Callable[[], None]) -> None:
        def run() -> None:
            if not self._stopped:
                schedule()
                work()

        def schedule() -> None:
            self._timers[name] = self._server.clock.call_later(interval_ms(), run)

        schedule()

    def _look_at_space(self) -> None:
        logs = self._server.logs
        logs.check_space()
        if logs.full != self._told_full:
            self._told_full = logs.full
            if logs.full:
                logger.warning(
                    "disk full, appends are refused directory=%s (%s)",
                    logs.root,
                    logs.describe_space(),
                )
            else:
                logger.info("disk has room again directory=%s", logs.root)
        if logs.wants_checkpoint:
            self._checkpoint()

    def _checkpoint(self) -> None:
        server = self._server
        server.logs.checkpoint(server.catalogue.forget_deleted)

    def _forget_idle_producers(self) -> None:
        """Drop the sequences of producers that have been silent for too long, log by log."""
        expiration_ms = self._server.config.producer_id_expiration_ms
        pending = list(self._server.logs.logs.values())

        def turn() -> None:
            now_ms = self._server.clock.now_ms()
            for _ in range(min(LOGS_PER_TURN, len(pending))):
                pending.pop().producers.expire(now_ms, expiration_ms)
            if pending and not self._stopped:
                self._server.loop.call_soon(turn)

        turn()

    def _retain(self) -> None:
        """Delete what is too old or too much, some logs at a time."""
        pending = list(self._server.logs.logs.values())

        def turn() -> None:
            logs = self._server.logs
            now_ms = self._server.clock.now_ms()
            for _ in range(min(LOGS_PER_TURN, len(pending))):
                log = pending.pop()
                if logs.logs.get(log.partition_id) is log:
                    apply_retention(log, logs.journal, now_ms)
            if pending and not self._stopped:
                self._server.loop.call_soon(turn)

        turn()
