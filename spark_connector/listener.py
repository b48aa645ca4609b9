"""The StreamingQueryListener that passes Spark's events to a queue, and does nothing else.

Spark calls it in threads that its queries wait for (`onQueryStarted`) or share.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pyspark.sql.streaming.listener import StreamingQueryListener

from barnabas.spark_connector.query_events import Ended, Event, Progressed, Started

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import (
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )


class EventListener(StreamingQueryListener):
    """Passes on the events of all queries of a session; ``offer`` must neither wait nor raise."""

    def __init__(self, offer: Callable[[Event], None]) -> None:
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
