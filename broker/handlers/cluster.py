"""DescribeCluster 0-2: the brokers in service, and the one that clients send changes to.

Version notes: v1 asks for brokers or for controllers (there is no controller endpoint, error 114);
v2 adds fenced brokers on request: those that are not in service, but were not long ago. A field of
Barnabas, which other clients skip, has the brokers for which the use of the object store waits.
"""

from __future__ import annotations

from barnabas.broker.api.dispatch import RequestContext, serves
from barnabas.broker.cluster.serving.brokers import Brokers
from barnabas.broker.security.acls.operations import CLUSTER_NAME, NOT_ASKED, ResourceType
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.describe_cluster import (
    DESCRIBE_CLUSTER,
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from barnabas.storage.metastore.interface import Identity

BROKERS = 1
CONTROLLERS = 2
_WRONG_ENDPOINT = (
    "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type"
    " CONTROLLER"
)
"""Message of Apache Kafka."""


def refuse_describe_cluster(
    request: DescribeClusterRequest, code: ErrorCode, message: str | None
) -> DescribeClusterResponse:
    """Return an error; the type of endpoint in the response is this broker's."""
    del request
    return DescribeClusterResponse(error_code=code, error_message=message, endpoint_type=BROKERS)


@serves(DESCRIBE_CLUSTER, versions=(0, 2), refuse=refuse_describe_cluster)
def describe_cluster(
    brokers: Brokers,
    identity: Identity,
    context: RequestContext,
    request: DescribeClusterRequest,
) -> DescribeClusterResponse:
    """Describe the brokers that the client can reach."""
    if request.endpoint_type == CONTROLLERS:
        raise KafkaError(ErrorCode.MISMATCHED_ENDPOINT_TYPE, _WRONG_ENDPOINT)
    if request.endpoint_type != BROKERS:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            f"Unsupported endpoint type {request.endpoint_type}",
        )
    wanted = request.include_cluster_authorized_operations
    reachable = brokers.reachable(context)
    fenced = brokers.fenced(context) if request.include_fenced_brokers else ()
    return DescribeClusterResponse(
        endpoint_type=BROKERS,
        cluster_id=identity.cluster_id,
        controller_id=brokers.controller_id(reachable),
        brokers=[
            DescribeClusterBroker(each.node_id, each.host, each.port, each.rack)
            for each in reachable.values()
        ]
        + [DescribeClusterBroker(*each, is_fenced=True) for each in fenced],
        cluster_authorized_operations=operations_on_cluster(context, wanted=wanted),
        lacks_object_store=brokers.lacks_object_store,
    )


def operations_on_cluster(context: RequestContext, *, wanted: bool) -> int:
    """Return the client's permissions on the cluster if requested, or 0 if hidden."""
    if not wanted:
        return NOT_ASKED
    access = context.access
    if not access.may_see(ResourceType.CLUSTER, CLUSTER_NAME):
        return 0
    return access.operations_on(ResourceType.CLUSTER, CLUSTER_NAME)
