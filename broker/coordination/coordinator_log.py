"""The internal topic of one coordinator: its partitions, their state machines, and appends to it.

Rules of this file:

* One state machine for each partition of the topic; a key (group, transactional id) belongs to the
  partition that Kafka's hash of it names.
* A decision is one batch. It is refused before anything has changed, or appended whole; the state
  moves then (``runner.py``).
* Partitions are gained and lost one by one, as leadership changes. A start gains all whose log is
  here; deletion of the topic loses all of them. Keys of partitions that other brokers lead get
  NOT_COORDINATOR.
* At a start the topic is read for a moment before clients are accepted. The rest, and partitions
  gained later, are read in the background. Keys of partitions that are not read yet get
  COORDINATOR_LOAD_IN_PROGRESS, as do keys of partitions whose log is on its way here: clients are
  directed to this broker already, and must repeat their requests.
* A lost partition is forgotten as a whole, with all requests that wait for it. When it comes back,
  only its log is read.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple

from barnabas.broker.api.storage_errors import coordinator_error_of
from barnabas.broker.api.waiting import Durability
from barnabas.broker.coordination.replay import Replay
from barnabas.broker.coordination.shard import (
    MachineT,
    Shard,
    batch_in_slices,
    decision_batch,
    java_hash,
)
from barnabas.broker.metadata.changes import REPEATED_MS
from barnabas.broker.runtime import failpoints
from barnabas.broker.runtime.turns import turns_of_loop
from barnabas.coordinator.decision import Decision, Effect, LongDecision, Now
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.records import NO_LEADER_EPOCH
from barnabas.storage.errors import Rejected
from barnabas.storage.journal.appended import Appended
from barnabas.storage.journal.refusal import Refusal

if TYPE_CHECKING:
    from barnabas.broker.config.broker_config import BrokerConfig
    from barnabas.broker.metadata.catalogue import Catalogue
    from barnabas.broker.metadata.topic import Partition, Topic
    from barnabas.broker.runtime.host import Host
    from barnabas.storage.journal.journal import Waiter
    from barnabas.storage.log.partition_log import PartitionLog

logger = logging.getLogger(__name__)

LOAD_BEFORE_READY_MS: Final = 200
"""Maximum time for which replaying blocks the loop before clients are accepted."""

Admit = Callable[[], ErrorCode]
"""A condition that must hold at the very moment of an append (P1)."""


class TopicSettings(NamedTuple):
    """Settings with which an internal topic is created."""

    partition_count: int
    segment_bytes: int
    compression_type: str


class CoordinatorLog(Generic[MachineT]):
    """The topic of one kind of coordinator, and its partitions on this broker."""

    def __init__(
        self,
        topic_name: str,
        make_machine: Callable[[], MachineT],
        settings: Callable[[BrokerConfig], TopicSettings],
        host: Host,
        catalogue: Catalogue,
        *,
        on_loaded: Callable[[Shard[MachineT], tuple[Effect, ...]], None],
        on_lost: Callable[[Shard[MachineT]], None],
        latest_only: bool = False,
    ) -> None:
        """``on_loaded`` gets the effects of a partition that was read.

        ``on_lost`` is called with each partition that was lost, to forget all of its keys and to
        complete the requests that wait for them. ``latest_only``: see ``Replay``.
        """
        self.topic_name = topic_name
        self._make_machine = make_machine
        self._settings = settings
        self._host = host
        self._clock = host.clock
        self._catalogue = catalogue
        self._on_loaded = on_loaded
        self._on_lost = on_lost
        # What one decision may write; the journal takes no more in one piece.
        self._batch_max_bytes = host.config.journal_file_bytes // 2
        self._topic: Topic | None = None
        self._is_losing_all = False
        self._shards: list[Shard[MachineT] | None] = []
        """The shard of each partition of the topic, or None if it is not here."""
        self.highest_epoch = NO_LEADER_EPOCH
        """The highest leader epoch of any partition that was gained here."""
        self.replay = Replay(topic_name, make_machine, self._shard_loaded, latest_only=latest_only)
        self.replayed = asyncio.Event()
        """Set when all partitions are read: a partition that is not loaded then never will be."""
        self._loads_in_background = False
        self._not_created = ""
        """The logged reason for which the topic could not be created."""

    # ------------------------------------------------------------------------- gained, loaded, lost

    def open(self) -> None:
        """Start to serve every partition led by this broker; call it before clients connect."""
        topic = self._catalogue.topic(self.topic_name)
        if topic is None:
            self.replayed.set()
            return
        if topic is not self._topic:
            self._take_over(topic)
        for partition, log in topic.partitions_here():
            if self._shards[partition.index] is None:
                self._add(partition.index, log)
        end = self._clock.monotonic() + LOAD_BEFORE_READY_MS / 1000
        if self.replay.read_until(lambda: self._clock.monotonic() >= end):
            self._load_in_background()
        else:
            self.replayed.set()

    def gain(self, index: int) -> None:
        """Start to serve a partition that this broker leads: read it in the background.

        The log is as it was opened: nothing of it is on its way to its segments. A partition that
        is here cannot be gained: it has to be lost first, and is then read again.
        """
        topic = self._catalogue.topic(self.topic_name)
        assert topic is not None, self.topic_name
        if topic is not self._topic:
            self._take_over(topic)
        log = topic.partitions[index].log
        assert log is not None, f"{self.topic_name}-{index} has no log here"
        self._add(index, log)
        self._load_in_background()

    def lose(self, index: int) -> None:
        """Forget a partition that this broker no longer leads, and fail its waiting requests."""
        shard = self.shard_at(index)
        assert shard is not None, f"{self.topic_name}-{index} is not here"
        self._shards[index] = None
        shard.is_gone = True
        self._lost(shard)
        self._host.flush_answers()

    def _take_over(self, topic: Topic) -> None:
        """Start to coordinate a topic that is new on this broker."""
        self._lose_all()
        self._topic = topic
        self._shards = [None] * len(topic.partitions)

    def _lose_all(self) -> None:
        """Forget all partitions of a deleted topic; nothing is served until this is complete."""
        gone, self._shards = self.shards, []
        self._topic = None
        for shard in gone:
            shard.is_gone = True
        self._is_losing_all = True
        try:
            for shard in gone:
                self._lost(shard)
        finally:
            self._is_losing_all = False

    def _lost(self, shard: Shard[MachineT]) -> None:
        shard.machine.forget()
        self._on_lost(shard)

    def _add(self, index: int, log: PartitionLog) -> None:
        assert self._shards[index] is None, f"{log} was gained before"
        assert not log.unflushed, f"{log} has appends that are not in its segments yet"
        shard = Shard(index, len(self._shards), log, self._make_machine())
        self._shards[index] = shard
        self.highest_epoch = max(self.highest_epoch, log.leader_epoch)
        self.replay.add(shard)
        self.replayed.clear()

    def _shard_loaded(self, shard: Shard[MachineT]) -> None:
        self._on_loaded(shard, shard.machine.begin(self.now()))

    def _load_in_background(self) -> None:
        if not self._loads_in_background:
            self._loads_in_background = True
            self._host.spawn(self._load_the_rest(), f"load {self.topic_name}")

    async def _load_the_rest(self) -> None:
        logger.info("loading %s", self.describe_replay())
        turns = turns_of_loop()  # Looked up once: each batch asks.
        while self.replay.read_until(lambda: not turns.is_left):
            await turns.next_slice()
        self._loads_in_background = False
        self.replayed.set()
        logger.info("loaded topic=%s records=%d", self.topic_name, self.replay.records)

    def describe_replay(self) -> str:
        """Return a description of the progress of loading."""
        done = f"{self.replay.partitions} of {self.replay.total} partitions"
        return f"{self.topic_name}: {done}, {self.replay.records} records replayed"

    @property
    def unreadable(self) -> list[str]:
        """The partitions that could not be loaded: their keys are refused until the next start."""
        logs = [
            shard.log
            for shard in self.shards
            if not shard.is_loaded and not self.replay.is_to_read(shard)
        ]
        return [f"{log.topic}-{log.partition}" for log in logs]

    @property
    def is_loading(self) -> bool:
        """Whether a partition of this broker is not replayed yet."""
        return not all(shard.is_loaded for shard in self.shards)

    # ----------------------------------------------------------------------- the topic and its keys

    async def ensure(self) -> None:
        """Create the internal topic unless it exists; raises KafkaError.

        Brokers that need it at once all find the one that was created first, with its partitions.
        The wait for an unavailable MetaStore is short: clients repeat their requests.
        """
        if self._catalogue.topic(self.topic_name) is not None:
            return
        settings = self._settings(self._host.config)
        configs = {
            "cleanup.policy": "compact",
            "compression.type": settings.compression_type,
            "segment.bytes": str(settings.segment_bytes),
        }
        until_s = self._catalogue.changes.time_in(REPEATED_MS)
        try:
            await self._catalogue.ensure_topic(
                self.topic_name, settings.partition_count, configs, until_s
            )
        except KafkaError as error:
            if str(error) != self._not_created:  # Clients repeat their requests.
                self._not_created = str(error)
                logger.warning("topic not created name=%s reason=%s", self.topic_name, error)
            raise

    def is_coordinator(self) -> bool:
        """Return whether the internal topic exists with the ID that this broker knows.

        For a new topic, gain all partitions whose log is on this broker.
        """
        topic = self._catalogue.topic(self.topic_name)
        if topic is not self._topic and not self._is_losing_all:
            self._lose_all()
            if topic is not None and not any(log.next_offset for _, log in topic.partitions_here()):
                self.open()
        return self._topic is not None

    def refusal(self, key: str) -> ErrorCode:
        """Return the error code for commands on ``key``, or NONE if this broker accepts them."""
        found = self.serving(key)
        return found if isinstance(found, ErrorCode) else ErrorCode.NONE

    def serving(self, key: str) -> Shard[MachineT] | ErrorCode:
        """Return the partition that takes commands on ``key``, or the error code for them."""
        shard = self.shard_here(key) if self.is_coordinator() else None
        if shard is None:
            partition = self._partition(key)
            is_coming = (
                partition is not None and partition.is_coming and not partition.is_unreadable
            )
            loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            return loading if is_coming else ErrorCode.NOT_COORDINATOR
        return shard if shard.is_loaded else ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    def partition_id_of(self, key: str) -> int | None:
        """Return the ID of the partition of ``key`` under any leader, or None before the topic
        exists.
        """
        partition = self._partition(key)
        return None if partition is None else partition.partition_id

    def _partition(self, key: str) -> Partition | None:
        topic = self._catalogue.topic(self.topic_name)
        if topic is None:
            return None
        return topic.partitions[java_hash(key) % len(topic.partitions)]

    def partition_of(self, key: str) -> int:
        """Return the partition of ``key``, regardless of its leader; call ``refusal`` first."""
        return java_hash(key) % len(self._shards)

    def shard_of(self, key: str) -> Shard[MachineT]:
        """Return the partition whose machine has ``key``; call ``refusal`` first."""
        shard = self.shard_here(key)
        assert shard is not None, f"{self.topic_name} is not led here for {key}"
        return shard

    def shard_here(self, key: str) -> Shard[MachineT] | None:
        """Return the partition whose machine has ``key``, or None without leadership here."""
        return self._shards[self.partition_of(key)] if self._shards else None

    def shard_at(self, index: int) -> Shard[MachineT] | None:
        """Return a partition by its index, or None if this broker does not lead it."""
        return self._shards[index] if 0 <= index < len(self._shards) else None

    def is_here(self, shard: Shard[MachineT]) -> bool:
        """Return whether a partition is still served: work for it may continue."""
        return self.is_coordinator() and not shard.is_gone

    @property
    def shards(self) -> list[Shard[MachineT]]:
        """Partitions that this broker serves."""
        return [shard for shard in self._shards if shard is not None]

    @property
    def machines(self) -> list[MachineT]:
        """Machines of all served partitions, for reading."""
        return [shard.machine for shard in self.shards]

    # ----------------------------------------------------------------------------------- decisions

    def now(self) -> Now:
        """Return the present time for a decision."""
        return Now(self._clock.now_ms(), int(self._clock.monotonic() * 1000))

    def decide(
        self,
        shard: Shard[MachineT],
        key: str,
        command: Any,  # noqa: ANN401
        admit: Admit | None = None,
    ) -> tuple[Decision, Appended | None]:
        """Decide and append the records; raises KafkaError without a change."""
        try:
            now = self.now()
            decision = shard.machine.decide(command, now)
            batch = decision_batch(decision, now.wall_ms) if decision.records else None
        except Exception as error:  # A bug with one key must not stop the others.
            raise self.failed(key, error) from error
        if batch is None:
            return decision, None
        return decision, self.append(shard, key, command, batch, admit)

    def decide_in_slices(
        self, key: str, steps: Generator[None, None, LongDecision]
    ) -> Generator[None, None, tuple[LongDecision, memoryview | None]]:
        """Take all steps and return the decision with its batch, if it has records.

        Raises KafkaError, and then nothing has changed.
        """
        try:
            decision = yield from steps
        except Exception as error:
            raise self.failed(key, error) from error
        now_ms = self.now().wall_ms
        batch = yield from batch_in_slices(decision, now_ms, partial(self.refuse_too_large, key))
        return decision, batch

    def append(
        self,
        shard: Shard[MachineT],
        key: str,
        command: Any,  # noqa: ANN401
        batch: memoryview,
        admit: Admit | None = None,
    ) -> Appended:
        """Append a decision's batch; raises KafkaError without a change."""
        self.refuse_too_large(key, len(batch))
        if admit is not None and (code := admit()):
            raise KafkaError(code)
        try:
            appended = shard.log.append_records(batch)
        except Rejected as refused:
            raise KafkaError(coordinator_error_of(refused)) from refused
        if failpoints.ARMED is not None:
            failpoints.ARMED.reached(type(command).__name__, self._catalogue.journal)
        return appended

    def is_durable(self, shard: Shard[MachineT]) -> bool:
        """Return whether all that a partition's log holds is durable."""
        log = shard.log
        return log.high_watermark == log.next_offset and not log.closed

    def when_durable(self, shard: Shard[MachineT], waiter: Waiter) -> None:
        """Notify ``waiter`` when the present content of a partition's log is durable or refused."""
        log = shard.log
        if self.is_durable(shard):
            waiter.durable()
            return
        group = None if log.closed else self._catalogue.journal.newest_group_of(log)
        if group is None:  # Refused, or deleted: its keys are about to be lost.
            waiter.refused(Refusal(()))
        else:
            group.add_waiter(waiter)

    def when_all_durable(self, waiter: Waiter) -> None:
        """Notify ``waiter`` when all appended batches are durable or refused."""
        group = self._catalogue.journal.newest_group()
        if group is None:
            waiter.durable()
        else:
            group.add_waiter(waiter)

    @property
    def refusals(self) -> int:
        """Number of refused batches of these logs."""
        return self._catalogue.journal.refusals

    async def durable(self, code: ErrorCode, refusals: int | None) -> None:
        """Wait until all appended batches are durable; raises KafkaError if one was refused.

        ``code`` is the error code. ``refusals``: their number when the caller started to read, or
        None if it has not let others run since; an append that was refused meanwhile is lost.
        """
        if refusals is not None and refusals != self.refusals:
            raise KafkaError(code)
        durable: asyncio.Future[None] = self._host.loop.create_future()
        self.when_all_durable(Durability(durable, code))
        try:
            await durable
        finally:
            del durable  # The traceback of its exception has this frame.

    def refuse_too_large(self, key: str, size_bytes: int) -> None:
        """Raise the error that Apache Kafka returns for a coordinator's batch that is too large."""
        if size_bytes > self._batch_max_bytes:
            logger.warning(
                "decision too large topic=%s key=%s bytes=%d", self.topic_name, key, size_bytes
            )
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)

    def failed(self, key: str, error: Exception) -> KafkaError:
        """Log an internal error of a decision; return the error for its command."""
        logger.error("command failed topic=%s key=%s", self.topic_name, key, exc_info=error)
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
