"""The next step of a member towards its target assignment: revoke first, then assign (KIP-848).

A partition is given to a member only when it has no owner any more: its last one has said that it
gave it back, or is out of the group. So it never has two owners at once (O10).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from barnabas.coordinator.groups.consumer.group import ConsumerGroup
from barnabas.coordinator.groups.consumer.member import (
    NO_PARTITIONS,
    NOTHING_OWNED,
    Member,
    MemberState,
    Owned,
    Partitions,
)
from barnabas.coordinator.groups.consumer.refusals import Refusal
from barnabas.protocol.errors import ErrorCode


@dataclass(frozen=True, slots=True)
class Step:
    """Inputs of a member's next step."""

    group: ConsumerGroup
    """The group, with the partitions that are owned now."""
    topic_ids: frozenset[bytes]
    """The existing topics that the member subscribes to."""
    epoch: int
    """Epoch of the target assignment."""
    target: Partitions
    owned: Partitions | None
    """The partitions that the member reports as owned, or None if it reports none."""
    subscription_changed: bool


def reconciled(member: Member, step: Step) -> Member | Refusal:
    """Return the member after its next step, the unchanged member without one, or a refusal."""
    if member.state is MemberState.UNKNOWN:
        if step.owned is None or step.owned:
            return Refusal(
                ErrorCode.FENCED_MEMBER_EPOCH,
                "the member's state is not known here: it must give up its partitions and rejoin",
            )
        return _towards_target(member, step)
    if member.state is MemberState.STABLE and member.member_epoch == step.epoch:
        return _without_unwanted(member, step) if step.subscription_changed else member
    if member.state is MemberState.UNREVOKED_PARTITIONS and _holds(step.owned, member.revoking):
        return _without_unwanted(member, step) if step.subscription_changed else member
    return _towards_target(member, step)


def _holds(owned: Partitions | None, partitions: Owned) -> bool:
    """Return whether the member reports that it owns any of these."""
    if owned is None:
        return True
    return any(those & partitions.get(topic_id, {}).keys() for topic_id, those in owned.items())


def _without_unwanted(member: Member, step: Step) -> Member:
    """Revoke topics to which the member no longer subscribes, before a new assignment."""
    unwanted = {each: member.assigned[each] for each in member.assigned.keys() - step.topic_ids}
    if not unwanted:
        return member
    assigned = {each: member.assigned[each] for each in member.assigned.keys() & step.topic_ids}
    revoking = _joined(member.revoking, unwanted)
    changed = replace(member, previous_epoch=member.member_epoch, assigned=assigned)
    if _holds(step.owned, revoking):
        return replace(changed, state=MemberState.UNREVOKED_PARTITIONS, revoking=revoking)
    return changed


def _towards_target(member: Member, step: Step) -> Member:
    """Revoke extra partitions, then take the target's epoch and add free partitions."""
    kept: dict[bytes, dict[int, int]] = {}
    revoked: dict[bytes, dict[int, int]] = {}
    taken: dict[bytes, dict[int, int]] = {}
    waits = False
    for topic_id in sorted({*step.target, *member.assigned}):
        wanted = step.topic_ids
        target = step.target.get(topic_id, frozenset()) if topic_id in wanted else frozenset()
        has = member.assigned.get(topic_id, {})
        _put(kept, topic_id, {each: epoch for each, epoch in has.items() if each in target})
        _put(revoked, topic_id, {each: epoch for each, epoch in has.items() if each not in target})
        missing = sorted(target - has.keys())
        own = member.revoking.get(topic_id, {})
        free = [each for each in missing if each in own or not step.group.is_owned(topic_id, each)]
        waits = waits or len(free) < len(missing)
        _put(taken, topic_id, dict.fromkeys(free, step.epoch))
    if revoked and _holds(step.owned, revoked):
        return replace(
            member,
            state=MemberState.UNREVOKED_PARTITIONS,
            previous_epoch=member.member_epoch,
            assigned=kept,
            revoking=revoked,
        )
    return replace(
        member,
        state=MemberState.UNRELEASED_PARTITIONS if waits else MemberState.STABLE,
        member_epoch=step.epoch,
        previous_epoch=member.member_epoch,
        assigned=_joined(kept, taken),
        revoking=NOTHING_OWNED,
    )


def _put(found: dict[bytes, dict[int, int]], topic_id: bytes, partitions: dict[int, int]) -> None:
    if partitions:
        found[topic_id] = partitions


def _joined(one: Owned, other: Owned) -> Owned:
    return {
        topic_id: {**one.get(topic_id, {}), **other.get(topic_id, {})}
        for topic_id in sorted({*one, *other})
    }


def owned_partitions(topics: Iterable[tuple[bytes, Iterable[int]]]) -> Partitions:
    """Return the partitions that a client reports as owned, by topic id."""
    found: dict[bytes, frozenset[int]] = {}
    for topic_id, partitions in topics:
        found[topic_id] = found.get(topic_id, frozenset()) | frozenset(partitions)
    return found or NO_PARTITIONS
