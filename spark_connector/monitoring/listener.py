"""The StreamingQueryListener that passes Spark's events to a queue, and does nothing else.

Spark calls it in threads that its queries wait for (`onQueryStarted`) or share.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from barnabas.spark_connector.monitoring.query_events import Ended, Event, Progressed, Started

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import (
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

Offer = Callable[[Event], None]


class EventListener(StreamingQueryListener):
    """Passes on the events of all queries of a session; ``offer`` must neither wait nor raise."""

    def __init__(self, offer: Offer) -> None:
        self._offer = offer

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """Pass on that a query has started."""
        self._offer(Started(str(event.id), str(event.runId), event.name))

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Pass on the report of a batch."""
        self._offer(Progressed(event.progress.json))

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Pass on that a query has ended."""
        self._offer(Ended(str(event.id), str(event.runId)))

    @property
    def _jlistener(self) -> Any:  # noqa: ANN401 - Java's
        """Java's side of the listener, which classic PySpark adds to a session.

        Not public. PySpark's own one reads each field of a report from Java by itself, which took
        15 ms of CPU for each batch here and more in Java; the JSON of a report takes 0.1 ms. If
        the names differ in a later PySpark, its own listener is used.
        """
        if not hasattr(self, "_jlistenerobj"):
            from pyspark import SparkContext

            wrapper: Any = getattr(SparkContext._jvm, "PythonStreamingQueryListenerWrapper", None)  # noqa: SLF001
            if not callable(wrapper):
                return super()._jlistener
            self._jlistenerobj = wrapper(_JavaListener(self._offer))
        return self._jlistenerobj


class _JavaListener:
    """Called by Java, with events of Java."""

    def __init__(self, offer: Offer) -> None:
        self._offer = offer

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802, ANN401
        query_id, run_id = event.id().toString(), event.runId().toString()
        self._offer(Started(query_id, run_id, event.name()))

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802, ANN401
        self._offer(Progressed(event.progress().json()))

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802, ANN401
        """Ignore that a query had nothing to do."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802, ANN401
        self._offer(Ended(event.id().toString(), event.runId().toString()))

    class Java:
        """The interface, for Py4J."""

        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)
