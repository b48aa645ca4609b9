"""Recorded values of the broker for the last ten minutes and the last six hours.

Rules of this file:

* **A fixed number of series, each of a fixed length**: less than two megabytes regardless of the
  broker's contents. No topic, group or client has a series.
* **One sample a second, of values that are counted anyway**: some tens of microseconds, independent
  of the stored data. Only connections are summed up.
* A value is that of the second before it: a rate, a state, or a quantile of the measurements in
  it. Without measurements it is missing.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from barnabas.broker.metrics.histograms import DURATION_BUCKETS, NANOSECONDS, quantile_ms

if TYPE_CHECKING:
    from barnabas.broker.api.dispatch import Routes
    from barnabas.broker.coordination.transactions import Transactions
    from barnabas.broker.metrics.loop import LoopMonitor
    from barnabas.broker.network.socket_server import SocketServer
    from barnabas.broker.runtime.clock import Clock
    from barnabas.storage.counts import Histogram
    from barnabas.storage.store.log_store import LogStore

FINE_SLOTS: Final = 600
"""Seconds."""
COARSE_SLOTS: Final = 2160
"""Spans of ten seconds."""
SECONDS_PER_SPAN: Final = 10
GROWTH_SPANS: Final = 360
"""Number of spans, an hour, whose growth gives the time when the disk is full."""
GROWTH_SPANS_LEAST: Final = 30
"""Minimum number of spans for that, five minutes."""


class Recorded(Protocol):
    """Parts of the broker that its history reads."""

    clock: Clock
    logs: LogStore
    sockets: SocketServer
    loop_monitor: LoopMonitor
    routes: Routes
    transactions: Transactions


class Kind(Enum):
    """Aggregation of ten seconds' values, and of two readings of a counter."""

    RATE = "per second"
    """The difference of a counter; of ten seconds the mean."""
    LEVEL = "as it is"
    """The mean of ten seconds."""
    WORST = "the worst"
    """The largest of ten seconds."""


class Spec(NamedTuple):
    """One series."""

    name: str
    kind: Kind
    doc: str
    read: Callable[[Recorded], float]


def _oldest_seconds(broker: Recorded) -> float:
    # The first open transaction of a shard is its oldest.
    first = [next(iter(each.open.values())) for each in broker.transactions.machines if each.open]
    if not first:
        return 0
    return max(broker.clock.now_ms() - min(each.start_ms for each in first), 0) / 1000


def _requests(*names: str) -> Callable[[Recorded], float]:
    def read(broker: Recorded) -> float:
        return sum(each.requests for each in broker.routes if not names or each.name in names)

    return read


SERIES: Final = (
    Spec("records_in", Kind.RATE, "Offsets that became visible.", lambda b: b.logs.visible_offsets),
    Spec("bytes_in", Kind.RATE, "Bytes of batches that did.", lambda b: b.logs.visible_bytes),
    Spec("received_bytes", Kind.RATE, "Bytes from clients.", lambda b: b.sockets.received_bytes),
    Spec("sent_bytes", Kind.RATE, "Bytes to clients.", lambda b: b.sockets.sent_bytes),
    Spec("requests", Kind.RATE, "Requests of all kinds.", _requests()),
    Spec("produce_requests", Kind.RATE, "Produce requests.", _requests("Produce")),
    Spec("fetch_requests", Kind.RATE, "Fetch requests.", _requests("Fetch")),
    Spec(
        "flushes",
        Kind.RATE,
        "Journal syncs, or flushes to the store of a cluster.",
        lambda b: sum(b.logs.flush_times.counts),
    ),
    Spec(
        "flushed_batches",
        Kind.RATE,
        "Batches they made durable.",
        lambda b: b.logs.flush_batches.sum,
    ),
    Spec(
        "loop_busy",
        Kind.RATE,
        "Share of a processor that the loop's thread used.",
        lambda b: b.loop_monitor.busy_ns / NANOSECONDS,
    ),
    Spec("connections", Kind.LEVEL, "Open connections.", lambda b: len(b.sockets.connections)),
    Spec(
        "connections_refused",
        Kind.RATE,
        "Connections turned away.",
        lambda b: b.sockets.connections_refused,
    ),
    Spec(
        "login_failures", Kind.RATE, "Logins that failed.", lambda b: b.sockets.failed_logins.count
    ),
    Spec(
        "transactions_open",
        Kind.LEVEL,
        "Transactions that are not over.",
        lambda b: sum(len(each.open) for each in b.transactions.machines),
    ),
    Spec(
        "oldest_transaction_s",
        Kind.WORST,
        "Age of the oldest of them, in seconds.",
        _oldest_seconds,
    ),
    Spec(
        "transactions_committed",
        Kind.RATE,
        "Transactions that were committed.",
        lambda b: b.transactions.counts.committed,
    ),
    Spec(
        "aborted_by_client",
        Kind.RATE,
        "Transactions that their producers aborted.",
        lambda b: b.transactions.counts.aborted["client"],
    ),
    Spec(
        "aborted_by_timeout",
        Kind.RATE,
        "Transactions that took too long.",
        lambda b: b.transactions.counts.aborted["timeout"],
    ),
    Spec(
        "aborted_by_fencing",
        Kind.RATE,
        "Transactions of producers that were replaced.",
        lambda b: b.transactions.counts.aborted["fenced"],
    ),
    Spec(
        "requests_held",
        Kind.RATE,
        "Requests that had to wait for a transaction.",
        lambda b: b.transactions.counts.requests_held,
    ),
    Spec(
        "markers_owed",
        Kind.LEVEL,
        "Markers that decided transactions still owe.",
        lambda b: sum(each.owed_markers for each in b.transactions.machines),
    ),
    Spec(
        "journal_bytes",
        Kind.LEVEL,
        "Journal that a start after a crash would read.",
        lambda b: b.logs.journal_bytes,
    ),
    Spec(
        "backlog_bytes",
        Kind.WORST,
        "Bytes that are not in the segments yet.",
        lambda b: b.logs.journal.backlog_bytes,
    ),
    Spec(
        "duplicates",
        Kind.RATE,
        "Batches that were there already and were not written again.",
        lambda b: b.logs.duplicates,
    ),
    Spec("disk_free_bytes", Kind.LEVEL, "Room on the disk.", lambda b: b.logs.free_bytes),
)
"""All recorded counters and levels."""

