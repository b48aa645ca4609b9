"""Opening logs that a start refuses, so that a user can decide about them.

Rules of this file:

1. Each reason to refuse a start is noted, and so are its consequences; the user has agreed to
   nothing yet. A caller that opens logs like this either discards the copy or prompts first
   (``check --repair``).
2. All sound batches of a log stay, before the damage and after it. A segment keeps its place and
   its offsets though its file is short or missing.
3. A journal keeps the journal groups before the first lost one: that is one moment of all logs
   together, and no acknowledged batch is partly kept.
4. If the end of a transaction cannot be read, it counts as aborted there: aborted records must
   never be visible, and a marker after the damage may be that of another transaction.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from crc32c import crc32c

from barnabas.protocol.records import CRC_START, HEADER_BYTES, MAGIC, BatchHeader, read_header
from barnabas.storage.errors import Corrupt
from barnabas.storage.journal.journal_files import JournalLoss
from barnabas.storage.log.checkpoint import PartitionCheckpoint
from barnabas.storage.log.damage import DamagedRange
from barnabas.storage.log.index import OffsetIndex
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log.producer_entry import ProducerEntry
from barnabas.storage.log.replay import abandon_transaction, replay_producer
from barnabas.storage.log.segment import Segment
from barnabas.storage.log.segment_names import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    file_stem,
)
from barnabas.storage.log.segment_read import scan_batches
from barnabas.storage.repair.repair import sound_batches
from barnabas.storage.repair.scrub import SegmentCheck, check_segment, plan_check

_STEM_DIGITS: Final = 20
_OF_A_SEGMENT: Final = (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)
_MARKER_BYTES_MAX: Final = 128
"""Upper limit of the size of a marker."""


class Abandoned(NamedTuple):
    """A transaction whose end may have been in a damaged range; it starts at ``first_offset``."""

    producer_id: int
    first_offset: int
    damaged: DamagedRange


class Salvage:
    """Findings in the logs of one data directory while they were opened."""

    def __init__(self) -> None:
        self.refusals: list[tuple[PartitionLog, str]] = []
        """Logs at which a start would have ended, with the reasons."""
        self.abandoned: list[tuple[PartitionLog, Abandoned]] = []
        self.journal_loss: JournalLoss | None = None
        self._reach: dict[PartitionLog, int] = {}
        self._damage: dict[Segment, tuple[DamagedRange, ...]] = {}

    def note_reach(self, log: PartitionLog, position: PartitionCheckpoint | None) -> None:
        """Record the offset up to which the segment files of ``log`` are complete.

        They may have more than what is left of the journal, but not all in one order.
        """
        names = log.directory.list_files()
        if not log.directory.belongs_to_topic(names):
            return
        base, end, at = 0, 0, 0
        if position is not None:
            base, end, at = position.segment_base_offset, position.end_offset, position.position
        while (name := file_stem(base) + LOG_SUFFIX) in names:
            end = _end_of_whole_batches(log, name, at, end)
            if end == base:
                break
            base, at = end, 0
        self._reach[log] = end

    def lost_offsets(self) -> Iterator[tuple[PartitionLog, int, int]]:
        """Yield the ranges of offsets that logs have lost with the end of the journal.

        Call it after the recovery. Losses that left no trace are missing.
        """
        loss = self.journal_loss
        if loss is None:
            return
        for log, reach in self._reach.items():
            end = max(reach, loss.ends.get(log.partition_id, 0))
            if end > log.next_offset:
                yield log, log.next_offset, end

    def open_active(
        self, log: PartitionLog, segment: Segment, position: PartitionCheckpoint, error: Exception
    ) -> None:
        """Open the sound part of the active segment, which has changed."""
        self.refusals.append((log, str(error)))
        plan = SegmentCheck(
            path=log.directory.path,
            base_offset=segment.base_offset,
            end_offset=position.end_offset,
            size_bytes=position.position,
            has_gaps=segment.base_offset < log.cleaning.compacted_offset,
            leader_epoch=log.leader_epoch,
            index_interval_bytes=segment.index_interval_bytes,
            transactions=None,
        )
        segment.open_damaged(position.position, position.end_offset)
        verdict = check_segment(log.directory.file_system, plan, _at_once)
        self._damage[segment] = verdict.damaged
        log.damaged += verdict.damaged
        segment.use_index(verdict.index)

    def open_sealed(self, log: PartitionLog, bases: Sequence[int], error: Exception) -> None:
        """Open the sealed segments of ``log``, also those without a file."""
        self.refusals.append((log, str(error)))
        active = log.segments.pop()
        present = {segment.base_offset for segment in log.segments}
        for segment in log.segments:
            segment.close()
        log.segments = []
        starts = sorted({*present, *bases})
        for base, end in zip(starts, [*starts[1:], active.base_offset], strict=True):
            segment = log.open_segment(base)
            size = segment.file.size() if base in present else 0
            segment.open_existing(size, end, sealed=True, trusted=True)
            log.segments.append(segment)
        for segment in log.local_segments:
            self._note_loss(log, segment, is_there=segment.base_offset in present)
        log.segments.append(active)
        log.damaged.sort()

    def _note_loss(self, log: PartitionLog, segment: Segment, *, is_there: bool) -> None:
        """Record a loss at the end of a segment, which its check cannot detect."""
        base, end, size = segment.base_offset, segment.end_offset, segment.size_bytes
        found: tuple[DamagedRange, ...]
        if not is_there:
            found = (DamagedRange(base, end, base, 0, 0, "the file is missing"),)
        else:
            verdict = check_segment(log.directory.file_system, plan_check(log, segment), _at_once)
            found = verdict.damaged
            at = verdict.data_end_offset
            if at < end and not any(each.end_offset == end for each in found):
                reason = f"the segment ends at offset {at}, not {end}, and bytes are missing"
                found = (*found, DamagedRange(at, end, base, size, size, reason))
        self._damage[segment] = found
        log.damaged += found

    def damage_of(self, log: PartitionLog, segment: Segment) -> tuple[DamagedRange, ...]:
        """Return all damaged ranges of a segment of ``log``."""
        found = self._damage.get(segment)
        if found is None:
            plan = plan_check(log, segment)
            found = check_segment(log.directory.file_system, plan, _at_once).damaged
            self._damage[segment] = found
        return found

    def batches(self, log: PartitionLog, segment: Segment) -> Iterator[tuple[BatchHeader, bytes]]:
        """Yield every sound batch of a segment."""
        position = 0
        for each in self.damage_of(log, segment):
            yield from sound_batches(segment, position, each.position)
            position = each.end_position
        yield from sound_batches(segment, position, segment.written_bytes)

    def replay_producers(self, log: PartitionLog, segment: Segment, offset: int) -> None:
        """Apply the sound batches of a segment from ``offset`` on to the producers' state."""
        damaged = [each for each in self.damage_of(log, segment) if each.end_offset > offset]
        for header, batch in self.batches(log, segment):
            while damaged and damaged[0].base_offset < header.base_offset:
                self._abandon(log, segment, damaged.pop(0))
            if header.base_offset >= offset:
                log.snapshots.batches_since += 1
                if header.producer_id >= 0:
                    replay_producer(log, segment, header, memoryview(batch))
        for each in damaged:
            self._abandon(log, segment, each)

    def _abandon(self, log: PartitionLog, segment: Segment, damaged: DamagedRange) -> None:
        """End the transactions that may have ended in a damaged range.

        Each gets one of the last offsets of the range, where a repair puts the marker. A range had
        no more markers than offsets, so only that many of the oldest transactions are ended.
        """
        ended = list(_may_have_ended(log, segment, damaged))
        del ended[damaged.end_offset - damaged.base_offset :]
        for offset, entry in enumerate(ended, damaged.end_offset - len(ended)):
            abandoned = Abandoned(entry.producer_id, entry.transaction_first_offset, damaged)
            self.abandoned.append((log, abandoned))
            abandon_transaction(log, segment, entry.producer_id, offset)


