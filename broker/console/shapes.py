"""What the console's API answers: one frozen class for each shape, from which OpenAPI is made.

Fields are called as in the JSON of the command line where both say the same. Times are in
milliseconds since 1970, sizes in bytes; a ``Wide`` number beyond 2**53 is a string, since
JavaScript would round it; producer ids always are one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias

WIDE: Final = "wide"
Wide: TypeAlias = Annotated[int, WIDE]
"""A number of 64 bits."""


@dataclass(frozen=True, slots=True)
class Error:
    """Why a request was refused."""

    error: str
    """The name of Kafka's error."""
    message: str


# ----------------------------------------------------------------------------------------- topics


@dataclass(frozen=True, slots=True)
class TopicRow:
    """A topic in a list."""

    topic: str
    topic_id: str
    internal: bool
    partitions: int
    """How many."""
    replicas: int
    cleanup_policy: str
    records_max: Wide
    """Offsets between the starts and the ends of its partitions: records, and what markers and
    compaction have taken."""
    size_bytes: Wide
    held_back: Wide
    """Offsets that readers of committed records may not see yet."""


@dataclass(frozen=True, slots=True)
class TopicPage:
    """A page of topics."""

    as_of: Wide
    next: str | None
    """What to give as ``after`` for the next page."""
    items: tuple[TopicRow, ...]


@dataclass(frozen=True, slots=True)
class SettingOfTopic:
    """One configuration of a topic."""

    key: str
    value: str | None
    """None of a secret."""
    source: str


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic."""

    as_of: Wide
    topic: str
    topic_id: str
    internal: bool
    partitions: int
    replicas: int
    cleanup_policy: str
    records_max: Wide
    size_bytes: Wide
    held_back: Wide
    configs: tuple[SettingOfTopic, ...] | None
    """None for who may not see them."""


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """A partition."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    start_offset: Wide
    stable_offset: Wide
    """Where readers of committed records stop."""
    end_offset: Wide
    """Where all readers stop: the high watermark."""
    held_back: Wide
    """From the one to the other."""
    size_bytes: Wide
    segments: int


@dataclass(frozen=True, slots=True)
class PartitionPage:
    """A page of a topic's partitions."""

    as_of: Wide
    next: str | None
    topic: str
    items: tuple[PartitionRow, ...]
