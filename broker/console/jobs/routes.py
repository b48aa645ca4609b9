"""Jobs as they are asked for, and their rows in the table of routes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.api.checks import (
    DESCRIBE,
    TRANSACTIONAL_ID,
    TRANSACTIONAL_ID_DENIED,
    Check,
    Denial,
)
from barnabas.broker.console.jobs.shapes import JobList, JobRow
from barnabas.broker.console.parameters import Parameter
from barnabas.broker.console.route import Route

if TYPE_CHECKING:
    from barnabas.broker.console.jobs.registry import Job
    from barnabas.broker.console.questions import Question


async def list_jobs(question: Question) -> JobList:
    """List jobs, the newest first."""
    topic, access = question.text("topic"), question.access
    found = [
        _row(each)
        for each in question.jobs
        if topic in {"", each.topic, each.target} and access.may_see(TRANSACTIONAL_ID, each.name)
    ]
    return JobList(question.now_ms, tuple(found))


async def describe_one(question: Question) -> JobRow:
    """Answer one job."""
    return _row(question.jobs.get(question.names["transactional_id"]))


def _row(job: Job) -> JobRow:
    return JobRow(
        job.name,
        job.state,
        job.access.principal,
        job.topic,
        job.target,
        job.started_ms,
        job.ended_ms,
        job.offsets_total,
        job.offsets_done,
        job.records,
        job.size_bytes,
        job.message,
    )


_CHECK: Final = Check(
    DESCRIBE, TRANSACTIONAL_ID, "transactional_id", TRANSACTIONAL_ID_DENIED, Denial.REQUEST
)

JOB_ROUTES: Final = (
    Route(
        "GET",
        "/api/v1/jobs",
        "Jobs: those that run, and the last that have ended",
        list_jobs,
        JobList,
        _CHECK._replace(denial=Denial.LEFT_OUT),
        (Parameter("topic", "Only those that read or write this one."),),
    ),
    Route(
        "GET",
        "/api/v1/jobs/{transactional_id}",
        "A job, and how far it is",
        describe_one,
        JobRow,
        _CHECK,
    ),
)
