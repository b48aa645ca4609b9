"""What is led by a broker of a cluster is asked of it while its lease is valid only.

Once the lease is over another broker may lead, and what this one still believes is old. What it
would append the store refuses; but a refusal that it gives by what it knows, or what it shows,
nobody else looks at: a sequence out of order, a producer's epoch that is too low, a transaction
without this partition. So such a request is answered as by a broker that does not lead.

A client that asks for a group's offsets is hung up on: behind a closed connection every client asks
who the coordinator is, and for the offsets again. Told NOT_COORDINATOR, librdkafka (2.16) asks for
those that a member begins with once, and never begins (``rd_kafka_assignment_handle_OffsetFetch``).

Reads are not here: Fetch, ListOffsets and OffsetForLeaderEpoch are refused partition by partition,
a Fetch when it is answered, however long it has waited (``LeasedPartition``).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.api.dispatch import CloseConnection
from barnabas.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.api.dispatch import RequestContext, Routes, ShortAnswers, Shortcut
    from barnabas.protocol.frame import FrameBuffer

OF_LEADERS: Final = frozenset(
    {
        "DeleteRecords",
        "DescribeProducers",
        "Produce",
        "WriteTxnMarkers",
    }
)
OF_COORDINATORS: Final = frozenset(
    {
        "AddOffsetsToTxn",
        "AddPartitionsToTxn",
        "ConsumerGroupDescribe",
        "ConsumerGroupHeartbeat",
        "DeleteGroups",
        "DescribeGroups",
        "DescribeTransactions",
        "EndTxn",
        "Heartbeat",
        "InitProducerId",
        "JoinGroup",
        "LeaveGroup",
        "OffsetCommit",
        "OffsetDelete",
        "SyncGroup",
        "TxnOffsetCommit",
    }
)
HUNG_UP_ON: Final = "OffsetFetch"
NOT_HERE: Final = "another broker coordinates the group"


def gate(routes: Routes, may_serve: Callable[[], bool]) -> None:
    """Have routes that are bound refuse what this broker may not serve now."""
    refused: Callable[[], Exception]
    for route in routes:
        if route.name in OF_LEADERS:
            refused = partial(KafkaError, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        elif route.name in OF_COORDINATORS:
            refused = partial(KafkaError, ErrorCode.NOT_COORDINATOR)
        elif route.name == HUNG_UP_ON:
            refused = partial(CloseConnection, NOT_HERE)
        else:
            continue
        route.handler = _gated(route.handler, refused, may_serve)
        if route.long_handler is not None:
            route.long_handler = _gated(route.long_handler, refused, may_serve)
        if route.shortcut is not None:
            route.shortcut = _gated_shortcut(route.shortcut, may_serve)


def _gated(
    handler: Callable[..., Any], refused: Callable[[], Exception], may_serve: Callable[[], bool]
) -> Callable[..., Any]:
    def gated(context: RequestContext, request: Any) -> Any:  # noqa: ANN401
        if not may_serve():
            raise refused()
        return handler(context, request)

    return gated


def _gated_shortcut(
    new_shortcut: Callable[..., Shortcut], may_serve: Callable[[], bool]
) -> Callable[..., Shortcut]:
    return lambda context: _LeasedShortcut(new_shortcut(context), may_serve)


class _LeasedShortcut:
    """A ``Shortcut`` that leaves everything to the handler while the lease is not valid."""

    def __init__(self, shortcut: Shortcut, may_serve: Callable[[], bool]) -> None:
        self.learn = shortcut.learn
        self._take = shortcut.take
        self._may_serve = may_serve

    def take(self, frames: FrameBuffer) -> ShortAnswers | None:
        """See ``Shortcut``."""
        return self._take(frames) if self._may_serve() else None
