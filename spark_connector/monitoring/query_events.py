"""Events of streaming queries, as the monitor takes them from Spark."""

from __future__ import annotations

from typing import NamedTuple


class Started(NamedTuple):
    """A query has started."""

    query_id: str
    run_id: str
    name: str | None


class Progressed(NamedTuple):
    """A query has reported."""

    report: str
    """Spark's JSON."""


class Ended(NamedTuple):
    """A run of a query has ended; the next run may have started before this event arrives."""

    query_id: str
    run_id: str


Event = Started | Progressed | Ended
