"""WriteTxnMarkers 1-2: somebody who decided a transaction has its markers written here.

In this broker the coordinator writes markers in process, by the same ``broker.markers``; the
request comes from Apache Kafka's tools, which end a hanging transaction with it, and from brokers
that decide elsewhere. v2 says of which generation the transaction is (KIP-1228).
"""

from __future__ import annotations

from broker.dispatch import Deferred, RequestContext, serves
from broker.markers import Marker, write_marker
from protocol.messages.write_txn_markers import (
    WRITE_TXN_MARKERS,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)


@serves(WRITE_TXN_MARKERS, versions=(1, 2))
def write_txn_markers(
    context: RequestContext, request: WriteTxnMarkersRequest
) -> Deferred[WriteTxnMarkersResponse]:
    """Write each marker to each partition; answered when all are durable."""
    broker = context.broker
    response = WriteTxnMarkersResponse()
    for asked in request.markers:
        marker = Marker(
            asked.producer_id,
            asked.producer_epoch,
            asked.transaction_result,
            asked.coordinator_epoch,
            asked.transaction_version,
        )
        topics = [
            WritableTxnMarkerTopicResult(
                topic.name,
                [
                    WritableTxnMarkerPartitionResult(
                        index, write_marker(broker, topic.name, index, marker).error
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in asked.topics
        ]
        response.markers.append(WritableTxnMarkerResult(asked.producer_id, topics))
    pending: Deferred[WriteTxnMarkersResponse] = Deferred()
    broker.transactions.when_durable(lambda: pending.complete(response))
    return pending
