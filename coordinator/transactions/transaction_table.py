"""The transactional ids of one partition of ``__transaction_state``, as its records say them."""

from __future__ import annotations

from operator import itemgetter

from barnabas.coordinator.decision import Record
from barnabas.coordinator.transactions.commands import MarkersLost, MarkersPlaced
from barnabas.coordinator.transactions.state import (
    NO_PRODUCER_ID,
    TRANSACTIONS_V2,
    TopicPartition,
    Transaction,
    record_of,
    transaction_of,
)
from barnabas.protocol.errors import KafkaError, Malformed
from barnabas.protocol.messages.transaction_log_record import TRANSACTION_LOG_RECORD

_topic = itemgetter(0)
_partition = itemgetter(1)


class TransactionTable:
    """The state of all transactional ids whose hash falls to one partition, from its records."""

    def __init__(
        self,
        transaction_version: int = TRANSACTIONS_V2,
        producer_ids: dict[int, str] | None = None,
    ) -> None:
        """``transaction_version``: the level of Kafka's feature of that name, 0 to 2.

        ``producer_ids``: where to note which producer ids belong to whom; shared by all tables.
        """
        self.transaction_version = transaction_version
        self._producer_ids = {} if producer_ids is None else producer_ids
        self.transactions: dict[str, Transaction] = {}
        self.open: dict[str, Transaction] = {}
        """Transactions that have started and are not yet complete on each partition."""
        self._awaiting: dict[str, set[TopicPartition]] = {}
        self.quarantined: set[str] = set()
        """Ids whose latest record cannot be read: nothing is known of them, nothing is decided."""
        self.drift_ms = 0
        """Lead of the wall clock over the monotonic clock at the start, in milliseconds."""

    def apply(self, record: Record, offset: int) -> None:  # noqa: ARG002
        """Apply a record; raises ValueError for an invalid one."""
        key = record.key.transactional_id
        self.quarantined.discard(key)
        known = self.transactions.get(key)
        if record.value is None:
            if known is not None:
                self._note_producer_ids(known, None)
                del self.transactions[key]
            self.open.pop(key, None)
            self._awaiting.pop(key, None)
            return
        transaction = self.transactions[key] = transaction_of(record)
        self._note_producer_ids(known, transaction)
        if transaction.state.is_idle:
            self.open.pop(key, None)
        else:
            self.open[key] = transaction
        if transaction.state.is_decided:
            self._awaiting[key] = set(transaction.partitions)
        else:
            self._awaiting.pop(key, None)

    def _note_producer_ids(self, before: Transaction | None, after: Transaction | None) -> None:
        """Register the present and the next producer ID of a transactional ID.

        The id before the latest rotation is not among them: no producer writes with it any more.
        """
        if before is not None:
            if (
                after is not None
                and before.producer_id == after.producer_id
                and before.next_producer_id == after.next_producer_id
            ):
                return
            self._producer_ids.pop(before.producer_id, None)
            self._producer_ids.pop(before.next_producer_id, None)
        if after is not None:
            self._producer_ids[after.producer_id] = after.transactional_id
            if after.next_producer_id != NO_PRODUCER_ID:
                self._producer_ids[after.next_producer_id] = after.transactional_id

    def forget(self) -> None:
        """Unregister the producer IDs of this table, which is no longer used."""
        for transaction in self.transactions.values():
            self._note_producer_ids(transaction, None)

    def set_aside(self, record_key: bytes) -> bool:
        """Refuse one id whose latest record cannot be read, and serve the others."""
        try:
            transactional_id = TRANSACTION_LOG_RECORD.decode_key(record_key).transactional_id
        except (KafkaError, Malformed):
            return False
        self.quarantine(transactional_id)
        return True

    def quarantine(self, transactional_id: str) -> None:
        """Mark an ID whose latest record cannot be read. Its producers have to wait: a coordinator
        that ignored the record could not fence older producers (D8).
        """
        self.transactions.pop(transactional_id, None)
        self.open.pop(transactional_id, None)
        self._awaiting.pop(transactional_id, None)
        self.quarantined.add(transactional_id)

    def change(self, change: object) -> None:
        """Record that partitions have their marker, or need it again."""
        if isinstance(change, MarkersLost):
            key = change.transactional_id
            self._awaiting[key] = set(self.transactions[key].partitions)
            return
        assert isinstance(change, MarkersPlaced), change
        self._awaiting[change.transactional_id].difference_update(change.partitions)

    def end_transaction(self, producer_id: int, *, commit: bool) -> None:
        """Ignore the end of a transaction: no record here is part of one."""

    def keys(self) -> list[str]:
        """Return every transactional ID."""
        return list(self.transactions)

    def owed_markers_of(self, transactional_id: str) -> list[TopicPartition]:
        """Return the partitions with a pending marker of a decided transaction, in no order."""
        return list(self._awaiting.get(transactional_id, ()))

    def owes_markers(self, transactional_id: str) -> bool:
        """Whether a decided transaction has a pending marker."""
        return bool(self._awaiting.get(transactional_id))

    def awaiting_markers(self, transactional_id: str) -> list[TopicPartition]:
        """Return the partitions with a pending marker of a decided transaction, in order."""
        owed = self._awaiting.get(transactional_id)
        if not owed:
            return []
        partitions = sorted(owed, key=_partition)
        partitions.sort(key=_topic)  # By topic, then by number: tuples compare ten times as slowly.
        return partitions

    @property
    def owed_markers(self) -> int:
        """Number of pending markers of all decided transactions."""
        return sum(map(len, self._awaiting.values()))

    def record(self, transaction: Transaction) -> Record:
        """Return the record of a transactional id's new state."""
        # A client may use KIP-890 where it was not offered, and the level may have been lowered
        # since a transaction was taken over (KIP-939). Version 0 has no fields for either, and a
        # restart would not know the missing ones. Apache Kafka does omit them.
        needs_room = (
            transaction.transaction_version >= TRANSACTIONS_V2
            or transaction.next_producer_id != NO_PRODUCER_ID
        )
        return record_of(transaction, min(max(self.transaction_version, needs_room), 1))
