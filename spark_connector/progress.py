"""One line for each batch: what was written, how far behind it is, and what is still open."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol


class Query(Protocol):
    """What is asked of a `StreamingQuery`."""

    @property
    def lastProgress(self) -> Any: ...  # noqa: ANN401, D102, N802 - Spark's

    @property
    def recentProgress(self) -> Any: ...  # noqa: ANN401, D102, N802 - Spark's


@dataclass(frozen=True)
class BatchProgress:
    """A batch that has ended."""

    pipeline: str
    batch: int
    rows: int
    rows_per_s: float
    duration_ms: int
    lag: int | None
    """Offsets that the source has and that no batch has had; None where the source cannot say."""
    committed_at: str
    """When the batch ended, in UTC."""
    transaction_age_ms: int | None = None
    """How long the oldest transaction that this sink holds open is open; None: there is none."""

    def as_text(self) -> str:
        """Return the line for a person."""
        lag = "unknown" if self.lag is None else f"{self.lag:,}"
        age = self.transaction_age_ms
        is_open = "no transaction open" if age is None else f"transaction open {age / 1000:.1f} s"
        return (
            f"{self.pipeline}: batch {self.batch}, {self.rows:,} rows, {self.rows_per_s:,.0f}"
            f" rows/s, lag {lag}, {is_open}, last commit {self.committed_at}"
        )

    def as_json(self) -> str:
        """Return the line for a program."""
        return json.dumps(asdict(self))


class BatchWatch:
    """Finds the batches of one query that have ended since it was last asked."""

    def __init__(self, pipeline: str, query: Query) -> None:
        self._pipeline = pipeline
        self._query = query
        self._last_batch = -1
        self._last_seen: object = None

    @property
    def has_ended_one(self) -> bool:
        """Whether a batch has ended since the query was started."""
        return self._last_batch >= 0

    def ended(self) -> Iterator[BatchProgress]:
        """Yield them in their order; Spark remembers the last hundred."""
        last = _as_mapping(self._query.lastProgress)
        seen = None if last is None else (last["batchId"], last["timestamp"])
        if seen == self._last_seen:
            return
        self._last_seen = seen
        for found in map(_as_mapping, self._query.recentProgress):
            # An idle query reports too, under the number that its next batch will have.
            if found is None or "addBatch" not in found.get("durationMs", {}):
                continue
            if found["batchId"] > self._last_batch:
                self._last_batch = found["batchId"]
                yield batch_progress(self._pipeline, found)


def _as_mapping(progress: Any) -> Mapping[str, Any] | None:  # noqa: ANN401
    """Spark's object, or its JSON, as plain data."""
    if progress is None:
        return None
    text = getattr(progress, "json", None)
    found: Mapping[str, Any] = json.loads(text) if isinstance(text, str) else progress
    return found


def batch_progress(pipeline: str, found: Mapping[str, Any]) -> BatchProgress:
    """Read what Spark reports about a batch."""
    durations = found.get("durationMs", {})
    duration_ms = int(durations.get("triggerExecution", 0))
    began = datetime.fromisoformat(found["timestamp"])
    ended = (began + timedelta(milliseconds=duration_ms)).astimezone(UTC)
    return BatchProgress(
        pipeline=pipeline,
        batch=int(found["batchId"]),
        rows=int(found.get("numInputRows", 0)),
        rows_per_s=float(found.get("processedRowsPerSecond", 0.0)),
        duration_ms=duration_ms,
        lag=lag_of(found.get("sources", [])),
        committed_at=ended.strftime("%Y-%m-%dT%H:%M:%SZ"),
    )


def lag_of(sources: Sequence[Mapping[str, Any]]) -> int | None:
    """Add up latest minus processed over the partitions of all Kafka sources."""
    lags = [_lag(source.get("latestOffset"), source.get("endOffset")) for source in sources]
    known = [lag for lag in lags if lag is not None]
    return sum(known) if known else None


def _lag(latest: object, end: object) -> int | None:
    ahead, done = _offsets(latest), _offsets(end)
    if ahead is None or done is None:
        return None
    return sum(
        max(0, offset - done.get(topic_partition, 0)) for topic_partition, offset in ahead.items()
    )


def _offsets(found: object) -> dict[tuple[str, str], int] | None:
    """Kafka's offsets in a progress report, which has them as JSON or as the text of JSON."""
    try:
        topics = json.loads(found) if isinstance(found, str) else found
        assert isinstance(topics, Mapping)
        return {
            (topic, partition): int(offset)
            for topic, partitions in topics.items()
            for partition, offset in partitions.items()
        }
    except (AssertionError, AttributeError, TypeError, ValueError):
        return None  # Not a Kafka source.
