"""Being the one driver of a sink: fence first, then read the ledger, then decide.

Rules of this file:

1. A driver that begins with the sink's transactional id fences every driver before it and settles
   what that had under way. Only after that is the ledger the truth.
2. Who was fenced stays fenced: it touches nothing more that another driver may know of, for what
   it would take for left over may be decided.
3. A failure makes no owner: the next step begins with the fence again.
4. Who would be refused afterwards does not fence: a pipeline that was given a used sink id by
   mistake, or an old copy of the checkpoint, must not end the one that runs (`continuity.py`).
   What was decided between that look and the fence is judged again.
5. Who had nothing to do for long asks first whether it is the owner still: brokers forget ids that
   are not in use, and with this one they forget who was fenced.
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
from barnabas.spark_connector.ledger.entries import NO_ENTRY, Begun, Entry
from barnabas.spark_connector.ledger.ledger import Ledger
from barnabas.spark_connector.ledger.measured import Measured
from barnabas.spark_connector.ledger.roll_forward import roll_forward
from barnabas.spark_connector.ledger.sweep import Decided, sweep
from barnabas.spark_connector.settings.options import SinkOptions
from barnabas.storage.runtime.clock import monotonic

IDLE_S: Final = 60.0
"""After so long the broker is asked again. No broker should forget what was in use since."""


class Ownership:
    """The sink's own producer, and what the ledger says since it began."""

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
        """The last decided batch of the query; its transactions are committed."""
        self.measured: Measured | None = None
        """Durations of the last batch that was decided here."""
        self._listed_before: frozenset[str] = frozenset()

    @property
    def is_fenced(self) -> bool:
        """Whether another driver has begun since."""
        return self._fenced is not None

    @property
    def listed(self) -> frozenset[str]:
        """Transactional ids that any query of the sink has decided about: never aborted."""
        return self._listed_before | _listed(self.entry)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """What is done inside is done by the owner; any failure makes it begin anew."""
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
        """Fence, read the ledger, and finish what it says is decided; returns the last batch.

        ``batch_id`` is the batch that the query begins with, if it is known.
        """
        if self.is_owner and self._is_remembered():
            return self.entry
        self._refuse_in_time(query_id, batch_id)
        queries = self.fence(fenced_place)
        self._finish_others(queries, query_id)
        self._continuity.judge(query_id, queries, frozenset(), batch_id)
        self._continuity.refuse_overtaken(batch_id)
        entry = queries.get(query_id, NO_ENTRY)
        if not roll_forward(
            self._cluster,
            query_id,
            entry,
            is_loss_accepted=self._options.accepts_lost(query_id, entry.batch_id),
            middle="C2-middle",
        ):
            entry = entry.before()
        self.entry = entry
        self.is_owner = True
        return entry

    def _is_remembered(self) -> bool:
        """Whether the broker knows this owner still; raises Fenced if it knows another one."""
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
        """Whether a batch was decided before; raises CheckpointMismatch if it was another one.

        If it was not, the topics are seen to be the same as before, and noted.
        """
        with self.held():
            entry = self.take(query_id, fenced_place, batch_id)
        if batch_id > entry.batch_id:
            self.observe(source_topics)
            return False
        entry.check(batch_id, fingerprint)
        return True

    def observe(self, source_topics: Iterable[str]) -> None:
        """See that topics are what they were, and note it where the next start finds it."""
        self._continuity.observe(self.entry, source_topics)
        self._continuity.note()

    def inspect(self, query_id: str, batch_id: int | None, source_topics: Iterable[str]) -> None:
        """Refuse what `take` would refuse, and note which topics there are; fences no producer."""
        queries = self._refuse_in_time(query_id, batch_id)
        self._continuity.observe(queries.get(query_id, NO_ENTRY), source_topics)
        self._continuity.note()

    def fence(self, fenced_place: str) -> dict[str, Entry]:
        """Fence every driver before this one; returns what is decided, by query id."""
        self.is_owner = False
        self.ledger.ensure()
        self.producer.begin()
        self._used_at_s = monotonic()
        reach(fenced_place)
        queries = self.ledger.queries(self._options.sink_id)
        self._listed_before = frozenset().union(*map(_listed, queries.values()))
        return queries

    def _refuse_in_time(self, query_id: str, batch_id: int | None) -> Mapping[str, Entry]:
        """Refuse what the ledger will not allow whatever becomes of the driver at work."""
        decided, undecided = self.ledger.glimpse(self._options.sink_id)
        if query_id not in decided.keys() | undecided:
            self._finish_others(decided, query_id)
        self._continuity.judge(query_id, decided, undecided, batch_id)
        self._continuity.refuse_overtaken(batch_id)
        return decided

    def _finish_others(self, queries: Mapping[str, Entry], query_id: str) -> None:
        """Commit what other queries of this sink have decided; anybody may, any number of times.

        Whether it was whole is for that query to say.
        """
        for other in queries.keys() - {query_id}:
            entry = queries[other]
            roll_forward(self._cluster, other, entry, is_loss_accepted=True, middle="C2-middle")

    def sweep(self, query_id: str, batch_id: int, *, pins: bool) -> None:
        """Abort what tasks have left open and no decision names; see `sweep.py` for ``pins``."""
        decided = Decided(query_id, batch_id, self.listed)
        owns = self.producer.still_owns if pins else None
        sweep(self._cluster, self._options.sink_id, decided, owns)

    def begin_batch(self, query_id: str, batch_id: int, fingerprint: str) -> bool:
        """Note in the ledger that a batch is begun; return whether it was begun before.

        After this its rows may go where no transaction of this sink reaches: into a table that
        keeps the first it gets. Who was fenced gets no further, and what is begun once is not begun
        with other offsets.
        """
        was_begun = self.entry.begun.batch_id == batch_id
        with self.held():
            begun = Begun(batch_id, fingerprint)
            entry = self.entry._replace(begun=begun, measured=self.measured)
            batch = self.ledger.entry_batch(self._options.sink_id, query_id, entry)
            self.producer.write([batch])
            self.decide(entry)
        return was_begun

    def write_decision(
        self,
        entry: Entry,
        query_id: str,
        offsets: Mapping[tuple[str, int], int],
        written: Iterable[str] = (),
    ) -> Entry:
        """Write the ledger's entry and the source's offsets; nothing is decided yet.

        Returns the entry as it was written: with the topics that the batch is about, after all that
        was read from them and written to them.
        """
        sink_id = self._options.sink_id
        self.producer.flush()
        topics = self._continuity.observe(self.entry, (topic for topic, _ in offsets), written)
        entry = entry._replace(incarnation=topics, measured=self.measured)
        self.producer.write([self.ledger.entry_batch(sink_id, query_id, entry)])
        if self._options.source_group_id:
            self.producer.commit_offsets(self._options.source_group_id, offsets)
        self.producer.flush()
        return entry

    def decide(self, entry: Entry) -> None:
        """Commit the entry that was written: from here on what it says is so."""
        self.producer.commit()
        self._used_at_s = monotonic()
        self.entry = entry


def _listed(entry: Entry) -> frozenset[str]:
    return frozenset(each.transactional_id for each in entry.transactions)
