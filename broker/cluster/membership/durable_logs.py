"""The logs of a cluster, read by whoever leads them; see ``DurableLogs``
(cluster/leading/leadership.py).

Rules of this file:

* A log is served only when the store has said, in an answer that no failover takes back, that this
  session leads it in this epoch: from then on nobody else's flush of it is committed, so what is
  read after that is all there is.
* Logs come in crowds, and most are short: what several threads wait for is asked for together.
  Of those that a look has shown the beginnings have come with it (``bring``): nothing is asked. It
  is used for the first reading in an epoch only, since behind that this broker writes itself.
* A log is read by several questions, and changes meanwhile where upkeep replaces or removes some of
  it: that of this very leadership, from before the log was let go of here, of which one call may be
  under way still, or that of a later leader. So what looks like damage is believed when it is found
  twice in a row, and nothing has changed in between, nor since. Else the log is read once more,
  however often, until it is led by others.
* What the store cannot read of one log keeps no other from being served: of a crowd for which it
  says so each is asked for alone.
* However many logs come at once, what is held of them in memory has a bound, from the answer of the
  store until it is in segments: who wants to read short ones waits until others have written. What
  looks have brought is no part of it before somebody reads it, and has a bound of its own.
* Short logs never wait for long ones: who finds that a log is long says so, and reads no more of it
  on that thread (``LongLog``). Of a long one no more is held than an answer, however long it is: it
  is written while it is read.
* An answer has a bound in bytes, too: who is told nothing of his log, or nothing of what is in it,
  since it did not fit, asks again.
* A session that the broker has not begun yet leads nothing here, be it named by the view already.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from barnabas.broker.cluster.membership.held_bytes import HeldBytes
from barnabas.storage.errors import Corrupt, LedSince, StoreDamaged
from barnabas.storage.replicated.loading import LongLog, LongReading
from barnabas.storage.replicated.log_index import IndexClosed, LogBeginning
from barnabas.storage.replicated.log_reading import (
    BYTES_AT_ONCE,
    FIRST_AT_ONCE,
    all_from,
    beginnings,
    damage_is_of,
    head_of,
    is_whole,
    log_in_pieces,
    whole_log,
)
from barnabas.storage.runtime.threads import new_condition, new_semaphore, start_timer

if TYPE_CHECKING:
    from barnabas.broker.cluster.membership.base import ClusterBase
    from barnabas.broker.cluster.membership.held_bytes import Share
    from barnabas.storage.replicated.loading import DurableLog
    from barnabas.storage.replicated.log_index import Extent, LogHead, LogIndex
    from barnabas.storage.runtime.threads import Event

WAYS_MOST: Final = 4
"""On each one question is under way."""
IDLE_S: Final = 60.0
"""Ways are connections, which are closed when nothing was read for so long."""
TOGETHER: Final = 64
"""Logs that are asked for at the same time. A question costs a commit, whatever it asks for."""
FILLED_AT_ONCE: Final = 4
"""Logs that are checked and made ready at the same time: that is work, and the loop waits for the
threads."""
SHORT_BYTES_MOST: Final = 128 * 1024 * 1024
"""Of short logs: so much that answers come on all ways while others are made ready and written."""
BROUGHT_BYTES: Final = 16 * 1024 * 1024
"""Of beginnings that came with looks and that nobody has read: the oldest go, and are asked for."""
_HEAD_BYTES: Final = 1024
"""What such a beginning takes besides what it carries, and a little more."""


class StoredLogs:
    """Reads logs, on any number of threads: what they ask for meanwhile is asked together."""

    def __init__(self, base: ClusterBase) -> None:
        """Nothing can be read before ``begin``; closing ``base`` ends what is being read."""
        self._base = base
        self._changed = new_condition()
        self._session: int | None = None
        self._is_closed = False
        self._waiting: deque[_Asked] = deque()
        """Those of whom the store was not asked yet."""
        self._ways: list[LogIndex] = []
        """Those that are free."""
        self._ways_made = 0
        self._questions = 0
        """On all ways, so far."""
        self._idle_timer: Event | None = None
        """Cancels a timer, which runs while there are ways."""
        self._filling = new_semaphore(FILLED_AT_ONCE)
        self._brought: dict[int, LogBeginning] = {}
        """By partition, the newest last."""
        self._brought_bytes = 0
        self.short_bytes = HeldBytes(SHORT_BYTES_MOST)
        """What is held of short logs."""

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
                if not is_whole(each) and len(each.extents) < FIRST_AT_ONCE:
                    continue  # Cut off for the sake of others; all of it may come when asked for.
                self._brought[each.head.partition_id] = each
                self._brought_bytes += _HEAD_BYTES + _size_of(each)
            while self._brought_bytes > BROUGHT_BYTES:
                self._take_brought(next(iter(self._brought)))

    def _take_brought(self, partition_id: int) -> LogBeginning | None:
        """Have nothing of a log any more, and return what there was."""
        brought = self._brought.pop(partition_id, None)
        if brought is not None:
            self._brought_bytes -= _HEAD_BYTES + _size_of(brought)
        return brought

    def close(self) -> None:
        """Read nothing any more."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
            if self._idle_timer is not None:
                self._idle_timer.set()
        self.short_bytes.close()

    @contextlib.contextmanager
    def reading(
        self,
        partition_id: int,
        leader_epoch: int,
        memory: contextlib.ExitStack,
        long: LongReading | None = None,
    ) -> Iterator[DurableLog]:
        """See ``DurableLogs``; raises IndexClosed, too."""
        if long is not None:
            yield from self._reading_long(partition_id, leader_epoch, long)
            return
        found: tuple[LogHead | None, str] | None = None
        with contextlib.ExitStack() as turn:
            while True:
                asked = _Asked(partition_id, self._current_session(), leader_epoch)
                try:
                    beginning = self._beginning(asked, memory)
                    if not is_whole(beginning):
                        memory.close()
                        raise LongLog(partition_id, LongReading())
                    turn.enter_context(self._filling)
                    log = whole_log(beginning.head, beginning.extents)
                except Corrupt as damage:
                    turn.close()
                    memory.close()
                    found, found_before = (asked.head, str(damage)), found
                    if isinstance(damage.__cause__, StoreDamaged) or (
                        found == found_before and self._head_now(partition_id) == asked.head
                    ):
                        raise
                else:
                    break
            yield log

    def _reading_long(
        self, partition_id: int, leader_epoch: int, long: LongReading
    ) -> Iterator[DurableLog]:
        """Have a log that is read while its batches are asked for; raises as ``reading``.

        Of the memory of all others it holds nothing: few are read, and an answer is held of each.
        """
        asked = _Asked(partition_id, self._current_session(), leader_epoch)
        with contextlib.ExitStack() as held:
            way = self._way()
            held.callback(self._give_back, way)
            head = head_of(way, partition_id)
            asked.found = None if head is None else LogBeginning(head, ())
            beginning = asked.beginning()
            extents = self._few_at_work(all_from(way, beginning))
            held.callback(extents.close)
            try:
                yield log_in_pieces(beginning.head, extents)
            except Corrupt as damage:
                if isinstance(damage.__cause__, StoreDamaged):
                    raise
                found = (beginning.head, str(damage))
                if found == long.damage and head_of(way, partition_id) == beginning.head:
                    raise
                raise LongLog(partition_id, LongReading(found)) from damage

    def _few_at_work(self, extents: Iterable[Extent]) -> Generator[Extent]:
        """Have an extent be checked and made ready in its turn, until the next is asked for."""
        for extent in extents:
            with self._filling:
                yield extent

    def _beginning(self, asked: _Asked, memory: contextlib.ExitStack) -> LogBeginning:
        """Return what there is of a log; ``memory`` gives it back."""
        if not self._use_brought(asked):
            self._wait_for_answer(asked)
        if asked.share is not None:
            memory.callback(asked.share.close)
        return asked.beginning()

    def _wait_for_answer(self, asked: _Asked) -> None:
        """Have the store asked, by whoever does so first."""
        with self._changed:
            self._waiting.append(asked)
        while (way := self._way_for(asked)) is not None:
            try:
                self._ask_for_all(way, asked)
            finally:
                self._give_back(way)

    def _use_brought(self, asked: _Asked) -> bool:
        """Answer by what a look has brought, once there is memory for it; False: it has not."""
        with self._changed:
            brought = self._brought.get(asked.partition_id)
        if brought is None:
            return False
        with contextlib.ExitStack() as unused:
            share = self.short_bytes.begin()
            unused.callback(share.close)
            share.grow(_size_of(brought))
            with self._changed:
                asked.found = self._take_brought(asked.partition_id)
            # Meanwhile it may have gone, or another one may have come.
            if asked.found is brought and asked.is_led:
                share.settle()
                asked.share = share
                unused.pop_all()
                return True
        asked.found = None
        return False

    def _head_now(self, partition_id: int) -> LogHead | None:
        way = self._way()
        try:
            return head_of(way, partition_id)
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
        """Return a way to ask on; None: somebody else has asked, and there is an answer.

        From then on nobody else asks for it: who has an answer holds memory, and waits for none.
        """
        with self._changed:
            self._changed.wait_for(
                lambda: (
                    self._is_closed or asked.is_answered or (not asked.is_taken and self._is_free)
                )
            )
            if asked.is_answered:
                return None
            way = self._free_way()
            asked.is_taken = True
            self._waiting.remove(asked)
        return way or self._another_way()

    @property
    def _is_free(self) -> bool:
        return bool(self._ways) or self._ways_made < WAYS_MOST

    def _way(self) -> LogIndex:
        """Wait for a way that nobody uses, and take it."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._is_free)
            way = self._free_way()
        return way or self._another_way()

    def _free_way(self) -> LogIndex | None:
        """Take a way that is free; None: another one is to be opened. The lock is held."""
        if self._is_closed:
            raise IndexClosed
        if self._ways:
            return self._ways.pop()
        self._ways_made += 1
        return None

    def _another_way(self) -> LogIndex:
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
            self._questions += 1
            self._changed.notify_all()
            if self._idle_timer is None and not self._is_closed:
                self._look_for_idle_ways()

    def _look_for_idle_ways(self) -> None:
        """Close the ways once nothing was asked on any for IDLE_S; the lock is held."""
        look = partial(self._close_idle_ways, self._questions)
        self._idle_timer = start_timer("barnabas-idle-ways", IDLE_S, look)

    def _close_idle_ways(self, questions_before: int) -> None:
        with self._changed:
            self._idle_timer = None
            if self._is_closed:
                return
            idle: list[LogIndex] = []
            if self._questions == questions_before:
                idle, self._ways = self._ways, []
                self._ways_made -= len(idle)
            if self._ways_made:
                self._look_for_idle_ways()
        for way in idle:
            way.close()

    def _ask_for_all(self, way: LogIndex, asked: _Asked) -> None:
        """Ask for one log and as many others as may be asked for together, and answer them."""
        with self._changed:
            together = [asked]
            while self._waiting and len(together) < TOGETHER:
                together.append(self._waiting.popleft())
                together[-1].is_taken = True
        self._answer(way, together)

    def _answer(self, way: LogIndex, together: Sequence[_Asked]) -> None:
        unanswered: Sequence[_Asked] = ()
        try:
            unanswered = self._ask(way, together)
        except StoreDamaged:
            self._answer_apart(way, together)
            return
        except Exception as error:  # noqa: BLE001  Raised to each of those who asked.
            for each in together:
                each.error = error
        self._tell([each for each in together if each not in unanswered])
        self._ask_again(unanswered)

    def _answer_apart(self, way: LogIndex, together: Sequence[_Asked]) -> None:
        """Answer each once it is known whether the damage is its own."""
        for each in together:
            try:
                with damage_is_of(each.partition_id):
                    self._ask(way, [each])
            except Exception as error:  # noqa: BLE001  Raised to who asked.
                each.error = error
            self._tell([each])

    def _ask(self, way: LogIndex, together: Sequence[_Asked]) -> Sequence[_Asked]:
        """Ask, once there is memory for the answer, which those who asked hold from then on.

        Returns those to whom it is no answer: not all.
        """
        answer = self.short_bytes.begin()
        try:
            answer.grow(BYTES_AT_ONCE)
            unanswered = _find(way, together)
            for each in together:
                if each.found is not None:
                    each.share = self.short_bytes.hold(_size_of(each.found))
        finally:
            answer.close()
        return unanswered

    def _ask_again(self, unanswered: Sequence[_Asked]) -> None:
        """Let those ask again whose logs did not fit into the answer, before all others."""
        with self._changed:
            for each in reversed(unanswered):
                each.is_taken = False
                self._waiting.appendleft(each)
            self._changed.notify_all()

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
        self.share: Share | None = None
        """Of the memory for short logs; given back by who asked."""

    @property
    def head(self) -> LogHead | None:
        """Return what was found to be known of the log; None: there is none."""
        return None if self.found is None else self.found.head

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


def _find(way: LogIndex, together: Sequence[_Asked]) -> Sequence[_Asked]:
    """Find the beginnings of logs; return those who are told nothing, for the sake of others."""
    found = beginnings(way, [each.partition_id for each in together], BYTES_AT_ONCE)
    # The first extent comes, however large it is: if there is none, none is there of any log.
    is_all = not any(each.extents for each in found)
    told = {
        each.head.partition_id: each for each in found if is_all or each.extents or is_whole(each)
    }
    for each in together:
        each.found = told.get(each.partition_id)
    if not found:
        return ()
    unanswered = {each.head.partition_id for each in found} - told.keys()
    last = found[-1].head.partition_id
    return [
        each for each in together if each.partition_id > last or each.partition_id in unanswered
    ]


def _size_of(beginning: LogBeginning) -> int:
    return beginning.head.snapshot_bytes + sum(len(each.data) for each in beginning.extents)
