"""Deletes groups, their offsets and topics; a refusal is an error, except a temporary one."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.protocol.messages.delete_groups import DELETE_GROUPS, DeleteGroupsRequest
from barnabas.protocol.messages.delete_topics import DELETE_TOPICS, DeleteTopicsRequest
from barnabas.protocol.messages.leave_group import LEAVE_GROUP, LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.offset_delete import (
    OFFSET_DELETE,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from tests.counterparts.broker_process import BrokerProcess
from tests.counterparts.wire_client import WireClient
from tests.groups.fleet import Group, wait_for

TIMEOUT_MS = 10_000
UNKNOWN_MEMBER_ID, NON_EMPTY_GROUP, GROUP_SUBSCRIBED_TO_TOPIC = 25, 68, 86


def remove_static_members(broker: BrokerProcess, group: Group) -> None:
    """Remove the static members of a classic group, which leave only by request.

    Those of the new protocol cannot be removed; their session ends.
    """
    if group.kind.static and group.kind.protocol == "classic":
        instances = {member.instance for member in group.members}
        members = [MemberIdentity(group_instance_id=instance) for instance in instances]
        with WireClient(broker) as client:
            response = client.ask(LEAVE_GROUP, LeaveGroupRequest(group.name, "", members), 5)
        refused = {member.error_code for member in response.members} - {0, UNKNOWN_MEMBER_ID}
        assert response.error_code == 0, response
        assert not refused, response


def delete_groups(broker: BrokerProcess, groups: Sequence[str]) -> None:
    """Delete groups, as soon as they have no members."""
    left = list(groups)

    def are_deleted() -> bool:
        with WireClient(broker) as client:
            response = client.ask(DELETE_GROUPS, DeleteGroupsRequest(left), 2)
        errors = {each.group_id: each.error_code for each in response.results if each.error_code}
        assert set(errors.values()) <= {NON_EMPTY_GROUP}, errors
        left[:] = errors
        return not left

    wait_for(are_deleted, lambda: f"groups are empty and deleted: {left}")


def delete_offsets(broker: BrokerProcess, group: str, topic: str, partitions: int) -> None:
    """Delete a group's offsets of a topic."""
    asked = [OffsetDeleteRequestPartition(number) for number in range(partitions)]
    request = OffsetDeleteRequest(group, [OffsetDeleteRequestTopic(topic, asked)])

    def are_deleted() -> bool:
        with WireClient(broker) as client:
            response = client.ask(OFFSET_DELETE, request, 0)
        assert response.error_code == 0, response
        errors = {each.error_code for each in response.topics[0].partitions}
        assert errors <= {0, GROUP_SUBSCRIBED_TO_TOPIC}, response
        return errors == {0}

    wait_for(are_deleted, lambda: f"offsets of {group} deleted")


def delete_topic(broker: BrokerProcess, topic: str) -> None:
    """Delete a topic."""
    request = DeleteTopicsRequest(topic_names=[topic], timeout_ms=TIMEOUT_MS)
    with WireClient(broker) as client:
        response = client.ask(DELETE_TOPICS, request, 5)
    assert not any(each.error_code for each in response.responses), response
