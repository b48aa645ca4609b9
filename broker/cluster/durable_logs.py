"""The logs of a cluster, read by whoever leads them; see ``DurableLogs`` (topics/leadership.py).

Rules of this file:

* A log is served only when the store has said, in an answer that no failover takes back, that this
  session leads it in this epoch: from then on nobody else's flush of it is committed, so what is
  read after that is all there is.
* Logs come in crowds, and most are short: what several threads wait for is asked for together.
  Of those that a look has shown the beginnings have come with it (``bring``): nothing is asked. It
  is used for the first reading in an epoch only, since behind that this broker writes itself.
* What the store cannot read of one log keeps no other from being served: of a crowd for which it
  says so each is asked for alone.
* A session that the broker has not begun yet leads nothing here, be it named by the view already.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from barnabas.storage.errors import Corrupt, LedSince, StoreDamaged
from barnabas.storage.log_index import IndexClosed
from barnabas.storage.log_reading import all_from, beginnings, damage_is_of, is_whole, whole_log

if TYPE_CHECKING:
    from barnabas.broker.cluster.base import ClusterBase
    from barnabas.storage.loading import DurableLog
    from barnabas.storage.log_index import LogBeginning, LogIndex

WAYS_MOST: Final = 4
"""On each one question is under way."""
TOGETHER: Final = 64
"""Logs that are asked for at the same time. A question costs a commit, whatever it asks for."""
LONG_AT_ONCE: Final = 3
"""Logs of which more is read than their first extents: one way is for all others. Whole ones are
not held in greater number either: each counts until whoever reads it needs it no more."""
BROUGHT_BYTES: Final = 16 * 1024 * 1024
"""Of beginnings that came with looks and that nobody has read: the oldest go, and are asked for."""
_HEAD_BYTES: Final = 1024
"""What a beginning takes besides what it carries, and a little more."""


class StoredLogs:
    """Reads logs, on any number of threads: what they ask for meanwhile is asked together."""

    def __init__(self, base: ClusterBase) -> None:
        """Nothing can be read before ``begin``; closing ``base`` ends what is being read."""
        self._base = base
        self._changed = threading.Condition()
        self._session: int | None = None
        self._is_closed = False
        self._waiting: deque[_Asked] = deque()
        """Those of whom the store was not asked yet."""
        self._ways: list[LogIndex] = []
        """Those that are free."""
        self._ways_made = 0
        self._long_logs = threading.BoundedSemaphore(LONG_AT_ONCE)
        self._brought: dict[int, LogBeginning] = {}
        """By partition, the newest last."""
        self._brought_bytes = 0

    def begin(self, session: int) -> None:
        """Read what ``session`` leads, from now on."""
        with self._changed:
            self._session = session
            self._changed.notify_all()

    def end(self) -> None:
        """Read nothing before the next session has begun."""
        with self._changed:
            self._session = None
            self._brought.clear()
            self._brought_bytes = 0

    def bring(self, gained: Iterable[LogBeginning]) -> None:
        """Take what the store has said of logs that nobody has begun to read in their epochs.

        It is the answer to who does so first. On any thread.
        """
        with self._changed:
            for each in gained:
                self._take_brought(each.head.partition_id)
                self._brought[each.head.partition_id] = each
                self._brought_bytes += _size_of(each)
            while self._brought_bytes > BROUGHT_BYTES:
                self._take_brought(next(iter(self._brought)))

    def _take_brought(self, partition_id: int) -> LogBeginning | None:
        """Have nothing of a log any more, and return what there was."""
        brought = self._brought.pop(partition_id, None)
        if brought is not None:
            self._brought_bytes -= _size_of(brought)
        return brought

    def close(self) -> None:
        """Read nothing any more."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    @contextlib.contextmanager
    def reading(self, partition_id: int, leader_epoch: int) -> Iterator[DurableLog]:
        """See ``DurableLogs``; raises IndexClosed, too."""
        with contextlib.ExitStack() as permit:
            try:
                log = self._read(partition_id, leader_epoch, permit)
            except Corrupt:
                permit.close()
                # Upkeep of this very leadership, before the log was let go of, may have replaced or
                # removed what was being read. What is there now counts.
                log = self._read(partition_id, leader_epoch, permit)
            yield log

    def _read(
        self, partition_id: int, leader_epoch: int, permit: contextlib.ExitStack
    ) -> DurableLog:
        """Return a log; what a long one needs to be in memory is given back by ``permit``."""
        asked = _Asked(partition_id, self._current_session(), leader_epoch)
        with self._changed:
            asked.found = self._take_brought(partition_id)
            asked.is_answered = asked.is_led
            if not asked.is_answered:
                self._waiting.append(asked)
        while (way := self._way_for(asked)) is not None:
            try:
                self._ask_for_all(way)
            finally:
                self._give_back(way)
        beginning = asked.beginning()
        if is_whole(beginning):
            return whole_log(beginning.head, beginning.extents)
        permit.enter_context(self._long_logs)
        return self._long_log(beginning)

    def _long_log(self, beginning: LogBeginning) -> DurableLog:
        way = self._way()
        try:
            return whole_log(beginning.head, all_from(way, beginning))
        finally:
            self._give_back(way)

    def _current_session(self) -> int:
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._session is not None)
            if self._is_closed or self._session is None:
                raise IndexClosed
            return self._session

    # ------------------------------------------------------------------------- ways to the store

    def _way_for(self, asked: _Asked) -> LogIndex | None:
        """Return a way to ask on; None: somebody else has asked, and there is an answer."""
        with self._changed:
            self._changed.wait_for(
                lambda: (
                    self._is_closed or asked.is_answered or (not asked.is_taken and self._is_free)
                )
            )
            if asked.is_answered:
                return None
        return self._way()

    @property
    def _is_free(self) -> bool:
        return bool(self._ways) or self._ways_made < WAYS_MOST

    def _way(self) -> LogIndex:
        """Wait for a way that nobody uses, and take it."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._is_free)
            if self._is_closed:
                raise IndexClosed
            if self._ways:
                return self._ways.pop()
            self._ways_made += 1
        try:
            return self._base.log_index()
        except BaseException:
            with self._changed:
                self._ways_made -= 1
                self._changed.notify_all()
            raise

    def _give_back(self, way: LogIndex) -> None:
        with self._changed:
            self._ways.append(way)
            self._changed.notify_all()

    def _ask_for_all(self, way: LogIndex) -> None:
        """Ask for as many as may be asked for together, and answer them."""
        with self._changed:
            together = [self._waiting.popleft() for _ in range(min(TOGETHER, len(self._waiting)))]
            for each in together:
                each.is_taken = True
        if together:  # Else somebody else has taken all of them.
            self._answer(way, together)

    def _answer(self, way: LogIndex, together: Sequence[_Asked]) -> None:
        try:
            _ask(way, together)
        except StoreDamaged:
            for each in together:
                self._answer_alone(way, each)
        except Exception as error:  # noqa: BLE001  Raised to each of those who asked.
            for each in together:
                each.error = error
        finally:
            self._tell(together)

    def _answer_alone(self, way: LogIndex, asked: _Asked) -> None:
        try:
            with damage_is_of(asked.partition_id):
                _ask(way, [asked])
        except Exception as error:  # noqa: BLE001  Raised to who asked.
            asked.error = error
        finally:
            self._tell([asked])

    def _tell(self, answered: Sequence[_Asked]) -> None:
        with self._changed:
            for each in answered:
                each.is_answered = True
            self._changed.notify_all()


class _Asked:
    """A log that somebody waits for."""

    def __init__(self, partition_id: int, session: int, leader_epoch: int) -> None:
        self.partition_id = partition_id
        self.leader = session, leader_epoch
        self.is_taken = False
        """Whether somebody asks the store for it."""
        self.is_answered = False
        self.error: Exception | None = None
        self.found: LogBeginning | None = None

    @property
    def is_led(self) -> bool:
        """Whether the store has said that it is led as whoever asks for it knows."""
        return self.found is not None and self.found.head.state[:2] == self.leader

    def beginning(self) -> LogBeginning:
        """Return what was found of the log; raises LedSince, and what asking for it has raised."""
        if self.error is not None:
            raise self.error
        if self.found is None:
            raise LedSince(f"partition {self.partition_id} was deleted")
        if not self.is_led:
            session, epoch, *_ = self.found.head.state
            raise LedSince(
                f"partition {self.partition_id} is led by session {session} in epoch {epoch},"
                f" not by {self.leader[0]} in {self.leader[1]}"
            )
        return self.found


def _ask(way: LogIndex, together: Sequence[_Asked]) -> None:
    found = beginnings(way, [each.partition_id for each in together])
    by_id = {each.head.partition_id: each for each in found}
    for each in together:
        each.found = by_id.get(each.partition_id)


def _size_of(beginning: LogBeginning) -> int:
    snapshot = beginning.head.snapshot
    known = 0 if snapshot is None else len(snapshot.producers) + len(snapshot.leader_epochs)
    return _HEAD_BYTES + known + sum(len(each.data) for each in beginning.extents)
