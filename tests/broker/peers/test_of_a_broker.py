"""Client of the other brokers, from a broker's start to its end."""

from __future__ import annotations

import pytest

from barnabas.broker.cluster.peers.interface import Failure, NoAnswer, Purpose
from barnabas.protocol.messages.write_txn_markers import WRITE_TXN_MARKERS, WriteTxnMarkersRequest
from barnabas.testing import Broker
from tests.cluster.watched import alternating
from tests.waiting import wait_until

TIMEOUT_MS = 30_000


def ask(peers, node_id, told):
    request = WriteTxnMarkersRequest([])
    peers.ask(
        node_id,
        Purpose.MARKERS,
        WRITE_TXN_MARKERS,
        2,
        request,
        told.append,
        timeout_ms=TIMEOUT_MS,
    )


def test_brokers_reach_each_other():
    with alternating({"t": 2}) as cluster:
        for asking, asked in zip(cluster.brokers, (1, 0), strict=True):
            told: list[object] = []
            asking.call(
                lambda asking=asking, asked=asked, told=told: ask(asking.server.peers, asked, told)
            )
            wait_until(lambda told=told: told)
            assert told[0].markers == []


@pytest.mark.parametrize("end", ["stop", "crash"])
def test_a_broker_that_ends_asks_nothing_more(end):
    with alternating({"t": 2}) as cluster:
        first, _ = cluster.brokers
        told: list[object] = []
        first.call(lambda: ask(first.server.peers, 1, told))
        wait_until(lambda: told)
        before = first.server.peers
        if end == "crash":
            cluster.kill(0)
        cluster.restart(0)
        first.call(lambda: ask(before, 1, told))
        wait_until(lambda: len(told) > 1)
        assert isinstance(told[1], NoAnswer)
        assert told[1].failure is Failure.CLOSED
        first.call(lambda: ask(first.server.peers, 1, told))
        wait_until(lambda: len(told) > 2)
        assert told[2].markers == []


def test_standalone_broker_has_no_peers():
    with Broker() as broker:
        assert broker.server.peers is None
