"""A long log that is opened while the process runs: written to segments while it is read.

Rules of this file:

* What is held of it in memory is a piece, however long it is.
* The thread that loads it writes its files, in a directory that has a name of its own: the segment
  thread may have the former log of the partition to write still, and to remove. So whoever takes
  the log in has the segment thread give it its place first, behind all that (``take_place``).
* What comes to nothing leaves nothing, and a full disk is not waited for: whoever waited would keep
  what others need, the room that was taken, the thread, and the way on which the log is read (D10).
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
"""What is read before it is written, and a batch more."""


def filled_apart(
    store: LogStore, spec: PartitionSpec, durable: DurableLog, is_over: Callable[[], bool]
) -> PartitionLog:
    """Return a log with all that is durable of it, in its segments; for ``LogStore.take_in``.

    On a thread. Raises LedSince, also before a piece once it ``is_over``; NoRoom; Corrupt where the
    snapshot is damaged, and what reading ``durable`` raises.
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
    """Raise LedSince if loading a log ``is_over``, which is asked on the thread that loads it."""
    if is_over():
        raise LedSince(f"partition {spec.partition_id} is not wanted any more")


def remove_apart(log: PartitionLog) -> None:
    """Remove what was written of a log that nobody takes in."""
    for segment in (*log.segments, *log.dropped_segments):
        segment.close()
    log.directory.remove()


def _fill(log: PartitionLog, durable: DurableLog, write: Callable[[CommitGroup], None]) -> None:
    filling = Filling(log, durable.base_offset, durable.snapshot)
    piece, size = CommitGroup(), 0
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
