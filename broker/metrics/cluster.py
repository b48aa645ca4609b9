"""Metrics of a broker in a cluster: its lease, and the partitions that it leads.

Metrics of its store are in ``broker/metrics/flushes.py``. Kafka's names report brokers, the
controller, and partitions without a leader (``broker/metrics/kafka.py``); markers pending at
another broker are ``barnabas_transaction_markers_missing_elsewhere``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.cluster.leading.states import State
from barnabas.broker.metrics.families import COUNTER, GAUGE, HISTOGRAM, Family, labels, value
from barnabas.broker.metrics.histograms import duration_samples

if TYPE_CHECKING:
    from barnabas.broker.cluster.leading.leadership import Leadership

_MS_PER_SECOND: Final = 1000

LED: Final = (State.READING, State.OPENED, State.SERVED, State.DRAINING)
"""The states of a partition that is led here, in the order in which it goes through them."""


class Standing(NamedTuple):
    """State of a broker in its cluster; the callables run on the loop at each scrape."""

    lease_ms: int
    """``barnabas.lease.ms``."""
    lease_age_s: Callable[[], float]
    """Age of the last heartbeat that kept the session alive."""
    may_serve: Callable[[], bool]
    """Whether the last heartbeat is recent enough to serve clients from the known state."""


def cluster_families(standing: Standing, leadership: Leadership) -> Iterator[Family]:
    """Yield the lease of this broker and the state of the partitions that it leads."""
    yield from _lease_families(standing)
    yield from _leadership_families(leadership)


def _lease_families(standing: Standing) -> Iterator[Family]:
    for name, doc, number in (
        (
            "lease_age_seconds",
            "Time since the last heartbeat was sent that PostgreSQL confirmed.",
            standing.lease_age_s(),
        ),
        (
            "lease_seconds",
            "Lease, after which other brokers take over the partitions.",
            standing.lease_ms / _MS_PER_SECOND,
        ),
        (
            "may_serve",
            "1 while the lease is valid; 0 after two thirds of it: reads are refused, too.",
            int(standing.may_serve()),
        ),
    ):
        yield value(f"barnabas_cluster_{name}", GAUGE, doc, number)


def _leadership_families(leadership: Leadership) -> Iterator[Family]:
    states = leadership.states()
    yield Family(
        "barnabas_cluster_partitions",
        GAUGE,
        "Partitions that this broker leads; an opened one has no serving coordinator yet.",
        [(labels(state=state.name.lower()), states[state]) for state in LED],
    )
    yield Family(
        "barnabas_cluster_takeover_seconds",
        HISTOGRAM,
        "Time from the assignment of a partition to this broker until the broker served it.",
        duration_samples(leadership.takeover_times),
    )
    yield value(
        "barnabas_cluster_partitions_damaged",
        GAUGE,
        "Partitions that no broker can serve: PostgreSQL's copy is damaged. Alert on any.",
        len(leadership.damaged()),
    )
    yield value(
        "barnabas_cluster_logs_closed_total",
        COUNTER,
        "Logs closed because a flush was refused or the session ended, not for planned moves.",
        leadership.logs_closed,
    )
