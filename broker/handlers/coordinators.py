"""FindCoordinator 0-6: who decides for a group or a transactional id. One node: always this one.

Version notes: v1 brought the key type, v4 several keys at once, v6 share groups' keys.
Knowingly absent: share groups, refused with UNSUPPORTED_VERSION: this broker has no coordinator for
them.
"""

from __future__ import annotations

from barnabas.broker.api.dispatch import RequestContext, serves
from barnabas.broker.api.division import by
from barnabas.broker.coordination.groups import Groups
from barnabas.broker.coordination.transactions import Transactions
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.find_coordinator import (
    FIND_COORDINATOR,
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from barnabas.storage.metastore.interface import Identity

GROUP = 0
TRANSACTION = 1
SHARE = 2
SHARE_SINCE = 6
BATCHED_SINCE = 4
NO_NODE = -1


def refuse_find_coordinator(
    request: FindCoordinatorRequest, code: ErrorCode, message: str | None
) -> FindCoordinatorResponse:
    """Answer one error for every key."""
    keys = request.coordinator_keys or [request.key]
    return _response([_refused(key, code, message) for key in keys])


@serves(
    FIND_COORDINATOR, versions=(0, 6), refuse=refuse_find_coordinator, divide=by("coordinator_keys")
)
async def find_coordinator(
    groups: Groups,
    transactions: Transactions,
    identity: Identity,
    context: RequestContext,
    request: FindCoordinatorRequest,
) -> FindCoordinatorResponse:
    """Name this broker for every key it can coordinate, the internal topic being there then."""
    batched = context.api_version >= BATCHED_SINCE
    keys = request.coordinator_keys if batched else [request.key]
    code = _refusal(request.key_type, context.api_version)
    if code:
        return _response([_refused(key, code, None) for key in keys])
    try:
        if request.key_type == GROUP:
            await groups.ensure()
        else:
            await transactions.ensure()
    except KafkaError as error:
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        return _response([_refused(key, code, str(error)) for key in keys])
    host, port = context.endpoint
    node_id = identity.node_id
    return _response([Coordinator(key, node_id, host, port) for key in keys])


def _refusal(key_type: int, version: int) -> ErrorCode:
    if key_type in {GROUP, TRANSACTION}:
        return ErrorCode.NONE
    if key_type == SHARE and version >= SHARE_SINCE:
        return ErrorCode.UNSUPPORTED_VERSION
    return ErrorCode.INVALID_REQUEST


def _refused(key: str, code: ErrorCode, message: str | None) -> Coordinator:
    return Coordinator(key, NO_NODE, "", -1, code, message or code.message)


def _response(found: list[Coordinator]) -> FindCoordinatorResponse:
    """All versions in one: before v4 the only key's answer stands at the top."""
    first = found[0] if found else Coordinator("", NO_NODE, "", -1)
    return FindCoordinatorResponse(
        error_code=first.error_code,
        error_message=first.error_message,
        node_id=first.node_id,
        host=first.host,
        port=first.port,
        coordinators=found,
    )
