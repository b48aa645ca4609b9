"""Threads for work that would hold the loop: every part of the broker takes them from here.

A pool is named after its work, so a dump of threads says what each of them does. Its threads start
with its first work.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from barnabas.storage.runtime.threads import new_executor

Result = TypeVar("Result")


class _Work:
    """Work in the queue of an executor, which keeps cancelled work until a thread is free."""

    __slots__ = ("_work",)

    def __init__(self, work: Callable[[], Any]) -> None:
        self._work: Callable[[], Any] | None = work

    def __call__(self) -> Any:  # noqa: ANN401
        assert self._work is not None
        return self._work()

    def drop(self, _: Future[Any]) -> None:
        """Drop all references: the work has ended or is cancelled."""
        self._work = None


class Pool:
    """Threads that do one kind of work, in the order in which it comes."""

    __slots__ = ("_executor", "_loop")

    def __init__(
        self,
        name: str,
        threads: int = 1,
        *,
        loop: asyncio.AbstractEventLoop | None = None,
        initializer: Callable[[], object] | None = None,
    ) -> None:
        """``loop``: the running one of each call if None. Threads begin with ``initializer``."""
        self._loop = loop
        self._executor = new_executor(f"barnabas-{name}", threads, initializer)

    def run(self, work: Callable[[], Result]) -> asyncio.Future[Result]:
        """Run ``work`` on a thread; the future has its result or exception. Call on the loop.

        Raises RuntimeError if the pool is closed.
        """
        return asyncio.wrap_future(self._submit(work), loop=self._current_loop())

    def run_counted(
        self, work: Callable[[], Result], on_end: Callable[[], None]
    ) -> asyncio.Future[Result]:
        """Run ``work``, and call ``on_end`` on the loop when it has ended or was dropped.

        That may be later than the end of the future, which may be cancelled.
        """
        loop = self._current_loop()
        try:
            running = self._submit(work)
        except BaseException:
            on_end()
            raise

        def ended(_: Future[Result]) -> None:
            with contextlib.suppress(RuntimeError):  # The loop is closed, and the count with it.
                loop.call_soon_threadsafe(on_end)

        running.add_done_callback(ended)
        return asyncio.wrap_future(running, loop=loop)

    def start(self, work: Callable[[], object]) -> None:
        """Run ``work``, which reports its own result. Call on any thread."""
        self._executor.submit(work)

    def close(self, *, waits: bool = False, drops: bool = True) -> None:
        """Refuse further work; ``drops`` work in the queue, and ``waits`` until the rest ends."""
        self._executor.shutdown(wait=waits, cancel_futures=drops)

    def _submit(self, work: Callable[[], Result]) -> Future[Result]:
        queued = _Work(work)
        running: Future[Result] = self._executor.submit(queued)
        running.add_done_callback(queued.drop)
        return running

    def _current_loop(self) -> asyncio.AbstractEventLoop:
        return self._loop if self._loop is not None else asyncio.get_running_loop()
