"""One partition of a coordinator's topic: its log and the state machine of its keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from barnabas.broker.coordination.key_hash import java_hash

if TYPE_CHECKING:
    from barnabas.coordinator.decision import Decision, Effect, Now, Record
    from barnabas.storage.partition_log import PartitionLog


class Machine(Protocol):
    """What a coordinator decides for the keys of one partition."""

    def decide(self, command: Any, now: Now) -> Decision:  # noqa: ANN401
        """Judge a command; changes nothing."""

    def apply(self, record: Record, offset: int) -> None:
        """Take in a record of the log."""

    def end_transaction(self, producer_id: int, *, commit: bool) -> Iterator[None] | None:
        """Take in the marker that ends a producer's transaction on the partition.

        Returns the steps that are left where that takes long. Nothing is decided before the last
        of them is taken.
        """

    def change(self, change: object) -> None:
        """Take in a volatile change."""

    def begin(self, now: Now) -> tuple[Effect, ...]:
        """Return what is due after a start."""

    def set_aside(self, record_key: bytes) -> bool:
        """Go on without what an unreadable record is about; False where that would harm others."""

    def keys(self) -> list[str]:
        """Every key there is."""

    def forget(self) -> None:
        """Take back what was noted outside of the machine: it is given up."""


MachineT = TypeVar("MachineT", bound=Machine)


class Shard(Generic[MachineT]):
    """One partition of the internal topic with its machine."""

    __slots__ = ("index", "is_gone", "is_loaded", "log", "machine", "partition_count")

    def __init__(
        self, index: int, partition_count: int, log: PartitionLog, machine: MachineT
    ) -> None:
        """``index``: which of the topic's ``partition_count`` partitions it is."""
        self.index = index
        self.partition_count = partition_count
        self.log = log
        self.machine = machine
        self.is_loaded = False
        self.is_gone = False
        """Whether the partition was lost: what is under way comes to nothing."""

    def owns(self, key: str) -> bool:
        """Whether a key belongs to this partition, by Kafka's hash of it."""
        return java_hash(key) % self.partition_count == self.index

    def apply(self, decision: Decision, base_offset: int) -> None:
        """Let the machine take in what was decided; the first record stands at ``base_offset``."""
        for number, record in enumerate(decision.records):
            self.machine.apply(record, base_offset + number)
        for change in decision.changes:
            self.machine.change(change)
