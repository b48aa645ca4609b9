"""Random ACLs, random requests: a broker answers what an oracle of a few lines says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.security.acls.acls import Acl
from barnabas.broker.security.acls.operations import (
    CLUSTER_NAME,
    SUPPORTED,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from barnabas.protocol.messages.create_partitions import (
    CREATE_PARTITIONS,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.delete_records import DELETE_RECORDS
from barnabas.protocol.messages.describe_cluster import DESCRIBE_CLUSTER, DescribeClusterRequest
from barnabas.protocol.messages.describe_configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas.protocol.messages.describe_groups import DESCRIBE_GROUPS, DescribeGroupsRequest
from barnabas.protocol.messages.fetch import FETCH, FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.list_groups import LIST_GROUPS, ListGroupsRequest
from barnabas.protocol.messages.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.offset_commit import OFFSET_COMMIT
from barnabas.protocol.messages.offset_fetch import OFFSET_FETCH
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.protocol.wire import ZERO_UUID
from barnabas.testing import Broker
from tests.broker.security.access_requests import batch
from tests.broker.security.access_users import ADMIN, UserClient, settings
from tests.requests import (
    commit_request,
    delete_records_request,
    fetch_offsets_request,
    produce_request,
)

TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID = (
    ResourceType.TOPIC,
    ResourceType.GROUP,
    ResourceType.CLUSTER,
    ResourceType.TRANSACTIONAL_ID,
)
USERS = ("ann", "bea")
HERE = ("a", "ab", "abc", "b")
"""Topics and groups that there are."""
NAMES = (*HERE, "ac", "abcd", "c")
HOST = "127.0.0.1"
FRESH = "~~~"
"""Name that no object and no ACL has."""
OK, UNKNOWN, TOPIC_DENIED, GROUP_DENIED, CLUSTER_DENIED, ID_DENIED = 0, 3, 29, 30, 31, 53

IMPLIES = {
    Operation.DESCRIBE: {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER},
    Operation.DESCRIBE_CONFIGS: {Operation.ALTER_CONFIGS},
}


class Oracle(NamedTuple):
    """Permissions of a user by some ACLs, in the shortest form."""

    acls: list[Acl]
    principal: str

    def __call__(self, operation: Operation, kind: ResourceType, name: str) -> bool:
        mine = [
            acl
            for acl in self.acls
            if acl.resource_type == kind
            and (
                acl.name in {name, "*"}
                if acl.pattern == PatternType.LITERAL
                else name.startswith(acl.name)
            )
            and acl.principal in {self.principal, "User:*"}
            and acl.host in {"*", HOST, "127.0.0.0/8"}
        ]
        meant = {operation, Operation.ALL}
        if any(a.permission == Permission.DENY and a.operation in meant for a in mine):
            return False
        allowing = meant | IMPLIES.get(operation, set())
        return any(a.permission == Permission.ALLOW and a.operation in allowing for a in mine)

    def on_any(self, operation: Operation, kind: ResourceType) -> bool:
        """Whether there is a name that it is allowed for: one that only one ACL may be about."""
        names = {FRESH}
        for acl in self.acls:
            names.add(acl.name + FRESH if acl.pattern == PatternType.PREFIXED else acl.name)
        return any(self(operation, kind, name) for name in names)

    def on_cluster(self, operation: Operation) -> bool:
        """Whether it is allowed on the cluster."""
        return self(operation, CLUSTER, CLUSTER_NAME)


# ---------------------------------------------------------------------------------------- questions


Question = Callable[[UserClient, Oracle, list[str]], tuple[Any, Any]]
"""Returns the broker's response and the expected one, about some topics or groups."""


def _of_topic(may: Oracle, operation: Operation, name: str, denied: int = TOPIC_DENIED) -> int:
    if not may(operation, TOPIC, name):
        return denied
    return OK if name in HERE else UNKNOWN


def produce(client: UserClient, may: Oracle, names: list[str]) -> tuple[Any, Any]:
    request = produce_request({(name, 0): batch() for name in names})
    answer = client.ask(PRODUCE, request, 9)
    found = {each.name: each.partition_responses[0].error_code for each in answer.responses}
    return found, {name: _of_topic(may, Operation.WRITE, name) for name in names}


def fetch(client: UserClient, may: Oracle, names: list[str]) -> tuple[Any, Any]:
    asked = [FetchTopic(n, partitions=[FetchPartition(0, partition_max_bytes=1)]) for n in names]
    answer = client.ask(FETCH, FetchRequest(session_epoch=-1, topics=asked), 12)
    found = {each.topic: each.partitions[0].error_code for each in answer.responses}
    return found, {name: _of_topic(may, Operation.READ, name) for name in names}


def list_offsets(client: UserClient, may: Oracle, names: list[str]) -> tuple[Any, Any]:
    asked = [ListOffsetsTopic(n, [ListOffsetsPartition(0, -1, -2)]) for n in names]
    answer = client.ask(LIST_OFFSETS, ListOffsetsRequest(-1, 0, asked), 7)
    found = {each.name: each.partitions[0].error_code for each in answer.topics}
    return found, {name: _of_topic(may, Operation.DESCRIBE, name) for name in names}


