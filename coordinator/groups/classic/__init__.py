"""Classic groups: the members agree on a generation, their leader assigns."""

from __future__ import annotations

from typing import Final

from barnabas.coordinator.groups.classic.description import describe
from barnabas.coordinator.groups.classic.group import ClassicGroup, Member
from barnabas.coordinator.groups.classic.join import decide_join, join_new_group
from barnabas.coordinator.groups.classic.liveness import (
    begin,
    decide_heartbeat,
    decide_heartbeat_without_group,
    decide_leave,
    decide_leave_without_group,
    decide_timer,
    decide_timer_without_group,
)
from barnabas.coordinator.groups.classic.records import apply_group_metadata
from barnabas.coordinator.groups.classic.sync import decide_sync, decide_sync_without_group
from barnabas.coordinator.groups.classic.turn import Become, become
from barnabas.coordinator.groups.commands import (
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    SyncGroup,
    TimerExpired,
)
from barnabas.coordinator.groups.family import NO_GROUP, Family
from barnabas.coordinator.groups.group import CLASSIC
from barnabas.protocol.messages.group_metadata_record import GROUP_METADATA_RECORD

__all__ = ["CLASSIC_GROUPS", "Become", "ClassicGroup", "Member", "describe", "join_new_group"]

CLASSIC_GROUPS: Final = Family(
    deciders={
        (JoinGroup, NO_GROUP): decide_join,
        (JoinGroup, CLASSIC): decide_join,
        (SyncGroup, NO_GROUP): decide_sync_without_group,
        (SyncGroup, CLASSIC): decide_sync,
        (Heartbeat, NO_GROUP): decide_heartbeat_without_group,
        (Heartbeat, CLASSIC): decide_heartbeat,
        (LeaveGroup, NO_GROUP): decide_leave_without_group,
        (LeaveGroup, CLASSIC): decide_leave,
        (TimerExpired, NO_GROUP): decide_timer_without_group,
        (TimerExpired, CLASSIC): decide_timer,
    },
    appliers={GROUP_METADATA_RECORD.key_type: apply_group_metadata},
    changers={Become: become},
    begin=begin,
)
