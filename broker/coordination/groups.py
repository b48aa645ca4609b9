"""The group coordinator of this broker: its topic, its settings, what its machine may look at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.coordination.runner import Coordination
from barnabas.broker.topics.topic_names import GROUP_OFFSETS
from barnabas.coordinator.decision import Timer
from barnabas.coordinator.groups.commands import Caller, ExpireOffsets, TimerExpired, TopicsDeleted
from barnabas.coordinator.groups.config import ConsumerTimes, GroupConfig
from barnabas.coordinator.groups.offset_table import MANY, OffsetTable
from barnabas.coordinator.groups.shard import GroupShard
from barnabas.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.api.dispatch import RequestContext
    from barnabas.broker.runtime.host import Host
    from barnabas.broker.topics.catalogue import Catalogue
    from barnabas.storage.transaction_marker import TransactionMarker

GROUP_ID_MAX_BYTES: Final = 32_767
"""What the records of ``__consumer_offsets`` can hold."""
GROUPS_PER_TURN: Final = 64
"""Groups asked for what has expired before the loop gets a turn."""


class CatalogueImage:
    """The catalogue as the group coordinator may see it."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    def version(self) -> int:
        """Another number whenever a topic has come, gone or got partitions."""
        return self._catalogue.topics_version

    def names(self) -> Iterable[str]:
        """All topics."""
        return self._catalogue.topics.keys()

    def topic_id(self, name: str) -> bytes | None:
        """A topic's id; None: there is no such topic."""
        topic = self._catalogue.topic(name)
        return None if topic is None else topic.topic_id

    def name(self, topic_id: bytes) -> str | None:
        """The topic with this id; None: there is none."""
        topic = self._catalogue.topic_by_id(topic_id)
        return None if topic is None else topic.name

    def partition_count(self, name: str) -> int:
        """How many partitions a topic has; 0 if it does not exist."""
        topic = self._catalogue.topic(name)
        return 0 if topic is None else len(topic.partitions)


class Groups(Coordination):
    """Runs the group coordinator."""

    def __init__(self, host: Host, catalogue: Catalogue) -> None:
        self.image = CatalogueImage(catalogue)
        super().__init__(
            GROUP_OFFSETS,
            lambda: GroupShard(group_config(host.config, self.consumer_times)),
            self._timer_expired,
            catalogue=catalogue,
            clock=host.clock,
            after=host.flush_answers,
            spawn=host.spawn,
            on_fatal=host.fatal,
            batch_max_bytes=host.config.journal_file_bytes // 2,
        )
        self._host = host

    def _timer_expired(self, timer: Timer) -> TimerExpired:
        return TimerExpired(timer, self.image)

    async def ensure(self) -> None:
        """Make ``__consumer_offsets`` unless it is there; raises KafkaError."""
        config = self._host.config
        await self.ensure_topic(
            config.offsets_topic_num_partitions,
            {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(config.offsets_topic_segment_bytes),
            },
        )

    def write_marker(self, partition: int, marker: TransactionMarker) -> None:
        """Append the marker of a transaction that committed offsets; raises Refused, KafkaError.

        Readers see the offsets before anybody is told that the marker is there (KAFKA-17507).
        """
        if not self.is_coordinator() or not self._shards[partition].is_loaded:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        shard = self._shards[partition]
        durable = shard.log.append_marker(marker).durable

        def apply() -> None:
            if not shard.is_gone:
                self.end_transaction(shard, marker.producer_id, commit=marker.commit)

        if durable is None:
            apply()
        else:
            durable.add_waiter(apply)

    def refusal(self, key: str) -> ErrorCode:
        """Why commands for a group cannot be taken now; NONE if they can."""
        if len(key) > GROUP_ID_MAX_BYTES // 4 and len(key.encode()) > GROUP_ID_MAX_BYTES:
            return ErrorCode.INVALID_GROUP_ID
        return super().refusal(key)

    def expire_offsets(self) -> None:
        """Drop what was not used for long, and empty groups with nothing left."""
        self._ask_each(self._group_ids(), lambda key: ExpireOffsets(key, self.image))

    def forget_topic(self, name: str) -> None:
        """Drop the offsets of a topic that was deleted, or everything with the groups' own."""
        if not self.is_coordinator():
            return
        self._ask_each(
            self._group_ids(),
            lambda key: TopicsDeleted(key, self.image),
            lambda key: self._offsets_of(key).holds_topic(key, name),
        )

    def have_many_offsets(self, group_ids: Sequence[str]) -> bool:
        """Whether several groups together have so many that work on all takes long.

        Of one alone its machine finds out by itself.
        """
        if len(group_ids) < 2:
            return False
        total = 0
        for group_id in group_ids:
            if not self.refusal(group_id):
                total += self._offsets_of(group_id).count(group_id)
                if total > MANY:
                    return True
        return False

    def _offsets_of(self, group_id: str) -> OffsetTable:
        machine = self.machine_of(group_id)
        assert isinstance(machine, GroupShard)
        return machine.offsets

    def _group_ids(self) -> list[str]:
        return [key for machine in self.machines for key in machine.keys()]  # noqa: SIM118

    def _ask_each(
        self,
        group_ids: list[str],
        make: Callable[[str], object],
        concerns: Callable[[str], bool] = lambda _group_id: True,
    ) -> None:
        """Submit a command for each group that it ``concerns``, some at a time."""

        def turn() -> None:
            offsets = 0
            for _ in range(min(GROUPS_PER_TURN, len(group_ids))):
                group_id = group_ids.pop()
                if not self.refusal(group_id) and concerns(group_id):
                    self.submit(group_id, make(group_id), lambda _response: None)
                    offsets += self._offsets_of(group_id).count(group_id)
                    if offsets > MANY:
                        break
            if group_ids:
                self._host.loop.call_soon(turn)

        turn()

    def configure(self, config: BrokerConfig) -> None:
        """Use changed settings from the next command on."""
        for machine in self.machines:
            assert isinstance(machine, GroupShard)
            machine.config = group_config(config, self.consumer_times)

    def consumer_times(self, group_id: str) -> ConsumerTimes:
        """What holds for one consumer group: its own settings, or else the broker's."""
        session_ms, heartbeat_ms, assignment_ms = (
            self._catalogue.configs.group_value(group_id, f"consumer.{name}.ms")
            for name in ("session.timeout", "heartbeat.interval", "assignment.interval")
        )
        assert isinstance(session_ms, int)
        assert isinstance(heartbeat_ms, int)
        assert isinstance(assignment_ms, int)
        return ConsumerTimes(session_ms, heartbeat_ms, assignment_ms)


def group_config(
    config: BrokerConfig, consumer_times: Callable[[str], ConsumerTimes]
) -> GroupConfig:
    """What of the broker's configuration the group coordinator goes by."""
    return GroupConfig(
        initial_rebalance_delay_ms=config.group_initial_rebalance_delay_ms,
        min_session_timeout_ms=config.group_min_session_timeout_ms,
        max_session_timeout_ms=config.group_max_session_timeout_ms,
        max_size=config.group_max_size,
        offset_metadata_max_bytes=config.offset_metadata_max_bytes,
        offsets_retention_ms=config.offsets_retention_minutes * 60_000,
        consumer_max_size=config.group_consumer_max_size,
        consumer_times=consumer_times,
        consumer_assignors=tuple(dict.fromkeys(config.group_consumer_assignors)),
        consumer_migration_policy=config.group_consumer_migration_policy.lower(),
    )


def caller_of(context: RequestContext) -> Caller:
    """Who sent this request, and how."""
    return Caller(context.client_id or "", context.connection.peer_host, context.api_version)
