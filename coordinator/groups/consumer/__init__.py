"""Consumer groups (KIP-848): the coordinator assigns, member by member."""

from __future__ import annotations

from typing import Final

from barnabas.coordinator.groups.commands import (
    ConsumerGroupHeartbeat,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    SyncGroup,
    TimerExpired,
)
from barnabas.coordinator.groups.consumer import classic_members
from barnabas.coordinator.groups.consumer.apply import APPLIERS, CHANGERS
from barnabas.coordinator.groups.consumer.describe import describe
from barnabas.coordinator.groups.consumer.expiry import begin, decide_timer
from barnabas.coordinator.groups.consumer.group import ConsumerGroup
from barnabas.coordinator.groups.consumer.heartbeat import decide_heartbeat
from barnabas.coordinator.groups.family import ANY_GROUP, Family
from barnabas.coordinator.groups.group import CONSUMER

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
