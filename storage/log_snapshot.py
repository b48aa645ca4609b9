"""What is to be known of a log's records once they are deleted, or compacted away."""

from barnabas.storage.checkpoint import encode_leader_epochs
from barnabas.storage.leader_epochs import epochs_from
from barnabas.storage.log_index import LogSnapshot
from barnabas.storage.partition_log import PartitionLog
from barnabas.storage.producer_snapshot import encode_snapshot


def take_snapshot(log: PartitionLog) -> LogSnapshot:
    """Return what all that was placed in ``log`` has left behind; on the loop.

    It may be kept once all of that is durable.
    """
    epochs = epochs_from(log.leader_epochs, log.log_start_offset)
    return LogSnapshot(
        log.next_offset, encode_snapshot(log.producers), encode_leader_epochs(epochs)
    )
