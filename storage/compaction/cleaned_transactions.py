"""Transactions that the cleaner meets on its way through a log, and their remaining records.

Rules of this file:

1. Batches are shown in log order, from the log's first segment on: what is left of a transaction is
   what was met between its beginning and its marker.
2. An aborted transaction is known by its index entry, never by its keys. Its data goes at once, its
   marker and its entry stay as long as a pass still met data of it (K1, K3).
3. The entry goes in the same pass that lets the marker's delete horizon begin, so an entry never
   outlives its marker: readers would drop the producer's later data.
"""

from collections.abc import Iterable

from barnabas.protocol.record_decoding import Marker
from barnabas.protocol.records import BatchHeader
from barnabas.storage.log.index import AbortedTransaction


class CleanedTransactions:
    """The transactions of a log during one pass, given the aborted ones."""

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        """``aborted`` contains at least the aborted transactions with data in the cleaned range."""
        self._waiting = sorted(aborted, key=lambda entry: entry.first_offset, reverse=True)
        self._aborted: dict[int, AbortedTransaction] = {}
        """Aborted transactions that are open at this point of the walk, by producer."""
        self._with_data: set[int] = set()
        """Producers whose open transaction, committed or aborted, still had data."""

    def is_aborted(self, header: BatchHeader) -> bool:
        """Whether a data batch belongs to an aborted transaction."""
        self._begin_up_to(header.last_offset)
        if not header.is_transactional:
            return False
        self._with_data.add(header.producer_id)
        return header.producer_id in self._aborted

    def end(
        self, header: BatchHeader, marker: Marker | None
    ) -> tuple[bool, AbortedTransaction | None]:
        """Return whether a marker's transaction has no records left, and its index entry.

        ``marker`` is None if an earlier pass emptied it, or if it does not end a transaction.
        """
        self._begin_up_to(header.last_offset)
        if marker is None:
            return header.record_count == 0, None
        producer_id = header.producer_id
        had_data = producer_id in self._with_data
        self._with_data.discard(producer_id)
        if marker.commit:
            return not had_data, None
        entry = self._aborted.pop(producer_id, None)
        if entry is None or not had_data:
            return True, None
        return False, entry

    def _begin_up_to(self, offset: int) -> None:
        while self._waiting and self._waiting[-1].first_offset <= offset:
            entry = self._waiting.pop()
            if entry.last_offset >= offset:
                self._aborted[entry.producer_id] = entry
                self._with_data.discard(entry.producer_id)
