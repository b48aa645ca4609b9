"""Requests of an operator to end the transaction of another producer.

Through its coordinator it is the InitProducerId of a new instance of the producer: it fences the
old one, and the coordinator aborts on every partition. Without the coordinator it is a marker on
one partition.
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

_TIMEOUT_MS: Final = 60_000
"""Timeout of producers that set none: the broker's present limit may be lower than a longer one."""
_CLASSIC: Final = 0
"""An operator's marker carries the epoch of the data."""


def fencing(transactional_id: str, timeout_ms: int) -> InitProducerIdRequest:
    """Return the request, for INIT_PRODUCER_ID_STABLE, that fences the producer of an ID."""
    return InitProducerIdRequest(transactional_id, min(timeout_ms, _TIMEOUT_MS))


def abort_marker(
    topic: str, partition: int, *, producer_id: int, producer_epoch: int, coordinator_epoch: int
) -> WriteTxnMarkersRequest:
    """Return the request that ends a producer's transaction on one partition.

    ``coordinator_epoch`` is that of the producer's last marker there, below 0 if there is none.
    """
    marker = WritableTxnMarker(
        producer_id,
        producer_epoch,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(topic, [partition])],
        # As Kafka's tool: that of the last marker, so that it is not taken for an older one.
        coordinator_epoch=max(coordinator_epoch, 0),
        transaction_version=_CLASSIC,
    )
    return WriteTxnMarkersRequest([marker])
