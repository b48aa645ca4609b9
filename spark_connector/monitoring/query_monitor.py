"""The monitor of the exactly-once queries of a Spark session.

A listener passes Spark's events to a queue. A thread of the monitor takes them from there, reads
the rest from the brokers, and keeps a snapshot, which is what the HTTP port serves. So no query
waits for the monitor, and no failure of it reaches a query.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from barnabas.spark_connector.closing import Closing
from barnabas.spark_connector.monitoring.metrics_server import MetricsServer
from barnabas.spark_connector.monitoring.metrics_text import exposition
from barnabas.spark_connector.monitoring.progress import BatchProgress
from barnabas.spark_connector.monitoring.query_events import Ended, Event, Progressed, Started
from barnabas.spark_connector.monitoring.query_metrics import QueryMetrics
from barnabas.spark_connector.monitoring.watched_query import WatchedQuery
from barnabas.spark_connector.settings.options import SinkOptions
from barnabas.storage.runtime.clock import monotonic, sleep
from barnabas.storage.runtime.threads import Empty, Queue, new_queue, start_thread

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REFRESH_S: Final = 10.0
REFRESH_MIN_S: Final = 1.0
"""Least time between two readings of the same query, however short its batches are."""
QUERIES_MAX: Final = 100
"""Number of queries that are followed; ended ones are dropped first."""
EVENTS_MAX: Final = 1_000
"""Number of events that wait for the monitor's thread; further ones are dropped."""
_CLOSING_S: Final = 5.0
_log: Final = logging.getLogger("barnabas.spark.monitor")

OnBatch = Callable[[BatchProgress], object]


