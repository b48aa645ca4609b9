"""Metrics of the object store that has large flushes of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from barnabas.broker.metrics.families import COUNTER, GAUGE, HISTOGRAM, Family, labels, value
from barnabas.broker.metrics.histograms import duration_samples
from barnabas.storage.replicated.counted_blobs import OPERATIONS, RESULTS

if TYPE_CHECKING:
    from barnabas.storage.replicated.counted_blobs import ObjectCounts
    from barnabas.storage.replicated.flush_uploads import Uploads


def object_families(
    counts: ObjectCounts, uploads: Uploads | None, away_s: Callable[[], float | None]
) -> Iterator[Family]:
    """Yield requests and uploads; ``away_s`` is None while the store responds."""
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
        0 if uploads is None else uploads.open_count,
    )
    yield value(
        "barnabas_object_hedges_total",
        COUNTER,
        "Second attempts of uploads whose first one was late.",
        0 if uploads is None else uploads.hedged,
    )
    yield value(
        "barnabas_object_store_away_seconds",
        GAUGE,
        "Time for which the object store has failed now; 0 while it responds. Alert on 60.",
        away_s() or 0,
    )
