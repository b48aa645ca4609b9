"""The store's interface for durable logs: only the leader of a partition may write (F1).

Sessions and leaders belong to ``ClusterIndex``.

Rules of this interface:

* **A flush is all or nothing (F1), in order (F2), once (F3).** One item that only another broker
  may write refuses the whole flush. Flush n of a session's lane is committed only after n - 1. A
  repeated call with a committed number returns that outcome again.
* Results are final, also those of reads, regardless of servers that fail then. Methods wait for
  them without limit, and repeat their calls: ``IndexClosed`` is raised out of a wait,
  ``IndexMisused`` for calls that are wrong in any order of events. After ``IndexClosed`` the
  outcome of the call is unknown.
* Data that the store cannot read are awaited, too, except by ``beginnings`` and ``extents``: they
  raise StoreDamaged, since a caller that needs several logs can do without one. So do
  ``pack_extents`` and ``space``, since other upkeep does not wait for them.
* They are called on threads, one at a time, never on the loop.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from barnabas.storage.replicated.wal_object import FooterBatch

from barnabas.storage.objects.blob_store import SEGMENTS_PREFIX

ANY_BYTES: Final = 2**62
"""A limit that is never reached."""


class IndexMisused(Exception):
    """A call that is wrong in any order of events: the caller has a bug."""


class Lane(enum.IntEnum):
    """Each has an order of its own."""

    INLINE = 0
    """Bodies lie in the store itself, in the flush or put under a key before."""
    BULK = 1
    """Bodies lie in an object store, durable before the flush is called."""
    PACKING = 2
    """Lane of the numbers of packed segments, which are not committed by a flush."""


class Item(NamedTuple):
    """The offsets from ``base_offset`` up to ``next_offset`` of a partition, and where they lie.

    ``position`` and ``length`` are bytes of the flush's payload, or of its object.
    """

    partition_id: int
    leader_epoch: int
    base_offset: int
    next_offset: int
    position: int
    length: int


class LogStart(NamedTuple):
    """A new start offset of a partition's log."""

    partition_id: int
    leader_epoch: int
    offset: int


class ObjectSize(NamedTuple):
    """Size of an object of the object store, in bytes."""

    footer_at: int
    """Position of the footer, where the bodies end."""
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Flush:
    """Items and starts that are committed together; each has a partition at most once.

    Either ``payload`` or ``key`` is set if there are items: the bytes, or the object that has them.
    The object is durable before the flush is called (F6). A flush is called again with the same key
    until it has an outcome. Only after a refusal its number may be used with another key (F7).
    ``size`` is set if that object is in an object store, and None if it is in the index itself.
    """

    lane: Lane
    number: int
    """Number of the flush in its lane of its session, from 0 on."""
    items: Sequence[Item]
    starts: Sequence[LogStart] = ()
    payload: bytes | None = None
    key: str | None = None
    size: ObjectSize | None = None


class Outcome(enum.Enum):
    """Outcome of a flush."""

    COMMITTED = "committed"
    REFUSED = "refused"
    """Another broker leads some of the flush's partitions. The next flush uses its number."""
    FENCED = "fenced"
    """The session has ended."""


class FlushAnswer(NamedTuple):
    """Outcome of a flush; ``refused`` are the partitions that another broker leads."""

    outcome: Outcome
    refused: frozenset[int] = frozenset()


class PartitionState(NamedTuple):
    """Leader and offsets of a partition."""

    leader_session: int | None
    leader_epoch: int
    log_start_offset: int
    log_end_offset: int


class ObjectPlace(NamedTuple):
    """Some bytes of an object of the object store."""

    key: str
    position: int
    length: int
    size: ObjectSize


class Extent(NamedTuple):
    """A part of a log: its bytes, or the place of them in the object store."""

    base_offset: int
    next_offset: int
    leader_epoch: int
    data: bytes
    place: ObjectPlace | None = None
    """Place of the bytes, or None if ``data`` has them."""

    @property
    def size_bytes(self) -> int:
        """Size of the bytes, wherever they are."""
        return len(self.data) if self.place is None else self.place.length


class ExtentSize(NamedTuple):
    """A part of a log, without its bytes: how many they are."""

    base_offset: int
    next_offset: int
    length: int
    key: str | None = None
    """Key of its object, if that is in an object store or is a packed segment."""

    @property
    def is_segment(self) -> bool:
        """Whether it is a packed segment."""
        return self.key is not None and self.key.startswith(SEGMENTS_PREFIX)


