"""Directories, producers, replicas, quotas, users, access control, views of transactions.

One script of requests is for Barnabas and Apache Kafka 4.3.0; see comparison.py.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.protocol.messages.alter_client_quotas import (
    ALTER_CLIENT_QUOTAS,
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from barnabas.protocol.messages.alter_partition_reassignments import (
    ALTER_PARTITION_REASSIGNMENTS,
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.protocol.messages.alter_user_scram_credentials import (
    ALTER_USER_SCRAM_CREDENTIALS,
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from barnabas.protocol.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from barnabas.protocol.messages.create_acls import CREATE_ACLS, AclCreation, CreateAclsRequest
from barnabas.protocol.messages.delete_acls import DELETE_ACLS, DeleteAclsFilter, DeleteAclsRequest
from barnabas.protocol.messages.describe_acls import DESCRIBE_ACLS, DescribeAclsRequest
from barnabas.protocol.messages.describe_client_quotas import (
    DESCRIBE_CLIENT_QUOTAS,
    ComponentData,
    DescribeClientQuotasRequest,
)
from barnabas.protocol.messages.describe_log_dirs import (
    DESCRIBE_LOG_DIRS,
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from barnabas.protocol.messages.describe_producers import (
    DESCRIBE_PRODUCERS,
    DescribeProducersRequest,
    TopicRequest,
)
from barnabas.protocol.messages.describe_user_scram_credentials import (
    DESCRIBE_USER_SCRAM_CREDENTIALS,
    DescribeUserScramCredentialsRequest,
    UserName,
)
from barnabas.protocol.messages.elect_leaders import (
    ELECT_LEADERS,
    ElectLeadersRequest,
    TopicPartitions,
)
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.list_partition_reassignments import (
    LIST_PARTITION_REASSIGNMENTS,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from barnabas.protocol.messages.update_features import (
    UPDATE_FEATURES,
    FeatureUpdateKey,
    UpdateFeaturesRequest,
)
from barnabas.protocol.records import Record, encode_batch
from tests.counterparts.broker_process import BrokerProcess
from tests.counterparts.wire_client import WireClient
from tests.interop import transaction_views
from tests.interop.comparison import Answer, check_alike, comparable, now_ms, produce
from tests.interop.recorded_kafka import Barnabas
from tests.interop.transaction_views import (
    coordinators_of_transactions,
    transactions_described,
    transactions_listed,
)
from tests.requests import create_topic
from tests.waiting import wait_until

TIMEOUT_MS = 60_000
NOT_LOADED_YET = 14
SCRAM_SHA_256, SCRAM_SHA_512 = 1, 2

ON_PURPOSE = {
    "set one without salt": "Kafka stores it",
    "set one with a short password": "Kafka stores it; the mechanism cannot have made it",
    "set one with no password": "Kafka's answer is that of an error of its own, -1",
    **transaction_views.ON_PURPOSE,
}


def wait_until_listed(client: WireClient, name: str, partitions: int) -> None:
    """Apache Kafka makes the partitions of a topic one after the other, behind its answer."""
    request = DescribeLogDirsRequest([DescribableLogDirTopic(name, list(range(partitions)))])
    deadline = time.monotonic() + 60
    while True:
        (directory,) = client.ask(DESCRIBE_LOG_DIRS, request, 5).results
        if sum(len(topic.partitions) for topic in directory.topics) == partitions:
            return
        assert time.monotonic() < deadline, directory
        time.sleep(0.05)


def new_producer_id(client: WireClient) -> int:
    deadline = time.monotonic() + 60
    while True:
        response = client.ask(INIT_PRODUCER_ID, InitProducerIdRequest(None, 0), 4)
        if response.error_code != NOT_LOADED_YET or time.monotonic() > deadline:
            break
        time.sleep(0.05)
    assert response.error_code == 0
    return response.producer_id


def log_dirs(client: WireClient) -> Iterator[Answer]:
    """DescribeLogDirs, of topics with and without data."""
    create_topic(client, "sized", 3)
    wait_until_listed(client, "sized", 3)
    records = [Record(offset, now_ms(), b"k", b"v" * 100) for offset in range(10)]
    for index in (0, 0, 2):
        produce(client, "sized", index, encode_batch(records))
    named = [
        DescribableLogDirTopic("sized", [0, 1, 2, 7]),
        DescribableLogDirTopic("nope", [0]),
        DescribableLogDirTopic("sized", [0]),
        DescribableLogDirTopic("b d", [0]),
    ]
    for version in range(1, 6):
        for label, topics in (
            ("all", None),
            ("some", named),
            ("none", []),
            ("no partition", [DescribableLogDirTopic("sized", [])]),
        ):
            request = DescribeLogDirsRequest(topics)
            answer = comparable(client.ask(DESCRIBE_LOG_DIRS, request, version))
            if label == "all":
                # The other entries differ: internal topics, topics of other scripts.
                for each in answer["results"]:
                    each["topics"] = [t for t in each["topics"] if t["name"] == "sized"]
            yield f"sizes of {label} v{version}", answer


def _are_led(client: WireClient, name: str, partitions: int) -> bool:
    """Return whether all partitions have a leader: Apache Kafka opens them one after the other."""
    request = DescribeProducersRequest([TopicRequest(name, list(range(partitions)))])
    (topic,) = client.ask(DESCRIBE_PRODUCERS, request, 0).topics
    return not any(each.error_code for each in topic.partitions)


def producers(client: WireClient) -> Iterator[Answer]:
    """DescribeProducers, of partitions with and without producers."""
    create_topic(client, "produced", 2)
    wait_until(lambda: _are_led(client, "produced", 2), "both partitions are led")
    producer_id = new_producer_id(client)
    records = [Record(offset, now_ms(), b"k", b"v") for offset in range(3)]
    for sequence in (0, 3):
        batch = encode_batch(
            records, producer_id=producer_id, producer_epoch=0, base_sequence=sequence
        )
        produce(client, "produced", 0, batch)
    for label, topics in (
        ("one", [("produced", [0])]),
        ("none there", [("produced", [1])]),
        ("missing partitions", [("produced", [7, -1])]),
        ("a missing topic", [("nope", [0, 1])]),
        ("illegal names", [("b d", [0]), ("", [0])]),
        ("a topic twice", [("produced", [0]), ("produced", [1, 1])]),
        ("no partitions", [("produced", [])]),
        ("nothing", []),
    ):
        request = DescribeProducersRequest([TopicRequest(*each) for each in topics])
        yield f"producers of {label}", comparable(client.ask(DESCRIBE_PRODUCERS, request, 0))


def elections(client: WireClient) -> Iterator[Answer]:
    """ElectLeaders of both kinds, where everything has its leader."""
    create_topic(client, "elected", 2)
    records = [Record(0, now_ms(), b"k", b"v")]
    for index in range(2):
        produce(client, "elected", index, encode_batch(records))

    def elect(label: str, topics: Any, kind: int = 0, version: int = 2) -> Answer:
        asked = None if topics is None else [TopicPartitions(*each) for each in topics]
        request = ElectLeadersRequest(kind, asked, TIMEOUT_MS)
        answer = comparable(client.ask(ELECT_LEADERS, request, version))
        if topics is None:
            results = answer["replica_election_results"]
            answer["replica_election_results"] = [r for r in results if r["topic"] == "elected"]
        return f"elect {label} kind {kind} v{version}", answer

    some = [("elected", [0, 1, 7]), ("nope", [0]), ("b d", [0])]
    for version in range(3):
        for kind in (0, 1):
            yield elect("some", some, kind, version)
            yield elect("all", None, kind, version)
    yield elect("by an unknown kind", [("elected", [0])], 7)
    yield elect("twice", [("elected", [0, 0]), ("elected", [0])])
    yield elect("nothing", [])
    yield elect("no partition", [("elected", [])])


def reassignments(client: WireClient) -> Iterator[Answer]:
    """List- and AlterPartitionReassignments, with assignments to this broker and to others."""
    create_topic(client, "moved", 2)
    produce(client, "moved", 0, encode_batch([Record(0, now_ms(), b"k", b"v")]))
    for label, topics in (("all", None), ("some", [("moved", [0, 9]), ("nope", [0])])):
        asked = None if topics is None else [ListPartitionReassignmentsTopics(*t) for t in topics]
        request = ListPartitionReassignmentsRequest(TIMEOUT_MS, asked)
        answer = client.ask(LIST_PARTITION_REASSIGNMENTS, request, 0)
        yield f"reassignments of {label}", comparable(answer)

    def move(label: str, topics: Any, version: int = 1, *, factor: bool = True) -> Answer:
        asked = [
            ReassignableTopic(name, [ReassignablePartition(*each) for each in partitions])
            for name, partitions in topics
        ]
        request = AlterPartitionReassignmentsRequest(TIMEOUT_MS, factor, asked)
        answer = client.ask(ALTER_PARTITION_REASSIGNMENTS, request, version)
        return f"move {label} v{version} factor={factor}", comparable(answer)

    missing = ("nope", [(0, [1]), (1, None)])
    for version in (0, 1):
        yield move(
            "nowhere",
            [("moved", [(0, [1]), (1, None), (7, [1]), (8, None)]), missing],
            version,
        )
    for label, replicas in (
        ("elsewhere", [2]),
        ("to two", [1, 2]),
        ("to nobody", []),
        ("to one twice", [1, 1]),
        ("to no broker", [-1]),
    ):
        yield move(label, [("moved", [(0, replicas)])])
        yield move(label, [("moved", [(0, replicas)])], factor=False)
    yield move("twice", [("moved", [(0, [1])]), ("moved", [(0, [1]), (0, [1])])])
    yield move("nothing", [])


def quotas(client: WireClient) -> Iterator[Answer]:
    """Describe- and AlterClientQuotas."""

    def describe(label: str, components: Any, version: int = 1, *, strict: bool = True) -> Answer:
        asked = [ComponentData(*each) for each in components]
        request = DescribeClientQuotasRequest(asked, strict)
        return label, comparable(client.ask(DESCRIBE_CLIENT_QUOTAS, request, version))

    for version in (0, 1):
        for strict in (False, True):
            for label, components in (
                ("all", []),
                ("a user", [("user", 0, "nobody")]),
                ("a client of a user", [("user", 2, None), ("client-id", 1, None)]),
            ):
                yield describe(f"quotas of {label} v{version} {strict}", components, version)
    for label, components in (
        ("an unknown kind", [("nope", 0, "x")]),
        ("no kind", [("", 2, None)]),
        ("an unknown match", [("user", 7, "x")]),
        ("no name", [("user", 0, None)]),
        ("the default with a name", [("user", 1, "x")]),
        ("any with a name", [("user", 2, "x")]),
        ("a user twice", [("user", 2, None), ("user", 2, None)]),
        ("an address", [("ip", 0, "127.0.0.1")]),
        ("an address and a user", [("ip", 2, None), ("user", 2, None)]),
        ("an empty name", [("user", 0, "")]),
    ):
        yield describe(f"quotas of {label}", components)

    def alter(label: str, entity: Any, *ops: Any, version: int = 1) -> Answer:
        entry = EntryData([EntityData(*each) for each in entity], [OpData(*each) for each in ops])
        request = AlterClientQuotasRequest([entry], validate_only=False)
        return label, comparable(client.ask(ALTER_CLIENT_QUOTAS, request, version))

    remove = ("producer_byte_rate", 0.0, True)
    for version in (0, 1):
        yield alter(f"remove a quota v{version}", [("user", "u")], remove, version=version)
    yield alter("remove two quotas", [("user", "u")], remove, ("request_percentage", 0.0, True))
    yield alter("remove a quota of the default user", [("user", None)], remove)
    yield alter("set a quota", [("user", "u")], ("producer_byte_rate", 1000.0, False))
    yield alter("set an unknown quota", [("user", "u")], ("nope", 1000.0, False))
    yield alter("set a quota of an unknown kind", [("nope", "u")], remove)
    yield alter("set a quota of nobody", [], remove)


def users(client: WireClient) -> Iterator[Answer]:
    """Describe- and AlterUserScramCredentials."""

    def described(names: list[str] | None) -> Any:
        request = DescribeUserScramCredentialsRequest(
            None if names is None else [UserName(name) for name in names]
        )
        return client.ask(DESCRIBE_USER_SCRAM_CREDENTIALS, request, 0)

    def describe(label: str, names: list[str] | None) -> Answer:
        return label, comparable(described(names))

    def follow(iterations: int) -> None:
        """Wait until the whole broker has applied the changes: Apache Kafka responds before that.

        Changes become known in their order.
        """
        alter("follow", [], [("follower", SCRAM_SHA_256, iterations)])

        def is_known() -> bool:
            (found,) = described(["follower"]).results
            return [each.iterations for each in found.credential_infos] == [iterations]

        wait_until(is_known, "the broker follows")

    def alter(label: str, deletions: Any, upsertions: Any) -> Answer:
        request = AlterUserScramCredentialsRequest(
            [ScramCredentialDeletion(*each) for each in deletions],
            [scram_upsertion(*each) for each in upsertions],
        )
        return label, comparable(client.ask(ALTER_USER_SCRAM_CREDENTIALS, request, 0))

    asked = {"all": None, "none": [], "some": ["b", "a", ""], "one twice": ["a", "b", "a"]}
    for label, names in asked.items():
        yield describe(f"credentials of {label}", names)
    yield alter("delete credentials", [("a", 1), ("b", 2), ("c", 7), ("", 1)], [])
    yield alter("change nobody's credentials", [], [])
    yield alter("set bad credentials", [], [("", 1), ("d", 0), ("d", 3), ("e", 1, 4095)])
    yield alter("set too dear credentials", [], [("e", 1, 16_385)])
    yield alter("set a user's credential", [], [("f", SCRAM_SHA_256)])
    yield alter("set both of a user", [], [("f", SCRAM_SHA_256), ("f", SCRAM_SHA_512)])
    yield alter("set the other one", [], [("f", SCRAM_SHA_512, 16_384), ("g", SCRAM_SHA_512)])
    follow(5000)
    yield describe("credentials of two", ["f", "g", "h"])
    yield alter("set and delete", [("f", SCRAM_SHA_256)], [("f", SCRAM_SHA_512), ("b", 1)])
    yield alter("delete what is not there and set it", [("h", 1)], [("h", 1), ("i", 1)])
    yield alter("delete one twice", [("g", 2), ("g", 2)], [])
    yield alter("delete the wrong one", [("g", 1)], [])
    yield alter("delete one", [("g", 2), ("f", 1)], [])
    yield alter("set one without salt", [], [("j", 1, 4096, b"")])
    yield alter("set one with a short password", [], [("k", 1, 4096, b"salt", b"p")])
    yield alter("set one with no password", [], [("l", 1, 4096, b"salt", b"")])
    follow(6000)
    yield describe("credentials at last", ["f", "b", "g", "h", "i"])


def scram_upsertion(
    name: str,
    mechanism: int,
    iterations: int = 4096,
    salt: bytes = b"salt",
    salted: bytes | None = None,
) -> ScramCredentialUpsertion:
    if salted is None:
        salted = b"p" * (64 if mechanism == SCRAM_SHA_512 else 32)
    return ScramCredentialUpsertion(name, mechanism, iterations, salt, salted)


def access_control(client: WireClient) -> Iterator[Answer]:
    """DescribeAcls, CreateAcls, DeleteAcls."""
    for version in range(1, 4):
        request = DescribeAclsRequest(1, None, 3, None, None, 1, 1)
        yield f"rules v{version}", comparable(client.ask(DESCRIBE_ACLS, request, version))
        for count in (0, 2):
            creations = [AclCreation(2, "t", 3, "User:a", "*", 3, 3)] * count
            filters = [DeleteAclsFilter(2, "t", 3, "User:a", "*", 3, 3)] * count
            answer = client.ask(CREATE_ACLS, CreateAclsRequest(creations), version)
            yield f"create {count} rules v{version}", comparable(answer)
            answer = client.ask(DELETE_ACLS, DeleteAclsRequest(filters), version)
            yield f"delete {count} rules v{version}", comparable(answer)


UPDATES = {
    "too high": ("transaction.version", 3, 1),
    "negative": ("transaction.version", -1, 1),
    "down by an upgrade": ("transaction.version", 1, 1),
    "of no kind": ("transaction.version", 1, 7),
    "too low": ("metadata.version", 6, 2),
    "of nothing": ("no.such.version", 1, 1),
    "down": ("transaction.version", 1, 2),
    "up by a downgrade": ("transaction.version", 2, 3),
    "up": ("transaction.version", 2, 1),
    "as it is": ("transaction.version", 2, 2),
}
"""Feature, level, and the kind of update."""


def levels_of_features(client: WireClient) -> Iterator[Answer]:
    """Levels of features that go down and up, and those that cannot be."""
    for name, (feature, level, kind) in UPDATES.items():
        for version, only_asks in ((2, True), (1, False), (2, False)):
            asked = [FeatureUpdateKey(feature, level, upgrade_type=kind)]
            request = UpdateFeaturesRequest(TIMEOUT_MS, asked, only_asks)
            answer = client.ask(UPDATE_FEATURES, request, version)
            yield f"features {name}, version {version}, {only_asks}", answer
            yield f"features {name}, version {version}, {only_asks}: words", answer.error_message
    for allowed in (False, True):
        asked = [FeatureUpdateKey("transaction.version", 1, allowed)]
        yield (
            f"down by leave {allowed}",
            client.ask(UPDATE_FEATURES, UpdateFeaturesRequest(TIMEOUT_MS, asked), 0),
        )

    def level() -> int:
        answer = client.ask(API_VERSIONS, ApiVersionsRequest("test", "1"), 4)
        levels = {each.name: each.max_version_level for each in answer.finalized_features}
        return int(levels["transaction.version"])

    # Apache Kafka's broker hears of a change after its controller has answered.
    wait_until(lambda: level() == 2, lambda: f"the level in the end is {level()}")


FAMILIES = {
    "log dirs": log_dirs,
    "producers": producers,
    "elections": elections,
    "reassignments": reassignments,
    "quotas": quotas,
    "features": levels_of_features,
    "users": users,
    "access control": access_control,
    "coordinators": coordinators_of_transactions,
    "transactions listed": transactions_listed,
    "transactions described": transactions_described,
}


@pytest.fixture(scope="module")
def ours(tmp_path_factory) -> Iterator[BrokerProcess]:
    with Barnabas(tmp_path_factory.mktemp("ours")) as running:
        yield running


@pytest.mark.parametrize("family", FAMILIES)
def test_answers_are_kafkas(ours, kafka, family):
    check_alike(ours, kafka, family, FAMILIES[family], ON_PURPOSE)
