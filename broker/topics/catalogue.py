"""Topics, partitions and configurations as they are now: the MetaStore's image in memory.

Rules of this file:

* The MetaStore is the truth. A change is committed there first, then made on disk, then shown here.
  Start-up goes by the MetaStore, so a crash between any two of these steps needs no repair of its
  own: a partition without a directory gets one, a directory of a deleted topic is removed.
* A tombstone stays until the removal of its directories is durable (a checkpoint later). So every
  directory we ever made has a row, and one without a row is a reason to stop, not to delete.
* Changes run one at a time and to their end, even when the client that asked has gone.
* Readers see a topic either whole or not at all; a topic that is being deleted is gone at once.
* A failure that leaves the image and the MetaStore different stops the process (D9).
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from base64 import urlsafe_b64encode
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from barnabas.broker.config.broker_config import BROKER_CONFIGS, BrokerConfig
from barnabas.broker.config.group_configs import check_group_configs, group_value
from barnabas.broker.config.ignored import IGNORED_CONFIGS
from barnabas.broker.config.topic_values import check_topic_configs, log_config
from barnabas.broker.config.types import ConfigError, UpdateMode, Value
from barnabas.broker.runtime.turns import next_turn
from barnabas.broker.topics.topic_names import (
    CLUSTER_METADATA,
    INTERNAL,
    collision_key,
    name_problem,
)
from barnabas.coordinator.transactions.state import TopicPartition
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.metadata import MetadataResponsePartition
from barnabas.storage.config import LogConfig
from barnabas.storage.journal import Journal
from barnabas.storage.log_store import LogStore, PartitionSpec
from barnabas.storage.metastore.interface import (
    MetadataImage,
    MetaStore,
    MetaStoreError,
    MetaStoreRefused,
    PartitionRow,
    TopicRow,
)
from barnabas.storage.partition_log import PartitionLog

logger = logging.getLogger(__name__)

Result = TypeVar("Result")
Configs = Mapping[str, str]
ConfigsChange = Callable[[Configs], Configs]

PARTITIONS_PER_CHANGE_MAX: Final = 10_000
"""Kafka's limit on the partitions that one change may add."""

GROUPS_WITH_SETTINGS_MAX: Final = 10_000
"""Groups need not exist to have settings, so somebody has to stop."""

LOGS_PER_TURN: Final = 256
"""Logs made or removed before the loop gets a turn; their directories follow on another thread."""

PRODUCER_IDS_LOW: Final = 500
"""When fewer are left the next block is fetched."""

NO_EPOCH: Final = -1
"""What a client says that does not know a partition's leader epoch."""

CLUSTER_ENTITY: Final = ""
"""The MetaStore's name for broker settings that hold for the whole cluster."""


class Partition:
    """One partition of a topic, and its log."""

    __slots__ = ("index", "log", "partition_id", "place", "topic")

    def __init__(self, topic: Topic, index: int, partition_id: int, log: PartitionLog) -> None:
        self.topic = topic
        self.index = index
        self.partition_id = partition_id
        self.log = log
        self.place = TopicPartition(topic.name, index)
        """What transactions call it."""

    def leader_epoch_error(self, current_leader_epoch: int) -> ErrorCode:
        """Compare the epoch a client believes in with ours; -1 is no belief (KIP-320)."""
        ours = self.log.leader_epoch
        if current_leader_epoch in {NO_EPOCH, ours}:
            return ErrorCode.NONE
        if current_leader_epoch < ours:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.UNKNOWN_LEADER_EPOCH


class Topic:
    """One topic: its partitions by index, its own settings, and what they mean to storage."""

    __slots__ = (
        "configs",
        "described",
        "is_internal",
        "log_config",
        "name",
        "partitions",
        "topic_id",
    )

    def __init__(self, name: str, topic_id: bytes, configs: Configs, settings: LogConfig) -> None:
        self.name = name
        self.topic_id = topic_id
        self.is_internal = name in INTERNAL
        self.configs = configs
        self.log_config = settings
        self.partitions: list[Partition] = []
        self.described: list[MetadataResponsePartition] = []
        """What Metadata says of the partitions: kept, because topics can have thousands."""


