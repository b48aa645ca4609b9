"""Logs of a broker, by its configuration; no file is opened yet."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from barnabas.broker.runtime.first import wait_for_first
from barnabas.storage.store.log_store import LogStore
from barnabas.storage.store.store_parts import StoreCallbacks, StoreSettings

if TYPE_CHECKING:
    from barnabas.broker.config.broker_config import BrokerConfig
    from barnabas.broker.runtime.clock import Clock
    from barnabas.storage.files.file_system import FileSystem
    from barnabas.storage.store.store_parts import Engine

logger = logging.getLogger("barnabas.broker.server")


def new_store(
    config: BrokerConfig,
    file_system: FileSystem,
    engine: Engine,
    clock: Clock,
    callbacks: StoreCallbacks,
) -> LogStore:
    """Return the logs of the data directory."""
    return LogStore(
        file_system,
        config.data_directory,
        engine=engine,
        now_ms=clock.now_ms,
        settings=StoreSettings(
            journal_file_bytes=config.journal_file_bytes,
            journal_max_bytes=config.journal_max_bytes,
            checkpoint_journal_bytes=config.checkpoint_journal_bytes,
            backlog_max_bytes=config.journal_backlog_max_bytes,
            reserved_bytes=config.disk_reserve_bytes,
        ),
        callbacks=callbacks,
    )


class Checkpoints:
    """First and last checkpoint of a broker's process, which block its start and its stop."""

    def __init__(
        self,
        logs: LogStore,
        wait_for_failure: Callable[[], Coroutine[Any, Any, BaseException]],
        clock: Clock,
    ) -> None:
        """``wait_for_failure`` returns when no checkpoint can become durable any more."""
        self._logs = logs
        self._wait_for_failure = wait_for_failure
        self._clock = clock

    async def first(self, on_done: Callable[[], None]) -> None:
        """Make a checkpoint before the first append, so that all later commit groups follow it."""
        await self._make(on_done)

    async def last(self, timeout_ms: int) -> bool:
        """Make a last checkpoint, so that the next start has nothing to replay.

        Returns False if the time limit passes first.
        """
        logs = self._logs
        try:
            async with self._clock.timeout(timeout_ms / 1000):
                if logs.is_checkpointing:
                    await self._make()
                await self._make(clean=True)
        except TimeoutError:
            logger.warning(
                "stopped without a last checkpoint, the next start reads the journal "
                "journal_bytes=%d files_not_synced=%d timeout_ms=%d",
                logs.journal_bytes,
                logs.to_sync - logs.synced,
                timeout_ms,
            )
            return False
        return True

    async def _make(
        self, on_done: Callable[[], None] | None = None, *, clean: bool = False
    ) -> None:
        """Make a checkpoint and wait until it is durable, or until the broker has failed."""
        done = asyncio.Event()

        def finish() -> None:
            if on_done is not None:
                on_done()
            done.set()

        self._logs.checkpoint(finish, clean=clean)
        await wait_for_first(done.wait(), self._wait_for_failure())
