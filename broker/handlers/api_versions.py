"""ApiVersions (18), versions 0-4: the APIs and versions of this broker.

The response is built from the table of handlers, so it lists only what is implemented.

* v3: the client names its software; supported and finalized features (KIP-584) come as tags.
* v4: features whose lowest version is 0 may be named (KIP-1022).
* An unknown version gets its response in broker/network/connection.py, before anything is decoded.

From v3 on a broker of the same cluster sends in a tag of Barnabas (1000) its identity and the
purpose of this connection (R10). Every connection begins with this request, and every broker since
Apache Kafka 2.4 skips its unknown tags (KIP-482). The response also confirms to the peer that its
previous connection has ended. The tag is accepted after the login only, from users with permission
to act for the cluster: otherwise any client could end a broker's connection.
"""

from __future__ import annotations

import re

from barnabas.broker.api.checks import CLUSTER, CLUSTER_ACTION, CLUSTER_DENIED
from barnabas.broker.api.client_software import KNOWN_WRITERS
from barnabas.broker.api.dispatch import (
    PRODUCE_KEY,
    CloseConnection,
    RequestContext,
    Routes,
    serves,
)
from barnabas.broker.cluster.peers.sessions import Hello, HelloRefused, PeerSessions
from barnabas.broker.config.features import FEATURES
from barnabas.broker.metadata.configs import DynamicConfigs
from barnabas.broker.security.acls.operations import CLUSTER_NAME
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_versions import (
    API_VERSIONS,
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    PeerHello,
    SupportedFeatureKey,
)

LEVEL_0_SINCE = 4
"""Older clients fail when the lowest supported level is 0 (KIP-1022)."""

SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")
"""Names and versions of client software, as KIP-511 allows them."""


@serves(API_VERSIONS, versions=(0, 4))
def api_versions(
    routes: Routes,
    configs: DynamicConfigs,
    peer_sessions: PeerSessions,
    context: RequestContext,
    request: ApiVersionsRequest,
) -> ApiVersionsResponse:
    """Return every API served here; works before authentication."""
    if context.api_version >= 3 and not names_its_software(request):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    if request.peer_hello is not None:
        if not context.access.may(CLUSTER_ACTION, CLUSTER, CLUSTER_NAME):
            return ApiVersionsResponse(error_code=CLUSTER_DENIED)
        take_hello(peer_sessions, context, request.peer_hello)
    seen = context.connection.seen
    seen.software = request.client_software_name
    seen.software_version = request.client_software_version
    seen.is_known_writer = seen.software in KNOWN_WRITERS
    return ApiVersionsResponse(
        api_keys=advertised(routes),
        supported_features=[
            SupportedFeatureKey(name, low, high)
            for name, (low, high) in FEATURES.items()
            if low > 0 or context.api_version >= LEVEL_0_SINCE
        ],
        # Never below 0, or clients ignore the finalized features; it grows, or they keep the old.
        finalized_features_epoch=configs.features.epoch,
        finalized_features=[
            FinalizedFeatureKey(name, level, level)
            for name, level in configs.features.levels.items()
            if level
        ],
    )


def take_hello(peer_sessions: PeerSessions, context: RequestContext, sent: PeerHello) -> None:
    """Make this the current connection of a broker; raises CloseConnection if refused."""
    connection = context.connection
    if connection.login is not None:
        raise CloseConnection("a hello before the login")
    if connection.link is not None:
        raise CloseConnection("a second hello on one connection")
    hello = Hello(sent.node_id, sent.session, sent.purpose, sent.number)
    try:
        connection.link = peer_sessions.take(hello, connection.close)
    except HelloRefused as refused:
        raise CloseConnection(str(refused)) from None


def names_its_software(request: ApiVersionsRequest) -> bool:
    """Return whether the client's software has a legal name and version."""
    return bool(
        SOFTWARE.fullmatch(request.client_software_name)
        and SOFTWARE.fullmatch(request.client_software_version)
    )


def advertised(routes: Routes) -> list[ApiVersion]:
    """Return the ranges to advertise, ordered by key.

    Produce is advertised from 0 though served from 3: librdkafka takes a higher floor for a broker
    without compression and silently stops compressing (KAFKA-18659).
    """
    return [
        ApiVersion(
            route.key, 0 if route.key == PRODUCE_KEY else route.min_version, route.max_version
        )
        for route in routes
    ]