def metadata(client: UserClient, may: Oracle, names: list[str]) -> tuple[Any, Any]:
    asked = [MetadataRequestTopic(ZERO_UUID, name) for name in names]
    answer = client.ask(METADATA, MetadataRequest(asked, False, False, True), 10)
    found = {
        each.name: (each.error_code, each.topic_authorized_operations) for each in answer.topics
    }
    return found, {
        name: (
            _of_topic(may, Operation.DESCRIBE, name),
            sum(1 << op for op in SUPPORTED[TOPIC] if may(op, TOPIC, name))
            if may(Operation.DESCRIBE, TOPIC, name)
            else -(2**31),
        )
        for name in names
    }


def all_topics(client: UserClient, may: Oracle, _names: list[str]) -> tuple[Any, Any]:
    answer = client.ask(METADATA, MetadataRequest(None, False), 10)
    found = {each.name for each in answer.topics if not each.is_internal}
    return found, {name for name in HERE if may(Operation.DESCRIBE, TOPIC, name)}


def delete_records(client: UserClient, may: Oracle, names: list[str]) -> tuple[Any, Any]:
    request = delete_records_request({(name, 0): 0 for name in names})
    answer = client.ask(DELETE_RECORDS, request, 2)
    found = {each.name: each.partitions[0].error_code for each in answer.topics}
    return found, {name: _of_topic(may, Operation.DELETE, name) for name in names}


def create_partitions(client: UserClient, may: Oracle, names: list[str]) -> tuple[Any, Any]:
    asked = [CreatePartitionsTopic(name, 5, None) for name in names]
    answer = client.ask(CREATE_PARTITIONS, CreatePartitionsRequest(asked, 9000, True), 3)
    found = {each.name: each.error_code for each in answer.results}
    return found, {name: _of_topic(may, Operation.ALTER, name) for name in names}


def describe_configs(client: UserClient, may: Oracle, names: list[str]) -> tuple[Any, Any]:
    asked = [DescribeConfigsResource(kind, n, ["x"]) for kind in (2, 32) for n in names]
    asked.append(DescribeConfigsResource(4, "1", ["x"]))
    answer = client.ask(DESCRIBE_CONFIGS, DescribeConfigsRequest(asked), 4)
    found = {(each.resource_type, each.resource_name): each.error_code for each in answer.results}
    operation = Operation.DESCRIBE_CONFIGS
    wanted = {(2, name): _of_topic(may, operation, name) for name in names}
    wanted |= {(32, n): OK if may(operation, GROUP, n) else GROUP_DENIED for n in names}
    return found, wanted | {(4, "1"): OK if may.on_cluster(operation) else CLUSTER_DENIED}


def offset_commit(client: UserClient, may: Oracle, names: list[str]) -> tuple[Any, Any]:
    request = commit_request(names[0], {(name, 0): 1 for name in names})
    answer = client.ask(OFFSET_COMMIT, request, 9)
    found = {each.name: each.partitions[0].error_code for each in answer.topics}
    if not may(Operation.READ, GROUP, names[0]):
        return found, dict.fromkeys(names, GROUP_DENIED)
    return found, {name: _of_topic(may, Operation.READ, name) for name in names}


def all_offsets(client: UserClient, may: Oracle, _names: list[str]) -> tuple[Any, Any]:
    answer = client.ask(OFFSET_FETCH, fetch_offsets_request(*HERE), 9)
    found = {g.group_id: (g.error_code, {topic.name for topic in g.topics}) for g in answer.groups}
    seen = {name for name in HERE if may(Operation.DESCRIBE, TOPIC, name)}
    return found, {
        name: (OK, seen) if may(Operation.DESCRIBE, GROUP, name) else (GROUP_DENIED, set())
        for name in HERE
    }


def coordinators(client: UserClient, may: Oracle, names: list[str]) -> tuple[Any, Any]:
    answers = [
        client.ask(FIND_COORDINATOR, FindCoordinatorRequest("", kind, names), 4).coordinators
        for kind in (0, 1)
    ]
    found = [{each.key: each.error_code for each in answer} for answer in answers]
    describe = Operation.DESCRIBE
    return found, [
        {name: OK if may(describe, GROUP, name) else GROUP_DENIED for name in names},
        {name: OK if may(describe, TRANSACTIONAL_ID, name) else ID_DENIED for name in names},
    ]


def groups(client: UserClient, may: Oracle, names: list[str]) -> tuple[Any, Any]:
    answer = client.ask(DESCRIBE_GROUPS, DescribeGroupsRequest(names), 5)
    listed = client.ask(LIST_GROUPS, ListGroupsRequest(), 4)
    found = {each.group_id: each.error_code for each in answer.groups}
    seen = {name for name in HERE if may(Operation.DESCRIBE, GROUP, name)}
    return (found, {each.group_id for each in listed.groups}), (
        {name: OK if may(Operation.DESCRIBE, GROUP, name) else GROUP_DENIED for name in names},
        set(HERE) if may.on_cluster(Operation.DESCRIBE) else seen,
    )


