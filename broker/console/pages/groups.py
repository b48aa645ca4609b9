"""Groups: their members, what they have committed, and how much of what is left they can read.

A group is behind for one of two reasons: it is slow, or a transaction that is still open holds the
last stable offset. The one is lag that can be read now, the other is lag that is held back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.api.checks import GROUP, READ, TOPIC
from barnabas.broker.console.pacing import PARTITION_UNITS, ROW_UNITS
from barnabas.broker.console.pages.clients import isolation_of_clients
from barnabas.broker.console.pages.transactions import open_on
from barnabas.broker.console.shapes import (
    GroupDescription,
    GroupMember,
    GroupPage,
    GroupPartition,
    GroupRow,
    TopicPartitions,
)
from barnabas.coordinator.groups.classic import ClassicGroup
from barnabas.coordinator.groups.consumer.embedded import given
from barnabas.coordinator.groups.consumer.group import ConsumerGroup
from barnabas.coordinator.groups.consumer.member import names_of
from barnabas.coordinator.groups.consumer.target import assignor_of
from barnabas.coordinator.groups.group import CLASSIC
from barnabas.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.console.paging import Selection
    from barnabas.broker.console.questions import ConsoleRequest, Question
    from barnabas.broker.coordination.groups import Groups
    from barnabas.coordinator.groups.consumer.member import Partitions
    from barnabas.coordinator.groups.group import Group
    from barnabas.coordinator.groups.offset_table import CommittedOffset
    from barnabas.coordinator.groups.shard import GroupShard
    from barnabas.storage.log.partition_log import PartitionLog

STATES: Final = (
    "Assigning",
    "CompletingRebalance",
    "Empty",
    "PreparingRebalance",
    "Reconciling",
    "Stable",
)
ORDERS: Final[Mapping[str, tuple[type, ...]]] = {
    "group": (str,),
    **dict.fromkeys(
        ("members", "lag", "lag_readable", "lag_blocked", "last_commit_ms"), (int, str)
    ),
}
PARTITION_ORDERS: Final[Mapping[str, tuple[type, ...]]] = {
    "topic": (str, int),
    **dict.fromkeys(("lag", "lag_blocked"), (int, str, int)),
}
MEMBERS_SHOWN: Final = 1000
LISTED_MOST: Final = 48
"""First rows of a list whose lag is measured from then on (lag_history.py has 64 places)."""
NEVER_MS: Final = -1
"""Time of the last commit of a group that has not committed."""
EMPTY: Final = "Empty"
"""State of a group that has offsets and never had a member."""


class Lag(NamedTuple):
    """Number of offsets left to read, of one partition or of several."""

    lag: int = 0
    lag_blocked: int = 0
    partitions: int = 0
    last_commit_ms: int = NEVER_MS

    @property
    def last_commit(self) -> int | None:
        """Time of the newest commit, or None if there is none."""
        return None if self.last_commit_ms == NEVER_MS else self.last_commit_ms

    @property
    def lag_readable(self) -> int:
        """Number of offsets that are not blocked."""
        return self.lag - self.lag_blocked

    @property
    def shown(self) -> tuple[int | None, int | None, int | None]:
        """Total, readable and blocked lag; three times None if no offset is committed."""
        if not self.partitions:
            return None, None, None
        return self.lag, self.lag_readable, self.lag_blocked

    def plus(self, other: Lag) -> Lag:
        """Return the sum of both."""
        return Lag(
            self.lag + other.lag,
            self.lag_blocked + other.lag_blocked,
            self.partitions + other.partitions,
            max(self.last_commit_ms, other.last_commit_ms),
        )


class Summary(NamedTuple):
    """Properties of a group, without its offsets."""

    state: str
    type: str
    protocol_type: str
    members: int


async def list_groups(question: Question) -> GroupPage:
    """List groups."""
    groups = loaded(question)
    pace, access = question.pace, question.access
    wanted, state = question.text("filter").casefold(), question.text("state")
    selection = question.selection(ORDERS)
    sort = selection.sort
    for machine in groups.machines:
        for group_id in machine.keys():  # noqa: SIM118  No mapping: a list of what there is.
            await pace.spend()
            if wanted not in group_id.casefold() or not access.may_see(GROUP, group_id):
                continue
            if state and summary_of(machine, group_id).state != state:
                continue
            if sort == "group":
                selection.offer(group_id, group_id)
            elif sort == "members":
                selection.offer_by(summary_of(machine, group_id), group_id, group_id)
            else:
                selection.offer_by(await lag_of(question, machine, group_id), group_id, group_id)
    page = selection.page()
    question.lags.view_rows(question, page[:LISTED_MOST])
    rows = await rows_of(question, page)
    await question.durable()
    return GroupPage(question.now_ms, selection.following, selection.total, rows)


async def rows_of(question: Question, group_ids: Iterable[str]) -> tuple[GroupRow, ...]:
    """Return the rows of groups, without groups that were deleted in between."""
    rows = []
    for group_id in group_ids:
        machine = machine_that_knows(question.broker.groups, group_id)
        if machine is not None:
            rows.append(await row_of(question, machine, group_id))
    return tuple(rows)


async def row_of(question: Question, machine: GroupShard, group_id: str) -> GroupRow:
    """Return the row of a group in a list."""
    await question.pace.spend(ROW_UNITS)
    lag = await lag_of(question, machine, group_id)
    return GroupRow(
        group_id,
        *summary_of(machine, group_id),
        lag.partitions,
        *lag.shown,
        lag.last_commit,
        await question.lags.trend(question, group_id),
    )


async def lag_of(question: Question, machine: GroupShard, group_id: str) -> Lag:
    """Return the lag of a group over all partitions of this broker that the user may see."""
    total = Lag()
    for name in list(machine.offsets.of_group(group_id)):
        total = total.plus(await lag_on(question, machine, group_id, name))
    return total


async def lag_on(question: Question, machine: GroupShard, group_id: str, name: str) -> Lag:
    """Return the lag of a group on the topic's partitions that this broker leads and may show."""
    total = Lag()
    topic = question.broker.catalogue.topic(name)
    if topic is None or not question.access.may_see(TOPIC, name):
        return total
    partitions = machine.offsets.of_group(group_id).get(name, {})
    for index, committed in list(partitions.items()):
        await question.pace.spend(PARTITION_UNITS)
        if index < len(topic.partitions) and committed.is_of(topic.topic_id):
            log = topic.partitions[index].log
            total = total if log is None else total.plus(_lag(committed, log))
    return total


