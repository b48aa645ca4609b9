"""Runs the log store beside the event loop: its journal on a thread, its callbacks on the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from storage.committer import Committer, CommitterThread, Listener
from storage.log_store import Runner

Callback = Callable[[], None]
Subject = TypeVar("Subject")
Result = TypeVar("Result")

READ_THREADS = 4
"""Threads that wait for a disk so that the loop does not; reads beyond that queue."""


class LoopEngine:
    """The Engine of a running broker (see ``storage.log_store.Engine``).

    ``after`` runs behind every callback from storage: a journal group makes many answers ready, and
    this is where they leave together. Once ``dead``, nothing that storage still says is heard.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, after: Callback) -> None:
        self.dead = False
        self._loop = loop
        self._after = after
        self._aside = ThreadPoolExecutor(1, "barnabas-checkpoint")
        self._readers = ThreadPoolExecutor(READ_THREADS, "barnabas-read")

    def schedule(self, callback: Callback) -> None:
        """Run ``callback`` at the end of this turn of the loop."""
        self._loop.call_soon(self._run, callback)

    def call(self, callback: Callback) -> None:
        """Run ``callback`` on the loop; called from any thread."""
        if not self.dead:
            self._loop.call_soon_threadsafe(self._run, callback)

    def run_aside(self, work: Callback) -> None:
        """Run slow file work on a thread of its own."""
        if not self.dead:
            self._aside.submit(work)

    def read_aside(
        self,
        work: Callable[[], Result],
        done: Callable[[Subject, Result | BaseException | None], None],
        subject: Subject,
    ) -> None:
        """Run ``work`` on a thread, then ``done(subject, result or exception)`` on the loop.

        At most one read of each connection is under way, so the queue is as short as their number.
        """

        def read() -> None:
            result: Result | BaseException | None
            try:
                result = work()
            except BaseException as error:  # noqa: BLE001  who asked decides what it means
                result = error
            self.call(lambda: done(subject, result))

        if not self.dead:
            self._readers.submit(read)

    def start_committer(self, committer: Committer, listener: Listener) -> Runner:
        """Run ``committer`` on the journal thread."""
        return CommitterThread(committer, listener)

    def close(self) -> None:
        """Hear nothing more from storage, and wait for its threads' work in hand."""
        self.dead = True
        self._aside.shutdown(wait=True)
        self._readers.shutdown(wait=True, cancel_futures=True)

    def _run(self, callback: Callback) -> None:
        if not self.dead:
            callback()
            self._after()
