"""What the members of all libraries have in common: settings, progress, commits with a name.

A member reads, writes down what it read, and commits every few polls with the attempt's name as
metadata: what it had read and not committed when it was killed is what at-least-once allows another
member to read again, and nothing else. SIGTERM makes it commit and leave.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.groups.events import COMMITTED, COMMITTING, READ, REFUSED, UNSURE, Journal, Partition

POLL_MS = 200
MOST_RECORDS = 100
POLLS_PER_COMMIT = 3
COMMIT_INTERVAL_S = 0.4
FATAL_EXIT_CODE = 3
"""A library gave up for good and says that only a new member may try again."""


@dataclass(frozen=True)
class Settings:
    """How a member takes part; given on the command line as JSON."""

    library: str
    name: str
    servers: str
    group: str
    topics: tuple[str, ...]
    journal: str
    protocol: str = "classic"
    assignor: str = "range"
    instance: str | None = None
    session_ms: int = 3000
    heartbeat_ms: int = 500
    pattern: str | None = None
    """Subscribe by a regular expression instead of `topics`."""


class CommitRefused(Exception):
    """The coordinator refused a commit for good: the member is no longer who it was."""


class CommitUnsure(Exception):
    """A commit failed in a way that leaves open whether it happened."""


class Progress:
    """What a member has read and not committed yet, and its journal."""

    def __init__(self, settings: Settings) -> None:
        self.journal = Journal(settings.journal)
        self.stopping = False
        self._name = settings.name
        self._attempts = 0
        self._polls = 0
        self._next_commit_s = 0.0
        self._uncommitted: dict[Partition, int] = {}

    def read(self, records: Iterable[tuple[str, int, int, bytes | None]]) -> None:
        """Take what a poll returned as processed."""
        items = [(t, p, o, (value or b"").decode()) for t, p, o, value in records]
        if items:
            self.journal.note(READ, items)
            self._polls += 1
        for topic, partition, offset, _value in items:
            self._uncommitted[topic, partition] = offset + 1

    def is_due(self) -> bool:
        """Return whether it is time to commit."""
        if self._uncommitted and self._polls >= POLLS_PER_COMMIT:
            return True
        return bool(self._uncommitted) and time.monotonic() >= self._next_commit_s

    @contextmanager
    def commit(self) -> Iterator[tuple[str, dict[Partition, int]]]:
        """Give the name of an attempt and the offsets to commit, which may be none; note how it
        ended. What failed is tried again while it is still ours.
        """
        self._attempts += 1
        self._polls = 0
        attempt, offsets = f"{self._name}#{self._attempts}", dict(self._uncommitted)
        self._note_commit(COMMITTING, offsets, attempt)
        try:
            yield attempt, offsets
        except (CommitRefused, CommitUnsure) as failed:
            kind = REFUSED if isinstance(failed, CommitRefused) else UNSURE
            self._note_commit(kind, offsets, attempt, repr(failed.__cause__))
        else:
            self._note_commit(COMMITTED, offsets, attempt)
            for place, offset in offsets.items():
                if self._uncommitted.get(place) == offset:
                    del self._uncommitted[place]
        self._next_commit_s = time.monotonic() + COMMIT_INTERVAL_S

    def note(self, kind: str, partitions: Iterable[Partition]) -> None:
        """Note partitions that came or went."""
        places = sorted(partitions)
        self.journal.note(kind, places)
        for place in places:
            self._uncommitted.pop(place, None)

    def _note_commit(
        self, kind: str, offsets: dict[Partition, int], attempt: str, error: str = ""
    ) -> None:
        if offsets:
            items = [(topic, partition, offset) for (topic, partition), offset in offsets.items()]
            self.journal.note(kind, items, attempt, error)