class Monitor(Closing):
    """Follows queries until it is closed."""

    def __init__(
        self,
        elsewhere: SinkOptions,
        on_batch: OnBatch | None = None,
        *,
        refresh_s: float = REFRESH_S,
    ) -> None:
        """``refresh_s``: the time after which age and lag are read again without an event."""
        self._elsewhere = elsewhere
        self._on_batch = on_batch
        self._refresh_s = refresh_s
        self._events: Queue[Event | None] = new_queue()
        self._watched: dict[str, WatchedQuery] = {}
        self._snapshot: tuple[QueryMetrics, ...] = ()
        self._touched: set[str] = set()
        """Queries with events since it was last read."""
        self._refreshed_at_s: dict[str, float] = {}
        self._noted: set[str] = set()
        self._server: MetricsServer | None = None
        self._unfollow: Callable[[], None] | None = None
        self._is_closed = False
        self._thread = start_thread("barnabas-monitor", self._run)

    @property
    def url(self) -> str | None:
        """Address of the metrics, or None without a port."""
        return None if self._server is None else self._server.url

    def queries(self) -> tuple[QueryMetrics, ...]:
        """Return the metrics of all queries that have used one of our sinks."""
        return self._snapshot

    def serve(self, host: str, port: int) -> None:
        """Serve the metrics at a port; raises WrongOption."""
        self._server = MetricsServer(host, port, lambda: exposition(self._snapshot))

    def follow(self, spark: SparkSession) -> None:
        """Add a listener to a session, which works with Spark Connect, too."""
        from barnabas.spark_connector.monitoring.listener import EventListener

        listener = EventListener(self.offer)
        spark.streams.addListener(listener)
        self._unfollow = lambda: spark.streams.removeListener(listener)

    def offer(self, event: Event) -> None:
        """Take an event; drop it if too many wait."""
        if self._is_closed:
            return  # Without `close`, Spark still calls the listener.
        if self._events.qsize() < EVENTS_MAX:
            self._events.put(event)
        else:
            self._note_once("events", "events of queries were dropped: brokers respond too slowly")

    def close(self) -> None:
        """Remove the listener, and end."""
        unfollow, self._unfollow = self._unfollow, None
        if unfollow is not None:
            try:
                unfollow()
            except Exception as error:  # noqa: BLE001 - Spark may have ended, in many ways
                _log.info("listener could not be removed reason=%r", error)
        self.stop()

    def stop(self) -> None:
        """End without Spark, which may have ended."""
        self._is_closed = True
        if self._server is not None:
            self._server.close()
        self._events.put(None)
        self._thread.join(_CLOSING_S)

    # ------------------------------------------------------------------------------- the thread

    def _run(self) -> None:
        while not self._is_closed:
            try:
                self._take(self._next_events())
                self._refresh()
            except Exception:  # noqa: BLE001 - logged; no failure of the monitor ends a query
                self._note_once("monitor", "metrics could not be updated", with_trace=True)
                sleep(REFRESH_MIN_S)  # A failure of every turn must not keep a processor busy.
        for each in self._watched.values():
            each.close()

    def _next_events(self) -> list[Event]:
        found: list[Event | None] = []
        timeout_s = min(REFRESH_MIN_S, self._refresh_s) if self._touched else self._refresh_s
        try:
            found.append(self._events.get(timeout=timeout_s))
            while True:
                found.append(self._events.get_nowait())
        except Empty:
            return [each for each in found if each is not None]

    def _take(self, events: list[Event]) -> None:
        for event in events:
            try:
                self._touched.add(self._take_one(event))
            except Exception:  # noqa: BLE001 - logged; the events after it count
                self._note_once("event", "an event of a query was dropped", with_trace=True)

    def _take_one(self, event: Event) -> str:
        """Take an event and return the id of its query."""
        match event:
            case Started(query_id, run_id, name):
                # Behind the others: of two with the same label the later one is shown.
                known = self._watched.pop(query_id, None)
                self._watched[query_id] = known or self._new(query_id, name)
                self._watched[query_id].start(run_id)
            case Progressed(text):
                report: dict[str, Any] = json.loads(text)
                query_id = str(report["id"])
                if query_id not in self._watched:
                    self._watched[query_id] = self._new(query_id, report.get("name"))
                    self._watched[query_id].start(str(report["runId"]))
                self._watched[query_id].take(report)
            case Ended(query_id, run_id):
                if query_id in self._watched:
                    self._watched[query_id].end(run_id)
        return query_id

    def _new(self, query_id: str, name: str | None) -> WatchedQuery:
        ended = [key for key, each in self._watched.items() if not each.is_active]
        for key in [*ended, *self._watched][: len(self._watched) - QUERIES_MAX + 1]:
            self._watched.pop(key).close()
        label = name or query_id
        return WatchedQuery(
            query_id, label, self._elsewhere, lambda error: self._note(label, error)
        )

    def _refresh(self) -> None:
        """Update the metrics of queries with events, and of those that were not read for long."""
        for query_id, each in list(self._watched.items()):
            age_s = monotonic() - self._refreshed_at_s.get(query_id, 0.0)
            if query_id in self._touched:
                is_due = age_s >= REFRESH_MIN_S or not each.is_active
            else:
                is_due = each.is_active and age_s >= self._refresh_s
            if not is_due or self._is_closed:
                continue
            self._touched.discard(query_id)
            self._refreshed_at_s[query_id] = monotonic()
            self._report(each.refresh())
            if not each.is_active:
                each.close()
            self._keep_snapshot()
        self._touched &= self._watched.keys()
        kept = self._refreshed_at_s.keys() & self._watched.keys()
        self._refreshed_at_s = {key: self._refreshed_at_s[key] for key in kept}

    def _keep_snapshot(self) -> None:
        found = [each.metrics for each in self._watched.values()]
        by_label = {(each.query, each.sink_id): each for each in found if each is not None}
        self._snapshot = tuple(by_label.values())

    def _report(self, batches: list[BatchProgress]) -> None:
        if self._on_batch is None:
            return
        for each in batches:
            try:
                self._on_batch(each)
            except Exception:  # noqa: BLE001 - the user's function; logged
                self._note_once("on_batch", "on_batch failed", with_trace=True)

    def _note(self, label: str, error: Exception) -> None:
        self._note_once(f"query {label}", f"metrics are not known query={label} reason={error}")

    def _note_once(self, key: str, line: str, *, with_trace: bool = False) -> None:
        if key in self._noted or len(self._noted) >= QUERIES_MAX:
            return
        self._noted.add(key)
        _log.warning("%s", line, exc_info=with_trace)
