"""Background tasks of a broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class Tasks:
    """Tasks that run until the broker ends; an exception in one of them is fatal."""

    def __init__(self, on_error: Callable[[BaseException], None]) -> None:
        self._on_error = on_error
        self._running: set[asyncio.Task[None]] = set()

    def start(
        self, loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, None], name: str
    ) -> None:
        """Run a coroutine as a task of ``loop``."""
        task = loop.create_task(coroutine, name=name)
        self._running.add(task)
        task.add_done_callback(self._task_done)

    async def cancel(self) -> None:
        """Cancel all tasks and wait for their ends."""
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running)

    def _task_done(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_error(error)