def summary_of(machine: GroupShard, group_id: str) -> Summary:
    """Return the properties of a group, as ListGroups reports them."""
    group = machine.groups.get(group_id)
    if group is None:
        return Summary(EMPTY, CLASSIC, "", 0)
    return Summary(group.state_name, group.type_name, group.protocol_type, len(group.members))


def _lag(committed: CommittedOffset, log: PartitionLog) -> Lag:
    end = log.high_watermark
    blocked_offsets = max(end - max(log.last_stable_offset, committed.offset), 0)
    return Lag(max(end - committed.offset, 0), blocked_offsets, 1, committed.commit_ms)


def loaded(request: ConsoleRequest) -> Groups:
    """Return the coordinator once it has read its log; raises KafkaError before."""
    groups = request.broker.groups
    if groups.is_coordinator() and groups.is_loading:
        raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    return groups


def machine_of(request: ConsoleRequest) -> GroupShard | None:
    """Return the machine of the group in the path, or None without that group.

    Raises KafkaError if this broker cannot know that.
    """
    groups, group_id = loaded(request), request.names["group"]
    code = groups.refusal(group_id) if groups.is_coordinator() else ErrorCode.NONE
    if code:
        raise KafkaError(code)
    return machine_that_knows(groups, group_id)


def machine_that_knows(groups: Groups, group_id: str) -> GroupShard | None:
    """Return the machine of a group, or None if this broker does not have the group."""
    if groups.refusal(group_id):
        return None
    machine = groups.machine_of(group_id)
    is_there = group_id in machine.groups or machine.offsets.knows(group_id)
    return machine if is_there else None


# -------------------------------------------------------------------------------------- one group


async def describe_one(question: Question) -> GroupDescription:
    """Describe a group: causes of its lag, members and partitions."""
    group_id, machine = question.names["group"], machine_of(question)
    if machine is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
    group = machine.groups.get(group_id)
    assignor, epoch = _assignor_and_epoch(machine, group)
    member_count = 0 if group is None else len(group.members)
    members, owners = await _members(question, group)
    view = _GroupView(question, machine.offsets.of_group(group_id), owners)
    partitions, following = await view.page()
    total = await lag_of(question, machine, group_id)
    state, kind, _, _ = summary_of(machine, group_id)
    await question.durable()  # Of whom partitions wait for (C14).
    return GroupDescription(
        question.now_ms,
        following,
        group_id,
        state,
        kind,
        question.broker.node_id,
        assignor,
        epoch,
        *total.shown,
        total.last_commit,
        partitions,
        member_count,
        members,
    )


def _assignor_and_epoch(machine: GroupShard, group: Group | None) -> tuple[str | None, int | None]:
    """Return assignor and epoch of a group, each None if its protocol has none."""
    if isinstance(group, ConsumerGroup):
        members = list(group.members.values())
        return assignor_of(group, members, machine.config.consumer_assignors), group.epoch
    return (group.protocol_name or None, None) if isinstance(group, ClassicGroup) else (None, None)


