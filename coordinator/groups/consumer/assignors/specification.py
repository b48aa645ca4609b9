"""Input and output of an assignor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from barnabas.coordinator.groups.consumer.member import Partitions


@dataclass(frozen=True, slots=True)
class Subscriber:
    """One member, for an assignor."""

    topic_ids: frozenset[bytes]
    """The topics that the member subscribes to; all of them exist."""
    instance_id: str | None = None
    target: Partitions = field(default_factory=dict)
    """The previous assignment, which a sticky assignor keeps as far as it can."""


Subscribers: TypeAlias = Mapping[str, Subscriber]
"""Subscribers by member id."""
PartitionCount: TypeAlias = Callable[[bytes], int]
"""Returns the number of a topic's partitions."""
Assign: TypeAlias = Callable[[Subscribers, PartitionCount], dict[str, Partitions]]


def all_want_the_same(subscribers: Subscribers) -> bool:
    """Whether every member subscribes to the same topics."""
    return len({subscriber.topic_ids for subscriber in subscribers.values()}) <= 1