def _end_of_whole_batches(log: PartitionLog, name: str, start: int, offset: int) -> int:
    """Return the end offset of the contiguous batches in a log file from byte ``start`` on."""
    file = log.directory.open(name)
    try:
        for _, header, batch in scan_batches(name, file.pread, start, file.size()):
            if header.base_offset != offset or crc32c(batch[CRC_START:]) != header.crc:
                break
            offset = header.next_offset
    except (Corrupt, OSError):
        pass  # Here it ends: behind it may be room that was never written.
    finally:
        file.close()
    return offset


def _may_have_ended(
    log: PartitionLog, segment: Segment, damaged: DamagedRange
) -> Iterable[ProducerEntry]:
    """Return the producers with an open transaction whose marker may be in the range."""
    entries = [entry for entry in log.producers.entries() if entry.is_in_transaction]
    entries.sort(key=lambda entry: entry.transaction_first_offset)
    header = _only_batch(segment, damaged)
    if header is None:
        return entries
    if header.size > _MARKER_BYTES_MAX:
        return ()
    named = [entry for entry in entries if entry.producer_id == header.producer_id]
    return named or entries


def _only_batch(segment: Segment, damaged: DamagedRange) -> BatchHeader | None:
    """Return the header of the only batch in a damaged range, or None if there may be several."""
    size = damaged.end_position - damaged.position
    if size < HEADER_BYTES:
        return None
    try:
        data = segment.file.pread(HEADER_BYTES, damaged.position)
    except OSError:
        return None
    header = read_header(memoryview(data.ljust(HEADER_BYTES, b"\0")))
    is_it = (
        header.magic == MAGIC
        and header.size == size
        and header.base_offset == damaged.base_offset
        and header.next_offset == damaged.end_offset
    )
    return header if is_it else None