class Catalogue:
    """All topics of this broker, and the changes that may be made to them."""

    def __init__(
        self,
        metastore: MetaStore,
        logs: LogStore,
        config: BrokerConfig,
        *,
        on_log_removed: Callable[[PartitionLog], None] = lambda _log: None,
        on_topic_deleted: Callable[[Topic], None] = lambda _topic: None,
        on_config_changed: Callable[[BrokerConfig], None] = lambda _config: None,
        on_fatal: Callable[[BaseException], None] = lambda _error: None,
    ) -> None:
        """Make an empty catalogue; ``load``, then recovery, then ``open`` fill it.

        ``config`` is the configuration as it was loaded; ``broker_config`` is the one in force.
        """
        self.topics: dict[str, Topic] = {}
        self.topics_by_id: dict[bytes, Topic] = {}
        self.topics_version = 0
        """Grows whenever a topic comes, goes or gets partitions; begins anew at each start."""
        self.broker_config = config
        self.broker_overrides: dict[str, Configs] = {}
        self.group_overrides: dict[str, Configs] = {}
        self._deleted: dict[bytes, int] = {}
        self._image = MetadataImage((), (), {})
        self._metastore = metastore
        self._logs = logs
        self._loaded_config = config
        self._collisions: dict[str, str] = {}
        self._producer_ids: deque[int] = deque()
        self._producer_ids_coming = False
        self._on_log_removed = on_log_removed
        self._on_topic_deleted = on_topic_deleted
        self._on_config_changed = on_config_changed
        self._on_fatal = on_fatal
        self._changing = asyncio.Lock()
        self._changes: set[asyncio.Task[Any]] = set()

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
    def journal(self) -> Journal:
        """The journal behind all logs."""
        return self._logs.journal

    # ------------------------------------------------------------------------------- start and stop

    def load(self) -> list[PartitionSpec]:
        """Load topics and settings; return the partitions that recovery has to open.

        Raises ConfigError when stored settings are no longer acceptable.
        """
        image = self._metastore.load()
        self.broker_overrides = dict(image.broker_configs)
        self._use_broker_config(self._merged_config(self.broker_overrides))
        self.group_overrides = dict(image.group_configs)
        self._image = image
        for row in image.topics:
            check_topic_configs(row.configs, self.broker_config)
        specs = []
        for row in image.topics:
            settings = log_config(row.configs, self.broker_config)
            specs += [
                PartitionSpec(each.partition_id, row.name, each.index, row.topic_id, settings)
                for each in row.partitions
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
                log = self._logs.get(partition.partition_id)
                topic.partitions.append(
                    Partition(topic, partition.index, partition.partition_id, log)
                )
            self._show(topic)
        self._deleted = {row.topic_id: self._logs.generation for row in self._image.deleted}
        self._image = MetadataImage((), (), {})

    def forget_deleted(self) -> None:
        """Remove the tombstones whose directories are durably gone; call it after a checkpoint.

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

    async def close(self) -> None:
        """Wait until the changes under way are complete."""
        while self._changes:
            await asyncio.wait(self._changes)

    def abandon(self) -> None:
        """Drop the changes under way, as a crash does: nothing more is committed."""
        for task in self._changes:
            task.cancel()

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
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"Topic '{name}' collides with existing topic: {other}",
            )

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
        _check_configs(configs, self.broker_config)

    async def create_topic(
        self, name: str, partition_count: int, configs: Mapping[str, str | None]
    ) -> Topic:
        """Create a topic and its logs; raises KafkaError when it may not or cannot be."""
        return await self._change(lambda: self._create_topic(name, partition_count, configs))

    async def _create_topic(
        self, name: str, partition_count: int, configs: Mapping[str, str | None]
    ) -> Topic:
        self.check_new_topic(name, partition_count, configs)
        self._check_space()
        given = {key: text for key, text in configs.items() if text is not None}
        row = self._metastore.create_topic(name, new_topic_id(), partition_count, given)
        topic = self._topic_of(row)
        await self._make_logs(topic, row.partitions)
        self._show(topic)
        logger.info("topic created name=%s partitions=%d", name, partition_count)
        return topic

    async def delete_topic(self, topic_id: bytes) -> None:
        """Delete a topic and its logs; raises KafkaError UNKNOWN_TOPIC_ID."""
        await self._change(lambda: self._delete_topic(topic_id))

    async def _delete_topic(self, topic_id: bytes) -> None:
        topic = self.topics_by_id.get(topic_id)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
        self._metastore.delete_topic(topic_id)
        self._hide(topic)
        self._deleted[topic_id] = self._logs.generation
        for count, partition in enumerate(topic.partitions, start=1):
            self._logs.delete(partition.partition_id)
            self._on_log_removed(partition.log)
            if count % LOGS_PER_TURN == 0:
                await asyncio.sleep(0)
        self._on_topic_deleted(topic)
        logger.info("topic deleted name=%s", topic.name)

    def check_new_partitions(self, name: str, total_count: int) -> int:
        """Return how many partitions a topic would gain; raises KafkaError when it may not."""
        topic = self.topics.get(name)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
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

    async def create_partitions(self, name: str, total_count: int) -> None:
        """Grow a topic to ``total_count`` partitions; raises KafkaError."""
        await self._change(lambda: self._create_partitions(name, total_count))

    async def _create_partitions(self, name: str, total_count: int) -> None:
        self.check_new_partitions(name, total_count)
        topic = self.topics[name]
        self._check_space()
        rows = self._metastore.create_partitions(topic.topic_id, total_count)
        grown = Topic(name, topic.topic_id, topic.configs, topic.log_config)
        await self._make_logs(grown, rows)
        for partition in grown.partitions:
            partition.topic = topic
        topic.partitions.extend(grown.partitions)
        self.topics_version += 1
        logger.info("topic grown name=%s partitions=%d", name, total_count)

    # ------------------------------------------------------------------------------------- settings

    def checked_topic_configs(self, name: str, change: ConfigsChange) -> Configs:
        """Return the settings a topic would have after ``change``; raises KafkaError.

        ``change`` gets the topic's own settings and returns all of them anew.
        """
        topic = self.topics.get(name)
        if topic is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist."
            )
        configs = change(topic.configs)
        _check_configs(configs, self.broker_config)
        return configs

    async def alter_topic_configs(self, name: str, change: ConfigsChange) -> None:
        """Change a topic's settings, effective when this returns; raises KafkaError."""
        await self._change(lambda: self._alter_topic_configs(name, change))

    async def _alter_topic_configs(self, name: str, change: ConfigsChange) -> None:
        configs = self.checked_topic_configs(name, change)
        topic = self.topics[name]
        if configs == topic.configs:
            return
        self._metastore.set_topic_configs(topic.topic_id, configs)
        topic.configs = configs
        self._configure(topic)

    def checked_broker_configs(self, entity: str, change: ConfigsChange) -> Configs:
        """Return what dynamic settings of a node ("" = all nodes) would be; raises KafkaError."""
        configs = change(self.broker_overrides.get(entity, {}))
        self._check_broker_overrides(entity, configs)
        return configs

    async def alter_broker_configs(self, entity: str, change: ConfigsChange) -> None:
        """Change dynamic settings of a node ("" = all nodes); raises KafkaError."""
        await self._change(lambda: self._alter_broker_configs(entity, change))

    async def _alter_broker_configs(self, entity: str, change: ConfigsChange) -> None:
        configs = self.checked_broker_configs(entity, change)
        self._metastore.set_broker_configs(entity, configs)
        self.broker_overrides[entity] = configs
        self._use_broker_config(self._merged_config(self.broker_overrides))
        for topic in self.topics.values():
            self._configure(topic)

    def group_value(self, group_id: str, name: str) -> Value:
        """Return the value in force of one key of a group, whether or not it has settings."""
        return group_value(name, self.group_overrides.get(group_id, {}), self.broker_config)

    def checked_group_configs(self, group_id: str, change: ConfigsChange) -> Configs:
        """Return what the settings of a group would be; raises KafkaError."""
        configs = change(self.group_overrides.get(group_id, {}))
        try:
            check_group_configs(configs, self.broker_config)
        except ConfigError as error:
            raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from error
        known = group_id in self.group_overrides
        if configs and not known and len(self.group_overrides) >= GROUPS_WITH_SETTINGS_MAX:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION,
                f"No more than {GROUPS_WITH_SETTINGS_MAX} groups can have settings of their own.",
            )
        return configs

    async def alter_group_configs(self, group_id: str, change: ConfigsChange) -> None:
        """Change the settings of a group; raises KafkaError."""
        await self._change(lambda: self._alter_group_configs(group_id, change))

    async def _alter_group_configs(self, group_id: str, change: ConfigsChange) -> None:
        configs = self.checked_group_configs(group_id, change)
        self._metastore.set_group_configs(group_id, configs)
        if configs:
            self.group_overrides[group_id] = configs
        else:
            self.group_overrides.pop(group_id, None)

    def _check_broker_overrides(self, entity: str, configs: Configs) -> None:
        """Raise KafkaError unless a running broker can honour these settings and its topics too."""
        for name in configs:
            key = BROKER_CONFIGS.get(name) or IGNORED_CONFIGS.get(name)
            if key is None:
                raise KafkaError(ErrorCode.INVALID_CONFIG, f"This broker has no setting {name}")
            if key.update is UpdateMode.READ_ONLY:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST, f"Cannot update these configs dynamically: [{name}]"
                )
        try:
            merged = self._merged_config({**self.broker_overrides, entity: configs})
            for topic in self.topics.values():
                check_topic_configs(topic.configs, merged)
        except ConfigError as error:
            raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from error

    def _merged_config(self, overrides: Mapping[str, Configs]) -> BrokerConfig:
        """Return the loaded configuration under the dynamic one; raises ConfigError."""
        node = str(self._metastore.identity.node_id)
        return self._loaded_config.with_dynamic(
            overrides.get(CLUSTER_ENTITY, {}), overrides.get(node, {})
        )

    def _use_broker_config(self, config: BrokerConfig) -> None:
        self.broker_config = config
        self._on_config_changed(config)

    def _configure(self, topic: Topic) -> None:
        """Bring a topic's logs up to date with its settings and the broker's."""
        settings = log_config(topic.configs, self.broker_config)
        if settings != topic.log_config:
            topic.log_config = settings
            for partition in topic.partitions:
                partition.log.configure(settings)

    # -------------------------------------------------------------------------------- producer ids

    async def next_producer_id(self) -> int:
        """Return a producer id that was never returned before (S10); raises KafkaError."""
        while not self._producer_ids:
            await self._change(self._take_producer_ids)
        return self._producer_ids.popleft()

    def peek_producer_id(self) -> int:
        """Return a producer id that is nobody's yet, for ``take_producer_id``; -1: none is ready.

        The next block is fetched in time, so that there is always one while the disk works.
        """
        if len(self._producer_ids) < PRODUCER_IDS_LOW and not self._producer_ids_coming:
            self._producer_ids_coming = True
            task = asyncio.get_running_loop().create_task(self._refill_producer_ids())
            self._changes.add(task)
            task.add_done_callback(self._finished)
        return self._producer_ids[0] if self._producer_ids else -1

    def take_producer_id(self, producer_id: int) -> None:
        """Give away the id that ``peek_producer_id`` has shown."""
        taken = self._producer_ids.popleft()
        assert taken == producer_id, (taken, producer_id)

    async def ensure_producer_ids(self) -> None:
        """Wait until there are producer ids to give away; raises KafkaError."""
        if not self._producer_ids:
            await self._refill_producer_ids()

    async def _refill_producer_ids(self) -> None:
        try:
            await self._change(self._take_producer_ids)
        finally:
            self._producer_ids_coming = False

    async def _take_producer_ids(self) -> None:
        """Make the next block durably ours before one id of it is given to anybody."""
        if len(self._producer_ids) < PRODUCER_IDS_LOW:
            self._producer_ids.extend(self._metastore.allocate_producer_ids())

    # -------------------------------------------------------------------------------------- details

    async def _change(self, change: Callable[[], Awaitable[Result]]) -> Result:
        """Run one change alone and to its end, whatever happens to whoever asked for it."""
        task = asyncio.get_running_loop().create_task(self._exclusively(change))
        self._changes.add(task)
        task.add_done_callback(self._finished)
        return await asyncio.shield(task)

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._changes.discard(task)
        # Looked at here because whoever asked may be gone; they get it too if they are there.
        if not task.cancelled():
            task.exception()

    async def _exclusively(self, change: Callable[[], Awaitable[Result]]) -> Result:
        async with self._changing:
            await next_turn()  # Each waits for the disk: those of many clients are not one turn.
            try:
                return await change()
            except KafkaError:
                raise
            except MetaStoreRefused as error:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
            except MetaStoreError as error:
                # What is on disk is no longer known, so nothing that is shown here can be trusted.
                self._on_fatal(error)
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error

    def _topic_of(self, row: TopicRow) -> Topic:
        settings = log_config(row.configs, self.broker_config)
        return Topic(row.name, row.topic_id, row.configs, settings)

    def _check_space(self) -> None:
        if self._logs.full:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "The disk is full.")

    async def _make_logs(self, topic: Topic, rows: Iterable[PartitionRow]) -> None:
        """Add new partitions to a topic that nobody sees yet."""
        for count, row in enumerate(rows, start=1):
            log = self._logs.create(
                row.partition_id, topic.name, row.index, topic.topic_id, topic.log_config
            )
            topic.partitions.append(Partition(topic, row.index, row.partition_id, log))
            if count % LOGS_PER_TURN == 0:
                await asyncio.sleep(0)

    def _show(self, topic: Topic) -> None:
        self.topics[topic.name] = topic
        self.topics_by_id[topic.topic_id] = topic
        self._collisions[collision_key(topic.name)] = topic.name
        self.topics_version += 1

    def _hide(self, topic: Topic) -> None:
        self.topics_version += 1
        del self.topics[topic.name]
        del self.topics_by_id[topic.topic_id]
        key = collision_key(topic.name)
        # Another topic's name may stand there: logs taken over from Kafka can hold both.
        if self._collisions.get(key) == topic.name:
            del self._collisions[key]


def new_topic_id() -> bytes:
    """Return a random id whose text form cannot be taken for a command line option.

    Kafka shows ids in URL-safe base64 and draws again when that begins with "-" (value 62).
    """
    while (topic_id := uuid.uuid4().bytes)[0] >> 2 == 62:
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


def _check_configs(configs: Mapping[str, str | None], config: BrokerConfig) -> None:
    try:
        check_topic_configs(configs, config)
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from error
