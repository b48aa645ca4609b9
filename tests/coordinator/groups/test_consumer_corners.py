"""Corners of consumer groups that the table does not reach: limits, policies, older records."""

from __future__ import annotations

from dataclasses import replace

import pytest

from barnabas.coordinator.decision import Record
from barnabas.coordinator.groups.classic.group import ClassicGroup
from barnabas.coordinator.groups.consumer.group import ConsumerGroup
from barnabas.coordinator.groups.consumer.member import MemberState
from barnabas.coordinator.groups.group import Identity
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import consumer_group_current_member_assignment_record as current
from barnabas.protocol.messages.consumer_group_partition_metadata_record import (
    CONSUMER_GROUP_PARTITION_METADATA_RECORD,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
)
from barnabas.protocol.messages.consumer_protocol_assignment import (
    CONSUMER_PROTOCOL_ASSIGNMENT,
    ConsumerProtocolAssignment,
    TopicPartition,
)
from tests.coordinator.groups.consumer_run import CONFIG, GROUP, Run

T = b"t".ljust(16, b"-")


def error_of(run: Run, command: object) -> str:
    return ErrorCode(run.do(command).response.error_code).name


def classic_run(assignment: bytes, config=CONFIG, protocol_type: str = "consumer") -> Run:
    """A stable classic group of one member, which has given itself ``assignment``."""
    run = Run(config)
    join = run.join_classic(version=3, new_id="c")
    join.request.protocol_type = protocol_type
    run.do(join)
    run.expire("join")
    sync = run.sync("c", 1)
    sync.request.assignments = [type("Given", (), {"member_id": "c", "assignment": assignment})]
    run.do(sync)
    return run


def assignment(partitions: list[int], user_data: bytes | None = None) -> bytes:
    message = ConsumerProtocolAssignment([TopicPartition("t", partitions)], user_data)
    return b"".join(CONSUMER_PROTOCOL_ASSIGNMENT.encode(message, 1, bytearray(b"\0\1")))


class TestUpgrade:
    def test_members_keep_what_they_have(self):
        run = classic_run(assignment([0, 1, 2, 3]))
        joined = run.do(run.join("m")).response
        assert (joined.member_epoch, joined.assignment.topic_partitions) == (2, [])
        owned = run.members["c"].assigned
        assert owned == {T: {0: 1, 1: 1, 2: 1, 3: 1}}

    @pytest.mark.parametrize(
        ("config", "given", "protocol_type"),
        [
            (replace(CONFIG, consumer_migration_policy="disabled"), assignment([0]), "consumer"),
            (replace(CONFIG, consumer_migration_policy="downgrade"), assignment([0]), "consumer"),
            (replace(CONFIG, consumer_max_size=0), assignment([0]), "consumer"),
            (CONFIG, assignment([0], b"of the assignor"), "consumer"),
            (CONFIG, b"\0", "consumer"),
            (CONFIG, b"\0\1\0\0\0\1", "consumer"),
            (CONFIG, b"\xff\xff\0\0", "consumer"),
            (CONFIG, assignment([0]), "connect"),
        ],
        ids=["disabled", "down only", "size", "user data", "short", "cut", "version", "connect"],
    )
    def test_inconvertible_classic_group_stays_classic(self, config, given, protocol_type):
        run = classic_run(given, config, protocol_type)
        assert error_of(run, run.join("m")) == "GROUP_ID_NOT_FOUND"
        assert isinstance(run.shard.groups[GROUP], ClassicGroup)

    def test_partitions_left_over_are_assigned_at_once(self):
        run = classic_run(assignment([0]))
        run.do(run.join("m"))
        assert run.group is not None
        assert sum(len(target[T]) for target in run.group.targets.values()) == 4

    def test_empty_group_is_converted_under_any_policy(self):
        run = classic_run(assignment([0]), replace(CONFIG, consumer_migration_policy="disabled"))
        run.do(run.leave_classic(("c", None)))
        assert error_of(run, run.join("m")) == "NONE"


class TestDowngrade:
    def mixed(self, config=CONFIG) -> Run:
        run = Run(config)
        run.do(run.join("m"))
        run.do(run.join_classic("c"))
        return run

    def test_the_classic_group_takes_over(self):
        run = self.mixed()
        run.do(run.heartbeat("m", -1))
        group = run.shard.groups[GROUP]
        assert isinstance(group, ClassicGroup)
        assert (group.state_name, list(group.members)) == ("PreparingRebalance", ["c"])

    @pytest.mark.parametrize("policy", ["disabled", "upgrade"])
    def test_not_where_the_policy_forbids_it(self, policy):
        run = self.mixed(replace(CONFIG, consumer_migration_policy=policy))
        run.do(run.heartbeat("m", -1))
        assert list(run.members) == ["c"]

    def test_not_with_more_members_than_a_classic_group_may_have(self):
        run = self.mixed(replace(CONFIG, max_size=1))
        run.do(run.join_classic("d"))
        run.do(run.heartbeat("m", -1))
        assert list(run.members) == ["c", "d"]