def producer_ids(client: UserClient, may: Oracle, names: list[str]) -> tuple[Any, Any]:
    answers = [
        client.ask(INIT_PRODUCER_ID, InitProducerIdRequest(key, 9000), 5).error_code
        for key in (None, names[0])
    ]
    idempotent = may.on_cluster(Operation.IDEMPOTENT_WRITE) or may.on_any(Operation.WRITE, TOPIC)
    transactional = may(Operation.WRITE, TRANSACTIONAL_ID, names[0])
    return answers, [OK if idempotent else CLUSTER_DENIED, OK if transactional else ID_DENIED]


def cluster(client: UserClient, may: Oracle, _names: list[str]) -> tuple[Any, Any]:
    answer = client.ask(DESCRIBE_CLUSTER, DescribeClusterRequest(True), 1)
    bits = sum(1 << op for op in SUPPORTED[CLUSTER] if may.on_cluster(op))
    return answer.cluster_authorized_operations, bits if may.on_cluster(Operation.DESCRIBE) else 0


QUESTIONS: tuple[Question, ...] = (
    produce,
    fetch,
    list_offsets,
    metadata,
    all_topics,
    delete_records,
    create_partitions,
    describe_configs,
    offset_commit,
    all_offsets,
    coordinators,
    groups,
    producer_ids,
    cluster,
)


# ----------------------------------------------------------------------------------------- the test


@st.composite
def acls(draw: st.DrawFn) -> Acl:
    kind = draw(st.sampled_from([TOPIC, TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID]))
    pattern = draw(st.sampled_from([*PatternType]))
    name = draw(st.sampled_from(["*", *NAMES]))
    if kind is CLUSTER:
        name = draw(st.sampled_from([CLUSTER_NAME, "*"]))
        pattern = PatternType.LITERAL
    return Acl(
        kind,
        name,
        pattern,
        draw(st.sampled_from(["User:ann", "User:bea", "User:*", "User:somebody"])),
        draw(st.sampled_from(["*", "*", HOST, "127.0.0.0/8", "10.0.0.1"])),
        draw(st.sampled_from([Operation.ALL, *SUPPORTED[kind]])),
        draw(st.sampled_from([Permission.ALLOW, Permission.ALLOW, Permission.DENY])),
    )


class World:
    """A broker with topics and groups, and the connections of its users."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.clients = {user: UserClient(broker.address, user) for user in (ADMIN, *USERS)}
        admin = self.clients[ADMIN]
        for name in HERE:
            broker.create_topic(name, 2)
        admin.ask(FIND_COORDINATOR, FindCoordinatorRequest("a"), 3)
        admin.ask(FIND_COORDINATOR, FindCoordinatorRequest("a", 1), 3)
        for name in HERE:
            request = commit_request(name, {(topic, 0): 1 for topic in HERE})
            answer = admin.ask(OFFSET_COMMIT, request, 9)
            assert {each.partitions[0].error_code for each in answer.topics} == {OK}

    def use(self, wanted: list[Acl]) -> None:
        """Replace all ACLs by these."""

        def change() -> None:
            server = self._broker.server
            assert server.authorizer is not None
            there = [*server.authorizer.acls]
            server.authorizer.change([], there)
            server.authorizer.change(wanted, [])

        self._broker.call(change)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with Broker(config=settings((ADMIN, *USERS))) as broker:
        world = World(broker)
        yield world
        for client in world.clients.values():
            client.close()


SOME_NAMES = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True)


@given(
    wanted=st.lists(acls(), max_size=12, unique=True),
    more=acls(),
    names=SOME_NAMES,
    asked=st.lists(st.sampled_from(QUESTIONS), min_size=1, max_size=6),
)
def test_a_broker_answers_what_the_oracle_says(world, wanted, more, names, asked):
    """Compare with some ACLs, with one more on the same connections, and without it again."""
    for there in (wanted, [*wanted, more] if more not in wanted else wanted, wanted):
        world.use(there)
        for user in USERS:
            may = Oracle(there, f"User:{user}")
            for ask in asked:
                found, expected = ask(world.clients[user], may, names)
                assert found == expected, (ask.__name__, user, names)


def test_every_question_is_denied_to_who_has_nothing_and_answered_to_who_has_all(world):
    """Each question distinguishes the two users: its response depends on their permissions."""
    everything = [
        Acl(kind, name, PatternType.LITERAL, "User:ann", "*", Operation.ALL, Permission.ALLOW)
        for kind, name in (
            (TOPIC, "*"),
            (GROUP, "*"),
            (CLUSTER, CLUSTER_NAME),
            (TRANSACTIONAL_ID, "*"),
        )
    ]
    world.use(everything)
    for ask in QUESTIONS:
        answers = [
            ask(world.clients[user], Oracle(everything, f"User:{user}"), ["a"]) for user in USERS
        ]
        assert all(found == expected for found, expected in answers), ask.__name__
        assert answers[0] != answers[1], ask.__name__
