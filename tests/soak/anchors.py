"""A group for every partition of __consumer_offsets, which commits once and is never touched again.

What they committed must be there after every round; and with all partitions in use from the start,
their files are no growth of descriptors later.
"""

from __future__ import annotations

from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.messages.offset_commit import OFFSET_COMMIT
from tests.counterparts.broker_process import BrokerProcess
from tests.counterparts.wire_client import WireClient
from tests.groups.fleet import wait_for
from tests.groups.observer import Place
from tests.requests import codes_of, commit_request

PARTITIONS = 50
"""The default number of partitions of __consumer_offsets."""
NOT_YET = {0, 3, 14, 15, 16}
"""The coordinator is not available, is loading, or is not known yet."""


def partition_of(group: str) -> int:
    """Return the partition of a group: Java's hash of its name, without the sign."""
    value = 0
    for character in group:
        value = (31 * value + ord(character)) & 0xFFFFFFFF
    return abs(value - (value >> 31 << 32)) % PARTITIONS


def anchor_groups() -> list[str]:
    """Return one group name for each partition."""
    found: dict[int, str] = {}
    number = 0
    while len(found) < PARTITIONS:
        name = f"anchor-{number}"
        found.setdefault(partition_of(name), name)
        number += 1
    return [found[partition] for partition in range(PARTITIONS)]


def drop_anchors(broker: BrokerProcess, topic: str) -> dict[Place, int]:
    """Commit an offset in every anchor group; returns what has to stay."""
    dropped: dict[Place, int] = {}
    with WireClient(broker) as client:
        # Apache Kafka has no topic for commits before a client has looked for a coordinator.
        anybody = FindCoordinatorRequest(coordinator_keys=anchor_groups()[:1])
        client.ask(FIND_COORDINATOR, anybody, 4)
        for offset, group in enumerate(anchor_groups()):

            def is_dropped(group: str = group, offset: int = offset) -> bool:
                request = commit_request(group, {(topic, 0): offset})
                (code,) = codes_of(client.ask(OFFSET_COMMIT, request, 8))
                assert code in NOT_YET, (group, code)
                return code == 0

            wait_for(is_dropped, lambda group=group: f"{group} commits")
            dropped[group, topic, 0] = offset
    return dropped
