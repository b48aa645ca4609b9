"""Batches of stateful queries whose rows are not needed: they are evaluated for their state.

A decided batch is in the output, so no sink needs its rows. But Spark needs its state: the
state stores commit version B+1 only where the tasks of batch B run. If they do not, Spark 4.1 and
later end the query with STATE_STORE_COMMIT_VALIDATION_FAILED, and with
`spark.sql.streaming.stateStore.checkpointFormatVersion=2` the query never starts again, since
`commits/B` lacks the ids of the state files. `format("barnabas")` has no such case: Spark evaluates
each batch before it calls `commit`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.spark_connector.checkpoint import checkpoint

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def evaluate_state(frame: DataFrame, location: str | None) -> None:
    """Run the tasks of a batch and drop their rows, if its query keeps state.

    ``location`` is the query's checkpoint. A second evaluation of a batch replaces the state of
    the first one.
    """
    if checkpoint.has_state(location):
        frame.write.format("noop").mode("append").save()
