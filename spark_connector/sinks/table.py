"""A table that a pipeline writes beside its topic: the ledger decides about both.

Each undecided batch has three steps. The ledger notes its start. The user's function writes its
rows to the table and returns the rows that it reads back. These go to the topic, and the batch is
decided. This order has four results:

1. The table has all decided rows, since it is written first.
2. Topic and table have the same rows, even if a second run of the batch would give other ones: the
   topic gets the rows of the table.
3. A repeated batch finds its rows in the table, which must keep the first ones. The batch has the
   same offsets as at its start; otherwise the checkpoint is refused (`continuity.py`).
4. An overtaken driver adds no rows, even if it writes late.

The columns `query` and `batch` identify the batch of a row. `decided` returns a condition for the
rows of decided batches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.spark_connector.cluster.cluster import Cluster
from barnabas.spark_connector.failures.raised import raising
from barnabas.spark_connector.ledger.entries import Entry
from barnabas.spark_connector.ledger.ledger import Ledger
from barnabas.spark_connector.refusals import WrongUse
from barnabas.spark_connector.settings.options import LEDGER_TOPIC
from barnabas.spark_connector.settings.security import security_of_options
from barnabas.spark_connector.settings.servers import servers_or_default
from barnabas.spark_connector.sinks import parquet

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

QUERY: Final = "query"
BATCH: Final = "batch"
CLIENT_ID: Final = "barnabas-spark-decided"
TIMEOUT_MS: Final = 20_000


class Batch(NamedTuple):
    """Unique name of a batch, also across checkpoints."""

    query_id: str
    """ID of the streaming query: each checkpoint has its own, and counts its batches from 0."""
    batch_id: int

    @property
    def condition(self) -> str:
        """SQL condition on the columns `query` and `batch` for the rows of this batch."""
        return f"({QUERY} = {_quoted(self.query_id)} AND {BATCH} = {self.batch_id})"

    def marked(self, rows: DataFrame) -> DataFrame:
        """Return the rows with the columns `query` and `batch`, which identify the batch."""
        from pyspark.sql import functions as F  # noqa: N812 - its usual name

        self._refuse_own_columns(rows)
        columns = {QUERY: F.lit(self.query_id), BATCH: F.lit(self.batch_id).cast("long")}
        return rows.withColumns(columns)

    def write_parquet(self, rows: DataFrame, directory: str) -> DataFrame:
        """Write all rows to `directory/query=.../batch=...` once; return the rows read back.

        Existing rows of the batch stay. The directory is on a local disk or in HDFS. Read the
        table with `spark.read.parquet(directory)`.
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
"""Function that writes the rows of a batch to a table, only once over repeated calls, and returns
the rows for the topic, read back from the table."""


def rows_for_topic(table: Table, rows: DataFrame, batch: Batch) -> DataFrame:
    """Call the function of a table; return its rows for the topic."""
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
    """Return an SQL condition on `query` and `batch` for the decided rows of a sink's table.

    `spark.read.parquet(directory).where(decided("ledger"))` omits rows of a batch that is being
    written or was never finished. Of the sink's `options` only those for security have an effect
    (`kafka.security.protocol` and others).
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
    # Spark's IDs are UUIDs, but the ledger is a topic that other clients can write.
    if not all(each.isalnum() or each in "-_" for each in text):
        raise WrongUse(f"the query id {text!r} is none of Spark's")
    return f"'{text}'"
