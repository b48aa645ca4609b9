"""Expired timers of a consumer group, and the timers after a start."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import TYPE_CHECKING

from barnabas.coordinator.decision import NOTHING, Decision, Effect, LongDecision, Now
from barnabas.coordinator.groups.commands import TimerExpired
from barnabas.coordinator.groups.consumer import patterns, records, timers
from barnabas.coordinator.groups.consumer.apply import TopicsMatched
from barnabas.coordinator.groups.consumer.draft import Draft
from barnabas.coordinator.groups.consumer.group import ConsumerGroup, Resolved
from barnabas.coordinator.groups.consumer.leave import leave
from barnabas.coordinator.groups.consumer.member import Member, MemberState
from barnabas.coordinator.groups.consumer.target import metadata_hash

if TYPE_CHECKING:
    from barnabas.coordinator.groups.group_table import GroupTable


def decide_timer(shard: GroupTable, command: TimerExpired, now: Now) -> Decision:
    """Remove the member whose time has expired, or compare regular expressions with the topics
    again.
    """
    group = shard.groups[command.group_id]
    assert isinstance(group, ConsumerGroup)
    draft = Draft(shard, group, command.topics, now)
    if command.timer.name == timers.REGEX:
        return _resolve(draft)
    member = group.members.get(command.timer.member_id)
    if member is None or not _is_due(command.timer.name, member):
        return NOTHING
    return leave(draft, [member], None)


def _is_due(name: str, member: Member) -> bool:
    if name == timers.REBALANCE:
        # A static member that has left temporarily owns nothing that another member waits for.
        revoking = member.state is MemberState.UNREVOKED_PARTITIONS
        return revoking and not member.has_left_for_a_while
    if name in (timers.REJOIN, timers.RESYNC):
        return member.classic is not None
    return name == timers.SESSION


def _resolve(draft: Draft) -> Decision:
    """Compare the group's regular expressions with all topics; a change starts a new epoch.

    With all that the member sees that last asked for it, as in Kafka. Decided at once where that
    is a few milliseconds' work, or in steps.
    """
    steps = _resolve_in_steps(draft)
    try:
        next(steps)
    except StopIteration as done:
        decision: LongDecision = done.value
        return Decision(None, tuple(decision.records), decision.changes)
    return Decision(steps=steps)


def _resolve_in_steps(draft: Draft) -> Generator[None, None, LongDecision]:
    """Return the decision in steps, between which topics may change, but not the group.

    The version of the topics is read before their names. If it has changed since, the next
    heartbeat compares the topics again.
    """
    group, topics = draft.group, draft.topics
    version = topics.version()
    shown = group.topics_shown or topics
    found = yield from patterns.matching_in_steps(sorted(group.regexes()), list(shown.names()))
    if not found:
        return LongDecision(None)
    names = set().union(*(member.topic_names for member in group.members.values()))
    changed = False
    for regex, matches in found.items():
        resolved = Resolved(matches, version, draft.now.wall_ms)
        draft.records.append(records.regex_record(group.group_id, regex, resolved))
        changed = changed or group.resolved.get(regex, Resolved()).topics != matches
        names |= matches
    topics_hash = metadata_hash(names, topics)
    if changed or topics_hash != group.metadata_hash:
        draft.next_epoch(topics_hash)
    matched = TopicsMatched(group.group_id, version)
    return LongDecision(None, tuple(draft.records), changes=(matched,))


def begin(shard: GroupTable, now: Now) -> Iterable[Effect]:
    """Restart all members' sessions, because the broker could not receive heartbeats."""
    for group in shard.groups.values():
        if isinstance(group, ConsumerGroup):
            for member in group.members.values():
                yield timers.session(group.group_id, member, shard.config, now)
                if member.state is MemberState.UNREVOKED_PARTITIONS and member.classic is None:
                    yield timers.revocation(group.group_id, member, now)
