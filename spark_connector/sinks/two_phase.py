"""Transactions of tasks, which the driver decides together.

A task leaves its transaction open and sends its identity to the driver (:class:`Participant`). The
driver fences (C1), reads the ledger (C2), takes over the transactions so that none can time out
(C3, KIP-939), commits one entry that lists them (C4: the decision) and then each of them (C5).
After any crash the next driver reads the ledger, commits the listed transactions, and aborts all
others.
C1 to C5 are steps of this protocol and names of failpoints, not rules of docs/invariants.md.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.init_producer_id import InitProducerIdResponse
from barnabas.spark_connector.closing import Closing
from barnabas.spark_connector.cluster.cluster import Cluster, connected
from barnabas.spark_connector.cluster.producer import TransactionalProducer
from barnabas.spark_connector.cluster.requests import (
    NO_IDENTITY,
    Identity,
    refused,
    speaks_of_pins,
    take_over,
)
from barnabas.spark_connector.errors import (
    BatchInDoubt,
    BrokerUnreachable,
    CheckpointMismatch,
    Fenced,
    Overtaken,
    Recreated,
    SinkError,
    TransactionLost,
)
from barnabas.spark_connector.failpoints import reach
from barnabas.spark_connector.ledger.entries import Entry, Listed
from barnabas.spark_connector.ledger.measured import Measured
from barnabas.spark_connector.ledger.ownership import Ownership
from barnabas.spark_connector.ledger.prepared import Prepared, task_transactional_id
from barnabas.spark_connector.ledger.roll_forward import roll_forward
from barnabas.spark_connector.ledger.sweep import abort_all, can_list, describe
from barnabas.spark_connector.rows.encoded import EncodedBatch
from barnabas.spark_connector.settings.options import SinkOptions
from barnabas.storage.runtime.clock import monotonic

__all__ = ["Decider", "Participant", "Prepared"]

_NO_PIN: Final = {
    ErrorCode.UNSUPPORTED_VERSION,  # No KeepPreparedTxn, or two-phase commit is disabled.
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,  # For Enable2Pc, if it is disabled.
}


class Participant:
    """One attempt of one task: its rows in a transaction that the driver ends."""

    def __init__(
        self,
        options: SinkOptions,
        *,
        batch_id: int,
        query_id: str,
        partition: int,
        task_attempt_id: int,
        nonce: str,
        cluster: Cluster | None = None,
    ) -> None:
        self._batch_id = batch_id
        self._query_id = query_id
        self._id = task_transactional_id(
            options.sink_id, query_id, batch_id, partition, task_attempt_id, nonce
        )
        self._cluster = cluster or connected(options)
        self._owns_cluster = cluster is None
        self._producer = TransactionalProducer(
            self._cluster, self._id, options.transaction_timeout_ms
        )
        self._count = 0
        self._topics: dict[str, None] = {}

    def write(self, batches: Iterable[EncodedBatch]) -> None:
        """Send batches; the first one opens the transaction."""
        for batch in batches:
            self._topics[batch.topic] = None
            if self._producer.identity == NO_IDENTITY:
                self._producer.begin()
            self._count += self._producer.write([batch])
            if self._count == batch.record_count:
                reach("W1-middle")

    def prepared(self) -> Prepared:
        """Return when all records are acknowledged; the transaction stays open."""
        if self._count:
            self._producer.flush()
        reach("W1")
        identity = self._producer.identity
        return Prepared(
            self._id, *identity, self._count, self._batch_id, self._query_id, tuple(self._topics)
        )

    def discard(self) -> None:
        """Abort after a failure, so that it blocks no consumer; if that fails, the sweep aborts."""
        if self._producer.is_open:
            with contextlib.suppress(SinkError):
                self._producer.abort()

    def close(self) -> None:
        """Close the connections; an open transaction stays open."""
        if self._owns_cluster:
            self._cluster.close()


class Decider(Closing):
    """The driver's side, one at a time for each sink."""

    def __init__(
        self,
        options: SinkOptions,
        query_id: str | None = None,
        cluster: Cluster | None = None,
        *,
        is_sole_recipient: bool = False,
    ) -> None:
        """``is_sole_recipient``: no other driver receives the messages of this one's tasks."""
        self._options = options
        self._query_id = query_id
        self._is_sole_recipient = is_sole_recipient
        self._cluster = cluster or connected(options)
        self._owns_cluster = cluster is None
        self._ownership = Ownership(options, self._cluster)
        self._pins: bool | None = None
        self._taken: dict[str, Identity] = {}

    @property
    def pins(self) -> bool:
        """Whether the broker can remove the timeout of an open transaction (KIP-939).

        Otherwise a decided batch is lost if its transactions time out before their commit.
        """
        if self._pins is None:
            self._pins = speaks_of_pins(self._cluster)
        return self._pins

    @property
    def measured(self) -> Measured | None:
        """Durations of the last batch that this driver decided, or `None` if there is none."""
        return self._ownership.measured

    def recover(self, batch_id: int | None = None) -> int:
        """Become the driver, end all open transactions; return the last decided batch or -1.

        Call it before any task of the next batch starts. ``batch_id`` is the number of that batch,
        or `None` if unknown.
        """
        assert self._query_id is not None, "recovering needs the query's id"
        with self._ownership.held():
            self._ownership.is_owner = False
            entry = self._ownership.take(self._query_id, "C1", batch_id)
            self._sweep(entry)
        return entry.batch_id

    def is_decided(
        self, batch_id: int, fingerprint: str = "", source_topics: Iterable[str] = ()
    ) -> bool:
        """Return whether a batch is decided; raises CheckpointMismatch if it has other offsets."""
        assert self._query_id is not None, "asking needs the query's id"
        return self._ownership.is_decided(
            self._query_id, "C1", batch_id, fingerprint, source_topics
        )

    def begin_batch(self, batch_id: int, fingerprint: str) -> bool:
        """Note the start of a batch in the ledger; see Ownership."""
        assert self._query_id is not None, "beginning needs the query's id"
        return self._ownership.begin_batch(self._query_id, batch_id, fingerprint)

    def commit(
        self,
        batch_id: int,
        prepared: Sequence[Prepared | None],
        fingerprint: str = "",
        source_offsets: Mapping[tuple[str, int], int] | None = None,
    ) -> bool:
        """Make a whole batch visible exactly once; return false if it was decided before.

        A repeated call for the same batch may have the same messages or others.
        """
        began_s = monotonic()
        query_id = self._learn_query(prepared)
        messages = written(prepared)
        with self._ownership.held():
            entry = self._checked(query_id, batch_id, messages, fingerprint)
            if batch_id <= entry.batch_id:
                self._discard(messages)
                self._sweep(entry)
                return False
            with self._discarding(messages):
                listed = self._pin(batch_id, messages)
                reach("C3")
                following = entry.followed_by(
                    batch_id,
                    fingerprint,
                    listed,
                    is_pinned=self.pins,
                    record_count=sum(each.record_count for each in messages),
                )
                topics = dict.fromkeys(topic for each in messages for topic in each.topics)
                following = self._ownership.write_decision(
                    following, query_id, source_offsets or {}, topics
                )
            reach("C4-before")
            self._ownership.decide(following)
            decided_s = monotonic()
            reach("C4-after")
            self._finish(query_id, following)
        self._ownership.measured = Measured.ending_now(batch_id, began_s, decided_s)
        reach("C5-after")
        return True

    def abort(self, batch_id: int, prepared: Sequence[Prepared | None]) -> None:
        """Abort a batch or, if it is decided, finish its commit.

        The query's ID must be known from an earlier call or a message: otherwise this could be an
        old copy of a query, which must not fence the driver of the real one. The next start sweeps
        the leftovers.
        """
        query_id = self._learn_query(prepared)
        if self._ownership.is_fenced or not query_id:
            return  # The current driver, or the next start, sweeps the leftovers.
        with self._ownership.held():
            entry = self._ownership.take(query_id, "C1", batch_id)
            messages = written(prepared)
            assert all(each.batch_id == batch_id for each in messages), "one batch at a time"
            self._discard(messages)
            self._sweep(entry)

    # ---------------------------------------------------------------------------------- the steps

    def _learn_query(self, prepared: Iterable[Prepared | None]) -> str:
        """Return the query's ID, which the data source has only from the messages."""
        if self._query_id is None:
            ids = {each.query_id for each in prepared if each is not None}
            assert len(ids) <= 1, "one query at a time"
            self._query_id = ids.pop() if ids else None
        return self._query_id or ""

    def _checked(
        self, query_id: str, batch_id: int, messages: Sequence[Prepared], fingerprint: str
    ) -> Entry:
        """C1 and C2; a refusal after the ledger was read aborts the batch's transactions."""
        try:
            entry = self._ownership.take(query_id, "C1", batch_id)
            if batch_id <= entry.batch_id:
                entry.check(batch_id, fingerprint)
        except (CheckpointMismatch, Recreated, Overtaken, BatchInDoubt):
            with contextlib.suppress(SinkError):
                self._discard(messages)
            raise
        except Fenced:
            self._give_up(messages)
            raise
        return entry

    def _pin(self, batch_id: int, messages: Sequence[Prepared]) -> tuple[Listed, ...]:
        """C3: check that all transactions are open, and pin them if the broker can."""
        self._taken = {each.transactional_id: _identity_of(each) for each in messages}
        still_open = self._taken
        if messages and self.pins:
            still_open = self._take_over(messages)
        if not self.pins:
            is_known = can_list(self._cluster)
            still_open = describe(self._cluster, self._taken) if is_known else self._taken
        lost = [key for key, identity in self._taken.items() if still_open.get(key) != identity]
        if lost:
            raise TransactionLost(
                f"Batch {batch_id} cannot be committed because {len(lost)} of its {len(messages)} "
                "transactions ended before all tasks were done, most likely since they were open "
                "for longer than transactionTimeoutMs; nothing of the batch is visible, so raise "
                "that option and start the query again."
            )
        return tuple(Listed(key, *self._taken[key]) for key in self._taken)

    def _take_over(self, messages: Sequence[Prepared]) -> dict[str, Identity]:
        """Pin; return the transactions that were open with their tasks' identities."""
        timeout_ms = self._options.transaction_timeout_ms
        answers = take_over(self._cluster, self._taken, timeout_ms)
        codes = {ErrorCode(answer.error_code) for answer in answers.values()}
        if codes <= _NO_PIN:
            self._pins = False
            return {}
        for code in codes - {ErrorCode.NONE}:
            raise refused("Pinning the transactions of a batch", code)
        pinned = {
            each.transactional_id: answers[each.transactional_id]
            for each in messages
            if _ongoing(answers[each.transactional_id]) == _identity_of(each)
        }
        for key, answer in pinned.items():
            self._taken[key] = Identity(answer.producer_id, answer.producer_epoch)
        return {key: self._taken[key] for key in pinned}

    @contextlib.contextmanager
    def _discarding(self, messages: Sequence[Prepared]) -> Iterator[None]:
        """Abort after a failure before the decision, so that the batch blocks no consumer."""
        try:
            yield
        except BrokerUnreachable:
            raise  # An abort would fail, too.
        except Fenced:
            self._give_up(messages)
            raise
        except Exception:
            # The next sweep aborts leftovers; the first error is reported.
            with contextlib.suppress(SinkError):
                self._ownership.producer.abort()
            with contextlib.suppress(SinkError):
                self._discard(messages)
            raise

    def _finish(self, query_id: str, entry: Entry) -> None:
        """C5: commit the listed transactions, abort others."""
        if not roll_forward(self._cluster, query_id, entry, self._options, middle="C5-middle"):
            raise TransactionLost(
                f"Batch {entry.batch_id} was decided, but all of its transactions ended before "
                "they were committed; nothing of it is visible, so start the query again."
            )
        self._taken.clear()
        self._sweep(entry)

    def _give_up(self, messages: Sequence[Prepared]) -> None:
        """Abort the transactions after this driver was fenced, if only it received the messages.

        Otherwise another driver may have decided the batch, and its sweep aborts leftovers.
        """
        if self._is_sole_recipient:
            with contextlib.suppress(SinkError):
                self._discard(messages)

    def _discard(self, messages: Sequence[Prepared]) -> None:
        """Abort transactions that no entry lists."""
        listed = self._ownership.listed
        abort_all(
            self._cluster,
            {
                each.transactional_id: self._taken.get(each.transactional_id, _identity_of(each))
                for each in messages
                if each.transactional_id not in listed
            },
        )

    def _sweep(self, entry: Entry) -> None:
        """Abort leftovers of tasks."""
        self._ownership.sweep(self._query_id or "", entry.batch_id, pins=self.pins)

    def close(self) -> None:
        """Close the connections."""
        if self._owns_cluster:
            self._cluster.close()


def written(prepared: Iterable[Prepared | None]) -> list[Prepared]:
    """Return the messages that have a transaction."""
    return [each for each in prepared if each is not None and each.producer_id >= 0]


def _identity_of(message: Prepared) -> Identity:
    return Identity(message.producer_id, message.epoch)


def _ongoing(answer: InitProducerIdResponse) -> Identity:
    return Identity(answer.ongoing_txn_producer_id, answer.ongoing_txn_producer_epoch)
