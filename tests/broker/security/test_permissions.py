"""Every API, every version, every permission that it asks for, missing: over the wire.

The requests are in access_requests.py, the expectation is the API's row in the table of checks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from barnabas.broker.api.checks import CHECKS, Denial
from barnabas.broker.api.refusals import DENIALS
from barnabas.broker.handlers import topics
from barnabas.broker.security.acls.operations import NOT_ASKED, Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_describe import (
    CONSUMER_GROUP_DESCRIBE,
    ConsumerGroupDescribeRequest,
)
from barnabas.protocol.messages.consumer_group_heartbeat import (
    CONSUMER_GROUP_HEARTBEAT,
    ConsumerGroupHeartbeatRequest,
)
from barnabas.protocol.messages.create_topics import CREATE_TOPICS
from barnabas.protocol.messages.describe_user_scram_credentials import (
    DESCRIBE_USER_SCRAM_CREDENTIALS,
    DescribeUserScramCredentialsRequest,
)
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.wire import ZERO_UUID
from barnabas.testing import Broker
from tests.broker.data_plane import Wire
from tests.broker.security.access_requests import (
    ABSENT,
    CASES,
    DENIED,
    ELSEWHERE,
    GONE,
    GRANTED,
    HERE,
    Case,
    Thing,
    codes,
)
from tests.broker.security.access_state import make_things
from tests.broker.security.access_users import (
    ADMIN,
    EVERYTHING,
    NOBODY,
    USERS,
    UserClient,
    add_acls,
    all_but,
    denials_of,
    lacking,
    name_of,
    settings,
)
from tests.broker.security.changing_rights import controlled_broker, right, topic_of
from tests.requests import create_topics_request

ROWS = [(case, row) for case in CASES for row in case.rows]


def label(value: object) -> str:
    return f"{value.api} {value.label}" if isinstance(value, Case) else str(value)


class World:
    """A broker with things in it, and a connection for each user."""

    def __init__(self, broker: Broker) -> None:
        self._address = broker.address
        self._clients: dict[str, UserClient] = {}
        self.topic_ids: dict[str, bytes] = {}

    def fill(self) -> None:
        """Create each user's ACLs, and the objects of the requests."""
        admin = self.client(ADMIN)
        add_acls(admin, all_but(EVERYTHING, ()))
        for _user, acls in lacking():
            add_acls(admin, acls)
        self.topic_ids = make_things(admin)

    @property
    def names(self) -> dict[bytes, str]:
        """Topics by their ids."""
        return {topic_id: name for name, topic_id in self.topic_ids.items()}

    def client(self, user: str) -> UserClient:
        """The user's connection."""
        if user not in self._clients:
            self._clients[user] = UserClient(self._address, user)
        return self._clients[user]

    def ask(self, user: str, case: Case, version: int, names: Sequence[str] = ()):
        """The answer to a case's request, about its things or others."""
        things = [Thing(name, self.topic_ids.get(name, ZERO_UUID)) for name in names or case.things]
        return self.client(user).ask(case.route.api, case.build(things, version), version)

    def close(self) -> None:
        for client in self._clients.values():
            client.close()


@pytest.fixture(scope="module")
def world():
    config = settings(USERS) | {"transaction.two.phase.commit.enable": "true"}
    with Broker(config=config) as broker:
        world = World(broker)
        try:
            world.fill()
            yield world
        finally:
            world.close()


def test_each_row_of_permission_table_has_case():
    covered = {(case.api, row) for case in CASES for row in case.rows}
    assert covered | set(ELSEWHERE) == {
        (api, row) for api, checks in CHECKS.items() for row in range(len(checks))
    }
    assert not covered & set(ELSEWHERE)


@pytest.mark.parametrize(("case", "row"), ROWS, ids=label)
def test_user_without_one_permission_is_denied(world, case, row):
    check = CHECKS[case.api][row]
    user = name_of(denials_of(case, row), everywhere=case.is_denied_everywhere)
    for version in case.served_versions():
        answer = world.ask(user, case, version)
        found = dict(codes(answer, world.names))
        if check.denial is Denial.LEFT_OUT:
            assert DENIED not in _shown(answer, world), version
            assert GRANTED in _shown(answer, world), version
            assert not set(found.values()) & DENIALS, version
        elif check.denial is Denial.REQUEST or case.is_about_all:
            _check_all_denied(case, version, found, check.code)
        else:
            _check_one_denied(case, version, found, check.code)


