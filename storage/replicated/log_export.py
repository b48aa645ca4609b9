"""Export of a cluster's logs to the data directory of a single broker.

As in a recovery, the batches are written to the segments directly, extent by extent, and not to the
journal. The next checkpoint makes them valid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.storage.journal.committer import apply_group
from barnabas.storage.journal.journal import CommitGroup
from barnabas.storage.log.checkpoint import encode_leader_epochs
from barnabas.storage.log.log_directory import LEADER_EPOCH_CHECKPOINT
from barnabas.storage.replicated.loading import DurableLog, Filling
from barnabas.storage.replicated.log_reading import all_from, beginning_of, stored_batches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from barnabas.storage.log.partition_log import PartitionLog
    from barnabas.storage.replicated.log_index import Extent, LogHead, LogIndex


def highest_epoch(index: LogIndex, partition_ids: Sequence[int]) -> int:
    """Return the latest epoch in which any of these partitions was led; -1 without any."""
    states = map(index.partition, partition_ids)
    return max((state.leader_epoch for state in states if state is not None), default=-1)


def export_log(log: PartitionLog, index: LogIndex, on_read: Callable[[int], None]) -> None:
    """Fill an empty log from a cluster whose brokers do not serve it.

    ``on_read`` is called with the bytes of each extent. Waits for the disk and the store. Raises
    Corrupt for damage in the store.
    """
    found = beginning_of(index, log.partition_id)
    if found is not None:  # Otherwise its topic was being created.
        _export(log, found.head, all_from(index, found), on_read)


def _export(
    log: PartitionLog, head: LogHead, extents: Iterable[Extent], on_read: Callable[[int], None]
) -> None:
    filling: Filling | None = None
    for stored in stored_batches(head, extents):
        if filling is None:
            filling = Filling(log, _from(stored.base_offset, head))
        group = CommitGroup()
        for batch in stored.batches:
            filling.add(batch, group)
        apply_group(group)
        on_read(stored.size_bytes)
    if filling is None:
        filling = Filling(log, _from(head.state.log_end_offset, head))
    filling.end(head.state.log_start_offset)
    if log.next_offset:
        log.snapshots.batches_since += (
            1  # What the cluster's snapshot knows is in no batch, perhaps.
        )
        epochs = encode_leader_epochs(log.leader_epochs)
        log.directory.write_file(LEADER_EPOCH_CHECKPOINT, epochs)


def _from(base_offset: int, head: LogHead) -> DurableLog:
    return DurableLog((), head.state.log_start_offset, base_offset, head.snapshot)