class TestLimits:
    @pytest.mark.parametrize("member", ["m" * 32_768, "ü" * 16_384])
    def test_ids_that_no_record_can_hold(self, member):
        run = Run()
        assert error_of(run, run.join(member)) == "INVALID_REQUEST"
        run.do(run.join("m"))
        assert error_of(run, run.join_classic(member)) == "INVALID_REQUEST"

    def test_the_longest_id(self):
        run = Run()
        assert error_of(run, run.join("m" * 32_767)) == "NONE"

    def test_names_without_an_end(self):
        run = Run()
        assert error_of(run, run.join("m", " ".join(["x" * 1023] * 1100))) == "INVALID_REQUEST"

    def test_an_assignor_no_longer_on_offer_does_not_count(self):
        run = Run()
        run.do(run.join("m", server_assignor="range"))
        run.later()
        run.config = run.shard.config = replace(CONFIG, consumer_assignors=("uniform",))
        run.do(run.join("n"))
        run.later()
        assert error_of(run, run.obedient("m")) == "NONE"
        assert error_of(run, run.join("o", server_assignor="range")) == "UNSUPPORTED_ASSIGNOR"


class TestOlderRecords:
    def record(self, run: Run, **value: object) -> None:
        key = current.ConsumerGroupCurrentMemberAssignmentKey(GROUP, "m")
        message = current.ConsumerGroupCurrentMemberAssignmentValue(**value)
        kind = current.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_RECORD
        run._append(Record(kind, key, message))

    def test_without_assignment_epochs_the_members_epoch_counts(self):
        run = Run()
        run.do(run.join("m"))
        topics = [current.TopicPartitions(T, [0, 1], None)]
        self.record(run, member_epoch=2, assigned_partitions=topics)
        assert run.members["m"].assigned == {T: {0: 2, 1: 2}}

    def test_a_state_of_a_later_version_has_the_member_start_again(self):
        run = Run()
        run.do(run.join("m"))
        self.record(run, member_epoch=2, state=99)
        assert run.members["m"].state is MemberState.UNKNOWN
        assert error_of(run, run.heartbeat("m")) == "FENCED_MEMBER_EPOCH"
        assert error_of(run, run.heartbeat("m", owned={"t": {0}})) == "FENCED_MEMBER_EPOCH"
        assert error_of(run, run.heartbeat("m", owned={})) == "NONE"
        assert run.members["m"].state is MemberState.STABLE

    def test_partition_metadata_of_kafka_before_4_1_is_removed(self):
        run = Run()
        run.do(run.join("m"))
        key = ConsumerGroupPartitionMetadataKey(GROUP)
        kind = CONSUMER_GROUP_PARTITION_METADATA_RECORD
        run._append(Record(kind, key, ConsumerGroupPartitionMetadataValue([])))
        run.later()
        run.topics.grow("t", 5)
        decision = run.do(run.obedient("m"))
        assert [r.value for r in decision.records if r.kind is kind] == [None]


class TestOffsets:
    @pytest.fixture
    def group(self) -> ConsumerGroup:
        run = Run()
        run.do(run.join("m"))
        run.later()
        run.do(run.join("n"))
        for member in "mmn":
            run.do(run.obedient(member))
        assert run.group is not None
        return run.group

    @pytest.mark.parametrize(
        ("identity", "expected"),
        [
            (Identity("m", 3, api_version=9), "NONE"),
            (Identity("m", 2, api_version=9), "NONE"),
            (Identity("m", 4, api_version=9), "STALE_MEMBER_EPOCH"),
            (Identity("m", 3, api_version=8), "UNSUPPORTED_VERSION"),
            (Identity("x", 3, api_version=9), "UNKNOWN_MEMBER_ID"),
            (Identity("", -1, api_version=9), "UNKNOWN_MEMBER_ID"),
            (Identity("", -1, transactional=True), "NONE"),
            (Identity("m", 3, transactional=True), "NONE"),
        ],
    )
    def test_commit_is_refused_by_member_and_epoch(self, group, identity, expected):
        assert group.refuse_commit(identity).name == expected

    def test_a_member_behind_may_commit_what_it_never_gave_up(self, group):
        behind = Identity("m", 2, api_version=9)
        kept = set(group.members["m"].assigned[T])
        for partition in range(4):
            expected = "NONE" if partition in kept else "STALE_MEMBER_EPOCH"
            assert group.refuse_partition(behind, T, partition).name == expected
        newcomer = Identity("n", 2, api_version=9)
        for partition in range(4):
            assert group.refuse_partition(newcomer, T, partition) == ErrorCode.STALE_MEMBER_EPOCH

    @pytest.mark.parametrize(
        ("identity", "expected"),
        [
            (Identity("m", 3), "NONE"),
            (Identity("m", 2), "STALE_MEMBER_EPOCH"),
            (Identity("x", 3), "UNKNOWN_MEMBER_ID"),
            (Identity(), "NONE"),
        ],
    )
    def test_fetch_is_refused_by_member_and_epoch(self, group, identity, expected):
        assert group.refuse_fetch(identity).name == expected

    def test_topics_in_use(self, group):
        assert group.is_subscribed("t")
        assert not group.is_subscribed("u")
