"""Heartbeat and LeaveGroup, and the removal of members without heartbeats."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from barnabas.coordinator.decision import NOTHING, Decision, Effect, Now, Schedule, Timer
from barnabas.coordinator.groups.classic.group import JOIN, SESSION, SIZE, SYNC, ClassicGroup
from barnabas.coordinator.groups.classic.rebalance import (
    complete_join,
    complete_join_if_all_are_there,
    join_time_is_up,
    prepare_rebalance,
    rebalance_or_resume,
)
from barnabas.coordinator.groups.classic.states import State
from barnabas.coordinator.groups.classic.turn import Turn
from barnabas.coordinator.groups.commands import Heartbeat, LeaveGroup, TimerExpired
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.heartbeat import HeartbeatResponse
from barnabas.protocol.messages.leave_group import (
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)

if TYPE_CHECKING:
    from barnabas.coordinator.groups.group_table import GroupTable

SEVERAL_MEMBERS_SINCE: Final = 3
"""First version of LeaveGroup that can name several members."""


def decide_heartbeat_without_group(shard: GroupTable, command: Heartbeat, now: Now) -> Decision:
    """Refuse the heartbeat of a member of a group that does not exist."""
    del shard, command, now
    return Decision(HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))


def decide_heartbeat(shard: GroupTable, command: Heartbeat, now: Now) -> Decision:
    """Restart the member's session, and report a rebalance to it."""
    group = shard.groups[command.group_id]
    assert isinstance(group, ClassicGroup)
    request = command.request
    code = group.refuse_member(request.member_id, request.group_instance_id)
    if not code and request.generation_id != group.generation:
        code = ErrorCode.ILLEGAL_GENERATION
    if code:
        return Decision(HeartbeatResponse(error_code=code))
    if group.state is State.PREPARING_REBALANCE:
        code = ErrorCode.REBALANCE_IN_PROGRESS
    session = group.session_timer(group.members[request.member_id], now)
    # A rebalance has no record before it is complete, and the member knows its generation.
    return Decision(HeartbeatResponse(error_code=code), effects=(session,), is_known=True)


def decide_leave_without_group(shard: GroupTable, command: LeaveGroup, now: Now) -> Decision:
    """Refuse to remove members of a group that does not exist."""
    del shard, now
    code = ErrorCode.UNKNOWN_MEMBER_ID
    return Decision(LeaveGroupResponse(members=[_left(each, code) for each in _leaving(command)]))


def decide_leave(shard: GroupTable, command: LeaveGroup, now: Now) -> Decision:
    """Remove members; the others rebalance once for all of them."""
    group = shard.groups[command.group_id]
    assert isinstance(group, ClassicGroup)
    turn = Turn(group, shard.config, now)
    answers = [_left(each, _leave(turn, each)) for each in _leaving(command)]
    response = LeaveGroupResponse(members=answers)
    if all(answer.error_code for answer in answers):
        return turn.refusal(response)
    if group.state is State.PREPARING_REBALANCE:
        complete_join_if_all_are_there(turn)
    elif group.state is not State.EMPTY:
        rebalance_or_resume(turn)
    return turn.decision(response)


def _leaving(command: LeaveGroup) -> list[MemberIdentity]:
    """Return the members of a request; before version 3 a request names one member."""
    if command.caller.api_version < SEVERAL_MEMBERS_SINCE:
        return [MemberIdentity(command.request.member_id)]
    return command.request.members


def _left(member: MemberIdentity, code: ErrorCode) -> MemberResponse:
    return MemberResponse(member.member_id, member.group_instance_id, code)


def _leave(turn: Turn, leaving: MemberIdentity) -> ErrorCode:
    group = turn.group
    member_id = leaving.member_id
    if not member_id:
        # An administrator removes a static member by its instance id alone.
        member_id = group.static_members.get(leaving.group_instance_id or "", "")
    if member_id not in group.pending:
        code = group.refuse_member(member_id, leaving.group_instance_id)
        if code:
            return code
    turn.remove(member_id)
    return ErrorCode.NONE


def decide_timer_without_group(shard: GroupTable, command: TimerExpired, now: Now) -> Decision:
    """Ignore the timers of a group that does not exist any more."""
    del shard, command, now
    return NOTHING


def decide_timer(shard: GroupTable, command: TimerExpired, now: Now) -> Decision:
    """Continue without the members whose timers have expired."""
    group = shard.groups[command.group_id]
    assert isinstance(group, ClassicGroup)
    turn = Turn(group, shard.config, now)
    timer = command.timer
    if timer.name == SESSION:
        return _session_is_over(turn, timer.member_id)
    if timer.name == JOIN and group.state is State.PREPARING_REBALANCE:
        join_time_is_up(turn)
        return turn.decision()
    if timer.name == SYNC and group.unsynced:
        for member_id in group.unsynced:
            turn.remove(member_id)
        prepare_rebalance(turn)
        return turn.decision()
    if timer.name == SIZE and group.state is State.STABLE:
        prepare_rebalance(turn)
        return turn.decision()
    return NOTHING


def _session_is_over(turn: Turn, member_id: str) -> Decision:
    group = turn.group
    if member_id not in group.pending:
        member = group.members.get(member_id)
        if member is None:
            return NOTHING
        waits = member_id in group.joining or member_id in group.syncing
        if waits and not member.is_new:
            return NOTHING  # It waits for the others; its session starts again with its response.
    was_member = member_id in group.members
    turn.remove(member_id)
    if group.state is State.PREPARING_REBALANCE:
        if group.all_have_joined:
            complete_join(turn)
    elif was_member:
        rebalance_or_resume(turn)
    return turn.decision()


def begin(shard: GroupTable, now: Now) -> Iterable[Effect]:
    """Restart all members' sessions, because the broker could not receive heartbeats."""
    for group in shard.groups.values():
        if isinstance(group, ClassicGroup):
            for member in group.members.values():
                yield group.session_timer(member, now)
            if len(group.members) > shard.config.max_size:
                # The limit is lower than before: the last member to join the rebalance is refused.
                yield Schedule(Timer(group.group_id, SIZE), now.tick_ms)
