"""Which partitions this broker leads now: their logs are opened when they come, and let go of.

Rules of this file:

* A partition comes in a leader epoch, and whatever ends that leadership ends it for good: it comes
  again in a later epoch only (R11).
* Four say so: the view (led here, led elsewhere), who moves partitions (``release``), the store
  (what was placed is refused), and the catalogue (partitions come, and are deleted). What each of
  them means for a partition is one table, ``AFTER`` (``states.py``).
* Every step to another state makes void what was under way in the one before: a log that was read
  too late is dropped unseen, and leaves nothing.
* What a partition's former log has placed comes to its end, durable or refused, before the
  partition is opened again (R12): a refusal is never that of a log in which it was not placed.
* A log that the store has damaged, or cannot read, ends no broker: it is read again, now and then,
  and its clients are told KAFKA_STORAGE_ERROR.
* A long log for which the disk has no room is given up, and loaded anew once there may be: until
  then nothing is held of it, and others that fit are loaded.
* A coordinator's partition is served by its coordinator once all of the log is in its segments.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from barnabas.broker.cluster.leading.states import AFTER, COMING, KEEPS_LOG, Event, State
from barnabas.broker.metadata.pending_retries import taken_back
from barnabas.broker.runtime.settled import Settled
from barnabas.broker.runtime.threads import Pool
from barnabas.broker.runtime.turns import next_turn
from barnabas.storage.counts import Histogram
from barnabas.storage.errors import Corrupt, LedSince, NoRoom
from barnabas.storage.journal.journal import CommitGroup
from barnabas.storage.replicated.loading import LongLog, LongReading
from barnabas.storage.runtime.clock import counter_ns
from barnabas.storage.store.loading_apart import filled_apart, remove_apart, require_wanted
from barnabas.storage.store.store_parts import PartitionSpec

if TYPE_CHECKING:
    from barnabas.broker.cluster.view import ClusterView
    from barnabas.broker.metadata.topic import Partition
    from barnabas.broker.runtime.host import Host
    from barnabas.storage.log.partition_log import PartitionLog
    from barnabas.storage.replicated.loading import DurableLog
    from barnabas.storage.store.log_store import LogStore

logger = logging.getLogger(__name__)

LOADS_AT_ONCE: Final = 64
"""Logs that are read at the same time, each on a thread that waits for them most of the time."""
LONG_LOADS_AT_ONCE: Final = 3
"""Of which more is read than comes at first, on threads of their own: however many there are, and
however long they take, short ones never wait for them. Fewer than there are ways to the store, one
of which is for all others."""
DAMAGED_AGAIN_S: Final = 30.0
"""Until a log is read again that the store has damaged, or cannot read; it may be repaired."""
ROOM_PAUSE_S_MIN: Final = 1.0
ROOM_PAUSE_S_MAX: Final = 60.0
"""Until a log is loaded again for which there was no room; twice as long after each attempt, as all
of it is read again."""
COMPARED_PER_TURN: Final = 256
"""Partitions compared with the view before the loop may get a turn."""


class DurableLogs(Protocol):
    """Where the logs of all partitions are kept for whoever leads them."""

    def reading(
        self,
        partition_id: int,
        leader_epoch: int,
        memory: contextlib.ExitStack,
        long: LongReading | None = None,
    ) -> contextlib.AbstractContextManager[DurableLog]:
        """Have all that is durable of a partition that is led here in an epoch.

        Entered on threads, waits as long as it takes. Nothing that a former leader has on its way
        becomes durable after that. It is left once the log is ready: few can be entered at the same
        time. ``memory`` is closed once nothing of the log is held any more, be it never read: many
        logs share it, and others wait until then; any thread may do so. Raises LedSince where it is
        led in that epoch no more, and Corrupt for what is damaged; LongLog where it is to be
        entered with its ``reading``, on a thread for which no short one waits. What else this
        raises ends the broker.
        """


class Shards(Protocol):
    """The coordinators, each of whose partitions is one of an internal topic."""

    def gain(self, topic: str, index: int) -> None:
        """Serve the keys of a partition whose log is here, all of it in its segments."""

    def lose(self, topic: str, index: int) -> None:
        """Serve them no more, if they are served here."""


class Leadership:
    """The partitions of all topics, and which of them are led here; all of it on the loop."""

    def __init__(
        self,
        host: Host,
        logs: LogStore,
        view: ClusterView,
        durable_logs: DurableLogs,
        on_log_removed: Callable[[PartitionLog], None],
    ) -> None:
        """``on_log_removed`` is told of each log that is no more, to forget what belongs to it."""
        self._host = host
        self._logs = logs
        self._view = view
        self._durable_logs = durable_logs
        self._on_log_removed = on_log_removed
        self.on_taking_over: Callable[[int], object] = lambda _count: None
        """Is told how many partitions a look has found that this broker is to lead from now on."""
        self._shards: Shards | None = None
        self._places: dict[int, _Place] = {}
        self.takeover_times = Histogram()
        """Of partitions that came: from the view's word until they were served, in ns."""
        self.logs_closed = 0
        """Those that were let go of because a flush was refused, or the session was over."""
        self._threads = Pool("loader", LOADS_AT_ONCE, loop=host.loop)
        self._long_threads = Pool("long-loader", LONG_LOADS_AT_ONCE, loop=host.loop)
        self._loading_again = asyncio.Lock()
        """Held by one of the logs for which there was no room."""
        self._compared_version: int | None = None
        self._is_looking = False
        self._is_closed = False

    def open(self, shards: Shards) -> None:
        """Begin to lead what the view says."""
        self._shards = shards
        self.look()

    def close(self) -> None:
        """Open and let go of nothing any more: the broker ends."""
        self._is_closed = True
        for threads in (self._threads, self._long_threads):
            threads.close()

    def state_of(self, partition_id: int) -> State:
        """Return how far this broker has come with a partition."""
        place = self._places.get(partition_id)
        return State.AWAY if place is None else place.state

    @property
    def led_count(self) -> int:
        """Return how many partitions are led here, or are about to be."""
        places = self._places.values()
        return sum(each.is_there and each.state is not State.AWAY for each in places)

    def states(self) -> Counter[State]:
        """Return how many partitions are in each state."""
        return Counter(place.state for place in self._places.values())

    def damaged(self) -> list[str]:
        """Return the partitions led here that nobody can serve: the store cannot read them."""
        return sorted(
            f"{place.partition.topic.name}-{place.partition.index}"
            for place in self._places.values()
            if place.damage
        )

    # ------------------------------------------------------------------------------ the view's word

    def look(self) -> None:
        """Compare what is led here with the view; call it whenever its version has changed."""
        if self._shards is None or self._is_looking or self._is_closed:
            return
        if self._compared_version != self._view.version:
            self._is_looking = True
            self._host.spawn(self._look(), "look who leads what")

    async def _look(self) -> None:
        while self._compared_version != self._view.version:
            places = self._places_changed_since(self._compared_version)
            self._compared_version = self._view.version
            came = 0
            # Coordinators first: theirs are served only once they are written to segments, too.
            places.sort(key=lambda each: not each.partition.topic.is_internal)
            for number, place in enumerate(places, start=1):
                if place.is_there:
                    came += self._compare(place)
                if number % COMPARED_PER_TURN == 0:
                    await next_turn()
            if came:
                self.on_taking_over(came)
        self._is_looking = False

    def _places_changed_since(self, version: int | None) -> list[_Place]:
        """Return those that may have another leader; one that is shown later is compared then."""
        changed = None if version is None else self._view.changed_since(version)
        if changed is None:
            return [*self._places.values()]
        return [self._places[each] for each in changed if each in self._places]

    def _compare(self, place: _Place) -> bool:
        """Have happened what the view says; return whether it says anew that this broker leads."""
        leader = self._view.leader_of(place.partition.partition_id)
        if leader.node_id != self._view.node_id:
            if leader.epoch >= place.epoch:  # Else it is older than what is known here.
                self._happens(place, Event.LED_ELSEWHERE)
        elif leader.epoch > place.epoch:
            place.epoch = leader.epoch
            self._happens(place, Event.LED_HERE)
            return True
        return False

    # ----------------------------------------------- the word of the catalogue and of movers

    def shown(self, partitions: Sequence[Partition]) -> None:
        """See ``LogKeeper``; before ``open`` on any thread."""
        for partition in partitions:
            place = self._places[partition.partition_id] = _Place(partition)
            if self._shards is not None:
                self._compare(place)

    def deleted(self, partition: Partition) -> None:
        """See ``LogKeeper``. Who releases the partition is told that it is."""
        place = self._places.pop(partition.partition_id)
        place.is_there = False
        place.note_damage("")
        log = place.log
        if log is not None:
            place.log = None
            self._logs.delete(partition.partition_id)
            self._on_log_removed(log)
        place.tell_released()

    def release(self, partition_id: int, on_released: Callable[[], None]) -> None:
        """Let go of a partition that is to be moved, once all that was placed in it is durable.

        ``on_released`` is called then, or at once if it is not led here: nothing more is placed in
        it by this broker before it leads it again, in a later epoch.
        """
        place = self._places.get(partition_id)
        if place is None or place.state is State.AWAY:
            on_released()
            return
        place.on_released.append(on_released)
        self._happens(place, Event.RELEASED)

    # ----------------------------------------------------------------------------- the store's word

    def forgotten(self, logs: Sequence[PartitionLog], moved: frozenset[int]) -> None:
        """Take note of logs that the store knows no longer; see ``StoreCallbacks``."""
        for log in logs:
            place = self._places.get(log.partition_id)
            if place is not None and place.log is log:
                is_taken = log.partition_id in moved
                if not is_taken:
                    self._note_taken_back(place.partition, log)
                self._happens(place, Event.TAKEN if is_taken else Event.DROPPED)
        if logs:
            self.logs_closed += len(logs)
            words = "flush refused, logs closed logs=%d led_elsewhere=%d"
            logger.warning(
                words, len(logs), len([log for log in logs if log.partition_id in moved])
            )

    def _note_taken_back(self, partition: Partition, log: PartitionLog) -> None:
        """Have what was sent behind a refused batch wait for it: the log is read again soon."""
        now_s = self._host.clock.monotonic()
        for batch in taken_back(log):
            partition.note_refused(*batch, now_s)

    def session_lost(self) -> None:
        """Take note that nothing is led here any more, until the view names later epochs."""
        for place in self._places.values():
            if place.state is State.READING:  # Of all others the store forgets the log.
                self._happens(place, Event.TAKEN)

    def read_anew(self, log: PartitionLog) -> None:
        """Give up a log whose files are damaged, and read what is durable of it once more.

        One that this broker is about to let go of goes anyway.
        """
        place = self._places.get(log.partition_id)
        if place is not None and place.log is log and place.state is not State.DRAINING:
            self._happens(place, Event.DROPPED)

    # -------------------------------------------------------------------------- from state to state

    def _happens(self, place: _Place, event: Event) -> None:
        after = AFTER[place.state].get(event)
        if after is None or self._is_closed:
            return
        step = place.state, after
        place.state = after
        place.partition.is_coming = after in COMING
        place.steps += 1
        place.note_damage("")
        if place.log is not None and step not in KEEPS_LOG:
            self._let_go(place, place.log)
        if after is State.READING:
            place.came_ns = counter_ns()
            self._host.spawn(self._bring(place, place.steps), f"load {place.partition.topic.name}")
        elif after is State.OPENED:
            self._take_in(place)
        elif after is State.SERVED:
            self._serve(place)
        elif after is State.DRAINING:
            self._drain(place)
        if place.state is not State.DRAINING:
            place.tell_released()

    def _happens_later(self, place: _Place, steps: int, event: Event) -> None:
        """Tell of an event unless the partition has gone on since ``steps``."""
        if place.is_still_at(steps):
            self._happens(place, event)

    async def _bring(self, place: _Place, steps: int) -> None:
        """Read a log, and open it unless something has happened to its partition meanwhile."""
        if place.former is not None:
            await place.former.wait()
            place.former = None
        is_over = partial(self._is_over, place, steps)
        if is_over():
            return
        partition = place.partition
        spec = PartitionSpec(
            partition.partition_id,
            partition.topic.name,
            partition.index,
            partition.topic.topic_id,
            partition.topic.log_config,
            place.epoch,
        )
        try:
            loaded = await self._loaded_where_it_fits(spec, is_over)
        except LedSince as newer:
            logger.info("not loaded: %s", newer)
            self._happens_later(place, steps, Event.TAKEN)
            return
        except Corrupt as error:
            damage = str(error)
        else:
            if place.is_still_at(steps):
                place.loaded = loaded
                self._happens(place, Event.READ)
            else:
                self._drop(loaded)
            return
        # Who ends because of it hands it to the next broker, until there is none left. The error
        # is held no more meanwhile, nor what was read before it.
        await self._bring_again(place, steps, damage)

    async def _bring_again(self, place: _Place, steps: int, damage: str) -> None:
        """Say what keeps a log from being read, once, and read it again later."""
        if not place.is_still_at(steps):
            return
        topic, index = place.partition.topic.name, place.partition.index
        if damage != place.damage:
            words = "damaged partition, no broker can serve it partition=%s-%d: %s"
            logger.critical(words, topic, index, damage)
        place.note_damage(damage)
        await self._host.clock.sleep(DAMAGED_AGAIN_S)
        if place.is_still_at(steps):
            self._host.spawn(self._bring(place, steps), f"load {topic} again")

    def _is_over(self, place: _Place, steps: int) -> bool:
        """Whether nobody wants any more what is loaded since a step; on any thread."""
        return self._is_closed or not place.is_still_at(steps)

    async def _loaded_where_it_fits(
        self, spec: PartitionSpec, is_over: Callable[[], bool]
    ) -> _Loaded:
        """Have a log loaded as ``_loaded`` does, anew where there was no room for it on the disk.

        That is tried for one log at a time: of two that do not fit together one may.
        """
        pause_s, lock, disk = ROOM_PAUSE_S_MIN, self._loading_again, self._logs.file_system
        try:
            return await self._loaded(spec, is_over)
        except NoRoom as full:
            needed_bytes = full.needed_bytes
        words = "disk full, partition not loaded yet partition=%s-%d needed_bytes=%d"
        logger.warning(words, spec.topic, spec.partition, needed_bytes)
        while True:
            await self._host.clock.sleep(pause_s)
            async with lock:
                require_wanted(spec, is_over)
                if disk.free_bytes(self._logs.root) < needed_bytes:
                    continue
                try:
                    return await self._loaded(spec, is_over)
                except NoRoom as full:
                    needed_bytes = full.needed_bytes
                pause_s = min(2 * pause_s, ROOM_PAUSE_S_MAX)

    async def _loaded(self, spec: PartitionSpec, is_over: Callable[[], bool]) -> _Loaded:
        """Have a log loaded on one of the threads for it; raises what ``reading`` does.

        And LedSince soon after it ``is_over``: others wait for the threads.
        """
        threads, long, load = self._threads, None, partial(self._load, spec, is_over)
        while True:
            try:
                return await threads.run(partial(load, long))
            except LongLog as found:
                long = found.reading
            require_wanted(spec, is_over)
            threads = self._long_threads

    def _load(
        self, spec: PartitionSpec, is_over: Callable[[], bool], long: LongReading | None
    ) -> _Loaded:
        """On a thread: read a log and make ready all that is known of it."""
        require_wanted(spec, is_over)
        epoch = spec.leader_epoch
        assert epoch is not None
        with contextlib.ExitStack() as memory:
            with self._durable_logs.reading(spec.partition_id, epoch, memory, long) as durable:
                if long is None:
                    log, writes = self._logs.filled(spec, durable)
                else:
                    log = filled_apart(self._logs, spec, durable, is_over)
                    writes = CommitGroup()
            return _Loaded(log, writes, memory.pop_all())

    def _drop(self, loaded: _Loaded) -> None:
        """Leave nothing of a log that was read for nothing."""
        loaded.memory.close()
        if loaded.log.directory.is_apart:
            self._logs.journal.add_operation(partial(remove_apart, loaded.log))

    def _take_in(self, place: _Place) -> None:
        assert place.loaded is not None
        log, writes, memory = place.loaded
        place.loaded = None
        partition = place.partition
        if log.config is not partition.topic.log_config:  # It has changed meanwhile.
            log.configure(partition.topic.log_config)
        if log.directory.is_apart:
            self._logs.journal.add_operation(log.directory.take_place)
        self._logs.take_in(log, writes)
        # Behind all of it, be that written or, as the log has gone before, not any more.
        self._logs.journal.add_operation(memory.close)
        place.log = partition.log = log
        written = partial(self._happens_later, place, place.steps, Event.WRITTEN)
        if partition.topic.is_internal:
            self._logs.when_written(log, written)
        else:
            written()

    def _serve(self, place: _Place) -> None:
        partition = place.partition
        self.takeover_times.observe(counter_ns() - place.came_ns)
        logger.debug("led here partition=%s-%d", partition.topic.name, partition.index)
        if partition.topic.is_internal:
            assert self._shards is not None
            self._shards.gain(partition.topic.name, partition.index)

    def _drain(self, place: _Place) -> None:
        """Place nothing more, and wait for what is placed."""
        assert place.log is not None
        place.log.close()
        group = self._logs.journal.newest_group()
        drained = partial(self._happens_later, place, place.steps, Event.DRAINED)
        if group is None or _is_settled(place.log):
            drained()
        else:
            group.add_waiter(Settled(drained))

    def _let_go(self, place: _Place, log: PartitionLog) -> None:
        """Serve a partition no more: from here on it is led elsewhere, or loaded again."""
        partition = place.partition
        place.log = partition.log = None
        if partition.topic.is_internal:
            assert self._shards is not None
            self._shards.lose(partition.topic.name, partition.index)
        if self._logs.logs.get(log.partition_id) is log:  # Else the store has forgotten it.
            place.former = self._end_of(log)
            self._logs.release(log.partition_id)
        self._on_log_removed(log)

    def _end_of(self, log: PartitionLog) -> asyncio.Event | None:
        """What is set once all that was placed in a log is durable, or refused; None: it is."""
        group = self._logs.journal.newest_group()
        if group is None or _is_settled(log):
            return None
        over = asyncio.Event()
        group.add_waiter(Settled(over.set))
        return over


