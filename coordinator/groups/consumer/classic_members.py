"""Members of the classic protocol in a consumer group (KIP-848): JoinGroup, SyncGroup, Heartbeat,
LeaveGroup.

The coordinator assigns for them, too. It uses the old protocol with them: a heartbeat gets
REBALANCE_IN_PROGRESS when there are partitions to revoke or to add, and a JoinGroup is completed at
once, as there is no leader. Their subscriptions contain the partitions that they own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from barnabas.coordinator.decision import Cancel, Decision, Effect, Now, Timer
from barnabas.coordinator.groups.classic import join_new_group
from barnabas.coordinator.groups.classic.responses import join_error
from barnabas.coordinator.groups.commands import Heartbeat, JoinGroup, LeaveGroup, SyncGroup
from barnabas.coordinator.groups.consumer import embedded, timers
from barnabas.coordinator.groups.consumer.apply import JoinExpected
from barnabas.coordinator.groups.consumer.downgrade import downgraded, may_downgrade
from barnabas.coordinator.groups.consumer.draft import Draft
from barnabas.coordinator.groups.consumer.group import ConsumerGroup
from barnabas.coordinator.groups.consumer.leave import leave
from barnabas.coordinator.groups.consumer.member import (
    JOINING,
    ClassicPart,
    Member,
    MemberState,
    names_of,
)
from barnabas.coordinator.groups.consumer.refusals import Refusal
from barnabas.coordinator.groups.consumer.requests import is_too_long
from barnabas.coordinator.groups.consumer.target import Change
from barnabas.coordinator.groups.consumer.upgrade import CONSUMERS
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.heartbeat import HeartbeatResponse
from barnabas.protocol.messages.join_group import JoinGroupResponse
from barnabas.protocol.messages.leave_group import (
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from barnabas.coordinator.groups.group_table import GroupTable

MEMBER_ID_REQUIRED_SINCE: Final = 4
REBALANCE_TIMEOUT_SINCE: Final = 1
SEVERAL_MEMBERS_SINCE: Final = 3
"""Versions from which JoinGroup has the feature; the last one is of LeaveGroup."""

# --------------------------------------------------------------------------------------- JoinGroup


def decide_join(shard: GroupTable, command: JoinGroup, now: Now) -> Decision:
    """Join a consumer group by the classic protocol, with an immediate response."""
    group = shard.groups[command.group_id]
    assert isinstance(group, ConsumerGroup)
    if group.is_empty:
        return join_new_group(shard.config, command, now, group.tombstones())
    draft = Draft(shard, group, command.topics, now)
    joined = _join(draft, command)
    if isinstance(joined, ErrorCode):
        return Decision(join_error(joined, command.request.member_id))
    return joined


def _join(draft: Draft, command: JoinGroup) -> Decision | ErrorCode:
    request, group = command.request, draft.group
    member_id = request.member_id or command.new_member_id
    if is_too_long(member_id):
        return ErrorCode.INVALID_REQUEST
    if len(group.members) >= draft.config.consumer_max_size and member_id not in group.members:
        return ErrorCode.GROUP_MAX_SIZE_REACHED
    protocols = _protocols(command)
    if request.protocol_type != CONSUMERS or not _is_compatible(group, protocols):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    dynamic = request.group_instance_id is None
    needs_id = command.caller.api_version >= MEMBER_ID_REQUIRED_SINCE
    if dynamic and not request.member_id and needs_id:
        return Decision(join_error(ErrorCode.MEMBER_ID_REQUIRED, member_id))
    subscribed = embedded.subscription(next(iter(protocols.values())), command.topics)
    if subscribed is None:
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    holder = group.static_member(request.group_instance_id)
    before = _before(group, command, member_id, holder)
    if isinstance(before, ErrorCode):
        return before
    replaced = holder if holder is not None and not request.member_id else None
    after = _after(before, command, subscribed, protocols)
    change = Change(after, "" if replaced is None else replaced.member_id)
    if replaced is not None:
        draft.replace(replaced, before)
    return _moved(draft, before, change, subscribed)


def _protocols(command: JoinGroup) -> dict[str, bytes]:
    """Return the member's protocols; of a repeated name the first counts."""
    found: dict[str, bytes] = {}
    for protocol in command.request.protocols:
        found.setdefault(protocol.name, bytes(protocol.metadata))
    return found


def _is_compatible(group: ConsumerGroup, protocols: dict[str, bytes]) -> bool:
    """Return whether the classic members would still share a protocol."""
    common = set(protocols)
    for member in group.members.values():
        if member.classic is not None:
            common &= {name for name, _ in member.classic.protocols}
    return bool(common)


