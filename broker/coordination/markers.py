"""The control batches that end transactions: one for each partition that took part (KIP-98).

Written in process where the coordinator decides, and by WriteTxnMarkers where another system does.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from barnabas.broker.api.storage_errors import error_code_of
from barnabas.broker.metadata.topic_names import GROUP_OFFSETS
from barnabas.broker.runtime import failpoints
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.storage.errors import Rejected

if TYPE_CHECKING:
    from barnabas.broker.cluster.coordinating.verification_guards import Guards
    from barnabas.broker.coordination.groups import Groups
    from barnabas.broker.metadata.catalogue import Catalogue
    from barnabas.storage.log.transaction_marker import TransactionMarker

logger = logging.getLogger(__name__)

_SUPERSEDED: Final = (
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.TRANSACTION_COORDINATOR_FENCED,
)
"""The log already has a marker with a later epoch, of the producer or of a coordinator."""


class MarkerWriter:
    """Writes markers to the partitions of this broker."""

    def __init__(self, catalogue: Catalogue, groups: Groups, guards: Guards | None = None) -> None:
        """``guards``: guards of transactions with another coordinator, or None for a single
        broker.
        """
        self._catalogue = catalogue
        self._groups = groups
        self._guards = guards

    def write(self, topic: str, index: int, marker: TransactionMarker) -> ErrorCode:
        """Append a marker to a partition; the groups append those of ``__consumer_offsets``.

        It is durable when the journal's newest group is.
        """
        partition = self._catalogue.partition(topic, index)
        if partition is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if self._guards is not None and partition.log is not None:
            self._guards.end(partition.log, marker.producer_id)  # Taken or not: R7.
        try:
            if topic == GROUP_OFFSETS:
                self._groups.write_marker(index, marker)
            else:
                partition.log_here().append_marker(marker)
        except Rejected as refused:
            return error_code_of(refused)
        except KafkaError as error:
            return error.code
        if failpoints.ARMED is not None:
            failpoints.ARMED.reached("Marker", self._catalogue.journal)
        return ErrorCode.NONE

    def write_if_needed(self, topic: str, index: int, marker: TransactionMarker) -> ErrorCode:
        """Write a marker like ``write``; return NONE also if a later one ended the transaction.

        That is durable when the newest commit group is, like a written marker. For a coordinator.
        """
        error = self.write(topic, index, marker)
        if error not in _SUPERSEDED or self.has_open_transaction(topic, index, marker.producer_id):
            return error
        logger.warning(
            "marker not needed, a later one ended it partition=%s-%d producer=%d epoch=%d",
            topic,
            index,
            marker.producer_id,
            marker.producer_epoch,
        )
        return ErrorCode.NONE

    def has_open_transaction(self, topic: str, index: int, producer_id: int) -> bool:
        """Whether a producer has a transaction open on a partition."""
        partition = self._catalogue.partition(topic, index)
        log = None if partition is None else partition.log
        return log is not None and log.producers.has_open_transaction(producer_id)
