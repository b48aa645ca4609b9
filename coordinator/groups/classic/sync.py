"""SyncGroup: the leader sends the assignments, each member receives its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.coordinator.decision import Decision, Now
from barnabas.coordinator.groups.classic.group import SYNC, ClassicGroup
from barnabas.coordinator.groups.classic.responses import synced
from barnabas.coordinator.groups.classic.states import State
from barnabas.coordinator.groups.classic.turn import Turn
from barnabas.coordinator.groups.commands import SyncGroup
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from barnabas.coordinator.groups.group_table import GroupTable


def decide_sync_without_group(shard: GroupTable, command: SyncGroup, now: Now) -> Decision:
    """Refuse SyncGroup for a group that does not exist."""
    del shard, command, now
    return Decision(SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))


def decide_sync(shard: GroupTable, command: SyncGroup, now: Now) -> Decision:
    """Return the assignment, store the leader's assignments, or park the member."""
    group = shard.groups[command.group_id]
    assert isinstance(group, ClassicGroup)
    code = _refusal(group, command.request)
    if code:
        return Decision(SyncGroupResponse(error_code=code))
    member_id = command.request.member_id
    if group.state is State.STABLE:
        response = synced(group, group.members[member_id])
        if member_id not in group.unsynced:
            return Decision(response)
        turn = Turn(group, shard.config, now)
        _mark_synced(turn, member_id)
        return turn.decision(response)
    turn = Turn(group, shard.config, now)
    turn.park_sync(member_id, command.ticket)
    _mark_synced(turn, member_id)
    if member_id == group.leader_id:
        _take_assignments(turn, command.request)
    return turn.decision()


def _refusal(group: ClassicGroup, request: SyncGroupRequest) -> ErrorCode:
    if group.is_empty:
        return ErrorCode.UNKNOWN_MEMBER_ID
    code = group.refuse_member(request.member_id, request.group_instance_id)
    if code:
        return code
    if request.generation_id != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if _differs(request.protocol_type, group.protocol_type) or _differs(
        request.protocol_name, group.protocol_name
    ):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if group.state is State.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def _differs(requested: str | None, actual: str | None) -> bool:
    return requested is not None and actual is not None and requested != actual


def _mark_synced(turn: Turn, member_id: str) -> None:
    turn.group.unsynced.pop(member_id, None)
    if not turn.group.unsynced:
        turn.cancel(SYNC)


def _take_assignments(turn: Turn, request: SyncGroupRequest) -> None:
    """Write the generation, and send each waiting member its assignment."""
    group = turn.group
    turn.assign({each.member_id: bytes(each.assignment) for each in request.assignments})
    turn.become(State.STABLE)
    turn.persist()
    for member in group.members.values():
        if turn.answer_sync(member.member_id, synced(group, member)):
            # No member had to send heartbeats while it waited.
            turn.start_session(member)
