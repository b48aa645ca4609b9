"""Runs the log store beside the event loop: its journal on a thread, its callbacks on the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from barnabas.broker.runtime.threads import Pool
from barnabas.storage.journal.committer import Committer, CommitterThreads, Listener
from barnabas.storage.store.store_parts import Runner

Callback = Callable[[], None]
Answer = TypeVar("Answer")


class LoopEngine:
    """The Engine of a running broker (see ``barnabas.storage.store.store_parts.Engine``).

    ``after`` runs after every callback from storage: a commit group makes many responses ready, and
    ``after`` sends them together. Once ``dead`` is set, callbacks of storage have no effect.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, after: Callback) -> None:
        self.dead = False
        self._loop = loop
        self._after = after
        self._aside = Pool("checkpoint", loop=loop)

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
            self._aside.start(work)

    def answer_of(self, work: Callable[[], Answer]) -> asyncio.Future[Answer]:
        """Run slow work on that thread; the future has its result or error."""
        return self._aside.run(work)

    def start_committer(self, committer: Committer, listener: Listener) -> Runner:
        """Run ``committer`` on the journal thread.

        And on the loop, if that is uvloop: asyncio's own runs callbacks ahead of what the sockets
        bring, so there the journal would not find out that others waited meanwhile.
        """
        is_uvloop = type(self._loop).__module__.startswith("uvloop")
        return CommitterThreads(committer, listener, commits_here=is_uvloop)

    def close(self) -> None:
        """Ignore later reports of storage, and wait for the present work of its threads."""
        self.dead = True
        self._aside.close(waits=True, drops=False)

    def _run(self, callback: Callback) -> None:
        if not self.dead:
            callback()
            self._after()
