"""Administration answers what Apache Kafka 4.3.0 answers, field by field, in every version.

One script of requests is for both; see comparison.py. The APIs about replicas, quotas, users and
access control are in test_administration_like_kafka.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from barnabas.protocol.messages.alter_configs import ALTER_CONFIGS, AlterConfigsRequest
from barnabas.protocol.messages.alter_configs import AlterableConfig as LegacyConfig
from barnabas.protocol.messages.alter_configs import AlterConfigsResource as LegacyResource
from barnabas.protocol.messages.api_versions import API_VERSIONS, ApiVersionsRequest
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
from barnabas.protocol.messages.delete_records import (
    DELETE_RECORDS,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.protocol.messages.delete_topics import (
    DELETE_TOPICS,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from barnabas.protocol.messages.describe_cluster import DESCRIBE_CLUSTER, DescribeClusterRequest
from barnabas.protocol.messages.describe_configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas.protocol.messages.describe_topic_partitions import (
    DESCRIBE_TOPIC_PARTITIONS,
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from barnabas.protocol.messages.incremental_alter_configs import (
    INCREMENTAL_ALTER_CONFIGS,
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.offset_for_leader_epoch import (
    OFFSET_FOR_LEADER_EPOCH,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas.protocol.messages.sasl_authenticate import SASL_AUTHENTICATE, SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SASL_HANDSHAKE, SaslHandshakeRequest
from barnabas.protocol.wire import ZERO_UUID
from tests.counterparts.broker_process import BrokerProcess
from tests.counterparts.wire_client import WireClient
from tests.interop.comparison import Answer, check_alike, comparable
from tests.interop.recorded_kafka import Barnabas, plain

TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = range(4)
UNKNOWN_ID = bytes([9] * 16)
FOLLOWED = "followed"
"""A topic whose setting shows that the broker has followed its controller."""

ON_PURPOSE = {
    "create colliding names in one request": "Kafka creates both, its metrics mix them up",
    "describe partitions of an empty name": "Kafka answers -1 for every topic of the request",
    "change with an unknown operation": "Kafka answers -1",
    "set a broker setting nobody knows": "Kafka stores it unused",
    "metadata names nothing": "Kafka answers -1",
    "create in Metadata": "Kafka answers 3 first and has the client ask again",
    "create colliding names in Metadata": "Kafka answers 3 for ever",
}


def topic(name: str, partitions: int = 1, factor: int = 1, **more: Any) -> CreatableTopic:
    configs = [CreatableTopicConfig(key, text) for key, text in more.get("configs", ())]
    assignments = [CreatableReplicaAssignment(*each) for each in more.get("assignments", ())]
    return CreatableTopic(name, partitions, factor, assignments, configs)


class Script:
    """The requests, one method per family; each yields labels and comparable answers."""

    def __init__(self, client: WireClient) -> None:
        self.client = client
        self.followed = 0

    def ask(self, label: str, api: Any, request: Any, version: int) -> Answer:
        return f"{label}", comparable(self.client.ask(api, request, version))

    def settle(self, *names: str, partitions: int = 1) -> None:
        """Wait until the topics have leaders: Kafka answers a creation before that."""
        asked = [TopicRequest(name) for name in names]
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            request = DescribeTopicPartitionsRequest(asked)
            response = self.client.ask(DESCRIBE_TOPIC_PARTITIONS, request, 0)
            led = [
                topic.error_code == 0
                and len(topic.partitions) >= partitions
                and all(each.leader_id >= 0 and not each.error_code for each in topic.partitions)
                for topic in response.topics
            ]
            # Metadata names a leader before the log is open.
            if all(led) and self._are_open(response.topics):
                return
            time.sleep(0.05)
        raise TimeoutError(f"no leader for {names}")

    def _are_open(self, topics: Any) -> bool:
        asked = [
            ListOffsetsTopic(
                topic.name,
                [ListOffsetsPartition(each.partition_index, -1, -1) for each in topic.partitions],
            )
            for topic in topics
        ]
        answers = self.client.ask(LIST_OFFSETS, ListOffsetsRequest(-1, 0, asked), 5).topics
        return not any(each.error_code for topic in answers for each in topic.partitions)

    def follow(self) -> None:
        """Wait until Kafka's broker does by what its controller has answered.

        A change that can be seen may still be on its way to where it works, with all that came
        together with it. The second one comes later.
        """
        for _ in range(2):
            self.followed += 1
            resource = (TOPIC, FOLLOWED, [("segment.ms", SET, str(60_000 + self.followed))])
            self._alter([resource], 1, dry=False)
            deadline = time.monotonic() + 60
            while self._followed() != str(60_000 + self.followed):
                assert time.monotonic() < deadline, "the broker does not follow"
                time.sleep(0.01)

    def _followed(self) -> str | None:
        asked = DescribeConfigsResource(TOPIC, FOLLOWED, ["segment.ms"])
        (found,) = self.client.ask(DESCRIBE_CONFIGS, DescribeConfigsRequest([asked]), 4).results
        return found.configs[0].value if found.configs else None

    def _alter(self, resources: Any, version: int, *, dry: bool) -> Any:
        asked = [
            AlterConfigsResource(kind, name, [AlterableConfig(*each) for each in configs])
            for kind, name, configs in resources
        ]
        request = IncrementalAlterConfigsRequest(asked, dry)
        return self.client.ask(INCREMENTAL_ALTER_CONFIGS, request, version)

    def create(self, label: str, *topics: CreatableTopic, version: int = 7, dry: bool = False):
        request = CreateTopicsRequest(list(topics), 60_000, dry)
        name, answer = self.ask(label, CREATE_TOPICS, request, version)
        for each in answer["topics"]:
            # Kafka's own default of the first comes from a dynamic setting it makes itself; the
            # other is none of its settings.
            each["configs"] = [
                config
                for config in each["configs"] or ()
                if config["name"]
                not in {"min.insync.replicas", "barnabas.record.validation.enable"}
            ]
        return name, answer

    def topics_created(self) -> Iterator[Answer]:
        for version in range(2, 8):
            yield self.create(f"create v{version}", topic(f"v{version}", 2), version=version)
        yield self.create("create again", topic("v7", 2))
        yield self.create("create with defaults", topic("defaults", -1, -1))
        yield self.create("only validate", topic("dry", 3), dry=True)
        yield self.create("only validate an existing one", topic("v7", 3), dry=True)
        for factor in (2, 0, -2):
            yield self.create(f"create with factor {factor}", topic("factor", 1, factor))
        for count in (0, -5):
            yield self.create(f"create with {count} partitions", topic("count", count))
        for name in ("", ".", "..", "a b", "x" * 250, "ü"):
            yield self.create(f"create {name[:5]!r}", topic(name))
        yield self.create("create a dotted name", topic("x.y"))
        yield self.create("create a colliding name", topic("x_y"))
        yield self.create("create colliding names in one request", topic("q.y"), topic("q_y"))
        yield self.create("create twice in one request", topic("d"), topic("d"), topic("e"))
        yield self.create("create the metadata topic", topic("__cluster_metadata"))
        yield self.create("create too many partitions", topic("huge", 20_000))
        yield self.create("create nothing")
        for label, partitions, factor, assignments in (
            ("good", -1, -1, [(0, [1]), (1, [1])]),
            ("with a count", 1, -1, [(0, [1])]),
            ("with a factor", -1, 1, [(0, [1])]),
            ("to another broker", -1, -1, [(0, [2])]),
            ("to nobody", -1, -1, [(0, [])]),
            ("to one twice", -1, -1, [(0, [1, 1])]),
            ("with a gap", -1, -1, [(1, [1])]),
            ("given twice", -1, -1, [(0, [1]), (0, [1])]),
        ):
            asked = topic("assigned", partitions, factor, assignments=assignments)
            yield self.create(f"create with an assignment {label}", asked)
        for label, *configs in (
            ("of an unknown key", ("nope", "1")),
            ("that is no number", ("retention.ms", "abc")),
            ("out of range", ("segment.bytes", "1")),
            ("null", ("retention.ms", None)),
            ("that is no policy", ("cleanup.policy", "foo")),
            ("given twice", ("retention.ms", "60000"), ("retention.ms", "70000")),
        ):
            yield self.create(f"create with a setting {label}", topic("set", configs=configs))

    def topics_described(self) -> Iterator[Answer]:
        self.client.ask(CREATE_TOPICS, CreateTopicsRequest([topic("m1", 3), topic("m2", 3)]), 7)
        self.settle("m1", "m2", partitions=3)
        by_name = [MetadataRequestTopic(ZERO_UUID, name) for name in ("m1", "missing", "b d", "")]
        for version in range(14):
            # Before v4 a client could not keep the broker from creating what is missing.
            asked = by_name[:1] if version < 4 else by_name
            request = MetadataRequest(
                asked, False, version <= 10, include_topic_authorized_operations=True
            )
            yield self.ask(f"metadata v{version}", METADATA, request, version)
            yield self.ask(
                f"no metadata v{version}", METADATA, MetadataRequest([]), max(version, 1)
            )
        known = (
            self.client.ask(METADATA, MetadataRequest(by_name[:1], False), 12).topics[0].topic_id
        )
        for label, version, topics in (
            ("by id", 13, [MetadataRequestTopic(known, None)]),
            ("by id and another name", 12, [MetadataRequestTopic(known, "other")]),
            ("by an unknown id", 12, [MetadataRequestTopic(UNKNOWN_ID, None)]),
            ("by id too early", 11, [MetadataRequestTopic(known, "m1")]),
            ("names nothing", 12, [MetadataRequestTopic(ZERO_UUID, None)]),
            ("twice", 12, [by_name[0], by_name[0]]),
            ("of an internal topic", 12, [MetadataRequestTopic(ZERO_UUID, "__consumer_offsets")]),
        ):
            request = MetadataRequest(topics, False)
            yield self.ask(f"metadata {label}", METADATA, request, version)
        for label, names, limit, cursor in (
            ("all there is", ["m2", "m1", "m2"], 2000, None),
            ("a page", ["m2", "m1"], 4, None),
            ("the next page", ["m2", "m1"], 4, Cursor("m2", 1)),
            ("a page of one topic", ["m2", "m1"], 3, None),
            ("the last page", ["m2", "m1"], 6, None),
            ("an empty page", ["m2", "m1"], 0, None),
            ("a cursor too far", ["m2", "m1"], 4, Cursor("m2", 9)),
            ("a cursor elsewhere", ["m2", "m1"], 4, Cursor("m10", 0)),
            ("a negative cursor", ["m2", "m1"], 4, Cursor("m1", -1)),
            ("a missing name", ["zz"], 10, None),
            ("an illegal name", ["b d"], 10, None),
            ("an empty name", ["", "zz"], 10, None),
        ):
            request = DescribeTopicPartitionsRequest(
                [TopicRequest(n) for n in names], limit, cursor
            )
            yield self.ask(f"describe partitions of {label}", DESCRIBE_TOPIC_PARTITIONS, request, 0)
        for version in range(3):
            for operations in (True, False):
                request = DescribeClusterRequest(operations)
                label = f"describe cluster v{version} operations={operations}"
                yield self.ask(label, DESCRIBE_CLUSTER, request, version)
        for kind in (2, 3):
            request = DescribeClusterRequest(endpoint_type=kind)
            yield self.ask(f"describe cluster at endpoint {kind}", DESCRIBE_CLUSTER, request, 1)

    def topics_asked_into_being(self) -> Iterator[Answer]:
        for label, name in (
            ("create in Metadata", "auto.made"),
            ("create an illegal name in Metadata", "auto made"),
            ("create colliding names in Metadata", "m1."),
        ):
            if label.startswith("create colliding"):
                self.client.ask(CREATE_TOPICS, CreateTopicsRequest([topic("m1_", 1)]), 7)
            request = MetadataRequest([MetadataRequestTopic(ZERO_UUID, name)], True)
            yield self.ask(label, METADATA, request, 12)

    def topics_grown(self) -> Iterator[Answer]:
        self.client.ask(CREATE_TOPICS, CreateTopicsRequest([topic("g", 2)]), 7)

        def grow(label, *asked, version=3, dry=False):
            topics = [
                CreatePartitionsTopic(
                    name,
                    count,
                    None if brokers is None else [CreatePartitionsAssignment(b) for b in brokers],
                )
                for name, count, brokers in asked
            ]
            request = CreatePartitionsRequest(topics, 60_000, dry)
            return self.ask(f"grow {label}", CREATE_PARTITIONS, request, version)

        for version in range(4):
            yield grow(f"v{version}", ("g", 3 + version, None), version=version)
        for count in (6, 1, 0, -1):
            yield grow(f"to {count}", ("g", count, None))
        yield grow("a missing topic", ("nope", 3, None), ("b d", 3, None))
        yield grow("twice", ("g", 7, None), ("g", 8, None), ("nope", 3, None))
        yield grow("only validate", ("g", 20, None), dry=True)
        for label, count, brokers in (
            ("good", 7, [[1]]),
            ("too short", 9, [[1]]),
            ("too long", 8, [[1], [1]]),
            ("to another broker", 8, [[5]]),
            ("to nobody", 8, [[]]),
            ("of nothing", 8, []),
            ("to one twice", 8, [[1, 1]]),
        ):
            yield grow(f"with an assignment {label}", ("g", count, brokers))

    def topics_deleted(self) -> Iterator[Answer]:
        names = [f"del{number}" for number in range(9)]
        request = CreateTopicsRequest([topic(name) for name in names])
        created = self.client.ask(CREATE_TOPICS, request, 7).topics
        ids = {each.name: each.topic_id for each in created}
        for version in range(1, 6):
            request = DeleteTopicsRequest([], [names[version], "nope", "b d"], 60_000)
            yield self.ask(f"delete v{version}", DELETE_TOPICS, request, version)

        def delete(label, *topics):
            request = DeleteTopicsRequest([DeleteTopicState(*each) for each in topics], [], 60_000)
            return self.ask(f"delete {label}", DELETE_TOPICS, request, 6)

        yield delete(
            "by name and id", ("del6",), ("nope",), (None, ids["del7"]), (None, UNKNOWN_ID)
        )
        yield delete("a name twice", ("del8",), ("del8",))
        yield delete("an id twice", (None, ids["del8"]), (None, ids["del8"]))
        yield delete("a name and its id", ("del8",), (None, ids["del8"]))
        yield delete("by name and id at once", ("del8", ids["del8"]))
        yield delete("nothing in particular", (None, ZERO_UUID))
        yield delete("nothing")

    def describe(self, label, *resources, version=4, synonyms=False, documentation=False) -> Answer:
        asked = [DescribeConfigsResource(*resource) for resource in resources]
        request = DescribeConfigsRequest(asked, synonyms, documentation)
        return self.ask(f"settings {label}", DESCRIBE_CONFIGS, request, version)

    def change(self, label, *resources, version=1, dry=False) -> Answer:
        answer = label, comparable(self._alter(resources, version, dry=dry))
        self.follow()
        return answer

    def settings(self) -> Iterator[Answer]:
        configs = [("retention.ms", "60000"), ("cleanup.policy", "compact")]
        request = CreateTopicsRequest(
            [topic("s", configs=configs), topic("plain"), topic(FOLLOWED)]
        )
        self.client.ask(CREATE_TOPICS, request, 7)
        self.settle("s", "plain", FOLLOWED)
        keys = ["retention.ms", "segment.bytes", "nope"]
        for version in range(1, 5):
            for flag in (True, False):
                yield self.describe(
                    f"v{version} {flag}",
                    (TOPIC, "s", keys),
                    version=version,
                    synonyms=flag,
                    documentation=flag,
                )
        yield self.describe("of missing topics", (TOPIC, "nope", None), (TOPIC, "b d", None))
        yield self.describe("of strange brokers", (BROKER, "2", None), (BROKER, "x", None))
        yield self.describe(
            "of this broker", (BROKER, "1", ["message.max.bytes", "auto.create.topics.enable"])
        )
        yield self.describe("of something else", (77, "1", None))
        for label, operation, key, text in (
            ("set", SET, "retention.ms", "5"),
            ("set to no number", SET, "retention.ms", "x"),
            ("set an unknown key", SET, "nope", "x"),
            ("set to null", SET, "retention.ms", None),
            ("delete", DELETE, "retention.ms", None),
            ("delete an unknown key", DELETE, "nope", None),
            ("append", APPEND, "cleanup.policy", "delete"),
            ("append again", APPEND, "cleanup.policy", "delete"),
            ("subtract", SUBTRACT, "cleanup.policy", "compact"),
            ("subtract again", SUBTRACT, "cleanup.policy", "compact"),
            ("subtract the last", SUBTRACT, "cleanup.policy", "delete"),
            ("append to no list", APPEND, "retention.ms", "1"),
            ("append what is no policy", APPEND, "cleanup.policy", "foo"),
            ("change with an unknown operation", 9, "retention.ms", "1"),
        ):
            yield self.change(label, (TOPIC, "s", [(key, operation, text)]))
            yield self.describe(f"after {label}", (TOPIC, "s", ["retention.ms", "cleanup.policy"]))
        yield self.change(
            "append to a default", (TOPIC, "plain", [("cleanup.policy", 2, "compact")])
        )
        yield self.describe("after append to a default", (TOPIC, "plain", ["cleanup.policy"]))
        one = [("retention.ms", SET, "1")]
        yield self.change("set a key twice", (TOPIC, "s", one * 2))
        yield self.change("set a topic twice", (TOPIC, "s", one), (TOPIC, "s", one))
        yield self.change("set nothing", (TOPIC, "s", []), version=0)
        for name in ("nope", "b d", ""):
            yield self.change(f"set for topic {name!r}", (TOPIC, name, one))
        yield self.change("set for something else", (77, "s", one))
        yield self.change(
            "only validate a setting", (TOPIC, "s", [("segment.ms", SET, "7")]), dry=True
        )
        yield self.describe("after validating", (TOPIC, "s", ["segment.ms"]))
        for label, name, key, text in (
            ("set a broker's key", "1", "log.retention.ms", "777"),
            ("set all brokers' key", "", "log.retention.ms", "888"),
            ("set a read-only key", "1", "node.id", "5"),
            ("set a read-only key everywhere", "", "auto.create.topics.enable", "false"),
            ("set a broker's key to no number", "1", "message.max.bytes", "xx"),
            ("set another broker's key", "2", "message.max.bytes", "2000000"),
            ("set no broker's key", "x", "message.max.bytes", "2000000"),
            ("set a broker setting nobody knows", "1", "nope", "1"),
        ):
            yield self.change(label, (BROKER, name, [(key, SET, text)]))
        yield self.describe("inherited by a topic", (TOPIC, "plain", ["retention.ms"]))
        for version in range(3):
            for label, kind, name, key, text in (
                ("a topic", TOPIC, "plain", "segment.ms", "60000"),
                ("a topic with null", TOPIC, "plain", "segment.ms", None),
                ("a topic with no number", TOPIC, "plain", "segment.ms", "x"),
                ("a broker", BROKER, "1", "message.max.bytes", "2000000"),
                ("a broker's read-only key", BROKER, "1", "node.id", "5"),
            ):
                resource = LegacyResource(kind, name, [LegacyConfig(key, text)])
                request = AlterConfigsRequest([resource])
                yield self.ask(f"replace {label} v{version}", ALTER_CONFIGS, request, version)
        self.follow()
        yield self.describe("replaced", (TOPIC, "plain", ["segment.ms", "cleanup.policy"]))

    def records_and_epochs(self) -> Iterator[Answer]:
        policies = [("cleanup.policy", "compact")]
        request = CreateTopicsRequest([topic("r", 2), topic("compacted", configs=policies)])
        self.client.ask(CREATE_TOPICS, request, 7)
        self.settle("r", "compacted")
        for version in range(3):
            for offset in (-2, -1, 0, 5):
                asked = [DeleteRecordsPartition(0, offset)]
                topics = [DeleteRecordsTopic(name, asked) for name in ("r", "compacted", "nope")]
                request = DeleteRecordsRequest(topics, 60_000)
                label = f"delete records below {offset} v{version}"
                yield self.ask(label, DELETE_RECORDS, request, version)
        for version in range(2, 5):
            for name, index, current, epoch in (
                ("nope", 0, -1, 0),
                ("r", 0, -1, -1),
                ("r", 0, -1, 1_000_000),
                ("r", 1, 1_000_000, 0),
            ):
                asked = [OffsetForLeaderPartition(index, current, epoch)]
                request = OffsetForLeaderEpochRequest(-1, [OffsetForLeaderTopic(name, asked)])
                label = f"end of epoch {epoch} of {name}-{index} v{version}"
                yield self.ask(label, OFFSET_FOR_LEADER_EPOCH, request, version)

    def producer_ids(self) -> Iterator[Answer]:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            request = InitProducerIdRequest(None, 0)
            if self.client.ask(INIT_PRODUCER_ID, request, 4).error_code != 14:
                break  # Kafka has its first block of ids now.
            time.sleep(0.05)
        for version in range(6):
            request = InitProducerIdRequest(None, 2**31 - 1)
            yield self.ask(f"producer id v{version}", INIT_PRODUCER_ID, request, version)
        for identity in ((3, 0), (3, -1), (-1, 3)):
            request = InitProducerIdRequest(None, 0, *identity)
            yield self.ask(f"producer id for {identity}", INIT_PRODUCER_ID, request, 5)
        request = InitProducerIdRequest("", 60_000)
        yield self.ask("producer id for an empty id", INIT_PRODUCER_ID, request, 5)


def sasl(script: Script) -> Iterator[Answer]:
    """On a listener without authentication; the connection stays usable."""
    for version in range(2):
        for mechanism in ("PLAIN", ""):
            request = SaslHandshakeRequest(mechanism)
            yield script.ask(
                f"handshake v{version} {mechanism!r}", SASL_HANDSHAKE, request, version
            )
    for version in range(3):
        request = SaslAuthenticateRequest(b"\0user\0password")
        yield script.ask(f"authenticate v{version}", SASL_AUTHENTICATE, request, version)


FAMILIES: dict[str, Callable[[Script], Iterator[Answer]]] = {
    "topics created": Script.topics_created,
    "topics described": Script.topics_described,
    "topics asked into being": Script.topics_asked_into_being,
    "topics grown": Script.topics_grown,
    "topics deleted": Script.topics_deleted,
    "settings": Script.settings,
    "records and epochs": Script.records_and_epochs,
    "producer ids": Script.producer_ids,
    "sasl": sasl,
}


@pytest.fixture(scope="module")
def ours(tmp_path_factory) -> Iterator[BrokerProcess]:
    with Barnabas(tmp_path_factory.mktemp("ours")) as running:
        yield running


@pytest.mark.parametrize("family", FAMILIES)
def test_answers_are_kafkas(ours, kafka, family):
    script = lambda client: FAMILIES[family](Script(client))  # noqa: E731
    check_alike(ours, kafka, family, script, ON_PURPOSE)


def advertised(broker: BrokerProcess) -> dict[int, tuple[int, int]]:
    """Return the lowest and the highest version of each API."""
    with WireClient(broker) as client:
        answer = client.ask(API_VERSIONS, ApiVersionsRequest("test", "1"), 4)
        return {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}


def test_versions_are_advertised_as_kafka_does_it(ours, kafka):
    """Clients that guess a broker's age by it look for SaslHandshake on every listener."""
    found, theirs = plain(advertised(ours)), kafka.observe("versions", advertised)
    assert {str(SASL_HANDSHAKE.key), str(SASL_AUTHENTICATE.key)} <= found.keys()
    assert {key: theirs[key] for key in found} == found