class SegmentExtent(NamedTuple):
    """A part of a log that is a packed segment: an object with nothing else."""

    base_offset: int
    next_offset: int
    leader_epoch: int
    """The last epoch of its batches."""
    length: int
    key: str
    in_object_store: bool = False
    """Whether the object keeps its key; otherwise its bytes belong to the index from then on."""


class PackedExtents(NamedTuple):
    """Number and size of the extents that one call has packed."""

    extents: int
    size_bytes: int


class StoredSpace(NamedTuple):
    """Space that deleted extents take in the store, because other extents of their payloads live.

    The store frees a payload as a whole, once none of its extents lives (F6).
    """

    pinned_bytes: int
    """Size of these deleted extents."""
    backlog_bytes: int
    """The part of ``pinned_bytes`` that ``LogIndex.pack_extents`` would free now, or that it could
    not free because the store cannot read the payload."""


NO_SPACE: Final = StoredSpace(0, 0)


class LogSnapshot(NamedTuple):
    """State that a log's records before ``next_offset`` have left.

    With it they can be deleted, or replaced by the remaining ones after compaction (F4).
    """

    next_offset: int
    producers: bytes
    """Producer state, in the format of ``encode_snapshot``."""
    leader_epochs: bytes
    """Leader epochs, in the format of ``encode_leader_epochs``, and a checksum; see
    ``take_snapshot``."""

    @property
    def size_bytes(self) -> int:
        """Size of its two parts in bytes."""
        return len(self.producers) + len(self.leader_epochs)


class LogPart(NamedTuple):
    """A part of a log before its snapshot, and the facts that its leader keeps about its
    records.
    """

    base_offset: int
    next_offset: int
    facts: bytes
    """See ``storage/replicated/log_parts.py``."""


class LogHead(NamedTuple):
    """Facts about a partition, known before its extents are read."""

    partition_id: int
    state: PartitionState
    snapshot: LogSnapshot | None

    @property
    def needless_offset(self) -> int:
        """Extents that end at or before it are not needed, and may have been deleted."""
        if self.snapshot is None:
            return 0
        return min(self.state.log_start_offset, self.snapshot.next_offset)

    @property
    def snapshot_bytes(self) -> int:
        """Bytes of the partition besides its extents."""
        return 0 if self.snapshot is None else self.snapshot.size_bytes


class LogBeginning(NamedTuple):
    """The head of a partition's log and its first needed extents, as of one moment."""

    head: LogHead
    extents: Sequence[Extent]
    is_recent: bool = False
    """Whether the extents begin at the snapshot; records before it may be parts of the log."""

    @property
    def first_offset(self) -> int:
        """The offset from which on extents are needed."""
        snapshot = self.head.snapshot
        if self.is_recent and snapshot is not None:
            return snapshot.next_offset
        return self.head.needless_offset


