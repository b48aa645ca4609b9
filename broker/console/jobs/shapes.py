"""What the console's API answers about jobs (see broker/console/shapes.py)."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.broker.console.shapes import Wide


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job, and how far it is."""

    transactional_id: str
    """What the job is called, and its transaction."""
    state: str
    """running, committed, cancelled or failed; of the last two nothing is ever seen."""
    user: str | None
    """Shown to its user and with DESCRIBE on the cluster, else None."""
    topic: str | None
    """Shown with DESCRIBE on the topic, else None; so is the target."""
    target: str | None
    started_ms: Wide
    ended_ms: Wide | None
    offsets_total: Wide
    offsets_done: Wide
    """How many offsets were looked at."""
    records: Wide
    bytes: Wide
    """What was written so far: seen once it is committed."""
    message: str | None
    """Why it has failed."""


@dataclass(frozen=True, slots=True)
class JobList:
    """Jobs, the newest first."""

    as_of: Wide
    items: tuple[JobRow, ...]
