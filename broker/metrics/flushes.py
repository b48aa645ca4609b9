"""Metrics of a cluster's broker only: its flushes to the store that all brokers share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from barnabas.broker.metrics.families import COUNTER, GAUGE, HISTOGRAM, Family, labels, value
from barnabas.broker.metrics.histograms import duration_samples

if TYPE_CHECKING:
    from barnabas.storage.counts import FlushCounts, UploadCounts


def cluster_store_families(counts: FlushCounts, last_error: Callable[[], str]) -> Iterator[Family]:
    """Yield sessions and refusals; ``last_error`` is empty if the store responds."""
    yield value(
        "barnabas_flushes_refused_total",
        COUNTER,
        "Flushes that the store refused: another broker leads one of their partitions.",
        counts.refused,
    )
    yield value(
        "barnabas_sessions_total",
        COUNTER,
        "Sessions in the cluster. After the first, others took over from this running broker.",
        counts.sessions,
    )
    yield value(
        "barnabas_cluster_store_unavailable",
        GAUGE,
        "1: PostgreSQL does not respond, and the broker acknowledges nothing; otherwise 0.",
        int(bool(last_error())),
    )


def upload_families(counts: UploadCounts) -> Iterator[Family]:
    """Yield the uploads of large flushes."""
    put = labels(op="put")
    yield value(
        "barnabas_object_uploads",
        GAUGE,
        "Running uploads of the records of large flushes.",
        counts.running,
    )
    yield Family(
        "barnabas_object_requests_total",
        COUNTER,
        "Ended uploads of the records of large flushes; another one follows a failed one.",
        (
            (labels(op="put", result=result), number)
            for result, number in (("ok", counts.confirmed), ("failed", counts.failed))
        ),
    )
    yield value(
        "barnabas_object_hedges_total",
        COUNTER,
        "Uploads started beside a late one of the same records.",
        counts.hedges,
    )
    yield Family(
        "barnabas_object_bytes_total",
        COUNTER,
        "Bytes of confirmed uploads.",
        ((put, counts.uploaded_bytes),),
    )
    yield Family(
        "barnabas_object_request_seconds",
        HISTOGRAM,
        "Duration of an ended upload.",
        duration_samples(counts.times, put[1:-1]),
    )