def lost_segments(log: PartitionLog, names: Sequence[str], log_start_offset: int) -> list[int]:
    """Return the known base offsets of sealed segments whose log file is missing."""
    bases = [segment.base_offset for segment in log.segments]
    stems = {
        int(name[:_STEM_DIGITS])
        for name in names
        if name[:_STEM_DIGITS].isdigit() and name[_STEM_DIGITS:] in _OF_A_SEGMENT
    }
    lost = sorted(stem for stem in stems.difference(bases) if stem < bases[-1])
    while len(lost) > 1 and lost[0] < bases[0] and lost[1] <= log_start_offset:
        del lost[0]  # Left by a removal.
    if log_start_offset < min([*lost, *bases]):
        lost.insert(0, log_start_offset)
    return lost


def explain(log: PartitionLog, lost: Sequence[int], reason: str) -> Corrupt:
    """Return an error that names the changed sealed segment; ``reason`` is how that is known."""
    for base in lost:
        path = log.directory.file_path(file_stem(base) + LOG_SUFFIX)
        return Corrupt(path, 0, f"the file is missing: {reason}")
    for segment in log.local_segments[:-1]:
        if _has_less_than_indexed(segment):
            return Corrupt(segment.log_path, segment.size_bytes, f"the file ends here: {reason}")
    for segment in log.local_segments[:-1]:
        verdict = check_segment(log.directory.file_system, plan_check(log, segment), _at_once)
        for each in verdict.damaged:
            return Corrupt(segment.log_path, each.position, f"{each.reason}: {reason}")
    return Corrupt(log.directory.path, 0, reason)


def _has_less_than_indexed(segment: Segment) -> bool:
    """Return whether the offset index has an entry beyond the end of the log file."""
    directory = segment.directory
    try:
        data = directory.file_system.read_file(directory.file_path(segment.stem + INDEX_SUFFIX))
    except OSError:
        return False
    count = len(data) // OffsetIndex.ENTRY_BYTES
    if not count:
        return False
    position = int.from_bytes(data[count * OffsetIndex.ENTRY_BYTES - 4 :][:4], "big")
    return position >= segment.size_bytes


def _at_once(_size: int) -> None:
    """Return at once: a single reader needs no pauses."""
