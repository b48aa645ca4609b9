"""``verify(log)``: everything that must hold of one partition's log, after any operation.

For tests and for operators. Reads the whole log and waits for the disk.
"""

from bisect import bisect_left
from typing import Final

from crc32c import crc32c

from barnabas.protocol.records import BatchHeader
from barnabas.storage.log.index import SegmentIndex
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log.producer_entry import NO_COORDINATOR_EPOCH
from barnabas.storage.log.producers import ProducerState
from barnabas.storage.log.replay import replay_producer
from barnabas.storage.log.segment import Segment
from barnabas.storage.repair.repair import is_hole

_ENTRIES_NAMED: Final = 3


def verify(log: PartitionLog, *, exact: bool = True) -> list[str]:
    """Check bounds, batches, indexes and producers; returns the problems found.

    ``exact``: derived data must equal those of a rebuild. Otherwise it need not contradict the log:
    ``index.interval.bytes`` may have been another one when a segment was written, producers may
    have been forgotten, and Kafka remembers less of them than a rebuild finds.
    """
    problems = _check_bounds(log)
    for segment in log.local_segments:
        has_gaps = segment.base_offset < log.cleaning.compacted_offset
        problems += _check_segment(segment, exact=exact, has_gaps=has_gaps)
    return problems + _check_producers(log, exact=exact)


def _check_bounds(log: PartitionLog) -> list[str]:
    bounds = [
        log.log_start_offset,
        log.last_stable_offset,
        log.high_watermark,
        log.next_offset,
    ]
    problems = []
    if bounds != sorted(bounds):
        problems.append(f"{log}: start, LSO, HW, end are out of order: {bounds} (L3)")
    bases = [segment.base_offset for segment in log.segments]
    if bases != sorted(set(bases)):
        problems.append(f"{log}: segments out of order: {bases}")
    if log.active is not log.segments[-1]:
        problems.append(f"{log}: the active segment is not the last one")
    return problems


def _check_segment(segment: Segment, *, exact: bool, has_gaps: bool) -> list[str]:
    problems: list[str] = []
    expected = segment.base_offset
    entries = _IndexEntries(segment)
    rebuilt = SegmentIndex(segment.base_offset, segment.index_interval_bytes)
    for position, header, batch in segment.scan(0):
        where = f"{segment.log_path} at byte {position}"
        wrong = _check_batch(header, batch, expected, has_gaps=has_gaps)
        problems += [f"{where}: {problem}" for problem in wrong]
        rebuilt.append(header.last_offset, header.newest_timestamp, position)
        if not exact:
            entries.pass_batch(header, position)
        expected = header.next_offset
    if segment.written_bytes != segment.size_bytes:
        return problems  # Still being written: its index is ahead of what can be read.
    if segment.sealed:
        rebuilt.seal()
    problems += _compare(segment, rebuilt) if exact else entries.problems()
    # Compaction here lets a segment end where the next begins, Kafka's does not.
    if expected != segment.end_offset and not (has_gaps and expected < segment.end_offset):
        problems.append(f"{segment.log_path}: ends at {expected}, not {segment.end_offset}")
    return problems


def _compare(segment: Segment, rebuilt: SegmentIndex) -> list[str]:
    problems = []
    if rebuilt.offsets.encode() != segment.index.offsets.encode():
        problems.append(f"{segment.log_path}: the offset index is not what a rebuild gives (D4)")
    if rebuilt.times.encode() != segment.index.times.encode():
        problems.append(f"{segment.log_path}: the time index is not what a rebuild gives (D4)")
    return problems


