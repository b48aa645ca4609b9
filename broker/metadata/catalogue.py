"""Topics, partitions and configurations: the MetaStore's image in memory.

Rules of this file:

* The MetaStore is authoritative. A change is committed there first, then applied on disk, then
  shown here. The last two steps apply the commit's difference (``show``), regardless of the broker
  that made it. The start follows the MetaStore, so a crash between these steps needs no repair: a
  partition without a directory gets one, and a directory of a deleted topic is removed.
* A tombstone stays until the removal of its directories is durable (one checkpoint later). So every
  directory that this broker has created has a row, and one without a row stops the start instead of
  being deleted. In a cluster directories are copies, and tombstones belong to all brokers
  (``tombstones.py``).
* Changes run one at a time and to their end (``changes.py``).
* Readers see a topic completely or not at all; a topic disappears as soon as its deletion starts.
* A failure that makes the image differ from the MetaStore stops the process (D9).
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
"""Maximum number of partitions that one change may add, as in Kafka."""

LOGS_PER_TURN: Final = 256
"""Maximum number of logs created or removed in one turn of the event loop; another thread handles
their directories."""


class CollidingName(KafkaError):
    """Topic name that collides with that of an existing topic, ``other``, which not all clients may
    see.
    """

    def __init__(self, name: str, other: str) -> None:
        super().__init__(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic '{name}' collides with existing topic: {other}",
        )
        self.other = other


class LogKeeper(Protocol):
    """Component that opens and closes the logs of partitions as leadership changes."""

    def shown(self, partitions: Sequence[Partition]) -> None:
        """Register partitions that clients see from now on, still without logs."""

    def deleted(self, partition: Partition) -> None:
        """Delete the log of a partition that readers no longer see, if this broker has it."""


class Catalogue:
    """Topics of this broker, and their changes."""

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
        """Create an empty catalogue; ``load``, then recovery, then ``open`` fill it.

        ``view`` determines the partitions that have their log here: those that this broker leads.
        ``keeper`` opens and closes them, or is None if every partition and its log stay with this
        broker. ``may_serve`` returns whether this broker's lease is valid, or is None without
        leases. ``calls`` runs calls of the MetaStore, or is None to call it on the event loop.
        ``clock`` limits the clients' waits for changes, and is the machine's clock by default.
        ``config`` is the configuration as it was loaded. ``on_event`` receives each change: a kind,
        the resource, and a text.
        """
        self._on_event = on_event
        self.topics: dict[str, Topic] = {}
        self.topics_by_id: dict[bytes, Topic] = {}
        self.topics_version = 0
        """Number that grows with every created, deleted or extended topic; it restarts at each
        start."""
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
        """Tombstones of the cluster, or None in a standalone broker."""
        self._ensuring: dict[str, asyncio.Task[None]] = {}
        """Running changes that create a topic for waiting requests, by its name."""
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
        """Return a topic by name, or None."""
        return self.topics.get(name)

    def topic_by_id(self, topic_id: bytes) -> Topic | None:
        """Return a topic by its 16-byte ID, or None."""
        return self.topics_by_id.get(topic_id)

    def partition(self, name: str, index: int) -> Partition | None:
        """Return a partition by its topic's name and its index, or None."""
        topic = self.topics.get(name)
        if topic is None or not 0 <= index < len(topic.partitions):
            return None
        return topic.partitions[index]

    @property
    def cluster_id(self) -> str:
        """Return the ID of the cluster of these topics."""
        return self._metastore.identity.cluster_id

    @property
    def journal(self) -> Journal:
        """Return the journal of all logs."""
        return self._logs.journal

    # ------------------------------------------------------------------------------- start and stop

    def load(self, image: MetadataImage) -> list[PartitionSpec]:
        """Load topics and settings; return the partitions that recovery has to open.

        ``image`` is the MetaStore's content. Raises ConfigError if stored settings are no longer
        valid.
        """
        self.changes.load(image)
        self.configs.load(image)
        self.producer_ids.load(image)
        self._image = image
        for row in image.topics:
            check_topic_configs(row.configs, self.configs.broker_config)
        specs = []
        for row in image.topics:
            settings = self.configs.settings_of(row.name, row.configs)
            specs += [
                PartitionSpec(each.partition_id, row.name, each.index, row.topic_id, settings)
                for each in row.partitions
                if self._is_led_here(each)
            ]
        return specs

    @property
    def deleted_directories(self) -> set[str]:
        """Return the directories of deleted topics in ``load``, which recovery may have to
        remove.
        """
        return {
            f"{row.name}-{partition.index}"
            for row in self._image.deleted
            for partition in row.partitions
        }

    @property
    def deleted_partition_ids(self) -> set[int]:
        """Return the partition IDs of the directories of deleted topics."""
        return {
            partition.partition_id for row in self._image.deleted for partition in row.partitions
        }

    def open(self) -> None:
        """Make the topics of ``load`` visible, whose logs are open now."""
        for row in self._image.topics:
            topic = self._topic_of(row)
            for partition in row.partitions:
                is_here = self._is_led_here(partition)
                log = self._logs.get(partition.partition_id) if is_here else None
                topic.partitions.append(self._new_partition(topic, partition, log))
            self._add(topic)
            self._notify_shown(topic.partitions)
        for row in self._image.deleted:
            self._note_deleted(row.topic_id)
        self._image = MetadataImage((), (), {})

    def forget_deleted(self) -> None:
        """Remove the tombstones of directories that are durably removed; call this after a
        checkpoint.

        In a cluster it changes nothing. Directories that were deleted during that checkpoint have
        to wait for the next one.
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
        """Raise the KafkaError that creating a topic of this name would cause now."""
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
        """Raise the KafkaError that creating this topic would cause now."""
        self.check_new_name(name)
        if partition_count < 1:
            raise KafkaError(
                ErrorCode.INVALID_PARTITIONS,
                "Number of partitions was set to an invalid non-positive value.",
            )
        _check_number_added(partition_count)
        check_configs(name, configs, self.configs.broker_config)

    async def create_topic(
        self,
        name: str,
        partition_count: int,
        configs: Mapping[str, str | None],
        until_s: float | None = None,
    ) -> Topic:
        """Create a topic and its logs; raises KafkaError.

        ``until_s``, here and below: time at which the caller stops waiting, see ``Changes.run``.
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
        """Create a topic unless it exists, including at another broker since a moment ago.

        It is shown when this returns; raises KafkaError as ``create_topic``. All requests for one
        topic share one change.
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
            message = "This server does not host this topic ID."  # Kafka's
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, message)
        await self.changes.commit_regardless(partial(self._metastore.delete_topic, topic_id))
        await self.changes.show(Difference(topics_deleted=(topic_id,)))

    def check_new_partitions(self, name: str, total_count: int) -> int:
        """Return the number of partitions that a topic would gain; raises KafkaError."""
        topic = self.topics.get(name)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if topic.is_internal:
            # Stricter than Kafka, whose coordinators then look for keys in the wrong partitions.
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
        """Apply all commits before this call; raises KafkaError.

        After that, an object that is not shown does not exist; before, it may only be unknown here.
        """
        await self.changes.run(self.changes.catch_up, until_s)

    # ------------------------------------------------------------------------ called by ``Changes``

    async def show(self, difference: Difference) -> None:
        """Delete, configure, create and grow topics: on disk, then for readers."""
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
        """Register a tombstone to be removed once the topic's directories are durably removed."""
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
        self._notify_shown(topic.partitions)
        count = len(row.partitions)
        logger.info("topic created name=%s partitions=%d", row.name, count)
        self._on_event("topic_created", f"Topic:{row.name}", f"{count} partitions")

    async def _show_grown(self, topic: Topic, rows: tuple[PartitionRow, ...]) -> None:
        grown = Topic(topic.name, topic.topic_id, topic.configs, topic.log_config)
        await self._make_logs(grown, rows)
        for partition in grown.partitions:
            partition.topic = topic
        topic.partitions.extend(grown.partitions)
        self._notify_shown(grown.partitions)
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
        settings = self.configs.settings_of(row.name, row.configs)
        return Topic(row.name, row.topic_id, row.configs, settings)

    def _check_space(self) -> None:
        if self._logs.full:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "The disk is full.")

    async def _make_logs(self, topic: Topic, rows: Iterable[PartitionRow]) -> None:
        """Add new partitions to a topic that is not visible yet, with the logs that are led
        here.
        """
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

    def _notify_shown(self, partitions: Sequence[Partition]) -> None:
        if self._keeper is not None:
            self._keeper.shown(partitions)

    def _is_led_here(self, row: PartitionRow) -> bool:
        """Whether a partition's log always stays here."""
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
        # The entry may be another topic's: logs adopted from Kafka can hold both names.
        if self._collisions.get(key) == topic.name:
            del self._collisions[key]


async def _turn_between(number: int) -> None:
    """Yield to the event loop, except before the first topic, which may be the only one."""
    if number:
        await next_turn()


def _row_of(topic: Topic) -> TopicRow:
    """Return a topic as it is stored."""
    rows = tuple(PartitionRow(each.partition_id, each.index) for each in topic.partitions)
    return TopicRow(topic.topic_id, topic.name, rows, topic.configs)


def new_topic_id() -> bytes:
    """Return a random ID whose text form cannot be mistaken for a command line option.

    Kafka shows IDs in URL-safe base64 and draws again when that begins with "-" (value 62).
    """
    while (topic_id := random_uuid().bytes)[0] >> 2 == 62:
        pass
    return topic_id


def new_cluster_id() -> str:
    """Return a random cluster ID in Kafka's form: 22 characters of URL-safe base64."""
    return urlsafe_b64encode(new_topic_id()).decode().rstrip("=")


def _check_number_added(count: int) -> None:
    if count > PARTITIONS_PER_CHANGE_MAX:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."
        )
