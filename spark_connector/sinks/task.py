"""What runs in a task of Spark: rows in, encoded batches or an open transaction out.

Executors find this package as they find pyspark: installed into the same Python on every machine.
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
    """One attempt at a task, which no other one is called."""

    query_id: str
    batch_id: int
    partition: int
    """Of Spark's, not of a topic's."""
    task_attempt_id: int
    nonce: str
    """Of the attempt at the whole batch: Spark counts the rest from 0 after each restart."""


class _Kept(NamedTuple):
    options: SinkOptions
    cluster: Cluster


_kept: list[_Kept] = []
"""At most one: the connections of this worker's last task, for its next one."""


@contextmanager
def borrowed_cluster(options: SinkOptions) -> Iterator[Cluster]:
    """Connections that stay for the next task, unless something goes wrong on them.

    Spark lets a Python worker run task after task, one at a time.
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
    kept.cluster.forget()  # A topic may have more partitions by now.
    return kept.cluster


def _spare_garbage_collections() -> None:
    """Leave what a worker has imported out of them: Spark collects garbage after every task.

    That looked at each of those objects, and took as much of a core as writing a few rows does.
    """
    if not gc.get_freeze_count():
        gc.collect()
        gc.freeze()


def encode(
    options: SinkOptions,
    batches: Iterable[pa.RecordBatch],
    partition_counts: Callable[[str], int],
) -> Iterator[EncodedBatch]:
    """Encode all rows of a task, as they come."""
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
    """Write all rows of a task into a transaction of its own, and leave that open."""
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
