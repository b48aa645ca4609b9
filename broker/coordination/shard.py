"""One partition of a coordinator's topic: its log and the state machine of its keys.

Which partition a key belongs to is found here, and how a decision's records become a batch: one, so
that all of them are appended or none.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from barnabas.protocol.records import (
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    BatchHeader,
    encode_batch,
    encode_record,
    encode_single,
    seal,
)
from barnabas.protocol.records import NO_PRODUCER_ID as NO_PRODUCER
from barnabas.protocol.records import Record as LogRecord

if TYPE_CHECKING:
    from barnabas.coordinator.decision import Decision, Effect, LongDecision, Now, Record
    from barnabas.storage.log.partition_log import PartitionLog

REMEMBERED: Final = 4096
REMEMBERED_LENGTH_MAX: Final = 256
"""Number of hashes in the cache, and the most characters of a key in it."""
RECORDS_PER_SLICE: Final = 250
"""Records encoded or applied before the loop may get a turn: a few milliseconds' work."""


class Machine(Protocol):
    """State and decisions of the keys of one partition."""

    def decide(self, command: Any, now: Now) -> Decision:  # noqa: ANN401
        """Return the decision on a command; changes nothing."""

    def apply(self, record: Record, offset: int) -> None:
        """Apply a record of the log."""

    def end_transaction(self, producer_id: int, *, commit: bool) -> Iterator[None] | None:
        """Apply the marker that ends a producer's transaction on the partition.

        Returns the remaining steps if that takes long; no command is decided before the last one.
        """

    def change(self, change: object) -> None:
        """Apply a change that is not stored."""

    def begin(self, now: Now) -> tuple[Effect, ...]:
        """Return the effects that are due after a start."""

    def set_aside(self, record_key: bytes) -> bool:
        """Skip the key of an unreadable record; return False if that would harm other keys."""

    def keys(self) -> list[str]:
        """Return every key."""

    def forget(self) -> None:
        """Undo registrations outside the machine, which is no longer used."""


MachineT = TypeVar("MachineT", bound=Machine)


class Shard(Generic[MachineT]):
    """One partition of the internal topic with its machine."""

    __slots__ = ("index", "is_gone", "is_loaded", "log", "machine", "partition_count")

    def __init__(
        self, index: int, partition_count: int, log: PartitionLog, machine: MachineT
    ) -> None:
        """``index`` is the partition's number among the ``partition_count`` of the topic."""
        self.index = index
        self.partition_count = partition_count
        self.log = log
        self.machine = machine
        self.is_loaded = False
        self.is_gone = False
        """Whether the partition was lost: work under way is dropped."""

    def owns(self, key: str) -> bool:
        """Whether a key belongs to this partition, by Kafka's hash of it."""
        return java_hash(key) % self.partition_count == self.index

    def apply(self, decision: Decision, base_offset: int) -> None:
        """Apply a decision to the machine; its first record is at ``base_offset``."""
        for number, record in enumerate(decision.records):
            self.machine.apply(record, base_offset + number)
        for change in decision.changes:
            self.machine.change(change)


# -------------------------------------------------------------------------------------- partitions


def java_hash(text: str) -> int:
    """Return Kafka's hash of a group or transactional id, which is never negative.

    It is the hash of Java's String over UTF-16 units; the one value without a positive counterpart
    becomes 0.
    """
    return _remembered(text) if len(text) <= REMEMBERED_LENGTH_MAX else _computed(text)


def _computed(text: str) -> int:
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for at in range(0, len(units), 2):
        value = (31 * value + (units[at] << 8 | units[at + 1])) & 0xFFFF_FFFF
    if value == 0x8000_0000:
        return 0
    return value if value < 0x8000_0000 else 0x1_0000_0000 - value


_remembered = lru_cache(REMEMBERED)(_computed)


# ----------------------------------------------------------------------------------------- batches


def decision_batch(decision: Decision, now_ms: int) -> memoryview:
    """Return the records of a decision, of which there is at least one."""
    records, producer = decision.records, decision.producer
    if len(records) == 1 and producer is None:
        key, value = records[0].encode()
        return memoryview(encode_single(now_ms, key, value))
    encoded = [
        LogRecord(number, now_ms, *record.encode(), ()) for number, record in enumerate(records)
    ]
    if producer is None:
        return memoryview(encode_batch(encoded))
    # Kafka's coordinator numbers what it writes for a producer from 0 each time (measured).
    batch = encode_batch(
        encoded,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        base_sequence=0,
        transactional=True,
    )
    return memoryview(batch)


def batch_in_slices(
    decision: LongDecision, now_ms: int, refuse_too_large: Callable[[int], None]
) -> Generator[None, None, memoryview | None]:
    """Return the records of a long decision as one batch, or None if it has none.

    ``refuse_too_large`` is called with the size so far, and raises if that is too large.
    """
    encoded: list[bytes] = []
    size_bytes = 0
    for number, record in enumerate(decision.records):
        data = _encoded_record(record, number, now_ms)
        encoded.append(data)
        size_bytes += len(data)
        if number % RECORDS_PER_SLICE == 0:
            refuse_too_large(size_bytes)
            yield
    refuse_too_large(size_bytes)
    return _sealed_batch(encoded, now_ms) if encoded else None


def _encoded_record(record: Record, number: int, now_ms: int) -> bytes:
    return encode_record(LogRecord(number, now_ms, *record.encode(), ()), 0, now_ms)


def _sealed_batch(encoded: list[bytes], now_ms: int) -> memoryview:
    header = BatchHeader(
        base_offset=0,
        batch_length=0,
        partition_leader_epoch=NO_LEADER_EPOCH,
        magic=MAGIC,
        crc=0,
        attributes=0,
        last_offset_delta=len(encoded) - 1,
        base_timestamp=now_ms,
        max_timestamp=now_ms,
        producer_id=NO_PRODUCER,
        producer_epoch=NO_PRODUCER_EPOCH,
        base_sequence=NO_SEQUENCE,
        record_count=len(encoded),
    )
    return memoryview(seal(header, b"".join(encoded)))
