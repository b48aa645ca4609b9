"""Checks that a checkpoint continues the ledger's last batch, on the same topics.

The checks fence no driver and change nothing, so another driver can run meanwhile:

1. The IDs of topics and clusters are those of the last batch, or of the file in the checkpoint.
2. The checkpoint has the ledger's last batch, with the same end offsets. An old copy of the
   checkpoint lacks that batch, or has another batch with its number.
3. The checkpoint has no decided batch that the ledger lacks. Otherwise another ledger was used, or
   the ledger was deleted.
4. A batch that has started and is not decided has the same end offsets as at its start: its rows
   may be in a table, which keeps the first ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NoReturn

from barnabas.spark_connector.checkpoint import checkpoint
from barnabas.spark_connector.cluster.cluster import Cluster
from barnabas.spark_connector.cluster.incarnation import (
    UNKNOWN,
    Home,
    Incarnation,
    as_text,
    check,
    of_text,
)
from barnabas.spark_connector.errors import CheckpointMismatch, Overtaken
from barnabas.spark_connector.ledger.entries import NO_ENTRY, Entry
from barnabas.spark_connector.settings.acceptance import lost_batch, names_needed
from barnabas.spark_connector.settings.options import SinkOptions

NAMED_TOPICS_MAX: Final = 1000
"""Maximum number of remembered output topics from the column `topic`, the latest ones."""


class Continuity:
    """Comparison of a query's checkpoint with its sink's ledger and its brokers."""

    def __init__(self, options: SinkOptions, cluster: Cluster) -> None:
        self._options = options
        self._cluster = cluster
        self._is_one_cluster = options.reads_where_it_writes
        self._seen = UNKNOWN
        """IDs at the latest check of this driver."""
        self._noted: Incarnation | None = None
        """Content of the file in the checkpoint, or `None` before it was read."""

    def judge(
        self,
        query_id: str,
        decided: Mapping[str, Entry],
        undecided: frozenset[str],
        batch_id: int | None,
    ) -> None:
        """Refuse a checkpoint that must not continue; ``batch_id`` is its next batch.

        ``undecided`` are queries with an entry whose transaction has not ended: their last batch
        may be later than in ``decided``, never earlier.
        """
        self._seen = UNKNOWN
        entry = decided.get(query_id, NO_ENTRY)
        known = self._known(entry)
        self._compare(known, known.source.topics, self._sink_topics(known))
        if entry.batch_id >= 0:
            self._refuse_behind(entry)
        if query_id in undecided:
            return
        self._refuse_new_plan(query_id, entry)
        if entry.batch_id >= 0:
            self._refuse_ahead(query_id, entry, batch_id)
        else:
            self._refuse_unknown(query_id, decided, batch_id)

    def refuse_overtaken(self, batch_id: int | None) -> None:
        """Refuse to start with a batch that Spark has finished: another driver continues it."""
        if batch_id is not None and self._is_finished(batch_id):
            raise Overtaken(
                f"Another driver with the checkpoint {self._options.checkpoint_location} has"
                f" finished batch {batch_id} since this one started it, so it is running;"
                " stop it and start this one again, or do not start this one."
            )

    def observe(
        self, entry: Entry, source_topics: Iterable[str], written: Iterable[str] = ()
    ) -> Incarnation:
        """Fetch the IDs of topics and clusters; raises Recreated if one has changed.

        ``written`` are the topics in the rows of the batch.
        """
        known = self._known(entry)
        source = dict.fromkeys(source_topics) or known.source.topics
        sink = self._sink_topics(known, written)
        now = self._compare(known, source, sink)
        self._seen = Incarnation(
            now.source.following(known.source, source), now.sink.following(known.sink, sink)
        )
        return self._seen

    def note(self) -> None:
        """Write the latest IDs to the checkpoint, unless its file has them already."""
        if self._seen not in (self._file(), UNKNOWN):
            checkpoint.note_incarnation(
                self._options.checkpoint_location,
                as_text(self._seen),
                self._options.checkpoint_store,
            )
            self._noted = self._seen

    # ------------------------------------------------------------------------------ topics and ids

    @property
    def _needed_topics(self) -> list[str]:
        names = [self._options.ledger_topic, self._options.topic]
        return [name for name in names if name is not None]

    def _sink_topics(self, known: Incarnation, written: Iterable[str] = ()) -> dict[str, None]:
        """Return the topics that the sink writes, with recent ones from the column `topic`."""
        named: list[str] = []
        if self._options.topic is None:
            named = list(dict.fromkeys([*known.sink.topics, *written]))
        return dict.fromkeys([*named[-NAMED_TOPICS_MAX:], *self._needed_topics])

    def _known(self, entry: Entry) -> Incarnation:
        if self._seen != UNKNOWN:
            return self._seen
        return entry.incarnation if entry.incarnation != UNKNOWN else self._file()

    def _file(self) -> Incarnation:
        if self._noted is None:
            location, store = self._options.checkpoint_location, self._options.checkpoint_store
            self._noted = of_text(checkpoint.incarnation(location, store), location or "")
        return self._noted

    def _compare(
        self, known: Incarnation, source_topics: Iterable[str], sink_topics: Iterable[str]
    ) -> Incarnation:
        source, sink = set(source_topics), set(sink_topics)
        options = self._options
        if self._is_one_cluster:
            both = self._cluster.home(source | sink)
            # If none of the source's topics is here, they are in another cluster.
            there = _part(both, source)
            now = Incarnation(there if there.topics else Home(), _part(both, sink))
        else:
            with self._cluster.another(
                options.source_servers or options.bootstrap_servers, options.source_security
            ) as cluster:
                now = Incarnation(cluster.home(source), self._cluster.home(sink))
        check(known, now, options.accepted_ids, options.sink_id)
        self._refuse_missing(known, now)
        return now

    def _refuse_missing(self, known: Incarnation, now: Incarnation) -> None:
        """Refuse to continue without an output topic; Spark itself misses a source topic."""
        for name in self._needed_topics:
            if name in known.sink.topics and name not in now.sink.topics:
                # Wait for it: a broker that has just started may not know it yet.
                self._cluster.partition_count(name)

    # ------------------------------------------------------------------------------------- batches

    def _is_finished(self, batch_id: int) -> bool:
        options = self._options
        return checkpoint.is_finished(
            options.checkpoint_location, batch_id, options.checkpoint_store
        )

    def _refuse_behind(self, entry: Entry) -> None:
        location = self._options.checkpoint_location
        found = checkpoint.fingerprint(location, entry.batch_id, self._options.checkpoint_store)
        if found is None:
            raise CheckpointMismatch(
                f"The checkpoint {location} ends before batch {entry.batch_id}, the last that the"
                f" sink {self._options.sink_id} has written, so it is an old copy of the one that"
                " was written with; run the pipeline with that one, or use another sinkId for new"
                " data."
            )
        entry.check(entry.batch_id, found)

    def _refuse_new_plan(self, query_id: str, entry: Entry) -> None:
        location = self._options.checkpoint_location
        batch_id, started_with = entry.begun
        if not started_with or self._options.accepted_plan == batch_id:
            return
        found = checkpoint.fingerprint(location, batch_id, self._options.checkpoint_store)
        if found not in {started_with, checkpoint.UNKNOWN}:
            raise CheckpointMismatch(
                f"The sink {self._options.sink_id} started batch {batch_id} with offsets that the"
                f" checkpoint {location} does not have any more, and its table may have rows of"
                " it: run the pipeline with the checkpoint of that start, or delete the rows"
                f" of batch {batch_id} and query {query_id} from the table and set the option"
                f" acceptNewPlan to {batch_id}."
            )

    def _refuse_ahead(self, query_id: str, entry: Entry, batch_id: int | None) -> None:
        if batch_id is None or batch_id <= entry.batch_id + 1:
            return
        if not self._options.accepts_lost(query_id, batch_id - 1):
            raise CheckpointMismatch(
                f"The checkpoint continues with batch {batch_id}, but the last batch of the sink"
                f" {self._options.sink_id} in {self._ledger} is {entry.batch_id}, so batches in"
                " between were written by another sink, or the broker has lost them; check what"
                f" is missing, then set the option acceptLostBatch to"
                f" {lost_batch(query_id, batch_id - 1)} to continue without them."
            )

    def _refuse_unknown(
        self, query_id: str, decided: Mapping[str, Entry], batch_id: int | None
    ) -> None:
        """Refuse a query without a ledger entry, unless it is the sink's first query."""
        written = {name: entry for name, entry in decided.items() if entry.batch_id >= 0}
        needed = names_needed(query_id, written, batch_id)
        if self._options.new_query.accepts(needed):
            return
        accepting = f"the option newQuery to {','.join(needed)}"
        if written:
            self._refuse_another(written, accepting)
        raise CheckpointMismatch(
            f"The checkpoint continues with batch {batch_id}, but {self._ledger} has no batch of"
            f" the sink {self._options.sink_id}: it was deleted, or is another one, or the"
            " batches before were written by another sink; start with a new checkpoint"
            f" directory, or set {accepting} to continue from this one."
        )

    def _refuse_another(self, decided: Mapping[str, Entry], accepting: str) -> NoReturn:
        queries = ", ".join(
            f"{name} up to batch {entry.batch_id}" for name, entry in sorted(decided.items())
        )
        raise CheckpointMismatch(
            f"The sink {self._options.sink_id} was written by another query ({queries}), and the"
            " checkpoint of this query is a new one or that of another pipeline; restore the"
            " checkpoint of that query, or use another sinkId (each query, and each flow of a"
            f" declarative pipeline, needs a sink of its own), or set {accepting} to write this"
            " query's data in addition."
        )

    @property
    def _ledger(self) -> str:
        return f"the ledger {self._options.ledger_topic} at {self._options.bootstrap_servers}"


def _part(home: Home, topics: set[str]) -> Home:
    return home._replace(
        topics={name: each for name, each in home.topics.items() if name in topics}
    )
