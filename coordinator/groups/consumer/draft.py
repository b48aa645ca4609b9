"""One decision about a consumer group in the making, with the steps that several commands share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from barnabas.coordinator.decision import Decision, Effect, Now, Record, Schedule, Timer
from barnabas.coordinator.groups.commands import TopicsImage
from barnabas.coordinator.groups.config import ConsumerTimes, GroupConfig
from barnabas.coordinator.groups.consumer import patterns, records, timers
from barnabas.coordinator.groups.consumer.apply import TopicsSeen, TopicsShown
from barnabas.coordinator.groups.consumer.group import ConsumerGroup
from barnabas.coordinator.groups.consumer.member import NO_PARTITIONS, Member, Owned, Partitions
from barnabas.coordinator.groups.consumer.reconcile import Step, reconciled
from barnabas.coordinator.groups.consumer.refusals import Refusal
from barnabas.coordinator.groups.consumer.target import (
    Change,
    TopicIds,
    assign,
    assignor_of,
    changed_targets,
    metadata_hash,
)
from barnabas.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.coordinator.groups.group_table import GroupTable

REGEX_PAUSE_MS: Final = 10_000
"""Shortest interval at which one group is compared with all topics, as in Kafka."""


class Draft:
    """Results of a command about one group. It reads the group and never changes it."""

    def __init__(
        self, shard: GroupTable, group: ConsumerGroup, topics: TopicsImage, now: Now
    ) -> None:
        """``group`` is a group of the shard, or a new one that the records of this draft create."""
        self.group = group
        self.config: GroupConfig = shard.config
        self.times: ConsumerTimes = shard.config.consumer_times(group.group_id)
        self.topics = topics
        self.now = now
        self.epoch = group.epoch
        """The group's epoch after this decision."""
        self.needs_assignment = False
        """Whether a new assignment is needed, even without a change."""
        self.records: list[Record] = []
        self.changes: list[Any] = []
        self.effects: list[Effect] = []

    def decision(self, response: Any) -> Decision:  # noqa: ANN401
        """Return the decision with the records, changes and effects of the draft."""
        return Decision(response, tuple(self.records), tuple(self.changes), tuple(self.effects))

    def add(self, more: Iterable[Record]) -> None:
        """Add records."""
        self.records.extend(more)

    # ------------------------------------------------------------------------------ subscriptions

    def write_member(self, before: Member, after: Member) -> bool:
        """Write a member's record if it has changed; return whether its topic names have."""
        if before != after:
            self.records.append(records.member_record(self.group.group_id, after))
        return before.topic_names != after.topic_names

    def replace(self, holder: Member, member: Member) -> None:
        """Replace the member that had the instance ID."""
        group_id = self.group.group_id
        target = self.group.targets.get(holder.member_id, NO_PARTITIONS)
        self.add(records.member_tombstones(group_id, holder.member_id))
        self.records.append(records.member_record(group_id, member))
        self.records.append(records.target_record(group_id, member.member_id, target))
        self.records.append(records.current_record(group_id, member))
        if holder.member_id != member.member_id:
            self.effects.extend(timers.none_of(group_id, holder.member_id))

    def change_regex(self, before: Member, change: Change) -> Refusal | bool:
        """Apply a change of a member's regular expression.

        Return whether the subscription changes at once; an expression that is not resolved yet
        changes it later.
        """
        assert change.member is not None
        old, new = before.topic_regex or "", change.member.topic_regex or ""
        if old == new:
            return False
        others = self.group.others(before.member_id, change.replaced_id)
        used = {member.topic_regex for member in others}
        if old and old not in used:
            self.records.append(records.regex_tombstone(self.group.group_id, old))
        problem = patterns.problem_of(new) if new and new not in used else None
        if problem is not None:
            return Refusal(
                ErrorCode.INVALID_REGULAR_EXPRESSION,
                f"the regular expression {new!r} of the subscription is not valid: {problem}",
            )
        return not new or new in self.group.resolved

    def resolve_regexes(self, member: Member) -> None:
        """Schedule the comparison of the regular expressions with the topics.

        It examines all topics, so it runs after the response, and at most every ten seconds for a
        group.
        """
        group = self.group
        if not member.topic_regex:
            return
        last_ms = max((each.timestamp_ms for each in group.resolved.values()), default=None)
        age_ms = None if last_ms is None else self.now.wall_ms - last_ms
        due = (
            age_ms is None
            or member.topic_regex not in group.resolved
            or not group.regexes() <= group.resolved.keys()
            or group.topics_matched != self.topics.version()
            or not 0 <= age_ms <= self.config.consumer_regex_refresh_interval_ms
        )
        if due:
            wait_ms = 0 if age_ms is None or age_ms < 0 else max(0, REGEX_PAUSE_MS - age_ms)
            timer = Timer(group.group_id, timers.REGEX)
            self.effects.append(Schedule(timer, self.now.tick_ms + wait_ms))
            if group.topics_shown is not self.topics:
                self.changes.append(TopicsShown(group.group_id, self.topics))

    def refresh_epoch(self, change: Change, *, subscription_changed: bool) -> None:
        """Start a new epoch if the subscription or its topics have changed."""
        group = self.group
        version = self.topics.version()
        subscription_changed = subscription_changed or self.needs_assignment
        if not subscription_changed and group.topics_seen == version:
            return
        found = metadata_hash(group.subscribed_topics(change.members_of(group)), self.topics)
        self.changes.append(TopicsSeen(group.group_id, version))
        if subscription_changed or found != group.metadata_hash:
            self.next_epoch(found)
        if group.has_partition_metadata:
            self.records.append(records.partition_metadata_tombstone(group.group_id))

    def next_epoch(self, topics_hash: int) -> None:
        """Start a new epoch."""
        self.epoch += 1
        record = records.epoch_record(self.group.group_id, self.epoch, topics_hash)
        self.records.append(record)

    # -------------------------------------------------------------------------------- assignments

    def assign(self, change: Change) -> tuple[int, Partitions]:
        """Make a target assignment for a new epoch; return its epoch and the member's part.

        The configured interval limits how often this happens (KIP-1263): until it has passed, the
        last assignment is valid.
        """
        group, member = self.group, change.member
        if member is None:
            return group.assignment_epoch, NO_PARTITIONS
        if group.assignment_epoch >= self.epoch or not self._may_assign():
            return group.assignment_epoch, group.target_of(member)
        offered = self.config.consumer_assignors
        name = assignor_of(group, change.members_of(group), offered)
        targets = assign(group, change, name, self.topics)
        self.add(changed_targets(group, targets, self.epoch, self.now.wall_ms))
        return self.epoch, targets[member.member_id]

    def _may_assign(self) -> bool:
        """Return whether the assignment interval has passed, or the wall clock was set back."""
        age_ms = self.now.wall_ms - self.group.assignment_timestamp_ms
        return not 0 <= age_ms < self.times.assignment_interval_ms

    def reconcile(
        self,
        member: Member,
        assignment: tuple[int, Partitions],
        owned: Partitions | None,
        *,
        subscription_changed: bool,
    ) -> Member | Refusal:
        """Take the member's next step towards its target."""
        epoch, target = assignment
        if not subscription_changed and member.is_reconciled_to(epoch):
            return member
        topic_ids = TopicIds(self.topics).of(self.group.subscription_of(member))
        step = Step(self.group, topic_ids, epoch, target, owned, subscription_changed)
        moved = reconciled(member, step)
        if isinstance(moved, Refusal) or moved == member:
            return moved
        self.records.append(records.current_record(self.group.group_id, moved))
        if moved.classic is None:
            self.effects.append(timers.revocation(self.group.group_id, moved, self.now))
        return moved


def listed(owned: Owned) -> list[tuple[bytes, list[int]]]:
    """Return partitions in the order of a response."""
    return [(topic_id, sorted(owned[topic_id])) for topic_id in sorted(owned)]
