"""Users of a broker with access control, what they lack, and connections that they log in on."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Any

from barnabas.broker.api.checks import CHECKS
from barnabas.broker.client.wire_client import WireClient
from barnabas.broker.security.acls.operations import (
    ANY,
    CLUSTER_NAME,
    WILDCARD,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    shown,
)
from barnabas.protocol.messages.create_acls import CREATE_ACLS, AclCreation, CreateAclsRequest
from barnabas.protocol.messages.delete_acls import (
    DELETE_ACLS,
    DeleteAclsFilter,
    DeleteAclsRequest,
)
from barnabas.protocol.messages.describe_acls import DESCRIBE_ACLS, DescribeAclsRequest
from barnabas.protocol.messages.sasl_authenticate import SASL_AUTHENTICATE, SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SASL_HANDSHAKE, SaslHandshakeRequest
from tests.broker.security.access_requests import CASES, DENIED, Case
from tests.waiting import wait_until

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
JAAS = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
PASSWORD = "secret"

ADMIN = "admin"
"""A super user."""
EVERYTHING = "everything"
"""May do everything, by ACLs."""
NOBODY = "nobody"
"""Has no ACL at all."""

Denial = tuple[Operation, ResourceType]
KINDS = (
    ResourceType.TOPIC,
    ResourceType.GROUP,
    ResourceType.CLUSTER,
    ResourceType.TRANSACTIONAL_ID,
)


def settings(
    users: Iterable[str], listeners: str = "SASL_PLAINTEXT://127.0.0.1:0"
) -> dict[str, str]:
    """The configuration of a broker, of either kind, that these users log in to."""
    entries = " ".join(f'user_{name}="{PASSWORD}"' for name in users)
    return {
        "listeners": listeners,
        "sasl.enabled.mechanisms": "PLAIN",
        JAAS: f"{MODULE} required {entries};",
        "authorizer.class.name": AUTHORIZER,
        "super.users": f"User:{ADMIN};User:ANONYMOUS",
    }


class UserClient(WireClient):
    """A connection that a user has logged in on."""

    def __init__(self, address: tuple[str, int], user: str, timeout_s: float = 60) -> None:
        super().__init__(address, "access", timeout_s)
        assert not self.ask(SASL_HANDSHAKE, SaslHandshakeRequest("PLAIN"), 1).error_code
        token = f"\0{user}\0{PASSWORD}".encode()
        answer = self.ask(SASL_AUTHENTICATE, SaslAuthenticateRequest(token), 1)
        assert not answer.error_code, answer

    def ask_bytes(self, api: Any, request: Any, version: int) -> bytes:
        """Send a request, return its answer as it is on the wire, behind the correlation id."""
        self.send(api, request, version)
        data = self._read(4)
        data += self._read(struct.unpack(">i", data)[0])
        self._connection.receive_data(data)
        self._connection.next_response()
        return data[8:]

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            assert more, "the broker hung up"
            data += more
        return data


# ------------------------------------------------------------------------------------------ ACLs


def acl(
    user: str,
    kind: ResourceType,
    name: str,
    operation: Operation,
    permission: Permission = Permission.ALLOW,
    pattern: PatternType = PatternType.LITERAL,
) -> AclCreation:
    """Return a request for one ACL."""
    return AclCreation(kind, name, pattern, f"User:{user}", "*", operation, permission)


def allow(user: str, kind: ResourceType, name: str, *operations: Operation) -> list[AclCreation]:
    """ACLs that allow a user something."""
    return [acl(user, kind, name, operation) for operation in operations]


def add_acls(client: WireClient, acls: Iterable[AclCreation]) -> None:
    """Make ACLs, and wait until they are known: to an Apache Kafka, that is a moment later."""
    acls = list(acls)
    answer = client.ask(CREATE_ACLS, CreateAclsRequest(acls), 3)
    assert not any(result.error_code for result in answer.results), answer
    wait_until(lambda: _keys(acls) <= known_acls(client), "the ACLs are known")


def remove_acls(client: WireClient, acls: Iterable[AclCreation]) -> None:
    """Delete existing ACLs, and wait until the deletion is applied."""
    acls = list(acls)
    filters = [DeleteAclsFilter(*_key(each)) for each in acls]
    answer = client.ask(DELETE_ACLS, DeleteAclsRequest(filters), 3)
    assert all(len(result.matching_acls) == 1 for result in answer.filter_results), answer
    wait_until(lambda: not _keys(acls) & known_acls(client), "it is known that the ACLs are gone")


def _key(acl: AclCreation) -> tuple[Any, ...]:
    return (
        acl.resource_type,
        acl.resource_name,
        acl.resource_pattern_type,
        acl.principal,
        acl.host,
        acl.operation,
        acl.permission_type,
    )


def _keys(acls: Iterable[AclCreation]) -> set[tuple[Any, ...]]:
    return set(map(_key, acls))


def known_acls(client: WireClient) -> set[tuple[Any, ...]]:
    """Every ACL there is, as far as a broker tells: by the fields of AclCreation."""
    request = DescribeAclsRequest(ANY, None, ANY, None, None, ANY, ANY)
    return {
        (
            resource.resource_type,
            resource.resource_name,
            resource.pattern_type,
            each.principal,
            each.host,
            each.operation,
            each.permission_type,
        )
        for resource in client.ask(DESCRIBE_ACLS, request, 3).resources
        for each in resource.acls
    }


def name_of(denials: Iterable[Denial], *, everywhere: bool = False) -> str:
    """The user that lacks some permissions: for what is called denied, or for all names."""
    words = [f"{operation.name}-{shown(kind)}" for operation, kind in denials]
    return "-".join(["nowhere" if everywhere else "no", *words])


def all_but(user: str, denials: Iterable[Denial], *, everywhere: bool = False) -> list[AclCreation]:
    """Return ACLs that allow a user everything except the denials."""
    acls = [
        acl(user, kind, CLUSTER_NAME if kind is ResourceType.CLUSTER else WILDCARD, Operation.ALL)
        for kind in KINDS
    ]
    for operation, kind in denials:
        name, pattern = DENIED, PatternType.PREFIXED
        if everywhere:
            name, pattern = WILDCARD, PatternType.LITERAL
        if kind is ResourceType.CLUSTER:
            name, pattern = CLUSTER_NAME, PatternType.LITERAL
        acls.append(acl(user, kind, name, operation, Permission.DENY, pattern))
    return acls


def denials_of(case: Case, row: int) -> tuple[Denial, ...]:
    """Return the permissions that a user must lack to be denied by a row of a case."""
    check = CHECKS[case.api][row]
    return ((check.operation, check.resource_type), *check.or_else)


def lacking() -> Iterator[tuple[str, list[AclCreation]]]:
    """Every user that lacks what a row of some case asks for, and its ACLs; each once."""
    seen = set()
    for case in CASES:
        for row in case.rows:
            denials = denials_of(case, row)
            user = name_of(denials, everywhere=case.is_denied_everywhere)
            if user not in seen:
                seen.add(user)
                yield user, all_but(user, denials, everywhere=case.is_denied_everywhere)


USERS = (ADMIN, EVERYTHING, NOBODY, *(user for user, _ in lacking()))
