"""Code of Spark's tasks: rows become encoded batches, or records of an open transaction.

Executors import this package from the Python that has pyspark, so it is installed on each machine.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pyarrow as pa

from barnabas.protocol import compression as codecs
from barnabas.spark_connector.cluster.cluster import Cluster, connected
from barnabas.spark_connector.rows.encode import BatchEncoder
from barnabas.spark_connector.rows.encoded import EncodedBatch
from barnabas.spark_connector.settings.options import SinkOptions
from barnabas.spark_connector.sinks.two_phase import Participant, Prepared


class Attempt(NamedTuple):
    """Unique name of one attempt at a task."""

    query_id: str
    batch_id: int
    partition: int
    """Partition of the DataFrame, not of a topic."""
    task_attempt_id: int
    nonce: str
    """Random text of the attempt at the whole batch: Spark's own numbers restart from 0."""


class _Kept(NamedTuple):
    options: SinkOptions
    cluster: Cluster


_kept: list[_Kept] = []
"""At most one element: the connections of this worker's last task, for its next one."""


@contextmanager
def borrowed_cluster(options: SinkOptions) -> Iterator[Cluster]:
    """Yield connections and keep them for the next task; close them after a failure.

    A Python worker of Spark runs one task after another.
    """
    cluster = _kept_cluster(options) or connected(options)
    try:
        yield cluster
    except BaseException:
        cluster.close()
        raise
    _kept.append(_Kept(options, cluster))
    _spare_garbage_collections()


def _kept_cluster(options: SinkOptions) -> Cluster | None:
    kept = _kept.pop() if _kept else None
    if kept is None:
        return None
    if kept.options != options:
        kept.cluster.close()
        return None
    kept.cluster.forget()  # Partitions may have been added to a topic.
    return kept.cluster


def _spare_garbage_collections() -> None:
    """Exclude imported objects from garbage collections, which Spark runs after each task.

    Traversing these objects took as much processor time as writing a few rows.
    """
    if not gc.get_freeze_count():
        gc.collect()
        gc.freeze()


def encode(
    options: SinkOptions,
    batches: Iterable[pa.RecordBatch],
    partition_counts: Callable[[str], int],
) -> Iterator[EncodedBatch]:
    """Encode the rows of a task as they arrive."""
    encoder = None
    for batch in batches:
        if encoder is None:
            encoder = BatchEncoder(
                batch.schema,
                topic=options.topic,
                partition_counts=partition_counts,
                batch_max_bytes=options.batch_max_bytes,
                compression=codecs.NAMES.index(options.compression),
            )
        yield from encoder.add(batch)
    if encoder is not None:
        yield from encoder.finish()


def write_prepared(
    options: SinkOptions, attempt: Attempt, batches: Iterable[pa.RecordBatch]
) -> Prepared:
    """Write the rows of a task in a transaction of its own, which stays open."""
    with borrowed_cluster(options) as cluster:
        participant = Participant(
            options,
            batch_id=attempt.batch_id,
            query_id=attempt.query_id,
            partition=attempt.partition,
            task_attempt_id=attempt.task_attempt_id,
            nonce=attempt.nonce,
            cluster=cluster,
        )
        try:
            participant.write(encode(options, batches, cluster.partition_count))
            return participant.prepared()
        except BaseException:
            participant.discard()
            raise
        finally:
            participant.close()