async def _members(
    question: Question, group: Group | None
) -> tuple[tuple[GroupMember, ...], dict[tuple[str, int], str]]:
    """Return the first members, and the owner of each partition."""
    shown: list[GroupMember] = []
    owners: dict[tuple[str, int], str] = {}
    isolation = {} if group is None else await isolation_of_clients(question)
    for member_id, instance, client, host, assigned in _assigned(question, group):
        await question.pace.spend(ROW_UNITS + sum(map(len, assigned.values())))
        named = {
            name: partitions
            for topic_id, partitions in assigned.items()
            if (name := question.broker.groups.image.name(topic_id)) is not None
            and question.access.may_see(TOPIC, name)
        }
        owners.update({(name, each): member_id for name in named for each in named[name]})
        if len(shown) < MEMBERS_SHOWN:
            listed = (TopicPartitions(name, tuple(sorted(named[name]))) for name in sorted(named))
            seen = isolation.get((client, host))
            shown.append(GroupMember(member_id, instance, client, host, seen, tuple(listed)))
    return tuple(shown), owners


def _assigned(
    question: Question, group: Group | None
) -> Iterator[tuple[str, str | None, str, str, Partitions]]:
    """Yield the members with their partitions, including those that they have to revoke."""
    if isinstance(group, ConsumerGroup):
        for member in list(group.members.values()):
            together: dict[bytes, frozenset[int]] = defaultdict(frozenset)
            for part in (names_of(member.assigned), names_of(member.revoking)):
                for topic_id, partitions in part.items():
                    together[topic_id] |= partitions
            yield (
                member.member_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                together,
            )
    elif isinstance(group, ClassicGroup):
        for each in list(group.members.values()):
            found = given(bytes(each.assignment), question.broker.groups.image)
            owned = {} if found is None else found.partitions
            yield each.member_id, each.instance_id, each.client_id, each.client_host, owned


class _GroupView:
    """The partitions of one group."""

    def __init__(
        self,
        question: Question,
        offsets: Mapping[str, Mapping[int, CommittedOffset]],
        owners: Mapping[tuple[str, int], str],
    ) -> None:
        self._question = question
        self._offsets = offsets
        self._owners = owners
        self._now_ms = question.now_ms

    async def page(self) -> tuple[tuple[GroupPartition, ...], str | None]:
        """Return a page of the members, and the cursor of the next one."""
        question = self._question
        selection = question.selection(PARTITION_ORDERS)
        for topic, indexes in list(self._offsets.items()):
            for index in list(indexes):
                await question.pace.spend(PARTITION_UNITS)
                self._offer(selection, topic, index)
        for topic, index in self._owners:
            await question.pace.spend(PARTITION_UNITS)
            if index not in self._offsets.get(topic, {}):
                self._offer(selection, topic, index)
        rows = [self._row(*each) async for each in selection.rows(question.pace)]
        return tuple(rows), selection.following

    def _offer(self, selection: Selection[tuple[str, int]], topic: str, index: int) -> None:
        if self._question.access.may_see(TOPIC, topic):
            lag = None if selection.sort == "topic" else self._lag_at(topic, index)
            selection.offer_by(lag or Lag(), (topic, index), topic, index)

    def _committed_at(self, topic: str, index: int) -> CommittedOffset | None:
        committed = self._offsets.get(topic, {}).get(index)
        found = self._question.broker.catalogue.topic(topic)
        if committed is None or found is None or committed.is_of(found.topic_id):
            return committed
        return None  # Of another topic, which had this name.

    def _lag_at(self, topic: str, index: int) -> Lag | None:
        committed = self._committed_at(topic, index)
        partition = self._question.broker.catalogue.partition(topic, index)
        log = None if partition is None else partition.log
        return None if committed is None or log is None else _lag(committed, log)

    def _row(self, topic: str, index: int) -> GroupPartition:
        question = self._question
        committed, lag = self._committed_at(topic, index), self._lag_at(topic, index)
        partition = question.broker.catalogue.partition(topic, index)
        blocked_by = None
        log = None if partition is None else partition.log
        if log is not None and question.access.may_see(TOPIC, topic, READ):
            assert partition is not None
            blocked_by = next(open_on(question, partition, self._now_ms), None)
        return GroupPartition(
            topic,
            index,
            None if committed is None else committed.offset,
            None if log is None else log.log_start_offset,
            None if log is None else log.last_stable_offset,
            None if log is None else log.high_watermark,
            None if lag is None else lag.lag,
            None if lag is None else lag.lag_readable,
            None if lag is None else lag.lag_blocked,
            None if committed is None else committed.commit_ms,
            self._owners.get((topic, index)),
            blocked_by,
        )
