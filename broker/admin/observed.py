"""The broker as its HTTP port and its console see it: all that they read of it in memory."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Protocol

from barnabas.broker.http.pages import Observed
from barnabas.broker.runtime.stage import Stage
from barnabas.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    import asyncio

    from barnabas.broker.api.dispatch import Routes
    from barnabas.broker.cluster.view import ClusterView
    from barnabas.broker.http.messages.answer_memory import AnswerMemory
    from barnabas.broker.metadata.catalogue import Catalogue
    from barnabas.broker.metrics.history import History
    from barnabas.broker.runtime.clock import Clock
    from barnabas.broker.runtime.events import EventRing
    from barnabas.broker.security.audit import AuditLog
    from barnabas.broker.security.quotas.quotas import Quotas
    from barnabas.broker.upkeep.cleaning import LogCleaner


class ObservedBroker(Observed, Protocol):
    """Interface of the broker that the console uses."""

    node_id: int
    cluster_id: str
    view: ClusterView
    clock: Clock
    loop: asyncio.AbstractEventLoop
    catalogue: Catalogue
    history: History | None
    cleaner: LogCleaner
    audit: AuditLog
    events: EventRing
    routes: Routes
    quotas: Quotas
    answer_memory: AnswerMemory
    asks_for_login: bool
    """Whether the console requires authentication."""

    changes_refused: str | None
    """Reason that changes over HTTP are refused, or None if they are allowed."""

    def spawn(self, coroutine: Coroutine[Any, Any, None], name: str) -> None:
        """Run a background task until the broker ends; an exception in it is fatal."""


def check_serving(broker: ObservedBroker) -> None:
    """Raise KafkaError if the broker's state is not loaded yet, or is not durable any more."""
    if broker.failure is not None:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the broker has failed: see /livez")
    if broker.stage < Stage.PREPARED:
        raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "the broker recovers: see /readyz")
