"""Reads the partitions of an internal topic into new state machines: those that were gained.

Every record goes through the same ``apply`` as in live traffic. What cannot be read is never half
there: the keys of its partition are refused until an operator has looked into it, for state that is
forgotten means zombies that are not fenced (D8).
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final, Generic

from barnabas.broker.coordination.shard import MachineT, Shard
from barnabas.coordinator.decision import NO_PRODUCER_ID, decode_record
from barnabas.protocol.errors import ErrorCode, KafkaError, Malformed
from barnabas.protocol.record_decoding import iterate_records, read_marker, sole_record
from barnabas.protocol.records import CorruptBatch, InvalidBatch
from barnabas.protocol.records import Record as LogRecord
from barnabas.storage.batches.batch_contents import DECOMPRESSED_BYTES_MAX
from barnabas.storage.errors import Corrupt

if TYPE_CHECKING:
    from barnabas.protocol.records import BatchHeader
    from barnabas.storage.log.partition_log import PartitionLog

logger = logging.getLogger(__name__)

UNREADABLE: Final = (KafkaError, Malformed, Corrupt, CorruptBatch, InvalidBatch, ValueError)
"""Errors of a log with invalid content, as opposed to errors of the disk."""

RECORDS_PER_SLICE: Final = 250
"""Records replayed before the loop may get a turn: a few milliseconds' work."""


class Replay(Generic[MachineT]):
    """Replay of partitions, one after the other, with its progress."""

    def __init__(
        self,
        topic_name: str,
        make_machine: Callable[[], MachineT],
        loaded: Callable[[Shard[MachineT]], None],
        *,
        latest_only: bool,
    ) -> None:
        """``latest_only``: a record has the whole state of its key, so the last of each is enough.

        A short transaction leaves four. ``loaded`` is called with each shard that is ready.
        """
        self._topic_name = topic_name
        self._make_machine = make_machine
        self._loaded = loaded
        self._latest_only = latest_only
        self._waiting: deque[Shard[MachineT]] = deque()
        """The first one is being read."""
        self._steps: Iterator[None] = iter(())
        self._is_reading = False
        self.total = 0
        """Number of partitions of this reading; the next reading begins when all are done."""
        self.partitions = 0
        """Partitions that are done."""
        self.records = 0
        self.has_set_aside = False
        """Whether keys were met whose latest record cannot be read."""

    def add(self, shard: Shard[MachineT]) -> None:
        """Add a partition to the end of the queue."""
        if not self._waiting:
            self.total = self.partitions = self.records = 0
            self._steps = self._run()
        self.total += 1
        self._waiting.append(shard)

    def is_to_read(self, shard: Shard[MachineT]) -> bool:
        """Whether a partition is being read or waits for it."""
        return shard in self._waiting

    def read_until(self, is_enough: Callable[[], bool]) -> bool:
        """Read until ``is_enough`` returns true after a batch; return False when all is read.

        Waits for the disk. It may be called from the effects of a loaded partition, in the middle
        of reading.
        """
        if self._is_reading:
            return True
        self._is_reading = True
        try:
            return any(is_enough() for _ in self._steps)
        finally:
            self._is_reading = False

    def _run(self) -> Iterator[None]:
        while self._waiting:
            shard = self._waiting[0]
            if not shard.is_gone:
                yield from self._load(shard)
            if shard.is_gone:
                self.total -= 1
            else:
                self.partitions += 1
            self._waiting.popleft()

    def _load(self, shard: Shard[MachineT]) -> Iterator[None]:
        """Read one partition to its end, or until it is lost."""
        log = shard.log
        log.cleaning.scans += 1
        try:
            for _ in self._read(shard, log):
                yield
                if shard.is_gone:
                    return
        except UNREADABLE as error:
            logger.error("coordinator log not loaded log=%s reason=%s", log, error)  # noqa: TRY400
            if isinstance(error, Corrupt):
                log.suspect(log.log_start_offset, error)
            shard.machine.forget()
            shard.machine = self._make_machine()
        else:
            shard.is_loaded = True
            self._loaded(shard)
        finally:
            log.cleaning.scans -= 1
            log.cleaning.awaits_replay = False

    def _read(self, shard: Shard[MachineT], log: PartitionLog) -> Iterator[None]:
        latest: dict[bytes, LogRecord] = {}
        segments = log.local_segments
        if len(segments) < len(log.segments):
            raise Corrupt(log.directory.path, 0, "some records are in the store only")
        for segment in segments:
            for _, header, batch in segment.scan_checked(0):
                if header.next_offset <= log.log_start_offset:
                    continue
                if header.is_control:
                    yield from _end_transaction(shard, header, batch)
                    continue
                producer_id = header.producer_id if header.is_transactional else NO_PRODUCER_ID
                for number, stored in enumerate(_records(header, batch), start=1):
                    if number % RECORDS_PER_SLICE == 0:
                        yield
                    if self._latest_only and stored.key is not None:
                        latest[stored.key] = stored
                    else:
                        self._apply(shard, stored, producer_id)
                yield
        for stored in latest.values():
            self._apply(shard, stored, NO_PRODUCER_ID)
            yield

    def _apply(self, shard: Shard[MachineT], stored: LogRecord, producer_id: int) -> None:
        if stored.key is None:
            raise KafkaError(
                ErrorCode.INVALID_RECORD, f"{shard.log} offset {stored.offset} has no key"
            )
        try:
            record = decode_record(self._topic_name, stored.key, stored.value, producer_id)
            if record is not None:
                shard.machine.apply(record, stored.offset)
        except (KafkaError, Malformed, ValueError) as error:
            if not shard.machine.set_aside(stored.key):
                raise
            self.has_set_aside = True
            logger.warning(
                "unreadable record, its key is refused log=%s offset=%d reason=%s",
                shard.log,
                stored.offset,
                error,
            )
            return
        if record is None:
            logger.warning(
                "record of unknown kind skipped log=%s offset=%d", shard.log, stored.offset
            )
            return
        self.records += 1


def _end_transaction(
    shard: Shard[MachineT], header: BatchHeader, batch: memoryview
) -> Iterator[None]:
    """Apply a control batch if it is a marker."""
    marker = read_marker(batch)
    if marker is not None:
        steps = shard.machine.end_transaction(header.producer_id, commit=marker.commit)
        yield from steps or ()


def _records(header: BatchHeader, batch: memoryview) -> Iterable[LogRecord]:
    sole = sole_record(header, batch)
    if sole is not None:
        return (sole,)
    return iterate_records(batch, limit_bytes=DECOMPRESSED_BYTES_MAX)
