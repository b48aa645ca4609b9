"""Replay: records of a topic, written again to a topic, in one transaction.

Rules of this file:

* **All or nothing.** Errors, a cancellation and the end of the broker abort the transaction;
  ``read_committed`` consumers see all of a replay or nothing of it.
* **It reads the records committed at the moment of its start.** An unreadable record ends the
  replay, so a committed one is complete.
* The transaction starts with the first record found: a long search blocks no consumer. From then on
  the replay has the longest timeout that the broker allows.
* One piece of a log is in memory at a time, and one request to write.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.admin.transactional_producer import Batch
from barnabas.broker.api.checks import READ, TOPIC, TOPIC_DENIED, denied
from barnabas.broker.console.actions.wire import WireClient
from barnabas.broker.console.jobs.registry import CANCELLED, COMMITTED, FAILED
from barnabas.broker.console.jobs.transaction import Transaction
from barnabas.broker.console.records.pace import Ended
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.partitioning import partition_of
from barnabas.protocol.records import Record, encode_batch

if TYPE_CHECKING:
    from barnabas.broker.admin.observed import ObservedBroker
    from barnabas.broker.console.jobs.registry import Job
    from barnabas.broker.console.jobs.selection import Selection
    from barnabas.broker.console.records.examining import Content, FoundRecord
    from barnabas.broker.console.records.pace import ThreadPace
    from barnabas.broker.console.records.pieces import RecordReaders
    from barnabas.broker.metadata.topic import Topic

logger = logging.getLogger("barnabas.broker.console")

RECORDS_MOST: Final = 1_000_000
BYTES_MOST: Final = 1024 * 1024 * 1024
"""Maximum size of one transaction: it blocks consumers until it ends."""
ORIGIN: Final = "barnabas.replayed.from"
"""Header with the origin of a record: topic/partition/offset."""
BATCH_BYTES: Final = 256 * 1024
BATCH_RECORDS: Final = 1000
OVERHEAD_BYTES: Final = 64
"""Upper bound of the overhead of a record and of each of its headers."""
GOODBYE_SECONDS: Final = 2.0
"""Time for which a stopping broker waits for the abort."""
TIME_KEPT: Final = 0.9
"""Share of the timeout after which an uncommitted replay is aborted, with the reason."""
NAME: Final = "records.replay"
"""Name of the action that starts a replay."""


@dataclass(frozen=True, slots=True)
class Writing:
    """Target and options of writing."""

    origin: str
    """The topic that records are from."""
    topic: Topic
    to_same_partition: bool
    keeps_time: bool

    def partition(self, found: FoundRecord) -> int:
        """Return the partition of a record: that of its key, or its original number."""
        count = len(self.topic.partitions)
        if self.to_same_partition or found.key is None:
            return found.partition % count
        return partition_of(found.key.data, count)

    @property
    def batch_bytes(self) -> int:
        """Maximum size of a batch, except for a single larger record."""
        return min(BATCH_BYTES, self.topic.log_config.max_message_bytes // 2)


class _Producer(NamedTuple):
    """Producer ID, epoch and sequence numbers of the written batches."""

    producer_id: int
    epoch: int
    sequences: Mapping[int, int]


class Replay:
    """One replay under way."""

    def __init__(
        self,
        broker: ObservedBroker,
        job: Job,
        selection: Selection,
        writing: Writing,
        readers: RecordReaders,
    ) -> None:
        self._broker = broker
        self._job = job
        self._selection = selection
        self._writing = writing
        self._readers = readers
        self._wire = WireClient(broker, job.access)
        self._transaction = Transaction(self._wire, job.name, job.target)
        self._until_s = 0.0

    async def run(self) -> None:
        """Run the replay to its end, and write the result to the audit log."""
        job = self._job
        try:
            state, message = await self._run()
        except Exception as error:
            # The top frame: a bug ends the job, and no more.
            logger.exception("job failed job=%s", job.name)
            state, message = FAILED, f"internal error: {error!r}"
        job.end(state, self._broker.clock.now_ms(), message)
        result = f"{job.name} {state}: {job.records} records of {job.topic}"
        access = job.access
        self._broker.audit.changed(
            access.principal, access.host, NAME, f"Topic:{job.target}", result
        )

    async def _run(self) -> tuple[str, str | None]:
        """Return the final state and its reason."""
        try:
            await self._copy()
            if self._job.cancelled.is_set():
                raise Ended  # noqa: TRY301  As if it had come a moment earlier.
        except Ended:
            return await self._abort(CANCELLED, None)
        except KafkaError as error:
            return await self._abort(FAILED, f"{error.code.name}: {error.message}")
        except BaseException:
            # The broker stops, or this is a bug. Where even this fails the time-out ends it.
            with contextlib.suppress(TimeoutError):
                async with self._broker.clock.timeout(GOODBYE_SECONDS):
                    await self._abort(FAILED, None)
            raise
        return await self._commit()

    async def _commit(self) -> tuple[str, str | None]:
        if not self._transaction.producer.has_begun:
            return COMMITTED, "no record matches: the replay wrote nothing"
        try:
            await self._transaction.end(commit=True)
        except KafkaError as error:
            words = f"{self._job.name} says whether it was committed: the answer was"
            return FAILED, f"{words} {error.code.name}: {error.message}"
        return COMMITTED, None

    async def _abort(self, state: str, message: str | None) -> tuple[str, str | None]:
        if self._transaction.producer.has_begun:
            try:
                await self._transaction.end(commit=False)
            except KafkaError as error:
                # Fenced, or aborted already: nothing of it will ever be seen.
                words = f"aborting the transaction failed: {error.code.name}: {error.message}"
                return state, words if message is None else f"{message}; {words}"
        return state, message

    async def _copy(self) -> None:
        job = self._job
        selection, readers = self._selection, self._readers
        async with aclosing(selection.found(readers, job.pace, whole=True)) as pieces:
            async for offsets, found in pieces:
                self._check_allowed()
                if found.rows:
                    await self._open()
                with self._held(found.kept_bytes):
                    await self._write_all(found.rows)
                job.offsets_done += offsets

    @contextlib.contextmanager
    def _held(self, size_bytes: int) -> Iterator[None]:
        """Count records that are kept while they are written; raises KafkaError without room."""
        holding = self._readers.memory.holding(self._job.access.principal)
        try:
            holding.hold(size_bytes)
            yield
        finally:
            holding.release()

    async def _write_all(self, rows: list[FoundRecord]) -> None:
        left = rows
        while left:
            now_ms, pace = self._broker.clock.now_ms(), self._job.pace
            work = partial(_encode, left, self._writing, self._producer(), now_ms, pace)
            # Each record is copied into its encoding, its batch and the compressed batch.
            copied_bytes = 3 * sum(each.size_bytes for each in left)
            batches, left = await self._readers.run_within(copied_bytes, work)
            await self._write(batches)

    def _check_allowed(self) -> None:
        """Raise KafkaError if a condition of the start no longer holds."""
        job, catalogue = self._job, self._broker.catalogue
        if not job.access.login_holds() or not job.access.may(READ, TOPIC, job.topic):
            raise denied(TOPIC_DENIED, READ, TOPIC, job.topic)
        for topic in (self._selection.topic, self._writing.topic):
            if catalogue.topic(topic.name) is not topic:
                words = f"{topic.name} was deleted"
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, words)

    async def _open(self) -> None:
        """Start the transaction at the first record."""
        if self._until_s:
            return
        timeout_ms = self._broker.config.transaction_max_timeout_ms
        await self._transaction.initialize(timeout_ms)
        self._until_s = self._broker.clock.monotonic() + TIME_KEPT * timeout_ms / 1000

    def _producer(self) -> _Producer:
        producer = self._transaction.producer
        return _Producer(producer.producer_id, producer.producer_epoch, dict(producer.sequences))

    async def _write(self, batches: list[Batch]) -> None:
        job, size = self._job, sum(len(each.data) for each in batches)
        records = sum(each.records for each in batches)
        if job.records + records > RECORDS_MOST or job.size_bytes + size > BYTES_MOST:
            words = (
                f"more than {RECORDS_MOST} records or {BYTES_MOST} bytes: replay fewer at a time"
            )
            raise KafkaError(ErrorCode.POLICY_VIOLATION, words)
        await self._wait(self._wire.produced(0))
        if job.cancelled.is_set():
            raise Ended
        if self._broker.clock.monotonic() >= self._until_s:
            words = "longer than transaction.max.timeout.ms: replay fewer records at a time"
            raise KafkaError(ErrorCode.POLICY_VIOLATION, words)
        await self._transaction.write(batches)
        self._wire.produced(size)
        job.records += records
        job.size_bytes += size

    async def _wait(self, throttle_ms: float) -> None:
        """Wait for the user's quota, or until the job is cancelled."""
        if throttle_ms >= 1:
            try:
                async with self._broker.clock.timeout(throttle_ms / 1000):
                    await self._job.cancelled.wait()
            except TimeoutError:
                return


