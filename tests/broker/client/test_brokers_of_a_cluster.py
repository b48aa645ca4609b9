"""The blocking client at a cluster: which brokers it takes to be there, and whom it asks."""

from __future__ import annotations

import pytest

from barnabas.broker.client.brokers import Brokers
from barnabas.broker.client.errors import Unreachable
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest
from barnabas.testing import Cluster
from tests.seeds import SEED
from tests.waiting import wait_until

TIMEOUT_S = 30


@pytest.fixture
def cluster():
    with Cluster(brokers=2, seed=SEED) as running:
        yield running


@pytest.fixture
def brokers(cluster):
    addresses = [each.rpartition(":") for each in cluster.bootstrap_servers.split(",")]
    with Brokers([(host, int(port)) for host, _, port in addresses], "test", TIMEOUT_S) as known:
        yield known


def test_a_broker_that_metadata_names_no_more_is_not_there(cluster, brokers):
    brokers.metadata([])
    assert brokers.node_ids == [0, 1]
    connection = brokers.node(1)
    cluster.kill(1)
    wait_until(lambda: len(brokers.metadata([]).brokers) == 1)
    assert brokers.node_ids == [0]
    assert not connection.is_open
    with pytest.raises(Unreachable, match="broker 1 is not there"):
        brokers.node(1)
    cluster.restart(1)
    wait_until(lambda: len(brokers.metadata([]).brokers) == 2)
    assert brokers.node(1).ask(METADATA, MetadataRequest(topics=[]))


def test_whoever_was_asked_first_is_asked_last_once_it_was_turned_from(cluster, brokers):
    asked = []
    for _ in range(3):
        asked.append(brokers.any().name)
        assert brokers.any().name == asked[-1]
        brokers.turn_to_another()
    first, second = cluster.bootstrap_servers.split(",")
    assert asked == [first, second, first]
    # The next one is the second, which is gone.
    cluster.kill(1)
    assert brokers.any().name == first
