"""Errors of storage: refused requests and damaged data.

A refusal changes no state: after any of these the log is as it was (S5). The broker maps refusals
to the protocol's error codes in one table (``broker/api/storage_errors.py``); a refusal without a
row in it fails a test.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from barnabas.storage.record_rule import RecordRule


class StorageError(Exception):
    """Base of everything storage raises on purpose."""


class Rejected(StorageError):
    """One append or read was refused; the log is unchanged."""

    rule: RecordRule | None = None
    """The rule that some records of the batch break, where they can be named."""
    keyless = 0
    """Number of records without a key, if the batch is refused for them."""


class OffsetOutOfRange(Rejected):
    """The offset lies before the log start or after the log end."""


class RecordTooLarge(Rejected):
    """The batch is larger than ``max.message.bytes`` of its topic."""


class InvalidRecord(Rejected):
    """The batch breaks a rule of the format or of its topic (a null key on a compacted topic)."""


class CorruptMessage(Rejected):
    """The batch's checksum or framing is wrong."""


class InvalidTimestamp(Rejected):
    """The batch's timestamp is farther from the broker's clock than its topic allows."""


class OutOfOrderSequence(Rejected):
    """The batch does not continue its producer's sequence (S5, S6)."""


class InvalidProducerEpoch(Rejected):
    """The batch carries an epoch older than the one known for its producer (S8)."""


class InvalidTransactionState(Rejected):
    """The batch does not fit its producer's transaction on this partition (P4)."""


class TransactionCoordinatorFenced(Rejected):
    """The marker comes from an older coordinator epoch than one already seen (M3)."""


PRODUCER_REFUSALS: Final[dict[int, type[Rejected]]] = {
    45: OutOfOrderSequence,
    47: InvalidProducerEpoch,
    48: InvalidTransactionState,
    52: TransactionCoordinatorFenced,
}
"""Refusals by the error code of Kafka that the producer state of a log returns."""


class StorageFull(Rejected):
    """The disk's free space is down to the emergency reserve; reads are still served (D10)."""


class OffsetOffline(Rejected):
    """The offset lies in a damaged range; records before and after it can be read."""


class LogClosed(Rejected):
    """The partition was deleted, is led elsewhere by now, or the store is shutting down."""


class LedSince(StorageError):
    """A log that was to be loaded is led by another broker now, or in a later epoch."""


class NoRoom(StorageError):
    """A log to be loaded does not fit on the disk; no part of it is left on the disk.

    The caller loads it again later: the batches may come from a cluster's store.
    """

    def __init__(self, partition_id: int, needed_bytes: int) -> None:
        """``needed_bytes``: the bytes read when the disk became full; the log may need more."""
        super().__init__(f"partition {partition_id} needs more than {needed_bytes} bytes of disk")
        self.needed_bytes = needed_bytes


class StoreSilent(StorageError):
    """The store of a cluster has not returned records in time; they can be read later."""


class StoreDamaged(StorageError):
    """The store cannot read the requested logs; other logs may be readable."""


class ObjectDamaged(StorageError):
    """The object store lacks an object that holds records, or some of its bytes."""


class StoreUnusable(StorageError):
    """The store of a cluster responds, but cannot be used in its state or by its address."""


class Corrupt(StorageError):
    """Bytes that were durable do not read back as written; the broker refuses to start (D7)."""

    def __init__(self, path: str, position: int, reason: str) -> None:
        """Name the file, the byte position, and the damage."""
        super().__init__(f"{path} is corrupt at byte {position}: {reason}")
        self.path = path
        self.position = position
        self.reason = reason


class StrayDirectory(Corrupt):
    """A partition's directory that belongs to no topic, not even to a deleted one."""

    def __init__(self, path: str) -> None:
        """Name two possible reasons: the metadata was lost, or another broker wrote here."""
        reason = "no topic owns it; is the metadata file missing, or another broker's data here?"
        super().__init__(path, 0, reason)
        self.args = (f"{path}: {reason}",)


class NotStoppedByKafka(StorageError):
    """A directory that Apache Kafka has not closed: it crashed, was killed, or still runs."""

    def __init__(self, root: str, mark: str) -> None:
        """Name the directory and the file by which Kafka says that it closed all logs."""
        super().__init__(
            f"{root}: Apache Kafka has not stopped cleanly in this data directory, or still runs in"
            f" it: {mark} is missing; start Kafka there, stop it with SIGTERM, and start again"
        )


class UsedByKafkaSince(StorageError):
    """A directory of Barnabas in which Apache Kafka has run since."""

    def __init__(self, root: str, sign: str) -> None:
        """Name the directory, and the sign by which Kafka's run is known."""
        super().__init__(
            f"{root}: Apache Kafka has run in this data directory after Barnabas ({sign}); a start"
            " would cut off the records that Kafka has acknowledged. To take over what Kafka left,"
            " stop Kafka there with SIGTERM and move the files barnabas-* out of the directory"
        )


class TakeOverRefused(StorageError):
    """A directory of Apache Kafka that cannot be taken over; it is unchanged."""

    def __init__(self, root: str, reason: str) -> None:
        """Name the directory, and the reason, which names the file or the topic."""
        super().__init__(f"{root}: not taken over from Apache Kafka, and unchanged: {reason}")


class NotACache(StorageError):
    """A directory that is to be a cache contains other files, and is not emptied."""

    def __init__(self, path: str, name: str) -> None:
        """Name the first entry that was found in the directory."""
        super().__init__(
            f"{path} is to be a broker's cache, which is emptied at every start, and holds {name}; "
            "only a directory that was empty at first becomes one"
        )


class IndexClosed(Exception):
    """The index was closed while a call waited for its response."""