def _shown(answer: object, world: World) -> str:
    shown = repr(answer)
    for topic_id, name in world.names.items():
        shown = shown.replace(repr(topic_id), name)
    return shown


def _check_all_denied(case: Case, version: int, found: dict[str, int], code: ErrorCode) -> None:
    """Check that the response has the code in each of its places, and nothing else."""
    if case.api == "DescribeLogDirs" and version < 3:
        assert found == {".error_code": 0}  # There is none: the list is empty.
        return
    assert set(found.values()) <= {0, code}, (version, found)
    assert code in found.values(), (version, found)


def _check_one_denied(case: Case, version: int, found: dict[str, int], code: ErrorCode) -> None:
    """Check that denied objects have the code, and that granted ones have no such code."""
    denied = {path: each for path, each in found.items() if DENIED in path or len(case.things) == 1}
    granted = {path: each for path, each in found.items() if path not in denied}
    assert set(denied.values()) - {0} == {code}, (version, found)
    if case.label == "of a topic" and case.api == "AddPartitionsToTxn":
        assert set(granted.values()) - {0} == {ErrorCode.OPERATION_NOT_ATTEMPTED}, (version, found)
    assert not set(granted.values()) & DENIALS, (version, found)


@pytest.mark.parametrize("case", CASES, ids=label)
def test_user_with_every_permission_is_not_denied(world, case):
    for version in case.served_versions():
        answer = world.ask(EVERYTHING, case, version, (ABSENT,) if case.destroys else ())
        assert not {code for _, code in codes(answer, world.names)} & DENIALS, version
        if any(check.denial is Denial.LEFT_OUT for check in case.checks):
            assert DENIED in _shown(answer, world), version


@pytest.mark.parametrize(("case", "row"), ROWS, ids=label)
def test_user_without_acls_is_denied(world, case, row):
    """The first check decides the code."""
    for version in case.served_versions():
        answer = world.ask(NOBODY, case, version)
        found = {code for _, code in codes(answer, world.names)} - {0}
        denials = [
            each.code
            for each in CHECKS[case.api]
            if each.denial is not Denial.LEFT_OUT
            and each.versions[0] <= version <= each.versions[1]
        ]
        assert found <= set(denials), (version, found)
        if any(check.denial is not Denial.LEFT_OUT for check in case.checks):
            no_place = case.api == "DescribeLogDirs" and version < 3
            assert found or no_place, version


# ---------------------------------------------------------------- what an answer must not depend on


def strangers() -> Iterator[tuple[Case, int, str]]:
    """Yield the users that each row denies: one without any ACL, and one without the permission.

    Left out are topics that a user may describe, but not delete: their existence is no secret.
    """
    for case, row in ROWS:
        is_about_it = HERE in repr(case.build([Thing(HERE)], case.served_versions()[0]))
        if not is_about_it and CHECKS[case.api][row].denial is not Denial.LEFT_OUT:
            continue
        yield case, row, NOBODY
        if case.api != "DeleteTopics":
            user = name_of(denials_of(case, row), everywhere=case.is_denied_everywhere)
            yield case, row, user


@pytest.mark.parametrize(("case", "row", "user"), [*strangers()], ids=label)
def test_no_byte_depends_on_what_exists(world, case, row, user, monkeypatch):
    """A missing and an existing name get the same bytes, regardless of the check that denies."""
    monkeypatch.setattr(topics, "new_topic_id", lambda: bytes(range(16)))
    client, api = world.client(user), case.route.api
    for version in case.served_versions():
        answers = [
            client.ask_bytes(api, case.build([Thing(name)], version), version)
            for name in (HERE, GONE)
        ]
        assert answers[0].replace(HERE.encode(), GONE.encode()) == answers[1], version
        if CHECKS[case.api][row].denial is Denial.LEFT_OUT:
            assert HERE.encode() not in answers[0], version