QUANTILES: Final = (("p50", 0.5), ("p99", 0.99))


@dataclass(frozen=True, slots=True)
class Measured:
    """A histogram of which quantiles are recorded, and ten seconds' counts."""

    name: str
    doc: str
    find: Callable[[Recorded], Histogram | None]


def _times_of(name: str) -> Callable[[Recorded], Histogram | None]:
    return lambda broker: next((each.times for each in broker.routes if each.name == name), None)


MEASURED: Final = (
    Measured(
        "flush",
        "a journal sync, or of a flush to the store of a cluster",
        lambda broker: broker.logs.flush_times,
    ),
    Measured("produce", "a Produce", _times_of("Produce")),
    Measured("fetch", "a Fetch", _times_of("Fetch")),
    Measured("loop_lag", "the loop's delay", lambda broker: broker.loop_monitor.lag),
)

QUANTILE_NAMES: Final = tuple(
    f"{measured.name}_{quantile}_ms" for measured in MEASURED for quantile, _ in QUANTILES
)
NAMES: Final = (*(spec.name for spec in SERIES), *QUANTILE_NAMES)
DOCS: Final[Mapping[str, str]] = {
    **{spec.name: spec.doc for spec in SERIES},
    **{
        f"{measured.name}_{quantile}_ms": f"Milliseconds of {measured.doc}: {quantile}."
        for measured in MEASURED
        for quantile, _ in QUANTILES
    },
}
HEAT: Final = ("flush", "produce")
"""Histograms of which the counts of each span are kept."""


class Ring:
    """The last values of a series; it grows until it has all its slots."""

    __slots__ = ("_next", "_slots", "_values")

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._values = array("d")
        self._next = 0

    def add(self, value: float) -> None:
        """Add a value, which replaces the oldest one if the ring is full."""
        if len(self._values) < self._slots:
            self._values.append(value)
        else:
            self._values[self._next] = value
        self._next = (self._next + 1) % self._slots

    def values(self) -> array[float]:
        """Return the recorded values, the oldest first."""
        if len(self._values) < self._slots:
            return self._values[:]
        return self._values[self._next :] + self._values[: self._next]

    def newest_of(self, count: int) -> array[float]:
        """Return up to that many of the newest values, the oldest first."""
        values = self.values()
        return values[max(len(values) - count, 0) :]

    def __len__(self) -> int:
        return len(self._values)

    @property
    def newest(self) -> float:
        """Last value, or NaN before the first."""
        return self._values[self._next - 1] if self._values else math.nan


class HeatRing:
    """Counts by bucket of the last spans."""

    __slots__ = ("_counts", "_next")

    def __init__(self) -> None:
        self._counts = array("I")
        self._next = 0

    def add(self, counts: Sequence[int]) -> None:
        """Add the counts of a span."""
        row = array("I", counts)
        if len(self._counts) < COARSE_SLOTS * DURATION_BUCKETS:
            self._counts += row
        else:
            start = self._next * DURATION_BUCKETS
            self._counts[start : start + DURATION_BUCKETS] = row
        self._next = (self._next + 1) % COARSE_SLOTS

    def values(self) -> array[int]:
        """Return the counts of all spans in one list, the oldest span first."""
        first = self._next * DURATION_BUCKETS
        if len(self._counts) < COARSE_SLOTS * DURATION_BUCKETS:
            return self._counts[:]
        return self._counts[first:] + self._counts[:first]


