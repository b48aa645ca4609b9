"""ListGroups 0-5, DescribeGroups 0-6, DeleteGroups 0-2: groups of every type, for administrators.

Version notes. ListGroups: v4 states, v5 types. DescribeGroups: v3 the allowed operations, v4 static
members, v6 an error for a group that does not exist (Dead before).
It describes classic groups; consumer groups have ConsumerGroupDescribe.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from barnabas.broker.api.checks import CLUSTER, DELETE, DESCRIBE, GROUP, GROUP_DENIED, denied
from barnabas.broker.api.dispatch import Deferred, RequestContext, serves
from barnabas.broker.api.division import by, in_parts
from barnabas.broker.api.driver import Run
from barnabas.broker.api.waits import Turn
from barnabas.broker.coordination.groups import Groups
from barnabas.broker.handlers.groups.described_groups import (
    describe_while_room,
    refuse_too_many_groups,
)
from barnabas.broker.security.acls.operations import CLUSTER_NAME
from barnabas.coordinator.groups.classic import ClassicGroup, describe
from barnabas.coordinator.groups.commands import DeleteGroup
from barnabas.coordinator.groups.group import CLASSIC
from barnabas.coordinator.groups.shard import GroupShard
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.delete_groups import (
    DELETE_GROUPS,
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from barnabas.protocol.messages.describe_groups import (
    DESCRIBE_GROUPS,
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from barnabas.protocol.messages.list_groups import (
    LIST_GROUPS,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)

BY_NAME: Final = by("groups_names")
DEAD: Final = "Dead"
"""State of a group that does not exist."""
NOT_FOUND_SINCE: Final = 6
"""Version of DescribeGroups."""
GROUPS_PER_TURN: Final = 250
"""Groups whose permissions are checked before the loop gets a turn."""
BYTES_PER_RESPONSE_MAX: Final = 16 * 1024 * 1024
"""Bytes of members after which a response describes no further group."""
MEMBER_BYTES: Final = 200
"""About the size of a member without its metadata and its assignment."""
NO_ROOM: Final = (
    f"The response has no room for another group after {BYTES_PER_RESPONSE_MAX} bytes; "
    "describe fewer groups in one request."
)


@serves(LIST_GROUPS, versions=(0, 5), in_slices=True)
async def list_groups(
    groups: Groups, context: RequestContext, request: ListGroupsRequest
) -> ListGroupsResponse:
    """List all groups, or those of some states and types, ignoring case.

    A client without DESCRIBE on the cluster gets the groups that it can describe.
    """
    if not groups.is_coordinator():
        return ListGroupsResponse()
    if groups.is_loading:
        return ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    refusals = groups.refusals
    states = {state.strip().lower() for state in request.states_filter}
    types = {name.lower() for name in request.types_filter}
    found = [
        group
        for machine in groups.machines
        for group in _groups_of(machine)
        if (not states or group.group_state.lower() in states)
        and (not types or group.group_type in types)
    ]
    access = context.access
    if not access.may_see(CLUSTER, CLUSTER_NAME):
        every, found = found, []
        for start in range(0, len(every), GROUPS_PER_TURN):
            some = every[start : start + GROUPS_PER_TURN]
            found += [group for group in some if access.may_see(GROUP, group.group_id)]
            await Turn()
    await groups.durable(refusals)
    return ListGroupsResponse(groups=found)


def _groups_of(machine: GroupShard) -> Iterator[ListedGroup]:
    group_ids = machine.keys()
    for group_id in group_ids:
        group = machine.groups.get(group_id)
        if group is None:  # It has offsets, and never had a member.
            yield ListedGroup(group_id, "", "Empty", CLASSIC)
        else:
            yield ListedGroup(group_id, group.protocol_type, group.state_name, group.type_name)


@serves(DESCRIBE_GROUPS, versions=(0, 6), in_slices=True)
async def describe_groups(
    groups: Groups, context: RequestContext, request: DescribeGroupsRequest
) -> DescribeGroupsResponse:
    """Describe classic groups with their members."""
    refuse_too_many_groups(len(request.groups))
    refusals = groups.refusals

    def described(group_id: str) -> DescribedGroup:
        group = _described(groups, context, group_id)
        if request.include_authorized_operations and not group.error_code:
            group.authorized_operations = context.access.operations_on(GROUP, group_id)
        return group

    found = await describe_while_room(
        request.groups, described, _without_room, _size_bytes, BYTES_PER_RESPONSE_MAX
    )
    await groups.durable(refusals)
    return DescribeGroupsResponse(groups=found)


def _without_room(group_id: str) -> DescribedGroup:
    code = ErrorCode.INVALID_REQUEST
    return DescribedGroup(group_id=group_id, error_code=code, error_message=NO_ROOM)


def _size_bytes(group: DescribedGroup) -> int:
    return sum(
        MEMBER_BYTES + len(each.member_metadata) + len(each.member_assignment)
        for each in group.members
    )


def _described(groups: Groups, context: RequestContext, group_id: str) -> DescribedGroup:
    if not context.access.may(DESCRIBE, GROUP, group_id):
        message = denied(GROUP_DENIED, DESCRIBE, GROUP, group_id).message
        return DescribedGroup(error_code=GROUP_DENIED, error_message=message, group_id=group_id)
    code = groups.refusal(group_id)
    if code:
        return DescribedGroup(error_code=code, group_id=group_id)
    machine = groups.machine_of(group_id)
    group = machine.groups.get(group_id)
    if isinstance(group, ClassicGroup):
        return describe(group)
    if group is None and machine.offsets.knows(group_id):
        return describe(ClassicGroup(group_id))
    not_found = DescribedGroup(group_id=group_id, group_state=DEAD)
    if context.api_version >= NOT_FOUND_SINCE:
        what = "not found" if group is None else "not a classic group"
        not_found.error_code = ErrorCode.GROUP_ID_NOT_FOUND
        not_found.error_message = f"Group {group_id} {'' if group is None else 'is '}{what}."
    return not_found


@serves(DELETE_GROUPS, versions=(0, 2), in_slices=True)
def delete_groups(
    groups: Groups, context: RequestContext, request: DeleteGroupsRequest
) -> DeleteGroupsResponse | Deferred[DeleteGroupsResponse] | Run[DeleteGroupsResponse]:
    """Delete empty groups with their offsets; each has its own result."""
    refuse_too_many_groups(len(request.groups_names))
    handle = partial(_delete_groups, groups, context)
    return Run(in_parts(request, BY_NAME, handle)) if BY_NAME.is_long(request) else handle(request)


def _delete_groups(
    groups: Groups, context: RequestContext, request: DeleteGroupsRequest
) -> DeleteGroupsResponse | Deferred[DeleteGroupsResponse]:
    pending: Deferred[DeleteGroupsResponse] = Deferred()
    results = {group_id: DeletableGroupResult(group_id) for group_id in request.groups_names}
    missing = set(results)

    def answer(group_id: str, code: ErrorCode) -> None:
        results[group_id].error_code = code
        missing.discard(group_id)
        if not missing:
            pending.complete(DeleteGroupsResponse(results=list(results.values())))

    allowed = {each for each in results if context.access.may(DELETE, GROUP, each)}
    is_one_of_many = groups.has_many_offsets([*allowed])
    for group_id in results:
        code = groups.refusal(group_id) if group_id in allowed else GROUP_DENIED
        if code:
            answer(group_id, code)
        else:
            respond = partial(answer, group_id)
            command = DeleteGroup(group_id, is_one_of_many)
            groups.submit(group_id, command, respond, lambda code: code)
    return pending if results else DeleteGroupsResponse()
