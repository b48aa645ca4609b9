"""Who lacks a permission gets the answer of Apache Kafka 4.3.0, in every API and version.

The requests, and the users who lack something, are those of tests/broker/security; the comparison
is that of comparison.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from barnabas.protocol.messages.describe_acls import DESCRIBE_ACLS, DescribeAclsRequest
from barnabas.protocol.wire import ZERO_UUID
from tests.broker.security.access_requests import (
    ABSENT,
    CASES,
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
from tests.counterparts.secured import Secured, SecuredBarnabas, SecuredKafka
from tests.counterparts.wire_client import WireClient
from tests.interop.comparison import Answer, check_equal, comparable
from tests.waiting import wait_until

ON_PURPOSE = {
    "DescribeUserScramCredentials": "Kafka adds a result without a name for each user",
}
"""By API."""

PASSWORDS = dict.fromkeys(USERS, PASSWORD)


class Script:
    """The requests of every user to one broker."""

    def __init__(self, broker: Secured) -> None:
        self._broker = broker
        self._clients: dict[str, UserClient] = {}
        with WireClient(broker) as client:
            self.versions = client.versions
            acls = [*all_but(EVERYTHING, ()), *(acl for _, acls in lacking() for acl in acls)]
            add_acls(client, acls)
            every = DescribeAclsRequest(1, None, 1, None, None, 1, 1)

            def known() -> int:
                resources = client.ask(DESCRIBE_ACLS, every, 3).resources
                return sum(len(resource.acls) for resource in resources)

            wait_until(lambda: known() == len(acls), lambda: f"{known()} of {len(acls)} ACLs")
            self._topic_ids = make_things(client)

    def ask(self, user: str, case: Case, version: int) -> Any:
        """The answer to one request of one user."""
        if user not in self._clients:
            self._clients[user] = UserClient(self._broker.sasl_address, user)
        things = [Thing(name, self._topic_ids.get(name, ZERO_UUID)) for name in case.things]
        return self._clients[user].ask(case.route.api, case.build(things, version), version)

    def close(self) -> None:
        for client in self._clients.values():
            client.close()

    def answers(self, api: str, latest: int) -> Iterator[Answer]:
        """What those are answered who lack something, and who have nothing."""
        for case in (each for each in CASES if each.api == api):
            for version in (each for each in case.served_versions() if each <= latest):
                for row in case.rows:
                    user = name_of(denials_of(case, row), everywhere=case.is_denied_everywhere)
                    yield self._answer(user, case, version)
                yield self._answer(NOBODY, case, version)

    def _answer(self, user: str, case: Case, version: int) -> Answer:
        answer = self.ask(user, case, version)
        said = comparable(without_granted(answer, self._names))
        return f"{case.api} {case.label} v{version} {user}", said

    @property
    def _names(self) -> dict[bytes, str]:
        return {topic_id: name for name, topic_id in self._topic_ids.items()}


def without_granted(message: Any, ids: Mapping[bytes, str]) -> Any:
    """Leave out what is said of things that are granted, or are not there: that is another test's.

    And the client that uses a transactional id, which only Barnabas tells. What is null or empty
    beside an error is so as it happens, and nobody looks at it.
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


@pytest.fixture(scope="module")
def scripts() -> Iterator[tuple[Script, Script]]:
    two_phase = {"transaction.two.phase.commit.enable": "true"}
    with (
        SecuredBarnabas(PASSWORDS, None, **two_phase) as ours,
        SecuredKafka(PASSWORDS, None, **two_phase) as theirs,
    ):
        both = Script(ours), Script(theirs)
        yield both
        for script in both:
            script.close()


@pytest.mark.parametrize("api", sorted({case.api for case in CASES}))
def test_answers_are_those_of_apache_kafka(scripts, api):
    kafka = scripts[1]
    latest = kafka.versions.highest_common(
        next(each for each in CASES if each.api == api).route.api
    )
    ours, theirs = (dict(script.answers(api, latest)) for script in scripts)
    if api in ON_PURPOSE:
        assert ours != theirs
        return
    check_equal(ours, theirs, {})
