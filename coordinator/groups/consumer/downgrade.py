"""Change of a group from the consumer protocol to the classic one, without stopping (KIP-848).

When the last member of the new protocol leaves, or is replaced by one of the old protocol, the
group becomes a classic group in its newest epoch, and rebalances as such.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

from barnabas.coordinator.decision import Cancel, Decision, Timer
from barnabas.coordinator.groups.classic.group import ClassicGroup
from barnabas.coordinator.groups.classic.group import Member as ClassicMember
from barnabas.coordinator.groups.classic.rebalance import prepare_rebalance
from barnabas.coordinator.groups.classic.records import subscribed_topics
from barnabas.coordinator.groups.classic.states import State
from barnabas.coordinator.groups.classic.turn import Turn
from barnabas.coordinator.groups.config import GroupConfig
from barnabas.coordinator.groups.consumer import embedded, records, timers
from barnabas.coordinator.groups.consumer.draft import Draft
from barnabas.coordinator.groups.consumer.member import NO_PARTITIONS, Member

DOWNGRADES: Final = frozenset({"downgrade", "bidirectional"})
"""The policies that allow it."""
CONSUMERS: Final = "consumer"


def may_downgrade(config: GroupConfig, members: Collection[Member]) -> bool:
    """Return whether a group of these members becomes a classic one."""
    return (
        0 < len(members) <= config.max_size
        and config.consumer_migration_policy in DOWNGRADES
        and all(member.classic is not None for member in members)
    )


def downgraded(
    draft: Draft,
    members: Sequence[Member],
    written: Iterable[str],
    response: Any,  # noqa: ANN401
    *,
    rebalance: bool,
    replaced: tuple[str, str] | None = None,
) -> Decision:
    """Make a classic group of ``members``.

    ``written`` are the members with records. ``replaced`` is a pair: a member, and the member that
    takes its place.
    """
    group = draft.group
    draft.add(records.group_tombstones(group.group_id, written, group.resolved))
    draft.effects.append(Cancel(Timer(group.group_id, timers.REGEX)))
    for member in members:
        draft.effects.extend(timers.none_of(group.group_id, member.member_id))
    classic = ClassicGroup(
        group.group_id,
        State.STABLE,
        state_since_ms=draft.now.wall_ms,
        generation=draft.epoch,
        protocol_type=CONSUMERS,
    )
    turn = Turn(classic, draft.config, draft.now, draft.records)
    for member in members:
        turn.add(_converted(member), CONSUMERS)
    turn.group.protocol_name = turn.group.selected_protocol()
    turn.group.topics = subscribed_topics(turn.group)
    turn.assign(_assignments(draft, turn.group, replaced))
    turn.persist()
    for member_now in turn.group.members.values():
        turn.start_session(member_now)
    if rebalance:
        prepare_rebalance(turn)
    decision = turn.decision(response)
    return decision._replace(effects=(*draft.effects, *decision.effects))


def _converted(member: Member) -> ClassicMember:
    assert member.classic is not None
    return ClassicMember(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        member.classic.session_timeout_ms,
        member.classic.protocols,
    )


def _assignments(
    draft: Draft, classic: ClassicGroup, replaced: tuple[str, str] | None
) -> dict[str, bytes]:
    """Return the members' target assignments, encoded as the classic members expect."""
    found = {}
    for member_id, member in classic.members.items():
        holder = replaced[0] if replaced is not None and member_id == replaced[1] else member_id
        target = draft.group.targets.get(holder, NO_PARTITIONS)
        like = member.metadata(classic.protocol_name)
        found[member_id] = embedded.assignment_bytes(target, like, draft.topics)
    return found
