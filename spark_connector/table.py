"""A table that a pipeline writes beside its topic: the ledger decides about both.

For each batch that is not decided, in this order: the ledger notes that the batch is begun, the
user's function writes its rows to the table and returns what it reads back from there, and that is
written to the topic and decided. So

1. what is decided is in the table, since the table comes first;
2. topic and table have the same rows, whatever a second run of the batch would have given: the
   topic gets what the table has;
3. a batch that is run again finds its rows in the table, which must keep the first that it gets. By
   then they are what the batch would give again: its offsets are those that it was begun with, or
   it is refused (`continuity.py`);
4. a driver that was overtaken can add nothing, however late it writes.

Rows of a batch that is not decided can be told by the columns `query` and `batch`: `decided` says
which are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.spark_connector import parquet
from barnabas.spark_connector.cluster import Cluster
from barnabas.spark_connector.entries import Entry
from barnabas.spark_connector.failures import raising
from barnabas.spark_connector.ledger import Ledger
from barnabas.spark_connector.options import LEDGER_TOPIC
from barnabas.spark_connector.refusals import WrongUse
from barnabas.spark_connector.security import security_of_options
from barnabas.spark_connector.source import servers_or_default

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

QUERY: Final = "query"
BATCH: Final = "batch"
CLIENT_ID: Final = "barnabas-spark-decided"
TIMEOUT_MS: Final = 20_000


class Batch(NamedTuple):
    """What a batch is called, as no other one is: not even one of another checkpoint."""

    query_id: str
    """Of the streaming query: each checkpoint has its own, and counts its batches from 0."""
    batch_id: int

    @property
    def condition(self) -> str:
        """The rows of this batch, as SQL about the columns `query` and `batch`."""
        return f"({QUERY} = {_quoted(self.query_id)} AND {BATCH} = {self.batch_id})"

    def marked(self, rows: DataFrame) -> DataFrame:
        """Return rows with the columns `query` and `batch`, by which they are found again."""
        from pyspark.sql import functions as F  # noqa: N812 - its usual name

        self._refuse_own_columns(rows)
        columns = {QUERY: F.lit(self.query_id), BATCH: F.lit(self.batch_id).cast("long")}
        return rows.withColumns(columns)

    def write_parquet(self, rows: DataFrame, directory: str) -> DataFrame:
        """Write rows to `directory/query=.../batch=...`, all or nothing and once; read them back.

        What is there already stays. The directory is on a local disk or in HDFS, and read with
        `spark.read.parquet(directory)`.
        """
        self._refuse_own_columns(rows)
        return parquet.write_once(rows, directory, f"{QUERY}={self.query_id}", BATCH, self.batch_id)

    def _refuse_own_columns(self, rows: DataFrame) -> None:
        for name in rows.columns:
            if name.lower() in {QUERY, BATCH}:
                raise WrongUse(
                    f"the rows for the table have a column {name!r}, which there marks decided"
                    " rows: give it another name"
                )


Table = Callable[["DataFrame", Batch], "DataFrame"]
"""Writes the rows of a batch to a table, once however often it is called, and returns the rows for
the topic, which it has read back."""


def rows_for_topic(table: Table, rows: DataFrame, batch: Batch) -> DataFrame:
    """Let a function write a table; return what it says is for the topic."""
    with raising("table"):
        found = table(rows, batch)
    if not hasattr(found, "sparkSession"):
        raise WrongUse(
            f"table returned {type(found).__name__}, not a DataFrame: return the rows for the"
            " topic, read back from what was written"
        )
    return found


def decided(
    sink_id: str,
    *,
    servers: str | None = None,
    ledger_topic: str = LEDGER_TOPIC,
    options: Mapping[str, object] | None = None,
) -> str:
    """Return which rows of a sink's table are decided, as SQL about its `query` and `batch`.

    `spark.read.parquet(directory).where(decided("ledger"))`: the rest belongs to a batch that is
    being written, or that was never finished. `options` are those of the sink that say how to get
    in (`kafka.security.protocol` and so on); others do not matter here.
    """
    with Cluster(
        servers_or_default(servers),
        client_id=CLIENT_ID,
        timeout_ms=TIMEOUT_MS,
        security=security_of_options(options or {}),
    ) as cluster:
        entries: dict[str, Entry] = {}
        if cluster.existing([ledger_topic]):
            entries, _undecided = Ledger(cluster, ledger_topic).glimpse(sink_id)
    conditions = [
        f"({QUERY} = {_quoted(query_id)} AND {BATCH} <= {entry.batch_id})"
        for query_id, entry in sorted(entries.items())
        if entry.batch_id >= 0
    ]
    return " OR ".join(conditions) or "false"


def _quoted(text: str) -> str:
    # Spark's ids are UUIDs; the ledger is a topic, though, and who reads it runs this.
    if not all(each.isalnum() or each in "-_" for each in text):
        raise WrongUse(f"the query id {text!r} is none of Spark's")
    return f"'{text}'"
