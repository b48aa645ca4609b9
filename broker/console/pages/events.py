"""Changes in the broker, and their users."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from barnabas.broker.api.checks import CLUSTER
from barnabas.broker.console.parameters import Parameter, paged
from barnabas.broker.console.route import Route, required
from barnabas.broker.console.shapes_story import BrokerEvent, BrokerEventPage

if TYPE_CHECKING:
    from barnabas.broker.console.questions import Question

ORDERS: Final[Mapping[str, tuple[type, ...]]] = {"time_ms": (int, int)}
EVENT_UNITS: Final = 2


async def list_events(question: Question) -> BrokerEventPage:
    """List the changes of the broker."""
    ring = question.broker.events
    wanted, kind = question.text("filter").casefold(), question.text("kind")
    since_ms = int(question.values["since_ms"])
    selection, kinds = question.selection(ORDERS), set()
    for each in ring.newest_first():
        await question.pace.spend(EVENT_UNITS)
        kinds.add(each.kind)
        if each.time_ms < since_ms or (kind and each.kind != kind):
            continue
        if not wanted or any(wanted in text.casefold() for text in each[2:]):
            selection.offer(each, each.time_ms, each.number)
    rows = [BrokerEvent(*each) async for each in selection.rows(question.pace)]
    return BrokerEventPage(
        question.now_ms,
        selection.following,
        ring.complete_since_ms,
        ring.complete_since_ms == ring.begun_ms,
        tuple(sorted(kinds)),
        tuple(rows),
    )


EVENT_ROUTES: Final = (
    Route(
        "/api/v1/events",
        "Changes of the broker with their users",
        list_events,
        BrokerEventPage,
        required(CLUSTER),
        (
            *paged("-time_ms", ORDERS, "any of its texts"),
            Parameter("kind", "Only those of this kind."),
            Parameter("since_ms", "Only those from this time on.", int, 0),
        ),
        watched="events",
    ),
)
