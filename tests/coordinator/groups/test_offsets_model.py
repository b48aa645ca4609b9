"""Any sequence of commands about offsets, against a dictionary (O1, O7, O8, A2)."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from coordinator.decision import Decision, Now, Record
from coordinator.groups.commands import (
    Caller,
    DeleteGroup,
    ExpireOffsets,
    OffsetCommit,
    OffsetDelete,
    OffsetFetch,
    TopicsDeleted,
)
from coordinator.groups.config import GroupConfig
from coordinator.groups.shard import GroupShard
from protocol.errors import ErrorCode
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from protocol.messages.offset_fetch import OffsetFetchRequestGroup
from tests.coordinator.groups.offset_commands import Image

CALLER = Caller("", "", 9)
CONFIG = GroupConfig(offsets_retention_ms=1000)

groups = st.sampled_from(["g", "h"])
topics = st.sampled_from(["a", "b", "c"])
places = st.dictionaries(st.tuples(topics, st.integers(0, 2)), st.integers(0, 9), max_size=4)


class Offsets(RuleBasedStateMachine):
    """Simple groups; every record goes through bytes, as it does in the log."""

    def __init__(self) -> None:
        super().__init__()
        self.shard = GroupShard(CONFIG)
        self.log: list[tuple[Record, bytes, bytes | None]] = []
        self.image = Image(a=b"a" * 16, b=b"b" * 16, c=b"c" * 16)
        self.next_id = 1
        self.now_ms = 1_000_000
        # (group, topic, partition) -> offset, metadata, when it was committed, topic id
        self.model: dict[tuple[str, str, int], tuple[int, str, int, bytes]] = {}

    def ask(self, command) -> Decision:
        now = Now(self.now_ms, self.now_ms)
        decision = self.shard.decide(command, now)
        assert self.shard.decide(command, now) == decision
        for record in decision.records:
            key, value = record.encode()
            self.log.append((record, key, value))
            self.take_in(self.shard, len(self.log) - 1)
        return decision

    def take_in(self, shard: GroupShard, at: int) -> None:
        record, key, value = self.log[at]
        kind = record.kind
        decoded = None if value is None else kind.decode_value(value)
        shard.apply(Record(kind, kind.decode_key(key), decoded), at)

    def visible(self, group: str) -> dict[tuple[str, int], tuple[int, str]]:
        return {
            (topic, partition): (offset, metadata)
            for (holder, topic, partition), (offset, metadata, _, topic_id) in self.model.items()
            if holder == group and self.image.topic_id(topic) == topic_id
        }

    @rule(group=groups, offsets=places, metadata=st.text(max_size=3))
    def commit(self, group, offsets, metadata):
        request = OffsetCommitRequest(group)
        for (topic, partition), offset in offsets.items():
            topic_id = self.image.topic_id(topic)
            if topic_id is None:
                continue  # The handler answers for it.
            asked = OffsetCommitRequestPartition(partition, offset, -1, metadata)
            request.topics.append(OffsetCommitRequestTopic(topic, topic_id, [asked]))
            self.model[group, topic, partition] = (offset, metadata, self.now_ms, topic_id)
        response = self.ask(OffsetCommit(CALLER, request)).response
        assert {each.error_code for topic in response.topics for each in topic.partitions} <= {0}

    @rule(group=groups, offsets=places)
    def delete_offsets(self, group, offsets):
        exists = any(holder == group for holder, _, _ in self.model)
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
            self.model.pop((group, topic, partition), None)

    @rule(group=groups)
    def delete_group(self, group):
        mine = [place for place in self.model if place[0] == group]
        code = self.ask(DeleteGroup(group)).response
        assert code == (ErrorCode.NONE if mine else ErrorCode.GROUP_ID_NOT_FOUND)
        for place in mine:
            del self.model[place]

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
        for place, (_, _, _, topic_id) in list(self.model.items()):
            if place[0] == group and self.image.topic_id(place[1]) != topic_id:
                del self.model[place]

    @rule(passed_ms=st.integers(1, 1500))
    def wait(self, passed_ms):
        self.now_ms += passed_ms

    @rule(group=groups)
    def expire(self, group):
        self.ask(ExpireOffsets(group, self.image))
        for place, (_, _, committed_ms, topic_id) in list(self.model.items()):
            is_gone = self.image.topic_id(place[1]) != topic_id
            if place[0] == group and (is_gone or self.now_ms - committed_ms >= 1000):
                del self.model[place]

    @precondition(lambda self: self.log)
    @rule()
    def restart(self):
        self.shard = GroupShard(CONFIG)
        for at in range(len(self.log)):
            self.take_in(self.shard, at)

    @precondition(lambda self: self.log)
    @rule()
    def compact(self):
        """Keep the last record of each key: a restart must not notice (K6)."""
        last = {key: at for at, (_, key, _) in enumerate(self.log)}
        compacted = GroupShard(CONFIG)
        for at in sorted(last.values()):
            self.take_in(compacted, at)
        groups_there = set(self.shard.offsets.group_ids())
        assert set(compacted.offsets.group_ids()) == groups_there
        for group in groups_there:
            assert compacted.offsets.of_group(group) == self.shard.offsets.of_group(group)

    @invariant()
    def only_what_was_committed_last_is_there(self):
        now = Now(self.now_ms, self.now_ms)
        for group in ("g", "h"):
            request = OffsetFetchRequestGroup(group, None, -1, None)
            command = OffsetFetch(CALLER, request, require_stable=False, topics=self.image)
            response = self.shard.decide(command, now).response
            assert {
                (topic.name, each.partition_index): (each.committed_offset, each.metadata)
                for topic in response.topics
                for each in topic.partitions
            } == self.visible(group)
        assert set(self.shard.keys()) == {group for group, _, _ in self.model}


TestOffsets = Offsets.TestCase
