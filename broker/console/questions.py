"""A request to the console: its client, its resource, and its limits."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from barnabas.broker.console.jobs.registry import Jobs
from barnabas.broker.console.pacing import Pace
from barnabas.broker.console.paging import Order, Selection
from barnabas.broker.console.records.places import Places
from barnabas.broker.http.pages import Observed
from barnabas.broker.runtime.stage import Stage
from barnabas.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    import asyncio

    from barnabas.broker.api.dispatch import Routes
    from barnabas.broker.cluster.view import ClusterView
    from barnabas.broker.console.pages.lag_points import LagPoint
    from barnabas.broker.console.shapes import Worst
    from barnabas.broker.http.messages.answer_memory import AnswerMemory
    from barnabas.broker.metadata.catalogue import Catalogue
    from barnabas.broker.metrics.history import History
    from barnabas.broker.runtime.clock import Clock
    from barnabas.broker.runtime.events import EventRing
    from barnabas.broker.security.acls.access import Access
    from barnabas.broker.security.audit import AuditLog
    from barnabas.broker.security.quotas.quotas import Quotas
    from barnabas.broker.upkeep.cleaning import LogCleaner

Value: TypeAlias = str | int | bool


class ObservedBroker(Observed, Protocol):
    """Parts of the broker that the console uses."""

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
    """Raise KafkaError if the broker is still recovering, or has failed."""
    if broker.failure is not None:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the broker has failed: see /livez")
    if broker.stage < Stage.PREPARED:
        raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "the broker recovers: see /readyz")


class ConsoleRequest(Protocol):
    """Common parts of requests that read and requests that change."""

    @property
    def broker(self) -> ObservedBroker:
        """Return the broker of the request."""

    @property
    def access(self) -> Access:
        """Return the permissions of the caller."""

    @property
    def names(self) -> Mapping[str, str]:
        """Return the names in the path."""


class FindsWorst(Protocol):
    """Finder of the worst groups and partitions (broker/console/pages/worst.py)."""

    async def of(self, question: Question) -> Worst | None:
        """Return the last result, or None before there is one."""


class RemembersLag(Protocol):
    """Store of the lag of groups over time (broker/console/pages/lag_history.py)."""

    def view(self, question: Question, group_id: str) -> None:
        """Record that a group is viewed."""

    def view_rows(self, question: Question, group_ids: Iterable[str]) -> None:
        """Record that a list is viewed, of which these are the first groups."""

    async def of(self, question: Question, group_id: str) -> tuple[LagPoint, ...] | None:
        """Return the measurements, or None for a user who cannot see all topics."""

    async def trend(self, question: Question, group_id: str) -> str | None:
        """Return the trend of a group's lag, or None if it is unknown or hidden from the user."""


@dataclass(frozen=True, slots=True)
class Question:
    """One request, read and allowed."""

    broker: ObservedBroker
    worst: FindsWorst
    lags: RemembersLag
    access: Access
    names: Mapping[str, str] = field(default_factory=dict)
    """The parts of the path that stand for something, by what the template calls them."""
    values: Mapping[str, Value] = field(default_factory=dict)
    """The parameters, of the kinds that the route says; those without a default may be missing."""
    pace: Pace = field(default_factory=Pace)
    places: Places = field(default_factory=Places)
    """Slots of requests that read records."""
    jobs: Jobs = field(default_factory=Jobs)
    accepts_events: bool = False
    """Whether the answer may be a stream of events."""
    refusals: int = field(init=False)
    """Number of refused flushes when the request came."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "refusals", self.broker.groups.refusals)

    async def durable(self) -> None:
        """Wait until the state read from the coordinators is durable (C14).

        Raises KafkaError if a flush was refused since the request came: it may have been read.
        """
        await self.broker.groups.durable(self.refusals)

    @property
    def now_ms(self) -> int:
        """The broker's wall clock."""
        return self.broker.clock.now_ms()

    def text(self, name: str) -> str:
        """Return a text parameter, or an empty text."""
        return str(self.values.get(name, ""))

    def selection(self, kinds: Mapping[str, tuple[type, ...]]) -> Selection:
        """Return an empty page; ``kinds`` are those of the places of each order."""
        sort = self.text("sort")
        after = self.values.get("after")
        return Selection(
            Order(sort, kinds[sort.removeprefix("-")]),
            int(self.values["limit"]),
            None if after is None else str(after),
        )
