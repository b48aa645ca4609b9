"""Settings of a store, the partitions that it has, and the parts that it needs from its owner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from barnabas.storage.journal.committer import Committer, Listener
from barnabas.storage.journal.journal import CommitGroup
from barnabas.storage.log.config import LogConfig
from barnabas.storage.log.partition_log import PartitionLog


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """Sizes of the journal and what may wait for it; bytes unless named otherwise."""

    journal_file_bytes: int = 64 * 1024 * 1024
    journal_max_bytes: int = 1024 * 1024 * 1024
    checkpoint_journal_bytes: int = 512 * 1024 * 1024
    """Maximum size of the journal that a start has to read."""
    checkpoint_early_bytes: int = 96 * 1024 * 1024
    """Journal after which a checkpoint is due when it has only few files to sync: the journal then
    goes round in few files, whose pages stay in memory (fresh pages cost more than the write)."""
    checkpoint_batches: int = 250_000
    """Batches after which a checkpoint is due, however small they are: a start has to place each of
    them again, at about 20 us."""
    checkpoint_segment_bytes: int = 4 * 1024 * 1024
    """Bytes of journal by which each segment to sync delays a checkpoint."""
    backlog_max_bytes: int = 48 * 1024 * 1024
    reserved_bytes: int = 64 * 1024 * 1024
    """Room on the disk that only the end of transactions and the broker itself may use (D10)."""
    open_files_max: int = 512
    """Maximum number of segments with an open file."""
    synced_alone_max: int = 64
    """Maximum number of files and directories that a checkpoint syncs one by one. More of them are
    synced with the whole file system, where the operating system can do that."""
    checkpoint_turn_effort: int = 256
    """Maximum effort of a checkpoint in one turn of the loop, 3 us each: an effort of 1 for each
    segment of a log, and for each producer that is written to its snapshot. The last log of a turn
    may exceed it."""


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """A partition that must exist; ``partition_id`` is never reused, ``topic_id`` has 16 bytes."""

    partition_id: int
    topic: str
    partition: int
    topic_id: bytes
    config: LogConfig
    leader_epoch: int | None = None
    """Epoch of the current leader, or `None` for the epoch of this broker's start."""

    @property
    def directory_name(self) -> str:
        """Kafka's name for the partition's directory."""
        return f"{self.topic}-{self.partition}"


class Engine(Protocol):
    """Runner of the store's work: a loop with threads, or step by step in a test."""

    def schedule(self, callback: Callable[[], None]) -> None:
        """Run ``callback`` at the end of this turn of the loop."""

    def call(self, callback: Callable[[], None]) -> None:
        """Run ``callback`` on the loop; called from any thread."""

    def start_committer(self, committer: Committer, listener: Listener) -> Runner:
        """Run ``committer`` until the runner is stopped; ``listener`` is called if it fails."""

    def run_aside(self, work: Callable[[], None]) -> None:
        """Run slow file work (syncs of a checkpoint) off the loop and off the storage threads."""


class Runner(Protocol):
    """Queue that makes groups durable, in order: a running committer, or its substitute.

    It reports refusals (``Listener.refused``) in turns of their own, never inside of a call.
    """

    def submit(self, group: CommitGroup) -> None:
        """Queue a commit group, or drop it if one of its ``run`` was refused."""

    def commit_inline(self, group: CommitGroup, meanwhile: Callable[[], None]) -> bool:
        """Make ``group`` durable at once if that is quick and no other is in flight.

        ``meanwhile`` is called once during the write to the disk; never if this returns False.
        """

    def stop(self) -> None:
        """Finish all submitted commit groups and stop. Blocks."""


@dataclass(slots=True)
class StoreCallbacks:
    """Callbacks of the store to its owner, on the loop."""

    on_advanced: Callable[[PartitionLog, int], None] = field(default=lambda _log, _size: None)
    on_visible: Callable[[], None] = field(default=lambda: None)
    """All logs of some groups have advanced: a good moment to make ready what readers get. What
    leaves must wait for the end of the turn; the groups may not be durable yet."""
    on_backlogged: Callable[[bool], None] = field(default=lambda _backlogged: None)
    on_suspected: Callable[[PartitionLog, int, Exception], None] = field(
        default=lambda _log, _base_offset, _error: None
    )
    """A read failed in the segment of a log at a base offset."""
    on_forgotten: Callable[[list[PartitionLog], frozenset[int]], None] = field(
        default=lambda _logs, _moved: None
    )
    """Called with logs that the store has closed and forgotten, after their waiters were notified.
    Partitions with one of the ids are led elsewhere or in another epoch. The others must be loaded
    again."""
    on_session_lost: Callable[[], None] = field(default=lambda: None)
    """Called when this broker leads no partition any more; ``on_forgotten`` follows."""
    on_fatal: Callable[[BaseException], None] = field(default=lambda _error: None)
