"""JoinGroup 0-9, SyncGroup 0-5, Heartbeat 0-4, LeaveGroup 0-5: members of classic groups.

Version notes. JoinGroup: v1 the rebalance timeout, v4 MEMBER_ID_REQUIRED, v5 static members, v7 the
protocol's type, v8 a reason (for people, and ignored), v9 SkipAssignment. SyncGroup: v3 static
members, v5 the protocol's type and name, which must match. Heartbeat: v3 static members.
LeaveGroup: v3 several members, v5 a reason.

A JoinGroup or SyncGroup that waits for the other members does not block its connection: a later
LeaveGroup is handled, and ends the wait. After the wait the client's permission to read the group
is checked again.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from barnabas.broker.api.checks import GROUP, GROUP_DENIED, READ
from barnabas.broker.api.dispatch import Deferred, RequestContext, serves
from barnabas.broker.coordination.groups import Groups
from barnabas.broker.runtime.host import Host
from barnabas.coordinator.groups.classic.liveness import SEVERAL_MEMBERS_SINCE
from barnabas.coordinator.groups.classic.responses import join_error
from barnabas.coordinator.groups.commands import Caller, Heartbeat, JoinGroup, LeaveGroup, SyncGroup
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.heartbeat import HEARTBEAT, HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.join_group import JOIN_GROUP, JoinGroupRequest, JoinGroupResponse
from barnabas.protocol.messages.leave_group import (
    LEAVE_GROUP,
    LeaveGroupRequest,
    LeaveGroupResponse,
)
from barnabas.protocol.messages.sync_group import SYNC_GROUP, SyncGroupRequest, SyncGroupResponse
from barnabas.storage.runtime.chance import random_uuid

NULL_PROTOCOL_NAME_SINCE: Final = 7
"""Version of JoinGroup."""
PROTOCOL_MUST_MATCH_SINCE: Final = 5
"""Version of SyncGroup."""
MANY_ASSIGNMENTS_BYTES: Final = 32 * 1024
"""The assignments of 300 members. Their leader's SyncGroup is decoded on the loop, since all other
members wait for it: a hop to a thread beside their requests takes up to 5 ms."""
METADATA_BYTES_MAX: Final = 4 * 1024 * 1024
"""Maximum metadata of one member under all its protocols. Kafka has no limit; a group whose
members' metadata exceed a record would never complete a rebalance."""

NAME_BYTES_MAX: Final = 32_767 - len("-") - len(str(UUID(int=0)))
"""Maximum length of a name: that of a record's string, without the suffix of a member's id."""


def caller_of(context: RequestContext) -> Caller:
    """Return the sender of this request; the host has the form of Kafka's records and tools."""
    host = f"/{context.connection.peer_host}"
    return Caller(context.client_id or "", host, context.api_version)


def group_refusal(groups: Groups, group_id: str) -> ErrorCode:
    """Return the error for a group that this broker cannot serve, or NONE."""
    if not group_id:
        return ErrorCode.INVALID_GROUP_ID
    return groups.refusal(group_id)


def refuse_join_group(
    _request: JoinGroupRequest, code: ErrorCode, _message: str | None
) -> JoinGroupResponse:
    """Return a response with an error, without a member and without nulls."""
    return JoinGroupResponse(error_code=code)


@serves(JOIN_GROUP, versions=(0, 9), refuse=refuse_join_group)
def join_group(
    groups: Groups, host: Host, context: RequestContext, request: JoinGroupRequest
) -> JoinGroupResponse | Deferred[JoinGroupResponse]:
    """Add a member to the group's next generation, which waits for the others."""
    pending: Deferred[JoinGroupResponse] = Deferred()

    def respond(response: JoinGroupResponse) -> None:
        if not response.error_code and not context.access.may(READ, GROUP, request.group_id):
            response = refuse(GROUP_DENIED)
        if context.api_version < NULL_PROTOCOL_NAME_SINCE and response.protocol_name is None:
            response.protocol_name = ""
        pending.complete(response)

    def refuse(code: ErrorCode) -> JoinGroupResponse:
        return join_error(code, request.member_id)

    code = group_refusal(groups, request.group_id) or _member_refusal(host, context, request)
    if code:
        respond(refuse(code))
        return pending
    caller = caller_of(context)
    new_member_id = ""
    if not request.member_id:
        new_member_id = f"{request.group_instance_id or caller.client_id}-{random_uuid()}"
    command = JoinGroup(caller, request, groups.new_ticket(), new_member_id, groups.image)
    groups.submit(request.group_id, command, respond, refuse, ticket=command.ticket)
    return pending


