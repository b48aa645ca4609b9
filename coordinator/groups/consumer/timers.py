"""The timers of a consumer group."""

from __future__ import annotations

from typing import Final

from barnabas.coordinator.decision import Cancel, Effect, Now, Schedule, Timer
from barnabas.coordinator.groups.config import GroupConfig
from barnabas.coordinator.groups.consumer.member import Member, MemberState

SESSION: Final = "session"
"""Timer of one member: its session has expired. The same timer as in a classic group, so that a
conversion of the group leaves none behind."""
REBALANCE: Final = "rebalance"
"""Timer of one member: it has not revoked partitions in its rebalance timeout."""
REJOIN: Final = "rejoin"
"""Timer of one member of the classic protocol: it must join again and has not."""
RESYNC: Final = "resync"
"""Timer of one member of the classic protocol: it has joined and not fetched its assignment."""
REGEX: Final = "regex"
"""The group's regular expressions have to be compared with the topics."""

OF_A_MEMBER: Final = (SESSION, REBALANCE, REJOIN, RESYNC)


def session(group_id: str, member: Member, config: GroupConfig, now: Now) -> Schedule:
    """Start a member's session again."""
    timeout_ms = config.consumer_times(group_id).session_timeout_ms
    if member.classic is not None:
        timeout_ms = member.classic.session_timeout_ms
    return Schedule(Timer(group_id, SESSION, member.member_id), now.tick_ms + timeout_ms)


def of_member(group_id: str, member: Member, name: str, now: Now) -> Schedule:
    """Start a timer with a member's rebalance timeout."""
    timer = Timer(group_id, name, member.member_id)
    return Schedule(timer, now.tick_ms + max(0, member.rebalance_timeout_ms))


def revocation(group_id: str, member: Member, now: Now) -> Effect:
    """Start or stop the timer for a member's revocation."""
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        return of_member(group_id, member, REBALANCE, now)
    return Cancel(Timer(group_id, REBALANCE, member.member_id))


def none_of(group_id: str, member_id: str) -> tuple[Cancel, ...]:
    """Stop all timers of a member."""
    return tuple(Cancel(Timer(group_id, name, member_id)) for name in OF_A_MEMBER)
