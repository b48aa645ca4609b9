"""State of a broker for permission tests: topics, groups and transactions."""

from __future__ import annotations

from barnabas.broker.client.wire_client import WireClient
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.offset_commit import OFFSET_COMMIT
from barnabas.protocol.wire import ZERO_UUID
from tests.broker.security.access_requests import DENIED, GRANTED, HERE
from tests.counterparts.transaction_client import TransactionSteps
from tests.requests import commit_request, create_topic
from tests.waiting import wait_until

OPEN_FOR_MS = 900_000


def make_things(client: WireClient) -> dict[str, bytes]:
    """Make all of them, as a user who may; return the ids of the topics by name.

    The granted transactional id has a transaction open on all topics, each group has offsets of
    all.
    """
    names = [GRANTED, DENIED, HERE]
    ids = {name: create_topic(client, name) for name in names}
    for group in names:
        _commit(client, group, names)
    transactions = TransactionSteps(client.ask)
    for name in names:
        transactions.init(name, OPEN_FOR_MS)
    for name in names:
        transactions.add(GRANTED, name, 0)
    return ids


def topic_id(client: WireClient, name: str) -> bytes:
    """Return the ID of an existing topic."""
    asked = MetadataRequest([MetadataRequestTopic(ZERO_UUID, name)], False)
    (topic,) = client.ask(METADATA, asked, 12).topics
    return topic.topic_id


def _commit(client: WireClient, group: str, topics: list[str]) -> None:
    client.ask(FIND_COORDINATOR, FindCoordinatorRequest(group), 3)
    request = commit_request(group, {(name, 0): 1 for name in topics})

    def committed() -> bool:
        answer = client.ask(OFFSET_COMMIT, request, 9)
        codes = {each.error_code for topic in answer.topics for each in topic.partitions}
        return codes == {ErrorCode.NONE}

    wait_until(committed, f"offsets of {group} committed")
