"""The internal topic of one coordinator: its partitions, their state machines, what is appended.

Rules of this file:

* One state machine for each partition of the topic; a key (group, transactional id) belongs to the
  partition that Kafka's hash of it names.
* A decision is one batch. It is refused before anything has changed, or appended whole; when the
  state moves is for the runner to say (``durable_runner.py``, ``appended_runner.py``).
* At a start the topic is read for a moment before clients come, and if that is not enough in the
  background, while the keys of the partitions that are not read yet are answered
  COORDINATOR_LOAD_IN_PROGRESS.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple

from barnabas.broker.api.storage_errors import coordinator_error_of
from barnabas.broker.coordination.decision_batch import decision_batch
from barnabas.broker.coordination.key_hash import java_hash
from barnabas.broker.coordination.replay import Replay
from barnabas.broker.coordination.shard import MachineT, Shard
from barnabas.broker.runtime import failpoints
from barnabas.coordinator.decision import Decision, Effect, Now
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.storage.appended import Appended
from barnabas.storage.errors import Rejected

if TYPE_CHECKING:
    from barnabas.broker.config.broker_config import BrokerConfig
    from barnabas.broker.runtime.host import Host
    from barnabas.broker.topics.catalogue import Catalogue
    from barnabas.broker.topics.topic import Topic

logger = logging.getLogger(__name__)

LOAD_BEFORE_READY_MS: Final = 200
LOAD_TURN_MS: Final = 5
"""How long the loop is held for replaying: before clients come, and in one turn after that."""

Admit = Callable[[], ErrorCode]
"""What must be true at the very moment of an append, with nothing in between (P1)."""


class TopicSettings(NamedTuple):
    """How an internal topic is made."""

    partition_count: int
    segment_bytes: int
    compression_type: str


class CoordinatorLog(Generic[MachineT]):
    """The topic of one kind of coordinator, as long as it is the one that was replayed."""

    def __init__(
        self,
        topic_name: str,
        make_machine: Callable[[], MachineT],
        settings: Callable[[BrokerConfig], TopicSettings],
        host: Host,
        catalogue: Catalogue,
        *,
        on_loaded: Callable[[tuple[Effect, ...]], None],
        on_gone: Callable[[], None],
        latest_only: bool = False,
    ) -> None:
        """``on_loaded`` gets what is due in a partition that was read.

        ``on_gone`` is called when the topic was deleted. ``latest_only``: see ``Replay``.
        """
        self.topic_name = topic_name
        self._make_machine = make_machine
        self._settings = settings
        self._host = host
        self._clock = host.clock
        self._catalogue = catalogue
        self._on_loaded = on_loaded
        self._on_gone = on_gone
        self._latest_only = latest_only
        # What one decision may write; the journal takes no more in one piece.
        self._batch_max_bytes = host.config.journal_file_bytes // 2
        self._topic: Topic | None = None
        self.shards: list[Shard[MachineT]] = []
        self.replay = self._replay_of([])
        self.replayed = asyncio.Event()
        """Whether a start has nothing left to read: what is not loaded then never will be."""

    # --------------------------------------------------------------------------------------- start

    def open(self) -> None:
        """Replay the topic, if there is one; call it before clients come."""
        topic = self._catalogue.topic(self.topic_name)
        if topic is None:
            self.replayed.set()
            return
        self._topic = topic
        self.shards = [Shard(each.log_here(), self._make_machine()) for each in topic.partitions]
        self.replayed.clear()
        self.replay = self._replay_of(self.shards)
        steps = self.replay.run()
        if self._goes_on_after(LOAD_BEFORE_READY_MS, steps):
            self._host.spawn(self._load_the_rest(topic, steps), f"load {self.topic_name}")
        else:
            self.replayed.set()

    def _replay_of(self, shards: list[Shard[MachineT]]) -> Replay[MachineT]:
        return Replay(
            self.topic_name,
            shards,
            self._make_machine,
            self._shard_loaded,
            latest_only=self._latest_only,
        )

    def _shard_loaded(self, shard: Shard[MachineT]) -> None:
        self._on_loaded(shard.machine.begin(self.now()))

    async def _load_the_rest(self, topic: Topic, steps: Iterator[None]) -> None:
        logger.info("loading %s", self.describe_replay())
        while self._topic is topic and self._goes_on_after(LOAD_TURN_MS, steps):  # noqa: ASYNC110
            await asyncio.sleep(0)
        self.replayed.set()
        logger.info("loaded topic=%s records=%d", self.topic_name, self.replay.records)

    def _goes_on_after(self, turn_ms: int, steps: Iterator[None]) -> bool:
        """Load for a while; False once everything is loaded."""
        end = self._clock.monotonic() + turn_ms / 1000
        return any(self._clock.monotonic() >= end for _ in steps)

    def describe_replay(self) -> str:
        """How far a start has come with the topic."""
        done = f"{self.replay.partitions} of {len(self.shards)} partitions"
        return f"{self.topic_name}: {done}, {self.replay.records} records replayed"

    @property
    def unreadable(self) -> list[str]:
        """The partitions that could not be loaded: their keys are refused until the next start."""
        if not self.replayed.is_set():
            return []
        logs = [shard.log for shard in self.shards if not shard.is_loaded]
        return [f"{log.topic}-{log.partition}" for log in logs]

    @property
    def is_loading(self) -> bool:
        """Whether some partition is not replayed yet."""
        return not all(shard.is_loaded for shard in self.shards)

    # ----------------------------------------------------------------------- the topic and its keys

    async def ensure(self) -> None:
        """Make the internal topic unless it is there; raises KafkaError."""
        if self._catalogue.topic(self.topic_name) is not None:
            return
        settings = self._settings(self._host.config)
        configs = {
            "cleanup.policy": "compact",
            "compression.type": settings.compression_type,
            "segment.bytes": str(settings.segment_bytes),
        }
        try:
            await self._catalogue.create_topic(self.topic_name, settings.partition_count, configs)
        except KafkaError as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise

    def is_coordinator(self) -> bool:
        """Whether keys are served here: the internal topic exists, and is the one replayed."""
        topic = self._catalogue.topic(self.topic_name)
        if topic is not self._topic:
            self._forget()
            if topic is not None and not any(log.next_offset for _, log in topic.partitions_here()):
                self.open()  # Made just now.
        return self._topic is not None

    def _forget(self) -> None:
        """Drop everything: the topic was deleted, and all its keys with it."""
        gone, self.shards = self.shards, []
        self._topic = None
        for shard in gone:
            shard.is_gone = True
        self._on_gone()

    def refusal(self, key: str) -> ErrorCode:
        """Why commands for ``key`` cannot be taken now; NONE if they can."""
        if not self.is_coordinator():
            return ErrorCode.NOT_COORDINATOR
        if not self.shards[self.partition_of(key)].is_loaded:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return ErrorCode.NONE

    def partition_id_of(self, key: str) -> int:
        """The id of the partition that ``key`` falls to, whoever leads it; ``ensure`` first."""
        topic = self._catalogue.topics[self.topic_name]
        return topic.partitions[java_hash(key) % len(topic.partitions)].partition_id

    def partition_of(self, key: str) -> int:
        """The partition whose machine knows ``key``; ask ``refusal`` first."""
        return java_hash(key) % len(self.shards)

    def shard_of(self, key: str) -> Shard[MachineT]:
        """The partition that ``key`` belongs to; ask ``refusal`` first."""
        return self.shards[self.partition_of(key)]

    @property
    def machines(self) -> list[MachineT]:
        """All machines, to read from."""
        return [shard.machine for shard in self.shards]

    # ----------------------------------------------------------------------------------- decisions

    def now(self) -> Now:
        """The time to decide at."""
        return Now(self._clock.now_ms(), int(self._clock.monotonic() * 1000))

    def decide(
        self,
        shard: Shard[MachineT],
        key: str,
        command: Any,  # noqa: ANN401
        admit: Admit | None = None,
    ) -> tuple[Decision, Appended | None]:
        """Decide and append the records; raises KafkaError, and then nothing has changed."""
        try:
            now = self.now()
            decision = shard.machine.decide(command, now)
            batch = decision_batch(decision, now.wall_ms) if decision.records else None
        except Exception as error:  # A bug with one key must not stop the others.
            raise self.failed(key, error) from error
        if batch is None:
            return decision, None
        return decision, self.append(shard, key, command, batch, admit)

    def append(
        self,
        shard: Shard[MachineT],
        key: str,
        command: Any,  # noqa: ANN401
        batch: memoryview,
        admit: Admit | None = None,
    ) -> Appended:
        """Append a decision's batch; raises KafkaError, and then nothing has changed."""
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

    def refuse_too_large(self, key: str, size_bytes: int) -> None:
        """Raise what Apache Kafka answers where its coordinator's batch is too large."""
        if size_bytes > self._batch_max_bytes:
            logger.warning(
                "decision too large topic=%s key=%s bytes=%d", self.topic_name, key, size_bytes
            )
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)

    def failed(self, key: str, error: Exception) -> KafkaError:
        """Log a mistake in deciding; returns what its command is answered."""
        logger.error("command failed topic=%s key=%s", self.topic_name, key, exc_info=error)
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
