"""Whether a checkpoint is the one that the ledger goes on from, about topics that are still there.

Nothing is fenced or changed here, so it can be asked while another driver is at work:

1. The ids of topics and clusters are those of the last batch, or of the file in the checkpoint.
2. The ledger's last batch is in the checkpoint, with the offsets that it was written with. A copy
   that was left behind lacks it, or has another one of that number.
3. The checkpoint is no further than the ledger. One whose batches the ledger does not have was
   written with another ledger, or that one was deleted.
4. A batch that was begun and not decided has the offsets still with which it was begun: a table
   may have its rows already, and keeps the first it gets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NoReturn

from barnabas.spark_connector import checkpoint
from barnabas.spark_connector.acceptance import lost_batch, names_needed
from barnabas.spark_connector.cluster import Cluster
from barnabas.spark_connector.entries import NO_ENTRY, Entry
from barnabas.spark_connector.errors import CheckpointMismatch, Overtaken
from barnabas.spark_connector.incarnation import UNKNOWN, Home, Incarnation, as_text, check, of_text
from barnabas.spark_connector.options import SinkOptions

NAMED_TOPICS_MAX: Final = 1000
"""How many output topics that rows have named are remembered, the latest ones."""


class Continuity:
    """The checkpoint of one query, beside what its sink's ledger and its brokers say."""

    def __init__(self, options: SinkOptions, cluster: Cluster) -> None:
        self._options = options
        self._cluster = cluster
        self._seen = UNKNOWN
        """What was there when this driver looked last."""
        self._noted: Incarnation | None = None
        """What the file in the checkpoint says, once it was read."""

    def judge(
        self,
        query_id: str,
        decided: Mapping[str, Entry],
        undecided: frozenset[str],
        batch_id: int | None,
    ) -> None:
        """Refuse a checkpoint that must not go on; ``batch_id`` is the batch that it begins with.

        ``undecided`` are queries with an entry whose transaction has not ended: they may be further
        than ``decided`` says, and not less far.
        """
        self._seen = UNKNOWN
        entry = decided.get(query_id, NO_ENTRY)
        known = self._known(entry)
        self._look(known, known.source.topics, self._sink_topics(known))
        if entry.batch_id >= 0:
            self._refuse_behind(entry)
        if query_id in undecided:
            return
        self._refuse_planned_anew(query_id, entry)
        if entry.batch_id >= 0:
            self._refuse_ahead(query_id, entry, batch_id)
        else:
            self._refuse_unknown(query_id, decided, batch_id)

    def refuse_overtaken(self, batch_id: int | None) -> None:
        """Refuse to begin with a batch that Spark has finished: another driver goes on from it."""
        if batch_id is not None and self._is_finished(batch_id):
            raise Overtaken(
                f"Another driver with the checkpoint {self._options.checkpoint_location} has"
                f" finished batch {batch_id} since this one started it, so it is running;"
                " stop it and start this one again, or do not start this one."
            )

    def observe(
        self, entry: Entry, source_topics: Iterable[str], written: Iterable[str] = ()
    ) -> Incarnation:
        """Look what is there; raises Recreated if it is not what a batch goes on from.

        ``written`` are the topics that the rows of the batch have named.
        """
        known = self._known(entry)
        source = dict.fromkeys(source_topics) or known.source.topics
        sink = self._sink_topics(known, written)
        now = self._look(known, source, sink)
        self._seen = Incarnation(
            now.source.following(known.source, source), now.sink.following(known.sink, sink)
        )
        return self._seen

    def note(self) -> None:
        """Write down beside the checkpoint what was seen last, unless it is there already."""
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
        """What is written to; where rows say it, also the topics that were named lately."""
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

    def _look(
        self, known: Incarnation, source_topics: Iterable[str], sink_topics: Iterable[str]
    ) -> Incarnation:
        source, sink = set(source_topics), set(sink_topics)
        options = self._options
        if options.reads_where_it_writes:
            both = self._cluster.home(source | sink)
            # Where none of the source's topics is here, they are in another cluster.
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
        """Refuse to go on without a topic that is written to; a source's is Spark's to miss."""
        for name in self._needed_topics:
            if name in known.sink.topics and name not in now.sink.topics:
                # Waits for it, since a broker that has just started may not know it yet.
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

    def _refuse_planned_anew(self, query_id: str, entry: Entry) -> None:
        location = self._options.checkpoint_location
        batch_id, begun_with = entry.begun
        if not begun_with or self._options.accepted_plan == batch_id:
            return
        found = checkpoint.fingerprint(location, batch_id, self._options.checkpoint_store)
        if found not in {begun_with, checkpoint.UNKNOWN}:
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
        """Refuse a query that the ledger does not know, unless it is the sink's first one."""
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
