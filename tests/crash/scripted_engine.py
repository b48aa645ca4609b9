"""An engine whose threads move only when a test says so: any interleaving, from one seed."""

from collections import deque
from collections.abc import Callable, Sequence

from barnabas.storage.journal.committer import Committer, Listener
from barnabas.storage.journal.journal import CommitGroup


class ScriptedEngine:
    """The loop, the journal thread and the checkpoint's thread as three queues of work."""

    def __init__(
        self,
        on_group: Callable[[], None] = lambda: None,
        after: Callable[[], None] = lambda: None,
    ) -> None:
        """``on_group`` hears of each group when the loop submits it.

        ``after`` runs behind every callback from storage, as a running broker's engine has it.
        """
        self._on_group = on_group
        self._after = after
        self._scheduled: list[Callable[[], None]] = []
        self._calls: deque[Callable[[], None]] = deque()
        self._asides: deque[Callable[[], None]] = deque()
        self._submitted: deque[CommitGroup] = deque()
        self._heard: CommitGroup | None = None
        self._disk_is_quick = False
        self._is_heard_at_once = False
        self.committer: Committer | None = None

    # What the store asks of an engine, and of a running committer

    def schedule(self, callback: Callable[[], None]) -> None:
        self._scheduled.append(callback)

    def call(self, callback: Callable[[], None]) -> None:
        self._calls.append(callback)
        if self._is_heard_at_once:
            self.hear(len(self._calls))

    def run_aside(self, work: Callable[[], None]) -> None:
        self._asides.append(work)

    def start_committer(self, committer: Committer, listener: Listener) -> "ScriptedEngine":
        del listener
        self.committer = committer
        return self

    def submit(self, group: CommitGroup) -> None:
        if group is not self._heard:
            self._on_group()
        self._submitted.append(group)

    def commit_inline(self, group: CommitGroup, meanwhile: Callable[[], None]) -> bool:
        if not self._disk_is_quick or self.committer is None:
            return False
        self._heard = group
        self._on_group()
        return self.committer.commit_inline(group, meanwhile)

    def stop(self) -> None:
        self.write()

    # What a test does

    def turn(self, *, disk_is_quick: bool = False) -> None:
        """One turn of the loop: what threads reported, then the end of the turn.

        ``disk_is_quick``: a group that is alone is committed by the loop itself.
        """
        self._disk_is_quick = disk_is_quick
        self.hear(len(self._calls))
        self.end_turn()

    def hear(self, most: int) -> None:
        """Deliver up to ``most`` reports of threads to the loop."""
        for _ in range(min(most, len(self._calls))):
            self._calls.popleft()()
            self._after()

    def end_turns(self) -> None:
        """Turns of the loop that bring nothing, until nothing is left to do in them."""
        while self._scheduled:
            self.end_turn()

    def end_turn(self) -> None:
        """The end of a turn of the loop."""
        scheduled, self._scheduled = self._scheduled, []
        for callback in scheduled:
            callback()
            self._after()

    def commit(self, most: int = 1000, *, is_heard_at_once: bool = False) -> None:
        """The journal thread takes up to ``most`` groups that wait and makes them durable.

        ``is_heard_at_once``: its reports come to the loop before the thread does anything more.
        """
        groups: Sequence[CommitGroup] = [
            self._submitted.popleft() for _ in range(min(most, len(self._submitted)))
        ]
        if groups and self.committer is not None:
            self._is_heard_at_once = is_heard_at_once
            self.committer.commit(groups)
            self._is_heard_at_once = False

    def write(self) -> None:
        """The journal thread writes the segments."""
        if self.committer is not None and self.committer.has_unwritten:
            self.committer.write_segments()

    def aside(self) -> None:
        """The checkpoint's thread does what waits for it."""
        if self._asides:
            self._asides.popleft()()

    @property
    def waiting(self) -> tuple[int, ...]:
        """Return the lengths of the queues, and whether segments are unwritten."""
        unwritten = self.committer is not None and self.committer.has_unwritten
        queues = (self._scheduled, self._calls, self._asides, self._submitted)
        return *map(len, queues), int(unwritten)

    @property
    def busy(self) -> bool:
        return any(self.waiting)

    def settle(self) -> None:
        """Run everything to its end."""
        while self.busy:
            self.turn()
            self.commit()
            self.write()
            self.aside()
