"""What a cluster's brokers ask of the store about what is durable: who leads may write (F1).

Sessions, and who leads, are the business of ``ClusterIndex``.

Rules of this interface:

* **A flush is all or nothing (F1), in order (F2), once (F3).** One item that somebody else may
  write refuses the whole flush. Flush n of a session's lane is committed only behind n - 1. Called
  again with a number that is committed, it answers so.
* Methods return what is so for good, whatever server fails then, those that read too. They wait
  for that, be it for ever, and call again by themselves: ``IndexClosed`` is raised out of a wait,
  ``IndexMisused`` for what no order of events excuses. After ``IndexClosed`` it is not known what
  came of the call.
* What the store can read no more is waited for, too, but by ``beginnings`` and ``extents``: they
  raise StoreDamaged, since who asks for several logs can do without one.
* They are called on threads, one at a time, never on the loop.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

ANY_BYTES: Final = 2**62
"""No limit."""


class IndexClosed(Exception):
    """The index was closed while a call waited for its answer."""


class IndexMisused(Exception):
    """The store was asked for what no order of events excuses: the caller has a bug."""


class Lane(enum.IntEnum):
    """Each has an order of its own."""

    INLINE = 0
    """Bodies lie in the store itself."""
    BULK = 1
    """Bodies lie in an object store, durable before the flush is called."""


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
    """What a partition's log start is raised to."""

    partition_id: int
    leader_epoch: int
    offset: int


@dataclass(frozen=True, slots=True)
class Flush:
    """What is committed together; a partition at most once among the items and the starts each.

    Either ``payload`` or ``key`` where there are items: the bytes, or the object that has them.
    """

    lane: Lane
    number: int
    """From 0 on, in each lane of each session."""
    items: Sequence[Item]
    starts: Sequence[LogStart] = ()
    payload: bytes | None = None
    key: str | None = None


class Outcome(enum.Enum):
    """What came of a flush."""

    COMMITTED = "committed"
    REFUSED = "refused"
    """Somebody else leads some of its partitions. Its number is the next flush's."""
    FENCED = "fenced"
    """The session has ended."""


class FlushAnswer(NamedTuple):
    """What came of a flush; ``refused`` are the partitions that somebody else leads."""

    outcome: Outcome
    refused: frozenset[int] = frozenset()


class PartitionState(NamedTuple):
    """What is known of a partition."""

    leader_session: int | None
    leader_epoch: int
    log_start_offset: int
    log_end_offset: int


class Extent(NamedTuple):
    """A part of a log that lies in the store itself."""

    base_offset: int
    next_offset: int
    leader_epoch: int
    data: bytes


class ExtentSize(NamedTuple):
    """A part of a log, without its bytes: how many they are."""

    base_offset: int
    next_offset: int
    length: int


class LogSnapshot(NamedTuple):
    """What a log's records before ``next_offset`` have left behind.

    With it they can be deleted, or replaced by those of them that compaction leaves (F4).
    """

    next_offset: int
    producers: bytes
    """As ``encode_snapshot`` has them."""
    leader_epochs: bytes
    """As ``encode_leader_epochs`` has them, and a checksum; see ``take_snapshot``."""

    @property
    def size_bytes(self) -> int:
        """How much it carries."""
        return len(self.producers) + len(self.leader_epochs)


class LogHead(NamedTuple):
    """What there is to know of a partition before its extents are read."""

    partition_id: int
    state: PartitionState
    snapshot: LogSnapshot | None

    @property
    def needless_offset(self) -> int:
        """Extents that end at or before it are needed by nobody, and may be gone."""
        if self.snapshot is None:
            return 0
        return min(self.state.log_start_offset, self.snapshot.next_offset)

    @property
    def snapshot_bytes(self) -> int:
        """How many bytes there are of the partition that are no extents."""
        return 0 if self.snapshot is None else self.snapshot.size_bytes


class LogBeginning(NamedTuple):
    """A partition with the first of its extents that are needed, all as of the same moment."""

    head: LogHead
    extents: Sequence[Extent]


class LogIndex(Protocol):
    """What is durable; see the rules at the head of this module."""

    def add_partition(self, partition_id: int, first_epoch: int = 0) -> None:
        """Make an empty partition, unless it is there, whose first leader has this epoch."""

    def commit_flush(self, session: int, flush: Flush) -> FlushAnswer:
        """Commit a flush."""

    def partition(self, partition_id: int) -> PartitionState | None:
        """Return what is known of a partition; None: there is none."""

    def extents(
        self, partition_id: int, from_offset: int, *, most: int, most_bytes: int = ANY_BYTES
    ) -> list[Extent]:
        """Return up to ``most`` extents that reach beyond an offset, in order.

        Those before which there are fewer than ``most_bytes``: one at least. A store that was too
        slow may answer with less, but with one.
        """

    def beginnings(
        self, partition_ids: Sequence[int], *, most: int, most_bytes: int
    ) -> list[LogBeginning]:
        """Return partitions by id, with the first extents that are needed; those that there are.

        The first one, however large it is, and those behind it whose snapshots fit, with the ones
        before them, into ``most_bytes``. It ends where the next does not: who is not told of one
        behind the last asks again. Up to ``most`` extents of each, and together, with the
        snapshots, not many more bytes than ``most_bytes``: there may be none of some, and more of
        each. The first extent comes, however large it is, unless ``most_bytes`` is 0. A store that
        was too slow may answer with less.
        """

    def put_snapshot(
        self, session: int, partition_id: int, epoch: int, snapshot: LogSnapshot
    ) -> bool:
        """Keep a snapshot of what is durable, in place of an older one; a newer one stays.

        False: the session does not lead the partition in this epoch.
        """

    def collect_garbage(self, most: int) -> int:
        """Delete up to ``most`` extents that nobody needs any more, and return how many.

        Those wholly below their log's start and its snapshot, and those of deleted partitions.
        Fewer than ``most``: there are no more now. Any broker may call it.
        """

    def forget(self, most: int, kept_ms: int) -> int:
        """Delete what the store has of sessions that ended ``kept_ms`` ago, and of the like.

        Up to ``most`` of each kind; return how many. Whoever acts as such a session is told that it
        has ended. Any broker may call it.
        """

    def extent_sizes(self, partition_id: int, from_offset: int, *, most: int) -> list[ExtentSize]:
        """Return up to ``most`` extents that reach beyond an offset, in order."""

    def replace_extents(
        self, session: int, partition_id: int, epoch: int, extents: Sequence[Extent]
    ) -> bool:
        """Put extents in the place of those that cover the same offsets, which are compacted.

        All of them lie at or before the partition's snapshot. False: the session does not lead the
        partition in this epoch, or its log starts behind the first of them by now, so that some may
        be garbage that is gone; nothing has changed.
        """

    def close(self) -> None:
        """End whatever waits, on whichever thread."""
