"""One group coordinator without a broker: its records, its timers, its parked answers.

Every command is decided twice, and what a restart would give is compared after every step.
"""

from __future__ import annotations

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
from barnabas.coordinator.groups.classic.group import JOIN, SESSION, SYNC, ClassicGroup
from barnabas.coordinator.groups.classic.states import PREVIOUS, State
from barnabas.coordinator.groups.commands import (
    NO_TOPICS,
    Caller,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    SyncGroup,
    TimerExpired,
)
from barnabas.coordinator.groups.config import GroupConfig
from barnabas.coordinator.groups.shard import GroupShard
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

GROUP = "g"
WALL_MS = 1_700_000_000_000
CONFIG = GroupConfig(initial_rebalance_delay_ms=3_000, max_size=3)
SESSION_MS = 10_000
REBALANCE_MS = 60_000
SUBSCRIPTION = b"\0\0" + b"\0\0\0\1" + b"\0\1t" + b"\xff\xff\xff\xff"
"""The metadata of a consumer's protocol: a subscription to topic t."""

Log = list[tuple[bytes, bytes | None]]


class Run:
    """A shard with everything around it in plain sight."""

    def __init__(self, config: GroupConfig = CONFIG) -> None:
        self.config = config
        self.shard = GroupShard(config)
        self.log: Log = []
        self.timers: dict[Timer, int] = {}
        self.parked: set[int] = set()
        self.answers: dict[int, Any] = {}
        self.tick_ms = 0
        self.tickets = 0

    @property
    def now(self) -> Now:
        return Now(WALL_MS + self.tick_ms, self.tick_ms)

    @property
    def group(self) -> ClassicGroup | None:
        group = self.shard.groups.get(GROUP)
        assert group is None or isinstance(group, ClassicGroup)
        return group

    def ticket(self) -> int:
        self.tickets += 1
        return self.tickets

    # --------------------------------------------------------------------------------- commands

    def do(self, command: Any) -> Decision:
        """Decide a command and apply the decision; responses are stored by ticket."""
        decision = self.shard.decide(command, self.now)
        assert self.shard.decide(command, self.now) == decision, "decide has changed something"
        for record in decision.records:
            self.append(record)
        before = self.group
        for change in decision.changes:
            self.shard.change(change)
        self.check_transition(before)
        ticket = getattr(command, "ticket", None)
        if decision.response is None and ticket is not None:
            self.parked.add(ticket)
        for effect in decision.effects:
            if isinstance(effect, Schedule):
                assert effect.at_tick_ms >= self.tick_ms
                self.timers[effect.timer] = effect.at_tick_ms
            elif isinstance(effect, Answer):
                self.parked.remove(effect.ticket)
                self.answers[effect.ticket] = effect.response
            else:
                self.timers.pop(effect.timer, None)
        if decision.response is not None and ticket is not None:
            self.answers[ticket] = decision.response
        self.check()
        return decision

    def append(self, record: Record) -> None:
        """Write a record, and apply it as it is read back."""
        self.log.append(record.encode())
        stored = decode_record("__consumer_offsets", *self.log[-1])
        assert stored is not None
        self.shard.apply(stored, len(self.log) - 1)

    def join(
        self,
        member_id: str = "",
        *,
        version: int = 9,
        instance: str | None = None,
        protocols: str = "range",
        protocol_type: str = "consumer",
        new_id: str = "new",
        metadata: bytes = SUBSCRIPTION,
    ) -> JoinGroup:
        request = JoinGroupRequest(
            GROUP,
            SESSION_MS,
            REBALANCE_MS,
            member_id,
            instance,
            protocol_type,
            [JoinGroupRequestProtocol(name, metadata) for name in protocols.split("+") if name],
        )
        return JoinGroup(Caller("client", "/host", version), request, self.ticket(), new_id)

    def sync(
        self,
        member_id: str,
        generation: int,
        *,
        version: int = 5,
        instance: str | None = None,
        protocol: str | None = None,
        protocol_type: str | None = None,
        assignments: dict[str, bytes] | None = None,
    ) -> SyncGroup:
        given = [SyncGroupRequestAssignment(*each) for each in (assignments or {}).items()]
        request = SyncGroupRequest(
            GROUP, generation, member_id, instance, protocol_type, protocol, given
        )
        return SyncGroup(Caller("client", "/host", version), request, self.ticket())

    def heartbeat(self, member_id: str, generation: int, instance: str | None = None) -> Heartbeat:
        request = HeartbeatRequest(GROUP, generation, member_id, instance)
        return Heartbeat(Caller("client", "/host", 4), request)

    def leave(self, *members: tuple[str, str | None], version: int = 5) -> LeaveGroup:
        identities = [MemberIdentity(*each) for each in members]
        request = LeaveGroupRequest(GROUP, members[0][0], identities)
        return LeaveGroup(Caller("client", "/host", version), request)

    def expire(self, timer: Timer) -> Decision:
        """Expire a timer at its time, or at once if it is not scheduled."""
        self.tick_ms = max(self.tick_ms, self.timers.pop(timer, 0))
        return self.do(TimerExpired(timer, NO_TOPICS))

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
        """Start again from the log; waiting clients get no response."""
        self.shard = self.replayed()
        self.parked.clear()
        self.timers.clear()
        for effect in self.shard.begin(self.now):
            assert isinstance(effect, Schedule)
            self.timers[effect.timer] = effect.at_tick_ms
        self.check()

    def check_transition(self, before: ClassicGroup | None) -> None:
        group = self.group
        if group is None or before is None or before is group:
            return
        # Several steps of one decision: Stable, PreparingRebalance, CompletingRebalance ...
        reachable = {before.state}
        while True:
            more = reachable | {each for each in State if PREVIOUS[each] & reachable}
            if more == reachable:
                break
            reachable = more
        assert group.state in reachable
        assert group.previous_state in PREVIOUS[group.state] | {State.EMPTY}
        assert group.generation >= before.generation

    def check(self) -> None:
        """Check the invariants of every group between two commands."""
        replayed = self.replayed()
        assert replayed.groups.keys() == self.shard.groups.keys()
        group = self.group
        if group is None:
            assert not self.parked
            return
        again = replayed.groups[GROUP]
        assert isinstance(again, ClassicGroup)
        assert again.stored is not None
        assert group.stored is not None
        # A record that was read does not say which version it was.
        assert again.stored[:3] == group.stored[:3], "the hard state is what the log says"
        if group.state in {State.EMPTY, State.STABLE}:
            assert hard(again) == hard(group)
        self._check_members(group)
        self._check_waiting(group)
        self._check_timers(group)

    def _check_members(self, group: ClassicGroup) -> None:
        members = group.members
        assert (group.state is State.EMPTY) <= (not members)
        assert all(member.member_id == name for name, member in members.items())
        assert group.static_members == {
            member.instance_id: name for name, member in members.items() if member.instance_id
        }
        supporters: dict[str, int] = {}
        for member in members.values():
            for name, _ in member.protocols:
                supporters[name] = supporters.get(name, 0) + 1
        assert group.supporters == supporters
        assert not members.keys() & group.pending.keys()
        if members:
            assert group.leader_id in members
            assert len(members) in supporters.values(), "a protocol that everybody supports"
        if group.state in {State.COMPLETING_REBALANCE, State.STABLE}:
            assert supporters[group.protocol_name] == len(members)

    def _check_waiting(self, group: ClassicGroup) -> None:
        assert self.parked == {*group.joining.values(), *group.syncing.values()}
        assert not group.joining or group.state is State.PREPARING_REBALANCE
        assert not group.syncing or group.state is State.COMPLETING_REBALANCE
        assert group.joining.keys() | group.syncing.keys() <= group.members.keys()
        assert group.unsynced.keys() <= group.members.keys()
        assert not group.unsynced.keys() & group.syncing.keys()

    def _check_timers(self, group: ClassicGroup) -> None:
        """Check that each wait of the group has a timer."""
        names = {timer.name for timer in self.timers}
        assert (JOIN in names) == (group.state is State.PREPARING_REBALANCE)
        assert (SYNC in names) == bool(group.unsynced)
        if group.state is State.COMPLETING_REBALANCE:
            assert group.leader_id in group.unsynced
        sessions = {timer.member_id for timer in self.timers if timer.name == SESSION}
        awaited = group.members.keys() - group.joining.keys() - group.syncing.keys()
        assert sessions >= awaited | group.pending.keys()
        assert sessions <= group.members.keys() | group.pending.keys()


def hard(group: ClassicGroup) -> tuple[Any, ...]:
    """Return the state of a stable group that must survive a restart."""
    return (
        group.state,
        group.state_since_ms,
        group.generation,
        group.protocol_type,
        group.protocol_name,
        group.leader_id,
        group.static_members,
        group.topics,
        {
            name: (
                member.instance_id,
                member.client_id,
                member.client_host,
                member.rebalance_timeout_ms,
                member.session_timeout_ms,
                member.metadata(group.protocol_name),
                member.assignment,
            )
            for name, member in group.members.items()
        },
    )
