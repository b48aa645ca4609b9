"""The blocking client at a cluster: which brokers it takes to be there, and whom it asks."""

from __future__ import annotations

import socket
import time

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
    with pytest.raises(Unreachable, match="broker 1 is not in the metadata"):
        brokers.node(1)
    cluster.restart(1)
    wait_until(lambda: len(brokers.metadata([]).brokers) == 2)
    assert brokers.node(1).ask(METADATA, MetadataRequest(topics=[]))


def test_broker_left_by_the_client_is_tried_last(cluster, brokers):
    asked = []
    for _ in range(3):
        asked.append(brokers.any().name)
        assert brokers.any().name == asked[-1]
        brokers.turn_to_another()
    first, second = cluster.bootstrap_servers.split(",")
    assert asked == [first, second, first]
    # The next one is the second, then the first, and then the second, which no longer runs.
    assert brokers.any().name == second
    brokers.turn_to_another()
    cluster.kill(1)
    brokers.turn_to_another()
    assert brokers.any().name == first
    assert brokers.metadata([]).brokers


def test_the_one_that_answered_last_is_asked_first(cluster, brokers):
    first, second = cluster.bootstrap_servers.split(",")
    assert brokers.any().name == first
    brokers.turn_to_another()
    for _ in range(2):
        assert brokers.any().name == second
        brokers.close()
    # Unless it was turned from: nothing is known of it by then.
    brokers.any().close()
    brokers.turn_to_another()
    assert brokers.any().name == first


def test_wait_for_several_dead_brokers_is_as_long_as_for_one(monkeypatch):
    waits_s = []
    now_s = 0.0

    def wait_in_vain(_address: tuple[str, int], timeout: float) -> socket.socket:
        nonlocal now_s
        waits_s.append(timeout)
        now_s += timeout
        raise TimeoutError("timed out")

    monkeypatch.setattr(socket, "create_connection", wait_in_vain)
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    known = Brokers([("127.0.0.1", port) for port in range(1, 7)], "test", TIMEOUT_S)
    with pytest.raises(Unreachable):
        known.any()
    assert waits_s == [TIMEOUT_S / 6] * 6


def test_the_present_broker_is_kept_until_another_one_is_there(cluster, brokers, monkeypatch):
    """A dead machine rejects no connection: each wait for it lasts until its timeout."""
    first, second = cluster.bootstrap_servers.split(",")
    gone = [second]
    waits_s = []
    connect = socket.create_connection

    def connect_unless_gone(address: tuple[str, int], timeout: float) -> socket.socket:
        if "{}:{}".format(*address) not in gone:
            return connect(address, timeout)
        waits_s.append(timeout)
        raise TimeoutError("timed out")

    monkeypatch.setattr(socket, "create_connection", connect_unless_gone)
    assert brokers.any().name == first
    for expected_s in (2, 4, 8, 16, 30, 30):
        brokers.turn_to_another()
        assert brokers.any().name == first
        assert waits_s[-1] == expected_s
    gone.append(first)  # It takes no other connection either, but answers on the one that it has.
    present = brokers.any()
    brokers.turn_to_another()
    assert brokers.any() is present
    assert present.ask(METADATA, MetadataRequest(topics=[])).brokers
    gone.clear()
    brokers.turn_to_another()
    assert brokers.any().name == second
    assert brokers.any()._client.timeout_seconds == TIMEOUT_S, "as long as ever, once it is there"
    gone.append(first)
    brokers.turn_to_another()
    assert waits_s[-1] == 2
