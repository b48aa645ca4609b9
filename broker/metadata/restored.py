"""Counters that a restored directory must not give out twice: producer ids and leader epochs.

A restored directory is as old as its backup; the original continued after that, and its clients may
still run. If a producer id is given out twice, a batch of one producer is taken for a repetition of
the other's and acknowledged without being stored. If a leader epoch is used twice, a consumer
cannot see that the log went back (KIP-320). So the first start of a restored directory derives both
from the time: they are above all that was used before, in the original and in every directory that
was restored earlier, even from the same backup.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from barnabas.storage.files.file_system import FileSystem
    from barnabas.storage.metastore.interface import MetaStore

RESTORED_MARK: Final = "barnabas-restored"
"""Name of the file that marks a directory as put back and not started since; it may be empty."""

_TEXT: Final = b"Restored: the next start begins new producer ids and leader epochs.\n"
_YEAR_2026_S: Final = 1_767_225_600
_SECONDS_PER_EPOCH: Final = 2
"""Seconds for each epoch: a start takes one epoch, and lasts longer than this. The epochs reach
2^30 in 2094; recovery ignores markers with larger ones."""
_EPOCHS_MIN: Final = 1 << 16
"""Minimum step, for a wrong clock: a broker has had fewer starts since its backup."""
_ERA_BITS: Final = 24
"""Producer ids skipped for each second: 16.8 million, more than can be allocated, since every
thousand takes a commit. Until 2043 the ids stay below 2^53, above which JavaScript rounds them."""


def mark_restored(file_system: FileSystem, directory: str) -> None:
    """Make the next start in a directory use new producer IDs and leader epochs."""
    file_system.write_file_atomically(file_system.join(directory, RESTORED_MARK), _TEXT)


def is_restored(file_system: FileSystem, directory: str) -> bool:
    """Whether a directory was restored and no broker has started in it since."""
    return file_system.exists(file_system.join(directory, RESTORED_MARK))


def counters_after_restore(
    next_producer_id: int, newest_epoch: int, now_ms: int
) -> tuple[int, int]:
    """Return a producer id and an epoch above all that other copies of a store have used.

    ``next_producer_id`` and ``newest_epoch`` are those of this copy.
    """
    seconds = now_ms // 1000 - _YEAR_2026_S
    used_era = next_producer_id >> _ERA_BITS
    return (
        max(seconds, used_era + 2) << _ERA_BITS,
        max(seconds // _SECONDS_PER_EPOCH, newest_epoch + _EPOCHS_MIN),
    )


def advance_counters(metastore: MetaStore, now_ms: int) -> None:
    """Raise producer ids and the boot epoch above all that other copies of the store have used.

    A second call is harmless.
    """
    next_producer_id = metastore.load().next_producer_id
    producer_id, epoch = counters_after_restore(next_producer_id, metastore.boot_epoch, now_ms)
    metastore.raise_producer_ids(producer_id)
    metastore.raise_boot_epoch(epoch)


def unmark_restored(file_system: FileSystem, directory: str) -> None:
    """Record, durably, that the counters were raised."""
    file_system.unlink(file_system.join(directory, RESTORED_MARK))
    file_system.sync_directory(directory)


def era_start(next_producer_id: int) -> int:
    """Return the first producer id that no other copy of the store has allocated.

    ``next_producer_id`` is the first free id. In the original store, a transactional id with a
    smaller producer id may have had later epochs of it.
    """
    return max(next_producer_id - 1, 0) >> _ERA_BITS << _ERA_BITS
