"""ConsumerGroupHeartbeat 0-1, ConsumerGroupDescribe 0-1: groups that the broker assigns (KIP-848).

Version notes. ConsumerGroupHeartbeat: v1 brought regular expressions, and member ids that clients
make up (KIP-1082). ConsumerGroupDescribe: v1 the protocol that a member uses.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterable
from typing import Final

from barnabas.broker.api.checks import (
    DESCRIBE,
    GROUP,
    GROUP_DENIED,
    TOPIC,
    TOPIC_DENIED,
    denied,
)
from barnabas.broker.api.dispatch import Deferred, RequestContext, serves
from barnabas.broker.coordination.groups import Groups
from barnabas.broker.handlers.groups.described_groups import (
    describe_while_room,
    refuse_too_many_groups,
)
from barnabas.broker.handlers.groups.groups import caller_of, group_refusal
from barnabas.broker.metadata.catalogue import new_topic_id
from barnabas.broker.security.acls.access import Access
from barnabas.coordinator.groups.commands import ConsumerGroupHeartbeat
from barnabas.coordinator.groups.consumer import ConsumerGroup, describe
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_describe import (
    CONSUMER_GROUP_DESCRIBE,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from barnabas.protocol.messages.consumer_group_heartbeat import (
    CONSUMER_GROUP_HEARTBEAT,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

ELEMENTS_PER_RESPONSE_MAX: Final = 100_000
"""Members, topic names and partitions after which a response describes no further group."""
NO_ROOM: Final = (
    f"The response has no room for another group after {ELEMENTS_PER_RESPONSE_MAX} partitions; "
    "describe fewer groups in one request."
)


def refuse_heartbeat(
    _request: ConsumerGroupHeartbeatRequest, code: ErrorCode, message: str | None
) -> ConsumerGroupHeartbeatResponse:
    """Return an error without a member."""
    return ConsumerGroupHeartbeatResponse(error_code=code, error_message=message)


@serves(CONSUMER_GROUP_HEARTBEAT, versions=(0, 1), refuse=refuse_heartbeat)
def consumer_group_heartbeat(
    groups: Groups, context: RequestContext, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse | Deferred[ConsumerGroupHeartbeatResponse]:
    """Process a heartbeat; see coordinator/groups/consumer/heartbeat.py."""
    # An empty group id is the machine's to refuse: it is INVALID_REQUEST in this API.
    code = groups.refusal(request.group_id)
    if code:
        return _refuse(code)
    if not _may_describe_all(context.access, _subscribed_to(groups, request)):
        return _refuse(TOPIC_DENIED)
    pending: Deferred[ConsumerGroupHeartbeatResponse] = Deferred()
    member_id = "" if request.member_id else new_member_id()
    topics = groups.image_for(context.access)
    command = ConsumerGroupHeartbeat(caller_of(context), request, member_id, topics)
    groups.submit(request.group_id, command, pending.complete, _refuse)
    return pending


def _subscribed_to(groups: Groups, request: ConsumerGroupHeartbeatRequest) -> Iterable[str]:
    """Return the topics that a member names or has named before, or none if it leaves."""
    if request.subscribed_topic_names is not None:
        return request.subscribed_topic_names
    group = groups.machine_of(request.group_id).groups.get(request.group_id)
    if not isinstance(group, ConsumerGroup) or request.member_epoch < 0:
        return ()
    member = group.members.get(request.member_id)
    return () if member is None else member.topic_names


def _may_describe_all(access: Access, names: Iterable[str]) -> bool:
    return access.is_open or all(access.may(DESCRIBE, TOPIC, name) for name in names)


def new_member_id() -> str:
    """Return a new ID for a client of version 0, in the form of Kafka's UUIDs."""
    return urlsafe_b64encode(new_topic_id()).decode().rstrip("=")


def _refuse(code: ErrorCode) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=code, error_message=code.message)


def refuse_describe(
    request: ConsumerGroupDescribeRequest, code: ErrorCode, message: str | None
) -> ConsumerGroupDescribeResponse:
    """Return one error for every group."""
    groups = [
        DescribedGroup(group_id=group_id, error_code=code, error_message=message)
        for group_id in request.group_ids
    ]
    return ConsumerGroupDescribeResponse(groups=groups)


@serves(CONSUMER_GROUP_DESCRIBE, versions=(0, 1), refuse=refuse_describe, in_slices=True)
async def consumer_group_describe(
    groups: Groups, context: RequestContext, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse:
    """Describe consumer groups with members, assignments and target assignments."""
    refuse_too_many_groups(len(request.group_ids))
    access, refusals = context.access, groups.refusals

    def described(group_id: str) -> DescribedGroup:
        group = _described(groups, access, group_id)
        if request.include_authorized_operations and not group.error_code:
            group.authorized_operations = access.operations_on(GROUP, group_id)
        return group

    found = await describe_while_room(
        request.group_ids, described, _without_room, _element_count, ELEMENTS_PER_RESPONSE_MAX
    )
    await groups.durable(refusals)
    return ConsumerGroupDescribeResponse(groups=found)


def _without_room(group_id: str) -> DescribedGroup:
    code = ErrorCode.INVALID_REQUEST
    return DescribedGroup(group_id=group_id, error_code=code, error_message=NO_ROOM)


def _element_count(group: DescribedGroup) -> int:
    """Return the number of members, topic names and partitions in a description."""
    return sum(
        1
        + len(member.subscribed_topic_names)
        + sum(
            len(topic.partitions)
            for assignment in (member.assignment, member.target_assignment)
            for topic in assignment.topic_partitions
        )
        for member in group.members
    )


def _described(groups: Groups, access: Access, group_id: str) -> DescribedGroup:
    if not access.may(DESCRIBE, GROUP, group_id):
        message = denied(GROUP_DENIED, DESCRIBE, GROUP, group_id).message
        return DescribedGroup(error_code=GROUP_DENIED, error_message=message, group_id=group_id)
    code = group_refusal(groups, group_id)
    if code:
        return DescribedGroup(group_id=group_id, error_code=code)
    machine = groups.machine_of(group_id)
    group = machine.groups.get(group_id)
    if isinstance(group, ConsumerGroup):
        return _without_hidden_topics(access, describe(group, machine.config, groups.image))
    why = "is not a consumer group" if group is not None else "not found"
    return DescribedGroup(
        group_id=group_id,
        error_code=ErrorCode.GROUP_ID_NOT_FOUND,
        # Tools show it: Kafka's words.
        error_message=f"Group {group_id} {why}.",
    )


def _without_hidden_topics(access: Access, group: DescribedGroup) -> DescribedGroup:
    """Return the group, or an error if a member has a topic that the client may not describe."""
    names = {
        topic.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    }
    if access.is_open or all(access.may_see(TOPIC, name) for name in names):
        return group
    return DescribedGroup(
        group_id=group.group_id,
        error_code=TOPIC_DENIED,
        error_message="Members of the group have topics that the client may not describe.",
    )
