"""Ends of transactions of other producers, through their coordinator or past it.

Through the coordinator it is the InitProducerId of a new instance of the producer: it fences the
old one, and the coordinator aborts on every partition. Without the coordinator it is a marker on
one partition, which would tear a transaction that a coordinator knows: callers refuse that.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.admin.exchange import (
    Coordinator,
    Exchange,
    Partition,
    check,
    partition_text,
    send,
)
from barnabas.broker.client.brokers import TRANSACTION
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.write_txn_markers import (
    WRITE_TXN_MARKERS,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from barnabas.protocol.versions import INIT_PRODUCER_ID_STABLE

_TIMEOUT_MS: Final = 60_000
"""Timeout in requests for producers without a timeout; a longer one might exceed the broker's
present limit."""
_CLASSIC: Final = 0
"""An operator's marker carries the epoch of the data."""


def fence(transactional_id: str, timeout_ms: int) -> Exchange[None]:
    """Fence the producer of an id; raises Rejected CONCURRENT_TRANSACTIONS during the abort."""
    request = InitProducerIdRequest(transactional_id, min(timeout_ms, _TIMEOUT_MS))
    to = Coordinator(TRANSACTION, transactional_id)
    answer = yield from send(INIT_PRODUCER_ID, request, to, INIT_PRODUCER_ID_STABLE)
    check(transactional_id, answer.error_code)


def abort_on(
    partition: Partition, producer_id: int, producer_epoch: int, coordinator_epoch: int
) -> Exchange[None]:
    """Write the marker that ends a producer's transaction on one partition; raises Rejected.

    ``coordinator_epoch`` is that of the producer's last marker there, below 0 if there is none.
    """
    marker = WritableTxnMarker(
        producer_id,
        producer_epoch,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(partition.topic, [partition.number])],
        # As Kafka's tool: that of the last marker, so that it is not taken for an older one.
        coordinator_epoch=max(coordinator_epoch, 0),
        transaction_version=_CLASSIC,
    )
    request = WriteTxnMarkersRequest([marker])
    answer = yield from send(WRITE_TXN_MARKERS, request, partition.leader_id)
    for result in answer.markers:
        for topic in result.topics:
            for each in topic.partitions:
                check(partition_text((topic.name, each.partition_index)), each.error_code)
