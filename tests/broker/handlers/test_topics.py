"""CreateTopics, DeleteTopics, CreatePartitions: outcomes as measured on Apache Kafka 4.3.0."""

import asyncio

import pytest

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.create_partitions import (
    CREATE_PARTITIONS,
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.create_topics import (
    CREATE_TOPICS,
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from barnabas.protocol.messages.delete_topics import (
    DELETE_TOPICS,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from barnabas.protocol.wire import ZERO_UUID
from tests.broker.harness import Administration

NONE = ErrorCode.NONE
OTHER_CHARACTERS = (
    "contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
)
TOO_LONG = "is longer than the max allowed length 249"
POLICIES = "String must be one of: compact, delete"


def new_topic(name, partitions=1, factor=1, assignments=(), configs=()):
    return CreatableTopic(
        name,
        partitions,
        factor,
        [CreatableReplicaAssignment(index, brokers) for index, brokers in assignments],
        [CreatableTopicConfig(key, text) for key, text in configs],
    )


async def create(administration, *topics, version=7, validate_only=False):
    request = CreateTopicsRequest(list(topics), validate_only=validate_only)
    return (await administration.ask(CREATE_TOPICS, request, version)).topics


async def refused(administration, *topics):
    return [
        (ErrorCode(result.error_code), result.error_message)
        for result in await create(administration, *topics)
    ]


async def delete(administration, names=(), ids=(), version=6):
    if version < 6:
        request = DeleteTopicsRequest(topic_names=list(names))
    else:
        request = DeleteTopicsRequest(
            topics=[
                *(DeleteTopicState(name) for name in names),
                *(DeleteTopicState(None, topic_id) for topic_id in ids),
            ]
        )
    response = await administration.ask(DELETE_TOPICS, request, version)
    return {
        (each.name if each.name is not None else each.topic_id): (
            ErrorCode(each.error_code),
            each.error_message,
        )
        for each in response.responses
    }


async def grow(administration, *topics, version=3, validate_only=False):
    request = CreatePartitionsRequest(
        [
            CreatePartitionsTopic(
                name,
                count,
                None
                if assignments is None
                else [CreatePartitionsAssignment(brokers) for brokers in assignments],
            )
            for name, count, assignments in topics
        ],
        validate_only=validate_only,
    )
    response = await administration.ask(CREATE_PARTITIONS, request, version)
    return {
        each.name: (ErrorCode(each.error_code), each.error_message) for each in response.results
    }


class TestCreateTopics:
    @pytest.mark.parametrize("version", range(2, 8))
    async def test_every_version_creates(self, administration, version):
        (result,) = await create(
            administration, new_topic("orders", 3, configs=[("retention.ms", "60000")]),
            version=version,
        )  # fmt: skip
        assert (result.name, result.error_code, result.error_message) == ("orders", NONE, None)
        topic = administration.catalogue.topics["orders"]
        assert len(topic.partitions) == 3
        assert topic.log_config.retention_ms == 60000
        assert all(partition.log.config.retention_ms == 60000 for partition in topic.partitions)
        if version >= 5:
            assert (result.num_partitions, result.replication_factor) == (3, 1)
            by_name = {config.name: config for config in result.configs}
            assert (by_name["retention.ms"].value, by_name["retention.ms"].config_source) == (
                "60000",
                1,
            )
            assert by_name["segment.bytes"].config_source == 5
            assert len(by_name) == 34
        if version >= 7:
            assert result.topic_id == topic.topic_id != ZERO_UUID

    async def test_minus_one_takes_the_defaults(self):
        administration = Administration(config=BrokerConfig(num_partitions=4))
        (result,) = await create(administration, new_topic("orders", -1, -1))
        assert (result.num_partitions, result.replication_factor) == (4, 1)
        administration.stop()

    async def test_validate_only_creates_nothing(self, administration):
        (result,) = await create(administration, new_topic("orders", 3), validate_only=True)
        assert (result.error_code, result.num_partitions) == (NONE, 3)
        assert len(result.configs) == 34
        assert administration.catalogue.topics == {}
        assert administration.metastore.load().topics == ()

    async def test_an_existing_name(self, administration):
        await create(administration, new_topic("orders"))
        for validate_only in (False, True):
            (result,) = await create(
                administration, new_topic("orders"), validate_only=validate_only
            )
            assert result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS
            assert result.error_message == "Topic 'orders' already exists."
            assert (result.num_partitions, result.replication_factor) == (-1, -1)

    async def test_one_bad_topic_does_not_spoil_the_others(self, administration):
        first, bad, last = await create(
            administration, new_topic("a"), new_topic("b c"), new_topic("d")
        )
        assert [first.error_code, bad.error_code, last.error_code] == [NONE, 17, NONE]
        assert set(administration.catalogue.topics) == {"a", "d"}

    async def test_a_name_given_twice_is_refused_once(self, administration):
        outcomes = await refused(administration, new_topic("d"), new_topic("d"), new_topic("e"))
        assert outcomes == [(ErrorCode.INVALID_REQUEST, "Duplicate topic name."), (NONE, None)]
        assert set(administration.catalogue.topics) == {"e"}

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("", "Topic name is invalid: the empty string is not allowed"),
            (".", "Topic name is invalid: '.' is not allowed"),
            ("..", "Topic name is invalid: '..' is not allowed"),
            (
                "a b",
                f"Topic name is invalid: 'a b' {OTHER_CHARACTERS}",
            ),
            (
                "ü",
                f"Topic name is invalid: 'ü' {OTHER_CHARACTERS}",
            ),
            (
                "x" * 250,
                f"Topic name is invalid: the length of '{'x' * 250}' {TOO_LONG}",
            ),
            ("a\n", None),
            ("../../etc", None),
        ],
    )
    async def test_illegal_names(self, administration, name, message):
        ((code, text),) = await refused(administration, new_topic(name))
        assert code == ErrorCode.INVALID_TOPIC_EXCEPTION
        assert message is None or text == message

    async def test_the_longest_name(self, administration):
        assert await refused(administration, new_topic("x" * 249)) == [(NONE, None)]

    async def test_names_that_collide(self, administration):
        await create(administration, new_topic("x.y"))
        assert await refused(administration, new_topic("x_y")) == [
            (ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic 'x_y' collides with existing topic: x.y")
        ]
        outcomes = await refused(administration, new_topic("q.y"), new_topic("q_y"))
        assert [code for code, _ in outcomes] == [NONE, ErrorCode.INVALID_TOPIC_EXCEPTION]
        await delete(administration, ["x.y"])
        assert await refused(administration, new_topic("x_y")) == [(NONE, None)]

    async def test_the_metadata_log_cannot_be_a_topic(self, administration):
        assert await refused(administration, new_topic("__cluster_metadata")) == [
            (
                ErrorCode.INVALID_REQUEST,
                "Creation of internal topic __cluster_metadata is prohibited.",
            )
        ]

    @pytest.mark.parametrize("count", [0, -2, -(2**31)])
    async def test_partition_counts_below_one(self, administration, count):
        assert await refused(administration, new_topic("p", count)) == [
            (
                ErrorCode.INVALID_PARTITIONS,
                "Number of partitions was set to an invalid non-positive value.",
            )
        ]

    @pytest.mark.parametrize("topics", [[("p", 10_001)], [("p", 6_000), ("q", 6_000)]])
    async def test_too_many_partitions_at_once(self, administration, topics):
        outcomes = await refused(administration, *(new_topic(*topic) for topic in topics))
        assert {code for code, _ in outcomes} == {ErrorCode.POLICY_VIOLATION}
        assert administration.catalogue.topics == {}

    async def test_manual_assignment_to_this_broker(self, administration):
        (result,) = await create(administration, new_topic("m", -1, -1, [(1, [1]), (0, [1])]))
        assert (result.error_code, result.num_partitions) == (NONE, 2)

    @pytest.mark.parametrize(
        ("partitions", "factor", "assignments", "code", "message"),
        [
            (2, -1, [(0, [1])], 42, "but numPartitions was not set to -1."),
            (-1, 1, [(0, [1])], 42, "but replication factor was not set to -1."),
            (-1, -1, [(0, [2])], 39, "includes broker 2, but no such broker is registered."),
            (-1, -1, [(0, [])], 39, "includes an empty replica list."),
            (-1, -1, [(0, [1, 1])], 39, "includes the broker 1 more than once."),
            (-1, -1, [(1, [1])], 39, "should be a consecutive 0-based integer sequence"),
            (-1, -1, [(0, [1]), (0, [1])], 39, "multiple manual partition assignments for"),
        ],
    )
    async def test_bad_manual_assignments(
        self, administration, partitions, factor, assignments, code, message
    ):
        ((found, text),) = await refused(
            administration, new_topic("m", partitions, factor, assignments)
        )
        assert found == code
        assert message in text

    @pytest.mark.parametrize(
        ("configs", "message"),
        [
            ([("nope", "1")], "Unknown topic config name: nope"),
            (
                [("retention.ms", "abc")],
                "Invalid value abc for configuration retention.ms: Not a number of type LONG",
            ),
            (
                [("segment.bytes", "1")],
                "Invalid value 1 for configuration segment.bytes: Value must be at least 1048576",
            ),
            (
                [("retention.ms", None)],
                "Null value not supported for topic configs: retention.ms",
            ),
            (
                [("cleanup.policy", "foo")],
                f"Invalid value foo for configuration cleanup.policy: {POLICIES}",
            ),
        ],
    )
    async def test_bad_settings(self, administration, configs, message):
        outcomes = await refused(administration, new_topic("c", configs=configs))
        assert outcomes == [(ErrorCode.INVALID_CONFIG, message)]
        assert administration.metastore.load().topics == ()

    async def test_of_a_setting_given_twice_the_last_counts(self, administration):
        await create(
            administration,
            new_topic("c", configs=[("retention.ms", "60000"), ("retention.ms", "70000")]),
        )
        assert administration.catalogue.topics["c"].configs == {"retention.ms": "70000"}

    async def test_compaction_is_accepted(self, administration):
        await create(administration, new_topic("c", configs=[("cleanup.policy", "compact")]))
        assert administration.catalogue.topics["c"].log_config.is_compacted

    async def test_a_full_disk_refuses_new_topics(self, administration):
        administration.logs.full = True
        ((code, _),) = await refused(administration, new_topic("f"))
        assert code == ErrorCode.KAFKA_STORAGE_ERROR
        assert administration.metastore.load().topics == ()
        administration.logs.full = False
        assert await refused(administration, new_topic("f")) == [(NONE, None)]


class TestDeleteTopics:
    @pytest.mark.parametrize("version", range(1, 7))
    async def test_every_version_deletes_by_name(self, administration, version):
        await create(administration, new_topic("a", 2), new_topic("b"))
        logs = [each.log for each in administration.catalogue.topics["a"].partitions]
        outcomes = await delete(administration, ["a", "nope"], version=version)
        assert {name: code for name, (code, _) in outcomes.items()} == {
            "a": NONE,
            "nope": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        assert set(administration.catalogue.topics) == {"b"}
        assert administration.removed_logs == logs
        assert all(log.closed for log in logs)

    async def test_by_id(self, administration):
        (a,) = await create(administration, new_topic("a"))
        unknown = bytes([9] * 16)
        outcomes = await delete(administration, ids=[a.topic_id, unknown])
        assert outcomes == {
            "a": (NONE, None),
            unknown: (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_ID.message),
        }
        assert administration.catalogue.topics_by_id == {}

    async def test_naming_a_topic_in_two_ways(self, administration):
        (a,) = await create(administration, new_topic("a"))
        invalid = ErrorCode.INVALID_REQUEST
        cases = [
            ({"names": ["a", "a"]}, "Duplicate topic name."),
            ({"ids": [a.topic_id, a.topic_id]}, "Duplicate topic id."),
            (
                {"names": ["a"], "ids": [a.topic_id]},
                "The provided topic name maps to an ID that was already supplied.",
            ),
            ({"ids": [ZERO_UUID]}, "Neither topic name nor id were specified."),
        ]
        for asked, message in cases:
            assert list((await delete(administration, **asked)).values()) == [(invalid, message)]
        request = DeleteTopicsRequest(topics=[DeleteTopicState("a", a.topic_id)])
        (result,) = (await administration.ask(DELETE_TOPICS, request, 6)).responses
        assert (result.error_code, result.error_message) == (
            invalid,
            "You may not specify both topic name and topic id.",
        )
        assert set(administration.catalogue.topics) == {"a"}

    @pytest.mark.parametrize(
        ("version", "code"),
        [
            (1, ErrorCode.INVALID_REQUEST),
            (2, ErrorCode.INVALID_REQUEST),
            (3, ErrorCode.TOPIC_DELETION_DISABLED),
            (6, ErrorCode.TOPIC_DELETION_DISABLED),
        ],
    )
    async def test_deletion_switched_off(self, version, code):
        administration = Administration(config=BrokerConfig(delete_topic_enable=False))
        await create(administration, new_topic("a"))
        outcomes = await delete(administration, ["a"], version=version)
        assert outcomes["a"][0] == code
        assert set(administration.catalogue.topics) == {"a"}
        administration.stop()

    async def test_a_topic_created_again_is_another_topic(self, administration):
        (first,) = await create(administration, new_topic("a", 2))
        old = [each.partition_id for each in administration.catalogue.topics["a"].partitions]
        await delete(administration, ["a"])
        (second,) = await create(administration, new_topic("a", 2))
        new = [each.partition_id for each in administration.catalogue.topics["a"].partitions]
        assert first.topic_id != second.topic_id
        assert not set(old) & set(new)

    async def test_of_two_who_delete_one_topic_one_is_too_late(self, administration):
        await create(administration, new_topic("a"))
        outcomes = await asyncio.gather(
            delete(administration, ["a"]), delete(administration, ["a"])
        )
        assert sorted(outcome["a"][0] for outcome in outcomes) == [
            NONE,
            ErrorCode.UNKNOWN_TOPIC_ID,
        ]


class TestCreatePartitions:
    @pytest.mark.parametrize("version", range(4))
    async def test_every_version_grows_and_names_the_topics(self, administration, version):
        await create(administration, new_topic("p", 2, configs=[("retention.ms", "5")]))
        outcomes = await grow(administration, ("p", 5, None), ("nope", 3, None), version=version)
        assert outcomes["p"] == (NONE, None)
        assert outcomes["nope"][0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        topic = administration.catalogue.topics["p"]
        assert [each.index for each in topic.partitions] == [0, 1, 2, 3, 4]
        assert all(each.topic is topic for each in topic.partitions)
        assert all(each.log.log_start_offset == 0 for each in topic.partitions)
        assert all(each.log.config.retention_ms == 5 for each in topic.partitions)

    @pytest.mark.parametrize("name", ["__consumer_offsets", "__transaction_state"])
    async def test_an_internal_topic_keeps_its_partitions(self, administration, name):
        """The coordinator of a key depends on their number."""
        await create(administration, new_topic(name, 2, configs=[("cleanup.policy", "compact")]))
        for validate_only in (True, False):
            outcomes = await grow(administration, (name, 5, None), validate_only=validate_only)
            assert outcomes[name][0] == ErrorCode.INVALID_PARTITIONS
        assert len(administration.catalogue.topics[name].partitions) == 2

    @pytest.mark.parametrize(
        ("count", "message"),
        [
            (2, "Topic already has 2 partition(s)."),
            (1, "The topic p currently has 2 partition(s); 1 would not be an increase."),
            (0, "The topic p currently has 2 partition(s); 0 would not be an increase."),
            (-1, "The topic p currently has 2 partition(s); -1 would not be an increase."),
        ],
    )
    async def test_no_increase(self, administration, count, message):
        await create(administration, new_topic("p", 2))
        outcomes = await grow(administration, ("p", count, None))
        assert outcomes == {"p": (ErrorCode.INVALID_PARTITIONS, message)}

    @pytest.mark.parametrize(
        ("count", "assignments", "message"),
        [
            (4, [[1]], "Attempted to add 2 additional partition(s), but only 1 assignment(s)"),
            (3, [[1], [1]], "Attempted to add 1 additional partition(s), but only 2 assignm"),
            (3, [], "Attempted to add 1 additional partition(s), but only 0 assignment(s)"),
            (3, [[5]], "includes broker 5, but no such broker is registered."),
            (3, [[]], "includes an empty replica list."),
            (3, [[1, 1]], "includes the broker 1 more than once."),
        ],
    )
    async def test_bad_assignments(self, administration, count, assignments, message):
        await create(administration, new_topic("p", 2))
        outcomes = await grow(administration, ("p", count, assignments))
        assert outcomes["p"][0] == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert message in outcomes["p"][1]

    async def test_a_topic_given_twice(self, administration):
        await create(administration, new_topic("p", 2))
        outcomes = await grow(administration, ("p", 3, None), ("p", 4, None))
        assert outcomes == {"p": (ErrorCode.INVALID_REQUEST, "Duplicate topic name.")}

    async def test_validate_only(self, administration):
        await create(administration, new_topic("p", 2))
        assert await grow(administration, ("p", 9, None), validate_only=True) == {"p": (NONE, None)}
        assert len(administration.catalogue.topics["p"].partitions) == 2

    async def test_too_many_at_once(self, administration):
        await create(administration, new_topic("p", 2))
        outcomes = await grow(administration, ("p", 20_000, None))
        assert outcomes["p"][0] == ErrorCode.POLICY_VIOLATION
