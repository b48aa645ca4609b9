"""The steps of a classic group to its next generation.

1. A reason: a member joins, leaves or changes its metadata. The group is PreparingRebalance, and
   the members learn of it from their next heartbeat.
2. All members join; or the time is up, and dynamic members that have not joined are removed. The
   generation is incremented, the protocol is chosen, all JoinGroups are completed:
   CompletingRebalance.
3. The leader's SyncGroup contains the assignments; they are written, all SyncGroups are completed:
   Stable. A member that does not fetch its assignment in time is removed.

The first members of an empty group are given ``group.initial.rebalance.delay.ms`` to join together.
"""

from __future__ import annotations

from barnabas.coordinator.groups.classic.group import JOIN, SYNC, ClassicGroup
from barnabas.coordinator.groups.classic.records import subscribed_topics
from barnabas.coordinator.groups.classic.responses import everybody, generation_of
from barnabas.coordinator.groups.classic.states import PREVIOUS, State
from barnabas.coordinator.groups.classic.turn import Turn
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.sync_group import SyncGroupResponse


def rebalance_or_resume(turn: Turn) -> None:
    """Start a rebalance, or end the first part of the present one if all have joined."""
    if turn.group.state in PREVIOUS[State.PREPARING_REBALANCE]:
        prepare_rebalance(turn)
    else:
        complete_join_if_all_are_there(turn)


def prepare_rebalance(turn: Turn) -> None:
    """Start to wait for the members."""
    group = turn.group
    if group.state is State.COMPLETING_REBALANCE:
        _call_off_assignment(turn)
    group.unsynced.clear()
    turn.cancel(SYNC)
    was_empty = group.state is State.EMPTY
    turn.become(State.PREPARING_REBALANCE)
    if was_empty:
        delay_ms = turn.config.initial_rebalance_delay_ms
        _wait_for_more(turn, delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))
    elif group.all_have_joined:
        complete_join(turn)
    else:
        _wait_for_members(turn)


def complete_join_if_all_are_there(turn: Turn) -> None:
    """End the first part of a rebalance if all have joined, except that of an empty group."""
    group = turn.group
    if (
        group.state is State.PREPARING_REBALANCE
        and group.previous_state is not State.EMPTY
        and group.all_have_joined
    ):
        complete_join(turn)


def join_time_is_up(turn: Turn) -> None:
    """End the first part of a rebalance, unless new members still join an empty group."""
    group = turn.group
    if group.new_member_added and group.remaining_ms:
        group.new_member_added = False
        delay_ms = min(turn.config.initial_rebalance_delay_ms, group.remaining_ms)
        _wait_for_more(turn, delay_ms, max(group.remaining_ms - group.delay_ms, 0))
    else:
        complete_join(turn)


def complete_join(turn: Turn) -> None:
    """Start the next generation with the members that have joined."""
    group = turn.group
    turn.cancel(JOIN)
    for member in list(group.members.values()):
        if member.instance_id is None and member.member_id not in group.joining:
            turn.remove(member.member_id)
    if group.members and not _elect_leader(group):
        # Only static members are left, and none of them has joined. They keep their places until
        # their sessions end.
        _wait_for_members(turn)
        return
    group.generation += 1
    group.unsynced.clear()
    if group.members:
        _begin_generation(turn)
    else:
        group.protocol_name = None
        group.leader_id = None
        turn.become(State.EMPTY)
        group.topics = subscribed_topics(group)
        turn.persist()


def _begin_generation(turn: Turn) -> None:
    group = turn.group
    group.protocol_name = group.selected_protocol()
    group.topics = subscribed_topics(group)
    turn.become(State.COMPLETING_REBALANCE)
    for member_id, member in group.members.items():
        if member.is_new:
            group.members[member_id] = member.settled()
        members = everybody(group) if member_id == group.leader_id else None
        turn.answer_join(member_id, generation_of(group, member_id, members=members))
        turn.start_session(member)
        group.unsynced[member_id] = None
    turn.schedule(SYNC, group.rebalance_timeout_ms)


def _elect_leader(group: ClassicGroup) -> bool:
    """Keep a joined leader, or elect the first joined member; return False without one."""
    if group.leader_id not in group.joining:
        joined = next((name for name in group.members if name in group.joining), None)
        if joined is None:
            return False
        group.leader_id = joined
    return True


def _wait_for_more(turn: Turn, delay_ms: int, remaining_ms: int) -> None:
    turn.group.delay_ms = delay_ms
    turn.group.remaining_ms = remaining_ms
    turn.schedule(JOIN, delay_ms)


def _wait_for_members(turn: Turn) -> None:
    turn.group.remaining_ms = 0
    turn.schedule(JOIN, turn.group.rebalance_timeout_ms)


def _call_off_assignment(turn: Turn) -> None:
    """Make the members that wait for the leader's assignments join again."""
    turn.assign({})
    for member in turn.group.members.values():
        response = SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
        if turn.answer_sync(member.member_id, response):
            turn.start_session(member)
