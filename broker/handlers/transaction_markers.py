"""WriteTxnMarkers 1-2: what decided a transaction elsewhere has its markers written here.

In this broker the coordinator writes markers in process, by the same ``coordination/markers.py``;
the request comes from Apache Kafka's tools, which end a hanging transaction with it, and from
brokers that decide elsewhere. v2 says of which version the transaction is (KIP-1228).

Stricter than Kafka 4.3.0 (measured), so that no client harms a partition for good: a producer id,
epoch or version below 0 is INVALID_REQUEST for the partition (Kafka: -1, or it writes the
marker), and so is a coordinator epoch that no coordinator can have had yet, which would fence every
real one. A partition named twice for one producer gets its marker once and is answered twice (Kafka
never answers).

Of a broker whose newer connection has taken this one's place nothing more is written, not even the
rest of what is being written (R10).
"""

from __future__ import annotations

import asyncio
from typing import Final

from barnabas.broker.api.dispatch import CloseConnection, RequestContext, serves
from barnabas.broker.api.division import by
from barnabas.broker.coordination.markers import MarkerWriter
from barnabas.broker.coordination.transactions import Transactions
from barnabas.broker.peers.sessions import PeerLink
from barnabas.broker.topics.catalogue import Catalogue
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.write_txn_markers import (
    WRITE_TXN_MARKERS,
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from barnabas.storage.transaction_marker import TransactionMarker

MARKERS_MAX: Final = 100_000
"""Of one request, each partition counted: each takes more room in the journal than here."""
MARKERS_PER_TURN: Final = 256
"""Markers written before the loop gets a turn."""
_NO_COORDINATOR_EPOCH: Final = -1


@serves(WRITE_TXN_MARKERS, versions=(1, 2), divide=by("markers.topics.partition_indexes"))
async def write_txn_markers(
    catalogue: Catalogue,
    transactions: Transactions,
    markers: MarkerWriter,
    context: RequestContext,
    request: WriteTxnMarkersRequest,
) -> WriteTxnMarkersResponse:
    """Write each marker to each partition; answered when all are durable."""
    count = sum(len(topic.partition_indexes) for asked in request.markers for topic in asked.topics)
    if count > MARKERS_MAX:
        raise CloseConnection(f"a request for {count} markers, more than {MARKERS_MAX}")
    work = _Work(catalogue, transactions, markers, context.connection.link)
    refusals = transactions.refusals
    response = WriteTxnMarkersResponse([await work.write(asked) for asked in request.markers])
    await transactions.durable(refusals)
    return response


class _Work:
    """The markers of one request, some in each turn of the loop."""

    def __init__(
        self,
        catalogue: Catalogue,
        transactions: Transactions,
        markers: MarkerWriter,
        link: PeerLink | None,
    ) -> None:
        self._catalogue = catalogue
        self._transactions = transactions
        self._markers = markers
        self._link = link
        self._left_in_turn = MARKERS_PER_TURN
        self._check()

    async def write(self, asked: WritableTxnMarker) -> WritableTxnMarkerResult:
        """Write one producer's marker to its partitions."""
        marker = TransactionMarker(
            asked.producer_id,
            asked.producer_epoch,
            commit=asked.transaction_result,
            coordinator_epoch=asked.coordinator_epoch,
            transaction_version=asked.transaction_version,
        )
        refused = self._refusal(marker)
        done: dict[tuple[str, int], ErrorCode] = {}
        topics = []
        for topic in asked.topics:
            results = []
            for index in topic.partition_indexes:
                topic_partition = topic.name, index
                if topic_partition not in done:
                    await self._take_turns()
                    done[topic_partition] = refused or self._write_one(*topic_partition, marker)
                results.append(WritableTxnMarkerPartitionResult(index, done[topic_partition]))
            topics.append(WritableTxnMarkerTopicResult(topic.name, results))
        return WritableTxnMarkerResult(asked.producer_id, topics)

    def _refusal(self, marker: TransactionMarker) -> ErrorCode:
        """Why this marker can be written nowhere; NONE if it can."""
        if min(marker.producer_id, marker.producer_epoch, marker.transaction_version) < 0:
            return ErrorCode.INVALID_REQUEST
        if marker.coordinator_epoch < _NO_COORDINATOR_EPOCH:
            return ErrorCode.TRANSACTION_COORDINATOR_FENCED
        return ErrorCode.NONE

    def _write_one(self, topic: str, index: int, marker: TransactionMarker) -> ErrorCode:
        if marker.coordinator_epoch > self._known_epoch(topic, index, marker.producer_id):
            return ErrorCode.INVALID_REQUEST
        return self._markers.write(topic, index, marker)

    def _known_epoch(self, topic: str, index: int, producer_id: int) -> int:
        """The latest coordinator epoch there is, or was when such a marker was written here.

        Logs taken over from Kafka may hold a later one that was forced there.
        """
        partition = self._catalogue.partition(topic, index)
        log = None if partition is None else partition.log
        entry = None if log is None else log.producers.entry(producer_id)
        own = self._transactions.coordinator_epoch
        return own if entry is None else max(own, entry.coordinator_epoch)

    async def _take_turns(self) -> None:
        self._left_in_turn -= 1
        if not self._left_in_turn:
            self._left_in_turn = MARKERS_PER_TURN
            await asyncio.sleep(0)
            self._check()

    def _check(self) -> None:
        """Raise CloseConnection if a newer connection of the broker has ended this one."""
        if self._link is not None and self._link.is_ended:
            raise CloseConnection("a newer connection of this broker has taken its place")