class _IndexEntries:
    """A segment's index entries, ticked off as the batches that they speak of come by."""

    def __init__(self, segment: Segment) -> None:
        index = segment.index
        self._path = segment.log_path
        self._offsets = dict(index.offsets.entries())
        self._times = [(entry.offset, entry.timestamp) for entry in index.times.entries()]
        self._wrong_times = set(self._times)
        self._max_timestamp = -1

    def pass_batch(self, header: BatchHeader, position: int) -> None:
        """Mark the index entries that the batch at ``position`` proves."""
        if self._offsets.get(header.last_offset) == position:
            del self._offsets[header.last_offset]
        self._max_timestamp = max(self._max_timestamp, header.newest_timestamp)
        at = bisect_left(self._times, (header.base_offset, -1))
        while at < len(self._times) and self._times[at][0] <= header.last_offset:
            # Kafka of old named the record, not the last one of its batch.
            if self._times[at][1] == self._max_timestamp:
                self._wrong_times.discard(self._times[at])
            at += 1

    def problems(self) -> list[str]:
        """Return the entries that no batch has proved."""
        wrong = [
            f"offset index: {offset} at {entry_position}"
            for offset, entry_position in self._offsets.items()
        ]
        wrong += [f"time index: {time} at {offset}" for offset, time in sorted(self._wrong_times)]
        return [f"{self._path}: wrong entry in its {each}" for each in wrong[:_ENTRIES_NAMED]]


def _check_batch(
    header: BatchHeader, batch: memoryview, expected: int, *, has_gaps: bool
) -> list[str]:
    problems = []
    if header.base_offset < expected or (header.base_offset > expected and not has_gaps):
        problems.append(f"base offset {header.base_offset}, expected {expected} (D2)")
    if crc32c(batch[21:]) != header.crc:
        problems.append("the checksum does not match (D2)")
    return problems


def _check_producers(log: PartitionLog, *, exact: bool) -> list[str]:
    """Return problems if a replay of the log gives other producers than the live state (D4).

    A log whose older segments were deleted is not replayed.
    """
    if log.segments[0].base_offset > 0 or log.unflushed:
        return []
    live, log.producers = log.producers, ProducerState()
    try:
        for segment in log.local_segments:
            for _, header, batch in segment.scan(0):
                if is_hole(header):
                    return []  # A repair has cut out what cannot be known.
                if header.producer_id >= 0:
                    replay_producer(log, segment, header, batch)
        rebuilt = log.producers
    finally:
        log.producers = live
    if log.cleaning.compacted_offset:
        agree = _survived_compaction(live, rebuilt)
    else:
        agree = _is_same(live, rebuilt) if exact else _agrees(live, rebuilt)
    if not agree:
        return [f"{log}: the producer state is not what a rebuild gives (D4)"]
    return []


def _is_same(live: ProducerState, rebuilt: ProducerState) -> bool:
    return _without_append_times(rebuilt) == _without_append_times(live)


def _agrees(live: ProducerState, rebuilt: ProducerState) -> bool:
    """Whether the log agrees with every known producer and with the open transactions.

    A producer that was forgotten and returned may have less state than the log has.
    """
    for entry in rebuilt.entries():
        known = live.entry(entry.producer_id)
        if known is None:
            if rebuilt.has_open_transaction(entry.producer_id):
                return False
            continue
        count = len(known.batches)
        if (
            (known.epoch, known.transaction_first_offset)
            != (entry.epoch, entry.transaction_first_offset)
            or known.coordinator_epoch not in {NO_COORDINATOR_EPOCH, entry.coordinator_epoch}
            or known.batches != entry.batches[len(entry.batches) - count :]
        ):
            return False
    return all(rebuilt.entry(entry.producer_id) is not None for entry in live.entries())


def _survived_compaction(live: ProducerState, rebuilt: ProducerState) -> bool:
    """Whether a compacted log still has the required facts of every known producer (K4).

    Those are its last sequence, and its open transaction. Earlier batches may be missing, and all
    batches of a producer whose last transaction was removed.
    """
    for known in live.entries():
        entry = rebuilt.entry(known.producer_id)
        if entry is None:
            if known.batches:
                return False
            continue
        if entry.transaction_first_offset != known.transaction_first_offset:
            return False
        if known.batches:
            same_batch = entry.batches and entry.batches[-1][:3] == known.batches[-1][:3]
            if entry.epoch != known.epoch or not same_batch:
                return False
        elif entry.epoch > known.epoch:
            return False
    return not any(
        rebuilt.has_open_transaction(entry.producer_id) and live.entry(entry.producer_id) is None
        for entry in rebuilt.entries()
    )


def _without_append_times(state: ProducerState) -> dict[int, tuple[object, ...]]:
    return {
        entry.producer_id: (
            entry.epoch,
            tuple(entry.batches),
            entry.coordinator_epoch,
            entry.transaction_first_offset,
        )
        for entry in state.entries()
    }