class LogIndex(Protocol):
    """The durable logs; see the rules at the head of this module."""

    def add_partition(self, partition_id: int, first_epoch: int = 0) -> None:
        """Create an empty partition whose first leader has this epoch, unless it exists."""

    def commit_flush(self, session: int, flush: Flush) -> FlushAnswer:
        """Commit a flush."""

    def partition(self, partition_id: int) -> PartitionState | None:
        """Return the state of a partition, or None if it does not exist."""

    def extents(
        self, partition_id: int, from_offset: int, *, most: int, most_bytes: int = ANY_BYTES
    ) -> list[Extent]:
        """Return up to ``most`` extents that reach beyond an offset, in order.

        Those before which there are fewer than ``most_bytes``: one at least. A store that was too
        slow may answer with less, but with one.
        """

    def bodies(self, extents: Sequence[Extent], within_s: float | None = None) -> list[Extent]:
        """Return the same extents with their bytes.

        ``within_s``: None to repeat calls of the object store until they succeed; otherwise
        BlobStoreError is raised if one fails, or has no response in this time.
        Raises ObjectDamaged if the object store has not all bytes of them.
        """

    def headers(self, extents: Sequence[Extent]) -> list[Sequence[FooterBatch]]:
        """Return the batches of extents from the footers: their headers, and whole control batches.

        Raises ObjectDamaged if the object store lacks the footer of an extent.
        """

    def beginnings(
        self, partition_ids: Sequence[int], *, most: int, most_bytes: int
    ) -> list[LogBeginning]:
        """Return the existing ones of these partitions by ID, with their first needed extents.

        The first partition, regardless of its size, and later ones whose snapshots fit, with the
        ones before them, into ``most_bytes``. The result ends where the next does not fit: the
        caller requests missing partitions again. Up to ``most`` extents of each, and together, with
        the snapshots, not many more bytes than ``most_bytes``: there may be none of some, and more
        of each. The first extent is returned regardless of its size, unless ``most_bytes`` is 0. A
        store that was too slow may return less.
        """

    def recent_beginnings(
        self, partition_ids: Sequence[int], *, most: int, most_bytes: int
    ) -> list[LogBeginning]:
        """Return the beginnings without the data that a log's parts replace."""

    def put_snapshot(
        self,
        session: int,
        partition_id: int,
        epoch: int,
        snapshot: LogSnapshot,
        parts: Sequence[LogPart] | None = None,
    ) -> bool:
        """Store a snapshot of durable state unless a newer one is stored.

        ``parts`` replace those with the same offsets, and those before which a part is missing.
        They touch each other and end at the snapshot. Without any, all parts are deleted; None
        leaves all of them. Returns False if the session does not lead the partition in this epoch.
        """

    def parts(self, from_offsets: Mapping[int, int], *, most: int) -> dict[int, list[LogPart]]:
        """Return the parts of partitions after an offset each, in order.

        At most ``most`` for a partition; a partition without any may be missing in the result.
        """

    def collect_garbage(self, most: int) -> int:
        """Delete up to ``most`` unneeded extents, and return their number.

        Those wholly below their log's start and its snapshot, and those of deleted partitions.
        Fewer than ``most`` means that no more exist now. Any broker may call it.
        """

    def pack_extents(self, most: int, most_bytes: int, rest_ms: int) -> PackedExtents:
        """Copy extents out of sparse payloads, so that the store frees these (F12).

        A payload is sparse if more than a quarter of it is deleted extents; those that became so
        ``rest_ms`` ago are packed. The copies are in payloads of one partition each. Every read
        returns the same before and after it. Packs whole payloads: the first, and more up to
        ``most`` extents and ``most_bytes``. No extents mean that none are left. Any broker may
        call it.
        """

    def space(self, rest_ms: int) -> StoredSpace:
        """Return the space that deleted extents take now; ``rest_ms`` as for ``pack_extents``."""

    def dead_keys(self, keys: Sequence[str]) -> Sequence[str]:
        """Return those of the keys of objects that no flush has named, nor ever will (F9).

        Their session has ended, or their number is used up by a flush that names another key. The
        result is durable, so their objects can be deleted at any later time (F10).
        """

    def dereferenced_keys(self, most: int, rest_ms: int) -> Sequence[str]:
        """Return up to ``most`` keys whose objects have no extents any more, since ``rest_ms``.

        They are objects of the object store that flushes have named. The result is durable, as that
        of ``dead_keys``.
        """

    def forget_keys(self, keys: Sequence[str]) -> None:
        """Drop dereferenced keys whose objects are deleted."""

    def forget(self, most: int, kept_ms: int) -> int:
        """Delete rows of sessions, and of other objects, that ended ``kept_ms`` ago.

        Up to ``most`` of each kind; returns their number. A later call for such a session reports
        that it has ended. Any broker may call it.
        """

    def extent_sizes(self, partition_id: int, from_offset: int, *, most: int) -> list[ExtentSize]:
        """Return up to ``most`` extents that reach beyond an offset, in order."""

    def replace_extents(
        self,
        session: int,
        partition_id: int,
        epoch: int,
        extents: Sequence[Extent],
        *,
        keeps_size: bool = False,
    ) -> bool:
        """Replace the extents that cover the same offsets by these.

        All of them lie at or before the partition's snapshot. Returns False, without any change, if
        the session does not lead the partition in this epoch. It also does if the log now starts
        after the first of them, so that some may be deleted garbage. These extents are compacted,
        or have the same bytes with ``keeps_size``: then False, too, if the size is another one.
        """

    def replace_by_segment(
        self, session: int, partition_id: int, epoch: int, number: int, segment: SegmentExtent
    ) -> bool:
        """Replace the extents that cover the same offsets by a packed segment with their bytes.

        All of them lie at or before the partition's snapshot. Its object and its sidecar are
        durable (F6). ``number`` is the next one of the session's packing lane, and is used up if
        the result is True. A repeated call returns True as long as the segment is part of the log.
        Returns False, without any change, as ``replace_extents``: ``skip_number`` gives up the
        number then.
        """

    def append_segment(
        self, session: int, partition_id: int, epoch: int, number: int, segment: SegmentExtent
    ) -> bool:
        """Append a packed segment of the object store to a log, as an import does.

        Numbers and results as those of ``replace_by_segment``.
        """

    def skip_number(self, session: int, number: int) -> None:
        """Use up a number of the session's packing lane; no segment is written under its keys."""

    def close(self) -> None:
        """End every wait, on any thread."""