def _member_refusal(host: Host, context: RequestContext, request: JoinGroupRequest) -> ErrorCode:
    """Return the error of a member that no group would admit, or NONE."""
    config = host.config
    low = config.group_min_session_timeout_ms
    high = config.group_max_session_timeout_ms
    if not low <= request.session_timeout_ms <= high:
        return ErrorCode.INVALID_SESSION_TIMEOUT
    said_bytes = sum(len(each.name) + len(each.metadata) for each in request.protocols)
    names = [each.name for each in request.protocols]
    # The member's own id begins with the first of these two.
    names += [request.group_instance_id or context.client_id or "", request.protocol_type]
    if said_bytes > METADATA_BYTES_MAX or any(
        len(name.encode()) > NAME_BYTES_MAX for name in names
    ):
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


@serves(SYNC_GROUP, versions=(0, 5), short=True, large_bytes=MANY_ASSIGNMENTS_BYTES)
def sync_group(
    groups: Groups, context: RequestContext, request: SyncGroupRequest
) -> SyncGroupResponse | Deferred[SyncGroupResponse]:
    """Return a member's assignment once the leader has sent it."""
    pending: Deferred[SyncGroupResponse] = Deferred()
    code = ErrorCode.NONE
    if context.api_version >= PROTOCOL_MUST_MATCH_SINCE and (
        request.protocol_type is None or request.protocol_name is None
    ):
        code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    elif not context.access.may(READ, GROUP, request.group_id):
        code = GROUP_DENIED
    code = code or group_refusal(groups, request.group_id)
    if code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        # No client expects that here: Java's consumers and aiokafka raise it to the application. A
        # client with a rebalance joins once more, and that response makes it wait.
        code = ErrorCode.REBALANCE_IN_PROGRESS
    if code:
        return _refuse_sync(code)

    def respond(response: SyncGroupResponse) -> None:
        if not response.error_code and not context.access.may(READ, GROUP, request.group_id):
            response = _refuse_sync(GROUP_DENIED)
        pending.complete(response)

    command = SyncGroup(caller_of(context), request, groups.new_ticket(), groups.image)
    groups.submit(request.group_id, command, respond, _refuse_sync, ticket=command.ticket)
    return pending


def _refuse_sync(code: ErrorCode) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=code)


@serves(HEARTBEAT, versions=(0, 4), short=True)
def heartbeat(
    groups: Groups, context: RequestContext, request: HeartbeatRequest
) -> HeartbeatResponse | Deferred[HeartbeatResponse]:
    """Extend a member's session, and report a rebalance to it."""
    pending: Deferred[HeartbeatResponse] = Deferred()
    code = group_refusal(groups, request.group_id)
    if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        # Sessions restart once the group is loaded: the member only has to wait.
        return HeartbeatResponse()
    if code:
        return _refuse_heartbeat(code)
    command = Heartbeat(caller_of(context), request)
    groups.submit(request.group_id, command, pending.complete, _refuse_heartbeat)
    return pending


def _refuse_heartbeat(code: ErrorCode) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=code)


def refuse_leave_group(
    _request: LeaveGroupRequest, code: ErrorCode, _message: str | None
) -> LeaveGroupResponse:
    """Return an error for all members."""
    return _refuse_leave(code)


@serves(LEAVE_GROUP, versions=(0, 5), refuse=refuse_leave_group)
def leave_group(
    groups: Groups, context: RequestContext, request: LeaveGroupRequest
) -> LeaveGroupResponse | Deferred[LeaveGroupResponse]:
    """Remove members at once, without waiting for their sessions to end."""
    pending: Deferred[LeaveGroupResponse] = Deferred()

    def respond(response: LeaveGroupResponse) -> None:
        if context.api_version < SEVERAL_MEMBERS_SINCE and response.members:
            # The only member's error stands for the request.
            response.error_code = response.error_code or response.members[0].error_code
        pending.complete(response)

    code = group_refusal(groups, request.group_id)
    if code:
        return _refuse_leave(code)
    command = LeaveGroup(caller_of(context), request, groups.image)
    groups.submit(request.group_id, command, respond, _refuse_leave)
    return pending


def _refuse_leave(code: ErrorCode) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=code)
