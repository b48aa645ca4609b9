"""ConsumerGroupHeartbeat: join, stay, report the owned partitions, leave.

One request does all of it, so one decision does: find or create the group and the member, and give
the group a new epoch if the subscription has changed. A new epoch gets a new target assignment, and
the member takes its next step towards it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from barnabas.coordinator.decision import Decision, Now
from barnabas.coordinator.groups.classic.group import ClassicGroup
from barnabas.coordinator.groups.commands import Caller, ConsumerGroupHeartbeat
from barnabas.coordinator.groups.consumer import records, timers
from barnabas.coordinator.groups.consumer.draft import Draft, listed
from barnabas.coordinator.groups.consumer.group import ConsumerGroup
from barnabas.coordinator.groups.consumer.leave import leave
from barnabas.coordinator.groups.consumer.member import (
    JOINING,
    LEAVING,
    LEAVING_FOR_A_WHILE,
    Member,
)
from barnabas.coordinator.groups.consumer.reconcile import owned_partitions
from barnabas.coordinator.groups.consumer.refusals import Refusal
from barnabas.coordinator.groups.consumer.requests import NOT_GIVEN, problem_of
from barnabas.coordinator.groups.consumer.target import Change
from barnabas.coordinator.groups.consumer.upgrade import upgraded
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

if TYPE_CHECKING:
    from barnabas.coordinator.groups.group_table import GroupTable


def decide_heartbeat(shard: GroupTable, command: ConsumerGroupHeartbeat, now: Now) -> Decision:
    """Decide a heartbeat that joins, stays or leaves."""
    request = command.request
    assignors = shard.config.consumer_assignors
    problem = problem_of(request, command.caller.api_version, assignors)
    if problem is not None:
        return Decision(refused(problem))
    leaves = request.member_epoch in (LEAVING, LEAVING_FOR_A_WHILE)
    draft = _draft(shard, command, now, may_make=request.member_epoch == JOINING)
    if isinstance(draft, Refusal):
        return Decision(refused(draft))
    answer = _leave(draft, request) if leaves else _join_or_stay(draft, command)
    return answer if isinstance(answer, Decision) else Decision(refused(answer))


def refused(refusal: Refusal) -> ConsumerGroupHeartbeatResponse:
    """Return the response to a request that changes nothing."""
    return ConsumerGroupHeartbeatResponse(error_code=refusal.code, error_message=refusal.message)


def _draft(
    shard: GroupTable, command: ConsumerGroupHeartbeat, now: Now, *, may_make: bool
) -> Draft | Refusal:
    """Find the group; a joining member may create it, or convert a classic group."""
    group = shard.groups.get(command.group_id)
    if isinstance(group, ConsumerGroup):
        return Draft(shard, group, command.topics, now)
    if not may_make:
        words = f"there is no consumer group {command.group_id!r}"
        return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, words)
    if isinstance(group, ClassicGroup) and not group.is_empty:
        return upgraded(shard, group, command.topics, now)
    draft = Draft(shard, ConsumerGroup(command.group_id), command.topics, now)
    if group is not None:
        draft.add(group.tombstones())
    return draft


# --------------------------------------------------------------------------------------- leaving


def _leave(draft: Draft, request: ConsumerGroupHeartbeatRequest) -> Decision | Refusal:
    """Remove a member, permanently or for a while."""
    member = _existing(draft.group, request)
    if isinstance(member, Refusal):
        return member
    response = ConsumerGroupHeartbeatResponse(
        member_id=member.member_id, member_epoch=request.member_epoch
    )
    if request.member_epoch == LEAVING_FOR_A_WHILE and request.instance_id is not None:
        away = replace(
            member,
            member_epoch=LEAVING_FOR_A_WHILE,
            revoking={},
            assigned={each: dict.fromkeys(those, 0) for each, those in member.assigned.items()},
        )
        draft.records.append(records.current_record(draft.group.group_id, away))
        return draft.decision(response)
    return leave(draft, [member], response)


def _existing(group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest) -> Member | Refusal:
    """Return the member that a request names."""
    if request.instance_id is None:
        return group.members.get(request.member_id) or _unknown(request)
    member = group.static_member(request.instance_id)
    if member is None:
        return _unknown(request)
    if member.member_id != request.member_id:
        words = f"{request.instance_id!r} is now held by the member {member.member_id!r}"
        return Refusal(ErrorCode.FENCED_INSTANCE_ID, words)
    return member


def _unknown(request: ConsumerGroupHeartbeatRequest) -> Refusal:
    named = request.member_id if request.instance_id is None else request.instance_id
    words = f"{named!r} is no member of the group {request.group_id!r}"
    return Refusal(ErrorCode.UNKNOWN_MEMBER_ID, words)


# -------------------------------------------------------------------------- joining and staying


def _join_or_stay(draft: Draft, command: ConsumerGroupHeartbeat) -> Decision | Refusal:
    """Decide a heartbeat that joins or stays."""
    request, group = command.request, draft.group
    member_id = request.member_id or command.new_member_id
    if len(group.members) >= draft.config.consumer_max_size and member_id not in group.members:
        words = f"the group already has {len(group.members)} members"
        return Refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, words)
    replaced = _to_replace(group, request)
    before = replaced if isinstance(replaced, Refusal) else _member(draft, request, member_id)
    if isinstance(replaced, Refusal):
        return replaced
    if isinstance(before, Refusal):
        return before
    if replaced is not None:
        draft.replace(replaced, before)
    change = Change(
        _updated(before, request, command.caller), replaced.member_id if replaced else ""
    )
    return _answered(draft, request, before, change)


def _to_replace(
    group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest
) -> Member | Refusal | None:
    """Return the member whose instance ID a joining member claims, or a refusal.

    That member must have left, or use the classic protocol, whose members do not announce a return.
    """
    if request.member_epoch != JOINING:
        return None
    holder = group.static_member(request.instance_id)
    if holder is not None and holder.classic is None and not holder.has_left_for_a_while:
        words = f"{request.instance_id!r} is held by the member {holder.member_id!r}"
        return Refusal(ErrorCode.UNRELEASED_INSTANCE_ID, words)
    return holder


def _member(
    draft: Draft, request: ConsumerGroupHeartbeatRequest, member_id: str
) -> Member | Refusal:
    """Return the member before this request, or a new one for a member that joins."""
    group = draft.group
    if request.member_epoch == JOINING:
        holder = group.static_member(request.instance_id)
        if holder is not None:
            return replace(
                holder, member_id=member_id, member_epoch=JOINING, previous_epoch=JOINING
            )
        return group.members.get(member_id) or Member(member_id)
    member = _existing(group, request)
    if isinstance(member, Refusal):
        return member
    return _fenced(member, request) or member


def _fenced(member: Member, request: ConsumerGroupHeartbeatRequest) -> Refusal | None:
    """Return whether the epoch is not the member's.

    The previous epoch is also accepted if the member owns no more than it should: the response with
    the new epoch may have been lost.
    """
    if request.member_epoch == member.member_epoch:
        return None
    if request.member_epoch == member.previous_epoch and _owns_no_more(member, request):
        return None
    words = (
        f"the member's epoch is {member.member_epoch}, not {request.member_epoch}: it must give up "
        "its partitions and rejoin"
    )
    return Refusal(ErrorCode.FENCED_MEMBER_EPOCH, words)


def _owns_no_more(member: Member, request: ConsumerGroupHeartbeatRequest) -> bool:
    if request.member_epoch > member.member_epoch or request.topic_partitions is None:
        return False
    return all(
        topic.topic_id in member.assigned
        and member.assigned[topic.topic_id].keys() >= set(topic.partitions)
        for topic in request.topic_partitions
    )


def _updated(member: Member, request: ConsumerGroupHeartbeatRequest, caller: Caller) -> Member:
    """Return the member with the fields of the request; omitted fields stay as they were."""
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    timeout_ms = request.rebalance_timeout_ms
    return replace(
        member,
        instance_id=request.instance_id if request.instance_id is not None else member.instance_id,
        rack_id=request.rack_id if request.rack_id is not None else member.rack_id,
        rebalance_timeout_ms=(
            timeout_ms if timeout_ms != NOT_GIVEN else member.rebalance_timeout_ms
        ),
        assignor=request.server_assignor or member.assignor,
        topic_names=member.topic_names if names is None else frozenset(names),
        topic_regex=member.topic_regex if regex is None else regex,
        client_id=caller.client_id,
        client_host=caller.client_host,
        classic=None,
    )


def _answered(
    draft: Draft, request: ConsumerGroupHeartbeatRequest, before: Member, change: Change
) -> Decision | Refusal:
    member = change.member
    assert member is not None
    names_changed = draft.write_member(before, member)
    resolved = draft.change_regex(before, change)
    if isinstance(resolved, Refusal):
        return resolved
    draft.resolve_regexes(member)
    merged = _replaces_another(draft.group, change)
    draft.refresh_epoch(change, subscription_changed=names_changed or resolved or merged)
    regex_changed = (before.topic_regex or "") != (member.topic_regex or "")
    moved = draft.reconcile(
        member,
        draft.assign(change),
        _owned(request),
        subscription_changed=names_changed or regex_changed,
    )
    if isinstance(moved, Refusal):
        return moved
    draft.effects.append(timers.session(draft.group.group_id, moved, draft.config, draft.now))
    response = ConsumerGroupHeartbeatResponse(
        member_id=moved.member_id,
        member_epoch=moved.member_epoch,
        heartbeat_interval_ms=draft.times.heartbeat_interval_ms,
    )
    if request.member_epoch == JOINING or _is_full(request) or before.assigned != moved.assigned:
        topics = [TopicPartitions(*each) for each in listed(moved.assigned)]
        response.assignment = Assignment(topics)
    is_new = draft.records or response.assignment or moved.member_epoch != request.member_epoch
    return draft.decision(response)._replace(is_known=not is_new)


def _replaces_another(group: ConsumerGroup, change: Change) -> bool:
    """Return whether a known member replaces another one.

    No correct client does that. The partitions that the replaced member would have owned must go to
    a member.
    """
    member = change.member
    assert member is not None
    takes_place = change.replaced_id not in {"", member.member_id}
    return takes_place and member.member_id in group.members


def _owned(request: ConsumerGroupHeartbeatRequest) -> dict[bytes, frozenset[int]] | None:
    if request.topic_partitions is None:
        return None
    topics = [(topic.topic_id, topic.partitions) for topic in request.topic_partitions]
    return dict(owned_partitions(topics))


def _is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Return whether the request has all fields, as after an error; so has its response."""
    subscribes = (
        request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    )
    timed = request.rebalance_timeout_ms != NOT_GIVEN
    return timed and subscribes and request.topic_partitions is not None
