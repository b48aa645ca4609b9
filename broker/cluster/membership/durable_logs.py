"""Reading of a cluster's logs by their leader; see ``DurableLogs`` (cluster/leading/leadership.py).

Rules of this file:

* A log is served only after the store has confirmed that this session leads it in this epoch. The
  confirmation survives any failover. From then on no other session's flush of the log is committed,
  so a later read is complete.
* A takeover brings many logs, and most are short: the requests of several threads share one query.
  The beginnings of logs that a poll has found came with that poll (``bring``), and
  need no query. They serve only the first read in an epoch, since this broker writes the rest
  itself.
* A log is read by several queries, and can change between them. Upkeep can replace or remove parts
  of it: the upkeep of this leadership, from before this broker released the log (one call can still
  be running), or that of a later leader. So damage counts only if two reads in a row find the same
  damage, with no change between and after them. Otherwise the log is read again until another
  broker leads it.
* Damage of one log does not stop others: after a query of several logs fails with damage, each log
  is queried alone.
* The memory for logs is limited, from the store's response until the bytes are in segments. A
  reader of short logs waits until others have written theirs. Beginnings that came with polls have
  a limit of their own, and count here once they are read.
* Short logs never wait for long ones: a reader that finds a long log raises ``LongLog`` and reads
  no more of it on that thread. A long log is written while it is read, so only one response of it
  is in memory. Of a long log with parts (``log_parts.py``) only what follows its snapshot is read.
  A very long one without parts is read, but not written: its records stay in the store.
* A response is limited in bytes, too. A request whose log, or the log's content, did not fit is
  repeated.
* A session that the broker has not started yet leads nothing here, even if the view names it.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

from barnabas.broker.cluster.membership.held_bytes import HeldBytes
from barnabas.broker.cluster.membership.parts_reader import PartsReader
from barnabas.storage.errors import Corrupt, IndexClosed, LedSince, ObjectDamaged, StoreDamaged
from barnabas.storage.replicated.header_loading import log_by_headers
from barnabas.storage.replicated.loading import LongLog, LongReading
from barnabas.storage.replicated.log_index import LogBeginning
from barnabas.storage.replicated.log_reading import (
    BYTES_AT_ONCE,
    FIRST_AT_ONCE,
    all_from,
    beginnings,
    damage_is_of,
    has_more_bytes,
    head_of,
    is_elsewhere,
    is_whole,
    log_behind_snapshot,
    log_in_pieces,
    needed_from,
    recent_beginnings,
    recent_from,
    whole_log,
    with_bodies,
)
from barnabas.storage.replicated.remote_segment import remote_segments
from barnabas.storage.runtime.threads import new_condition, new_semaphore, start_timer

if TYPE_CHECKING:
    from barnabas.broker.cluster.membership.base import ClusterBase
    from barnabas.broker.cluster.membership.held_bytes import Share
    from barnabas.storage.replicated.cold_store import ColdConnection, ColdStore
    from barnabas.storage.replicated.loading import DurableLog
    from barnabas.storage.replicated.log_index import Extent, LogHead, LogIndex
    from barnabas.storage.replicated.remote_segment import RemoteSegment
    from barnabas.storage.runtime.threads import Event

WAYS_MOST: Final = 4
"""Maximum number of connections to the store; each carries one query at a time."""
IDLE_S: Final = 60.0
"""Idle time, in seconds, after which the connections are closed."""
TOGETHER: Final = 64
"""Maximum number of logs in one query. A query costs one commit, however many logs it names."""
FILLED_AT_ONCE: Final = 4
"""Maximum number of logs that are checked and loaded at the same time: this is CPU work, and the
event loop competes with these threads."""
SHORT_BYTES_MOST: Final = 128 * 1024 * 1024
"""Maximum memory for short logs: enough to receive on all connections while other logs are
loaded."""
LOCAL_BYTES_MOST: Final = 64 * 1024 * 1024
"""Size from which a log without parts is not copied to the disk."""
BROUGHT_BYTES: Final = 16 * 1024 * 1024
"""Maximum memory for beginnings from polls that are not read yet; the oldest are dropped, and
queried when needed."""
_HEAD_BYTES: Final = 1024
"""Memory of such a beginning besides its data, rounded up."""


class StoredLogs:
    """Reader of logs for any number of threads, whose concurrent requests share queries."""

    def __init__(self, base: ClusterBase, cold: ColdStore | None = None) -> None:
        """Block reads until ``begin``; closing ``base`` ends the reads in progress.

        ``cold`` reads old records when a client does; without it logs are loaded whole.
        """
        self._base = base
        self._cold = cold
        self._parts = None if cold is None else PartsReader(cold)
        self._changed = new_condition()
        self._session: int | None = None
        self._is_closed = False
        self._waiting: deque[_Request] = deque()
        """Requests that no query includes yet."""
        self._ways: list[LogIndex] = []
        """Connections that are free."""
        self._ways_made = 0
        self._questions = 0
        """Number of queries on all connections so far."""
        self._idle_timer: Event | None = None
        """Event that cancels the idle timer, which runs while connections exist."""
        self._filling = new_semaphore(FILLED_AT_ONCE)
        self._brought: dict[int, LogBeginning] = {}
        """Unread beginnings by partition ID, the newest last."""
        self._brought_bytes = 0
        self.short_bytes = HeldBytes(SHORT_BYTES_MOST)
        """Memory in use for short logs."""

    def begin(self, session: int) -> None:
        """Allow reads of the logs that ``session`` leads."""
        with self._changed:
            self._session = session
            self._changed.notify_all()

    def end(self) -> None:
        """Block reads until the next session starts."""
        with self._changed:
            self._session = None
            self._brought.clear()
            self._brought_bytes = 0

    def bring(self, gained: Iterable[LogBeginning]) -> None:
        """Keep the beginnings of logs that no thread has started to read in their epochs.

        The first reader of each log uses its beginning. Callable on any thread.
        """
        with self._changed:
            for each in gained:
                self._take_brought(each.head.partition_id)
                is_cut = len(each.extents) < FIRST_AT_ONCE or self._cold is not None
                if is_cut and not is_whole(each):
                    continue  # Cut off for the sake of others; all of it may come when asked for.
                if any(extent.place is not None for extent in each.extents):
                    continue  # Its bytes are in the object store, which no poll waits for.
                self._brought[each.head.partition_id] = each
                self._brought_bytes += _HEAD_BYTES + _size_of(each)
            while self._brought_bytes > BROUGHT_BYTES:
                self._take_brought(next(iter(self._brought)))

    def _take_brought(self, partition_id: int) -> LogBeginning | None:
        """Remove and return the stored beginning of a log, or ``None``."""
        brought = self._brought.pop(partition_id, None)
        if brought is not None:
            self._brought_bytes -= _HEAD_BYTES + _size_of(brought)
        return brought

    def close(self) -> None:
        """End all reads with IndexClosed."""
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
        """Read a log; see ``DurableLogs``. Also raises IndexClosed."""
        if long is not None:
            yield from self._reading_long(partition_id, leader_epoch, long)
            return
        found: tuple[LogHead | None, str] | None = None
        with contextlib.ExitStack() as turn:
            while True:
                request = _Request(partition_id, self._current_session(), leader_epoch)
                try:
                    log = self._short_log(self._beginning(request, memory), turn)
                except LongLog:
                    memory.close()
                    raise
                except Corrupt as damage:
                    turn.close()
                    memory.close()
                    found, found_before = (request.head, str(damage)), found
                    if isinstance(damage.__cause__, StoreDamaged) or (
                        found == found_before and self._is_current(request)
                    ):
                        raise
                else:
                    break
            yield log

    def _short_log(self, beginning: LogBeginning, turn: contextlib.ExitStack) -> DurableLog:
        """Return a log that is all in its beginning; raises LongLog, Corrupt."""
        if not is_whole(beginning):
            raise LongLog(beginning.head.partition_id, LongReading())
        remote = self._remote_part(beginning)
        if is_elsewhere(beginning.extents):
            return self._log_by_headers(beginning, remote)
        turn.enter_context(self._filling)
        if not remote:
            return whole_log(beginning.head, beginning.extents)
        recent = log_behind_snapshot(beginning.head, beginning.extents, remote)
        return recent._replace(batches=[*recent.batches])

    def _reading_long(
        self, partition_id: int, leader_epoch: int, long: LongReading
    ) -> Iterator[DurableLog]:
        """Yield a log whose batches are queried while it is read; raises as ``reading``.

        It takes no share of the memory for short logs: few long logs are read at once, each with
        one response in memory.
        """
        request = _Request(partition_id, self._current_session(), leader_epoch)
        with contextlib.ExitStack() as held:
            way = self._way()
            held.callback(self._give_back, way)
            head = head_of(way, partition_id)
            request.found = None if head is None else LogBeginning(head, ())
            beginning = request.beginning()
            remote = self._remote_segments(beginning.head)
            by_headers = not remote and self._fills_disk(way, beginning.head, long)
            found_extents: Iterator[Extent]
            if remote:
                recent = recent_from(way, beginning.head)
                first = list(islice(recent, FIRST_AT_ONCE))
                by_headers = is_elsewhere(first)
                found_extents = chain(first, recent)
                if not by_headers:
                    found_extents = with_bodies(way, partition_id, found_extents)
            elif by_headers:
                found_extents = needed_from(way, beginning.head)
            else:
                found_extents = all_from(way, beginning)
            extents = self._few_at_work(found_extents)
            held.callback(extents.close)
            try:
                if by_headers and self._cold is not None:
                    yield log_by_headers(way, beginning.head, extents, remote, self._cold)
                elif remote:
                    yield log_behind_snapshot(beginning.head, extents, remote)
                else:
                    yield log_in_pieces(beginning.head, extents)
            except Corrupt as damage:
                if isinstance(damage.__cause__, StoreDamaged):
                    raise
                found = (beginning.head, str(damage))
                if found == long.damage and head_of(way, partition_id) == beginning.head:
                    raise
                raise LongLog(partition_id, long._replace(damage=found)) from damage

    def _fills_disk(self, way: LogIndex, head: LogHead, long: LongReading) -> bool:
        """Whether a log without parts is so long that its records stay in the store (F14)."""
        if self._cold is None or long.is_local:
            return False
        return has_more_bytes(way, head, LOCAL_BYTES_MOST)

    def _log_by_headers(
        self, beginning: LogBeginning, remote: Sequence[RemoteSegment]
    ) -> DurableLog:
        """Return a log with parts, some of whose other records are in the object store.

        The cold store reads the headers of those records, as it does for parts.
        """
        cold, head = self._cold, beginning.head
        assert cold is not None, "logs without a cold store have no parts"
        extents = beginning.extents
        key = ("headers", head.partition_id, head.state.leader_epoch)

        def read(way: ColdConnection) -> DurableLog:
            found = log_by_headers(way.index, head, extents, remote, cold)
            return found._replace(known=[*found.known])

        try:
            return cold.read(key, read, patiently=True)
        except OSError as error:
            raise IndexClosed from error

    def _remote_part(self, beginning: LogBeginning) -> Sequence[RemoteSegment]:
        """Return the segments before a beginning, or none if it begins at the log's start.

        Raises LongLog if the log has to be read from its start on.
        """
        if not beginning.is_recent:
            return ()
        remote = self._remote_segments(beginning.head)
        if not remote:
            raise LongLog(beginning.head.partition_id, LongReading())
        return remote

    def _remote_segments(self, head: LogHead) -> Sequence[RemoteSegment]:
        """Return the segments before the snapshot of a log, or none if it is loaded whole."""
        cold, parts = self._cold, self._parts
        if cold is None or parts is None:
            return ()
        return remote_segments(head.partition_id, parts.read(head), cold)

    def _few_at_work(self, extents: Iterable[Extent]) -> Generator[Extent]:
        """Yield extents; each holds one of FILLED_AT_ONCE places until the next is requested."""
        for extent in extents:
            with self._filling:
                yield extent

    def _beginning(self, request: _Request, memory: contextlib.ExitStack) -> LogBeginning:
        """Return the beginning of a log; closing ``memory`` releases its bytes."""
        if not self._use_brought(request):
            self._wait_for_answer(request)
        if request.share is not None:
            memory.callback(request.share.close)
        return request.beginning()

    def _wait_for_answer(self, request: _Request) -> None:
        """Wait until a query of this or another thread has returned the log."""
        with self._changed:
            self._waiting.append(request)
        while (way := self._way_for(request)) is not None:
            try:
                self._ask_for_all(way, request)
            finally:
                self._give_back(way)

    def _use_brought(self, request: _Request) -> bool:
        """Use the beginning that a poll brought, once memory is free; return False without one."""
        with self._changed:
            brought = self._brought.get(request.partition_id)
        if brought is None:
            return False
        with contextlib.ExitStack() as unused:
            share = self.short_bytes.begin()
            unused.callback(share.close)
            share.grow(_size_of(brought))
            with self._changed:
                request.found = self._take_brought(request.partition_id)
            # Meanwhile it may have gone, or another one may have come.
            if request.found is brought and request.is_led:
                share.settle()
                request.share = share
                unused.pop_all()
                return True
        request.found = None
        return False

    def _is_current(self, request: _Request) -> bool:
        """Return whether no change of the log is known since it was read."""
        if request.head is None:
            return True
        way = self._way()
        try:
            return head_of(way, request.partition_id) == request.head
        finally:
            self._give_back(way)

    def _current_session(self) -> int:
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._session is not None)
            if self._is_closed or self._session is None:
                raise IndexClosed
            return self._session

    # ------------------------------------------------------------------------- ways to the store

    def _way_for(self, request: _Request) -> LogIndex | None:
        """Return a connection for the query, or ``None`` if another thread's query has the result.

        From then on no other thread includes this request: a thread whose request is complete holds
        memory, and must not wait for more.
        """
        with self._changed:
            self._changed.wait_for(
                lambda: self._is_closed or request.is_answered or self._can_send(request)
            )
            if request.is_answered:
                return None
            way = self._free_way()
            request.is_taken = True
            self._waiting.remove(request)
        return way or self._another_way()

    def _can_send(self, request: _Request) -> bool:
        return not request.is_taken and self._is_free

    @property
    def _is_free(self) -> bool:
        return bool(self._ways) or self._ways_made < WAYS_MOST

    def _way(self) -> LogIndex:
        """Wait for a free connection and take it."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._is_free)
            way = self._free_way()
        return way or self._another_way()

    def _free_way(self) -> LogIndex | None:
        """Take a free connection, or return ``None`` to open another one; the lock is held."""
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
                self._start_idle_timer()

    def _start_idle_timer(self) -> None:
        """Close the connections once no query has run for IDLE_S; the lock is held."""
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
                self._start_idle_timer()
        for way in idle:
            way.close()

    def _ask_for_all(self, way: LogIndex, request: _Request) -> None:
        """Query one log together with other waiting ones, and complete their requests."""
        with self._changed:
            together = [request]
            while self._waiting and len(together) < TOGETHER:
                together.append(self._waiting.popleft())
                together[-1].is_taken = True
        self._answer(way, together)

    def _answer(self, way: LogIndex, together: Sequence[_Request]) -> None:
        unanswered: Sequence[_Request] = ()
        try:
            unanswered = self._ask(way, together)
        except (ObjectDamaged, StoreDamaged):
            self._answer_apart(way, together)
            return
        except Exception as error:  # noqa: BLE001  Raised to the caller of each request.
            for each in together:
                each.errors.append(error)
        self._complete([each for each in together if each not in unanswered])
        self._repeat(unanswered)

    def _answer_apart(self, way: LogIndex, together: Sequence[_Request]) -> None:
        """Query each log alone, so that damage is reported only to the log that has it."""
        for each in together:
            try:
                with damage_is_of(each.partition_id):
                    self._ask(way, [each])
            except Exception as error:  # noqa: BLE001  Raised to the caller of the request.
                each.errors.append(error)
            self._complete([each])

    def _ask(self, way: LogIndex, together: Sequence[_Request]) -> Sequence[_Request]:
        """Query logs once memory for the response is free; each request then holds its part.

        Returns the requests that the response does not cover.
        """
        answer = self.short_bytes.begin()
        try:
            answer.grow(BYTES_AT_ONCE)
            unanswered = _find(way, together, recent=self._cold is not None)
            for each in together:
                if each.found is not None:
                    each.share = self.short_bytes.hold(_size_of(each.found))
        finally:
            answer.close()
        return unanswered

    def _repeat(self, unanswered: Sequence[_Request]) -> None:
        """Put the requests whose logs did not fit into the response before all others."""
        with self._changed:
            for each in reversed(unanswered):
                each.is_taken = False
                self._waiting.appendleft(each)
            self._changed.notify_all()

    def _complete(self, answered: Sequence[_Request]) -> None:
        with self._changed:
            for each in answered:
                each.is_answered = True
            self._changed.notify_all()


