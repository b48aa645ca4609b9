"""History of a group's lag and of its rebalances."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.api.checks import GROUP
from barnabas.broker.console.pages import groups
from barnabas.broker.console.pages.lag_points import trend_of
from barnabas.broker.console.route import Route, required
from barnabas.broker.console.shapes_story import GroupHistory, GroupRebalance
from barnabas.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.console.questions import Question

REBALANCES_PER_UNIT: Final = 10
"""Rebalances of all groups that one unit covers."""


async def history(question: Question) -> GroupHistory:
    """Return the measurements of a group since it was first viewed."""
    group_id = question.names["group"]
    if groups.machine_of(question) is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
    question.lags.view(question, group_id)
    points = await question.lags.of(question, group_id)
    seen = points or ()
    rebalances = question.broker.groups.rebalances
    await question.pace.spend(1 + len(rebalances) // REBALANCES_PER_UNIT)
    return GroupHistory(
        question.now_ms,
        group_id,
        points is None,
        seen[0].time_ms if seen else None,
        trend_of(seen, question.now_ms),
        tuple(each.time_ms for each in seen),
        tuple(each.lag - each.lag_blocked for each in seen),
        tuple(each.lag_blocked for each in seen),
        rebalances.complete_since_ms,
        tuple(GroupRebalance(each.time_ms, each.generation) for each in rebalances.of(group_id)),
    )


GROUP_HISTORY_ROUTES: Final = (
    Route(
        "/api/v1/groups/{group}/history",
        "Lag of a group over time, and its rebalances",
        history,
        GroupHistory,
        required(GROUP),
    ),
)
