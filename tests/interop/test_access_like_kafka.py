"""A user without a permission gets the response of Apache Kafka 4.3.0, in every API and version.

The requests, and the users who lack something, are those of tests/broker/security; the comparison
is that of comparison.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from barnabas.protocol.messages.describe_cluster import DESCRIBE_CLUSTER, DescribeClusterRequest
from barnabas.protocol.messages.describe_groups import DESCRIBE_GROUPS, DescribeGroupsRequest
from barnabas.protocol.messages.describe_topic_partitions import (
    DESCRIBE_TOPIC_PARTITIONS,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic
from barnabas.protocol.wire import ZERO_UUID
from tests.broker.security.access_requests import (
    ABSENT,
    CASES,
    DENIED,
    GONE,
    GRANTED,
    Case,
    Thing,
    label_of,
)
from tests.broker.security.access_state import make_things
from tests.broker.security.access_users import (
    EVERYTHING,
    NOBODY,
    PASSWORD,
    USERS,
    UserClient,
    add_acls,
    all_but,
    denials_of,
    lacking,
    name_of,
)
from tests.counterparts.secured import Secured, SecuredKafka
from tests.counterparts.wire_client import WireClient
from tests.interop.comparison import Answer, check_equal, comparable
from tests.interop.recorded_kafka import SecuredBarnabas

NAMELESS = {"DescribeUserScramCredentials": "user"}
"""The field of the name, by API, of the results without a name that Kafka adds: one for each entry
of a request that the user may not send."""

PASSWORDS = dict.fromkeys(USERS, PASSWORD)


class Script:
    """The requests of every user to one broker."""

    def __init__(self, broker: Secured) -> None:
        self._broker = broker
        self._clients: dict[str, UserClient] = {}
        with WireClient(broker) as client:
            self._versions = client.versions
            acls = [*all_but(EVERYTHING, ()), *(acl for _, acls in lacking() for acl in acls)]
            add_acls(client, acls)
            self._topic_ids = make_things(client)

    def client(self, user: str) -> UserClient:
        """The user's connection."""
        if user not in self._clients:
            self._clients[user] = UserClient(self._broker.sasl_address, user)
        return self._clients[user]

    def ask(self, user: str, case: Case, version: int) -> Any:
        """The answer to one request of one user."""
        things = [Thing(name, self._topic_ids.get(name, ZERO_UUID)) for name in case.things]
        return self.client(user).ask(case.route.api, case.build(things, version), version)

    def close(self) -> None:
        for client in self._clients.values():
            client.close()

    def latest_versions(self) -> dict[str, int]:
        """The highest version of each API that both sides have."""
        return {case.api: self._versions.highest_common(case.route.api) for case in CASES}

    def answers(self, api: str, latest: int) -> Iterator[Answer]:
        """Yield the responses to users that lack something, and to users that have nothing."""
        for case in (each for each in CASES if each.api == api):
            for version in (each for each in case.served_versions() if each <= latest):
                for row in case.rows:
                    user = name_of(denials_of(case, row), everywhere=case.is_denied_everywhere)
                    yield self._answer(user, case, version)
                yield self._answer(NOBODY, case, version)

    def operations(self) -> Iterator[Answer]:
        """Yield the operations that each user may perform, as responses list them (KIP-430)."""
        for user in USERS:
            for api, request, version in OPERATIONS:
                answer = self.client(user).ask(api, request, version)
                yield f"{api.name} {user}", sorted(operations_in(answer))

    def _answer(self, user: str, case: Case, version: int) -> Answer:
        answer = self.ask(user, case, version)
        said = comparable(without_granted(answer, self._names))
        return f"{case.api} {case.label} v{version} {user}", said

    @property
    def _names(self) -> dict[bytes, str]:
        return {topic_id: name for name, topic_id in self._topic_ids.items()}


def without_granted(message: Any, ids: Mapping[bytes, str]) -> Any:
    """Return the message without results of granted or missing things, tested elsewhere.

    Omit the client that uses a transactional id, which only Barnabas reports. The tests do not
    compare whether a field beside an error is null or empty.
    """
    if isinstance(message, list):
        return [
            without_granted(item, ids)
            for item in message
            if label_of(item, ids) not in {GRANTED, ABSENT}
        ]
    if is_dataclass(message):
        for field in fields(message):
            value = None
            if field.name not in {"client_id", "client_host"}:
                value = without_granted(getattr(message, field.name), ids)
            if field.name in {"aborted_transactions", "protocol_name"}:
                value = value or None
            setattr(message, field.name, value)
    return message


def without_nameless(said: Any, name: str) -> Any:
    """Return the response without the results that have no name."""
    results = [each for each in said["results"] if each[name]]
    assert len(results) < len(said["results"])
    return said | {"results": results}


OPERATIONS = (
    (DESCRIBE_CLUSTER, DescribeClusterRequest(True), 1),
    (
        METADATA,
        MetadataRequest(
            [MetadataRequestTopic(ZERO_UUID, name) for name in (GRANTED, DENIED, GONE)],
            False,
            True,
            True,
        ),
        10,
    ),
    (
        DESCRIBE_TOPIC_PARTITIONS,
        DescribeTopicPartitionsRequest([TopicRequest(name) for name in (GRANTED, DENIED, GONE)]),
        0,
    ),
    (DESCRIBE_GROUPS, DescribeGroupsRequest([GRANTED, DENIED, GONE], True), 5),
)


def operations_in(message: Any) -> Iterator[tuple[str, int]]:
    """The bit fields of an answer, and of what they are."""
    if isinstance(message, list):
        for item in message:
            yield from operations_in(item)
    elif is_dataclass(message):
        for field in fields(message):
            value = getattr(message, field.name)
            if field.name.endswith("authorized_operations"):
                yield f"{field.name} of {label_of(message, {})}", value
            else:
                yield from operations_in(value)


SETTINGS = {"transaction.two.phase.commit.enable": "true"}


@pytest.fixture(scope="module")
def ours() -> Iterator[Script]:
    with SecuredBarnabas(PASSWORDS, None, **SETTINGS) as broker, closing(Script(broker)) as script:
        yield script


@pytest.fixture(scope="module")
def live_kafka() -> Iterator[Script]:
    with SecuredKafka(PASSWORDS, None, **SETTINGS) as broker, closing(Script(broker)) as script:
        yield script


@pytest.mark.parametrize("api", sorted({case.api for case in CASES}))
def test_answers_are_those_of_apache_kafka(ours, kafka, api):
    latest = kafka.observe("latest versions", Script.latest_versions)[api]
    theirs = kafka.observe(api, lambda script: dict(script.answers(api, latest)))
    if api in NAMELESS:
        theirs = {label: without_nameless(said, NAMELESS[api]) for label, said in theirs.items()}
    check_equal(dict(ours.answers(api, latest)), theirs, {})


def test_operations_are_those_of_apache_kafka(ours, kafka):
    theirs = kafka.observe("operations", lambda script: dict(script.operations()))
    check_equal(dict(ours.operations()), theirs, {})
