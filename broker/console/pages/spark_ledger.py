"""Entries of the ledger of Spark's sinks: the last batch that each query decided.

spark_connector/ledger/ledger.py writes the ledger, and entries.py beside it describes it; the
broker reads it independently. Rules of this file:

* An entry counts once its transaction is committed, by the marker that follows in the log.
* Each read continues where the last one ended, up to a limit; the next one continues after it.
* A thread waits for the disk and decodes records. It returns a new state, so that a request can be
  abandoned in the middle.
* Every user with WRITE on the topic can write anything to it: invalid entries are skipped, and
  everything that is kept has a limit.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from barnabas.broker.console.records.pace import ThreadPace
from barnabas.broker.console.records.pieces import PIECE_BYTES
from barnabas.protocol.record_decoding import iterate_records, read_marker
from barnabas.protocol.records import CorruptBatch, InvalidBatch

if TYPE_CHECKING:
    from barnabas.broker.console.records.pieces import Batch, Piece, RecordReaders
    from barnabas.broker.metadata.topic import Topic
    from barnabas.protocol.records import Record

LEDGER_TOPIC: Final = "__spark_sink_ledger"
PARTITION: Final = 0
VERSIONS: Final = frozenset((1, 2))
READ_MOST_BYTES: Final = 16 * 1024 * 1024
"""Maximum number of bytes of the ledger that one request reads."""
EXPANDED_MOST_BYTES: Final = 16 * 1024 * 1024
VALUE_MOST_BYTES: Final = 256 * 1024
HEADERS_MOST: Final = 100_000
"""Length of one record; the sinks write none that is longer."""
QUERIES_MOST: Final = 1000
"""Queries that are kept: those with the latest decisions."""
UNDECIDED_MOST: Final = 2 * QUERIES_MOST
"""Entries of open transactions, of all producers together; the oldest producer's go first."""
NAME_MOST: Final = 256
TOPICS_MOST: Final = 50
DURATION_MOST_MS: Final = 1e12
BATCHES_MOST: Final = 2**63
NOT_BEGUN: Final = -1

QueryKey = tuple[str, str]
"""Sink id and query id."""


class LedgerEntry(NamedTuple):
    """State of a query in the ledger."""

    sink: str
    query: str
    offset: int
    written_ms: int
    batch: int = NOT_BEGUN
    """The last that is decided."""
    begun_batch: int = NOT_BEGUN
    """Batch started since, if rows also go to a table."""
    records: int | None = None
    """Number of records of the decided batch."""
    measured_batch: int | None = None
    """Batch of the durations, usually the one before, or None if the entry has no durations."""
    decide_ms: float | None = None
    commit_ms: float | None = None
    transactions: tuple[str, ...] = ()
    """Transactional ids of its tasks, or none if one transaction has the whole batch."""
    is_pinned: bool = False
    """Whether the transactions have no timeout."""
    sources: tuple[str, ...] = ()
    """Topics that it was read from."""
    sinks: tuple[str, ...] = ()
    problem: str | None = None
    """Reason that the entry cannot be read."""


@dataclass(frozen=True, slots=True)
class LedgerState:
    """Contents of a ledger up to an offset."""

    position: int = 0
    entries: Mapping[QueryKey, LedgerEntry] = field(default_factory=dict)
    """Entries in the order of their decisions."""
    undecided: Mapping[int, Mapping[QueryKey, LedgerEntry | None]] = field(default_factory=dict)
    """Entries of transactions without a marker so far, by producer, or None for a deletion."""


class SparkLedger:
    """The ledger of one broker, up to the offset that was read."""

    def __init__(self, readers: RecordReaders) -> None:
        self._readers = readers
        self._reading = asyncio.Lock()
        self._topic_id = b""
        self._state = LedgerState()

    async def read(self, topic: Topic) -> LedgerState:
        """Read on to the end, or up to the limit of one request; raises KafkaError."""
        log = topic.partitions[PARTITION].log_here()
        async with self._reading:
            if self._topic_id != topic.topic_id:
                self._topic_id, self._state = topic.topic_id, LedgerState()
            pace, left_bytes = ThreadPace(), READ_MOST_BYTES
            try:
                while self._state.position < log.high_watermark and left_bytes > 0:
                    before, end = self._state, log.high_watermark
                    piece = await self._readers.after(log, before.position, end, PIECE_BYTES, pace)
                    work = partial(taken_in, before, piece, pace)
                    after = await self._readers.expand(piece.batches, work, EXPANDED_MOST_BYTES)
                    if after.position <= before.position:
                        break
                    self._state, left_bytes = after, left_bytes - piece.size_bytes
            finally:
                pace.end()  # The request might be abandoned.
            return self._state