def _is_settled(log: PartitionLog) -> bool:
    """Whether nothing that was placed in a log is on its way to be durable."""
    return log.next_offset == log.high_watermark and not log.awaits_log_start


class _Loaded(NamedTuple):
    """A log that is ready."""

    log: PartitionLog
    writes: CommitGroup
    memory: contextlib.ExitStack
    """Closed once it is in segments."""


class _Place:
    """One partition as this broker stands to it."""

    __slots__ = (
        "came_ns",
        "damage",
        "epoch",
        "former",
        "is_there",
        "loaded",
        "log",
        "on_released",
        "partition",
        "state",
        "steps",
    )

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.is_there = True
        """Whether the partition exists."""
        self.state = State.AWAY
        self.damage = ""
        """What has kept its log from being read when that was tried last."""
        self.steps = 0
        """From state to state so far: whoever waits for something compares it."""
        self.came_ns = 0
        """The time, by ``counter_ns``, at which reading it began."""
        self.epoch = -1
        """The latest in which it is, or was, led here."""
        self.log: PartitionLog | None = None
        self.loaded: _Loaded | None = None
        """What was read, and is not open yet."""
        self.former: asyncio.Event | None = None
        """Set when the fate of all is known that was placed in the log before."""
        self.on_released: list[Callable[[], None]] = []

    def note_damage(self, damage: str) -> None:
        """Take note of what keeps the log from being read; empty: nothing does."""
        self.damage = damage
        self.partition.is_unreadable = bool(damage)

    def is_still_at(self, steps: int) -> bool:
        """Return whether nothing has happened to the partition since a step."""
        return self.is_there and self.steps == steps

    def tell_released(self) -> None:
        """Tell who waits for the partition to be released that it is."""
        waiting, self.on_released = self.on_released, []
        for on_released in waiting:
            on_released()
