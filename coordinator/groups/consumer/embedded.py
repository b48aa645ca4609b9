"""Messages between members of the classic protocol: the consumer protocol inside the bytes of
JoinGroup and SyncGroup, which a classic group does not interpret.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeVar

from barnabas.coordinator.groups.commands import TopicsImage
from barnabas.coordinator.groups.consumer.member import NO_PARTITIONS, Partitions
from barnabas.coordinator.groups.consumer.reconcile import owned_partitions
from barnabas.protocol.api import Message, prefix
from barnabas.protocol.errors import Malformed
from barnabas.protocol.messages.consumer_protocol_assignment import (
    CONSUMER_PROTOCOL_ASSIGNMENT,
    ConsumerProtocolAssignment,
    TopicPartition,
)
from barnabas.protocol.messages.consumer_protocol_subscription import (
    CONSUMER_PROTOCOL_SUBSCRIPTION,
)

Decoded = TypeVar("Decoded")

VERSION_BYTES: Final = 2
NEWEST: Final = 3


class Subscription(NamedTuple):
    """Subscription of a member."""

    topic_names: frozenset[str]
    owned: Partitions
    rack_id: str | None


class Given(NamedTuple):
    """Assignment of a member by its leader."""

    partitions: Partitions
    user_data: bytes


def _decode(message: Message[Decoded], data: bytes) -> Decoded | None:
    """Decode the data after the version; a later version begins like the newest known one."""
    try:
        version = prefix(data)
        if version < 0:
            return None
        found, end = message.decode_part(memoryview(data), VERSION_BYTES, min(version, NEWEST))
    except Malformed:
        return None
    return found if end <= len(data) else None


def subscription(data: bytes, topics: TopicsImage) -> Subscription | None:
    """Return a member's subscription, or None if the bytes contain none."""
    found = _decode(CONSUMER_PROTOCOL_SUBSCRIPTION, data)
    if found is None:
        return None
    owned = _by_id([(each.topic, each.partitions) for each in found.owned_partitions], topics)
    return Subscription(frozenset(found.topics), owned, found.rack_id or None)


def given(data: bytes, topics: TopicsImage) -> Given | None:
    """Decode a member's assignment, empty without bytes; return None for invalid bytes."""
    if not data:
        return Given(NO_PARTITIONS, b"")
    found = _decode(CONSUMER_PROTOCOL_ASSIGNMENT, data)
    if found is None:
        return None
    listed = [(each.topic, each.partitions) for each in found.assigned_partitions]
    return Given(_by_id(listed, topics), bytes(found.user_data or b""))


def _by_id(listed: list[tuple[str, list[int]]], topics: TopicsImage) -> Partitions:
    """Return the partitions by topic ID, without deleted topics."""
    ids = [(topics.topic_id(name), partitions) for name, partitions in listed]
    return owned_partitions([(each, those) for each, those in ids if each is not None])


def assignment_bytes(partitions: Partitions, like: bytes, topics: TopicsImage) -> bytes:
    """Encode an assignment in the version of a member's subscription ``like``."""
    listed = []
    for topic_id in sorted(partitions):
        name = topics.name(topic_id)
        if name is not None:
            listed.append(TopicPartition(name, sorted(partitions[topic_id])))
    version = min(prefix(like), NEWEST)
    start = bytearray(version.to_bytes(VERSION_BYTES, "big"))
    message = ConsumerProtocolAssignment(listed)
    return b"".join(CONSUMER_PROTOCOL_ASSIGNMENT.encode(message, version, start))
