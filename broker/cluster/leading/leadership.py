"""The partitions that this broker leads: opens their logs, serves them and releases them.

Rules of this file:

* This broker leads a partition in one leader epoch. A leadership that has ended never resumes: the
  broker leads the partition again only in a later epoch (R11).
* Events have four sources: the view (led here, led elsewhere), callers that move partitions
  (``release``), the store (a flush was refused), and the catalogue (partitions are created and
  deleted). The table ``AFTER`` (``states.py``) has the next state for each state and event.
* A change of state cancels the work of the previous state: a log that was read too late is dropped
  unused, and its files are removed.
* All appends to a partition's previous log are durable or refused before the partition is opened
  again (R12), so a refusal never concerns a log without the refused append.
* A log that is damaged in the store, or that the store cannot read, does not end the broker. The
  broker reads it again periodically; clients get KAFKA_STORAGE_ERROR until that succeeds.
* Loading a long log stops if the disk has no space for it, and restarts once there may be space.
  Until then nothing of it is kept, and logs that fit are loaded.
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
from barnabas.broker.metadata.topic_names import INTERNAL
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
"""Long logs that are read at the same time, on threads of their own, so that short logs never wait
for them. It is less than the number of connections to the store: one is left for all others."""
DAMAGED_AGAIN_S: Final = 30.0
"""Pause before a damaged or unreadable log is read again, as it may have been repaired."""
ROOM_PAUSE_S_MIN: Final = 1.0
ROOM_PAUSE_S_MAX: Final = 60.0
"""Pause before a log is loaded again that did not fit on the disk. It doubles after each attempt,
since each attempt reads the whole log."""
COMPARED_PER_TURN: Final = 256
"""Partitions compared with the view before the loop may get a turn."""


class DurableLogs(Protocol):
    """The store with the logs of all partitions, from which their leaders read."""

    def reading(
        self,
        partition_id: int,
        leader_epoch: int,
        memory: contextlib.ExitStack,
        long: LongReading | None = None,
    ) -> contextlib.AbstractContextManager[DurableLog]:
        """Return a context with the durable log of a partition that is led here in an epoch.

        Entering it blocks, on a thread, without a time limit. After that no append of an earlier
        leader becomes durable. Leave it once the log is ready: only a few can be open at once.
        Close ``memory``, on any thread, once the log's bytes are in memory no longer, even if the
        log was never read: many logs share that memory, and others wait for it.

        Raises LedSince if the partition is no longer led in that epoch, Corrupt for damage, and
        LongLog if the log has to be entered with ``reading`` on a thread for long logs. Any other
        exception ends the broker.
        """


class Shards(Protocol):
    """The coordinators, each of whose partitions is one of an internal topic."""

    def gain(self, topic: str, index: int) -> None:
        """Start to serve the keys of a partition whose log is loaded."""

    def lose(self, topic: str, index: int) -> None:
        """Stop serving the keys of a partition, if they are served here."""


class Leadership:
    """The states of all partitions, with the logs that this broker leads; on the loop."""

    def __init__(
        self,
        host: Host,
        logs: LogStore,
        view: ClusterView,
        durable_logs: DurableLogs,
        on_log_removed: Callable[[PartitionLog], None],
    ) -> None:
        """``on_log_removed`` is called with each removed log, to drop the state that uses it."""
        self._host = host
        self._logs = logs
        self._view = view
        self._durable_logs = durable_logs
        self._on_log_removed = on_log_removed
        self.on_taking_over: Callable[[int], object] = lambda _count: None
        """Called with the number of partitions that are new in a comparison with the view."""
        self._shards: Shards | None = None
        self._places: dict[int, _Place] = {}
        self.takeover_times = Histogram()
        """Nanoseconds from the view's naming this broker as leader until a partition is served."""
        self.logs_closed = 0
        """The number of logs that were closed by a refused flush or the end of the session."""
        self._threads = Pool("loader", LOADS_AT_ONCE, loop=host.loop)
        self._long_threads = Pool("long-loader", LONG_LOADS_AT_ONCE, loop=host.loop)
        self._loading_again = asyncio.Lock()
        """Held by a log that did not fit on the disk, so that one such log at a time is read."""
        self._compared_version: int | None = None
        self._is_looking = False
        self._is_closed = False

    def open(self, shards: Shards) -> None:
        """Start to lead the partitions that the view assigns to this broker."""
        self._shards = shards
        self.follow_view()

    def close(self) -> None:
        """Stop opening and releasing logs: the broker ends."""
        self._is_closed = True
        for threads in (self._threads, self._long_threads):
            threads.close()

    def state_of(self, partition_id: int) -> State:
        """Return the state of a partition on this broker."""
        place = self._places.get(partition_id)
        return State.AWAY if place is None else place.state

    @property
    def led_count(self) -> int:
        """Return the number of partitions that are led here, or will be soon."""
        places = self._places.values()
        return sum(each.is_there and each.state is not State.AWAY for each in places)

    def states(self) -> Counter[State]:
        """Return the number of partitions in each state."""
        return Counter(place.state for place in self._places.values())

    def damaged(self) -> list[str]:
        """Return the partitions led here that no broker can serve: the store cannot read them."""
        return sorted(
            f"{place.partition.topic.name}-{place.partition.index}"
            for place in self._places.values()
            if place.damage
        )

    # ------------------------------------------------------------------------------ the view's word

    def follow_view(self) -> None:
        """Compare the led partitions with the view; call it after each change of its version."""
        if self._shards is None or self._is_looking or self._is_closed:
            return
        if self._compared_version != self._view.version:
            self._is_looking = True
            self._host.spawn(self._follow_view(), "compare leaders with the view")

    async def _follow_view(self) -> None:
        while self._compared_version != self._view.version:
            places = self._places_changed_since(self._compared_version)
            self._compared_version = self._view.version
            came = 0
            # Coordinators' partitions first: they are served only once they are in segments.
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
        """Return the places that may have another leader; ``shown`` then compares their leaders."""
        changed = None if version is None else self._view.changed_since(version)
        if changed is None:
            return [*self._places.values()]
        return [self._places[each] for each in changed if each in self._places]

    def _compare(self, place: _Place) -> bool:
        """Apply the view's leader of a partition; return whether it is newly this broker."""
        leader = self._view.leader_of(place.partition.partition_id)
        if leader.node_id != self._view.node_id:
            if leader.epoch >= place.epoch:  # An older epoch is out of date.
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
        """See ``LogKeeper``. Pending ``on_released`` callbacks of the partition run."""
        place = self._places.pop(partition.partition_id)
        place.is_there = False
        place.note_damage("")
        log = place.log
        if log is not None:
            place.log = None
            self._logs.delete(partition.partition_id)
            self._on_log_removed(log)
        place.notify_released()

    def release(self, partition_id: int, on_released: Callable[[], None]) -> None:
        """Release a partition that is to be moved, once all appends to it are durable.

        ``on_released`` is called then, or at once if the partition is not led here. After it this
        broker appends to the partition only if it leads it again, in a later epoch.
        """
        place = self._places.get(partition_id)
        if place is None or place.state is State.AWAY:
            on_released()
            return
        place.on_released.append(on_released)
        self._happens(place, Event.RELEASED)

    # ----------------------------------------------------------------------------- the store's word

    def forgotten(self, logs: Sequence[PartitionLog], moved: frozenset[int]) -> None:
        """Handle logs that the store has forgotten; see ``StoreCallbacks``."""
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
        """Record the refused batches, so that later batches of their producers wait for them."""
        now_s = self._host.clock.monotonic()
        for batch in taken_back(log):
            partition.note_refused(*batch, now_s)

    def session_lost(self) -> None:
        """Release all partitions until the view names this broker in later epochs."""
        for place in self._places.values():
            if place.state is State.READING:  # The store forgets the logs of all others.
                self._happens(place, Event.TAKEN)

    def reload(self, log: PartitionLog) -> None:
        """Drop a log whose files are damaged, and load its durable records again.

        A log that is being released is left alone.
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
            self._release_log(place, place.log)
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
            place.notify_released()

    def _happens_later(self, place: _Place, steps: int, event: Event) -> None:
        """Handle an event unless the partition's state has changed since ``steps``."""
        if place.is_still_at(steps):
            self._happens(place, event)

    async def _bring(self, place: _Place, steps: int) -> None:
        """Read a log, and open it unless its partition's state has changed by then."""
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
        # A broker that ended here would pass the damage to the next leader, until no broker is
        # left. During the pause neither the error nor the bytes read before it stay in memory.
        await self._bring_again(place, steps, damage)

    async def _bring_again(self, place: _Place, steps: int, damage: str) -> None:
        """Log the damage of a log if it is new, and read the log again after a pause."""
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
        """Return whether the load that started at ``steps`` is obsolete; on any thread."""
        return self._is_closed or not place.is_still_at(steps)

    async def _loaded_where_it_fits(
        self, spec: PartitionSpec, is_over: Callable[[], bool]
    ) -> _Loaded:
        """Load a log as ``_loaded`` does, again after a pause while the disk has no space for it.

        Retries are for one log at a time: of two that do not fit together one may.
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
        """Load a log on one of the loader threads; raises what ``reading`` does.

        Raises LedSince soon after ``is_over`` returns true: other logs wait for the threads.
        """
        threads, long, load = self._threads, None, partial(self._load, spec, is_over)
        while True:
            try:
                return await threads.run(partial(load, long))
            except LongLog as found:
                long = found.reading._replace(is_local=spec.topic in INTERNAL)
            require_wanted(spec, is_over)
            threads = self._long_threads

    def _load(
        self, spec: PartitionSpec, is_over: Callable[[], bool], long: LongReading | None
    ) -> _Loaded:
        """Read a log and prepare all of its state, on a thread."""
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
        """Free the memory and the files of a log that is not needed any more."""
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
        # It runs after the log's writes, or after they were cancelled with the log's removal.
        self._logs.journal.add_operation(memory.close)
        log.cleaning.awaits_replay = partition.topic.is_internal
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
        """Refuse appends, and wait until the log's appends are durable or refused."""
        assert place.log is not None
        place.log.close()
        group = self._logs.journal.newest_group()
        drained = partial(self._happens_later, place, place.steps, Event.DRAINED)
        if group is None or _is_settled(place.log):
            drained()
        else:
            group.add_waiter(Settled(drained))

    def _release_log(self, place: _Place, log: PartitionLog) -> None:
        """Stop serving a partition: it is now led elsewhere, or loaded again."""
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
        """Return an event for the time when all appends to a log are durable or refused.

        Returns ``None`` if they are already.
        """
        group = self._logs.journal.newest_group()
        if group is None or _is_settled(log):
            return None
        over = asyncio.Event()
        group.add_waiter(Settled(over.set))
        return over


