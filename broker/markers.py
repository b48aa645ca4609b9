"""The control batches that end transactions: one for each partition that took part (KIP-98).

Written in process where the coordinator decides, and by WriteTxnMarkers when somebody else asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker import failpoints
from broker.storage_errors import error_code_of
from broker.topic_names import GROUP_OFFSETS
from protocol.errors import ErrorCode, KafkaError
from storage.errors import Refused

if TYPE_CHECKING:
    from broker.server import BrokerServer
    from storage.journal import CommitGroup
    from storage.partition_log import PartitionLog


class Marker(NamedTuple):
    """What a marker says, and the generation of the transaction it ends."""

    producer_id: int
    producer_epoch: int
    commit: bool
    coordinator_epoch: int
    transaction_version: int


def write_marker(broker: BrokerServer, topic: str, index: int, marker: Marker) -> ErrorCode:
    """Append a marker to a partition; those of ``__consumer_offsets`` go through the groups.

    It is durable when the journal's newest group is.
    """
    partition = broker.catalogue.partition(topic, index)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    try:
        if topic == GROUP_OFFSETS:
            broker.groups.write_marker(index, marker)
        else:
            append_marker(partition.log, marker)
    except Refused as refused:
        return error_code_of(refused)
    except KafkaError as error:
        return error.code
    if failpoints.ARMED is not None:
        failpoints.ARMED.reached("Marker", broker.logs.journal)
    return ErrorCode.NONE


def append_marker(log: PartitionLog, marker: Marker) -> CommitGroup | None:
    """Append a marker to a log; raises Refused."""
    appended = log.append_marker(
        marker.producer_id,
        marker.producer_epoch,
        coordinator_epoch=marker.coordinator_epoch,
        commit=marker.commit,
        transaction_version=marker.transaction_version,
    )
    return appended.durable
