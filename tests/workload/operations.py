"""Operations of a client, as data."""

from __future__ import annotations

from typing import NamedTuple

from tests.history.model import Partition, Write


class Send(NamedTuple):
    """Records outside of transactions, sent at once."""

    writes: tuple[Write, ...]
    pad_bytes: int = 0
    """Bytes to add to each record."""


class Transact(NamedTuple):
    """A transaction that sends its parts one after the other."""

    parts: tuple[tuple[Write, ...], ...]
    pause_s: float = 0.0
    """Time after each part."""
    aborts: bool = False
    abandons: bool = False
    """Whether the transaction stays open; the next one has another transactional id."""


class Transform(NamedTuple):
    """A transaction with an output for each input of one poll, and with the group's offsets."""

    targets: tuple[Partition, ...]
    """Partitions of the outputs, in turn."""
    think_s: float = 0.0
    """Time between the poll and the transaction."""
    pause_s: float = 0.0
    aborts: bool = False


class Poll(NamedTuple):
    """One poll of a reader without a group."""


class Consume(NamedTuple):
    """One poll of a member of a group, and a commit of what it has read if one is due."""

    polls_per_commit: int
    """Polls with records after which a commit is due."""
    commit_interval_s: float
    """Time after which a commit is due."""


class Leave(NamedTuple):
    """The end of a membership; the next poll joins the group again."""


class CommitOffset(NamedTuple):
    """An offset of a group without members, committed and fetched again."""

    group: str
    place: Partition
    offset: int


class Rest(NamedTuple):
    """Time without an operation."""

    seconds: float


Operation = Send | Transact | Transform | Poll | Consume | Leave | CommitOffset | Rest
