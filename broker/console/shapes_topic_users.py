"""Responses of the console's API about producers and readers of a topic (see shapes.py)."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.broker.console.shapes import Page, Wide


@dataclass(frozen=True, slots=True)
class ProducerRow:
    """One producer as one partition knows it, from DescribeProducers."""

    partition: int
    producer_id: str
    producer_epoch: int
    transactional_id: str | None
    """Transactional id of the producer. None if it has none, if no coordinator knows it, or if the
    user cannot see it."""
    last_sequence: int | None
    """Last sequence number of its records in this epoch, or None without records."""
    last_write_ms: Wide | None
    """The time of its last record."""
    last_offset: Wide | None
    """Offset of that record, or None if it is not kept."""
    transaction_start_offset: Wide | None
    """First offset of its open transaction, or None without one."""


@dataclass(frozen=True, slots=True)
class ProducerPage(Page):
    """A page of a topic's producers."""

    topic: str
    items: tuple[ProducerRow, ...]


@dataclass(frozen=True, slots=True)
class GroupOfTopicRow:
    """A group that has committed offsets of a topic."""

    group: str
    state: str
    members: int
    partitions: int
    """Number of partitions of the topic with committed offsets."""
    lag: Wide
    """Lag on this topic alone, as in the list of groups."""
    lag_readable: Wide
    lag_blocked: Wide


@dataclass(frozen=True, slots=True)
class GroupOfTopicPage(Page):
    """A page of the groups of a topic."""

    topic: str
    items: tuple[GroupOfTopicRow, ...]
