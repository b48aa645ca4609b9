"""Line of each batch: its rows, the lag of its source, and open transactions.

Spark reports most of the numbers. The brokers have those that Spark lacks, or has not always
(`Facts`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple, Protocol

Report = Mapping[str, Any]
"""Spark's progress report of a batch."""
Offsets = Mapping[tuple[str, int], int]
"""By topic and partition."""


class Query(Protocol):
    """Attributes of a `StreamingQuery` that are used here."""

    @property
    def lastProgress(self) -> Any: ...  # noqa: ANN401, D102, N802 - Spark's

    @property
    def recentProgress(self) -> Any: ...  # noqa: ANN401, D102, N802 - Spark's


class Facts(NamedTuple):
    """Numbers of an ended batch from the brokers."""

    rows: int | None = None
    """Number of decided records, or `None` if unknown."""
    ends: Offsets | None = None
    """End offsets of the topics of `topics_without_ends`, or `None` if unknown."""
    transaction_age_ms: int | None = None
    decide_ms: float | None = None
    commit_ms: float | None = None


NOTHING_KNOWN: Final = Facts()


@dataclass(frozen=True)
class BatchProgress:
    """A batch that has ended."""

    pipeline: str
    batch: int
    rows: int | None
    """Number of rows that the sink has written, or `None` if unknown."""
    rows_per_s: float | None
    scanned_rows: int
    """Number of read rows; those of a source that is read twice count twice."""
    scanned_rows_per_s: float
    duration_ms: int
    lag: int | None
    """Number of offsets of the source after this batch, or `None` if unknown."""
    watermark: str | None
    """Event time up to which the state is closed, in UTC, or `None` without a watermark."""
    state_rows: int | None
    """Number of rows in Spark's state, or `None` if the query has no state."""
    late_rows: int | None
    """Number of rows that were dropped for the watermark, or `None` if the query has no state."""
    committed_at: str
    """End of the batch, in UTC."""
    transaction_age_ms: int | None = None
    """Age of the oldest open transaction of this sink, 0 if none is open, or None if not known."""
    decide_ms: float | None = None
    """Time from the end of the tasks until the batch was decided, or None if not known."""
    commit_ms: float | None = None
    """Time from the decision until the batch was committed, or None if not known."""

    def as_text(self) -> str:
        """Return the line for a person."""
        parts = [
            f"batch {self.batch}",
            *self._rows(),
            f"{self.scanned_rows:,} scanned",
            "lag unknown" if self.lag is None else f"lag {self.lag:,}",
            *self._state(),
            self._transaction(),
            f"last commit {self.committed_at}",
        ]
        return f"{self.pipeline}: {', '.join(parts)}"

    def _rows(self) -> list[str]:
        if self.rows is None or self.rows_per_s is None:
            return ["rows unknown"]
        return [f"{self.rows:,} rows", f"{self.rows_per_s:,.0f} rows/s"]

    def _transaction(self) -> str:
        age_ms = self.transaction_age_ms
        if age_ms is None:
            return "open transactions unknown"
        return f"transaction open {age_ms / 1000:.1f} s" if age_ms else "no transaction open"

    def _state(self) -> list[str]:
        parts = []
        if self.watermark is not None:
            parts.append(f"watermark {self.watermark}")
        if self.state_rows is not None and self.late_rows is not None:
            parts += [f"{self.state_rows:,} rows of state", f"{self.late_rows:,} late"]
        return parts

    def as_json(self) -> str:
        """Return the line for a program."""
        return json.dumps(asdict(self))


class BatchWatch:
    """Reader of the ended batches of one query, each of them once."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._last_batch = -1
        self._last_seen: object = None

    @property
    def has_ended_one(self) -> bool:
        """Whether a batch has ended since the start of the query."""
        return self._last_batch >= 0

    def ended(self) -> Iterator[Report]:
        """Yield the reports of newly ended batches in order; Spark keeps the last hundred."""
        last = _as_mapping(self._query.lastProgress)
        seen = None if last is None else (last["batchId"], last["timestamp"])
        if seen == self._last_seen:
            return
        self._last_seen = seen
        for found in map(_as_mapping, self._query.recentProgress):
            # An idle query reports as well, with the number of its next batch.
            if found is None or "addBatch" not in found.get("durationMs", {}):
                continue
            if found["batchId"] > self._last_batch:
                self._last_batch = found["batchId"]
                yield found


def _as_mapping(progress: Any) -> Report | None:  # noqa: ANN401
    """Return Spark's object, or its JSON, as plain data."""
    if progress is None:
        return None
    text = getattr(progress, "json", None)
    found: Report = json.loads(text) if isinstance(text, str) else progress
    return found


