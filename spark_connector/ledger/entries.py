"""Entries of the ledger: the facts about a batch, and their encoding."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

from barnabas.protocol.records import Record, encode_batch
from barnabas.spark_connector.cluster.incarnation import UNKNOWN, Incarnation
from barnabas.spark_connector.cluster.requests import Identity
from barnabas.spark_connector.errors import CheckpointMismatch, SinkError
from barnabas.spark_connector.ledger.measured import Measured
from barnabas.spark_connector.rows.encoded import EncodedBatch
from barnabas.storage.runtime.clock import now_ns

PARTITION: Final = 0
"""The only partition of the ledger's topic."""
VERSION: Final = 2
_WITHOUT_INCARNATION: Final = 1
"""Version of entries without the IDs of topics."""
HISTORY_MAX: Final = 100
"""Number of earlier fingerprints in an entry; Spark keeps as many batches by default."""
_UNKNOWN_COUNT: Final = -1


class Listed(NamedTuple):
    """A transaction of a batch, with the fields that EndTxn needs."""

    transactional_id: str
    producer_id: int
    epoch: int

    @property
    def identity(self) -> Identity:
        """Producer id and epoch."""
        return Identity(self.producer_id, self.epoch)


class Begun(NamedTuple):
    """A batch that is not decided, but whose rows may already be in a table."""

    batch_id: int = -1
    fingerprint: str = ""
    """Digest of the end offsets; empty if unknown."""


class Entry(NamedTuple):
    """The last decided batch of a query, and its transactions."""

    batch_id: int
    fingerprint: str = ""
    """Digest of the batch's end offsets; empty if unknown."""
    transactions: tuple[Listed, ...] = ()
    is_pinned: bool = False
    """Whether the transactions have no timeout, so that none can be lost."""
    history: tuple[str, ...] = ()
    """Fingerprints of the previous batches, latest first."""
    incarnation: Incarnation = UNKNOWN
    """IDs of the topics that the batch has read and written."""
    record_counts: tuple[int, ...] = ()
    """Number of records of this batch and of the previous ones, latest first; -1 if unknown."""
    begun: Begun = Begun()
    """Batch that has started after this one, with a table."""
    measured: Measured | None = None
    """Durations of an earlier batch, usually the previous one, since an entry precedes the decision
    of its batch; `None` if the writing process has decided no batch before."""

    def knows(self, batch_id: int) -> str:
        """Return the fingerprint of a batch, empty if unknown."""
        behind = self.batch_id - batch_id
        if behind == 0:
            return self.fingerprint
        return self.history[behind - 1] if 0 < behind <= len(self.history) else ""

    def records_of(self, batch_id: int) -> int | None:
        """Return the number of records that a batch has written, or `None` if unknown."""
        count = self._count_of(batch_id)
        return None if count == _UNKNOWN_COUNT else count

    def _count_of(self, batch_id: int) -> int:
        behind = self.batch_id - batch_id
        is_known = 0 <= behind < len(self.record_counts)
        return self.record_counts[behind] if is_known else _UNKNOWN_COUNT

    def check(self, batch_id: int, fingerprint: str) -> None:
        """Raise CheckpointMismatch if the decided batch has another fingerprint."""
        known = self.knows(batch_id)
        if fingerprint and self.fingerprint and self.batch_id - batch_id > len(self.history):
            raise CheckpointMismatch(
                f"Batch {batch_id} is too far behind batch {self.batch_id}, the last that this "
                "sink has written, to tell whether it is the batch that was written then, so this "
                "checkpoint is an old one; restore the checkpoint that the sink was written with, "
                "or use another sinkId for the new data."
            )
        if fingerprint and known and fingerprint != known:
            raise CheckpointMismatch(
                f"Batch {batch_id} ends at other offsets than the batch {batch_id} that this sink "
                "has written already, so this checkpoint is not the one it was written with; "
                "restore that checkpoint, or use another sinkId for the new data."
            )

    def before(self) -> Entry:
        """Return the entry of the previous batch, for use after this one was lost completely."""
        return Entry(
            self.batch_id - 1,
            self.knows(self.batch_id - 1),
            history=self.history[1:],
            incarnation=self.incarnation,
            record_counts=self.record_counts[1:],
        )

    def followed_by(
        self,
        batch_id: int,
        fingerprint: str,
        transactions: tuple[Listed, ...],
        *,
        is_pinned: bool,
        record_count: int,
    ) -> Entry:
        """Return the entry of the next batch."""
        before = range(batch_id - 1, batch_id - 1 - HISTORY_MAX, -1)
        known = [self.knows(each) for each in before]
        while known and not known[-1]:
            known.pop()
        counts = [record_count, *map(self._count_of, before)]
        while counts[-1] == _UNKNOWN_COUNT:
            counts.pop()
        return Entry(
            batch_id,
            fingerprint,
            transactions,
            is_pinned,
            tuple(known),
            self.incarnation,
            tuple(counts),
        )


NO_ENTRY: Final = Entry(-1)


def encode(entry: Entry) -> bytes:
    """Return the value of an entry's record."""
    return json.dumps(
        {
            "version": VERSION,
            "batchId": entry.batch_id,
            "fingerprint": entry.fingerprint,
            "transactions": entry.transactions,
            "pinned": entry.is_pinned,
            "history": entry.history,
            # Earlier versions of this sink ignore it.
            "recordCounts": entry.record_counts,
            "begun": entry.begun,
            "measured": None if entry.measured is None else entry.measured.as_plain(),
            **entry.incarnation.as_plain(),
        },
        separators=(",", ":"),
    ).encode()


def decode(value: bytes) -> Entry:
    """Read the value of a record; raises SinkError for one of a later version."""
    try:
        fields: dict[str, Any] = json.loads(value)
        if fields["version"] not in {_WITHOUT_INCARNATION, VERSION}:
            raise SinkError(
                f"The ledger has an entry of version {fields['version']}, which a later version "
                "of this sink has written; use that version."
            )
        return Entry(
            fields["batchId"],
            fields["fingerprint"],
            tuple(Listed(*each) for each in fields["transactions"]),
            fields["pinned"],
            tuple(fields["history"]),
            Incarnation.of_plain(fields) if fields["version"] == VERSION else UNKNOWN,
            tuple(map(int, fields.get("recordCounts", ()))),
            Begun(*fields.get("begun", ())),
            Measured.of_plain(fields.get("measured")),
        )
    except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError) as error:
        raise SinkError(
            f"The ledger has an entry of this sink that cannot be read ({error!r}), so what was "
            "written is not known; another program has written to the ledger's topic."
        ) from None


def entry_batch(topic: str, sink_id: str, query_id: str, entry: Entry) -> EncodedBatch:
    """Return an entry as a batch of one record, for the transaction that decides it."""
    now_ms = now_ns() // 1_000_000
    record = Record(0, now_ms, key_of(sink_id, query_id), encode(entry))
    return EncodedBatch(topic, PARTITION, 1, bytearray(encode_batch([record])))


def key_of(sink_id: str, query_id: str) -> bytes:
    """Return the key of a query's record."""
    return json.dumps([sink_id, query_id]).encode()


def query_of(key: bytes | None) -> tuple[str, str]:
    """Return the sink ID and query ID of a record; both are empty if it is no entry."""
    try:
        sink_id, query_id = json.loads(key or b"")
    except (ValueError, TypeError, RecursionError):
        return "", ""
    return str(sink_id), str(query_id)
