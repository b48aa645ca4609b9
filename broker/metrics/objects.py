"""Metrics of the store that has large flushes of a cluster: its index, or an object store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from barnabas.broker.metrics.families import COUNTER, GAUGE, HISTOGRAM, Family, labels, value
from barnabas.broker.metrics.histograms import duration_samples
from barnabas.storage.objects.counted_blobs import OPERATIONS, RESULTS

if TYPE_CHECKING:
    from barnabas.broker.cluster.leading.object_upkeep import ObjectUpkeepCounts
    from barnabas.storage.objects.counted_blobs import ObjectCounts
    from barnabas.storage.objects.object_use import ObjectUse
    from barnabas.storage.replicated.flush_uploads import Uploads


def object_families(counts: ObjectCounts, uploads: Uploads) -> Iterator[Family]:
    """Yield uploads and the requests that they, and reads of objects, send."""
    yield Family(
        "barnabas_object_requests_total",
        COUNTER,
        "Requests to the object store by operation and result.",
        [
            (labels(op=operation, result=result), counts.requests[operation, result])
            for operation in OPERATIONS
            for result in RESULTS
        ],
    )
    yield Family(
        "barnabas_object_request_seconds",
        HISTOGRAM,
        "Duration of requests to the object store.",
        [
            sample
            for operation in OPERATIONS
            for sample in duration_samples(counts.times[operation], f'op="{operation}"')
        ],
    )
    yield Family(
        "barnabas_object_bytes_total",
        COUNTER,
        "Bytes written to and read from the object store.",
        [(labels(op=operation), counts.size_bytes[operation]) for operation in ("put", "get")],
    )
    yield value(
        "barnabas_object_uploads",
        GAUGE,
        "Flushes whose upload has not ended.",
        uploads.open_count,
    )
    yield value(
        "barnabas_object_uploads_max",
        GAUGE,
        "Maximum number of uploads at once: fewer than configured while the store throttles.",
        uploads.at_once,
    )
    yield value(
        "barnabas_object_hedges_total",
        COUNTER,
        "Second attempts of uploads whose first one was late.",
        uploads.hedged,
    )


def object_upkeep_families(counts: ObjectUpkeepCounts) -> Iterator[Family]:
    """Yield the deletes of objects without records."""
    yield value(
        "barnabas_objects_deleted_total",
        COUNTER,
        "Objects without records that this broker deleted.",
        counts.deleted,
    )
    yield value(
        "barnabas_object_upkeep_timestamp_seconds",
        GAUGE,
        "End of the last complete round of deletes of objects; before the first, its start.",
        counts.looked_ms / 1000,
    )


def object_store_families(
    use: ObjectUse, away_s: float | None, *, has_given_up: bool
) -> Iterator[Family]:
    """Yield the brokers that lack the object store, and the time for which it has failed.

    ``away_s`` is None while it responds. ``has_given_up``: whether this broker leads nothing, since
    the store fails at it only.
    """
    yield value(
        "barnabas_object_store_lacking_brokers",
        GAUGE,
        "Brokers without the same barnabas.storage, for which the use of the object store waits.",
        len(use.waits_for or ()),
    )
    yield value(
        "barnabas_object_store_away_seconds",
        GAUGE,
        "Time for which the object store has failed now; 0 while it responds. Alert on 60.",
        away_s or 0,
    )
    yield value(
        "barnabas_object_store_given_up",
        GAUGE,
        "1 while this broker leads nothing because the object store fails at it only.",
        int(has_given_up),
    )