@pytest.mark.parametrize("case", [each for each in CASES if "of all" in each.label], ids=label)
def test_a_list_of_all_has_nothing_for_who_may_see_nothing(world, case):
    for version in case.served_versions():
        request = case.build([], version)
        answer = world.client(NOBODY).ask_bytes(case.route.api, request, version)
        for name in (GRANTED, DENIED, HERE, "__consumer_offsets", "__transaction_state"):
            assert name.encode() not in answer or name in repr(request), version


@pytest.mark.parametrize("users", [None, []])
def test_a_list_of_all_users_is_refused_and_not_forgotten(world, users):
    """Apache Kafka 4.3.0 never answers this one where it is denied."""
    api, request = DESCRIBE_USER_SCRAM_CREDENTIALS, DescribeUserScramCredentialsRequest(users)
    answer = world.client(NOBODY).ask(api, request, 0)
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert answer.results == []


BY_ID = {"Produce": (1, 13), "Fetch": (0, 13), "Metadata": (0, 12), "DeleteTopics": (0, 6)}
"""A row of an API with topic ids, and the first version with them."""


@pytest.mark.parametrize("api", BY_ID)
def test_denied_topic_id_response_omits_name(world, api):
    """Topic IDs are no secret, as in Kafka: an unknown one has its own error."""
    row, first = BY_ID[api]
    label = "by id" if api in {"Metadata", "DeleteTopics"} else ""
    case = next(each for each in CASES if each.api == api and each.label == label)
    client = world.client(NOBODY)
    for version in range(first, case.route.max_version + 1):
        for topic_id, code in (
            (world.topic_ids[HERE], CHECKS[api][row].code),
            (bytes(15) + b"?", ErrorCode.UNKNOWN_TOPIC_ID),
        ):
            request = case.build([Thing("", topic_id)], version)
            answer = client.ask(case.route.api, request, version)
            assert {each for _, each in codes(answer, {})} - {0} == {code}
            assert HERE not in repr(answer)


# -------------------------------------------------------------------------------- what is elsewhere


def test_a_group_with_a_topic_that_may_not_be_described_is_not_described():
    describe_groups, read_groups = (
        right(operation, ResourceType.GROUP) for operation in (Operation.DESCRIBE, Operation.READ)
    )
    describe_topics = right(Operation.DESCRIBE, ResourceType.TOPIC)
    with (
        controlled_broker(describe_groups, read_groups, describe_topics) as (broker, rights),
        Wire(broker.address) as wire,
    ):
        topic_of(broker, "t")
        wire.ask(FIND_COORDINATOR, FindCoordinatorRequest("g"), 3)
        heartbeat = ConsumerGroupHeartbeatRequest(
            "g", "m", 0, None, None, 10_000, ["t"], topic_partitions=[]
        )
        assert wire.ask(CONSUMER_GROUP_HEARTBEAT, heartbeat, 0).error_code == 0

        def described():
            (group,) = wire.ask(
                CONSUMER_GROUP_DESCRIBE, ConsumerGroupDescribeRequest(["g"], True), 1
            ).groups
            return group.error_code, len(group.members), group.authorized_operations

        bits = 1 << Operation.DESCRIBE | 1 << Operation.READ
        assert described() == (0, 1, bits)
        rights.take(describe_topics)
        assert described() == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, 0, NOT_ASKED)


def test_a_name_that_collides_with_one_that_may_not_be_described():
    may_create = right(Operation.CREATE, ResourceType.TOPIC, "a_b")
    with (
        controlled_broker(may_create) as (broker, rights),
        Wire(broker.address) as wire,
    ):
        topic_of(broker, "a.b")

        def refused():
            (topic,) = wire.ask(CREATE_TOPICS, create_topics_request("a_b"), 7).topics
            return topic.error_code, topic.error_message

        code = ErrorCode.INVALID_TOPIC_EXCEPTION
        assert refused() == (code, "Topic 'a_b' collides with an existing topic")
        rights.give(right(Operation.DESCRIBE, ResourceType.TOPIC, "a.b"))
        assert refused() == (code, "Topic 'a_b' collides with existing topic: a.b")


def test_the_users_of_the_rows_differ_in_what_they_lack():
    kinds = {denial[1] for case, row in ROWS for denial in denials_of(case, row)}
    assert kinds == {
        ResourceType.TOPIC,
        ResourceType.GROUP,
        ResourceType.CLUSTER,
        ResourceType.TRANSACTIONAL_ID,
    }
