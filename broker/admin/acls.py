"""ACLs as DescribeAcls lists them."""

from __future__ import annotations

from barnabas.broker.security.acls.acls import Acl
from barnabas.broker.security.acls.operations import (
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from barnabas.protocol.messages.describe_acls import DescribeAclsResponse


def acls_in(response: DescribeAclsResponse) -> list[Acl]:
    """Return the ACLs of a response."""
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
        for resource in response.resources
        for each in resource.acls
    ]
