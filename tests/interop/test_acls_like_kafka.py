"""CreateAcls, DescribeAcls and DeleteAcls 1-3 with access control: as of Apache Kafka 4.3.0.

One script of requests is for both; see comparison.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.protocol.messages.create_acls import CREATE_ACLS, AclCreation, CreateAclsRequest
from barnabas.protocol.messages.delete_acls import (
    DELETE_ACLS,
    DeleteAclsFilter,
    DeleteAclsRequest,
)
from barnabas.protocol.messages.describe_acls import DESCRIBE_ACLS, DescribeAclsRequest
from tests.counterparts.secured import ADMIN, PASSWORD, Secured, SecuredKafka
from tests.counterparts.wire_client import WireClient
from tests.interop.comparison import Answer, check_equal, comparable
from tests.interop.recorded_kafka import SecuredBarnabas
from tests.waiting import wait_until

UNKNOWN, ANY, MATCH, LITERAL, PREFIXED = 0, 1, 2, 3, 4
TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID, DELEGATION_TOKEN, USER = 2, 3, 4, 5, 6, 7
DENY, ALLOW = 2, 3
ALL, READ, WRITE, ALTER, DESCRIBE, CLUSTER_ACTION, TWO_PHASE_COMMIT = 2, 3, 4, 7, 8, 9, 15
VERSIONS = (1, 2, 3)
CLOSED = "closed"
USERS = {ADMIN: PASSWORD}
"""The users of a broker without logins."""

_NEVER = "it could never apply; Kafka stores it without effect"
_NO_NUMBER = "42 with a sentence; Kafka: UNKNOWN_SERVER_ERROR"
ON_PURPOSE = {
    "an operation that topics lack": _NEVER,
    "an operation that groups lack": _NEVER,
    "a host that is no address": _NEVER,
    "a host that is a name": _NEVER,
    "an empty host": _NEVER,
    "a principal without a name": _NEVER,
    "any type": _NO_NUMBER,
    "any operation": _NO_NUMBER,
    "any permission": _NO_NUMBER,
    "any pattern": _NO_NUMBER,
    "the pattern of filters": _NO_NUMBER,
}


def acl(
    resource_type: int = TOPIC,
    name: str = "orders",
    pattern: int = LITERAL,
    principal: str = "User:alice",
    host: str = "*",
    operation: int = READ,
    permission: int = ALLOW,
) -> AclCreation:
    return AclCreation(resource_type, name, pattern, principal, host, operation, permission)


ODD = {
    "an unknown type": acl(99),
    "an unknown operation": acl(operation=99),
    "an unknown permission": acl(permission=99),
    "an unknown pattern": acl(pattern=99),
    "no type": acl(UNKNOWN),
    "no operation": acl(operation=UNKNOWN),
    "no permission": acl(permission=UNKNOWN),
    "no pattern": acl(pattern=UNKNOWN),
    "any type": acl(ANY),
    "any operation": acl(operation=ANY),
    "any permission": acl(permission=ANY),
    "any pattern": acl(pattern=ANY),
    "the pattern of filters": acl(pattern=MATCH),
    "an empty name": acl(name=""),
    "another cluster": acl(CLUSTER, "mine", operation=ALTER),
    "a principal without a colon": acl(principal="alice"),
    "a principal without a name": acl(principal="User:"),
    "no principal": acl(principal=""),
    "an operation that topics lack": acl(operation=CLUSTER_ACTION),
    "an operation that groups lack": acl(GROUP, operation=WRITE),
    "a host that is no address": acl(host="999.1.1"),
    "a host that is a name": acl(host="foo.example"),
    "an empty host": acl(host=""),
    "another kind of principal": acl(principal="Group:staff"),
    "a kind in other letters": acl(principal="user:bob"),
    "a name with blanks": acl(name="no topic is called so"),
    "a prefix that is a star": acl(name="*", pattern=PREFIXED),
    "IPv6": acl(host="::1"),
    "every name": acl(name="*", permission=DENY),
    "every operation": acl(operation=ALL),
    "the cluster": acl(CLUSTER, "kafka-cluster", operation=ALTER),
    "two-phase commit": acl(TRANSACTIONAL_ID, operation=TWO_PHASE_COMMIT),
    "a delegation token": acl(DELEGATION_TOKEN, operation=DESCRIBE),
}

MADE = (
    acl(),
    acl(operation=WRITE),
    acl(permission=DENY, host="10.0.0.1"),
    acl(name="*", principal="User:bob"),
    acl(name="ord", pattern=PREFIXED),
    acl(name="other", pattern=PREFIXED),
    acl(GROUP, "g"),
    acl(CLUSTER, "kafka-cluster", operation=ALTER),
)

FILTERS: dict[str, dict[str, Any]] = {
    "all": {},
    "topics": {"resource_type": TOPIC},
    "literal": {"pattern": LITERAL},
    "prefixed": {"pattern": PREFIXED},
    "a name": {"name": "orders", "pattern": LITERAL},
    "a name of any pattern": {"name": "orders"},
    "what applies to a name": {"name": "orders", "pattern": MATCH},
    "what applies to any name": {"pattern": MATCH},
    "the star": {"name": "*", "pattern": LITERAL},
    "the star, matched": {"name": "*", "pattern": MATCH},
    "an empty name": {"name": ""},
    "a principal": {"principal": "User:bob"},
    "nobody": {"principal": "User:nobody"},
    "a host": {"host": "10.0.0.1"},
    "an operation": {"operation": WRITE},
    "a permission": {"permission": DENY},
    "an unknown type": {"resource_type": 99},
    "an unknown operation": {"operation": 99},
    "an unknown pattern": {"pattern": 99},
    "an unknown permission": {"permission": 99},
    "no type": {"resource_type": UNKNOWN},
    "no operation": {"operation": UNKNOWN},
    "no pattern": {"pattern": UNKNOWN},
    "no permission": {"permission": UNKNOWN},
}


def wanted(**given: Any) -> tuple[Any, ...]:
    """A filter's fields, any where they are not given."""
    filled = {
        "resource_type": ANY,
        "name": None,
        "pattern": ANY,
        "principal": None,
        "host": None,
        "operation": ANY,
        "permission": ANY,
        **given,
    }
    return tuple(filled.values())


