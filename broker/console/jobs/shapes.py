"""Responses of the console's API about jobs (see broker/console/shapes.py)."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.broker.console.shapes import Wide


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job with its progress."""

    transactional_id: str
    """Name of the job, and its transactional id."""
    state: str
    """running, committed, cancelled or failed. Records of cancelled and failed jobs never become
    visible."""
    user: str | None
    """Shown to its user and with DESCRIBE on the cluster, else None."""
    topic: str | None
    """Topic that is read, or None without DESCRIBE on it; the target has the same rule."""
    target: str | None
    started_ms: Wide
    ended_ms: Wide | None
    offsets_total: Wide
    offsets_done: Wide
    """Number of offsets read."""
    records: Wide
    bytes: Wide
    """Bytes written so far, visible once they are committed."""
    message: str | None
    """Reason of the failure."""


@dataclass(frozen=True, slots=True)
class JobList:
    """Jobs, the newest first."""

    as_of: Wide
    items: tuple[JobRow, ...]
