"""What the console's API answers about who writes and reads a topic (see shapes.py)."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.broker.console.shapes import Page, Wide


@dataclass(frozen=True, slots=True)
class ProducerRow:
    """What one partition knows of one producer, as DescribeProducers says it."""

    partition: int
    producer_id: str
    producer_epoch: int
    transactional_id: str | None
    """None of a producer without one, of one that no coordinator knows, and for who may not see
    it."""
    last_sequence: int | None
    """Of the records that it has written in this epoch; None if there are none."""
    last_write_ms: Wide | None
    """The time of its last record."""
    last_offset: Wide | None
    """Where that is; None where it is not remembered."""
    transaction_start_offset: Wide | None
    """Where its open transaction begins; None without one."""


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
    """Of the topic, with committed offsets."""
    lag: Wide
    """On this topic alone, as in the list of groups."""
    lag_readable: Wide
    lag_held_back: Wide


@dataclass(frozen=True, slots=True)
class GroupOfTopicPage(Page):
    """A page of the groups of a topic."""

    topic: str
    items: tuple[GroupOfTopicRow, ...]
