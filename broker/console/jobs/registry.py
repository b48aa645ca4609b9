"""The jobs of one broker: the running ones, and the last ones that have ended.

Rules of this file:

* **A job has the name of its transactional id**: a user who can write with the id can cancel the
  job, and the history of the id is the history of the job.
* Numbers restart with the broker. So the first job after a crash fences the open transaction of the
  first job before it; a transaction that no job fences ends by its timeout.
* Only the transaction of a job outlives the broker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from barnabas.broker.console.records.pace import ThreadPace
from barnabas.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.security.acls.access import Access

RUNNING_MOST: Final = 2
"""Maximum number of jobs at a time; further ones are refused."""
ENDED_KEPT: Final = 100
PREFIX: Final = "barnabas-replay-"
"""Prefix of the transactional ids of jobs, for ACLs."""

RUNNING: Final = "running"
COMMITTED: Final = "committed"
CANCELLED: Final = "cancelled"
FAILED: Final = "failed"


@dataclass(slots=True)
class Job:
    """A job with its progress."""

    name: str
    access: Access
    topic: str
    target: str
    started_ms: int
    key: str
    """Key by which a repeated request is recognized, or empty."""
    state: str = RUNNING
    ended_ms: int | None = None
    offsets_total: int = 0
    offsets_done: int = 0
    records: int = 0
    size_bytes: int = 0
    """Written bytes: visible once they are committed, and never if they are not."""
    message: str | None = None
    pace: ThreadPace = field(default_factory=ThreadPace)
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_over(self) -> bool:
        """Whether the job has ended."""
        return self.state != RUNNING

    def cancel(self) -> None:
        """Stop the job before its next step."""
        self.cancelled.set()
        self.pace.end()

    def end(self, state: str, now_ms: int, message: str | None = None) -> None:
        """Record the end of the job."""
        self.state, self.ended_ms, self.message = state, now_ms, message


class Jobs:
    """All jobs, the newest last."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._started = 0

    def __iter__(self) -> Iterator[Job]:
        return reversed(list(self._jobs.values()))

    @property
    def next_name(self) -> str:
        """Return the name of the next job."""
        return f"{PREFIX}{self._started + 1}"

    def get(self, name: str) -> Job:
        """Return a job; raises KafkaError."""
        found = self._jobs.get(name)
        if found is None:
            raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, "no such job")
        return found

    def asked_before(self, access: Access, key: str) -> Job | None:
        """Return the job of an earlier request of the same user with the same key."""
        if not key:
            return None
        known = (each for each in self if each.key == key)
        return next((each for each in known if each.access.principal == access.principal), None)

    def check_room(self) -> None:
        """Raise KafkaError if the maximum number of jobs runs."""
        if sum(not each.is_over for each in self) >= RUNNING_MOST:
            words = f"{RUNNING_MOST} jobs run already: wait for one, or cancel it"
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, words)

    def add(self, make: Callable[[str], Job]) -> Job:
        """Create a job for a name and add it; raises KafkaError at the maximum number."""
        self.check_room()
        job = make(self.next_name)
        self._started += 1
        self._jobs[job.name] = job
        ended = [each.name for each in self._jobs.values() if each.is_over]
        for name in ended[: max(0, len(ended) - ENDED_KEPT)]:
            del self._jobs[name]
        return job
