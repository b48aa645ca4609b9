"""The files of a log that hold snapshots of its producer state."""

from collections.abc import Iterable
from functools import partial

from barnabas.storage.journal.journal import Operation
from barnabas.storage.log.log_directory import LogDirectory
from barnabas.storage.log.producer_snapshot import encode_snapshot
from barnabas.storage.log.producers import ProducerState
from barnabas.storage.log.readable_segment import ReadableSegment
from barnabas.storage.log.segment_names import SNAPSHOT_SUFFIX, file_stem


class SnapshotFiles:
    """Offsets of the snapshot files of one log, and the appends since the newest of them."""

    __slots__ = ("batches_since", "newest_offset", "offsets")

    def __init__(self) -> None:
        self.newest_offset = 0
        """The end of the log in the newest snapshot, or 0 before the first one."""
        self.offsets: set[int] = set()
        """The offsets of all files."""
        self.batches_since = 0
        """The number of batches appended since the newest snapshot."""

    def operation(
        self, directory: LogDirectory, producers: ProducerState, offset: int
    ) -> Operation:
        """Return a function that writes the producer state at ``offset``, the newest snapshot."""
        data = encode_snapshot(producers)
        self.newest_offset = offset
        self.offsets.add(offset)
        self.batches_since = 0
        return partial(directory.write_file, file_stem(offset) + SNAPSHOT_SUFFIX, data)

    def take_superseded(self, segments: Iterable[ReadableSegment]) -> list[str]:
        """Return the names of files that are not needed once the newest one is durable.

        As Kafka does, those at the start of one of ``segments`` are kept.
        """
        if self.offsets <= {self.newest_offset}:
            return []  # As with most of thousands of logs that a checkpoint walks over.
        starts = {segment.base_offset for segment in segments}
        superseded = {
            offset
            for offset in self.offsets
            if offset < self.newest_offset and offset not in starts
        }
        self.offsets -= superseded
        return [file_stem(offset) + SNAPSHOT_SUFFIX for offset in sorted(superseded)]
