"""The side of the store that a partition's log calls."""

from collections.abc import Callable
from typing import Protocol, TypeVar

from barnabas.storage.journal.journal import Journal

Log_contra = TypeVar("Log_contra", contravariant=True)


class Environment(Protocol[Log_contra]):
    """Parts of the store that a log uses."""

    journal: Journal
    full: bool
    """Whether appends of clients are refused, because no more than the disk's reserve is free
    (D10)."""
    exhausted: bool
    """Whether the reserve is used up as well: markers are refused too."""
    is_cache: bool
    """Whether no later process reads the files, because the records are in a cluster's store."""
    duplicates: int
    """The number of repeated batches of all logs, with those of deleted logs."""

    @property
    def now_ms(self) -> Callable[[], int]:
        """Return the time of the wall clock."""

    def on_advanced(self, log: Log_contra, count: int, size_bytes: int) -> None:
        """Report that a log's visible end moved by ``count`` offsets; with 0 its start moved."""

    def on_suspected(self, log: Log_contra, base_offset: int, error: Exception) -> None:
        """Request the verification of the segment at ``base_offset`` after a failed read."""
