"""A classic group as administrators see it."""

from __future__ import annotations

from barnabas.coordinator.groups.classic.group import ClassicGroup
from barnabas.coordinator.groups.classic.states import State
from barnabas.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember


def describe(group: ClassicGroup) -> DescribedGroup:
    """Describe a group; protocol metadata of its members are included only while it is stable.

    During a rebalance the assignments of the previous generation are still returned, as Kafka does.
    """
    is_stable = group.state is State.STABLE
    protocol = group.protocol_name if is_stable else None
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        protocol_type=group.protocol_type,
        protocol_data=protocol or "",
        members=[
            DescribedGroupMember(
                member.member_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                member.metadata(protocol) if is_stable else b"",
                member.assignment,
            )
            for member in group.members.values()
        ],
    )
