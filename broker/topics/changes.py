"""Changes to the MetaStore: one at a time, each to its end, even when its client has gone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from barnabas.broker.runtime.turns import next_turn
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.storage.metastore.interface import MetaStoreError, MetaStoreRefused

Result = TypeVar("Result")


class Changes:
    """The changes under way. A failure that leaves memory and MetaStore different is fatal (D9)."""

    def __init__(self, on_fatal: Callable[[BaseException], None]) -> None:
        self._on_fatal = on_fatal
        self._changing = asyncio.Lock()
        self._running: set[asyncio.Task[Any]] = set()

    async def run(self, change: Callable[[], Awaitable[Result]]) -> Result:
        """Run one change alone and to its end, whatever happens to its client."""
        return await asyncio.shield(self.begin(self._exclusively(change)))

    def begin(self, work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
        """Start what ``close`` has to wait for."""
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        # Looked at here because its client may be gone; it gets it too if it is there.
        if not task.cancelled():
            task.exception()

    async def _exclusively(self, change: Callable[[], Awaitable[Result]]) -> Result:
        async with self._changing:
            await next_turn()  # Each waits for the disk: those of many clients are not one turn.
            try:
                return await change()
            except KafkaError:
                raise
            except MetaStoreRefused as error:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
            except MetaStoreError as error:
                # What is on disk is no longer known, so nothing here can be trusted.
                self._on_fatal(error)
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error

    async def close(self) -> None:
        """Wait until the changes under way are complete."""
        while self._running:
            await asyncio.wait(self._running)

    def abandon(self) -> None:
        """Drop the changes under way, as a crash does: nothing more is committed."""
        for task in self._running:
            task.cancel()
