"""FindCoordinator 0-6: the coordinator of a group or a transactional id.

It is the leader of the internal topic's partition that Kafka's hash of the key names. In a cluster
the request waits once for an unknown leader (``broker/cluster/metadata_refresh.py``).

Version notes: v1 brought the key type, v4 several keys at once, v6 share groups' keys.
Knowingly absent: share groups, refused with UNSUPPORTED_VERSION: this broker has no coordinator for
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Final

from barnabas.broker.api.checks import (
    CLUSTER,
    CLUSTER_ACTION,
    CLUSTER_DENIED,
    DESCRIBE,
    GROUP_DENIED,
    TRANSACTIONAL_ID,
    TRANSACTIONAL_ID_DENIED,
    denied,
)
from barnabas.broker.api.checks import GROUP as GROUP_RESOURCE
from barnabas.broker.api.dispatch import RequestContext, serves
from barnabas.broker.api.division import by, in_parts
from barnabas.broker.cluster.serving.brokers import Broker, Brokers
from barnabas.broker.cluster.view import NO_NODE, ClusterView
from barnabas.broker.coordination.coordinator_log import CoordinatorLog
from barnabas.broker.coordination.groups import Groups
from barnabas.broker.coordination.transactions import Transactions
from barnabas.broker.security.acls.access import Access
from barnabas.broker.security.acls.operations import CLUSTER_NAME
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.find_coordinator import (
    FIND_COORDINATOR,
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

BY_KEY: Final = by("coordinator_keys")
GROUP = 0
TRANSACTION = 1
SHARE = 2
SHARE_SINCE = 6
BATCHED_SINCE = 4


def refuse_find_coordinator(
    request: FindCoordinatorRequest, code: ErrorCode, message: str | None
) -> FindCoordinatorResponse:
    """Return one error for every key."""
    keys = request.coordinator_keys or [request.key]
    return _response([_refused(key, code, message) for key in keys])


@serves(FIND_COORDINATOR, versions=(0, 6), refuse=refuse_find_coordinator, in_slices=True)
async def find_coordinator(
    groups: Groups,
    transactions: Transactions,
    brokers: Brokers,
    context: RequestContext,
    request: FindCoordinatorRequest,
) -> FindCoordinatorResponse:
    """Return the coordinator of every key; create the internal topic if it is missing."""
    handle = partial(_find_coordinators, groups, transactions, brokers, context)
    response: FindCoordinatorResponse = await in_parts(request, BY_KEY, handle)
    return response


async def _find_coordinators(
    groups: Groups,
    transactions: Transactions,
    brokers: Brokers,
    context: RequestContext,
    request: FindCoordinatorRequest,
) -> FindCoordinatorResponse:
    batched = context.api_version >= BATCHED_SINCE
    keys = request.coordinator_keys if batched else [request.key]
    denials = {key: _denial(context.access, request.key_type, key) for key in keys}
    code, message = _refusal(request.key_type, context.api_version), None
    if not code and not all(denials.values()):
        try:
            if request.key_type == GROUP:
                await groups.ensure()
            else:
                await transactions.ensure()
        except KafkaError as error:
            code, message = ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error)
    log = (groups if request.key_type == GROUP else transactions).log
    wanted = [] if code else [key for key in keys if denials[key] is None]
    leaders = await _known_leaders(log, brokers, wanted)
    reachable = brokers.reachable(context)
    found = []
    for key in keys:
        denial = denials[key]
        if denial is not None:
            found.append(_refused(key, denial.code, denial.message))
        elif code:
            found.append(_refused(key, code, message))
        else:
            found.append(_found(key, reachable.get(leaders[key])))
    return _response(found)


async def _known_leaders(
    log: CoordinatorLog[Any], brokers: Brokers, keys: Sequence[str]
) -> dict[str, int]:
    """Return the result of ``_leaders``, in a cluster after waiting for a new leader.

    A client with several keys repeats its request instead.
    """
    leaders = _leaders(log, brokers.view, keys)
    misses = brokers.misses
    if misses is None or NO_NODE not in leaders.values():
        return leaders
    if len(keys) == 1:
        await misses.wait_for_coordinator(
            lambda: NO_NODE not in _leaders(log, brokers.view, keys).values()
        )
    else:
        await misses.wait_for_poll()
    return _leaders(log, brokers.view, keys)


def _leaders(log: CoordinatorLog[Any], view: ClusterView, keys: Iterable[str]) -> dict[str, int]:
    """Return the node ID of each key's coordinator, or NO_NODE if unknown."""
    leaders = {}
    for key in keys:
        partition_id = log.partition_id_of(key)
        leaders[key] = NO_NODE if partition_id is None else view.leader_of(partition_id).node_id
    return leaders


def _denial(access: Access, key_type: int, key: str) -> KafkaError | None:
    """Return the error for a client that may not know the coordinator of a key, or None."""
    if key_type == GROUP and not access.may(DESCRIBE, GROUP_RESOURCE, key):
        return denied(GROUP_DENIED, DESCRIBE, GROUP_RESOURCE, key)
    if key_type == TRANSACTION and not access.may(DESCRIBE, TRANSACTIONAL_ID, key):
        return denied(TRANSACTIONAL_ID_DENIED, DESCRIBE, TRANSACTIONAL_ID, key)
    if key_type == SHARE and not access.may(CLUSTER_ACTION, CLUSTER, CLUSTER_NAME):
        return denied(CLUSTER_DENIED, CLUSTER_ACTION, CLUSTER, CLUSTER_NAME)
    return None


def _refusal(key_type: int, version: int) -> ErrorCode:
    if key_type in {GROUP, TRANSACTION}:
        return ErrorCode.NONE
    if key_type == SHARE and version >= SHARE_SINCE:
        return ErrorCode.UNSUPPORTED_VERSION
    return ErrorCode.INVALID_REQUEST


def _found(key: str, broker: Broker | None) -> Coordinator:
    if broker is None:
        return _refused(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, None)
    return Coordinator(key, broker.node_id, broker.host, broker.port)


def _refused(key: str, code: ErrorCode, message: str | None) -> Coordinator:
    return Coordinator(key, NO_NODE, "", -1, code, message or code.message)


def _response(found: list[Coordinator]) -> FindCoordinatorResponse:
    """Return all versions in one response: before v4 the only key's fields are at the top."""
    first = found[0] if found else Coordinator("", NO_NODE, "", -1)
    return FindCoordinatorResponse(
        error_code=first.error_code,
        error_message=first.error_message,
        node_id=first.node_id,
        host=first.host,
        port=first.port,
        coordinators=found,
    )
