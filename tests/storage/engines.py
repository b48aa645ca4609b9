"""Engines for a store without a broker: step by step in one thread, or on threads of its own.

What a running broker uses is ``barnabas.broker.runtime.engine.LoopEngine``.
"""

from collections.abc import Callable

from barnabas.storage.journal.committer import Committer, CommitterThreads, Listener
from barnabas.storage.journal.journal import CommitGroup
from barnabas.storage.store.store_parts import Runner


class ThreadEngine:
    """Runs the store beside an event loop, by its ``call_soon`` and ``call_soon_threadsafe``."""

    def __init__(
        self,
        call_soon: Callable[[Callable[[], None]], object],
        call_soon_threadsafe: Callable[[Callable[[], None]], object],
        run_in_thread: Callable[[Callable[[], None]], object],
    ) -> None:
        """``run_in_thread`` starts its argument on another thread; it may be called from any."""
        self._call_soon = call_soon
        self._call_soon_threadsafe = call_soon_threadsafe
        self._run_in_thread = run_in_thread

    def schedule(self, callback: Callable[[], None]) -> None:
        """See ``Engine``."""
        self._call_soon(callback)

    def call(self, callback: Callable[[], None]) -> None:
        """See ``Engine``."""
        self._call_soon_threadsafe(callback)

    def run_aside(self, work: Callable[[], None]) -> None:
        """See ``Engine``."""
        self._run_in_thread(work)

    def start_committer(self, committer: Committer, listener: Listener) -> Runner:
        """See ``Engine``."""
        return CommitterThreads(committer, listener)


class InlineEngine:
    """Runs everything in the caller's thread when told to ``step``."""

    def __init__(self) -> None:
        """Create an engine without pending callbacks."""
        self._pending: list[Callable[[], None]] = []

    def schedule(self, callback: Callable[[], None]) -> None:
        """See ``Engine``: kept until ``step``."""
        self._pending.append(callback)

    def call(self, callback: Callable[[], None]) -> None:
        """See ``Engine``: at once, there is one thread only."""
        callback()

    def run_aside(self, work: Callable[[], None]) -> None:
        """See ``Engine``: at once."""
        work()

    def start_committer(self, committer: Committer, listener: Listener) -> Runner:
        """See ``Engine``: errors reach the caller, so ``listener`` hears nothing."""
        del listener
        return InlineRunner(committer)

    def step(self) -> None:
        """Run what was scheduled, until nothing is."""
        while self._pending:
            pending, self._pending = self._pending, []
            for callback in pending:
                callback()


class InlineRunner:
    """Commits and writes each group as it is submitted."""

    def __init__(self, committer: Committer) -> None:
        """Drives ``committer``."""
        self._committer = committer

    def submit(self, group: CommitGroup) -> None:
        """See ``Runner``."""
        self._committer.commit([group])
        self._committer.write_segments()

    def commit_inline(self, group: CommitGroup, meanwhile: Callable[[], None]) -> bool:
        """See ``Runner``: ``submit`` is not slower here."""
        del group, meanwhile
        return False

    def stop(self) -> None:
        """See ``Runner``: nothing waits here."""
