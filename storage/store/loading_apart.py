"""A long log that is loaded while the process runs: written to segments while it is read.

Rules of this file:

* Only one piece of the log is in memory, however long the log is.
* The thread that loads the log writes its files in a directory with a name of its own, because the
  segment thread may still write and remove the partition's previous log. Therefore the caller of
  ``take_in`` first queues ``take_place`` on the segment thread, after all that.
* A load that fails removes its files, and does not wait for a full disk. A waiting load would keep
  disk space, a thread and a connection to the store, and other loads need those (D10).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from barnabas.storage.errors import LedSince, NoRoom
from barnabas.storage.journal.committer import FULL_DISK, apply_group, until_there_is_room
from barnabas.storage.journal.journal import CommitGroup
from barnabas.storage.replicated.loading import Filling
from barnabas.storage.runtime.chance import random_uuid

if TYPE_CHECKING:
    from collections.abc import Callable

    from barnabas.storage.log.partition_log import PartitionLog
    from barnabas.storage.replicated.loading import DurableLog
    from barnabas.storage.store.log_store import LogStore
    from barnabas.storage.store.store_parts import PartitionSpec

PIECE_BYTES: Final = 4 * 1024 * 1024
"""Size at which a piece is written; a piece can be larger by one batch."""


def filled_apart(
    store: LogStore, spec: PartitionSpec, durable: DurableLog, is_over: Callable[[], bool]
) -> PartitionLog:
    """Return a log with all of its durable records in its segments; for ``LogStore.take_in``.

    Call it on a thread. Raises LedSince, also before each piece if ``is_over`` returns true, NoRoom
    if the disk is full, Corrupt if the snapshot is damaged, and what reading ``durable`` raises.
    """
    log = store.new_log(spec)
    log.directory.stay_apart(random_uuid().hex)
    try:
        _fill(log, durable, lambda piece: _write(spec, piece, is_over))
    except BaseException as error:
        until_there_is_room(partial(remove_apart, log), store)
        if isinstance(error, OSError) and error.errno in FULL_DISK:
            raise NoRoom(spec.partition_id, log.size_bytes) from None
        raise
    return log


def require_wanted(spec: PartitionSpec, is_over: Callable[[], bool]) -> None:
    """Raise LedSince if ``is_over`` returns true; it is called on the thread that loads the log."""
    if is_over():
        raise LedSince(f"partition {spec.partition_id} is not wanted any more")


def remove_apart(log: PartitionLog) -> None:
    """Remove the files of a log that the store will not take in."""
    for segment in (*log.segments, *log.dropped_segments):
        segment.close()
    log.directory.remove()


def _fill(log: PartitionLog, durable: DurableLog, write: Callable[[CommitGroup], None]) -> None:
    filling = Filling(log, durable)
    piece, size = CommitGroup(), 0
    for known in durable.known:
        write(piece)
        filling.add_known(known)
    for batch in durable.batches:
        filling.add(batch, piece)
        size += len(batch)
        if size >= PIECE_BYTES:
            write(piece)
            piece, size = CommitGroup(), 0
    write(piece)
    filling.end(durable.log_start_offset)


def _write(spec: PartitionSpec, piece: CommitGroup, is_over: Callable[[], bool]) -> None:
    require_wanted(spec, is_over)
    apply_group(piece)
