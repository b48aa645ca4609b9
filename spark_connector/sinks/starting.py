"""Checks of the checkpoint and the topics before Spark runs a batch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from barnabas.spark_connector.checkpoint import checkpoint
from barnabas.spark_connector.checkpoint.checkpoint_files import quietly
from barnabas.spark_connector.cluster.cluster import Cluster, connected
from barnabas.spark_connector.errors import (
    BrokerUnreachable,
    CheckpointMismatch,
    Overtaken,
    SinkError,
)
from barnabas.spark_connector.ledger.ownership import Ownership
from barnabas.spark_connector.settings.options import SinkOptions
from barnabas.spark_connector.sinks.single import SingleTransactionSink
from barnabas.spark_connector.sinks.two_phase import Decider

ATTEMPTS_MAX: Final = 10
"""Attempts to find the next batch while another driver finishes batches."""
PLANNING_TIMEOUT_MS: Final = 10_000
"""Maximum time of the check when Spark plans a batch; writing has a longer timeout."""


def take_the_sink(
    options: SinkOptions, source_topics: Iterable[str], *, is_two_phase: bool
) -> None:
    """Refuse a checkpoint that must not continue; otherwise fence the sink's driver.

    So the later driver wins: after Spark has read the checkpoint, no other driver adds to it. For a
    new checkpoint no driver is fenced yet: the first batch does that.
    """
    with connected(options) as cluster:
        for attempt in range(1, ATTEMPTS_MAX + 1):
            try:
                _take_the_sink(options, cluster, source_topics, is_two_phase=is_two_phase)
            except Overtaken:
                if attempt == ATTEMPTS_MAX:
                    raise
            else:
                return


def _take_the_sink(
    options: SinkOptions, cluster: Cluster, source_topics: Iterable[str], *, is_two_phase: bool
) -> None:
    location, store = options.checkpoint_location, options.checkpoint_store
    query_id = checkpoint.query_id(location, store)
    batch_id = checkpoint.next_batch(location, store)
    if query_id is None and batch_id and not options.new_query.is_always:
        raise CheckpointMismatch(
            f"The checkpoint {location} has batches up to {batch_id - 1} and no file metadata, so"
            " Spark would continue them as another query; restore the file metadata, or start with"
            " a new checkpoint directory."
        )
    Ownership(options, cluster).inspect(query_id or "", batch_id, source_topics)
    if query_id is None:
        return
    if is_two_phase:
        Decider(options, query_id, cluster).recover(batch_id)
    else:
        SingleTransactionSink(options, query_id, cluster).recover(batch_id)


@dataclass
class _Kept:
    options: SinkOptions
    cluster: Cluster
    ownership: Ownership


_kept: list[_Kept] = []
"""At most one element: the ledger as the planning worker has read it."""


def find_refusal(options: SinkOptions) -> SinkError | None:
    """Return the refusal of the batch that Spark plans now, or `None` if no reason is found.

    The tasks and the commit of the batch check again, and log the warnings.
    """
    with quietly():
        return _find_refusal(options)


def _find_refusal(options: SinkOptions) -> SinkError | None:
    location, store = options.checkpoint_location, options.checkpoint_store
    try:
        query_id = checkpoint.query_id(location, store)
    except SinkError as refusal:
        return refusal
    if query_id is None:
        return None
    kept = _take(options)
    try:
        topics = checkpoint.last_end(location, store).topics
        kept.ownership.inspect(query_id, checkpoint.next_batch(location, store), topics)
    except BrokerUnreachable:
        kept.cluster.close()
        return None
    except SinkError as refusal:
        kept.cluster.close()
        return refusal
    except BaseException:
        kept.cluster.close()
        raise
    _kept.append(kept)
    return None


def _take(options: SinkOptions) -> _Kept:
    kept = _kept.pop() if _kept else None
    if kept is not None and kept.options == options:
        return kept
    if kept is not None:
        kept.cluster.close()
    cluster = Cluster(
        options.bootstrap_servers,
        client_id=options.client_id,
        timeout_ms=min(PLANNING_TIMEOUT_MS, options.delivery_timeout_ms),
        request_timeout_ms=min(PLANNING_TIMEOUT_MS, options.request_timeout_ms),
        security=options.security,
    )
    return _Kept(options, cluster, Ownership(options, cluster))
