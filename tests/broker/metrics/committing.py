"""Commits offsets for a group without members."""

from __future__ import annotations

from barnabas.broker.client.wire_client import WireClient
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.messages.offset_commit import OFFSET_COMMIT
from barnabas.storage.runtime.clock import monotonic, sleep
from tests.requests import codes_of, commit_request


def commit(broker, group, topic, offsets):
    """Commit ``offsets`` by partition; wait until the coordinator is available."""
    places = {(topic, partition): offset for partition, offset in offsets.items()}
    request = commit_request(group, places)
    deadline = monotonic() + 60
    with WireClient(broker.address) as client:
        while True:
            client.ask(FIND_COORDINATOR, FindCoordinatorRequest(key=group), 2)
            errors = set(codes_of(client.ask(OFFSET_COMMIT, request, 8)))
            if errors == {0}:
                return
            assert monotonic() < deadline, errors
            sleep(0.02)
