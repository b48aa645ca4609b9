"""DescribeAcls 1-3, CreateAcls 1-3, DeleteAcls 1-3: the rules of access control.

Version notes: v2 is encoded flexibly, v3 knows the resource type USER.
Without an authorizer all responses have SECURITY_DISABLED, as in Kafka: consoles then show that
there are no ACLs, and a rule that would not be enforced cannot be stored.
Stricter than Kafka: an ACL that could never apply (an operation that its type of resource does not
know, a host that is no address) is refused instead of stored without effect.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final, TypeVar

from barnabas.broker.api.dispatch import CloseConnection, RequestContext, serves
from barnabas.broker.metadata.access_rules import AccessRules
from barnabas.broker.runtime.turns import next_turn
from barnabas.broker.security.acls.acls import Acl, AclFilter, kept_host
from barnabas.broker.security.acls.operations import (
    ANY,
    ASKED_BESIDES,
    CLUSTER_NAME,
    MATCH,
    SUPPORTED,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    shown,
)
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.create_acls import (
    CREATE_ACLS,
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from barnabas.protocol.messages.delete_acls import (
    DELETE_ACLS,
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from barnabas.protocol.messages.describe_acls import (
    DESCRIBE_ACLS,
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)

logger = logging.getLogger(__name__)

Number = TypeVar("Number", ResourceType, PatternType, Operation, Permission)

UNKNOWN: Final = 0
CHANGES_MAX: Final = 2000
"""ACLs that one request may add or remove: 20 ms of work for the MetaStore (Kafka: 10,000)."""
PER_TURN: Final = 250
"""ACLs that are processed before the loop gets a turn."""
FILTERS_MAX: Final = 100
"""Maximum number of filters in a request, each of which examines all ACLs."""
USER_PREFIX: Final = "User:"


@serves(DESCRIBE_ACLS, versions=(1, 3))
def describe_acls(
    access_rules: AccessRules, context: RequestContext, request: DescribeAclsRequest
) -> DescribeAclsResponse:
    """List the ACLs that match a filter, grouped by resource."""
    if not access_rules.are_enforced:
        raise KafkaError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured on the broker")
    wanted = AclFilter(
        request.resource_type_filter,
        request.resource_name_filter,
        request.pattern_type_filter,
        request.principal_filter,
        request.host_filter,
        request.operation,
        request.permission_type,
    )
    _check_known(wanted)
    found = sorted(access_rules.matching(wanted))
    return DescribeAclsResponse(
        error_message=None,
        resources=[
            DescribeAclsResource(kind, name, pattern, [AclDescription(*acl[3:]) for acl in acls])
            for (kind, name, pattern), acls in groupby(found, lambda acl: acl[:3])
        ],
    )


def refuse_create_acls(
    request: CreateAclsRequest, code: ErrorCode, message: str | None
) -> CreateAclsResponse:
    """Return one error for every ACL of the request."""
    return CreateAclsResponse(results=[AclCreationResult(code, message) for _ in request.creations])


@serves(CREATE_ACLS, versions=(1, 3), refuse=refuse_create_acls, in_slices=True)
async def create_acls(
    access_rules: AccessRules, context: RequestContext, request: CreateAclsRequest
) -> CreateAclsResponse:
    """Add ACLs in one commit; refused ones have an error in the response."""
    _ = access_rules.authorizer
    if len(request.creations) > CHANGES_MAX:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"at most {CHANGES_MAX} ACLs per request")
    results = []
    acls = []
    for number, creation in enumerate(request.creations, 1):
        if number % PER_TURN == 0:
            await next_turn()
        try:
            acls.append(_acl_of(creation))
            results.append(AclCreationResult(error_message=None))
        except KafkaError as error:
            results.append(AclCreationResult(error.code, error.message))
    if acls:
        await access_rules.add(acls)
    return CreateAclsResponse(results=results)


def refuse_delete_acls(
    request: DeleteAclsRequest, code: ErrorCode, message: str | None
) -> DeleteAclsResponse:
    """Report one error for every filter."""
    return DeleteAclsResponse(
        filter_results=[DeleteAclsFilterResult(code, message) for _ in request.filters]
    )


@serves(DELETE_ACLS, versions=(1, 3), refuse=refuse_delete_acls)
async def delete_acls(
    access_rules: AccessRules, context: RequestContext, request: DeleteAclsRequest
) -> DeleteAclsResponse:
    """Remove the ACLs that match filters in one commit; invalid filters get an error."""
    _ = access_rules.authorizer
    if len(request.filters) > FILTERS_MAX:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"at most {FILTERS_MAX} filters per request")
    filters = [_filter_of(each) for each in request.filters]
    problems = [_problem_of(wanted) for wanted in filters]
    good = [wanted for wanted, problem in zip(filters, problems, strict=True) if problem is None]
    found = iter(await access_rules.remove(good, CHANGES_MAX))
    return DeleteAclsResponse(
        filter_results=[
            DeleteAclsFilterResult(ErrorCode.INVALID_REQUEST, problem)
            if problem is not None
            else DeleteAclsFilterResult(error_message=None, matching_acls=_matching(next(found)))
            for problem in problems
        ]
    )


def _problem_of(wanted: AclFilter) -> str | None:
    """Return a message about an unknown number in a filter, or None."""
    numbers: dict[str, tuple[int, Iterable[int]]] = {
        "resource type": (wanted.resource_type, ResourceType),
        "pattern type": (wanted.pattern, (MATCH, *PatternType)),
        "operation": (wanted.operation, Operation),
        "permission": (wanted.permission, Permission),
    }
    for noun, (number, known) in numbers.items():
        if number not in {ANY, *known}:
            return f"{number} is no {noun} that an ACL can have"
    return None


def _matching(acls: Sequence[Acl]) -> list[DeleteAclsMatchingAcl]:
    return [DeleteAclsMatchingAcl(ErrorCode.NONE, None, *acl) for acl in acls]


def _filter_of(given: DeleteAclsFilter) -> AclFilter:
    wanted = AclFilter(
        given.resource_type_filter,
        given.resource_name_filter,
        given.pattern_type_filter,
        given.principal_filter,
        given.host_filter,
        given.operation,
        given.permission_type,
    )
    _check_known(wanted)
    return wanted


def _check_known(wanted: AclFilter) -> None:
    """Close the connection on UNKNOWN in a filter, as Kafka does: its classes cannot hold it."""
    if UNKNOWN in {
        wanted.resource_type,
        wanted.pattern,
        wanted.operation,
        wanted.permission,
    }:
        raise CloseConnection("a filter of ACLs with UNKNOWN in it")


# ------------------------------------------------------------------------------------ new ACLs


def _acl_of(given: AclCreation) -> Acl:
    """Return the ACL to create; raises KafkaError if it could never apply."""
    if UNKNOWN in {
        given.resource_type,
        given.resource_pattern_type,
        given.operation,
        given.permission_type,
    }:
        raise CloseConnection("an ACL with UNKNOWN in it")
    resource_type = _one_of(ResourceType, given.resource_type, "resource type")
    pattern = _one_of(PatternType, given.resource_pattern_type, "pattern type")
    operation = _one_of(Operation, given.operation, "operation")
    permission = _one_of(Permission, given.permission_type, "permission")
    if not given.resource_name:
        raise _invalid("The name of the resource is empty")
    if resource_type is ResourceType.CLUSTER and given.resource_name != CLUSTER_NAME:
        raise _invalid(f"The only name of a Cluster resource is {CLUSTER_NAME}")
    known = (Operation.ALL, *SUPPORTED[resource_type])
    if operation not in known and (operation, resource_type) not in ASKED_BESIDES:
        raise _invalid(f"A {shown(resource_type)} has no operation {operation.name}")
    host = kept_host(given.host)
    if host is None:
        raise _invalid(f"The host {given.host!r} is no address, network or *")
    kind, colon, name = given.principal.partition(":")
    if not colon or not kind or not name:
        raise _invalid(f"The principal {given.principal!r} is not KIND:NAME, as in User:alice")
    if not given.principal.startswith(USER_PREFIX):
        logger.warning("ACL without effect, clients are User:... principal=%r", given.principal)
    return Acl(
        resource_type,
        given.resource_name,
        pattern,
        given.principal,
        host,
        operation,
        permission,
    )


def _one_of(kind: type[Number], number: int, noun: str) -> Number:
    try:
        return kind(number)
    except ValueError:
        raise _invalid(f"{number} is no {noun} that an ACL can have") from None


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