def _encode(
    rows: list[FoundRecord], writing: Writing, producer: _Producer, now_ms: int, pace: ThreadPace
) -> tuple[list[Batch], list[FoundRecord]]:
    """Make a batch for each partition from its first records. Runs on a thread.

    Also returns the rest for the next request: a request has one batch for a partition.
    """
    chosen: dict[int, list[FoundRecord]] = {}
    sizes: dict[int, int] = {}
    full: set[int] = set()
    left: list[FoundRecord] = []
    for row in rows:
        pace.step()
        partition = writing.partition(row)
        size = row.size_bytes + OVERHEAD_BYTES * (2 + row.header_count)
        batch = chosen.setdefault(partition, [])
        total = sizes.get(partition, 0) + size
        if batch and (total > writing.batch_bytes or len(batch) >= BATCH_RECORDS):
            full.add(partition)
        if partition in full:
            left.append(row)  # All that follow, too: they keep their order.
        else:
            batch.append(row)
            sizes[partition] = total
    batches = []
    for partition, found in chosen.items():
        data = encode_batch(
            _records(found, writing, now_ms, pace),
            compression=found[0].batch.compression,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=producer.sequences.get(partition, 0),
            transactional=True,
        )
        batches.append(Batch(partition, data, len(found)))
    return batches, left


def _records(
    found: list[FoundRecord], writing: Writing, now_ms: int, pace: ThreadPace
) -> Iterator[Record]:
    """Yield the records in the form in which they are written."""
    for number, row in enumerate(found):
        pace.step()
        origin = f"{writing.origin}/{row.partition}/{row.offset}".encode()
        headers = [(name, _whole(value)) for name, value in row.headers]
        yield Record(
            number,
            row.timestamp_ms if writing.keeps_time else now_ms,
            _whole(row.key),
            _whole(row.value),
            (*headers, (ORIGIN, origin)),
        )


def _whole(content: Content | None) -> bytes | None:
    if content is None:
        return None
    assert not content.is_cut, "a part of a record is not the record"
    return content.data
