"""The part of a segment that readers use, whether its data is on this disk or not.

A class and no ``typing.Protocol``: compiled code reads the attributes of a class directly, and
those of a protocol by name. ``Segment`` has its data in a file of this broker's data directory,
``RemoteSegment`` in the store of the cluster. Code that writes, cleans, checks or repairs segments
takes ``Segment``: ``PartitionLog.local_segments``.
"""

from barnabas.storage.log.index import AbortedTransaction, SegmentIndex, TransactionIndex
from barnabas.storage.log.segment_names import LOG_SUFFIX, file_stem
from barnabas.storage.log.segment_read import ReadPlan


class ReadableSegment:
    """Batches from ``base_offset`` up to ``end_offset``; sizes in bytes of the batches."""

    is_stored = False
    """Whether the facts of a segment that is not on this disk are in the store as one part."""

    def __init__(self, base_offset: int, *, created_ms: int) -> None:
        """Create an empty segment; ``created_ms`` is the timestamp of records that have none."""
        self.base_offset = base_offset
        self.end_offset = base_offset
        self.size_bytes = 0
        self.written_bytes = 0
        self.created_ms = created_ms
        self.stem = file_stem(base_offset)
        self.transactions = TransactionIndex()

    @property
    def log_name(self) -> str:
        """Name of the `.log` file that has, or would have, the batches."""
        return self.stem + LOG_SUFFIX

    @property
    def index(self) -> SegmentIndex:
        """Offset and time index."""
        raise NotImplementedError

    @property
    def max_timestamp_ms(self) -> int:
        """The largest timestamp in the segment; -1 when no record has one."""
        raise NotImplementedError

    @property
    def data_end_offset(self) -> int:
        """The offset after the last batch: before ``end_offset`` where compaction took the rest."""
        raise NotImplementedError

    def oldest_timestamp_ms(self) -> int:
        """Return the largest timestamp of the first batch, or -1 if it is not known.

        May wait for the disk once.
        """
        raise NotImplementedError

    def add_aborted(self, aborted: AbortedTransaction) -> None:
        """Note an aborted transaction, unless the file already named it."""
        if aborted.last_offset > self.transactions.last_offset:
            self.transactions.append(aborted)

    def span(
        self,
        start_offset: int,
        end_offset: int,
        max_bytes: int,
        within: tuple[int, int],
        *,
        has_gaps: bool = False,
    ) -> ReadPlan:
        """Return the part to read for the batches from ``start_offset`` on.

        ``within``: the first byte that may be read, where a batch begins, and the end of the
        batches. ``has_gaps``: the segment may have been compacted.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Give descriptors back; the segment opens again when it is used."""
        raise NotImplementedError

    def remove(self) -> None:
        """Free the disk space of the segment; readers that hold a file open keep it."""
        raise NotImplementedError