class Script:
    """The requests to one broker; it replaces a connection that was closed."""

    def __init__(self, broker: Secured) -> None:
        self._broker = broker

    def ask(self, api: Any, request: Any, version: int) -> Any:
        with WireClient(self._broker) as client:
            try:
                return comparable(client.ask(api, request, version))
            except ConnectionResetError:
                return CLOSED

    def create(self, *acls: AclCreation, version: int = 3) -> Any:
        return self.ask(CREATE_ACLS, CreateAclsRequest(list(acls)), version)

    def describe(self, version: int = 3, **given: Any) -> Any:
        return self.ask(DESCRIBE_ACLS, DescribeAclsRequest(*wanted(**given)), version)

    def delete(self, *filters: dict[str, Any], version: int = 3) -> Any:
        asked = [DeleteAclsFilter(*wanted(**given)) for given in filters]
        return self.ask(DELETE_ACLS, DeleteAclsRequest(asked), version)

    def settle(self, count: int) -> None:
        """Wait until Apache Kafka's broker has ``count`` ACLs; it learns of changes late."""

        def known() -> int:
            return sum(len(resource["acls"]) for resource in self.describe()["resources"])

        wait_until(lambda: known() == count, lambda: f"{known()} ACLs, not {count}")

    def made(self) -> Iterator[Answer]:
        """Yield the results of creations, each alone, and then several together."""
        for label, each in ODD.items():
            for version in VERSIONS:
                yield f"{label} v{version}", self.create(each, version=version)
                if label not in ON_PURPOSE:
                    yield f"{label} v{version} again", self.create(each, version=version)
                self.delete({})
                self.settle(0)
        for version in VERSIONS:
            yield f"a user v{version}", self.create(acl(USER, operation=13), version=version)
        self.delete({})
        self.settle(0)
        yield "good and bad ones", self.create(acl(), ODD["an empty name"], acl(operation=WRITE))
        self.settle(2)
        yield "what is there of good and bad ones", self.describe()
        yield "twice in one request", self.create(acl(), acl())
        yield "none", self.create()
        self.delete({})
        self.settle(0)

    def described(self) -> Iterator[Answer]:
        """Yield the ACLs that filters find."""
        self.create(*MADE)
        self.settle(len(MADE))
        for label, given in FILTERS.items():
            for version in VERSIONS:
                yield f"describe {label} v{version}", self.describe(version, **given)

    def deleted(self) -> Iterator[Answer]:
        """Yield the ACLs that filters delete, and the ACLs that remain."""
        for label, given in FILTERS.items():
            for version in VERSIONS:
                self.delete({})
                self.settle(0)
                self.create(*MADE)
                self.settle(len(MADE))
                yield f"delete {label} v{version}", self.delete(given, version=version)
        yield "delete by two filters", self.delete({"resource_type": TOPIC}, {"name": "orders"})
        yield "delete by none", self.delete()


@pytest.fixture(scope="module")
def ours() -> Iterator[Secured]:
    with SecuredBarnabas(USERS) as running:
        yield running


@pytest.fixture(scope="module")
def live_kafka() -> Iterator[Secured]:
    with SecuredKafka(USERS) as running:
        yield running


def answers(broker: Secured, family: str) -> dict[str, Any]:
    return dict(getattr(Script(broker), family)())


@pytest.mark.parametrize("family", ["made", "described", "deleted"])
def test_answers_are_those_of_apache_kafka(ours, kafka, family):
    theirs = kafka.observe(family, lambda broker: answers(broker, family))
    purposes = {
        f"{label} v{version}": why for label, why in ON_PURPOSE.items() for version in VERSIONS
    }
    check_equal(answers(ours, family), theirs, purposes)