class _Request:
    """Request of one thread for one log."""

    def __init__(self, partition_id: int, session: int, leader_epoch: int) -> None:
        self.partition_id = partition_id
        self.leader = session, leader_epoch
        self.is_taken = False
        """Whether a query includes it."""
        self.is_answered = False
        self.errors: list[Exception] = []
        """The error of the query, until it is raised."""
        self.found: LogBeginning | None = None
        self.share: Share | None = None
        """Share of the memory for short logs; the requesting thread closes it."""

    @property
    def head(self) -> LogHead | None:
        """Return the head of the log, or ``None`` if the log was not found."""
        return None if self.found is None else self.found.head

    @property
    def is_led(self) -> bool:
        """Whether the store names the session and epoch of the request as the leader."""
        return self.found is not None and self.found.head.state[:2] == self.leader

    def beginning(self) -> LogBeginning:
        """Return the beginning; raises LedSince, or, once, the error of the query."""
        if self.errors:
            raise self.errors.pop()  # Its traceback has frames that refer to this object.
        if self.found is None:
            raise LedSince(f"partition {self.partition_id} was deleted")
        if not self.is_led:
            session, epoch, *_ = self.found.head.state
            raise LedSince(
                f"partition {self.partition_id} is led by session {session} in epoch {epoch},"
                f" not by {self.leader[0]} in {self.leader[1]}"
            )
        return self.found


def _find(way: LogIndex, together: Sequence[_Request], *, recent: bool) -> Sequence[_Request]:
    """Store the beginnings in their requests; return the requests that did not fit."""
    find = recent_beginnings if recent else beginnings
    found = find(way, [each.partition_id for each in together], BYTES_AT_ONCE)
    # The first extent comes, however large it is: if none did, no log has any.
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
    return beginning.head.snapshot_bytes + sum(each.size_bytes for each in beginning.extents)