class Cut(NamedTuple):
    """Some series as they were at one moment: all of them have the same times."""

    times: array[float]
    series: dict[str, array[float]]
    heat_times: array[float]
    heat: dict[str, array[int]]
    """Counts of all time spans in a row, each by bucket."""


class History:
    """All series of one broker. ``look`` is called once a second."""

    def __init__(self, broker: Recorded) -> None:
        self._broker = broker
        self.fine_times, self.coarse_times = Ring(FINE_SLOTS), Ring(COARSE_SLOTS)
        """Time of each value, in ms since 1970."""
        self.fine = {name: Ring(FINE_SLOTS) for name in NAMES}
        self.coarse = {name: Ring(COARSE_SLOTS) for name in NAMES}
        self.heat = {name: HeatRing() for name in HEAT}
        self._seen_s: float | None = None
        self._seen: dict[str, float] = {}
        self._seen_counts: dict[str, list[int]] = {}
        self._span: list[dict[str, float]] = []
        self._span_counts: dict[str, list[int]] = {}

    def sample(self) -> None:
        """Record the second that has just passed."""
        clock = self._broker.clock
        now_s, now_ms = clock.monotonic(), clock.now_ms()
        passed_s = None if self._seen_s is None else now_s - self._seen_s
        values = self._sample_counters(passed_s)
        values.update(self._sample_histograms())
        self._seen_s = now_s
        if passed_s is None or passed_s <= 0:
            return  # There is no second before the first look.
        for name, value in values.items():
            self.fine[name].add(value)
        self.fine_times.add(now_ms)
        self._span.append(values)
        if len(self._span) == SECONDS_PER_SPAN:
            self._end_span(now_ms)

    def cut(
        self, names: Iterable[str], heat: Iterable[str], *, is_fine: bool, since_ms: int
    ) -> Cut:
        """Copy some series from a time on, in one step of the loop."""
        rings, times = (self.fine, self.fine_times) if is_fine else (self.coarse, self.coarse_times)
        shown, heat_shown = _since(times, since_ms), _since(self.coarse_times, since_ms)
        first = (len(self.coarse_times) - len(heat_shown)) * DURATION_BUCKETS
        return Cut(
            shown,
            {name: rings[name].newest_of(len(shown)) for name in names},
            heat_shown,
            {name: self.heat[name].values()[first:] for name in heat},
        )

    def time_until_full_s(self) -> float | None:
        """Return the seconds until the disk is full at the rate of the last hour.

        None if it does not fill up, or the recorded time is too short.
        """
        free = self.coarse["disk_free_bytes"].newest_of(GROWTH_SPANS)
        if len(free) < GROWTH_SPANS_LEAST:
            return None
        per_span = (free[0] - free[-1]) / (len(free) - 1)
        return None if per_span <= 0 else free[-1] / per_span * SECONDS_PER_SPAN

    def _sample_counters(self, passed_s: float | None) -> dict[str, float]:
        values: dict[str, float] = {}
        for name, kind, _, read in SERIES:
            found = read(self._broker)
            if kind is Kind.RATE:
                # A counter restarts when a topic of coordinators is deleted.
                grown = max(found - self._seen.get(name, found), 0)
                self._seen[name] = found
                values[name] = grown / passed_s if passed_s else math.nan
            else:
                values[name] = found
        return values

    def _sample_histograms(self) -> dict[str, float]:
        values: dict[str, float] = {}
        for measured in MEASURED:
            histogram = measured.find(self._broker)
            now = [] if histogram is None else histogram.counts[:]
            before = self._seen_counts.get(measured.name, now)
            self._seen_counts[measured.name] = now
            recent = [each - then for each, then in zip(now, before, strict=True)]
            is_measured = any(recent)
            for quantile, share in QUANTILES:
                value = quantile_ms(recent, share) if is_measured else math.nan
                values[f"{measured.name}_{quantile}_ms"] = value
        return values

    def _end_span(self, now_ms: int) -> None:
        self.coarse_times.add(now_ms)
        worst = {name for name, kind, _, _ in SERIES if kind is Kind.WORST} | {*QUANTILE_NAMES}
        for name in NAMES:
            found = [each[name] for each in self._span if not math.isnan(each[name])]
            if not found:
                self.coarse[name].add(math.nan)
            else:
                self.coarse[name].add(max(found) if name in worst else sum(found) / len(found))
        self._span.clear()
        for name in HEAT:
            now = self._seen_counts[name]
            before = self._span_counts.get(name, [0] * len(now))
            counts = [each - then for each, then in zip(now, before, strict=True)]
            # What takes longer than the last bound is counted with it.
            kept = counts[: DURATION_BUCKETS - 1]
            self.heat[name].add([*kept, sum(counts[DURATION_BUCKETS - 1 :])])
            self._span_counts[name] = now


def _since(times: Ring, since_ms: int) -> array[float]:
    values = times.values()
    first = next((at for at, time_ms in enumerate(values) if time_ms >= since_ms), len(values))
    return values[first:]
