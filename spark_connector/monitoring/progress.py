"""One line for each batch: what was written, how far behind it is, and what is still open.

Most of it is what Spark reports. What it does not know, or not always, the brokers do (`Facts`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple, Protocol

Report = Mapping[str, Any]
"""What Spark says of a batch."""
Offsets = Mapping[tuple[str, int], int]
"""By topic and partition."""


class Query(Protocol):
    """What is asked of a `StreamingQuery`."""

    @property
    def lastProgress(self) -> Any: ...  # noqa: ANN401, D102, N802 - Spark's

    @property
    def recentProgress(self) -> Any: ...  # noqa: ANN401, D102, N802 - Spark's


class Facts(NamedTuple):
    """What brokers know of a batch that has ended."""

    rows: int | None = None
    """Records that the sink has decided about; None where it is not known."""
    ends: Offsets | None = None
    """Where the topics of `topics_to_ask_for` end; None where that is not known."""
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
    """Rows of the result, as the sink has written them; None where it does not say."""
    rows_per_s: float | None
    scanned_rows: int
    """Rows that were read: those of a source that is read twice count twice."""
    scanned_rows_per_s: float
    duration_ms: int
    lag: int | None
    """Offsets that the source has and that no batch has had; None where the source cannot say."""
    watermark: str | None
    """Up to which time of events the state is closed, in UTC; None without a watermark."""
    state_rows: int | None
    """Rows that Spark keeps for later batches; None where the query has no state."""
    late_rows: int | None
    """Rows that came behind the watermark and were dropped; None where the query has no state."""
    committed_at: str
    """When the batch ended, in UTC."""
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
    """Finds the batches of one query that have ended since it was last asked."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._last_batch = -1
        self._last_seen: object = None

    @property
    def has_ended_one(self) -> bool:
        """Whether a batch has ended since the query was started."""
        return self._last_batch >= 0

    def ended(self) -> Iterator[Report]:
        """Yield their reports in their order; Spark remembers the last hundred."""
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
                yield found


def _as_mapping(progress: Any) -> Report | None:  # noqa: ANN401
    """Spark's object, or its JSON, as plain data."""
    if progress is None:
        return None
    text = getattr(progress, "json", None)
    found: Report = json.loads(text) if isinstance(text, str) else progress
    return found


def batch_progress(pipeline: str, report: Report, facts: Facts = NOTHING_KNOWN) -> BatchProgress:
    """Put together what Spark reports about a batch and what brokers know of it."""
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
    """Return what Spark's own sinks have counted; it says -1 of those that do not."""
    count = int(report.get("sink", {}).get("numOutputRows", -1))
    return count if count >= 0 else None


def _total(operators: Sequence[Mapping[str, Any]], name: str) -> int | None:
    return sum(int(each.get(name, 0)) for each in operators) if operators else None


# ----------------------------------------------------------------------------------------- lag


def topics_of(report: Report) -> list[str]:
    """Return all topics that a batch was read from."""
    ends = (_offsets(source.get("endOffset")) or () for source in report.get("sources", []))
    return sorted({topic for places in ends for topic, _partition in places})


def topics_to_ask_for(report: Report) -> list[str]:
    """Return the topics whose ends Spark does not report: a batch that it repeats has none."""
    return sorted(
        {
            topic
            for source in report.get("sources", [])
            if _offsets(source.get("latestOffset")) is None
            for topic, _partition in _offsets(source.get("endOffset")) or ()
        }
    )


def lag_of(sources: Sequence[Mapping[str, Any]], asked: Offsets | None = None) -> int | None:
    """Add up latest minus processed over the partitions of all Kafka sources.

    ``asked`` are the ends of those that Spark does not know. A topic that is read twice counts
    once, by what is further behind.
    """
    latest: dict[tuple[str, int], int] = {}
    done: dict[tuple[str, int], int] = {}
    for source in sources:
        read = _offsets(source.get("endOffset"))
        if read is None:
            continue  # Not a Kafka source, or nothing was read.
        ahead = _offsets(source.get("latestOffset"))
        if ahead is None:
            topics = {topic for topic, _partition in read}
            ahead = {place: end for place, end in (asked or {}).items() if place[0] in topics}
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
    """Kafka's offsets in a progress report, which has them as JSON or as the text of JSON."""
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
