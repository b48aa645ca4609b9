"""Random ACLs decide here as StandardAuthorizer decides in Apache Kafka 4.3.0.

The bit fields of KIP-430 name every operation that a user may perform. InitProducerId shows whether
the user may write to any topic. `make test` has the rounds of one seed, and the record of Apache
Kafka's decisions; `make nightly` sends those of SEED to both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from random import Random
from typing import Any

import pytest

from barnabas.broker.security.acls.operations import (
    CLUSTER_NAME,
    SUPPORTED,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from barnabas.protocol.messages.create_acls import AclCreation
from barnabas.protocol.messages.delete_acls import (
    DELETE_ACLS,
    DeleteAclsFilter,
    DeleteAclsRequest,
)
from barnabas.protocol.messages.describe_acls import DESCRIBE_ACLS, DescribeAclsRequest
from barnabas.protocol.messages.describe_cluster import DESCRIBE_CLUSTER, DescribeClusterRequest
from barnabas.protocol.messages.describe_groups import DESCRIBE_GROUPS, DescribeGroupsRequest
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic
from barnabas.protocol.wire import ZERO_UUID
from tests.broker.security.access_users import PASSWORD, UserClient, add_acls
from tests.counterparts.secured import ADMIN, Secured, SecuredKafka
from tests.counterparts.wire_client import WireClient
from tests.interop.comparison import NOT_LEADER_YET
from tests.interop.consumer_group import wait_for_coordinator
from tests.interop.recorded_kafka import SecuredBarnabas, plain
from tests.requests import create_topic
from tests.seeds import SEED
from tests.waiting import wait_until

ROUNDS = 60
RECORDED_SEED = 1
USERS = ("ann", "bea")
NAMES = ("a", "ab", "abc", "b", "c")
HOSTS = ("*", "*", "*", "127.0.0.1", "10.0.0.1")
ANY = 1


def random_acl(random: Random) -> AclCreation:
    """One that both brokers take."""
    kind = random.choice([*4 * [ResourceType.TOPIC], *list(ResourceType)[1:4]])
    name, pattern = random.choice(["*", *NAMES]), random.choice([*PatternType])
    if kind is ResourceType.CLUSTER:
        name, pattern = CLUSTER_NAME, PatternType.LITERAL
    return AclCreation(
        kind,
        name,
        pattern,
        random.choice(["User:ann", "User:ann", "User:bea", "User:*", "User:somebody"]),
        random.choice(HOSTS),
        random.choice([Operation.ALL, *SUPPORTED[kind]]),
        random.choice([Permission.ALLOW, Permission.ALLOW, Permission.DENY]),
    )


class Decider:
    """One broker, whose ACLs are replaced again and again."""

    def __init__(self, broker: Secured) -> None:
        self._client = WireClient(broker)
        for name in NAMES:
            create_topic(self._client, name)
        wait_for_coordinator(self._client)
        request = FindCoordinatorRequest("a", 1)
        wait_until(lambda: not self._client.ask(FIND_COORDINATOR, request, 3).error_code)
        self._users = {user: UserClient(broker.sasl_address, user) for user in USERS}

    def close(self) -> None:
        for client in (self._client, *self._users.values()):
            client.close()

    def _count(self) -> int:
        request = DescribeAclsRequest(ANY, None, ANY, None, None, ANY, ANY)
        found = self._client.ask(DESCRIBE_ACLS, request, 3).resources
        return sum(len(resource.acls) for resource in found)

    def use(self, acls: list[AclCreation]) -> None:
        """Replace all ACLs by these."""
        everything = DeleteAclsFilter(ANY, None, ANY, None, None, ANY, ANY)
        self._client.ask(DELETE_ACLS, DeleteAclsRequest([everything]), 3)
        wait_until(lambda: self._count() == 0)
        if acls:
            add_acls(self._client, acls)
        count = len({repr(each) for each in acls})
        wait_until(lambda: self._count() == count)

    def decisions(self) -> dict[str, Any]:
        """Return the operations that each user may perform now."""
        found: dict[str, Any] = {}
        for user, client in self._users.items():
            cluster = client.ask(DESCRIBE_CLUSTER, DescribeClusterRequest(True), 1)
            found[f"{user} cluster"] = cluster.cluster_authorized_operations
            asked = [MetadataRequestTopic(ZERO_UUID, name) for name in NAMES]
            for topic in client.ask(
                METADATA, MetadataRequest(asked, False, False, True), 10
            ).topics:
                code = 0 if topic.error_code in NOT_LEADER_YET else topic.error_code
                found[f"{user} topic {topic.name}"] = code, topic.topic_authorized_operations
            for group in client.ask(
                DESCRIBE_GROUPS, DescribeGroupsRequest([*NAMES], True), 5
            ).groups:
                place = f"{user} group {group.group_id}"
                found[place] = group.error_code, group.authorized_operations
            found[f"{user} idempotent"] = self._init(client, None)
            for name in NAMES:
                found[f"{user} id {name}"] = self._init(client, name)
        return found

    @staticmethod
    def _init(client: UserClient, transactional_id: str | None) -> int:
        """Whether a producer is denied; whether its coordinator is ready is another matter."""
        request = InitProducerIdRequest(transactional_id, 60_000)
        code: int = client.ask(INIT_PRODUCER_ID, request, 4).error_code
        return code if code in {31, 53} else 0


USERS_AND_ADMIN = dict.fromkeys((ADMIN, *USERS), PASSWORD)


@pytest.fixture(scope="module")
def ours() -> Iterator[Decider]:
    with SecuredBarnabas(USERS_AND_ADMIN) as broker, closing(Decider(broker)) as decider:
        yield decider


@pytest.fixture(scope="module")
def live_kafka() -> Iterator[Decider]:
    with SecuredKafka(USERS_AND_ADMIN) as broker, closing(Decider(broker)) as decider:
        yield decider


def rounds(seed: int) -> list[list[AclCreation]]:
    """The ACLs of each round."""
    random = Random(seed)
    return [[random_acl(random) for _ in range(random.randrange(1, 15))] for _ in range(ROUNDS)]


def decided(decider: Decider, seed: int) -> Iterator[dict[str, Any]]:
    """The decisions of each round."""
    for acls in rounds(seed):
        decider.use(acls)
        yield decider.decisions()


def check_rounds(ours: Decider, seed: int, theirs: Iterable[Mapping[str, Any]]) -> None:
    seen: set[str] = set()
    for acls, mine, kafkas in zip(rounds(seed), decided(ours, seed), theirs, strict=True):
        assert plain(mine) == plain(kafkas), acls
        seen |= {repr(answer) for answer in mine.values()}
    assert len(seen) > 20, "the rounds decide too little"


def test_random_acls_decide_alike(ours, kafka):
    theirs = kafka.observe("decisions", lambda decider: list(decided(decider, RECORDED_SEED)))
    check_rounds(ours, RECORDED_SEED, theirs)


@pytest.mark.nightly
def test_other_random_acls_decide_alike(ours, live_kafka):
    check_rounds(ours, SEED, decided(live_kafka, SEED))
