"""The group coordinator of this broker: its log and runner, settings, what its machine may see.

A decision applies when it is appended, and responses wait until it is durable (``runner.py``). What
reads the machines itself waits with ``durable``, where clients act on what it shows; metrics and
pages of the console that only count do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.coordination.coordinator_log import Admit, CoordinatorLog, TopicSettings
from barnabas.broker.coordination.rebalances import Rebalances
from barnabas.broker.coordination.runner import Refuse, Respond, Runner, Submission
from barnabas.broker.coordination.shard import Shard
from barnabas.broker.metadata.topic_names import GROUP_OFFSETS
from barnabas.broker.runtime.turns import run_in_turns
from barnabas.broker.security.acls.access import OPEN, Access, Generation
from barnabas.broker.security.acls.operations import ResourceType
from barnabas.coordinator.decision import Effect, Timer
from barnabas.coordinator.groups.commands import (
    Caller,
    Command,
    ExpireOffsets,
    TimerExpired,
    TopicsDeleted,
)
from barnabas.coordinator.groups.config import ConsumerTimes, GroupConfig
from barnabas.coordinator.groups.offset_table import MANY, OffsetTable
from barnabas.coordinator.groups.shard import GroupShard
from barnabas.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.api.dispatch import RequestContext
    from barnabas.broker.metadata.catalogue import Catalogue
    from barnabas.broker.runtime.host import Host
    from barnabas.storage.log.transaction_marker import TransactionMarker

GROUP_ID_MAX_BYTES: Final = 32_767
"""Maximum length of a string in the records of ``__consumer_offsets``."""


class CatalogueImage:
    """The catalogue as the group coordinator may see it, for one client or for all."""

    def __init__(self, catalogue: Catalogue, generation: Generation, access: Access = OPEN) -> None:
        self._catalogue = catalogue
        self._generation = generation
        self._access = access

    def version(self) -> int:
        """Return a number that changes with the topics and their visibility."""
        return self._catalogue.topics_version + self._generation.number

    def names(self) -> Iterable[str]:
        """Return all topics that the client may describe now."""
        names = self._catalogue.topics.keys()
        if self._access.is_open:
            return names
        return [name for name in names if self._access.may_see(ResourceType.TOPIC, name)]

    def topic_id(self, name: str) -> bytes | None:
        """Return a topic's id, or None if the topic does not exist."""
        topic = self._catalogue.topic(name)
        return None if topic is None else topic.topic_id

    def name(self, topic_id: bytes) -> str | None:
        """Return the topic with this id, or None if it does not exist."""
        topic = self._catalogue.topic_by_id(topic_id)
        return None if topic is None else topic.name

    def partition_count(self, name: str) -> int:
        """Number of a topic's partitions, or 0 if it does not exist."""
        topic = self._catalogue.topic(name)
        return 0 if topic is None else len(topic.partitions)


