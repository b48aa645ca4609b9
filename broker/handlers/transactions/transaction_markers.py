"""WriteTxnMarkers 1-2: markers of a transaction that was decided on another broker.

The markers of partitions that the coordinator's own broker leads are written in process, by the
same ``coordination/markers.py``. The request comes from other brokers' coordinators, and from
Apache Kafka's tools, which end a hanging transaction with it. v2 has the version of the transaction
(KIP-1228).

Stricter than Kafka 4.3.0 (measured), so that no client damages a partition permanently. A producer
id, epoch or version below 0 is INVALID_REQUEST for the partition (Kafka: -1, or it writes the
marker). So is a coordinator epoch that no coordinator can have had yet, which would fence every
real one: no partition of ``__transaction_state`` has one as late, as far as this broker knows the
cluster (R6). A partition named twice for one producer gets its marker once and two results (Kafka
never responds).

Brokers also identify the partition by its topic id and leader epoch: a partition that has another
leader by now, or was deleted and created again, is not meant (R10). If a later marker has ended the
transaction already, brokers get NONE, as for a marker in process. Once a newer connection of the
same broker has replaced this one, nothing more is written for it, not even the rest of the present
request (R10).
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.api.dispatch import CloseConnection, RequestContext, serves
from barnabas.broker.cluster.peers.sessions import PeerLink
from barnabas.broker.cluster.serving.brokers import Brokers
from barnabas.broker.coordination.markers import MarkerWriter
from barnabas.broker.coordination.transactions import Transactions
from barnabas.broker.metadata.catalogue import Catalogue
from barnabas.broker.metadata.topic_names import TRANSACTION_STATE
from barnabas.broker.runtime.turns import turn_over
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.write_txn_markers import (
    WRITE_TXN_MARKERS,
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopic,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from barnabas.protocol.wire import ZERO_UUID
from barnabas.storage.log.transaction_marker import TransactionMarker

MARKERS_MAX: Final = 100_000
"""Maximum number of partitions in one request: each takes more room in the journal than here."""
MARKERS_PER_TURN: Final = 256
"""Markers written before the loop gets a turn."""
_NO_COORDINATOR_EPOCH: Final = -1
_NO_LEADER_EPOCH: Final = -1


@serves(WRITE_TXN_MARKERS, versions=(1, 2), in_slices=True)
async def write_txn_markers(
    catalogue: Catalogue,
    transactions: Transactions,
    markers: MarkerWriter,
    brokers: Brokers,
    context: RequestContext,
    request: WriteTxnMarkersRequest,
) -> WriteTxnMarkersResponse:
    """Write each marker to each partition; respond when all are durable and visible (R5)."""
    count = sum(len(topic.partition_indexes) for named in request.markers for topic in named.topics)
    if count > MARKERS_MAX:
        raise CloseConnection(f"a request for {count} markers, more than {MARKERS_MAX}")
    epoch = _latest_epoch(catalogue, transactions, brokers)
    work = _Work(catalogue, markers, epoch, context.connection.link)
    refusals = transactions.refusals
    response = WriteTxnMarkersResponse([await work.write(named) for named in request.markers])
    await transactions.durable(refusals)
    return response


def _latest_epoch(catalogue: Catalogue, transactions: Transactions, brokers: Brokers) -> int:
    """Return the latest known epoch of a coordinator."""
    own = transactions.coordinator_epoch
    topic = catalogue.topic(TRANSACTION_STATE) if brokers.are_several else None
    if topic is None:
        return own
    leader_of = brokers.view.leader_of
    return max(own, *(leader_of(each.partition_id).epoch for each in topic.partitions))


class _Work:
    """The markers of one request, some in each turn of the loop."""

    def __init__(
        self,
        catalogue: Catalogue,
        markers: MarkerWriter,
        latest_epoch: int,
        link: PeerLink | None,
    ) -> None:
        """``latest_epoch``: the latest that a coordinator can have; ``link``: of a broker."""
        self._catalogue = catalogue
        self._markers = markers
        self._latest_epoch = latest_epoch
        self._link = link
        self._left_in_turn = MARKERS_PER_TURN
        self._check()

    async def write(self, named: WritableTxnMarker) -> WritableTxnMarkerResult:
        """Write one producer's marker to its partitions."""
        marker = TransactionMarker(
            named.producer_id,
            named.producer_epoch,
            commit=named.transaction_result,
            coordinator_epoch=named.coordinator_epoch,
            transaction_version=named.transaction_version,
        )
        refused = self._refusal(marker)
        done: dict[tuple[str, int], ErrorCode] = {}
        topics = []
        for topic in named.topics:
            results = []
            for index in topic.partition_indexes:
                topic_partition = topic.name, index
                if topic_partition not in done:
                    await self._take_turns()
                    done[topic_partition] = refused or self._write_one(topic, index, marker)
                results.append(WritableTxnMarkerPartitionResult(index, done[topic_partition]))
            topics.append(WritableTxnMarkerTopicResult(topic.name, results))
        return WritableTxnMarkerResult(named.producer_id, topics)

    def _refusal(self, marker: TransactionMarker) -> ErrorCode:
        """Return the error of a marker that no partition can take, or NONE."""
        if min(marker.producer_id, marker.producer_epoch, marker.transaction_version) < 0:
            return ErrorCode.INVALID_REQUEST
        if marker.coordinator_epoch < _NO_COORDINATOR_EPOCH:
            return ErrorCode.TRANSACTION_COORDINATOR_FENCED
        return ErrorCode.NONE

    def _write_one(
        self, topic: WritableTxnMarkerTopic, index: int, marker: TransactionMarker
    ) -> ErrorCode:
        partition = self._catalogue.partition(topic.name, index)
        log = None if partition is None else partition.log
        if log is not None and (
            topic.leader_epoch not in {_NO_LEADER_EPOCH, log.leader_epoch}
            or topic.topic_id not in {ZERO_UUID, log.topic_id}
        ):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        # Logs taken over from Kafka may hold a later epoch that was forced there.
        entry = None if log is None else log.producers.entry(marker.producer_id)
        seen = _NO_COORDINATOR_EPOCH if entry is None else entry.coordinator_epoch
        if marker.coordinator_epoch > max(self._latest_epoch, seen):
            return ErrorCode.INVALID_REQUEST
        if self._link is None:
            return self._markers.write(topic.name, index, marker)
        return self._markers.write_if_needed(topic.name, index, marker)

    async def _take_turns(self) -> None:
        self._left_in_turn -= 1
        if not self._left_in_turn:
            self._left_in_turn = MARKERS_PER_TURN
            await turn_over()
            self._check()

    def _check(self) -> None:
        """Raise CloseConnection if a newer connection of the broker has ended this one."""
        if self._link is not None and self._link.is_ended:
            raise CloseConnection("a newer connection of this broker has taken its place")
