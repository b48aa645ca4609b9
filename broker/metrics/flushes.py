"""Metrics of a cluster's broker only: its flushes to the store that all brokers share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from barnabas.broker.metrics.families import COUNTER, GAUGE, Family, value

if TYPE_CHECKING:
    from barnabas.storage.counts import FlushCounts


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
