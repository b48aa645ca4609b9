"""Producer state of one partition: sequences, epochs, open transactions.

Rules of this file:

1. Everything here is derived: replaying the log's batches through :meth:`ProducerState.update` and
   :meth:`ProducerState.end_transaction` gives the same state, append times apart (D4).
2. :meth:`ProducerState.check` changes nothing, so a refusal leaves no trace (S5). The state moves
   when a batch is placed, not when it is durable: the next batch in the pipeline is judged against
   all before it (S12).
3. Sequences count records and wrap from 2147483647 to 0 (S7). A batch is a duplicate if first and
   last sequence equal those of one of the producer's last five batches in its present epoch: five
   because a client keeps at most five requests in flight (S2, S4).
4. A producer is forgotten by the broker's clock, never by a timestamp that a client chose, and
   never while its transaction is open (T2).
5. An unknown producer may begin with any sequence: its state may have been forgotten while it was
   idle (S9). Only transaction version 2 must begin every transaction at sequence 0.
"""

from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import Final, NamedTuple

from barnabas.protocol.records import (
    TRANSACTIONAL_BIT,
    BatchHeader,
)
from barnabas.storage.log.producer_entry import (
    CACHED_BATCHES,
    NO_OFFSET,
    CachedBatch,
    CompletedTransaction,
    ProducerEntry,
    ProducerRow,
)

OUT_OF_ORDER_SEQUENCE_NUMBER: Final = 45
INVALID_PRODUCER_EPOCH: Final = 47
INVALID_TXN_STATE: Final = 48
TRANSACTION_COORDINATOR_FENCED: Final = 52
TRANSACTIONS_V2: Final = 2
_LARGEST_EPOCH: Final = 32_767


class Decision(NamedTuple):
    """The verdict on a batch: an error code, or 0 and perhaps the batch that it repeats."""

    error: int
    duplicate: CachedBatch | None = None


ACCEPTED: Final = Decision(0)
"""The verdict on every batch that is new and in order."""

_OUT_OF_ORDER: Final = Decision(OUT_OF_ORDER_SEQUENCE_NUMBER)
_OLD_EPOCH: Final = Decision(INVALID_PRODUCER_EPOCH)
_NOT_IN_THIS_TRANSACTION: Final = Decision(INVALID_TXN_STATE)


