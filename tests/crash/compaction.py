"""A workload that compacts, and what a compacted log must still hold after any crash.

Told from the events alone: which record of each key is the last committed one, which batches were
aborted, which offsets there were. How far compaction has come is the log's own business; what it
has left must be a part of what was written that a reader of committed records cannot tell from the
whole (K1-K4).
"""

from random import Random
from typing import ClassVar

from barnabas.protocol.record_decoding import iterate_records
from barnabas.protocol.records import Record, iterate_batches
from barnabas.storage.log.cleaned_segment import CleanedGroup
from barnabas.storage.log.config import COMPACT, LogConfig
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log.readable_log import READ_COMMITTED
from barnabas.storage.log.segment_read import FileSpan, read_waiting
from barnabas.storage.log.segment_swap import discard, take_over
from tests.crash.checker import Violation, check_log, read_batches
from tests.crash.model import Event, Partition
from tests.crash.workload import ACTIONS, Workload
from tests.storage.cleaning import clean_groups

KEYS = (b"a", b"b", b"c", b"a key that is longer than a digest")
RETENTION_MS = 2_000
COMPACTED = {
    "alpha": LogConfig(
        segment_bytes=500,
        index_interval_bytes=100,
        cleanup_policy=frozenset((COMPACT,)),
        delete_retention_ms=RETENTION_MS,
    ),
    "beta": LogConfig(
        segment_bytes=1200,
        index_interval_bytes=300,
        cleanup_policy=frozenset((COMPACT,)),
        delete_retention_ms=0,
    ),
}


class CompactingWorkload(Workload):
    """The random workload on compacted logs, with passes that continue between other actions."""

    topics = tuple(COMPACTED)
    configs = COMPACTED
    actions: ClassVar[dict[str, int]] = ACTIONS | {
        "compact": 12,
        "delete": 0,
        "delete_records": 1,
        "large": 0,
        "marker": 30,
        "plain": 20,
    }

    def boot(self) -> None:
        self._passes = {}
        self.groups_taken = getattr(self, "groups_taken", 0)
        super().boot()

    def records(self) -> list[Record]:
        return [
            record._replace(
                key=self.random.choice(KEYS),
                value=None if self.random.random() < 0.2 else record.value,
            )
            for record in super().records()
        ]

    def compact(self) -> None:
        """Clean one group of a log and put it in place; a later call continues the pass."""
        log = self.any_log()
        if log is None:
            return
        if log not in self._passes:
            map_bytes = self.random.choice((400, 1 << 20))
            self._passes[log] = clean_groups(log, self.now_ms, map_bytes=map_bytes)
        try:
            group: CleanedGroup | None = next(self._passes[log], None)
        except FileNotFoundError:
            assert log.directory.removed or log.log_start_offset, "a file is missing"
            group = None
        if group is None or not self._take_over(log, group):
            del self._passes[log]

    def _take_over(self, log: PartitionLog, group: CleanedGroup) -> bool:
        if not take_over(log, group):
            discard(log.directory, group)
            return False
        self.groups_taken += group.changed
        return True


def check_compacted(log: PartitionLog, expected: Partition, random: Random) -> None:
    """Compare the records of a log that may have been compacted with all records written to it."""
    if not log.cleaning.compacted_offset:
        check_log(log, expected, random)
        return
    written = {event.base_offset: event for event in expected.batches}
    aborted = {
        event.base_offset
        for event in expected.batches
        for entry in expected.aborted
        if event.kind == "data"
        and event.transactional
        and event.producer_id == entry.producer_id
        and entry.first_offset <= event.base_offset < entry.last_offset
    }
    latest = _latest(expected, aborted)
    found: set[int] = set()
    for base_offset, _, data in read_batches(log, expected.start, random):
        event = written.get(base_offset)
        if event is None:
            raise Violation(f"{log}: no batch was ever written at {base_offset} (K2)")
        found |= _check_batch(log, event, data, is_aborted=base_offset in aborted)
    for offset, record in latest.items():
        if offset >= expected.start and record.value is not None and offset not in found:
            raise Violation(f"{log}: {record} at {offset} is gone (K1)")
    _check_committed(log, expected, latest)
    for event in expected.batches:
        if event.base_offset >= max(log.cleaning.compacted_offset, expected.start):
            _check_untouched(log, event, found)


