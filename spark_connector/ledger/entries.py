"""Entries of the ledger: what is remembered of a batch, and how it is written down."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

from barnabas.spark_connector.cluster.incarnation import UNKNOWN, Incarnation
from barnabas.spark_connector.cluster.requests import Identity
from barnabas.spark_connector.errors import CheckpointMismatch, SinkError
from barnabas.spark_connector.ledger.measured import Measured

VERSION: Final = 2
_WITHOUT_INCARNATION: Final = 1
"""Entries of this version do not say which topics they are about."""
HISTORY_MAX: Final = 100
"""How many earlier fingerprints an entry carries: as many batches as Spark keeps by default."""
_UNKNOWN_COUNT: Final = -1


class Listed(NamedTuple):
    """A transaction that a batch consists of, as EndTxn has to name it."""

    transactional_id: str
    producer_id: int
    epoch: int

    @property
    def identity(self) -> Identity:
        """Producer id and epoch."""
        return Identity(self.producer_id, self.epoch)


class Begun(NamedTuple):
    """A batch that is not decided, but of which a table may have rows already."""

    batch_id: int = -1
    fingerprint: str = ""
    """By the offsets it ends at; empty if that was not known."""


class Entry(NamedTuple):
    """What the ledger says of a query: its last batch, and how it was written."""

    batch_id: int
    fingerprint: str = ""
    """What the batch consists of, by the offsets it ends at; empty if that was not known."""
    transactions: tuple[Listed, ...] = ()
    is_pinned: bool = False
    """Whether the transactions have no timeout, so that none of them can be lost."""
    history: tuple[str, ...] = ()
    """Fingerprints of the batches before, the latest first."""
    incarnation: Incarnation = UNKNOWN
    """The topics that this batch was read from and written to."""
    record_counts: tuple[int, ...] = ()
    """Records of this batch and of those before, the latest first; -1 where that is not known."""
    begun: Begun = Begun()
    """What was begun since."""
    measured: Measured | None = None
    """Durations of an earlier batch, usually the one before: the entry of a batch is written before
    the batch is decided. None if the process that wrote the entry had decided none."""

    def knows(self, batch_id: int) -> str:
        """The fingerprint of a batch, empty if that is not known any more."""
        behind = self.batch_id - batch_id
        if behind == 0:
            return self.fingerprint
        return self.history[behind - 1] if 0 < behind <= len(self.history) else ""

    def records_of(self, batch_id: int) -> int | None:
        """How many records a batch has written; None if that is not known any more."""
        count = self._count_of(batch_id)
        return None if count == _UNKNOWN_COUNT else count

    def _count_of(self, batch_id: int) -> int:
        behind = self.batch_id - batch_id
        is_known = 0 <= behind < len(self.record_counts)
        return self.record_counts[behind] if is_known else _UNKNOWN_COUNT

    def check(self, batch_id: int, fingerprint: str) -> None:
        """Raise CheckpointMismatch if a decided batch was another one than this."""
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
        """The entry of the batch before, for when all of this one was lost."""
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
        """The entry of the batch that comes next."""
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
    """An entry as the value of its record."""
    return json.dumps(
        {
            "version": VERSION,
            "batchId": entry.batch_id,
            "fingerprint": entry.fingerprint,
            "transactions": entry.transactions,
            "pinned": entry.is_pinned,
            "history": entry.history,
            # Versions of this sink that do not know it pass over it.
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


def key_of(sink_id: str, query_id: str) -> bytes:
    """The key of a query's record."""
    return json.dumps([sink_id, query_id]).encode()


def query_of(key: bytes | None) -> tuple[str, str]:
    """Sink id and query id of a record; empty ones for a record that is no entry."""
    try:
        sink_id, query_id = json.loads(key or b"")
    except (ValueError, TypeError, RecursionError):
        return "", ""
    return str(sink_id), str(query_id)
