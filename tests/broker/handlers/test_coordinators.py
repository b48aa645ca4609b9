"""FindCoordinator in every version and for every kind of key.

What it answers for groups and transactions is compared with Apache Kafka's in tests/interop.
"""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.testing import Broker
from tests.counterparts.wire_client import WireClient

GROUP, TRANSACTION, SHARE = range(3)
TOPICS = {GROUP: "__consumer_offsets", TRANSACTION: "__transaction_state"}
KINDS = {GROUP: "group", TRANSACTION: "transaction"}


@pytest.fixture
def broker():
    settings = {
        "transaction.state.log.num.partitions": "2",
        "offsets.topic.num.partitions": "3",
    }
    with Broker(config=settings) as running:
        running.port = running.address[1]
        yield running


@pytest.fixture
def client(broker):
    with WireClient(broker) as connected:
        yield connected


def find(client, version, kind, *keys):
    request = FindCoordinatorRequest(keys[0] if keys else "", kind, list(keys))
    answer = client.ask(FIND_COORDINATOR, request, version)
    return answer.coordinators if version >= 4 else [answer]


@pytest.mark.parametrize("version", range(7))
@pytest.mark.parametrize("kind", KINDS, ids=KINDS.values())
def test_coordinator_is_found_and_its_topic_created(broker, client, version, kind):
    kind = kind if version else GROUP
    (found,) = find(client, version, kind, "key")
    assert found.error_code == ErrorCode.NONE
    assert (found.host, found.port) == ("127.0.0.1", broker.port)
    assert found.node_id == broker.server.node_id
    sizes = {name: len(topic.partitions) for name, topic in broker.server.catalogue.topics.items()}
    assert sizes == {TOPICS[kind]: 3 if kind == GROUP else 2}


def test_topic_that_cannot_be_created_is_logged_once(caplog):
    with Broker(config={"offsets.topic.num.partitions": "10001"}) as broker:
        broker.port = broker.address[1]
        with WireClient(broker) as client:
            for _ in range(3):
                (found,) = find(client, 6, GROUP, "key")
                assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    lines = [each for each in caplog.messages if each.startswith("topic not created")]
    assert len(lines) == 1
    assert "name=__consumer_offsets reason=POLICY_VIOLATION: Excessively large" in lines[0]


@pytest.mark.parametrize("kind", KINDS, ids=KINDS.values())
def test_each_key_is_answered_as_often_as_it_is_named(client, kind):
    found = find(client, 6, kind, "a", "b", "a", "")
    assert [each.key for each in found] == ["a", "b", "a", ""]
    assert {each.error_code for each in found} == {ErrorCode.NONE}


@pytest.mark.parametrize("kind", KINDS, ids=KINDS.values())
def test_no_keys(client, kind):
    assert find(client, 4, kind) == []


@pytest.mark.parametrize(
    ("version", "kind", "code"),
    [
        (1, 3, ErrorCode.INVALID_REQUEST),
        (3, SHARE, ErrorCode.INVALID_REQUEST),
        (5, SHARE, ErrorCode.INVALID_REQUEST),
        (6, SHARE, ErrorCode.UNSUPPORTED_VERSION),
        (6, -1, ErrorCode.INVALID_REQUEST),
    ],
)
def test_unsupported_coordinator_types_are_rejected(broker, client, version, kind, code):
    for found in find(client, version, kind, *(("a", "b") if version >= 4 else "a")):
        assert found.error_code == code
        assert (found.node_id, found.host, found.port) == (-1, "", -1)
    assert broker.server.catalogue.topics == {}