def batch_progress(pipeline: str, report: Report, facts: Facts = NOTHING_KNOWN) -> BatchProgress:
    """Combine Spark's report of a batch with the brokers' numbers."""
    duration_ms = int(report.get("durationMs", {}).get("triggerExecution", 0))
    began = datetime.fromisoformat(report["timestamp"])
    ended = (began + timedelta(milliseconds=duration_ms)).astimezone(UTC)
    rows = _rows_reported(report) if facts.rows is None else facts.rows
    operators = report.get("stateOperators", [])
    return BatchProgress(
        pipeline=pipeline,
        batch=int(report["batchId"]),
        rows=rows,
        rows_per_s=None if rows is None else round(rows * 1000 / max(1, duration_ms), 1),
        scanned_rows=int(report.get("numInputRows", 0)),
        scanned_rows_per_s=float(report.get("processedRowsPerSecond", 0.0)),
        duration_ms=duration_ms,
        lag=lag_of(report.get("sources", []), facts.ends),
        watermark=report.get("eventTime", {}).get("watermark"),
        state_rows=_total(operators, "numRowsTotal"),
        late_rows=_total(operators, "numRowsDroppedByWatermark"),
        committed_at=ended.strftime("%Y-%m-%dT%H:%M:%SZ"),
        transaction_age_ms=facts.transaction_age_ms,
        decide_ms=facts.decide_ms,
        commit_ms=facts.commit_ms,
    )


def _rows_reported(report: Report) -> int | None:
    """Return the count of Spark's own sinks, or `None` for sinks without a count (-1)."""
    count = int(report.get("sink", {}).get("numOutputRows", -1))
    return count if count >= 0 else None


def _total(operators: Sequence[Mapping[str, Any]], name: str) -> int | None:
    return sum(int(each.get(name, 0)) for each in operators) if operators else None


# ----------------------------------------------------------------------------------------- lag


def topics_of(report: Report) -> list[str]:
    """Return all topics that a batch has read."""
    ends = (_offsets(source.get("endOffset")) or () for source in report.get("sources", []))
    return sorted({topic for places in ends for topic, _partition in places})


def topics_without_ends(report: Report) -> list[str]:
    """Return the topics whose ends Spark does not report, as for a repeated batch."""
    return sorted(
        {
            topic
            for source in report.get("sources", [])
            if _offsets(source.get("latestOffset")) is None
            for topic, _partition in _offsets(source.get("endOffset")) or ()
        }
    )


def lag_of(sources: Sequence[Mapping[str, Any]], known_ends: Offsets | None = None) -> int | None:
    """Add up latest minus processed over the partitions of all Kafka sources.

    ``known_ends`` are the ends of topics for which Spark reports none. A topic that is read twice
    counts once, with the larger lag.
    """
    latest: dict[tuple[str, int], int] = {}
    done: dict[tuple[str, int], int] = {}
    for source in sources:
        read = _offsets(source.get("endOffset"))
        if read is None:
            continue  # Not a Kafka source, or no rows were read.
        ahead = _offsets(source.get("latestOffset"))
        if ahead is None:
            topics = {topic for topic, _partition in read}
            ahead = {place: end for place, end in (known_ends or {}).items() if place[0] in topics}
            if not read.keys() <= ahead.keys():
                return None
        for place, offset in ahead.items():
            latest[place] = max(offset, latest.get(place, 0))
            processed = read.get(place, 0)
            done[place] = min(processed, done.get(place, processed))
    if not latest:
        return None
    return sum(max(0, offset - done[place]) for place, offset in latest.items())


def _offsets(found: object) -> dict[tuple[str, int], int] | None:
    """Return Kafka's offsets in a report, which has them as JSON or as text with JSON."""
    try:
        topics = json.loads(found) if isinstance(found, str) else found
        assert isinstance(topics, Mapping)
        return {
            (topic, int(partition)): int(offset)
            for topic, partitions in topics.items()
            for partition, offset in partitions.items()
        }
    except (AssertionError, AttributeError, TypeError, ValueError):
        return None  # Not a Kafka source.