def _is_settled(log: PartitionLog) -> bool:
    """Return whether no append to a log is still to become durable."""
    return log.next_offset == log.high_watermark and not log.awaits_log_start


class _Loaded(NamedTuple):
    """A log that is ready."""

    log: PartitionLog
    writes: CommitGroup
    memory: contextlib.ExitStack
    """Closed once the log is in segments."""


class _Place:
    """The state of one partition on this broker."""

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
        """The reason why the last attempt to read the log failed, or an empty string."""
        self.steps = 0
        """The number of state changes so far; work in progress compares it to detect a change."""
        self.came_ns = 0
        """The time, by ``counter_ns``, at which reading the log started."""
        self.epoch = -1
        """The latest leader epoch in which the partition is, or was, led here."""
        self.log: PartitionLog | None = None
        self.loaded: _Loaded | None = None
        """A log that was read and is not open yet."""
        self.former: asyncio.Event | None = None
        """Set once all appends to the previous log are durable or refused."""
        self.on_released: list[Callable[[], None]] = []

    def note_damage(self, damage: str) -> None:
        """Record the reason why the log cannot be read, or an empty string if it can."""
        self.damage = damage
        self.partition.is_unreadable = bool(damage)

    def is_still_at(self, steps: int) -> bool:
        """Return whether the partition exists and its state has not changed since ``steps``."""
        return self.is_there and self.steps == steps

    def notify_released(self) -> None:
        """Call the callbacks that wait for the partition's release."""
        waiting, self.on_released = self.on_released, []
        for on_released in waiting:
            on_released()
