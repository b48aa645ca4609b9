"""Members that leave a consumer group, or are removed from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from barnabas.coordinator.decision import Decision
from barnabas.coordinator.groups.consumer import records, timers
from barnabas.coordinator.groups.consumer.downgrade import downgraded, may_downgrade
from barnabas.coordinator.groups.consumer.draft import Draft
from barnabas.coordinator.groups.consumer.member import Member
from barnabas.coordinator.groups.consumer.target import metadata_hash


def leave(draft: Draft, leaving: Sequence[Member], response: Any) -> Decision:  # noqa: ANN401
    """Remove members; a new epoch assigns their partitions to the others.

    If only members of the classic protocol stay, the group becomes a classic one.
    """
    group = draft.group
    gone = {member.member_id for member in leaving}
    if not gone:
        return draft.decision(response)
    staying = group.others(*gone)
    for member_id in gone:
        draft.effects.extend(timers.none_of(group.group_id, member_id))
    if may_downgrade(draft.config, staying):
        return downgraded(draft, staying, group.members, response, rebalance=True)
    for member_id in gone:
        draft.add(records.member_tombstones(group.group_id, member_id))
    in_use = {member.topic_regex for member in staying}
    for regex in sorted(group.regexes() - in_use):
        draft.records.append(records.regex_tombstone(group.group_id, regex))
    draft.next_epoch(metadata_hash(group.subscribed_topics(staying), draft.topics))
    return draft.decision(response)
