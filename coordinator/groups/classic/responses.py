"""Responses to the members of a classic group."""

from __future__ import annotations

from barnabas.coordinator.groups.classic.group import ClassicGroup, Member
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from barnabas.protocol.messages.sync_group import SyncGroupResponse


def join_error(code: ErrorCode, member_id: str = "") -> JoinGroupResponse:
    """Return a JoinGroup response with an error and without a generation."""
    return JoinGroupResponse(error_code=code, member_id=member_id, protocol_name=None)


def generation_of(
    group: ClassicGroup,
    member_id: str,
    *,
    members: list[JoinGroupResponseMember] | None = None,
    leader_id: str | None = None,
    skip_assignment: bool = False,
) -> JoinGroupResponse:
    """Return a member's JoinGroup response; only the leader's has ``members``."""
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=leader_id or group.leader_id or "",
        skip_assignment=skip_assignment,
        member_id=member_id,
        members=members or [],
    )


def everybody(group: ClassicGroup) -> list[JoinGroupResponseMember]:
    """Return all members with their metadata for the protocol of the generation."""
    return [
        JoinGroupResponseMember(
            member.member_id, member.instance_id, member.metadata(group.protocol_name)
        )
        for member in group.members.values()
    ]


def synced(group: ClassicGroup, member: Member) -> SyncGroupResponse:
    """Return a member's SyncGroup response with its assignment."""
    return SyncGroupResponse(
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        assignment=member.assignment,
    )
