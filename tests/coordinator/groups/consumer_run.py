"""One consumer group without a broker: its records, its timers, its topics, its clients' words.

Every command is decided twice; after every step the log is replayed and must give the same group,
and what must always hold of a consumer group is checked.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from barnabas.coordinator.decision import (
    Answer,
    Decision,
    Now,
    Record,
    Schedule,
    Timer,
    decode_record,
)
from barnabas.coordinator.groups.classic.group import ClassicGroup
from barnabas.coordinator.groups.commands import (
    Caller,
    ConsumerGroupHeartbeat,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    SyncGroup,
    TimerExpired,
)
from barnabas.coordinator.groups.config import ConsumerTimes, GroupConfig
from barnabas.coordinator.groups.consumer.group import ConsumerGroup
from barnabas.coordinator.groups.consumer.member import Member, MemberState
from barnabas.coordinator.groups.shard import GroupShard
from barnabas.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from barnabas.protocol.messages.consumer_protocol_assignment import CONSUMER_PROTOCOL_ASSIGNMENT
from barnabas.protocol.messages.consumer_protocol_subscription import (
    CONSUMER_PROTOCOL_SUBSCRIPTION,
    ConsumerProtocolSubscription,
)
from barnabas.protocol.messages.consumer_protocol_subscription import (
    TopicPartition as OwnedPartitions,
)
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.sync_group import SyncGroupRequest

GROUP = "g"
WALL_MS = 1_700_000_000_000
SESSION_MS = 45_000
REBALANCE_MS = 60_000
CLASSIC_SESSION_MS = 10_000
ASSIGNMENT_INTERVAL_MS = 1_000
CONFIG = GroupConfig(
    initial_rebalance_delay_ms=0,
    consumer_max_size=3,
    consumer_times=lambda _group_id: ConsumerTimes(SESSION_MS, 5_000, ASSIGNMENT_INTERVAL_MS),
)

GONE = b"gone".ljust(16, b"-")
"""Id of a topic that was deleted."""

Owned = dict[str, set[int]]
"""Partitions by the names of their topics."""


class Topics:
    """The topics that exist, with partitions that grow."""

    def __init__(self, **counts: int) -> None:
        self.counts = dict(counts)
        self.ids = {name: name.encode().ljust(16, b"-") for name in counts}
        self._version = 1

    def version(self) -> int:
        return self._version

    def names(self) -> Iterable[str]:
        return list(self.counts)

    def topic_id(self, name: str) -> bytes | None:
        return self.ids.get(name)

    def name(self, topic_id: bytes) -> str | None:
        return next((name for name, each in self.ids.items() if each == topic_id), None)

    def partition_count(self, name: str) -> int:
        return self.counts.get(name, 0)

    def grow(self, name: str, count: int) -> None:
        self.counts[name] = count
        self._version += 1

    def create(self, name: str, count: int) -> None:
        self.ids[name] = f"{name}{self._version}".encode().ljust(16, b"-")
        self.grow(name, count)

    def delete(self, name: str) -> None:
        del self.counts[name], self.ids[name]
        self._version += 1


class Run:
    """A shard with everything around it in plain sight."""

    def __init__(self, config: GroupConfig = CONFIG) -> None:
        self.config = config
        self.shard = GroupShard(config)
        self.again = GroupShard(config)
        """A machine as after a restart: it gets the records only."""
        self.topics = Topics(t=4, u=2)
        self.log: list[tuple[bytes, bytes | None]] = []
        self.timers: dict[Timer, int] = {}
        self.parked: set[int] = set()
        self.has: dict[str, Owned] = {}
        """The last assignment of each member: a correct client owns at most that."""
        self.tick_ms = 10_000
        self.tickets = 0
        self.epochs_seen: dict[str, int] = {}

    @property
    def now(self) -> Now:
        return Now(WALL_MS + self.tick_ms, self.tick_ms)

    @property
    def group(self) -> ConsumerGroup | None:
        group = self.shard.groups.get(GROUP)
        return group if isinstance(group, ConsumerGroup) else None

    @property
    def members(self) -> dict[str, Member]:
        return {} if self.group is None else self.group.members

    def later(self, delay_ms: int = ASSIGNMENT_INTERVAL_MS) -> None:
        """Advance the time without an event."""
        self.tick_ms += delay_ms

    # --------------------------------------------------------------------------------- commands

    def do(self, command: Any) -> Decision:
        """Decide a command and apply the decision."""
        decision = self.shard.decide(command, self.now)
        assert self.shard.decide(command, self.now) == decision, "decide has changed something"
        for record in decision.records:
            self._append(record)
        for change in decision.changes:
            self.shard.change(change)
        if decision.response is None and hasattr(command, "ticket"):
            self.parked.add(command.ticket)
        for effect in decision.effects:
            if isinstance(effect, Schedule):
                assert effect.at_tick_ms >= self.tick_ms
                self.timers[effect.timer] = effect.at_tick_ms
            elif isinstance(effect, Answer):
                self.parked.remove(effect.ticket)
            else:
                self.timers.pop(effect.timer, None)
        self._hear(decision.response)
        self.check()
        return decision

    def _hear(self, response: Any) -> None:
        if isinstance(response, ConsumerGroupHeartbeatResponse) and response.assignment:
            owned = {
                name: set(topic.partitions)
                for topic in response.assignment.topic_partitions
                if (name := self.topics.name(topic.topic_id)) is not None
            }
            self.has[str(response.member_id)] = owned

    def _append(self, record: Record) -> None:
        """Write a record, and apply it as it is read back."""
        self.log.append(record.encode())
        stored = decode_record("__consumer_offsets", *self.log[-1])
        assert stored is not None
        self.shard.apply(stored, len(self.log) - 1)
        self.again.apply(stored, len(self.log) - 1)

    def heartbeat(
        self,
        member: str,
        epoch: int | None = None,
        *,
        owned: Owned | None = None,
        names: str | None = None,
        instance: str | None = None,
        version: int = 1,
        **more: Any,
    ) -> ConsumerGroupHeartbeat:
        """A heartbeat; without ``epoch`` it names the one that the member has."""
        if epoch is None:
            epoch = self.members[member].member_epoch if member in self.members else 1
        topics = None
        if owned is not None:
            topics = [
                TopicPartitions(self.topics.ids.get(each, GONE), sorted(owned[each]))
                for each in owned
            ]
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=member,
            member_epoch=epoch,
            instance_id=instance,
            subscribed_topic_names=None if names is None else names.split(),
            topic_partitions=topics,
            **more,
        )
        return ConsumerGroupHeartbeat(self._caller(version), request, "made-up", self.topics)

    def obedient(self, member: str, **more: Any) -> ConsumerGroupHeartbeat:
        """The heartbeat of a member that owns what it was last told to own."""
        owned = self.has.get(member, {})
        known = {name: those for name, those in owned.items() if name in self.topics.ids}
        return self.heartbeat(member, owned=known, **more)

    def join(self, member: str, names: str | None = "t", **more: Any) -> ConsumerGroupHeartbeat:
        options = {"rebalance_timeout_ms": REBALANCE_MS, "owned": {}, **more}
        return self.heartbeat(member, 0, names=names, **options)

    def join_classic(
        self,
        member: str = "",
        names: str = "t",
        *,
        owned: Owned | None = None,
        instance: str | None = None,
        protocols: str = "range",
        new_id: str = "new",
        version: int = 9,
    ) -> JoinGroup:
        listed = [OwnedPartitions(name, sorted(those)) for name, those in (owned or {}).items()]
        message = ConsumerProtocolSubscription(names.split(), None, listed)
        chunks = CONSUMER_PROTOCOL_SUBSCRIPTION.encode(message, 1, bytearray(b"\0\1"))
        metadata = b"".join(chunks)
        request = JoinGroupRequest(
            GROUP,
            CLASSIC_SESSION_MS,
            REBALANCE_MS,
            member,
            instance,
            "consumer",
            [JoinGroupRequestProtocol(name, metadata) for name in protocols.split("+")],
        )
        return JoinGroup(self._caller(version), request, self._ticket(), new_id, self.topics)

    def sync(self, member: str, generation: int | None = None) -> SyncGroup:
        request = SyncGroupRequest(GROUP, self._generation(member, generation), member)
        return SyncGroup(self._caller(5), request, self._ticket(), self.topics)

    def heartbeat_classic(self, member: str, generation: int | None = None) -> Heartbeat:
        request = HeartbeatRequest(GROUP, self._generation(member, generation), member)
        return Heartbeat(self._caller(4), request)

    def leave_classic(self, *members: tuple[str, str | None]) -> LeaveGroup:
        request = LeaveGroupRequest(GROUP, "", [MemberIdentity(*each) for each in members])
        return LeaveGroup(self._caller(5), request, self.topics)

    def expire(self, name: str, member: str = "") -> Decision:
        """Expire a timer at its time, or at once if it is not scheduled."""
        timer = Timer(GROUP, name, member)
        self.tick_ms = max(self.tick_ms, self.timers.pop(timer, 0))
        return self.do(TimerExpired(timer, self.topics))

    def _generation(self, member: str, generation: int | None) -> int:
        if generation is not None:
            return generation
        if member in self.members:
            return self.members[member].member_epoch
        group = self.shard.groups.get(GROUP)
        return group.generation if isinstance(group, ClassicGroup) else 1

    def _caller(self, version: int) -> Caller:
        return Caller("client", "/host", version)

    def _ticket(self) -> int:
        self.tickets += 1
        return self.tickets

    # ----------------------------------------------------------------------------------- checks

    def replayed(self) -> GroupShard:
        """Return the machine after a restart."""
        shard = GroupShard(self.config)
        for offset, (key, value) in enumerate(self.log):
            record = decode_record("__consumer_offsets", key, value)
            assert record is not None
            shard.apply(record, offset)
        return shard

    def restart(self) -> None:
        """Start again from the log."""
        self.shard = self.replayed()
        self.parked.clear()
        self.timers.clear()
        for effect in self.shard.begin(self.now):
            assert isinstance(effect, Schedule)
            self.timers[effect.timer] = effect.at_tick_ms
        self.check()

    def check(self) -> None:
        """Check the invariants between two commands."""
        again = self.again
        assert again.groups.keys() == self.shard.groups.keys()
        group = self.group
        if group is None:
            self.epochs_seen.clear()
            return
        assert hard(again.groups[GROUP]) == hard(group), "a restart would change something"
        self._check_owners(group)
        self._check_epochs(group)
        sessions = {timer.member_id for timer in self.timers if timer.name == "session"}
        assert sessions >= group.members.keys(), "somebody could stay for ever"
        for member in group.members.values():
            if member.state is MemberState.UNREVOKED_PARTITIONS and member.classic is None:
                timed = Timer(GROUP, "rebalance", member.member_id) in self.timers
                assert timed or member.has_left_for_a_while, "others could wait for ever"

    def _check_owners(self, group: ConsumerGroup) -> None:
        owners: dict[tuple[bytes, int], str] = {}
        for member in group.members.values():
            for part in (member.assigned, member.revoking):
                for topic_id, partitions in part.items():
                    for partition in partitions:
                        owner = owners.setdefault((topic_id, partition), member.member_id)
                        assert owner == member.member_id, "a partition has two owners"
            assert not {
                (topic_id, partition)
                for topic_id, partitions in member.assigned.items()
                for partition in partitions
                if partition in member.revoking.get(topic_id, {})
            }
        for topic_id, partition in owners:
            assert group.is_owned(topic_id, partition)
        given = [
            (topic_id, partition)
            for target in group.targets.values()
            for topic_id, partitions in target.items()
            for partition in partitions
        ]
        assert len(given) == len(set(given)), "a target gives one partition to two members"
        assert group.targets.keys() <= group.members.keys()
        assert group.static_members == {
            member.instance_id: name
            for name, member in group.members.items()
            if member.instance_id is not None
        }

    def _check_epochs(self, group: ConsumerGroup) -> None:
        assert group.assignment_epoch <= group.epoch
        seen = {"": group.epoch, "assignment": group.assignment_epoch}
        for member in group.members.values():
            assert member.member_epoch <= group.epoch
            if member.member_epoch > 0:
                seen[f"member {member.member_id}"] = member.member_epoch
        for what, epoch in seen.items():
            assert epoch >= self.epochs_seen.get(what, 0), f"the epoch of {what} went back"
        kept = {what: epoch for what, epoch in self.epochs_seen.items() if what in seen}
        self.epochs_seen = {**kept, **seen}


def hard(group: Any) -> Any:
    """Return the state of a group that must survive a restart."""
    if isinstance(group, ClassicGroup):
        return group.stored
    return {
        name: value
        for name, value in vars(group).items()
        if name not in {"topics_seen", "topics_matched", "topics_shown", "expected_to_join"}
    }


def assigned_by_sync(response: Any, topics: Topics) -> Owned:
    """Return the partitions that SyncGroup assigned to a classic member."""
    found = CONSUMER_PROTOCOL_ASSIGNMENT.decode(memoryview(response.assignment), 2, 1)
    assert {each.name for each in fields(found)}
    return {
        topic.topic: set(topic.partitions)
        for topic in found.assigned_partitions
        if topic.topic in topics.ids
    }