def _before(
    group: ConsumerGroup, command: JoinGroup, member_id: str, holder: Member | None
) -> Member | ErrorCode:
    """Return the member before this request, a new one, or an error."""
    request = command.request
    if request.group_instance_id is None:
        return group.members.get(member_id) or Member(member_id)
    if not request.member_id:
        if holder is None:
            return Member(member_id)
        return replace(holder, member_id=member_id, member_epoch=JOINING, previous_epoch=JOINING)
    if holder is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return holder if holder.member_id == member_id else ErrorCode.FENCED_INSTANCE_ID


def _after(
    member: Member,
    command: JoinGroup,
    subscribed: embedded.Subscription,
    protocols: dict[str, bytes],
) -> Member:
    request = command.request
    timeout_ms = request.session_timeout_ms
    if command.caller.api_version >= REBALANCE_TIMEOUT_SINCE:
        timeout_ms = request.rebalance_timeout_ms
    return replace(
        member,
        instance_id=request.group_instance_id or member.instance_id,
        rack_id=subscribed.rack_id or member.rack_id,
        rebalance_timeout_ms=timeout_ms,
        topic_names=subscribed.topic_names,
        topic_regex="",
        client_id=command.caller.client_id,
        client_host=command.caller.client_host,
        classic=ClassicPart(request.session_timeout_ms, tuple(protocols.items())),
    )


def _moved(
    draft: Draft,
    before: Member,
    change: Change,
    subscribed: embedded.Subscription,
) -> Decision | ErrorCode:
    """Apply the member's request and its next step; return the decision or an error."""
    member, group = change.member, draft.group
    assert member is not None
    changed = draft.write_member(before, member)
    regex_changed = draft.change_regex(before, change)
    assert not isinstance(regex_changed, Refusal)  # It has none now, and none is always valid.
    changed = changed or regex_changed
    draft.refresh_epoch(change, subscription_changed=changed)
    last_consumer_goes = bool(change.replaced_id) and _goes_back(draft, change)
    stale = group.assignment_epoch < draft.epoch
    moved: Member | Refusal = member
    if not (last_consumer_goes and stale):
        assignment = draft.assign(change)
        moved = draft.reconcile(member, assignment, subscribed.owned, subscription_changed=changed)
    if isinstance(moved, Refusal):
        return moved.code
    response = _joined(moved)
    if last_consumer_goes:
        others = group.others(change.replaced_id, moved.member_id)
        ids = [each.member_id for each in (*others, moved)]
        replaced = (change.replaced_id, moved.member_id)
        return downgraded(
            draft, [*others, moved], ids, response, rebalance=stale, replaced=replaced
        )
    draft.changes.append(JoinExpected(group.group_id, moved.member_id, expected=False))
    draft.effects.append(Cancel(Timer(group.group_id, timers.REJOIN, moved.member_id)))
    draft.effects.append(timers.session(group.group_id, moved, draft.config, draft.now))
    draft.effects.append(timers.of_member(group.group_id, moved, timers.RESYNC, draft.now))
    return draft.decision(response)


def _goes_back(draft: Draft, change: Change) -> bool:
    """Return whether the member replaces the last member of the new protocol."""
    holder = draft.group.members[change.replaced_id]
    return holder.classic is None and may_downgrade(draft.config, change.members_of(draft.group))


def _joined(member: Member) -> JoinGroupResponse:
    assert member.classic is not None
    return JoinGroupResponse(
        generation_id=member.member_epoch,
        protocol_type=CONSUMERS,
        protocol_name=member.classic.protocols[0][0],
        member_id=member.member_id,
    )


# --------------------------------------------------------------------- SyncGroup and Heartbeat


def decide_sync(shard: GroupTable, command: SyncGroup, now: Now) -> Decision:
    """Return a member's assignment; assignments in the request are ignored."""
    group = shard.groups[command.group_id]
    assert isinstance(group, ConsumerGroup)
    request = command.request
    member = _named(group, request.member_id, request.group_instance_id)
    if isinstance(member, ErrorCode):
        return Decision(SyncGroupResponse(error_code=member))
    code, changes, effects = _sync_refusal(group, member, request, now)
    if code:
        response = SyncGroupResponse(error_code=code)
        return Decision(response, changes=changes, effects=effects)
    assert member.classic is not None
    like = member.classic.protocols[0][1]
    assignment = embedded.assignment_bytes(names_of(member.assigned), like, command.topics)
    return Decision(
        SyncGroupResponse(
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=assignment,
        ),
        effects=(
            Cancel(Timer(group.group_id, timers.RESYNC, member.member_id)),
            timers.session(group.group_id, member, shard.config, now),
        ),
    )


