"""Requests about jobs, and their rows in the table of routes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.api.checks import (
    CLUSTER,
    TOPIC,
    TRANSACTIONAL_ID,
)
from barnabas.broker.console.jobs.shapes import JobList, JobRow
from barnabas.broker.console.parameters import Parameter
from barnabas.broker.console.route import Route, required, visible
from barnabas.broker.security.acls.operations import CLUSTER_NAME

if TYPE_CHECKING:
    from barnabas.broker.console.jobs.registry import Job
    from barnabas.broker.console.questions import Question
    from barnabas.broker.security.acls.access import Access


async def list_jobs(question: Question) -> JobList:
    """List jobs, the newest first."""
    topic, access = question.text("topic"), question.access
    found = [
        _row(each, access)
        for each in question.jobs
        if topic in {"", each.topic, each.target}
        and (not topic or access.may_see(TOPIC, topic))
        and access.may_see(TRANSACTIONAL_ID, each.name)
    ]
    return JobList(question.now_ms, tuple(found))


async def describe_one(question: Question) -> JobRow:
    """Return one job."""
    return _row(question.jobs.get(question.names["transactional_id"]), question.access)


def _row(job: Job, access: Access) -> JobRow:
    """Return a job, without the names that the caller may not see."""
    user = job.access.principal
    shows_user = user == access.principal or access.may_see(CLUSTER, CLUSTER_NAME)
    return JobRow(
        job.name,
        job.state,
        user if shows_user else None,
        job.topic if access.may_see(TOPIC, job.topic) else None,
        job.target if access.may_see(TOPIC, job.target) else None,
        job.started_ms,
        job.ended_ms,
        job.offsets_total,
        job.offsets_done,
        job.records,
        job.size_bytes,
        job.message,
    )


JOB_ROUTES: Final = (
    Route(
        "/api/v1/jobs",
        "Replays: running ones, and the last ended ones",
        list_jobs,
        JobList,
        visible(TRANSACTIONAL_ID),
        (Parameter("topic", "Only those that read or write this one."),),
    ),
    Route(
        "/api/v1/jobs/{transactional_id}",
        "One replay and its progress",
        describe_one,
        JobRow,
        required(TRANSACTIONAL_ID),
    ),
)
