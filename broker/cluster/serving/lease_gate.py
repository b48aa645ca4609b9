"""Lease check before requests to partition leaders and coordinators.

After the lease has expired, another broker may lead, and this broker's state may be outdated. The
store would refuse its appends. But some errors come from the broker's state alone: an out-of-order
sequence, a fenced producer epoch, a partition missing from a transaction. So such requests get the
error of a broker that does not lead.

OffsetFetch gets NOT_COORDINATOR in the form that the client's library needs
(``offset_fetch_errors.py``).

A producer without a transactional ID has no coordinator, and its new ID was durably given to this
broker (S10), so it needs no lease. After NOT_COORDINATOR, kafka-python and Java's producer would
look for the coordinator of no ID, kafka-python without end.

Refused batches are recorded. Otherwise a batch that was sent after them could take their place once
the lease is valid again (``metadata/pending_retries.py``).

Reads are checked elsewhere: Fetch, ListOffsets and OffsetForLeaderEpoch are refused by partition, a
Fetch when its response is built, even after a long wait (``LeasedPartition``).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from barnabas.broker.api.offset_fetch_errors import refused_fetch
from barnabas.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.api.dispatch import DurableAnswer, RequestContext, Routes, Shortcut
    from barnabas.protocol.frame import FrameBuffer
    from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
    from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest
    from barnabas.protocol.messages.produce import ProduceRequest

OF_LEADERS: Final = frozenset(
    {
        "DeleteRecords",
        "DescribeProducers",
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
        "JoinGroup",
        "LeaveGroup",
        "OffsetCommit",
        "OffsetDelete",
        "SyncGroup",
        "TxnOffsetCommit",
    }
)
OF_PRODUCERS: Final = "InitProducerId"
OF_BATCHES: Final = "Produce"
OF_OFFSETS: Final = "OffsetFetch"

Refusal: TypeAlias = Callable[["RequestContext", Any], ErrorCode]
"""Error of a request without a lease, or NONE if it needs no lease."""
Note: TypeAlias = Callable[["RequestContext", "ProduceRequest"], None]


def gate(routes: Routes, may_serve: Callable[[], bool], note_refused: Note) -> None:
    """Make bound routes refuse requests that need the lease while it is not valid.

    ``note_refused`` is called with each refused Produce, so that later batches do not overtake it.
    """
    refusal: Refusal
    for route in routes:
        if route.name in OF_LEADERS:
            refusal = partial(_refusal, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        elif route.name in OF_COORDINATORS:
            refusal = partial(_refusal, ErrorCode.NOT_COORDINATOR)
        elif route.name == OF_PRODUCERS:
            refusal = _refusal_of_producer
        elif route.name == OF_BATCHES:
            refusal = partial(_refusal_of_batches, note_refused)
        elif route.name == OF_OFFSETS:
            route.handler = _gated_fetch(route.handler, may_serve)
            continue
        else:
            continue
        route.handler = _gated(route.handler, refusal, may_serve)
        if route.shortcut is not None:
            route.shortcut = _gated_shortcut(route.shortcut, may_serve)


def _refusal(code: ErrorCode, _context: object, _request: object) -> ErrorCode:
    return code


def _refusal_of_batches(note: Note, context: RequestContext, request: ProduceRequest) -> ErrorCode:
    note(context, request)
    return ErrorCode.NOT_LEADER_OR_FOLLOWER


def _refusal_of_producer(_context: object, request: InitProducerIdRequest) -> ErrorCode:
    return ErrorCode.NONE if request.transactional_id is None else ErrorCode.NOT_COORDINATOR


def _gated_fetch(handler: Callable[..., Any], may_serve: Callable[[], bool]) -> Callable[..., Any]:
    def gated(context: RequestContext, request: OffsetFetchRequest) -> Any:  # noqa: ANN401
        if may_serve():
            return handler(context, request)
        seen = context.connection.seen
        return refused_fetch(request, ErrorCode.NOT_COORDINATOR, context.api_version, seen)

    return gated


def _gated(
    handler: Callable[..., Any], refusal: Refusal, may_serve: Callable[[], bool]
) -> Callable[..., Any]:
    def gated(context: RequestContext, request: Any) -> Any:  # noqa: ANN401
        if not may_serve():
            code = refusal(context, request)
            if code:
                raise KafkaError(code)  # In no variable: its traceback has this frame.
        return handler(context, request)

    return gated


def _gated_shortcut(
    new_shortcut: Callable[..., Shortcut], may_serve: Callable[[], bool]
) -> Callable[..., Shortcut]:
    return lambda context: _LeasedShortcut(new_shortcut(context), may_serve)


class _LeasedShortcut:
    """``Shortcut`` that leaves all requests to the handler while the lease is not valid."""

    def __init__(self, shortcut: Shortcut, may_serve: Callable[[], bool]) -> None:
        self.learn = shortcut.learn
        self._take = shortcut.take
        self._may_serve = may_serve

    def take(self, frames: FrameBuffer) -> DurableAnswer | None:
        """Take a request; see ``Shortcut``."""
        return self._take(frames) if self._may_serve() else None
