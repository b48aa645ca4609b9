"""A batch, its ledger entry and its source's offsets in one transaction of one producer.

Fence first, then read the ledger, then write. After a crash before EndTxn no record is visible;
after a later crash the ledger has the batch. A repeated batch may have other rows. The sink works
with Apache Kafka 2.5 and later.
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
        """Durations of the last batch that this sink decided, or `None` if there is none."""
        return self._ownership.measured

    def recover(self, batch_id: int | None = None) -> int:
        """Fence the previous writer and return the last decided batch, or -1 if there is none.

        ``batch_id`` is the first batch of the query, or `None` if unknown. If this sink was a
        two-phase one before, open transactions of its tasks are aborted: pinned ones would block
        `read_committed` consumers forever.
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
        """Return whether a batch is decided; raises CheckpointMismatch if it has other offsets."""
        if not self._ownership.is_owner:
            self.recover(batch_id)
        return self._ownership.is_decided(
            self._query_id, "P1-fenced", batch_id, fingerprint, source_topics
        )

    def begin_batch(self, batch_id: int, fingerprint: str) -> bool:
        """Note the start of a batch in the ledger; see Ownership."""
        return self._ownership.begin_batch(self._query_id, batch_id, fingerprint)

    def write_batch(
        self,
        batch_id: int,
        batches: Iterable[EncodedBatch],
        fingerprint: str = "",
        source_offsets: Mapping[tuple[str, int], int] | None = None,
    ) -> bool:
        """Write a batch in one transaction; return false, and read no row, if it is decided."""
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
        """Abort after a failure before the decision, so that the batch blocks no consumer."""
        try:
            yield
        except BrokerUnreachable:
            raise  # The transaction's timeout or the next fence aborts it.
        except Exception:
            # If this fails as well, the next fence aborts; the first error is reported.
            with contextlib.suppress(SinkError):
                self._ownership.producer.abort()
            raise

    def close(self) -> None:
        """Close the connections; an open transaction stays open."""
        if self._owns_cluster:
            self._cluster.close()


def _passing(batches: Iterable[EncodedBatch], topics: dict[str, None]) -> Iterator[EncodedBatch]:
    """Yield the batches and note their topics; the failpoint is after the first batch."""
    for number, batch in enumerate(batches):
        topics[batch.topic] = None
        yield batch
        if number == 0:
            reach("P1-middle")