def _sync_refusal(
    group: ConsumerGroup, member: Member, request: SyncGroupRequest, now: Now
) -> tuple[ErrorCode, tuple[JoinExpected, ...], tuple[Effect, ...]]:
    assert member.classic is not None
    if request.generation_id != member.member_epoch:
        return ErrorCode.ILLEGAL_GENERATION, (), ()
    name = member.classic.protocols[0][0]
    if request.protocol_type not in (None, CONSUMERS) or request.protocol_name not in (None, name):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL, (), ()
    if group.assignment_epoch > member.member_epoch and not _is_revoking(member):
        # There is a newer assignment: it has to join again. One that is giving back partitions has
        # just joined, and is called again when it has given them back.
        return ErrorCode.REBALANCE_IN_PROGRESS, *_expect_join(group, member, now)
    return ErrorCode.NONE, (), ()


def _is_revoking(member: Member) -> bool:
    return member.state is MemberState.UNREVOKED_PARTITIONS


def _expect_join(
    group: ConsumerGroup, member: Member, now: Now
) -> tuple[tuple[JoinExpected, ...], tuple[Effect, ...]]:
    """Start the timer for the member's JoinGroup with the first response that requests it."""
    if member.member_id in group.expected_to_join:
        return (), ()
    expected = JoinExpected(group.group_id, member.member_id, expected=True)
    return (expected,), (timers.of_member(group.group_id, member, timers.REJOIN, now),)


def decide_heartbeat(shard: GroupTable, command: Heartbeat, now: Now) -> Decision:
    """Extend a member's session, and report to it when it has to join again."""
    group = shard.groups[command.group_id]
    assert isinstance(group, ConsumerGroup)
    request = command.request
    member = _named(group, request.member_id, request.group_instance_id)
    if isinstance(member, ErrorCode):
        return Decision(HeartbeatResponse(error_code=member))
    if request.generation_id != member.member_epoch:
        return Decision(HeartbeatResponse(error_code=ErrorCode.ILLEGAL_GENERATION))
    session = timers.session(group.group_id, member, shard.config, now)
    if not _has_to_join(group, member):
        return Decision(HeartbeatResponse(), effects=(session,), is_known=True)
    changes, effects = _expect_join(group, member, now)
    response = HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    return Decision(response, changes=changes, effects=(session, *effects))


def _has_to_join(group: ConsumerGroup, member: Member) -> bool:
    """Whether the member must send JoinGroup to get its next assignment."""
    if member.member_epoch < group.assignment_epoch or _is_revoking(member):
        return True
    return member.state is MemberState.UNRELEASED_PARTITIONS and not _waits_for_others(
        group, member
    )


def _waits_for_others(group: ConsumerGroup, member: Member) -> bool:
    return any(
        group.is_owned(topic_id, partition)
        for topic_id, partitions in group.target_of(member).items()
        for partition in partitions
        if partition not in member.assigned.get(topic_id, {})
    )


def _named(group: ConsumerGroup, member_id: str, instance_id: str | None) -> Member | ErrorCode:
    """Return the member of the classic protocol with these IDs, or an error."""
    member = group.members.get(member_id)
    if instance_id is not None:
        member = group.static_member(instance_id)
        if member is not None and member.member_id != member_id:
            return ErrorCode.FENCED_INSTANCE_ID
    if member is None or member.classic is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return member


# -------------------------------------------------------------------------------------- LeaveGroup


def decide_leave(shard: GroupTable, command: LeaveGroup, now: Now) -> Decision:
    """Remove members, those of the new protocol as well: an administrator may request it."""
    group = shard.groups[command.group_id]
    assert isinstance(group, ConsumerGroup)
    asked = command.request.members
    if command.caller.api_version < SEVERAL_MEMBERS_SINCE:
        asked = [MemberIdentity(command.request.member_id)]
    leaving: dict[str, Member] = {}
    answers = []
    for identity in asked:
        found = _leaving(group, identity)
        code = found if isinstance(found, ErrorCode) else ErrorCode.NONE
        if isinstance(found, Member):
            leaving[found.member_id] = found
        answers.append(MemberResponse(identity.member_id, identity.group_instance_id, code))
    draft = Draft(shard, group, command.topics, now)
    return leave(draft, list(leaving.values()), LeaveGroupResponse(members=answers))


def _leaving(group: ConsumerGroup, identity: MemberIdentity) -> Member | ErrorCode:
    if identity.group_instance_id is None:
        return group.members.get(identity.member_id) or ErrorCode.UNKNOWN_MEMBER_ID
    member = group.static_member(identity.group_instance_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if identity.member_id not in ("", member.member_id):
        return ErrorCode.FENCED_INSTANCE_ID
    return member
