"""Topics, partitions and configurations as they are now: the MetaStore's image in memory.

Rules of this file:

* The MetaStore is the truth. A change is committed there first, then made on disk, then shown here,
  the last two by the difference that the commit has made (``show``), whichever broker made it.
  Start-up goes by the MetaStore, so a crash between any two of these steps needs no repair of its
  own: a partition without a directory gets one, a directory of a deleted topic is removed.
* A tombstone stays until the removal of its directories is durable (a checkpoint later). So every
  directory we ever made has a row, and one without a row is a reason to stop, not to delete. In a
  cluster directories are copies, and tombstones are not this broker's alone (``tombstones.py``).
* Changes run one at a time and to their end (``changes.py``).
* Readers see a topic either whole or not at all; a topic that is being deleted is gone at once.
* A failure that leaves the image and the MetaStore different stops the process (D9).
"""

from __future__ import annotations

import asyncio
import logging
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, Protocol

from barnabas.broker.cluster.view import ClusterView
from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.config.topic_values import check_topic_configs
from barnabas.broker.metadata.changes import Changes
from barnabas.broker.metadata.configs import ConfigCheck, DynamicConfigs, check_configs
from barnabas.broker.metadata.metastore_calls import MetaStoreCalls
from barnabas.broker.metadata.producer_ids import ProducerIds
from barnabas.broker.metadata.tombstones import Tombstones
from barnabas.broker.metadata.topic import LeasedPartition, Partition, Topic
from barnabas.broker.metadata.topic_names import (
    CLUSTER_METADATA,
    collision_key,
    name_problem,
)
from barnabas.broker.runtime.clock import Clock
from barnabas.broker.runtime.turns import next_turn, turn_over
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.storage.journal.journal import Journal
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.metastore.difference import Difference, GrownTopic
from barnabas.storage.metastore.interface import (
    MetadataImage,
    MetaStore,
    MetaStoreError,
    MetaStoreRefused,
    PartitionRow,
    TopicRow,
)
from barnabas.storage.runtime.chance import random_uuid
from barnabas.storage.store.log_store import LogStore
from barnabas.storage.store.store_parts import PartitionSpec

logger = logging.getLogger(__name__)

PARTITIONS_PER_CHANGE_MAX: Final = 10_000
"""Kafka's limit on the partitions that one change may add."""

LOGS_PER_TURN: Final = 256
"""Logs made or removed before the loop gets a turn; their directories follow on another thread."""


class CollidingName(KafkaError):
    """A topic of another name is in the way; ``other`` is for who may see it."""

    def __init__(self, name: str, other: str) -> None:
        super().__init__(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic '{name}' collides with existing topic: {other}",
        )
        self.other = other


class LogKeeper(Protocol):
    """Who opens and closes logs where partitions come to this broker and go from it."""

    def shown(self, partitions: Sequence[Partition]) -> None:
        """Take note of partitions that readers see from now on, none with a log yet."""

    def deleted(self, partition: Partition) -> None:
        """Delete the log of a partition that readers do not see any more, if it has one here."""


