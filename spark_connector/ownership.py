"""Being the one driver of a sink: fence first, then read the ledger, then decide.

Rules of this file:

1. Whoever begins with the sink's transactional id fences every driver before it and settles what
   that had under way. Only after that is the ledger the truth.
2. Who was fenced stays fenced: it touches nothing more that another driver may know of, for what
   it would take for left over may be decided.
3. A failure makes no owner: the next step begins with the fence again.
4. Who would be refused afterwards does not fence: a pipeline that was given a used sink id by
   mistake must not end the one that runs.
5. Who had nothing to do for long asks first whether it is the owner still: brokers forget ids that
   are not in use, and with this one they forget who was fenced.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from typing import Final

from spark_connector.cluster import Cluster
from spark_connector.entries import NO_ENTRY, Entry
from spark_connector.errors import CheckpointMismatch, Fenced
from spark_connector.failpoints import reach
from spark_connector.ledger import Ledger
from spark_connector.options import SinkOptions
from spark_connector.producer import TransactionalProducer
from spark_connector.roll_forward import roll_forward
from spark_connector.sweep import Decided, sweep

IDLE_S: Final = 60.0
"""After so long the broker is asked again. No broker should forget what was in use since."""


class Ownership:
    """The sink's own producer, and what the ledger says since it began."""

    def __init__(self, options: SinkOptions, cluster: Cluster) -> None:
        self._options = options
        self._cluster = cluster
        self._fenced: Fenced | None = None
        self.ledger = Ledger(cluster, options.ledger_topic)
        self.producer = TransactionalProducer(
            cluster, options.transactional_id, options.transaction_timeout_ms
        )
        self.is_owner = False
        self._used_at_s = 0.0
        self.entry = NO_ENTRY
        """The last decided batch of the query; its transactions are committed."""
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

    def take(self, query_id: str, fenced_place: str) -> Entry:
        """Fence, read the ledger, and finish what it says is decided; returns the last batch."""
        if self.is_owner and self._is_remembered():
            return self.entry
        self._refuse_in_time(query_id)
        queries = self.fence(fenced_place)
        entry = queries.get(query_id, NO_ENTRY)
        self._finish_others(queries, query_id)
        if queries and query_id not in queries and not self._options.new_query:
            self._refuse_another(queries)
        accepted = self._options.accepted_batch_id
        if not roll_forward(self._cluster, entry, accepted, middle="C2-middle"):
            entry = entry.before()
        self.entry = entry
        self.is_owner = True
        return entry

    def _is_remembered(self) -> bool:
        """Whether the broker knows this owner still; raises Fenced if it knows another one."""
        if time.monotonic() - self._used_at_s < IDLE_S:
            return True
        self._used_at_s = time.monotonic()
        return self.producer.renew()

    def is_decided(self, query_id: str, fenced_place: str, batch_id: int, fingerprint: str) -> bool:
        """Whether a batch was decided before; raises CheckpointMismatch if it was another one."""
        with self.held():
            entry = self.take(query_id, fenced_place)
        if batch_id > entry.batch_id:
            return False
        entry.check(batch_id, fingerprint)
        return True

    def fence(self, fenced_place: str) -> dict[str, Entry]:
        """Fence every driver before this one; returns what is decided, by query id."""
        self.is_owner = False
        self.ledger.ensure()
        self.producer.begin()
        self._used_at_s = time.monotonic()
        reach(fenced_place)
        queries = self.ledger.queries(self._options.sink_id)
        self._listed_before = frozenset().union(*map(_listed, queries.values()))
        return queries

    def _refuse_in_time(self, query_id: str) -> None:
        """Refuse what the ledger will not allow whatever becomes of the driver at work."""
        if self._options.new_query:
            return
        decided, undecided = self.ledger.glimpse(self._options.sink_id)
        if decided and query_id not in decided.keys() | undecided:
            self._finish_others(decided, query_id)
            self._refuse_another(decided)

    def _finish_others(self, queries: Mapping[str, Entry], query_id: str) -> None:
        """Commit what other queries of this sink have decided; anybody may, any number of times.

        Whether it was whole is for that query to say.
        """
        for other in queries.keys() - {query_id}:
            entry = queries[other]
            roll_forward(self._cluster, entry, entry.batch_id, middle="C2-middle")

    def sweep(self, query_id: str, batch_id: int, *, pins: bool) -> None:
        """Abort what tasks have left open and no decision names; see `sweep.py` for ``pins``."""
        decided = Decided(query_id, batch_id, self.listed)
        owns = self.producer.still_owns if pins else None
        sweep(self._cluster, self._options.sink_id, decided, owns)

    def _refuse_another(self, queries: Mapping[str, Entry]) -> None:
        query_id, entry = next(iter(queries.items()))
        raise CheckpointMismatch(
            f"The sink {self._options.sink_id} was written by another query ({query_id}, up to "
            f"batch {entry.batch_id}), and the checkpoint of this query is a new one or that of "
            "another pipeline; restore the checkpoint of that query, or use another sinkId, or set "
            "newQuery to true if this query's data shall come in addition."
        )

    def write_decision(
        self, entry: Entry, query_id: str, offsets: Mapping[tuple[str, int], int]
    ) -> None:
        """Write the ledger's entry and the source's offsets; nothing is decided yet."""
        sink_id = self._options.sink_id
        self.producer.write([self.ledger.entry_batch(sink_id, query_id, entry)])
        if self._options.source_group_id:
            self.producer.commit_offsets(self._options.source_group_id, offsets)
        self.producer.flush()

    def decide(self, entry: Entry) -> None:
        """Commit the entry: from here on the batch is decided."""
        self.producer.commit()
        self._used_at_s = time.monotonic()
        self.entry = entry


def _listed(entry: Entry) -> frozenset[str]:
    return frozenset(each.transactional_id for each in entry.transactions)
