"""ACLs of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from barnabas.broker.admin.exchange import Exchange, check, send
from barnabas.broker.security.acls.acls import Acl, AclFilter
from barnabas.broker.security.acls.operations import (
    ASKED_BESIDES,
    SUPPORTED,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from barnabas.protocol.messages.create_acls import CREATE_ACLS, AclCreation, CreateAclsRequest
from barnabas.protocol.messages.delete_acls import (
    DELETE_ACLS,
    DeleteAclsFilter,
    DeleteAclsRequest,
)
from barnabas.protocol.messages.describe_acls import DESCRIBE_ACLS, DescribeAclsRequest

_FILTERS_PER_REQUEST: Final = 100
"""Maximum number of filters that a broker accepts in one request."""


def list_acls(wanted: AclFilter) -> Exchange[list[Acl]]:
    """Return the ACLs that match a filter; raises Rejected."""
    # Filters and ACLs have the order of the messages.
    answer = yield from send(DESCRIBE_ACLS, DescribeAclsRequest(*wanted))
    check("ACLs", answer.error_code, answer.error_message)
    return [
        Acl(
            ResourceType(resource.resource_type),
            resource.resource_name,
            PatternType(resource.pattern_type),
            each.principal,
            each.host,
            Operation(each.operation),
            Permission(each.permission_type),
        )
        for resource in answer.resources
        for each in resource.acls
    ]


def create_acls(acls: Sequence[Acl]) -> Exchange[None]:
    """Create ACLs; existing ones stay. Raises Rejected."""
    request = CreateAclsRequest([AclCreation(*acl) for acl in acls])
    answer = yield from send(CREATE_ACLS, request)
    for acl, each in zip(acls, answer.results, strict=True):
        check(_text(acl), each.error_code, each.error_message)


def delete_acls(acls: Sequence[Acl]) -> Exchange[None]:
    """Delete exactly these ACLs; raises Rejected."""
    for first in range(0, len(acls), _FILTERS_PER_REQUEST):
        some = acls[first : first + _FILTERS_PER_REQUEST]
        request = DeleteAclsRequest([DeleteAclsFilter(*acl) for acl in some])
        answer = yield from send(DELETE_ACLS, request)
        for acl, each in zip(some, answer.filter_results, strict=True):
            check(_text(acl), each.error_code, each.error_message)


def is_possible(acl: Acl) -> bool:
    """Whether an ACL can ever apply: Apache Kafka also stores those that cannot."""
    operation, kind = acl.operation, acl.resource_type
    return operation in operations_on(kind) or (operation, kind) in ASKED_BESIDES


def operations_on(kind: ResourceType) -> tuple[Operation, ...]:
    """Return the operations that ACLs of a type of resource can have."""
    return (Operation.ALL, *SUPPORTED[kind])


def kind_text(kind: ResourceType) -> str:
    """Return the name of a type of resource on the command line."""
    return kind.name.lower().replace("_", "-")


def _text(acl: Acl) -> str:
    return f"{acl.operation.name} on {kind_text(acl.resource_type)} {acl.name}"
