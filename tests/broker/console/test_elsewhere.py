"""Partitions that another broker leads: the response names the leader, and no request is a bug."""

from __future__ import annotations

import json
from types import SimpleNamespace
from urllib.request import Request

import pytest

from barnabas.broker.cluster.view import NO_NODE, Leader, Node
from barnabas.testing import Broker
from tests.broker.console.asking import HTTP, fetch, path
from tests.http_client import urlopen

HERE, THERE = 1, 7


@pytest.fixture(scope="module")
def broker():
    """A broker of two partitions, of which another one leads the second."""
    with Broker(config=HTTP) as running:
        running.create_topic("shared", partitions=2)
        elsewhere = running.server.catalogue.topic("shared").partitions[1]
        log, elsewhere.log = elsewhere.log, None
        yield running
        elsewhere.log = log


def led_by(monkeypatch, broker, node_id):
    """Set the leader of every partition in the cluster's view."""
    nodes = (Node(HERE, None, {}), Node(THERE, None, {"PLAINTEXT": ("second.example", 9092)}))
    view = SimpleNamespace(
        node_id=HERE, nodes=nodes, leader_of=lambda _: Leader(node_id, 3), version=1
    )
    monkeypatch.setattr(broker.server, "view", view)


@pytest.mark.parametrize(
    "parts",
    [
        ("records",),
        ("records", "export"),
        ("partitions", "1", "records", "0"),
        ("partitions", "1", "records", "0", "raw"),
    ],
)
def test_records_of_another_leader_are_503_with_its_name(monkeypatch, broker, parts):
    led_by(monkeypatch, broker, THERE)
    answer = fetch(broker, "topics", "shared", *parts, expected=503)
    assert answer == {
        "error": "NOT_LEADER_OR_FOLLOWER",
        "message": (
            "node 7 at second.example leads partition 1 of shared, not this broker (node 1); "
            "open the console of node 7, or choose partitions of this broker: 0"
        ),
    }


def test_partitions_of_this_broker_are_readable_beside_those_of_another(monkeypatch, broker):
    led_by(monkeypatch, broker, THERE)
    assert fetch(broker, "topics", "shared", "records", partition="0")["items"] == []


@pytest.mark.parametrize(
    ("leader", "words"),
    [
        (NO_NODE, "no broker in service leads partition 1 of shared now; try again"),
        (
            HERE,
            "this broker (node 1) leads partition 1 of shared and does not serve it yet; try again",
        ),
    ],
)
def test_partition_without_a_leader_in_service_is_said_to_have_none(
    monkeypatch, broker, leader, words
):
    led_by(monkeypatch, broker, leader)
    answer = fetch(broker, "topics", "shared", "records", expected=503)
    assert answer["message"] == words


def test_tail_of_a_moved_partition_ends_with_the_leaders_name(monkeypatch, broker):
    led_by(monkeypatch, broker, THERE)
    partition = broker.server.catalogue.topic("shared").partitions[0]
    host, port = broker.server.http.address
    address = path("topics", "shared", "records", partition="0", follow="true", **{"from": "end"})
    wants = Request(f"http://{host}:{port}{address}", headers={"Accept": "text/event-stream"})
    with urlopen(wants, timeout=60) as stream:
        assert stream.readline() == b":\n"
        monkeypatch.setattr(partition, "log", None)
        lines = iter(stream.readline, b"")
        data = next(lines) if b"event: refused\n" in lines else b""
    words = json.loads(data.removeprefix(b"data: "))["message"]
    assert words.startswith("node 7 at second.example leads partition 0 of shared")
