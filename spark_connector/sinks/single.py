"""A batch, its ledger entry and its source's offsets in one transaction of one producer.

Fence first, then read the ledger, then write. A crash before EndTxn leaves nothing visible, one
after it leaves a ledger that says so; nothing depends on a batch being the same when it is run
again. Works with Apache Kafka from 2.5 on.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping

from barnabas.spark_connector.closing import Closing
from barnabas.spark_connector.cluster.cluster import Cluster, connected
from barnabas.spark_connector.cluster.requests import speaks_of_pins
from barnabas.spark_connector.errors import BrokerUnreachable, SinkError
from barnabas.spark_connector.failpoints import reach
from barnabas.spark_connector.ledger.measured import Measured
from barnabas.spark_connector.ledger.ownership import Ownership
from barnabas.spark_connector.rows.encoded import EncodedBatch
from barnabas.spark_connector.settings.options import SinkOptions
from barnabas.storage.runtime.clock import monotonic


class SingleTransactionSink(Closing):
    """Micro-batches of one query, each in one transaction and exactly once."""

    def __init__(self, options: SinkOptions, query_id: str, cluster: Cluster | None = None) -> None:
        self._query_id = query_id
        self._cluster = cluster or connected(options)
        self._owns_cluster = cluster is None
        self._ownership = Ownership(options, self._cluster)

    @property
    def measured(self) -> Measured | None:
        """Durations of the last batch that was decided here; None if there is none."""
        return self._ownership.measured

    def recover(self, batch_id: int | None = None) -> int:
        """Fence the writer before and return the last decided batch, -1 if there is none.

        ``batch_id`` is the batch that the query begins with, if it is known.

        What tasks have left open, when this sink was a two-phase one, is aborted: pinned, it would
        hold up readers for ever.
        """
        ownership = self._ownership
        with ownership.held():
            ownership.is_owner = False
            entry = ownership.take(self._query_id, "P1-fenced", batch_id)
            ownership.sweep(self._query_id, entry.batch_id, pins=speaks_of_pins(self._cluster))
        return entry.batch_id

    def is_decided(
        self, batch_id: int, fingerprint: str = "", source_topics: Iterable[str] = ()
    ) -> bool:
        """Whether a batch was written before; raises CheckpointMismatch if it was another one."""
        if not self._ownership.is_owner:
            self.recover(batch_id)
        return self._ownership.is_decided(
            self._query_id, "P1-fenced", batch_id, fingerprint, source_topics
        )

    def begin_batch(self, batch_id: int, fingerprint: str) -> bool:
        """Note in the ledger that a batch is begun; see Ownership."""
        return self._ownership.begin_batch(self._query_id, batch_id, fingerprint)

    def write_batch(
        self,
        batch_id: int,
        batches: Iterable[EncodedBatch],
        fingerprint: str = "",
        source_offsets: Mapping[tuple[str, int], int] | None = None,
    ) -> bool:
        """Write a batch in one transaction; False, and nothing read, if it was written before."""
        offsets = source_offsets or {}
        if self.is_decided(batch_id, fingerprint, (topic for topic, _ in offsets)):
            return False
        ownership = self._ownership
        with ownership.held():
            with self._aborting():
                topics: dict[str, None] = {}
                count = ownership.producer.write(_passing(batches, topics))
                began_s = monotonic()
                entry = ownership.entry.followed_by(
                    batch_id, fingerprint, (), is_pinned=False, record_count=count
                )
                entry = ownership.write_decision(entry, self._query_id, offsets, topics)
            reach("P1-before-end")
            written_s = monotonic()
            ownership.decide(entry)
        ownership.measured = Measured.ending_now(batch_id, began_s, written_s)
        reach("P1-after-end")
        return True

    @contextlib.contextmanager
    def _aborting(self) -> Iterator[None]:
        """Let readers not wait for what has failed ahead of the decision."""
        try:
            yield
        except BrokerUnreachable:
            raise  # The broker is gone: the transaction's timeout or the next fence aborts it.
        except Exception:
            # If this fails as well, the next fence aborts; what went wrong first is what counts.
            with contextlib.suppress(SinkError):
                self._ownership.producer.abort()
            raise

    def close(self) -> None:
        """Close the connections; an open transaction stays open."""
        if self._owns_cluster:
            self._cluster.close()


def _passing(batches: Iterable[EncodedBatch], topics: dict[str, None]) -> Iterator[EncodedBatch]:
    """The batches, with the place at which the first of them is on its way; notes their topics."""
    for number, batch in enumerate(batches):
        topics[batch.topic] = None
        yield batch
        if number == 0:
            reach("P1-middle")
