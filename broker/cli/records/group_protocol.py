"""Messages between the members of a group: subscriptions and assignments.

The coordinator forwards them unchanged.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from barnabas.broker.admin.exchange import Rejected, TopicPartition
from barnabas.protocol.api import prefix
from barnabas.protocol.errors import ErrorCode, KafkaError, Malformed
from barnabas.protocol.messages.consumer_protocol_assignment import (
    CONSUMER_PROTOCOL_ASSIGNMENT,
    ConsumerProtocolAssignment,
)
from barnabas.protocol.messages.consumer_protocol_assignment import (
    TopicPartition as AssignedPartitions,
)
from barnabas.protocol.messages.consumer_protocol_subscription import (
    CONSUMER_PROTOCOL_SUBSCRIPTION,
    ConsumerProtocolSubscription,
)

_VERSION = struct.Struct(">h")


def encode_subscription(topics: Sequence[str]) -> bytes:
    """Encode the topics of a member's subscription."""
    subscription = ConsumerProtocolSubscription(topics=list(topics))
    return _VERSION.pack(0) + b"".join(CONSUMER_PROTOCOL_SUBSCRIPTION.encode(subscription, 0))


def share_out(count: int, members: list[str]) -> dict[str, list[int]]:
    """Divide ``count`` partitions into ranges; the first members get one more."""
    each, more = divmod(count, len(members))
    shares, start = {}, 0
    for number, member in enumerate(members):
        end = start + each + (number < more)
        shares[member] = list(range(start, end))
        start = end
    return shares


def encode_assignment(partitions: Mapping[str, list[int]]) -> bytes:
    """Encode a member's assignment in the consumers' common format."""
    topics = [AssignedPartitions(topic, numbers) for topic, numbers in partitions.items()]
    assignment = ConsumerProtocolAssignment(topics, None)
    return _VERSION.pack(0) + b"".join(CONSUMER_PROTOCOL_ASSIGNMENT.encode(assignment, 0))


def decode_assignment(data: bytes | memoryview) -> list[TopicPartition]:
    """Return the partitions of an assignment, none if the bytes are malformed."""
    if len(data) < _VERSION.size:
        return []
    try:
        version = min(prefix(bytes(data)), CONSUMER_PROTOCOL_ASSIGNMENT.max_version)
        assignment, _ = CONSUMER_PROTOCOL_ASSIGNMENT.decode_part(
            memoryview(data), _VERSION.size, version
        )
    except (Malformed, KafkaError):
        return []
    return sorted(
        (topic.topic, number)
        for topic in assignment.assigned_partitions
        for number in topic.partitions
    )


def decode_subscription(data: bytes | memoryview) -> list[str]:
    """Decode the topics of a member's subscription; raises Rejected for invalid bytes."""
    try:
        version = min(prefix(bytes(data)), CONSUMER_PROTOCOL_SUBSCRIPTION.max_version)
        subscription, _ = CONSUMER_PROTOCOL_SUBSCRIPTION.decode_part(
            memoryview(data), _VERSION.size, version
        )
    except (Malformed, KafkaError):
        raise Rejected(
            "group", ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "a member's topics cannot be read"
        ) from None
    return list(dict.fromkeys(subscription.topics))
