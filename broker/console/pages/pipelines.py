"""Exactly-once pipelines: what goes in, what comes out, and how far they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from barnabas.broker.api.checks import (
    GROUP,
    TOPIC,
    TRANSACTIONAL_ID,
)
from barnabas.broker.console.pacing import ROW_UNITS
from barnabas.broker.console.pages.groups import Lag, lag_of
from barnabas.broker.console.parameters import paged
from barnabas.broker.console.route import Route, visible
from barnabas.broker.console.shapes_story import PipelinePage, PipelineRow

if TYPE_CHECKING:
    from barnabas.broker.console.questions import Question
    from barnabas.broker.coordination.pipelines import Pipeline

ORDERS: Final[Mapping[str, tuple[type, ...]]] = {
    "group": (str,),
    **dict.fromkeys(("last_commit_ms", "commits", "aborts"), (int, str)),
}
DIGITS: Final = 3


async def list_pipelines(question: Question) -> PipelinePage:
    """List pipelines."""
    wanted = question.text("filter").casefold()
    selection = question.selection(ORDERS)
    for each in question.broker.transactions.pipelines.all():
        await question.pace.spend()
        if wanted in each.group.casefold() and question.access.may_see(GROUP, each.group):
            selection.offer_by(each, each, each.group)
    rows = [await _row(question, each) for each in selection.page()]
    await question.durable()
    return PipelinePage(question.now_ms, selection.following, selection.total, tuple(rows))


async def _row(question: Question, pipeline: Pipeline) -> PipelineRow:
    await question.pace.spend(ROW_UNITS + len(pipeline.ids) + len(pipeline.outputs))
    access, groups = question.access, question.broker.groups
    lag, inputs = Lag(), []
    if groups.is_coordinator() and not groups.refusal(pipeline.group):
        machine = groups.machine_of(pipeline.group)
        inputs = sorted(machine.offsets.of_group(pipeline.group))
        await question.pace.spend(len(inputs))
        lag = await lag_of(question, machine, pipeline.group)
    ids = (each for each in list(pipeline.ids) if access.may_see(TRANSACTIONAL_ID, each))
    is_committed = pipeline.last_commit_ms >= 0
    return PipelineRow(
        pipeline.group,
        len(pipeline.ids),
        next(ids, None),
        tuple(each for each in inputs if access.may_see(TOPIC, each)),
        tuple(each for each in sorted(pipeline.outputs) if access.may_see(TOPIC, each)),
        lag.lag,
        lag.lag_readable,
        lag.lag_blocked,
        pipeline.commits,
        pipeline.aborts,
        round(pipeline.commits_per_s(question.now_ms), DIGITS),
        pipeline.last_commit_ms if is_committed else None,
        pipeline.took if is_committed else None,
    )


PIPELINE_ROUTES: Final = (
    Route(
        "/api/v1/pipelines",
        "Groups whose offsets are committed in transactions, with the topics read and written",
        list_pipelines,
        PipelinePage,
        visible(GROUP),
        paged("group", ORDERS, "the group's id"),
        watched="pipelines",
    ),
)