def _latest(expected: Partition, aborted: set[int]) -> dict[int, Record]:
    """Return the last committed record of every key below the last stable offset, by offset."""
    by_key: dict[bytes, tuple[int, Record]] = {}
    for event in expected.batches:
        if event.kind == "data" and event.base_offset not in aborted:
            if event.base_offset >= expected.stable:
                continue
            for record in _records(event):
                by_key[record.key or b""] = record.offset, record
    return dict(by_key.values())


def _records(event: Event) -> list[Record]:
    return [
        record._replace(offset=event.base_offset + record.offset)
        for record in iterate_records(event.sent, limit_bytes=1 << 20)
    ]


def _check_batch(log: PartitionLog, event: Event, data: bytes, *, is_aborted: bool) -> set[int]:
    """Offsets of a stored batch's records, each of them as it was sent."""
    _, header = next(iterate_batches(memoryview(data)))
    if header.next_offset != event.next_offset:
        raise Violation(f"{log}: the batch at {event.base_offset} ends elsewhere (K2)")
    if header.is_control:
        return set()
    sent = {record.offset: record for record in _records(event)} if event.kind == "data" else {}
    stored = {record.offset: record for record in iterate_records(data, limit_bytes=1 << 20)}
    for offset, record in stored.items():
        if sent.get(offset) != record:
            raise Violation(f"{log}: {record} is not what was sent: {sent.get(offset)} (S3)")
    if is_aborted and stored and event.base_offset < log.cleaning.clean_offset:
        raise Violation(f"{log}: aborted records at {event.base_offset} survived a pass (K1)")
    return set(stored)


def _check_untouched(log: PartitionLog, event: Event, found: set[int]) -> None:
    if event.kind == "data" and not {record.offset for record in _records(event)} <= found:
        raise Violation(f"{log}: {event} lost records above what was compacted (K2)")


def _check_committed(log: PartitionLog, expected: Partition, latest: dict[int, Record]) -> None:
    """A reader of committed records ends with the last committed value of every key (K1)."""
    state: dict[bytes | None, bytes | None] = {}
    position = log.log_start_offset
    while (plan := log.plan_read(position, 3000, READ_COMMITTED)) is not None:
        if isinstance(plan, FileSpan):
            span = plan.load(read_waiting)
            assert span is not None
            chunks, upper = [span.data], span.upper_offset
        else:
            chunks, upper = plan.chunks, plan.upper_offset
        hidden = sorted(
            (entry.first_offset, entry.producer_id)
            for entry in log.aborted_transactions(position, upper)
        )
        ongoing: set[int] = set()
        for chunk in chunks:
            for at, header in iterate_batches(chunk):
                position = header.next_offset
                while hidden and hidden[0][0] <= header.last_offset:
                    ongoing.add(hidden.pop(0)[1])
                if header.is_control:
                    is_abort = header.record_count and chunk[at + 69] == 0
                    ongoing -= {header.producer_id} if is_abort else set()
                elif not (header.is_transactional and header.producer_id in ongoing):
                    batch = chunk[at : at + header.size]
                    for record in iterate_records(batch, limit_bytes=1 << 20):
                        state[record.key] = record.value
    wanted = {
        record.key: record.value
        for offset, record in latest.items()
        if offset >= expected.start and record.value is not None
    }
    seen = {key: value for key, value in state.items() if value is not None}
    gone = {record.key for record in latest.values() if record.offset < expected.start}
    if {key: value for key, value in seen.items() if key not in gone} != wanted:
        raise Violation(f"{log}: a reader sees {seen}, committed is {wanted} (K1)")
