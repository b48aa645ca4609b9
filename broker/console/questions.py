"""A request to the console: its client, its resource, and its limits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from barnabas.broker.console.jobs.registry import Jobs
from barnabas.broker.console.pacing import Pace
from barnabas.broker.console.paging import Order, Selection
from barnabas.broker.console.records.places import Places

if TYPE_CHECKING:
    from barnabas.broker.admin.observed import ObservedBroker
    from barnabas.broker.console.pages.lag_points import LagPoint
    from barnabas.broker.console.shapes import Worst
    from barnabas.broker.security.acls.access import Access

Value: TypeAlias = str | int | bool


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
        """Record that a list is viewed that begins with these groups."""

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
    """Values of the placeholders of the path, by their names in the template."""
    values: Mapping[str, Value] = field(default_factory=dict)
    """The parameters, of the kinds that the route says; those without a default may be missing."""
    pace: Pace = field(default_factory=Pace)
    places: Places = field(default_factory=Places)
    """Slots of requests that read records."""
    jobs: Jobs = field(default_factory=Jobs)
    accepts_events: bool = False
    """Whether the response may be a stream of events."""
    refusals: int = field(init=False)
    """Number of refused flushes at the time of the request."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "refusals", self.broker.groups.refusals)

    async def durable(self) -> None:
        """Wait until the state read from the coordinators is durable (C14).

        Raises KafkaError if a flush was refused since the request: the response may contain its
        state.
        """
        await self.broker.groups.durable(self.refusals)

    @property
    def now_ms(self) -> int:
        """The broker's wall clock."""
        return self.broker.clock.now_ms()

    def text(self, name: str) -> str:
        """Return a text parameter, or an empty text."""
        return str(self.values.get(name, ""))

    def selection(self, kinds: Mapping[str, tuple[type, ...]]) -> Selection[Any]:
        """Return an empty page; ``kinds`` are those of the places of each order."""
        sort = self.text("sort")
        after = self.values.get("after")
        return Selection(
            Order(sort, kinds[sort.removeprefix("-")]),
            int(self.values["limit"]),
            None if after is None else str(after),
        )
