"""Consumer groups (KIP-848): the coordinator assigns, member by member."""

from __future__ import annotations

from typing import Final

from coordinator.groups.commands import (
    ConsumerGroupHeartbeat,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    SyncGroup,
    TimerExpired,
)
from coordinator.groups.consumer import classic_members
from coordinator.groups.consumer.apply import APPLIERS, CHANGERS
from coordinator.groups.consumer.describe import describe
from coordinator.groups.consumer.expiry import begin, decide_timer
from coordinator.groups.consumer.group import ConsumerGroup
from coordinator.groups.consumer.heartbeat import decide_heartbeat
from coordinator.groups.family import ANY_GROUP, Family
from coordinator.groups.group import CONSUMER

__all__ = ["CONSUMER_GROUPS", "ConsumerGroup", "describe"]

CONSUMER_GROUPS: Final = Family(
    deciders={
        (ConsumerGroupHeartbeat, ANY_GROUP): decide_heartbeat,
        (JoinGroup, CONSUMER): classic_members.decide_join,
        (SyncGroup, CONSUMER): classic_members.decide_sync,
        (Heartbeat, CONSUMER): classic_members.decide_heartbeat,
        (LeaveGroup, CONSUMER): classic_members.decide_leave,
        (TimerExpired, CONSUMER): decide_timer,
    },
    appliers=APPLIERS,
    changers=CHANGERS,
    begin=begin,
)
