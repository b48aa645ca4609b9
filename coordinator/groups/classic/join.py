"""JoinGroup: admission of members to a classic group, and their ids."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from barnabas.coordinator.decision import Decision, Now, Record
from barnabas.coordinator.groups.classic.group import ClassicGroup, Member
from barnabas.coordinator.groups.classic.rebalance import (
    complete_join_if_all_are_there,
    prepare_rebalance,
    rebalance_or_resume,
)
from barnabas.coordinator.groups.classic.responses import everybody, generation_of, join_error
from barnabas.coordinator.groups.classic.states import State
from barnabas.coordinator.groups.classic.turn import Turn
from barnabas.coordinator.groups.commands import JoinGroup
from barnabas.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.coordinator.groups.config import GroupConfig
    from barnabas.coordinator.groups.group_table import GroupTable

MEMBER_ID_REQUIRED_SINCE: Final = 4
"""First version in which a new dynamic member receives its id first, and joins with it (KIP-394). A
client that loses the response and repeats the request leaves an id that expires, and not a member
for which the others wait."""
SKIP_ASSIGNMENT_SINCE: Final = 9
"""First version in which a leader can learn that the assignments are unchanged (KIP-814)."""
REBALANCE_TIMEOUT_SINCE: Final = 1
NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 5 * 60 * 1000
"""Maximum time that a JoinGroup of a new member waits. It cannot send heartbeats, and a client that
gave up and sent the request again is another member: the first one must not stay forever."""
PENDING_MEMBERS_MAX: Final = 10_000
"""Maximum number of ids given out in a group and not yet used. Kafka has no limit; a client with so
many is hostile, or joins in a loop."""


def decide_join(shard: GroupTable, command: JoinGroup, now: Now) -> Decision:
    """Respond, or park the request until the next generation."""
    group = shard.groups.get(command.group_id)
    if group is None:
        return join_new_group(shard.config, command, now)
    assert isinstance(group, ClassicGroup)
    member_id = command.request.member_id
    turn = Turn(group, shard.config, now)
    if _has_room(group, member_id, shard.config):
        return _join(turn, command)
    refused = join_error(ErrorCode.GROUP_MAX_SIZE_REACHED)
    if member_id not in group.members and member_id not in group.pending:
        return Decision(refused)
    turn.remove(member_id)
    return turn.decision(refused)


def join_new_group(
    config: GroupConfig, command: JoinGroup, now: Now, records: Iterable[Record] = ()
) -> Decision:
    """Create a classic group for its first member; ``records`` remove the previous group.

    As in Kafka the group exists from then on, even if this member cannot be in it.
    """
    if command.request.member_id:
        return Decision(join_error(ErrorCode.UNKNOWN_MEMBER_ID, command.request.member_id))
    group = ClassicGroup(command.group_id, state_since_ms=now.wall_ms)
    turn = Turn(group, config, now, records)
    turn.persist()
    return _join(turn, command)


def _has_room(group: ClassicGroup, member_id: str, config: GroupConfig) -> bool:
    """Return whether the group has room for another member; a waiting member counts."""
    if group.state is State.EMPTY:
        return True
    if group.state is State.PREPARING_REBALANCE:
        # The last member to join is refused, known or not: the limit may have been lowered.
        return member_id in group.joining or len(group.joining) < config.max_size
    return member_id in group.members or len(group.members) < config.max_size


def _join(turn: Turn, command: JoinGroup) -> Decision:
    request = command.request
    group = turn.group
    if not group.supports(request.protocol_type, (each.name for each in request.protocols)):
        return turn.refusal(join_error(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id))
    if not request.member_id:
        return _join_without_id(turn, command)
    if request.member_id in group.pending:
        if request.group_instance_id is not None:
            # Ids are never given out to static members in advance; Kafka fails here as well.
            return Decision(join_error(ErrorCode.UNKNOWN_SERVER_ERROR))
        return _add_member(turn, command, request.member_id)
    code = group.refuse_member(request.member_id, request.group_instance_id)
    if code:
        return Decision(join_error(code, request.member_id))
    return _join_again(turn, command)


def _join_without_id(turn: Turn, command: JoinGroup) -> Decision:
    request = command.request
    group = turn.group
    instance_id = request.group_instance_id
    if instance_id is not None:
        if instance_id in group.static_members:
            return _restart_static_member(turn, command, instance_id)
        return _add_member(turn, command, command.new_member_id)
    if command.caller.api_version < MEMBER_ID_REQUIRED_SINCE:
        return _add_member(turn, command, command.new_member_id)
    if len(group.pending) >= PENDING_MEMBERS_MAX:
        return turn.refusal(join_error(ErrorCode.GROUP_MAX_SIZE_REACHED))
    group.pending[command.new_member_id] = None
    turn.expect(command.new_member_id, request.session_timeout_ms)
    return turn.decision(join_error(ErrorCode.MEMBER_ID_REQUIRED, command.new_member_id))


def _join_again(turn: Turn, command: JoinGroup) -> Decision:
    """Join a known member again, in a rebalance or as the cause of one."""
    group = turn.group
    member_id = command.request.member_id
    member = group.members[member_id]
    is_leader = member_id == group.leader_id
    changed = _update(member, command)
    if changed.protocols == member.protocols:
        # Its metadata are the same: its first response was lost, or it repeats the request.
        if group.state is State.COMPLETING_REBALANCE:
            members = everybody(group) if is_leader else None
            return Decision(generation_of(group, member_id, members=members))
        # A leader that joins again has a reason outside of the members' metadata, new partitions
        # for instance, and wants to assign again.
        if group.state is State.STABLE and not is_leader:
            return Decision(generation_of(group, member_id))
    turn.update(changed)
    turn.park_join(member_id, command.ticket)
    rebalance_or_resume(turn)
    return turn.decision()


def _add_member(turn: Turn, command: JoinGroup, member_id: str) -> Decision:
    group = turn.group
    if group.state is State.PREPARING_REBALANCE and group.previous_state is State.EMPTY:
        group.new_member_added = True
    member = Member(
        member_id,
        command.request.group_instance_id,
        command.caller.client_id,
        command.caller.client_host,
        _rebalance_timeout_ms(command),
        command.request.session_timeout_ms,
        _protocols(command),
        is_new=True,
    )
    turn.add(member, command.request.protocol_type)
    turn.park_join(member_id, command.ticket)
    turn.expect(member_id, NEW_MEMBER_JOIN_TIMEOUT_MS)
    rebalance_or_resume(turn)
    return turn.decision()


def _restart_static_member(turn: Turn, command: JoinGroup, instance_id: str) -> Decision:
    """Give a static member a new ID; a stable group does not rebalance."""
    group = turn.group
    old_leader_id = group.leader_id
    old_id = group.static_members[instance_id]
    member = _update(group.members[old_id], command)
    member = member._replace(member_id=command.new_member_id, is_new=False)
    turn.replace_static(old_id, member)
    turn.start_session(member)
    if group.state is State.STABLE and group.selected_protocol() == group.protocol_name:
        turn.persist()
        return turn.decision(_as_before(turn, command, old_leader_id))
    turn.park_join(member.member_id, command.ticket)
    if group.state is State.STABLE:
        rebalance_or_resume(turn)
    elif group.state is State.COMPLETING_REBALANCE:
        # The leader may be assigning to the old id right now.
        prepare_rebalance(turn)
    else:
        complete_join_if_all_are_there(turn)
    return turn.decision()


def _as_before(turn: Turn, command: JoinGroup, old_leader_id: str | None) -> object:
    """Return the present generation to a restarted static member."""
    group = turn.group
    member_id = command.new_member_id
    if command.caller.api_version < SKIP_ASSIGNMENT_SINCE:
        # Named as the leader, the client would assign; with the old id it only fetches
        # (KAFKA-13435).
        return generation_of(group, member_id, leader_id=old_leader_id)
    is_leader = member_id == group.leader_id
    members = everybody(group) if is_leader else None
    return generation_of(group, member_id, members=members, skip_assignment=is_leader)


def _update(member: Member, command: JoinGroup) -> Member:
    return member._replace(
        protocols=_protocols(command),
        rebalance_timeout_ms=_rebalance_timeout_ms(command),
        session_timeout_ms=command.request.session_timeout_ms,
    )


def _rebalance_timeout_ms(command: JoinGroup) -> int:
    request = command.request
    if command.caller.api_version < REBALANCE_TIMEOUT_SINCE:
        return request.session_timeout_ms
    return request.rebalance_timeout_ms


def _protocols(command: JoinGroup) -> tuple[tuple[str, bytes], ...]:
    """Return the member's protocols; of a repeated name Kafka keeps the first."""
    protocols: dict[str, bytes] = {}
    for protocol in command.request.protocols:
        protocols.setdefault(protocol.name, bytes(protocol.metadata))
    return tuple(protocols.items())
