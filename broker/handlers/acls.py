"""DescribeAcls 1-3, CreateAcls 1-3, DeleteAcls 1-3: there is no access control to administer.

Answered with SECURITY_DISABLED, as Kafka does without an authorizer: consoles then show that there
are no ACLs, and a rule that would not be enforced cannot be stored.
"""

from __future__ import annotations

from barnabas.broker.api.dispatch import RequestContext, serves
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.create_acls import (
    CREATE_ACLS,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from barnabas.protocol.messages.delete_acls import (
    DELETE_ACLS,
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from barnabas.protocol.messages.describe_acls import (
    DESCRIBE_ACLS,
    DescribeAclsRequest,
    DescribeAclsResponse,
)

NO_AUTHORIZER = "No Authorizer is configured."


@serves(DESCRIBE_ACLS, versions=(1, 3))
def describe_acls(context: RequestContext, request: DescribeAclsRequest) -> DescribeAclsResponse:
    """Say that there is no access control."""
    del request
    raise KafkaError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured on the broker")


@serves(CREATE_ACLS, versions=(1, 3))
def create_acls(context: RequestContext, request: CreateAclsRequest) -> CreateAclsResponse:
    """Say of each rule that it would not be enforced."""
    return CreateAclsResponse(
        results=[
            AclCreationResult(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER) for _ in request.creations
        ]
    )


@serves(DELETE_ACLS, versions=(1, 3))
def delete_acls(context: RequestContext, request: DeleteAclsRequest) -> DeleteAclsResponse:
    """Say of each filter that there are no rules."""
    return DeleteAclsResponse(
        filter_results=[
            DeleteAclsFilterResult(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
            for _ in request.filters
        ]
    )
