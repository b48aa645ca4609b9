"""Topics of thousands of partitions in one request: the loop keeps serving other clients."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.broker.client.wire_client import WireClient
from barnabas.protocol.messages.create_partitions import (
    CREATE_PARTITIONS,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.create_topics import (
    CREATE_TOPICS,
    CreatableTopic,
    CreateTopicsRequest,
)
from barnabas.protocol.messages.delete_topics import (
    DELETE_TOPICS,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from barnabas.testing import Broker
from tests.attack.loop_lag import loop_lag
from tests.garbage import collector_of_a_daemon

BUSY_MS_MAX = 200
"""The rule is 50; a crowded machine that also traces coverage may take a few times as long."""


@pytest.fixture
def collector() -> Iterator[None]:
    """Set the collector as a daemon does: an embedded broker leaves it as it is."""
    with collector_of_a_daemon():
        yield


def create(client, *topics):
    request = CreateTopicsRequest([CreatableTopic(name, count, 1) for name, count in topics])
    return [each.error_code for each in client.ask(CREATE_TOPICS, request, 7).topics]


def delete(client, *names):
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name) for name in names])
    return [each.error_code for each in client.ask(DELETE_TOPICS, request, 6).responses]


def grow(client, name, count):
    request = CreatePartitionsRequest([CreatePartitionsTopic(name, count, None)])
    return [each.error_code for each in client.ask(CREATE_PARTITIONS, request, 3).results]


@pytest.mark.usefixtures("collector")
@pytest.mark.parametrize("counts", [(1000,), (10_000,), (1000,) * 10])
def test_no_request_for_many_partitions_holds_the_loop(tmp_path, counts):
    names = [f"topic-{number}" for number in range(len(counts))]
    with (
        Broker(storage=tmp_path) as broker,
        WireClient(broker.address) as client,
        loop_lag(broker, f"partitions {sum(counts)}") as lag,
    ):
        assert create(client, *zip(names, counts, strict=True)) == [0] * len(counts)
        assert grow(client, names[0], counts[0] + 1000) == [0]
        assert delete(client, *names) == [0] * len(counts)
        assert broker.call(lambda: broker.server.catalogue.topics) == {}
    assert lag.busy_ms < BUSY_MS_MAX
