"""Commits offsets for a group without members."""

from __future__ import annotations

from barnabas.broker.client.wire_client import WireClient
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.storage.runtime.clock import monotonic, sleep


def commit(broker, group, topic, offsets):
    """Commit ``offsets`` by partition; wait until the coordinator is available."""
    partitions = [OffsetCommitRequestPartition(*each, -1, "") for each in offsets.items()]
    request = OffsetCommitRequest(
        group_id=group, topics=[OffsetCommitRequestTopic(topic, partitions=partitions)]
    )
    deadline = monotonic() + 60
    with WireClient(broker.address) as client:
        while True:
            client.ask(FIND_COORDINATOR, FindCoordinatorRequest(key=group), 2)
            answer = client.ask(OFFSET_COMMIT, request, 8)
            errors = {each.error_code for each in answer.topics[0].partitions}
            if errors == {0}:
                return
            assert monotonic() < deadline, errors
            sleep(0.02)
