"""Facts about a log's records that outlive their deletion or compaction."""

from __future__ import annotations

from typing import Final

from crc32c import crc32c

from barnabas.storage.errors import Corrupt
from barnabas.storage.log.checkpoint import CorruptFile, decode_leader_epochs, encode_leader_epochs
from barnabas.storage.log.leader_epochs import epochs_from
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log.producer_snapshot import CorruptSnapshot, decode_snapshot, encode_snapshot
from barnabas.storage.log.producers import ProducerState
from barnabas.storage.replicated.log_index import LogSnapshot

_CHECKSUM: Final = b"#%08x"
"""Format of the checksum after the lines of leader epochs; Kafka's file has no checksum."""
_CHECKSUM_BYTES: Final = 9


def take_snapshot(log: PartitionLog) -> LogSnapshot:
    """Return the state after all appended batches of ``log``; on the loop.

    It may be stored once all of them are durable.
    """
    epochs = encode_leader_epochs(epochs_from(log.leader_epochs, log.log_start_offset))
    producers = encode_snapshot(log.producers)
    return LogSnapshot(log.next_offset, producers, epochs + _CHECKSUM % crc32c(epochs))


def read_snapshot(
    partition_id: int, snapshot: LogSnapshot, *, append_time_ms: int
) -> tuple[ProducerState, list[tuple[int, int]]]:
    """Return the producers and the leader epochs of a snapshot; raises Corrupt.

    ``append_time_ms``: see ``decode_snapshot``.
    """
    try:
        producers = decode_snapshot(snapshot.producers, append_time_ms=append_time_ms)
        return producers, decode_leader_epochs(_checked(snapshot.leader_epochs))
    except (CorruptSnapshot, CorruptFile) as error:
        path = f"partition {partition_id} in the store, its snapshot of {snapshot.next_offset},"
        raise Corrupt(path, 0, str(error)) from None


def _checked(epochs: bytes) -> bytes:
    """Return the lines of leader epochs without their checksum; raises CorruptFile."""
    lines, checksum = epochs[:-_CHECKSUM_BYTES], epochs[-_CHECKSUM_BYTES:]
    if checksum != _CHECKSUM % crc32c(lines):
        raise CorruptFile("the checksum of the leader epochs does not match")
    return lines