def taken_in(state: LedgerState, piece: Piece, pace: ThreadPace) -> LedgerState:
    """Return the state of the ledger after one more piece of it. Runs on a thread."""
    entries = dict(state.entries)
    undecided = dict(state.undecided)
    for batch in piece.batches:
        header = batch.header
        if header.next_offset <= state.position:
            continue
        pace.rest()
        if header.is_control:
            marker = read_marker(batch.data)
            decided = undecided.pop(header.producer_id, {})
            if marker is not None and marker.commit:
                _take(entries, decided)
            continue
        found = _entries_in(batch, pace)
        if not found:
            continue
        if header.is_transactional:
            earlier = undecided.pop(header.producer_id, {})
            undecided[header.producer_id] = _newest({**earlier, **found})
            # Each of a thousand producers could have a thousand queries otherwise.
            while sum(map(len, undecided.values())) > UNDECIDED_MOST:
                del undecided[next(iter(undecided))]
        else:
            _take(entries, found)
    return LedgerState(piece.until_offset, entries, undecided)


def _take(
    entries: dict[QueryKey, LedgerEntry], decided: Mapping[QueryKey, LedgerEntry | None]
) -> None:
    for key, entry in decided.items():
        entries.pop(key, None)
        if entry is not None:
            entries[key] = entry
    while len(entries) > QUERIES_MOST:
        del entries[next(iter(entries))]


def _newest(
    found: dict[QueryKey, LedgerEntry | None],
) -> dict[QueryKey, LedgerEntry | None]:
    while len(found) > QUERIES_MOST:
        del found[next(iter(found))]
    return found


def _entries_in(batch: Batch, pace: ThreadPace) -> dict[QueryKey, LedgerEntry | None]:
    found: dict[QueryKey, LedgerEntry | None] = {}
    try:
        for record in iterate_records(
            batch.data, limit_bytes=EXPANDED_MOST_BYTES, headers_max=HEADERS_MOST
        ):
            pace.step()
            key = _key_of(record.key)
            if key is not None:
                found.pop(key, None)
                found[key] = entry_of(key, record)
                _newest(found)
    except (InvalidBatch, CorruptBatch):
        return {}  # Not written by a sink, whose batches have one record and are not compressed.
    return found


def _key_of(key: bytes | None) -> QueryKey | None:
    if key is None or len(key) > 4 * NAME_MOST:
        return None
    try:
        sink, query = json.loads(key)
        json.dumps([sink, query], ensure_ascii=False).encode()  # Nothing that is no text.
    except (ValueError, TypeError, RecursionError):
        return None
    if not isinstance(sink, str) or not isinstance(query, str):
        return None
    return (sink, query) if max(len(sink), len(query)) <= NAME_MOST else None


def entry_of(key: QueryKey, record: Record) -> LedgerEntry | None:
    """Return the entry of a record, or None for a tombstone."""
    if not record.value:
        return None
    bare = LedgerEntry(*key, record.offset, record.timestamp)
    if len(record.value) > VALUE_MOST_BYTES:
        return bare._replace(problem=f"the entry has {len(record.value)} bytes")
    try:
        fields: dict[str, Any] = json.loads(record.value)
        if fields["version"] not in VERSIONS:
            version = str(fields["version"])[:NAME_MOST]
            return bare._replace(problem=f"the entry has an unknown version {version}")
        begun = fields.get("begun") or (NOT_BEGUN,)
        return bare._replace(
            batch=int(fields["batchId"]),
            begun_batch=int(begun[0]),
            records=_count_of(fields.get("recordCounts", ())),
            **_durations_of(fields.get("measured")),
            transactions=_names(each[0] for each in fields["transactions"]),
            is_pinned=bool(fields["pinned"]),
            sources=_topics_of(fields, "source"),
            sinks=_topics_of(fields, "sink"),
        )
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError):
        return bare._replace(problem="the entry is not readable: another program wrote it")


def _count_of(counts: Any) -> int | None:  # noqa: ANN401
    return int(counts[0]) if counts and int(counts[0]) >= 0 else None


def _durations_of(measured: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the durations of an entry, or none if they are unreadable."""
    try:
        batch = int(measured["batchId"])
        decide_ms, commit_ms = float(measured["decideMs"]), float(measured["commitMs"])
    except (TypeError, LookupError, ValueError, ArithmeticError):
        return {}
    are_valid = all(0 <= each < DURATION_MOST_MS for each in (decide_ms, commit_ms))
    if not are_valid or not 0 <= batch < BATCHES_MOST:
        return {}
    return {"measured_batch": batch, "decide_ms": decide_ms, "commit_ms": commit_ms}


def _topics_of(fields: Mapping[str, Any], side: str) -> tuple[str, ...]:
    """Return the topics of an entry, or none for an entry of the first version."""
    return _names(name for name in fields.get(side, {}).get("topics", {}) if name != LEDGER_TOPIC)


def _names(found: Iterable[object]) -> tuple[str, ...]:
    names = [str(each)[:NAME_MOST] for each in found]
    return tuple(names[:TOPICS_MOST])
