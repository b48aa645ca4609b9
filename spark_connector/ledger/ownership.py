"""Ownership of a sink by one driver: fence first, then read the ledger, then decide.

Rules of this file:

1. A driver that initializes the sink's transactional ID fences all previous drivers and ends their
   open transaction. Only after that is the ledger final.
2. A fenced driver stays fenced: it aborts no transaction any more, since the next driver may have
   decided one that looks left over.
3. After a failure a driver is not the owner: its next step starts with the fence.
4. A driver whose checkpoint is refused does not fence: a pipeline with the sink ID of another one,
   or with an old copy of the checkpoint, must not end the running one (`continuity.py`). After the
   fence the checks run again, for batches that were decided in between.
5. After an idle time a driver first checks that it is still the owner: brokers forget unused
   transactional IDs, and with the ID that a driver was fenced.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from barnabas.spark_connector.cluster.cluster import Cluster
from barnabas.spark_connector.cluster.producer import TransactionalProducer
from barnabas.spark_connector.errors import Fenced
from barnabas.spark_connector.failpoints import reach
from barnabas.spark_connector.ledger.continuity import Continuity
from barnabas.spark_connector.ledger.entries import NO_ENTRY, Begun, Entry, entry_batch
from barnabas.spark_connector.ledger.ledger import Ledger
from barnabas.spark_connector.ledger.measured import Measured
from barnabas.spark_connector.ledger.roll_forward import roll_forward
from barnabas.spark_connector.ledger.sweep import Decided, sweep
from barnabas.spark_connector.rows.encoded import EncodedBatch
from barnabas.spark_connector.settings.options import SinkOptions
from barnabas.storage.runtime.clock import monotonic

IDLE_S: Final = 60.0
"""Idle time after which the driver checks its ownership; brokers remember an ID for longer."""


class Ownership:
    """The sink's own producer, and the ledger entries since its fence."""

    def __init__(self, options: SinkOptions, cluster: Cluster) -> None:
        self._options = options
        self._cluster = cluster
        self._fenced: Fenced | None = None
        self.ledger = Ledger(cluster, options.ledger_topic)
        self._continuity = Continuity(options, cluster)
        self.producer = TransactionalProducer(
            cluster, options.transactional_id, options.transaction_timeout_ms
        )
        self.is_owner = False
        self._used_at_s = 0.0
        self.entry = NO_ENTRY
        """Last decided batch of the query; its transactions are committed."""
        self.measured: Measured | None = None
        """Durations of the last batch that this driver decided."""
        self._listed_before: frozenset[str] = frozenset()

    @property
    def is_fenced(self) -> bool:
        """Whether another driver has started since."""
        return self._fenced is not None

    @property
    def listed(self) -> frozenset[str]:
        """Transactional IDs in decided batches of the sink's queries, which are never aborted."""
        return self._listed_before | _listed(self.entry)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Run the block as the owner; after a failure the next step fences again."""
        if self._fenced is not None:
            raise Fenced(*self._fenced.args)
        try:
            yield
        except BaseException as error:
            self.is_owner = False
            if isinstance(error, Fenced):
                self._fenced = error
            raise

    def take(self, query_id: str, fenced_place: str, batch_id: int | None = None) -> Entry:
        """Fence, read the ledger, and commit its last decided batch, which is returned.

        ``batch_id`` is the first batch of the query, or `None` if unknown.
        """
        if self.is_owner and self._is_remembered():
            return self.entry
        self._refuse_in_time(query_id, batch_id)
        queries = self.fence(fenced_place)
        self._finish_others(queries, query_id)
        self._continuity.judge(query_id, queries, frozenset(), batch_id)
        self._continuity.refuse_overtaken(batch_id)
        entry = queries.get(query_id, NO_ENTRY)
        if not roll_forward(self._cluster, query_id, entry, self._options, middle="C2-middle"):
            entry = entry.before()
        self.entry = entry
        self.is_owner = True
        return entry

    def _is_remembered(self) -> bool:
        """Return whether the broker still knows this owner; raises Fenced if it knows another."""
        if monotonic() - self._used_at_s < IDLE_S:
            return True
        self._used_at_s = monotonic()
        return self.producer.renew()

    def is_decided(
        self,
        query_id: str,
        fenced_place: str,
        batch_id: int,
        fingerprint: str,
        source_topics: Iterable[str] = (),
    ) -> bool:
        """Return whether a batch is decided; raises CheckpointMismatch if it has other offsets.

        If it is not decided, check that the topics are the same as before, and note their IDs.
        """
        with self.held():
            entry = self.take(query_id, fenced_place, batch_id)
        if batch_id > entry.batch_id:
            self.observe(source_topics)
            return False
        entry.check(batch_id, fingerprint)
        return True

    def observe(self, source_topics: Iterable[str]) -> None:
        """Check that topics are the same as before, and write their IDs to the checkpoint."""
        self._continuity.observe(self.entry, source_topics)
        self._continuity.note()

    def inspect(self, query_id: str, batch_id: int | None, source_topics: Iterable[str]) -> None:
        """Raise the refusals of `take`, and note the IDs of topics; fence no producer."""
        queries = self._refuse_in_time(query_id, batch_id)
        self._continuity.observe(queries.get(query_id, NO_ENTRY), source_topics)
        self._continuity.note()

    def fence(self, fenced_place: str) -> dict[str, Entry]:
        """Fence all previous drivers; return the last decided entry by query ID."""
        self.is_owner = False
        self.ledger.ensure()
        self.producer.begin()
        self._used_at_s = monotonic()
        reach(fenced_place)
        queries = self.ledger.queries(self._options.sink_id)
        self._listed_before = frozenset().union(*map(_listed, queries.values()))
        return queries

    def _refuse_in_time(self, query_id: str, batch_id: int | None) -> Mapping[str, Entry]:
        """Refuse a checkpoint that stays wrong even if a running driver decides further batches."""
        decided, undecided = self.ledger.glimpse(self._options.sink_id)
        if query_id not in decided.keys() | undecided:
            self._finish_others(decided, query_id)
        self._continuity.judge(query_id, decided, undecided, batch_id)
        self._continuity.refuse_overtaken(batch_id)
        return decided

    def _finish_others(self, queries: Mapping[str, Entry], query_id: str) -> None:
        """Commit decided batches of other queries of this sink; repeated commits are harmless.

        Only the query itself refuses a batch of which a part was lost.
        """
        for other in queries.keys() - {query_id}:
            entry = queries[other]
            roll_forward(self._cluster, other, entry, None, middle="C2-middle")

    def sweep(self, query_id: str, batch_id: int, *, pins: bool) -> None:
        """Abort open transactions of tasks that no entry lists; see `sweep.py` for ``pins``."""
        decided = Decided(query_id, batch_id, self.listed)
        owns = self.producer.still_owns if pins else None
        sweep(self._cluster, self._options.sink_id, decided, owns)

    def begin_batch(self, query_id: str, batch_id: int, fingerprint: str) -> bool:
        """Note the start of a batch in the ledger; return whether the batch has started before.

        Afterwards its rows may be written to a table, which is outside of the sink's transaction
        and keeps the first rows. A fenced driver fails here, and a batch that has started once
        never starts with other offsets.
        """
        has_started_before = self.entry.begun.batch_id == batch_id
        with self.held():
            begun = Begun(batch_id, fingerprint)
            entry = self.entry._replace(begun=begun, measured=self.measured)
            batch = self._entry_batch(query_id, entry)
            self.producer.write([batch])
            self.decide(entry)
        return has_started_before

    def write_decision(
        self,
        entry: Entry,
        query_id: str,
        offsets: Mapping[tuple[str, int], int],
        written: Iterable[str] = (),
    ) -> Entry:
        """Write the ledger's entry and the source's offsets; `decide` commits them.

        Return the entry as written: with the IDs of the batch's topics, fetched after all its
        reads and writes.
        """
        self.producer.flush()
        topics = self._continuity.observe(self.entry, (topic for topic, _ in offsets), written)
        entry = entry._replace(incarnation=topics, measured=self.measured)
        self.producer.write([self._entry_batch(query_id, entry)])
        if self._options.source_group_id:
            self.producer.commit_offsets(self._options.source_group_id, offsets)
        self.producer.flush()
        return entry

    def _entry_batch(self, query_id: str, entry: Entry) -> EncodedBatch:
        return entry_batch(self._options.ledger_topic, self._options.sink_id, query_id, entry)

    def decide(self, entry: Entry) -> None:
        """Commit the written entry, which decides its batch."""
        self.producer.commit()
        self._used_at_s = monotonic()
        self.entry = entry


def _listed(entry: Entry) -> frozenset[str]:
    return frozenset(each.transactional_id for each in entry.transactions)