class Catalogue:
    """All topics of this broker, and the changes that may be made to them."""

    def __init__(
        self,
        metastore: MetaStore,
        logs: LogStore,
        view: ClusterView,
        config: BrokerConfig,
        *,
        keeper: LogKeeper | None = None,
        may_serve: Callable[[], bool] | None = None,
        calls: MetaStoreCalls | None = None,
        clock: Clock | None = None,
        on_log_removed: Callable[[PartitionLog], None] = lambda _log: None,
        on_topic_deleted: Callable[[Topic], None] = lambda _topic: None,
        on_config_changed: Callable[[BrokerConfig], None] = lambda _config: None,
        check_config: ConfigCheck = lambda _config, _is_same: None,
        on_fatal: Callable[[BaseException], None] = lambda _error: None,
        on_event: Callable[[str, str, str], None] = lambda _kind, _resource, _words: None,
    ) -> None:
        """Make an empty catalogue; ``load``, then recovery, then ``open`` fill it.

        ``view`` says which partitions have their log here: those that this broker leads. They are
        opened and closed by ``keeper``; None: each stays with this broker, with its log.
        ``may_serve``: whether this broker's lease is valid; None: it needs none.
        ``calls``: how the MetaStore is called while the broker runs; None: on the loop.
        ``clock`` limits how long clients wait for changes; without it, the machine's clock.
        ``config`` is the configuration as it was loaded. ``on_event`` is told what has changed:
        a kind, the resource, and words.
        """
        self._on_event = on_event
        self.topics: dict[str, Topic] = {}
        self.topics_by_id: dict[bytes, Topic] = {}
        self.topics_version = 0
        """Grows whenever a topic comes, goes or gets partitions; begins anew at each start."""
        self.changes = Changes(metastore, on_fatal, calls, clock)
        self.changes.join(self)
        self.configs = DynamicConfigs(
            metastore,
            self.changes,
            config,
            self.topics,
            self.topics_by_id,
            on_config_changed,
            check_config,
            lambda resource, keys: on_event("configured", resource, keys),
        )
        self.producer_ids = ProducerIds(metastore, self.changes)
        self.tombstones = None if keeper is None else Tombstones(metastore, self.changes, view)
        """Those of the cluster; None: there is none."""
        self._ensuring: dict[str, asyncio.Task[None]] = {}
        """The changes under way that somebody needs a topic of, by its name."""
        self._deleted: dict[bytes, int] = {}
        self._image = MetadataImage((), (), {})
        self._metastore = metastore
        self._logs = logs
        self.view = view
        self._keeper = keeper
        self._may_serve = may_serve
        self._collisions: dict[str, str] = {}
        self._on_log_removed = on_log_removed
        self._on_topic_deleted = on_topic_deleted
        self._on_fatal = on_fatal

    # ------------------------------------------------------------------------------------- reading

    def topic(self, name: str) -> Topic | None:
        """Return a topic by name."""
        return self.topics.get(name)

    def topic_by_id(self, topic_id: bytes) -> Topic | None:
        """Return a topic by its 16-byte id."""
        return self.topics_by_id.get(topic_id)

    def partition(self, name: str, index: int) -> Partition | None:
        """Return one partition of a topic by name and index."""
        topic = self.topics.get(name)
        if topic is None or not 0 <= index < len(topic.partitions):
            return None
        return topic.partitions[index]

    @property
    def cluster_id(self) -> str:
        """Return the id of the cluster whose topics these are."""
        return self._metastore.identity.cluster_id

    @property
    def journal(self) -> Journal:
        """The journal behind all logs."""
        return self._logs.journal

    # ------------------------------------------------------------------------------- start and stop

    def load(self, image: MetadataImage) -> list[PartitionSpec]:
        """Take over topics and settings; return the partitions that recovery has to open.

        ``image`` is what the MetaStore holds. Raises ConfigError when stored settings are no
        longer acceptable.
        """
        self.changes.load(image)
        self.configs.load(image)
        self.producer_ids.load(image)
        self._image = image
        for row in image.topics:
            check_topic_configs(row.configs, self.configs.broker_config)
        specs = []
        for row in image.topics:
            settings = self.configs.settings_of(row.configs)
            specs += [
                PartitionSpec(each.partition_id, row.name, each.index, row.topic_id, settings)
                for each in row.partitions
                if self._is_led_here(each)
            ]
        return specs

    @property
    def deleted_directories(self) -> set[str]:
        """Directories of deleted topics that ``load`` found and recovery may have to remove."""
        return {
            f"{row.name}-{partition.index}"
            for row in self._image.deleted
            for partition in row.partitions
        }

    @property
    def deleted_partition_ids(self) -> set[int]:
        """Ids of the partitions that these directories are of."""
        return {
            partition.partition_id for row in self._image.deleted for partition in row.partitions
        }

    def open(self) -> None:
        """Show the topics that ``load`` found, their logs being open now."""
        for row in self._image.topics:
            topic = self._topic_of(row)
            for partition in row.partitions:
                is_here = self._is_led_here(partition)
                log = self._logs.get(partition.partition_id) if is_here else None
                topic.partitions.append(self._new_partition(topic, partition, log))
            self._add(topic)
            self._tell_shown(topic.partitions)
        for row in self._image.deleted:
            self._note_deleted(row.topic_id)
        self._image = MetadataImage((), (), {})

    def forget_deleted(self) -> None:
        """Remove the tombstones whose directories are durably gone; call it after a checkpoint.

        In a cluster it changes nothing.
        What was deleted while that checkpoint was under way has to wait for the next one.
        """
        complete = self._logs.generation
        gone = [topic_id for topic_id, begun in self._deleted.items() if begun < complete]
        try:
            for topic_id in gone:
                self._metastore.forget_topic(topic_id)
                del self._deleted[topic_id]
        except MetaStoreRefused as error:
            # Tombstones cost little; the next checkpoint tries again.
            logger.warning("tombstones kept count=%d reason=%s", len(self._deleted), error)
        except MetaStoreError as error:
            self._on_fatal(error)

    # --------------------------------------------------------------------------------------- topics

    def check_new_name(self, name: str) -> None:
        """Raise the KafkaError that creating a topic of this name would meet now."""
        problem = name_problem(name)
        if problem is not None:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
        if name == CLUSTER_METADATA:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"Creation of internal topic {name} is prohibited."
            )
        if name in self.topics:
            raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        other = self._collisions.get(collision_key(name))
        if other is not None:
            raise CollidingName(name, other)

    def check_new_topic(
        self, name: str, partition_count: int, configs: Mapping[str, str | None]
    ) -> None:
        """Raise the KafkaError that creating this topic would meet now."""
        self.check_new_name(name)
        if partition_count < 1:
            raise KafkaError(
                ErrorCode.INVALID_PARTITIONS,
                "Number of partitions was set to an invalid non-positive value.",
            )
        _check_number_added(partition_count)
        check_configs(configs, self.configs.broker_config)

    async def create_topic(
        self,
        name: str,
        partition_count: int,
        configs: Mapping[str, str | None],
        until_s: float | None = None,
    ) -> Topic:
        """Create a topic and its logs; raises KafkaError when it may not or cannot be.

        ``until_s``, here and below: how long the caller waits, see ``Changes.run``.
        """
        return await self.changes.run(
            lambda: self._create_topic(name, partition_count, configs), until_s
        )

    async def _create_topic(
        self, name: str, partition_count: int, configs: Mapping[str, str | None]
    ) -> Topic:
        self.check_new_topic(name, partition_count, configs)
        self._check_space()
        given = {key: text for key, text in configs.items() if text is not None}
        row = await self.changes.commit(
            partial(self._metastore.create_topic, name, new_topic_id(), partition_count, given)
        )
        await self.changes.show(Difference(topics_created=(row,)))
        return self.topics_by_id[row.topic_id]

    async def ensure_topic(
        self,
        name: str,
        partition_count: int,
        configs: Mapping[str, str | None],
        until_s: float,
    ) -> None:
        """Create a topic unless it is there, be it that another broker has made it just now.

        It is shown when this returns; raises KafkaError as ``create_topic``. However many ask for
        it, there is one change for all.
        """
        if name in self.topics:
            return
        change = self._ensuring.get(name)
        if change is None:
            self.changes.admit(until_s)
            change = self.changes.start(lambda: self._ensure_topic(name, partition_count, configs))
            self._ensuring[name] = change
            change.add_done_callback(lambda _done: self._ensuring.pop(name))
        await self.changes.outcome_of(change, until_s)

    async def _ensure_topic(
        self, name: str, partition_count: int, configs: Mapping[str, str | None]
    ) -> None:
        if name in self.topics:
            return
        await self._create_topic(name, partition_count, configs)

    async def delete_topic(self, topic_id: bytes, until_s: float | None = None) -> None:
        """Delete a topic and its logs; raises KafkaError UNKNOWN_TOPIC_ID."""
        await self.changes.run(lambda: self._delete_topic(topic_id), until_s)

    async def _delete_topic(self, topic_id: bytes) -> None:
        if topic_id not in self.topics_by_id:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
        await self.changes.commit_regardless(partial(self._metastore.delete_topic, topic_id))
        await self.changes.show(Difference(topics_deleted=(topic_id,)))

    def check_new_partitions(self, name: str, total_count: int) -> int:
        """Return how many partitions a topic would gain; raises KafkaError when it may not."""
        topic = self.topics.get(name)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if topic.is_internal:
            # Stricter than Kafka, where coordinators then look for keys where they are not.
            raise KafkaError(
                ErrorCode.INVALID_PARTITIONS,
                f"The number of partitions of the internal topic {name} cannot be changed.",
            )
        existing = len(topic.partitions)
        if total_count == existing:
            raise KafkaError(
                ErrorCode.INVALID_PARTITIONS, f"Topic already has {existing} partition(s)."
            )
        if total_count < existing:
            raise KafkaError(
                ErrorCode.INVALID_PARTITIONS,
                f"The topic {name} currently has {existing} partition(s); "
                f"{total_count} would not be an increase.",
            )
        _check_number_added(total_count - existing)
        return total_count - existing

    async def create_partitions(
        self, name: str, total_count: int, until_s: float | None = None
    ) -> None:
        """Grow a topic to ``total_count`` partitions; raises KafkaError."""
        await self.changes.run(lambda: self._create_partitions(name, total_count), until_s)

    async def _create_partitions(self, name: str, total_count: int) -> None:
        self.check_new_partitions(name, total_count)
        topic = self.topics[name]
        self._check_space()
        rows = await self.changes.commit(
            partial(self._metastore.create_partitions, topic.topic_id, total_count)
        )
        await self.changes.show(Difference(topics_grown=(GrownTopic(topic.topic_id, rows),)))

    async def catch_up(self, until_s: float | None = None) -> None:
        """Show all that is committed when this is called; raises KafkaError.

        What is not shown then does not exist: until then it may only not be known here yet.
        """
        await self.changes.run(self.changes.catch_up, until_s)

    # ------------------------------------------------------------------------ called by ``Changes``

    async def show(self, difference: Difference) -> None:
        """Delete, configure, create and grow topics here: on the disk, then for readers."""
        for number, topic_id in enumerate(difference.topics_deleted):
            await _turn_between(number)
            await self._show_deleted(self.topics_by_id[topic_id])
        self.configs.show(difference)
        for number, row in enumerate(difference.topics_created):
            await _turn_between(number)
            await self._show_created(row)
        for number, grown in enumerate(difference.topics_grown):
            await _turn_between(number)
            await self._show_grown(self.topics_by_id[grown.topic_id], grown.partitions)

    async def _show_deleted(self, topic: Topic) -> None:
        self._remove(topic)
        self._note_deleted(topic.topic_id)
        delete = self._delete_log if self._keeper is None else self._keeper.deleted
        for count, partition in enumerate(topic.partitions, start=1):
            delete(partition)
            if count % LOGS_PER_TURN == 0:
                await turn_over()
        self._on_topic_deleted(topic)
        # Partitions refer to their topic: a frozen cycle stays in memory (``broker/daemon.py``).
        topic.partitions = []
        logger.info("topic deleted name=%s", topic.name)
        self._on_event("topic_deleted", f"Topic:{topic.name}", "")

    def _note_deleted(self, topic_id: bytes) -> None:
        """Owe the MetaStore word of when the directories of a topic are durably gone."""
        if self._keeper is None:
            self._deleted[topic_id] = self._logs.generation

    def _delete_log(self, partition: Partition) -> None:
        if partition.log is not None:
            self._logs.delete(partition.partition_id)
            self._on_log_removed(partition.log)

    async def _show_created(self, row: TopicRow) -> None:
        topic = self._topic_of(row)
        await self._make_logs(topic, row.partitions)
        self._add(topic)
        self._tell_shown(topic.partitions)
        count = len(row.partitions)
        logger.info("topic created name=%s partitions=%d", row.name, count)
        self._on_event("topic_created", f"Topic:{row.name}", f"{count} partitions")

    async def _show_grown(self, topic: Topic, rows: tuple[PartitionRow, ...]) -> None:
        grown = Topic(topic.name, topic.topic_id, topic.configs, topic.log_config)
        await self._make_logs(grown, rows)
        for partition in grown.partitions:
            partition.topic = topic
        topic.partitions.extend(grown.partitions)
        self._tell_shown(grown.partitions)
        self.topics_version += 1
        count = len(topic.partitions)
        logger.info("topic grown name=%s partitions=%d", topic.name, count)
        self._on_event("topic_grown", f"Topic:{topic.name}", f"{count} partitions")

    async def shown_in(self, image: MetadataImage) -> MetadataImage:
        """Return an image with the topics and settings that are shown."""
        rows = []
        for topic in self.topics.values():
            rows.append(_row_of(topic))
            await next_turn()
        return replace(
            image,
            topics=tuple(rows),
            broker_configs=dict(self.configs.broker_overrides),
            group_configs=dict(self.configs.group_overrides),
        )

    # -------------------------------------------------------------------------------------- details

    def _topic_of(self, row: TopicRow) -> Topic:
        settings = self.configs.settings_of(row.configs)
        return Topic(row.name, row.topic_id, row.configs, settings)

    def _check_space(self) -> None:
        if self._logs.full:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "The disk is full.")

    async def _make_logs(self, topic: Topic, rows: Iterable[PartitionRow]) -> None:
        """Add new partitions to a topic that is not visible yet, with logs where they are led."""
        for count, row in enumerate(rows, start=1):
            log = self._make_log(topic, row) if self._is_led_here(row) else None
            topic.partitions.append(self._new_partition(topic, row, log))
            if count % LOGS_PER_TURN == 0:
                await turn_over()

    def _new_partition(
        self, topic: Topic, row: PartitionRow, log: PartitionLog | None
    ) -> Partition:
        if self._may_serve is None:
            return Partition(topic, row.index, row.partition_id, log)
        return LeasedPartition(topic, row.index, row.partition_id, log, self._may_serve)

    def _make_log(self, topic: Topic, row: PartitionRow) -> PartitionLog:
        return self._logs.create(
            row.partition_id, topic.name, row.index, topic.topic_id, topic.log_config
        )

    def _tell_shown(self, partitions: Sequence[Partition]) -> None:
        if self._keeper is not None:
            self._keeper.shown(partitions)

    def _is_led_here(self, row: PartitionRow) -> bool:
        """Whether a partition has its log here for as long as there are both."""
        return (
            self._keeper is None
            and self.view.leader_of(row.partition_id).node_id == self.view.node_id
        )

    def _add(self, topic: Topic) -> None:
        self.topics[topic.name] = topic
        self.topics_by_id[topic.topic_id] = topic
        self._collisions[collision_key(topic.name)] = topic.name
        self.topics_version += 1

    def _remove(self, topic: Topic) -> None:
        self.topics_version += 1
        del self.topics[topic.name]
        del self.topics_by_id[topic.topic_id]
        key = collision_key(topic.name)
        # Another topic's name may stand there: logs taken over from Kafka can hold both.
        if self._collisions.get(key) == topic.name:
            del self._collisions[key]


async def _turn_between(number: int) -> None:
    """Let the loop do what else there is, but before the first topic: it may be the only one."""
    if number:
        await next_turn()


def _row_of(topic: Topic) -> TopicRow:
    """Return how a topic is stored."""
    rows = tuple(PartitionRow(each.partition_id, each.index) for each in topic.partitions)
    return TopicRow(topic.topic_id, topic.name, rows, topic.configs)


def new_topic_id() -> bytes:
    """Return a random id whose text form cannot be taken for a command line option.

    Kafka shows ids in URL-safe base64 and draws again when that begins with "-" (value 62).
    """
    while (topic_id := random_uuid().bytes)[0] >> 2 == 62:
        pass
    return topic_id


def new_cluster_id() -> str:
    """Return a random cluster id in Kafka's form: 22 characters of URL-safe base64."""
    return urlsafe_b64encode(new_topic_id()).decode().rstrip("=")


def _check_number_added(count: int) -> None:
    if count > PARTITIONS_PER_CHANGE_MAX:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."
        )
