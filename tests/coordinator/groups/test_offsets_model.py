"""Any sequence of commands about offsets, against a dictionary (O1, O7, O8, A2)."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from barnabas.coordinator.decision import Decision, Now, Record, TransactionalProducer
from barnabas.coordinator.groups.commands import (
    Caller,
    DeleteGroup,
    ExpireOffsets,
    OffsetCommit,
    OffsetDelete,
    OffsetFetch,
    TopicsDeleted,
    TransactionalOffsetCommit,
)
from barnabas.coordinator.groups.config import GroupConfig
from barnabas.coordinator.groups.shard import GroupShard
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequestGroup
from tests.coordinator.groups.offset_commands import Image

CALLER = Caller("", "", 9)
CONFIG = GroupConfig(offsets_retention_ms=1000)
UNSTABLE = ErrorCode.UNSTABLE_OFFSET_COMMIT

groups = st.sampled_from(["g", "h"])
topics = st.sampled_from(["a", "b", "c"])
producers = st.sampled_from([7, 8])
places = st.dictionaries(st.tuples(topics, st.integers(0, 2)), st.integers(0, 9), max_size=4)


class Offsets(RuleBasedStateMachine):
    """Simple groups; every record goes through bytes, as it does in the log."""

    def __init__(self) -> None:
        super().__init__()
        self.shard = GroupShard(CONFIG)
        self.log: list[tuple[Record, bytes, bytes | None] | tuple[int, bool]] = []
        """Records and their bytes; markers: producer and whether it has committed."""
        self.image = Image(a=b"a" * 16, b=b"b" * 16, c=b"c" * 16)
        self.next_id = 1
        self.now_ms = 1_000_000
        # (group, topic, partition) -> offset, metadata, when it was committed, topic id
        self.model: dict[tuple[str, str, int], tuple[int, str, int, bytes]] = {}
        # The same by producer, and where in the log the last plain or pending commit stands.
        self.pending: dict[int, dict[tuple[str, str, int], tuple[int, str, int, bytes]]] = {}
        self.places: dict[tuple[object, tuple[str, str, int]], int] = {}

    def ask(self, command) -> Decision:
        now = Now(self.now_ms, self.now_ms)
        decision = self.shard.decide(command, now)
        assert self.shard.decide(command, now) == decision
        for record in decision.records:
            self.write(record)
        return decision

    def write(self, record: Record) -> None:
        self.log.append((record, *record.encode()))
        self.take_in(self.shard, len(self.log) - 1)

    def take_in(self, shard: GroupShard, at: int) -> None:
        entry = self.log[at]
        if len(entry) == 2:
            shard.end_transaction(entry[0], commit=entry[1])
            return
        record, key, value = entry
        kind = record.kind
        decoded = None if value is None else kind.decode_value(value)
        read = Record(kind, kind.decode_key(key), decoded, producer_id=record.producer_id)
        shard.apply(read, at)

    def visible(self, group: str) -> dict[tuple[str, int], tuple[int, str]]:
        return {
            (topic, partition): (offset, metadata)
            for (holder, topic, partition), (offset, metadata, _, topic_id) in self.model.items()
            if holder == group and self.image.topic_id(topic) == topic_id
        }

    def request(self, group, offsets, metadata) -> OffsetCommitRequest:
        """A commit of what exists; for the rest the handler answers."""
        request = OffsetCommitRequest(group)
        for (topic, partition), offset in offsets.items():
            topic_id = self.image.topic_id(topic)
            if topic_id is not None:
                asked = OffsetCommitRequestPartition(partition, offset, -1, metadata)
                request.topics.append(OffsetCommitRequestTopic(topic, topic_id, [asked]))
        return request

    def commit_all(self, command, holder, commits) -> None:
        """Commit, and note it for ``holder``: a producer, or None for plain commits."""
        request = command.request
        at = len(self.log)
        response = self.ask(command).response
        assert {each.error_code for topic in response.topics for each in topic.partitions} <= {0}
        for number, topic in enumerate(request.topics):
            (asked,) = topic.partitions
            place = (request.group_id, topic.name, asked.partition_index)
            committed = asked.committed_offset, asked.committed_metadata
            commits[place] = (*committed, self.now_ms, topic.topic_id)
            self.places[holder, place] = at + number

    @rule(group=groups, offsets=places, metadata=st.text(max_size=3))
    def commit(self, group, offsets, metadata):
        command = OffsetCommit(CALLER, self.request(group, offsets, metadata))
        self.commit_all(command, None, self.model)

    @rule(group=groups, producer=producers, offsets=places)
    def commit_in_transaction(self, group, producer, offsets):
        request = self.request(group, offsets, "t")
        command = TransactionalOffsetCommit(CALLER, request, TransactionalProducer(producer, 0))
        if request.topics:
            self.commit_all(command, producer, self.pending.setdefault(producer, {}))

    @rule(group=groups, producer=producers, offsets=places)
    def commit_as_a_zombie(self, group, producer, offsets):
        """Commit as a member; the group has none, so the commit is refused (O5)."""
        request = self.request(group, offsets, "z")
        request.generation_id_or_member_epoch = 1
        command = TransactionalOffsetCommit(CALLER, request, TransactionalProducer(producer, 0))
        assert self.ask(command).records == ()

    @rule(producer=producers, commit=st.booleans())
    def end_transaction(self, producer, commit):
        self.log.append((producer, commit))
        self.take_in(self.shard, len(self.log) - 1)
        for place, committed in self.pending.pop(producer, {}).items():
            at = self.places.pop((producer, place))
            if commit and (place not in self.model or self.places[None, place] < at):
                self.model[place] = committed
                self.places[None, place] = at

    def forget(self, place: tuple[str, str, int]) -> None:
        self.model.pop(place, None)
        for commits in self.pending.values():
            commits.pop(place, None)

    def known(self, group: str) -> set[tuple[str, str, int]]:
        found = [self.model, *self.pending.values()]
        return {place for commits in found for place in commits if place[0] == group}

    @rule(group=groups, offsets=places)
    def delete_offsets(self, group, offsets):
        exists = bool(self.known(group))
        request = OffsetDeleteRequest(
            group,
            [
                OffsetDeleteRequestTopic(topic, [OffsetDeleteRequestPartition(partition)])
                for topic, partition in offsets
            ],
        )
        response = self.ask(OffsetDelete(CALLER, request)).response
        assert (response.error_code == ErrorCode.NONE) == exists
        for topic, partition in offsets:
            self.forget((group, topic, partition))

    @rule(group=groups)
    def delete_group(self, group):
        mine = self.known(group)
        code = self.ask(DeleteGroup(group)).response
        assert code == (ErrorCode.NONE if mine else ErrorCode.GROUP_ID_NOT_FOUND)
        for place in mine:
            self.forget(place)

    @rule(topic=topics)
    def delete_topic(self, topic):
        self.image.ids.pop(topic, None)

    @rule(topic=topics)
    def create_topic(self, topic):
        if topic not in self.image.ids:
            self.image.ids[topic] = self.next_id.to_bytes(16, "big")
            self.next_id += 1

    @rule(group=groups)
    def forget_deleted_topics(self, group):
        self.ask(TopicsDeleted(group, self.image))
        for place in self.known(group):
            if self.is_gone(place):
                self.forget(place)

    def is_gone(self, place: tuple[str, str, int]) -> bool:
        """Whether all that is committed for a place was for topics that were deleted."""
        found = [self.model, *self.pending.values()]
        ids = {commits[place][3] for commits in found if place in commits}
        return self.image.topic_id(place[1]) not in ids

    @rule(passed_ms=st.integers(1, 1500))
    def wait(self, passed_ms):
        self.now_ms += passed_ms

    @rule(group=groups)
    def expire(self, group):
        self.ask(ExpireOffsets(group, self.image))
        for place in self.known(group):
            pending = any(place in commits for commits in self.pending.values())
            expired = not pending and self.now_ms - self.model[place][2] >= 1000
            if expired or self.is_gone(place):
                self.forget(place)

    @precondition(lambda self: self.log)
    @rule()
    def restart(self):
        self.shard = GroupShard(CONFIG)
        for at in range(len(self.log)):
            self.take_in(self.shard, at)

    @precondition(lambda self: self.log and all(len(entry) == 3 for entry in self.log))
    @precondition(lambda self: not self.pending)
    @rule()
    def compact(self):
        """Keep the last record of each key: a restart must not notice (K6).

        Logs without transactions only: with them the last record does not have to be the one.
        """
        last = {key: at for at, (_, key, _) in enumerate(self.log)}
        compacted = GroupShard(CONFIG)
        for at in sorted(last.values()):
            self.take_in(compacted, at)
        groups_there = set(self.shard.offsets.group_ids())
        assert set(compacted.offsets.group_ids()) == groups_there
        for group in groups_there:
            assert compacted.offsets.of_group(group) == self.shard.offsets.of_group(group)

    def fetched(self, group: str, *, require_stable: bool) -> dict[tuple[str, int], object]:
        """All offsets of a group; what is unstable with an error in the metadata's place (O3)."""
        request = OffsetFetchRequestGroup(group, None, -1, None)
        command = OffsetFetch(CALLER, request, require_stable, topics=self.image)
        response = self.shard.decide(command, Now(self.now_ms, self.now_ms)).response
        return {
            (topic.name, each.partition_index): (
                each.committed_offset,
                each.error_code or each.metadata,
            )
            for topic in response.topics
            for each in topic.partitions
        }

    @invariant()
    def only_what_was_committed_last_is_there(self):
        for group in ("g", "h"):
            visible = self.visible(group)
            assert self.fetched(group, require_stable=False) == visible
            pending = {
                place[1:]
                for commits in self.pending.values()
                for place in commits
                if place[0] == group
            }
            hidden = dict.fromkeys(pending & visible.keys(), (-1, UNSTABLE))
            assert self.fetched(group, require_stable=True) == visible | hidden
        assert set(self.shard.keys()) == {group for group in ("g", "h") if self.known(group)}
        for place in self.known("g"):
            pending = any(place in commits for commits in self.pending.values())
            assert self.shard.offsets.is_pending(*place) == pending


TestOffsets = Offsets.TestCase
