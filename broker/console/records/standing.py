"""Committed state at one moment, and its meaning for each record.

Rules of this file:

1. **Never wrong towards "committed".** A record of a transaction is committed if it is below the
   last stable offset, so that its outcome is known and durable, and no aborted transaction has it.
   The offset and the transaction index are therefore read in one turn of the loop, *after* the
   bytes were read, and only if no segment was replaced in between (``CleaningState.swaps``):
   compaction removes an aborted transaction from the index with its last record, but not from
   bytes that were read before.
2. Records below the log's start at that moment are not shown: their part of the index is deleted.
3. A thread iterates over the index. Entries added meanwhile do no harm: a transaction aborted later
   was open before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from barnabas.broker.console.records.pace import ThreadPace
    from barnabas.protocol.records import BatchHeader
    from barnabas.storage.log.index import TransactionIndex
    from barnabas.storage.log.partition_log import PartitionLog

PLAIN: Final = "plain"
COMMITTED: Final = "committed"
WAITING: Final = "waiting"
ABORTED: Final = "aborted"
OPEN: Final = "open"
MARKER: Final = "marker"
VISIBLE: Final = frozenset((PLAIN, COMMITTED))
"""States of records that are visible to ``read_committed`` consumers."""

Aborted = Mapping[int, list[tuple[int, int]]]
"""First offset and marker of aborted transactions, by producer id."""


@dataclass(frozen=True, slots=True)
class Blocker:
    """The first open transaction of a partition, which blocks its ``read_committed`` consumers."""

    producer_id: int
    producer_epoch: int
    start_offset: int


@dataclass(frozen=True, slots=True)
class Standing:
    """One partition at one moment."""

    start_offset: int
    stable_offset: int
    high_watermark: int
    opened: Mapping[int, int]
    """First offset of the open transaction of each requested producer."""
    blocker: Blocker | None
    indexes: tuple[TransactionIndex, ...]

    def aborted(self, offset: int, end: int, pace: ThreadPace) -> Aborted:
        """Return the aborted transactions with data from ``offset`` up to ``end``; on a thread."""
        found: dict[int, list[tuple[int, int]]] = {}
        for index in self.indexes:
            for entry in index.since(offset):
                pace.step()
                if entry.first_offset < end:
                    ranges = found.setdefault(entry.producer_id, [])
                    ranges.append((entry.first_offset, entry.last_offset))
                if entry.last_stable_offset >= end:
                    return found  # Later transactions started after the end.
        return found

    def state(self, header: BatchHeader, offset: int, aborted: Aborted) -> str:
        """Return the state of a record."""
        if header.is_control:
            return MARKER
        if header.is_transactional:
            first_open = self.opened.get(header.producer_id)
            if first_open is not None and first_open <= offset:
                return OPEN
            for first, last in aborted.get(header.producer_id, ()):
                if first <= offset <= last:
                    return ABORTED
        if offset >= self.stable_offset:
            return WAITING
        return COMMITTED if header.is_transactional else PLAIN


def standing_of(log: PartitionLog, offset: int, producer_ids: Iterable[int]) -> Standing:
    """Return the state of a log, for records read from ``offset`` on."""
    producers = log.producers
    opened = {}
    for producer_id in producer_ids:
        entry = producers.entry(producer_id)
        if entry is not None and entry.is_in_transaction:
            opened[producer_id] = entry.transaction_first_offset
    first = next(producers.open_transactions(), None)
    blocker = None
    if first is not None:
        blocker = Blocker(first.producer_id, first.epoch, first.transaction_first_offset)
    segments = log.segments
    return Standing(
        log.log_start_offset,
        log.last_stable_offset,
        log.high_watermark,
        opened,
        blocker,
        tuple(
            segments[at].transactions
            for at in range(log.segment_at(offset), len(segments))
            if len(segments[at].transactions)
        ),
    )
