"""Progress of a member of a group: what it has read and not committed yet.

A member commits with the attempt's name as metadata. The records that it had read and not committed
when it was killed are those that another member may read again, and no others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from barnabas.storage.runtime.clock import monotonic
from tests.history.model import (
    COMMIT,
    COMMITTED,
    FAILED,
    OK,
    UNKNOWN,
    OffsetCommit,
    Partition,
    Read,
)
from tests.workload.journal import Journal
from tests.workload.operations import Consume
from tests.workload.settings import Settings


class CommitRefused(Exception):
    """Error of a commit that the coordinator refused: the member has left its group."""


class CommitUnsure(Exception):
    """Error of a commit that may have taken effect."""


class Progress:
    """Records that a member has read and not committed yet, and its journal."""

    def __init__(self, settings: Settings, journal: Journal) -> None:
        self._journal = journal
        self._name = settings.name
        self._group = settings.group
        self._attempts = 0
        self._polls = 0
        self._committed_s = float("-inf")
        self._uncommitted: dict[Partition, int] = {}

    def read(self, reads: list[Read]) -> None:
        """Note the records of a poll as processed."""
        self._journal.poll(reads, COMMITTED, self._group)
        self._polls += bool(reads)
        self._uncommitted |= {each.place: each.offset + 1 for each in reads}

    def is_due(self, operation: Consume) -> bool:
        """Return whether it is time to commit."""
        waited_s = monotonic() - self._committed_s
        is_time = self._polls >= operation.polls_per_commit
        return bool(self._uncommitted) and (is_time or waited_s >= operation.commit_interval_s)

    @contextmanager
    def commit(self) -> Iterator[tuple[str, dict[Partition, int]]]:
        """Yield the name of an attempt and the offsets to commit, which may be none.

        Notes the result. Offsets whose commit failed are committed again, unless their partitions
        have gone.
        """
        self._attempts += 1
        self._polls = 0
        attempt, offsets = f"{self._name}#{self._attempts}", dict(self._uncommitted)
        number = 0
        if offsets:
            number = self._journal.begin(COMMIT, metadata=attempt)
            commits = [OffsetCommit(self._group, *place, at) for place, at in offsets.items()]
            self._journal.offsets(number, commits)
        outcome, reason = OK, ""
        try:
            yield attempt, offsets
        except (CommitRefused, CommitUnsure) as failed:
            outcome = FAILED if isinstance(failed, CommitRefused) else UNKNOWN
            reason = repr(failed.__cause__)
        else:
            for place, offset in offsets.items():
                if self._uncommitted.get(place) == offset:
                    del self._uncommitted[place]
        if offsets:
            self._journal.finish(number, outcome, reason)
        self._committed_s = monotonic()

    def moved(self, partitions: Iterable[Partition], reason: str) -> None:
        """Note partitions that came or went."""
        places = sorted(partitions)
        self._journal.moved(places, reason, self._group)
        for place in places:
            self._uncommitted.pop(place, None)