class Groups:
    """The group coordinator: its log and runner."""

    def __init__(
        self, host: Host, catalogue: Catalogue, generation: Generation | None = None
    ) -> None:
        """``generation`` counts the changes of permissions."""
        self._host = host
        self._catalogue = catalogue
        self._generation = generation or Generation()
        self.image = CatalogueImage(catalogue, self._generation)
        self.rebalances = Rebalances(host.clock.now_ms())
        self.log: CoordinatorLog[GroupShard] = CoordinatorLog(
            GROUP_OFFSETS,
            self._new_shard,
            _topic_settings,
            host,
            catalogue,
            on_loaded=self._loaded,
            on_lost=self._lost,
        )
        self._runner = Runner(self.log, host, self._timer_expired, timers_wait=True)

    def _new_shard(self) -> GroupShard:
        shard = GroupShard(group_config(self._host.config, self.consumer_times))
        shard.on_generation = self._on_generation
        return shard

    def _on_generation(self, group_id: str, generation: int) -> None:
        """Record a rebalance, except during the replay of a start."""
        shard = self.log.shard_here(group_id)
        if shard is not None and shard.is_loaded:
            self.rebalances.note(group_id, generation, self._host.clock.now_ms())

    def _loaded(self, shard: Shard[GroupShard], effects: tuple[Effect, ...]) -> None:
        self._runner.take_effects(shard, effects)

    def _lost(self, shard: Shard[GroupShard]) -> None:
        self._runner.forget(shard)
        self.rebalances.forget(shard.owns, self._host.clock.now_ms())

    def gain(self, index: int) -> None:
        """Coordinate the groups of a newly led partition; see ``CoordinatorLog``."""
        self.rebalances.restart(self._host.clock.now_ms())
        self.log.gain(index)

    def lose(self, index: int) -> None:
        """Forget the groups of a partition that this broker does not lead any more."""
        self.log.lose(index)

    def _timer_expired(self, timer: Timer) -> TimerExpired:
        return TimerExpired(timer, self.image)

    def close(self) -> None:
        """Cancel all timers when the broker ends."""
        self._runner.close()

    # ------------------------------------------------------------------------------------ requests

    async def ensure(self) -> None:
        """Create ``__consumer_offsets`` unless it exists; raises KafkaError."""
        await self.log.ensure()

    def is_coordinator(self) -> bool:
        """Whether ``__consumer_offsets`` exists, so that this broker may serve groups."""
        return self.log.is_coordinator()

    @property
    def is_loading(self) -> bool:
        """Whether groups of this broker are not loaded yet."""
        return self.log.is_loading

    def refusal(self, key: str) -> ErrorCode:
        """Return the error code for commands on a group, or NONE if this broker accepts them."""
        if len(key) > GROUP_ID_MAX_BYTES // 4 and len(key.encode()) > GROUP_ID_MAX_BYTES:
            return ErrorCode.INVALID_GROUP_ID
        return self.log.refusal(key)

    def image_for(self, access: Access) -> CatalogueImage:
        """Return the topics that a client may see."""
        if access.is_open:
            return self.image
        return CatalogueImage(self._catalogue, self._generation, access)

    def new_ticket(self) -> int:
        """Return a number for a command whose response may be delayed."""
        return self._runner.new_ticket()

    def must_wait(self, key: str) -> bool:
        """Return whether a command of a group would wait before it is decided."""
        return self._runner.must_wait(key)

    def submit(
        self,
        key: str,
        command: Command,
        respond: Respond,
        refuse: Refuse | None = None,
        *,
        ticket: int | None = None,
        admit: Admit | None = None,
    ) -> None:
        """Decide ``command`` and respond when the decision is durable; call ``refusal`` first.

        See ``Submission``.
        """
        self._runner.submit(Submission(key, command, respond, refuse, ticket, admit))

    def machine_of(self, group_id: str) -> GroupShard:
        """Return the machine that has a group, for reading; call ``refusal`` first."""
        return self.log.shard_of(group_id).machine

    @property
    def refusals(self) -> int:
        """Number of refused batches of these logs."""
        return self.log.refusals

    async def durable(self, refusals: int | None = None) -> None:
        """Wait until the present state of the machines is durable; raises KafkaError if refused.

        ``refusals``: their number when the caller started to read, if it has let others run since.
        """
        await self.log.durable(ErrorCode.COORDINATOR_NOT_AVAILABLE, refusals)

    @property
    def machines(self) -> list[GroupShard]:
        """Machines of all served partitions, for reading."""
        return self.log.machines

    def write_marker(self, partition: int, marker: TransactionMarker) -> None:
        """Append the marker of a transaction that committed offsets; raises Rejected, KafkaError.

        Commands that come after it see the offsets, or wait until they do (R5).
        """
        shard = self.log.shard_at(partition) if self.is_coordinator() else None
        if shard is None or not shard.is_loaded:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        shard.log.append_marker(marker)
        self._runner.end_transaction(shard, marker.producer_id, commit=marker.commit)

    # ------------------------------------------------------------------------------------- upkeep

    def expire_offsets(self) -> None:
        """Remove offsets that were unused for long, and empty groups without offsets."""
        self._submit_each(self._group_ids(), lambda key: ExpireOffsets(key, self.image))

    def forget_topic(self, name: str) -> None:
        """Drop the offsets of a deleted topic, or all groups if it is the groups' own topic."""
        if not self.is_coordinator():
            return
        self._submit_each(
            self._group_ids(),
            lambda key: TopicsDeleted(key, self.image),
            lambda key: self._offsets_of(key).holds_topic(key, name),
        )

    def has_many_offsets(self, group_ids: Sequence[str]) -> bool:
        """Return whether the offsets of several groups together are too many for one turn.

        For a single group its state machine decides that.
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
        return self.machine_of(group_id).offsets

    def _group_ids(self) -> list[str]:
        return [key for machine in self.machines for key in machine.keys()]  # noqa: SIM118

    def _submit_each(
        self,
        group_ids: list[str],
        make: Callable[[str], Command],
        concerns: Callable[[str], bool] = lambda _group_id: True,
    ) -> None:
        """Submit a command for each group that it ``concerns``, in slices."""

        def steps() -> Iterator[None]:
            for group_id in group_ids:
                if not self.refusal(group_id) and concerns(group_id):
                    self.submit(group_id, make(group_id), lambda _response: None)
                yield

        run_in_turns(self._host.loop, steps())

    def configure(self, config: BrokerConfig) -> None:
        """Use changed settings from the next command on."""
        for machine in self.machines:
            machine.config = group_config(config, self.consumer_times)

    def consumer_times(self, group_id: str) -> ConsumerTimes:
        """Return the settings of one consumer group: its own, or else the broker's."""
        session_ms, heartbeat_ms, assignment_ms = (
            self._catalogue.configs.group_value(group_id, f"consumer.{name}.ms")
            for name in ("session.timeout", "heartbeat.interval", "assignment.interval")
        )
        assert isinstance(session_ms, int)
        assert isinstance(heartbeat_ms, int)
        assert isinstance(assignment_ms, int)
        return ConsumerTimes(session_ms, heartbeat_ms, assignment_ms)


def _topic_settings(config: BrokerConfig) -> TopicSettings:
    return TopicSettings(
        config.offsets_topic_num_partitions, config.offsets_topic_segment_bytes, "producer"
    )


def group_config(
    config: BrokerConfig, consumer_times: Callable[[str], ConsumerTimes]
) -> GroupConfig:
    """Return the part of the broker's configuration that the group coordinator uses."""
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
    """Return the client of the request, and the request's version."""
    return Caller(context.client_id or "", context.connection.peer_host, context.api_version)