class ProducerState:
    """All producers of one partition, and its open transactions."""

    __slots__ = ("_decided", "_entries", "_open")

    def __init__(self) -> None:
        # In the order of the last append, the longest idle first: expiry stops early.
        self._entries: OrderedDict[int, ProducerEntry] = OrderedDict()
        # First offset -> producer id. Transactions open at the log's end, so this is in order.
        self._open: dict[int, int] = {}
        # Ended by a marker that was not below the high watermark when last looked at, in the order
        # of the markers, and so of their first offsets: see ``_note_decided``.
        self._decided: deque[CompletedTransaction] = deque()

    def __len__(self) -> int:
        return len(self._entries)

    def entry(self, producer_id: int) -> ProducerEntry | None:
        """Return the state of one producer, or None if it is unknown."""
        return self._entries.get(producer_id)

    def entries(self) -> Iterator[ProducerEntry]:
        """Return all producers, the longest idle first."""
        return iter(self._entries.values())

    def latest_entries(self) -> Iterator[ProducerEntry]:
        """Return all producers, the last to append first."""
        return iter(reversed(self._entries.values()))

    def producers(self) -> list[ProducerRow]:
        """Return all producers, as DescribeProducers shows them."""
        return [entry.row for entry in self._entries.values()]

    @property
    def open_count(self) -> int:
        """Number of producers with data in a transaction without a marker."""
        return len(self._open)

    def open_transactions(self) -> Iterator[ProducerEntry]:
        """Producers with an open transaction, by its first offset: the first sets the LSO."""
        return map(self._entries.__getitem__, self._open.values())

    def has_open_transaction(self, producer_id: int) -> bool:
        """Return whether the producer has data here without a marker."""
        entry = self._entries.get(producer_id)
        return entry is not None and entry.is_in_transaction

    def is_in_transaction(self, producer_id: int, epoch: int) -> bool:
        """Return whether the producer has an open transaction here in this epoch."""
        entry = self._entries.get(producer_id)
        return entry is not None and entry.is_in_transaction and entry.epoch == epoch

    # ----------------------------------------------------------------------------------- verdicts

    def check(
        self,
        header: BatchHeader,
        *,
        transaction_version: int = 0,
        lowest_sequence: int | None = None,
    ) -> Decision:
        """Check a client's data batch with a producer ID before it is appended.

        ``transaction_version`` is the one that brought the batch into its transaction;
        ``lowest_sequence`` the lowest one that waits for a coordinator's response, or None.
        """
        (_, _, _, _, _, attributes, _, _, _, producer_id, epoch, sequence, _) = header
        entry = self._entries.get(producer_id)
        continues = False
        if entry is not None:
            if epoch == entry.epoch:
                # What comes next cannot be what came before, so only the rest is compared.
                continues = entry.continues(sequence)
                duplicate = None if continues else entry.duplicate_of(header)
                if duplicate is not None:
                    return Decision(0, duplicate)
            elif epoch < entry.epoch:
                return _OLD_EPOCH  # S8
            else:
                continues = sequence == 0  # S8
        if sequence != 0:
            if transaction_version >= TRANSACTIONS_V2 and (entry is None or not entry.batches):
                return _OUT_OF_ORDER  # KAFKA-18202: state may be lost, the client's start is not
            if lowest_sequence is not None and sequence > lowest_sequence:
                return _OUT_OF_ORDER  # a lower one must come first
        if entry is None:
            return ACCEPTED  # S9
        if not continues:
            return _OUT_OF_ORDER
        if entry.transaction_first_offset != NO_OFFSET and not attributes & TRANSACTIONAL_BIT:
            return _NOT_IN_THIS_TRANSACTION  # P4
        return ACCEPTED

    def check_epoch(self, producer_id: int, epoch: int) -> int:
        """Check a data batch of a coordinator for a producer; return 0 or an error code."""
        entry = self._entries.get(producer_id)
        if entry is not None and epoch < entry.epoch:
            return INVALID_PRODUCER_EPOCH
        return 0

    def check_marker(
        self,
        producer_id: int,
        epoch: int,
        coordinator_epoch: int,
        transaction_version: int = 0,
    ) -> int:
        """Check a marker before it is appended; return 0 or an error code (M3, M4)."""
        entry = self._entries.get(producer_id)
        if entry is None:
            return 0
        if not _marker_epoch_fits(entry, epoch, transaction_version):
            return INVALID_PRODUCER_EPOCH
        if coordinator_epoch < entry.coordinator_epoch:
            return TRANSACTION_COORDINATOR_FENCED
        return 0

    # ------------------------------------------------------------------------------------ changes

    def update(self, header: BatchHeader, append_time_ms: int) -> None:
        """Apply a stored data batch, whose base offset is final."""
        self.placed(header, header.base_offset, header.max_timestamp, append_time_ms)

    def placed(
        self, header: BatchHeader, base_offset: int, timestamp: int, append_time_ms: int
    ) -> None:
        """Record a received data batch and its offsets in the log.

        ``timestamp`` is the largest of the stored batch, in ms.
        """
        (_, _, _, _, _, attributes, delta, _, _, producer_id, epoch, _, _) = header
        entry = self._touch(producer_id, epoch, append_time_ms)
        entry.enter_epoch(epoch)
        batches = entry.batches
        if len(batches) == CACHED_BATCHES:
            del batches[0]
        batches.append(CachedBatch(header.last_sequence, base_offset + delta, delta, timestamp))
        entry.last_timestamp = timestamp
        if attributes & TRANSACTIONAL_BIT and entry.transaction_first_offset == NO_OFFSET:
            entry.transaction_first_offset = base_offset
            self._open[base_offset] = producer_id

    def end_transaction(
        self,
        producer_id: int,
        epoch: int,
        coordinator_epoch: int,
        commit: bool,  # noqa: FBT001  (what a marker says, in the order of its fields)
        offset: int,
        timestamp: int,
        append_time_ms: int,
    ) -> CompletedTransaction | None:
        """Apply a marker at ``offset``; return None if its producer had no data here.

        Its epochs are recorded even then, since they fence late batches.
        """
        entry = self._touch(producer_id, epoch, append_time_ms)
        entry.enter_epoch(epoch)
        entry.coordinator_epoch = coordinator_epoch
        entry.last_timestamp = timestamp
        first_offset = entry.transaction_first_offset
        if first_offset == NO_OFFSET:
            return None
        entry.transaction_first_offset = NO_OFFSET
        del self._open[first_offset]
        completed = CompletedTransaction(
            producer_id,
            first_offset,
            offset,
            next(iter(self._open), offset + 1),
            aborted=not commit,
        )
        self._note_decided(completed)
        return completed

    def forget_decided(self, high_watermark: int) -> None:
        """Forget the transactions whose marker lies below ``high_watermark``: they are stable (L2).

        Called wherever one more is decided: a partition without readers must not keep them all.
        """
        decided = self._decided
        while decided and decided[0].last_offset < high_watermark:
            decided.popleft()

    def _note_decided(self, completed: CompletedTransaction) -> None:
        """Remember a transaction until its marker is below the high watermark.

        A transaction that started later and was decided earlier is stable no later than this one.
        So only those that limit the last stable offset longer are stored: the first one always
        started first.
        """
        decided = self._decided
        while decided and decided[-1].first_offset > completed.first_offset:
            decided.pop()
        decided.append(completed)

    def _touch(self, producer_id: int, epoch: int, append_time_ms: int) -> ProducerEntry:
        """Return the producer's entry, created if necessary, as the most recently used."""
        entry = self._entries.get(producer_id)
        if entry is None:
            entry = self._entries[producer_id] = ProducerEntry(producer_id, epoch, append_time_ms)
            return entry
        entry.encoded = None
        entry.append_time_ms = append_time_ms
        self._entries.move_to_end(producer_id)
        return entry

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forget producers without an append for ``expiration_ms``; returns their number."""
        expired = []
        for entry in self._entries.values():
            if now_ms - entry.append_time_ms < expiration_ms:
                break
            if entry.transaction_first_offset == NO_OFFSET:
                expired.append(entry.producer_id)
        for producer_id in expired:
            del self._entries[producer_id]
        return len(expired)

    # ----------------------------------------------------------------------------- what is stable

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """Return the first offset of an undecided transaction, or None.

        A transaction counts as decided once its marker lies below ``high_watermark`` (L2).
        """
        self.forget_decided(high_watermark)
        first = next(iter(self._open), None)
        if not self._decided:
            return first
        undurable = self._decided[0].first_offset
        return undurable if first is None else min(first, undurable)

    def last_stable_offset(self, high_watermark: int) -> int:
        """Return the offset at which a ``read_committed`` consumer must stop (L3)."""
        if not self._open and not self._decided:
            return high_watermark
        unstable = self.first_unstable_offset(high_watermark)
        return high_watermark if unstable is None else min(high_watermark, unstable)

    # ------------------------------------------------------------------------------------ restore

    def restore(self, entry: ProducerEntry) -> None:
        """Put back an entry read from a snapshot; then :meth:`restored`."""
        self._entries[entry.producer_id] = entry

    def restored(self) -> None:
        """Sort the restored entries in the order of the indexes."""
        by_age = sorted(self._entries.values(), key=lambda entry: entry.append_time_ms)
        self._entries = OrderedDict((entry.producer_id, entry) for entry in by_age)
        self._open = dict(
            sorted(
                (entry.transaction_first_offset, entry.producer_id)
                for entry in by_age
                if entry.transaction_first_offset != NO_OFFSET
            )
        )


def _marker_epoch_fits(entry: ProducerEntry, epoch: int, transaction_version: int) -> bool:
    """Return whether a marker with this epoch may end the producer's transaction."""
    if transaction_version < TRANSACTIONS_V2:
        return epoch >= entry.epoch
    if epoch == entry.epoch:
        # A marker sent again after a restart finds nothing open; with something open it would be
        # the late marker of an older transaction ending a newer one (M4).
        return entry.transaction_first_offset == NO_OFFSET or epoch == _LARGEST_EPOCH
    return epoch > entry.epoch
